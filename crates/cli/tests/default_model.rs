//! The model that comes with the program: texts are embedded and found on a machine that has nothing.

#![cfg(feature = "default-model")]

mod common;

use common::{err, out, program};
use std::path::Path;
use std::process::Output;
use weighbridge::models::BUILT_IN;

/// As on a machine without any cache, and without a home.
fn fresh(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = program(folder, arguments);
    for name in ["HOME", "XDG_CACHE_HOME", "WEIGHBRIDGE_CACHE", "HF_HOME", "HF_HUB_CACHE"] {
        command.env_remove(name);
    }
    command.env("HOME", folder.join("nowhere")).env("HF_HUB_OFFLINE", "1");
    command.output().unwrap()
}

#[test]
fn texts_are_found_without_any_download() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let texts = "Bread rises because yeast turns sugar into gas.\n\
                 The locomotive was built in 1911 and still runs on Sundays.\n\
                 The surgeon replaced the worn joint with titanium.\n\
                 Voters will choose a new mayor in spring.\n";
    std::fs::write(at.join("texts.txt"), texts).unwrap();
    let made = fresh(at, &["embed", "-i", "texts.txt", "-o", "notes.i8bin"]);
    assert!(made.status.success(), "{}", err(&made));
    assert_eq!(err(&made).matches(BUILT_IN).count(), 1, "{}", err(&made));
    for (question, word) in [
        ("How do I bake a loaf?", "yeast"),
        ("trains and railways", "locomotive"),
        ("an operation in hospital", "surgeon"),
        ("an election", "mayor"),
    ] {
        let found = fresh(at, &["search", "notes.i8bin", question, "-k", "1"]);
        assert!(found.status.success(), "{}", err(&found));
        assert!(out(&found).contains(word), "{question}: {}", out(&found));
        assert_eq!(err(&found).matches(BUILT_IN).count(), 1, "{}", err(&found));
    }
    // A text that has none of its tokens has no direction, which rows of unit length need.
    let unknown = fresh(at, &["embed", "🍕", "-o", "unknown.i8bin"]);
    assert_eq!(unknown.status.code(), Some(2), "{}", err(&unknown));
    let said = err(&unknown);
    assert!(said.contains("text 1, \"🍕\", has a vector that is all zeros"), "{said}");
    assert!(said.contains("--skip-bad leaves such lines out"), "{said}");
    let kept = fresh(at, &["embed", "🍕", "-o", "unknown.npy"]);
    assert!(kept.status.success(), "{}", err(&kept));
    // The file says it by its name, which another machine finds too.
    let inspected = out(&fresh(at, &["inspect", "notes.i8bin"]));
    assert!(inspected.contains(BUILT_IN), "{inspected}");
}

#[test]
fn texts_without_a_direction_can_be_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    std::fs::write(at.join("texts.txt"), "a truck\n🍕\nbread\n\na truck\n").unwrap();
    let skipping = ["embed", "-i", "texts.txt", "--skip-bad"];
    let made = fresh(at, &[&skipping[..], &["-o", "rows.i8bin"]].concat());
    assert!(made.status.success(), "{}", err(&made));
    let why = "its vector is all zeros: the model knows nothing of it";
    let said = format!("skipped: line 2: {why}\nskipped: line 4: {why}\nskipped: 2 lines\n");
    assert!(err(&made).ends_with(&said), "{}", err(&made));
    assert!(out(&made).contains("3 vectors"), "{}", out(&made));
    let planned = fresh(at, &[&skipping[..], &["-o", "x.i8bin", "--dry-run", "--json"]].concat());
    let planned: serde_json::Value = serde_json::from_str(&out(&planned)).unwrap();
    assert_eq!((&planned["rows"], &planned["skipped"]), (&3.into(), &2.into()));
    // Where zeros can be stored, they are.
    let kept = fresh(at, &[&skipping[..], &["-o", "rows.npy"]].concat());
    assert!(out(&kept).contains("5 vectors"), "{}", out(&kept));
    let given = fresh(at, &["embed", "bread", "🍕", "-o", "given.i8bin", "--skip-bad", "--force"]);
    assert!(err(&given).contains("skipped: text 2: "), "{}", err(&given));
}

#[test]
fn nothing_is_said_where_nobody_wants_to_hear_it() {
    let folder = tempfile::tempdir().unwrap();
    for quiet in ["--quiet", "--json"] {
        let made = fresh(folder.path(), &["embed", "a text", quiet]);
        assert!(made.status.success() && err(&made).is_empty(), "{}", err(&made));
        let line: serde_json::Value = serde_json::from_str(&out(&made)).unwrap();
        assert!(line["vector"].as_array().unwrap().len() > 64);
    }
    let compared = fresh(folder.path(), &["compare", "a dog barks", "the hound is loud", "-q"]);
    let other = fresh(folder.path(), &["compare", "a dog barks", "tax on books", "-q"]);
    let number = |output: &Output| out(output).trim().parse::<f64>().unwrap();
    assert!(number(&compared) > number(&other), "{} {}", out(&compared), out(&other));
    // A cross-encoder is another kind of model.
    let refused = fresh(folder.path(), &["rerank", "a question", "a text"]);
    assert!(!refused.status.success() && err(&refused).contains("--model"), "{}", err(&refused));
}

#[test]
fn it_can_be_named_and_looked_at() {
    let folder = tempfile::tempdir().unwrap();
    for arguments in [
        &["inspect", BUILT_IN][..],
        &["verify", BUILT_IN],
        &["tokenize", "a weighbridge"],
        &["embed", "-m", BUILT_IN, "a text", "--dimensions", "8"],
        &["convert", BUILT_IN, "static.mcf"],
        &["embed", "-m", "static.mcf", "a text"],
    ] {
        let done = fresh(folder.path(), arguments);
        assert!(done.status.success(), "{arguments:?}: {}", err(&done));
    }
    // What lies in the folder under that name wins.
    std::fs::write(folder.path().join(BUILT_IN), "no model").unwrap();
    assert!(!fresh(folder.path(), &["inspect", BUILT_IN]).status.success());
}

/// Four megabytes at most, and what the page beside it says.
#[test]
fn it_is_small_and_says_where_it_is_from() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../weighbridge/default-model");
    let bytes = std::fs::metadata(folder.join("minilm-static.safetensors")).unwrap().len();
    assert!(bytes <= 4_000_000, "{bytes}");
    let page = std::fs::read_to_string(folder.join("README.md")).unwrap();
    assert!(page.contains("Apache") && page.contains("all-MiniLM-L6-v2"));
    assert!(std::fs::read_to_string(folder.join("LICENSE")).unwrap().contains("Apache License"));
}
