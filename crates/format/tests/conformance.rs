//! Real files that others wrote: they are sound, hold what they should, and survive the hub. Skipped,
//! visibly, where the files are absent.

mod common;

use common::{assert_clean, findings, format_of, open};
use std::path::{Path, PathBuf};
use weighbridge_format::sink::to_memory;
use weighbridge_format::{Container, Formats, Options};
use weighbridge_testkit::data::conformance;
use weighbridge_testkit::{assert_snapshot, values};

/// The files of a kind in a folder; which these are is in a file beside the tests.
fn files(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let mut list: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|e| e.unwrap().path())
        .filter(|p| p.extension().is_some_and(|e| e == extension))
        .collect();
    list.sort();
    let names = list.iter().map(|p| p.file_name().unwrap().to_string_lossy());
    assert_snapshot(env!("CARGO_MANIFEST_DIR"), &format!("conformance_{extension}"), names);
    list
}

/// Every tensor of the expected file is there with the same values. The expected files hold some
/// types as wider ones, so that values are compared, not types.
fn assert_holds(container: &Container, expected: &Path) {
    let expected = open(expected).unwrap();
    assert!(!expected.tensors.is_empty());
    for wanted in &expected.tensors {
        let tensor =
            container.tensor(&wanted.name).unwrap_or_else(|| panic!("{} is missing", wanted.name));
        assert_eq!(tensor.shape, wanted.shape, "{}", wanted.name);
        assert_eq!(values(tensor), values(wanted), "{}", wanted.name);
    }
    let stored = container.tensors.iter().filter(|t| t.view().is_some()).count();
    assert_eq!(stored, expected.tensors.len());
}

/// The file, through safetensors and back.
fn through_the_hub(path: &Path, options: &Options) -> Vec<(Option<String>, Vec<u8>)> {
    let source = open(path).unwrap();
    let hub = format_of("safetensors");
    let carried = to_memory(&hub.plan(&source, options).unwrap()).unwrap().remove(0).1;
    let input = weighbridge_format::Input::from_bytes("carried.safetensors", carried);
    let container = Formats::builtin().open(&input, &Options::default()).unwrap();
    to_memory(&format_of(source.format).plan(&container, &Options::default()).unwrap()).unwrap()
}

fn assert_survives(path: &Path) {
    for options in [Options::default(), Options::default().with("keep-codes", "true")] {
        for (beside, bytes) in through_the_hub(path, &options) {
            let original = beside.map_or(path.to_owned(), |name| path.with_file_name(name));
            assert!(std::fs::read(&original).unwrap() == bytes, "{} differs", original.display());
        }
    }
}

#[test]
fn embd() {
    let Some(folder) = conformance("embd") else { return };
    let list = files(&folder, "weights");
    let facts: serde_json::Value =
        serde_json::from_slice(&std::fs::read(folder.join("expected.json")).unwrap()).unwrap();
    for path in list {
        assert_clean(&path);
        let container = open(&path).unwrap();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if name.starts_with("mixed") {
            assert_holds(&container, &folder.join("mixed.expected.safetensors"));
        } else {
            assert_holds(&container, &folder.join("model.expected.safetensors"));
            let vocabulary = container.vocabulary.as_ref().unwrap();
            assert_eq!(serde_json::json!(vocabulary.tokens().collect::<Vec<_>>()), facts["vocab"]);
            let special: Vec<_> = vocabulary.special.iter().map(|(_, id)| *id).collect();
            assert_eq!(serde_json::json!(special), facts["special"]);
        }
        if name == "stream.weights" {
            assert_eq!(container.layout, "stream");
        } else {
            for (key, value) in facts["metadata"].as_object().unwrap() {
                assert_eq!(container.text(key), value.as_str(), "{name} {key}");
            }
            assert_survives(&path);
        }
    }
}

#[test]
fn oinf_with_every_type() {
    let Some(folder) = conformance("oinf") else { return };
    let path = folder.join("all-types.oinf");
    assert_clean(&path);
    let container = open(&path).unwrap();
    assert_holds(&container, &folder.join("all-types.expected.safetensors"));
    let facts: serde_json::Value =
        serde_json::from_slice(&std::fs::read(folder.join("all-types.expected.json")).unwrap())
            .unwrap();
    for (name, value) in &container.sizevars {
        assert_eq!(facts["sizevars"][name], *value);
    }
    for (key, value) in facts["metadata"].as_object().unwrap() {
        let found = container.metadata.iter().find(|(k, _)| k == key).unwrap();
        assert_eq!(serde_json::to_value(&found.1).unwrap(), *value, "{key}");
    }
    let declared: Vec<_> =
        container.tensors.iter().filter(|t| t.view().is_none()).map(|t| &t.name).collect();
    assert_eq!(serde_json::json!(declared), facts["declared"]);
    assert_survives(&path);
}

#[test]
fn oinf_version_2() {
    let Some(folder) = conformance("oinf/v2") else { return };
    let list = files(&folder, "oinf");
    let mut quantized = 0;
    for path in list {
        assert_clean(&path);
        assert_survives(&path);
        let expected = path.with_extension("expected.safetensors");
        if expected.exists() {
            assert_holds(&open(&path).unwrap(), &expected);
            quantized += 1;
        }
    }
    assert_eq!(quantized, 3);
}

#[test]
fn i8bin() {
    let Some(folder) = conformance("i8bin") else { return };
    for (kind, rounding, warnings) in [("rounded", "nearest", 0), ("truncated", "truncate", 1)] {
        let path = folder.join(kind).join("embeddings.i8bin");
        let found = findings(&path);
        assert!(!found.has_errors() && found.list().len() == warnings, "{:?}", found.list());
        let container = open(&path).unwrap();
        assert_eq!(container.records.as_ref().unwrap().count().unwrap(), 37);
        assert_holds(&container, &folder.join(kind).join("expected.safetensors"));
        assert_survives(&path);
        // The exporter's input gives the exporter's bytes.
        let source = open(folder.join("source.npy")).unwrap();
        let options = Options::default().with("rounding", rounding);
        let made = to_memory(&format_of("i8bin").plan(&source, &options).unwrap()).unwrap();
        assert!(made[0].1 == std::fs::read(&path).unwrap(), "{kind}");
    }
}

/// The values of every method, bit by bit.
#[test]
fn mcf() {
    let Some(folder) = conformance("mcf") else { return };
    let list = files(&folder, "mcf");
    for path in list {
        assert_clean(&path);
        assert_holds(&open(&path).unwrap(), &path.with_extension("expected.safetensors"));
        assert_survives(&path);
    }
}
