//! Files out of descriptions.

mod common;

use common::{err, fed, run};
use std::path::Path;

const MODEL: &str = r#"{
    "sizevars": {"D": 2},
    "metadata": {"mode": "relu", "rate": {"type": "f16", "value": 0.5}, "flags": {"type": "bitset", "value": [true, false]}},
    "tensors": {"w": {"type": "f32", "values": [[1, 2], [3, 4]]}, "y": {"type": "i16", "shape": [3]}}
}"#;

fn inspected(folder: &Path, file: &str) -> serde_json::Value {
    let output = run(folder, &["inspect", file, "--json", "--values"]);
    assert!(output.status.success(), "{}", err(&output));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn a_description_becomes_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    std::fs::write(at.join("model.json"), MODEL).unwrap();
    let made = run(at, &["new", "model.oinf", "--data", "model.json"]);
    assert!(made.status.success(), "{}", err(&made));
    let file = inspected(at, "model.oinf");
    assert_eq!(file["format"], "oinf");
    assert_eq!(file["sizevars"], serde_json::json!({"D": 2}));
    assert_eq!(file["metadata"]["mode"], "relu");
    assert_eq!(file["metadata"]["rate"], 0.5);
    assert_eq!(file["tensors"][0]["first"], serde_json::json!([1.0, 2.0, 3.0, 4.0]));
    assert_eq!(file["tensors"][1]["bytes"], serde_json::Value::Null);
    let whole = run(at, &["verify", "model.oinf"]);
    assert!(whole.status.success(), "{}", err(&whole));
    // What is there stays, and what a format can't hold is said first.
    assert_eq!(run(at, &["new", "model.oinf", "--data", "model.json"]).status.code(), Some(2));
    let refused = run(at, &["new", "model.npy", "--data", "model.json"]);
    assert_eq!(refused.status.code(), Some(2), "{}", err(&refused));
    assert!(!at.join("model.npy").exists());
}

#[test]
fn rows_come_with_words_or_records_and_from_a_pipe() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    for (name, json) in [
        ("words.fifu", r#"{"tensors": {"m": {"values": [[1, 0], [0, 1]]}}, "words": ["a", "b"]}"#),
        (
            "rows.f32bin",
            r#"{"tensors": {"m": {"values": [[1, 0], [0, 1]]}}, "records": [{"n": 1}, {"n": 2}]}"#,
        ),
    ] {
        let output = fed(at, &["new", name, "-d", "-"], json);
        assert!(output.status.success(), "{name}: {}", err(&output));
    }
    assert_eq!(inspected(at, "words.fifu")["vocabulary"]["size"], 2);
    assert_eq!(inspected(at, "rows.f32bin")["rows"]["records"], true);
}

#[test]
fn what_is_no_description_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    for (json, code, said) in [
        ("hello", 3, "not a JSON object"),
        (r#"{"tensor": {}}"#, 3, "tensors"),
        (r#"{"tensors": {"w": {"type": "i8", "values": [300]}}}"#, 2, "300"),
    ] {
        std::fs::write(at.join("bad.json"), json).unwrap();
        let output = run(at, &["new", "out.oinf", "--data", "bad.json"]);
        assert_eq!(output.status.code(), Some(code), "{json}: {}", err(&output));
        assert!(err(&output).contains(said), "{json}: {}", err(&output));
        assert!(!at.join("out.oinf").exists());
    }
    assert_eq!(run(at, &["new", "out.oinf", "--data", "absent.json"]).status.code(), Some(4));
}
