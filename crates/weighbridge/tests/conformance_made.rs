//! What the library makes of real files that others wrote is what the reference tools make of them.
//! Skipped, visibly, where the files are absent.

mod common;

use common::with;
use std::path::Path;
use weighbridge::codec::block::BlockEncoder;
use weighbridge::quantize::{Method, QuantizeReport, QuantizeSettings};
use weighbridge::sink::to_memory;
use weighbridge::{Embeddings, Progress, open, quantize};
use weighbridge_testkit::data::conformance;

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
