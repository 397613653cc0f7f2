//! Real files of word embeddings that others wrote: sound, with the right vectors for words that
//! are there and for others, and the same bytes again. Skipped, visibly, where they are absent.

mod common;

use common::{format_of, verdict};
use std::path::{Path, PathBuf};
use weighbridge::model::{MATRIX, NORMS};
use weighbridge::sink::to_memory;
use weighbridge::{Container, Embeddings, Encoding, Formats, Input, Options, open};
use weighbridge_testkit::{conformance, values};

fn folder() -> Option<PathBuf> {
    conformance("finalfusion")
}

fn words(container: &Container) -> Vec<String> {
    container.vocabulary.as_ref().unwrap().tokens().map(|t| t.into_owned()).collect()
}

fn as_format(container: &Container, format: &str, options: &Options) -> Vec<u8> {
    let plan = format_of(format).plan(container, options).unwrap();
    assert!(plan.report.losses.is_empty(), "{:?}", plan.report.losses);
    to_memory(&plan).unwrap().remove(0).1
}

/// The same bytes, directly and through safetensors, with codes kept or not.
fn assert_same_bytes(path: &Path) {
    let (original, container) = (std::fs::read(path).unwrap(), open(path).unwrap());
    let direct = as_format(&container, container.format, &Options::default());
    assert!(direct == original, "{}", path.display());
    for options in [Options::default(), Options::default().with("keep-codes", "true")] {
        let carried = as_format(&container, "safetensors", &options);
        let carried = Input::from_bytes("carried.safetensors", carried);
        let carried = Formats::builtin().open(&carried, &Options::default()).unwrap();
        let again = as_format(&carried, container.format, &Options::default());
        assert!(again == original, "{} through safetensors", path.display());
    }
}

/// Every file that is called `.fifu`, without a finding.
#[test]
fn finalfusion_files_are_sound_and_come_back() {
    let Some(folder) = folder() else { return };
    let mut visited = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|e| e == "fifu") {
            let verdict = verdict(&path);
            assert!(verdict.findings.is_empty(), "{}: {:?}", path.display(), verdict.findings);
            assert_same_bytes(&path);
            visited += 1;
        }
    }
    assert_eq!(visited, 5);
}

/// Vectors that the Python package looked up, of words that are there and of words that are not.
#[test]
fn words_have_the_vectors_of_the_package() {
    let Some(folder) = folder() else { return };
    let list: Vec<String> =
        serde_json::from_slice(&std::fs::read(folder.join("words.json")).unwrap()).unwrap();
    let (mut known, mut unknown) = (0, 0);
    for name in ["bucket", "fasttext"] {
        let container = open(folder.join(format!("{name}.fifu"))).unwrap();
        assert_eq!(words(&container), list);
        let embeddings = Embeddings::new(&container).unwrap();
        let expected = std::fs::read(folder.join(format!("{name}.expected.json"))).unwrap();
        let expected: serde_json::Value = serde_json::from_slice(&expected).unwrap();
        for (word, vector) in expected.as_object().unwrap() {
            let found = embeddings.lookup(word).unwrap();
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
    assert!(known >= 2 && unknown >= 6, "{known} and {unknown}");
}

#[test]
fn a_simple_file_holds_what_it_should() {
    let Some(folder) = folder() else { return };
    let container = open(folder.join("simple.fifu")).unwrap();
    let expected = open(folder.join("simple.expected.safetensors")).unwrap();
    let wanted = |name: &str| values(expected.tensor(name).unwrap());
    assert_eq!(values(container.tensor(MATRIX).unwrap()), wanted("unit"));
    assert_eq!(values(container.tensor(NORMS).unwrap()), wanted("norms"));
    let original = values(&container.word_matrix().unwrap().original());
    let pairs = original.iter().zip(wanted("raw"));
    assert!(pairs.into_iter().all(|(a, b)| (a - b).abs() <= 1e-6));
    assert_eq!(container.metadata.len(), 2);
    assert_eq!(container.vocabulary.map(|v| v.len()), Some(60));
}

/// The same embeddings in four formats. The others are not at unit length and come to it.
#[test]
fn the_same_words_in_other_formats() {
    let Some(folder) = folder() else { return };
    let wanted = open(folder.join("similarity.fifu")).unwrap();
    let rows = values(wanted.tensor(MATRIX).unwrap());
    let mut visited = 0;
    for (name, format) in
        [("similarity.bin", "word2vec"), ("similarity.txt", "text"), ("similarity.nodims", "glove")]
    {
        let path = folder.join(name);
        let container = open(&path).unwrap();
        assert_eq!(container.format, format, "{name}");
        let verdict = verdict(&path);
        assert!(verdict.ok, "{name}: {:?}", verdict.findings);
        assert_eq!(words(&container), words(&wanted), "{name}");
        let found = values(container.tensor(MATRIX).unwrap());
        let far = found.iter().zip(&rows).filter(|(a, b)| (*a - *b).abs() > 1e-6).count();
        assert_eq!(far, 0, "{name}");
        assert_same_bytes(&path);
        // Converted, rows times norms are what they were.
        let bytes = as_format(&container, "finalfusion", &Options::default());
        let made = Input::from_bytes("made.fifu", bytes);
        let made = Formats::builtin().open(&made, &Options::default()).unwrap();
        let original = values(&made.word_matrix().unwrap().original());
        assert!(original.iter().zip(&found).all(|(a, b)| (a - b).abs() <= 1e-6), "{name}");
        visited += 1;
    }
    assert_eq!(visited, 3);
}

/// The crate's own quantized file: product codes whose rows are close to those of the plain file
/// that it was made of.
#[test]
fn a_quantized_file_is_close_to_its_source() {
    let Some(folder) = folder() else { return };
    let (quantized, plain) = (
        open(folder.join("quantized.fifu")).unwrap(),
        open(folder.join("similarity.fifu")).unwrap(),
    );
    let tensor = quantized.tensor(MATRIX).unwrap();
    assert!(matches!(tensor.encoding, Encoding::Product(_)));
    assert_eq!(words(&quantized), words(&plain));
    let shape = &plain.tensor(MATRIX).unwrap().shape;
    assert_eq!(&tensor.shape, shape);
    let dim = usize::try_from(shape[1]).unwrap();
    let pairs = values(tensor).into_iter().zip(values(plain.tensor(MATRIX).unwrap()));
    let pairs: Vec<(f64, f64)> = pairs.collect();
    let cosine = |row: &[(f64, f64)]| {
        let sum = |f: fn(&(f64, f64)) -> f64| row.iter().map(f).sum::<f64>();
        sum(|(a, b)| a * b) / (sum(|(a, _)| a * a) * sum(|(_, b)| b * b)).sqrt()
    };
    let mean = pairs.chunks(dim).map(cosine).sum::<f64>() / shape[0] as f64;
    assert!(mean > 0.9, "{mean}");
}
