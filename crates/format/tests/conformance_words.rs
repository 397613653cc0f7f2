//! Real files of word embeddings that others wrote: sound, with the right rows, and the same bytes
//! again. Skipped, visibly, where they are absent.

mod common;

use common::{assert_clean, findings, format_of, open};
use std::path::{Path, PathBuf};
use weighbridge_format::model::{MATRIX, NORMS};
use weighbridge_format::sink::to_memory;
use weighbridge_format::{Container, Encoding, Finding, Formats, Input, Options};
use weighbridge_testkit::data::{conformance, reference};
use weighbridge_testkit::{assert_snapshot, values};

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

/// Every file of embeddings is sound, and those of finalfusion are without a finding. Which these are
/// is in a file beside the tests.
#[test]
fn files_are_sound_and_come_back() {
    let Some(folder) = folder() else { return };
    let entries = std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path());
    let is_ours =
        |path: &PathBuf| path.extension().is_some_and(|e| e != "json" && e != "safetensors");
    let mut list: Vec<_> = entries.filter(is_ours).collect();
    list.sort();
    let mut visited = Vec::new();
    for path in list {
        let (format, findings) = (open(&path).unwrap().format, findings(&path));
        assert!(!findings.has_errors(), "{}: {:?}", path.display(), findings.list());
        if format == "finalfusion" {
            assert_clean(&path);
        }
        assert_same_bytes(&path);
        visited.push(format!("{} {format}", path.file_name().unwrap().to_string_lossy()));
    }
    assert_snapshot(env!("CARGO_MANIFEST_DIR"), "conformance_words", visited);
}

#[test]
fn a_simple_file_holds_what_it_should() {
    let Some(folder) = folder() else { return };
    let container = open(folder.join("simple.fifu")).unwrap();
    let expected = open(folder.join("simple.expected.safetensors")).unwrap();
    let wanted = |name: &str| values(expected.tensor(name).unwrap());
    assert_eq!(values(container.tensor(MATRIX).unwrap()), wanted("unit"));
    assert_eq!(values(container.tensor(NORMS).unwrap()), wanted("norms"));
    let original = values(&container.word_matrix().unwrap().original().unwrap());
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
        let findings = findings(&path);
        assert!(!findings.has_errors(), "{name}: {:?}", findings.list());
        assert_eq!(words(&container), words(&wanted), "{name}");
        let found = values(container.tensor(MATRIX).unwrap());
        let far = found.iter().zip(&rows).filter(|(a, b)| (*a - *b).abs() > 1e-6).count();
        assert_eq!(far, 0, "{name}");
        assert_same_bytes(&path);
        // Converted, rows times norms are what they were.
        let bytes = as_format(&container, "finalfusion", &Options::default());
        let made = Input::from_bytes("made.fifu", bytes);
        let made = Formats::builtin().open(&made, &Options::default()).unwrap();
        let original = values(&made.word_matrix().unwrap().original().unwrap());
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

/// The Rust crate before 0.11 wrote norms without listing them; its readers load such files with them.
#[test]
fn norms_that_are_not_listed_are_read() {
    let Some(folder) = reference("real") else { return };
    let path = folder.join("unlisted-norms.fifu");
    let found = findings(&path);
    assert!(!found.has_errors(), "{:?}", found.list());
    let rules: Vec<_> = found.list().iter().map(|f| f.rule).collect();
    assert!(rules.contains(&"FIFU-26"), "{rules:?}");
    let container = open(&path).unwrap();
    let words = container.vocabulary.as_ref().unwrap().len() as u64;
    assert_eq!(container.tensor(NORMS).unwrap().shape, [words]);
    // Written again, the list has them, and nothing else is different.
    let plan = format_of("finalfusion").plan(&container, &Options::default()).unwrap();
    let again = plan.to_bytes().unwrap();
    let old = std::fs::read(&path).unwrap();
    assert_eq!(again.len(), old.len() + 4);
    assert_eq!(again[8], old[8] + 1);
    let input = Input::from_bytes("again.fifu", again);
    let (_, clean) = Formats::builtin().check(&input, &Options::default(), false).unwrap();
    let is_listed = |f: &Finding| f.rule != "FIFU-26";
    assert!(clean.list().iter().all(is_listed), "{:?}", clean.list());
}
