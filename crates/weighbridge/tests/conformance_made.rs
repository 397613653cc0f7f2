//! What the library makes of real files that others wrote is what the reference tools make of them.
//! Skipped, visibly, where the files are absent.

mod common;

use common::{format_of, with, write};
use std::path::Path;
use weighbridge::codec::block::BlockEncoder;
use weighbridge::quantize::{Method, QuantizeReport, QuantizeSettings};
use weighbridge::sink::to_memory;
use weighbridge::{Embeddings, Options, Progress, open, quantize};
use weighbridge_testkit::data::{conformance, reference};

/// The reference tool's quantized files, byte for byte; what is chosen here is closer.
#[test]
fn mcf_is_quantized_as_by_the_reference_tool() {
    let Some(folder) = conformance("mcf") else { return };
    let plain = folder.join("tiny1.mcf");
    for method in ["q8", "q4", "k6", "k4", "k3", "k2"] {
        let made = quantized(&plain, method, BlockEncoder::Reference);
        let expected = std::fs::read(folder.join(format!("tiny1-{method}.mcf"))).unwrap();
        assert!(expected == made.0, "{method}");
        let best = quantized(&plain, method, BlockEncoder::Best);
        // Tensors that share their bytes go on sharing them.
        assert_eq!(best.0.len(), made.0.len() - 384, "{method}");
        let (best, reference) = (best.1.loss.relative_rmse, made.1.loss.relative_rmse);
        assert!(best < reference, "{method}: {best} {reference}");
    }
}

fn quantized(path: &Path, method: &str, encoder: BlockEncoder) -> (Vec<u8>, QuantizeReport) {
    let method = Method::from_name(method).unwrap();
    let request = with(QuantizeSettings::new(method), |s| {
        s.encoder = encoder;
    });
    let done = quantize(&open(path).unwrap(), &request, &mut Progress::none()).unwrap();
    (to_memory(&done.plan).unwrap().remove(0).1, done.report)
}

/// Vectors that the Python package looked up, of words that are there and of words that are not.
#[test]
fn words_have_the_vectors_of_the_package() {
    let Some(folder) = conformance("finalfusion") else { return };
    let list: Vec<String> =
        serde_json::from_slice(&std::fs::read(folder.join("words.json")).unwrap()).unwrap();
    let (mut known, mut unknown) = (0, 0);
    for name in ["bucket", "fasttext"] {
        let container = open(folder.join(format!("{name}.fifu"))).unwrap();
        let vocabulary = container.vocabulary.as_ref().unwrap();
        assert!(vocabulary.tokens().eq(list.iter().map(String::as_str)), "{name}");
        let embeddings = Embeddings::new(&container).unwrap();
        let expected = std::fs::read(folder.join(format!("{name}.expected.json"))).unwrap();
        let expected: serde_json::Value = serde_json::from_slice(&expected).unwrap();
        for (word, vector) in expected.as_object().unwrap() {
            let found = embeddings.lookup(word).unwrap().unwrap();
            assert_eq!(found.known, list.contains(word));
            let vector: Vec<f64> =
                vector.as_array().unwrap().iter().map(|v| v.as_f64().unwrap()).collect();
            assert_eq!(found.vector.len(), vector.len());
            let pairs = found.vector.iter().zip(&vector);
            let far = pairs.into_iter().any(|(a, b)| (f64::from(*a) - b).abs() > 1e-6);
            assert!(!far, "{name}, {word}");
            *(if found.known { &mut known } else { &mut unknown }) += 1;
        }
    }
    assert_eq!((known, unknown), (4, 6));
}

/// floret's own vectors: the mean of the rows, with the length that it has. The table has five
/// digits of each number, and the vectors come from the model before it was written.
#[test]
fn floret_has_its_own_vectors_and_keeps_them() {
    let Some(folder) = reference("real") else { return };
    let expected = std::fs::read(folder.join("tiny.floret.json")).unwrap();
    let expected: serde_json::Value = serde_json::from_slice(&expected).unwrap();
    let expected = expected.as_object().unwrap();
    assert!(expected.len() > 5);
    let container = open(folder.join("tiny.floret")).unwrap();
    let kept = tempfile::tempdir().unwrap();
    // The hub remembers what a file was; floret's own text comes back through it and finalfusion.
    let hub = kept.path().join("tiny.safetensors");
    write(&format_of("safetensors").plan(&container, &Options::default()).unwrap(), &hub);
    let fifu = kept.path().join("tiny.fifu");
    let plan = format_of("finalfusion").plan(&container, &Options::default()).unwrap();
    let said: Vec<_> = plan.report.warnings.iter().map(ToString::to_string).collect();
    assert!(said.iter().any(|s| s.contains("get unit length")), "{said:?}");
    write(&plan, &fifu);
    let back = kept.path().join("back.floret");
    let plan = format_of("floret").plan(&open(&fifu).unwrap(), &Options::default()).unwrap();
    let said: Vec<_> = plan.report.warnings.iter().map(ToString::to_string).collect();
    assert!(said.iter().any(|s| s.contains("no longer have unit length")), "{said:?}");
    write(&plan, &back);
    let all = [container, open(&hub).unwrap(), open(&back).unwrap()];
    for (i, container) in all.iter().enumerate() {
        let embeddings = Embeddings::new(container).unwrap();
        for (word, vector) in expected {
            let found = embeddings.lookup(word).unwrap().unwrap();
            let vector = vector.as_array().unwrap();
            assert_eq!(found.vector.len(), vector.len());
            // To the most frequent word, whose number is 0, floret adds a row of the model that is
            // not in the table.
            let most = if word == "the" { 0.07 } else { 1e-4 };
            for (a, b) in found.vector.iter().zip(vector) {
                let (a, b) = (f64::from(*a), b.as_f64().unwrap());
                assert!((a - b).abs() <= most * b.abs().max(1e-2), "{i}, {word}: {a} {b}");
            }
        }
    }
    // Its rows are no words' rows.
    for format in ["text", "word2vec", "glove"] {
        let error = format_of(format).plan(&all[0], &Options::default()).unwrap_err();
        assert!(error.to_string().contains("share by hashing"), "{format}: {error}");
    }
    // Readers of finalfusion bring the mean to unit length, the crate and the package alike.
    let embeddings = Embeddings::new(&open(&fifu).unwrap()).unwrap();
    let vector = embeddings.lookup("the").unwrap().unwrap().vector.into_owned();
    let length: f32 = vector.iter().map(|v| v * v).sum::<f32>().sqrt();
    assert!((length - 1.0).abs() < 1e-5, "{length}");
}
