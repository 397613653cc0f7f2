//! What verbs say of damaged, different and unknown content is so.

mod common;

use common::{err, folder_with_model, out, run};
use serde_json::Value as Json;
use std::path::Path;

fn ok(folder: &Path, arguments: &[&str]) -> String {
    let done = run(folder, arguments);
    assert_eq!(done.status.code(), Some(0), "{arguments:?}: {}", err(&done));
    out(&done)
}

/// A small model as an EMBD file, and a copy with one bit of its last tensor flipped.
fn with_damaged_model() -> tempfile::TempDir {
    let folder = folder_with_model();
    let at = folder.path();
    ok(at, &["convert", "model", "sound.weights", "--allow-loss"]);
    let tensors = ok(at, &["inspect", "sound.weights", "--json"]);
    let tensors: Json = serde_json::from_str(&tensors).unwrap();
    assert!(tensors["tensors"].as_array().is_some_and(|t| !t.is_empty()));
    let mut bytes = std::fs::read(at.join("sound.weights")).unwrap();
    let middle = bytes.len() - 200;
    bytes[middle] ^= 1;
    std::fs::write(at.join("model.weights"), bytes).unwrap();
    folder
}

#[test]
fn no_verb_passes_damage_on() {
    let folder = with_damaged_model();
    let at = folder.path();
    for (arguments, output) in [
        (vec!["convert", "model.weights", "out.safetensors", "--allow-loss"], "out.safetensors"),
        (vec!["quantize", "model.weights", "out.mcf", "--method", "q8", "--allow-loss"], "out.mcf"),
        (
            vec![
                "quantize",
                "model.weights",
                "o.mcf",
                "--method",
                "q8",
                "--no-calibrate",
                "--allow-loss",
            ],
            "o.mcf",
        ),
        (
            vec!["metadata", "model.weights", "--set", "license=CC0", "--out", "out.weights"],
            "out.weights",
        ),
        (vec!["embed", "--model", "model.weights", "a text"], "none"),
        (vec!["embed", "--model", "model.weights", "a text", "-o", "out.npy"], "out.npy"),
        (vec!["compare", "--model", "model.weights", "a text", "another"], "none"),
        (vec!["diff", "sound.weights", "model.weights"], "none"),
        (vec!["diff", "sound.weights", "model.weights", "--texts", "default"], "none"),
    ] {
        let done = run(at, &arguments);
        let said = err(&done);
        assert_eq!(done.status.code(), Some(3), "{arguments:?}: {said}");
        assert_eq!(out(&done), "", "{arguments:?}");
        assert!(said.contains("EMBD-08") && said.contains("--allow-damage"), "{said}");
        assert!(!at.join(output).exists(), "{arguments:?}");
        let mut allowed = arguments.clone();
        allowed.push("--allow-damage");
        let done = run(at, &allowed);
        let expected = if arguments[0] == "diff" { 1 } else { 0 };
        assert_eq!(done.status.code(), Some(expected), "{allowed:?}: {}", err(&done));
    }
    // The journal of vectors that were never given out is not left behind.
    let left =
        std::fs::read_dir(at).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap());
    let left: Vec<_> = left.filter(|n| n.contains("partial") || n.starts_with('.')).collect();
    assert_eq!(left, [""; 0]);
}

#[test]
fn differences_beside_the_tensors_count() {
    let folder = folder_with_model();
    let at = folder.path();
    ok(at, &["convert", "model", "a.safetensors"]);
    ok(at, &["convert", "model", "b.safetensors", "--set", "license=CC0"]);
    let same = ok(at, &["diff", "a.safetensors", "a.safetensors"]);
    assert!(same.contains("tensors, ") && same.contains("the vocabulary"), "{same}");
    assert!(same.trim_end().ends_with("are the same"), "{same}");
    let done = run(at, &["diff", "a.safetensors", "b.safetensors"]);
    assert_eq!(done.status.code(), Some(1));
    assert!(out(&done).contains("license") && out(&done).contains("CC0"), "{}", out(&done));
    let narrowed = ok(at, &["diff", "a.safetensors", "b.safetensors", "--tensors-only"]);
    assert!(!narrowed.contains("metadata"), "{narrowed}");
    // A model directory whose configuration or tokenizer is another one.
    for name in ["config.json", "tokenizer.json", "vocab.txt"] {
        let (from, to) = (at.join("model"), at.join("other"));
        let _ = std::fs::remove_dir_all(&to);
        std::fs::create_dir(&to).unwrap();
        for file in std::fs::read_dir(&from).unwrap() {
            let file = file.unwrap();
            if file.file_type().unwrap().is_file() {
                std::fs::copy(file.path(), to.join(file.file_name())).unwrap();
            }
        }
        let Ok(text) = std::fs::read_to_string(to.join(name)) else { continue };
        std::fs::write(to.join(name), text + " \n").unwrap();
        let done = run(at, &["diff", "model", "other"]);
        assert_eq!(done.status.code(), Some(1), "{name}: {}{}", out(&done), err(&done));
    }
    let json = run(at, &["diff", "a.safetensors", "b.safetensors", "--json"]);
    let json: Json = serde_json::from_str(&out(&json)).unwrap();
    assert_eq!(json["same"], false);
    assert_eq!(json["contents"][0]["what"], "metadata \"license\"");
    assert_eq!(json["contents"][0]["first"], Json::Null);
    assert!(json["compared"]["tensors"].as_u64().unwrap() > 1);
}

/// Complex numbers are shown with both parts, and have no statistics.
#[test]
fn complex_numbers_are_not_their_real_parts() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let header = "{'descr': '<c8', 'fortran_order': False, 'shape': (2,), }";
    let mut file = b"\x93NUMPY\x01\x00\x76\x00".to_vec();
    file.extend(format!("{header:<117}\n").bytes());
    file.extend([1f32, f32::NAN, 0.0, -4.0].iter().flat_map(|v| v.to_le_bytes()));
    std::fs::write(at.join("c.npy"), file).unwrap();
    let shown = ok(at, &["inspect", "c.npy", "--stats", "--values"]);
    assert!(shown.contains("1+NaNi, 0-4i") && shown.contains("no statistics"), "{shown}");
    let json: Json =
        serde_json::from_str(&ok(at, &["inspect", "c.npy", "--values", "--json"])).unwrap();
    assert_eq!(json["tensors"][0]["first"], serde_json::json!(["1+NaNi", "0-4i"]));
    assert!(ok(at, &["verify", "c.npy"]).contains("1+NaNi at index 0"));
}

#[test]
fn models_are_compared_by_their_vectors() {
    let folder = folder_with_model();
    let at = folder.path();
    ok(at, &["convert", "model", "same.safetensors"]);
    ok(at, &["quantize", "model", "small.mcf", "--method", "q4", "--allow-loss"]);
    let same = ok(at, &["diff", "model", "same.safetensors", "--texts", "default"]);
    assert!(same.contains("the same: vectors of 98 texts"), "{same}");
    let done = run(at, &["diff", "model", "small.mcf", "--texts", "default", "--json"]);
    assert_eq!(done.status.code(), Some(1), "{}", err(&done));
    let json: Json = serde_json::from_str(&out(&done)).unwrap();
    let figure = |name: &str| json[name].as_f64().unwrap();
    assert!(figure("worst_cosine") <= figure("mean_cosine") && figure("mean_cosine") < 1.0);
    assert!(figure("neighbours_kept") <= 1.0 && figure("nearest_changed") <= 98.0);
    std::fs::write(at.join("texts.txt"), "one text\nanother text\nand a third\n").unwrap();
    let some = ok(at, &["diff", "model", "model", "--texts", "texts.txt"]);
    assert!(some.contains("vectors of 3 texts"), "{some}");
}
