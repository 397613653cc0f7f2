//! Failures with `--json`: one object on standard output, its members, and the exit code.

mod common;

use common::{err, out};
use serde_json::{Value as Json, json};
use std::path::Path;

fn run(folder: &Path, arguments: &[&str]) -> (Option<i32>, String, String) {
    let output = common::run(folder, arguments);
    (output.status.code(), out(&output), err(&output))
}

fn samples() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let (code, _, error) = run(folder.path(), &["quickstart", ".", "--offline"]);
    assert_eq!(code, Some(0), "{error}");
    std::fs::write(folder.path().join("junk.npy"), "\u{93}NUMPY but not").unwrap();
    std::fs::write(folder.path().join("junk"), [0, 159, 146, 150]).unwrap();
    folder
}

/// The exit code and the error of a command that printed nothing else.
fn failure(folder: &Path, arguments: &[&str]) -> (i32, Json) {
    let (code, printed, _) = run(folder, arguments);
    assert_eq!(printed.lines().count(), 1, "{arguments:?} printed {printed:?}");
    let object: Json = serde_json::from_str(&printed).expect("JSON");
    assert_eq!(object.as_object().unwrap().len(), 1, "{arguments:?}");
    (code.unwrap(), object["error"].clone())
}

#[test]
fn each_kind_has_its_exit_code_and_members() {
    let folder = samples();
    let at = folder.path();
    let is = |arguments: &[&str], code: i32, kind: &str, members: Json| {
        let (found, error) = failure(at, arguments);
        assert_eq!((found, &error["kind"]), (code, &kind.into()), "{arguments:?}: {error}");
        for (name, value) in members.as_object().unwrap() {
            assert_eq!(error[name], *value, "{arguments:?}: {error}");
        }
        assert!(error["message"].as_str().is_some_and(|m| !m.is_empty()), "{error}");
    };
    is(&["inspect", "none.npy", "--json"], 4, "not-found", json!({"file": "none.npy"}));
    is(
        &["embed", "--model", "no/model", "a", "--json"],
        4,
        "not-found",
        json!({"field": "no/model"}),
    );
    is(&["inspect", "junk", "--json"], 3, "unrecognised", json!({"file": "junk"}));
    is(
        &["diff", "damaged.weights", "junk.npy", "--json"],
        3,
        "malformed",
        json!({"file": "junk.npy"}),
    );
    is(
        &["convert", "tiny.weights", "tiny.oinf", "--json"],
        2,
        "refused",
        json!({"file": "tiny.oinf", "field": "overwrite", "hint": "--force replaces it"}),
    );
    is(
        &["convert", "words.fifu", "new.vec", "--json"],
        2,
        "refused",
        json!({"field": "escape", "start": null, "losses": null}),
    );
    let (code, error) = failure(at, &["convert", "texts.i8bin", "new.npy", "--json"]);
    assert_eq!((code, &error["kind"]), (2, &"loss".into()), "{error}");
    assert_eq!(error["losses"].as_array().unwrap().len(), 2, "{error}");
    let message = "this would be lost: metadata \"embedding\": the format has no place for it; \
                   24 row records: the format has none";
    assert_eq!(error["message"], message);
    let (_, error) = failure(at, &["convert", "tiny.weights", "new.fifu", "--json"]);
    let more = error["losses"].as_array().unwrap().len() - 3;
    assert!(error["message"].as_str().unwrap().ends_with(&format!("; and {more} more")), "{error}");
    assert!(!at.join("new.npy").exists() && !at.join("new.vec").exists());
}

/// Whatever the verb, a file that is not there is the same object and the same code.
#[test]
fn every_verb_that_prints_json_fails_in_json() {
    let folder = samples();
    let verbs: [&[&str]; 9] = [
        &["inspect", "none"],
        &["convert", "none", "new.npy"],
        &["quantize", "none", "new.mcf", "--method", "k4"],
        &["diff", "none", "tiny.weights"],
        &["metadata", "none"],
        &["lookup", "none", "word"],
        &["similar", "none", "word"],
        &["evaluate", "none", "questions.txt"],
        &["embed", "--model", "hf-model", "--input", "none"],
    ];
    for verb in verbs {
        let arguments: Vec<_> = verb.iter().copied().chain(["--json"]).collect();
        let (code, error) = failure(folder.path(), &arguments);
        let expected = (4, &"not-found".into(), &"none".into());
        assert_eq!((code, &error["kind"], &error["file"]), expected, "{verb:?}: {error}");
    }
}
