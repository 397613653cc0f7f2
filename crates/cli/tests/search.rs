//! `search`, `neighbours`, `recall` and rows in `similar`, as a user meets them.

mod common;

use common::{assert_on_the_page, err, fed, folder_with_model as samples, out, run};
use serde_json::Value as Json;
use std::path::Path;

const NOTES: &str = "a full truck\nthe lorry is empty\n\nking and queen\nthe lorry is empty\n";

fn ok(at: &Path, arguments: &[&str]) -> String {
    let output = run(at, arguments);
    assert!(output.status.success(), "{arguments:?}: {}", err(&output));
    out(&output)
}

fn lines(text: &str) -> Vec<Json> {
    text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

fn refused(at: &Path, arguments: &[&str]) -> (i32, String) {
    let output = run(at, arguments);
    assert!(out(&output).is_empty(), "{arguments:?}: {}", out(&output));
    (output.status.code().unwrap(), err(&output))
}

/// Notes that were embedded, in a folder with the model.
fn notes() -> tempfile::TempDir {
    let folder = samples();
    std::fs::write(folder.path().join("notes.txt"), NOTES).unwrap();
    ok(folder.path(), &["embed", "-m", "model", "-i", "notes.txt", "-o", "notes.i8bin", "-q"]);
    folder
}

#[test]
fn a_file_of_vectors_is_asked_with_a_text() {
    let folder = notes();
    let at = folder.path();
    let found = ok(at, &["search", "notes.i8bin", "the lorry is empty", "--json"]);
    let answer = &lines(&found)[0];
    assert_on_the_page(answer, "search");
    assert_eq!(answer["query"], "the lorry is empty");
    let rows: Vec<_> = answer["hits"].as_array().unwrap().iter().map(|h| &h["row"]).collect();
    // All five: duplicates and the blank line are rows. Equal ones are in order.
    assert_eq!(rows.len(), 5);
    assert_eq!((rows[0], rows[1]), (&Json::from(1), &Json::from(4)));
    assert_eq!(answer["hits"][0]["record"]["text"], "the lorry is empty");
    assert!(answer["hits"][0]["score"].as_f64().unwrap() > 0.99);
    let text = ok(at, &["search", "notes.i8bin", "the lorry is empty", "-k", "1"]);
    assert!(text.starts_with("the lorry is empty\n  0.99") || text.contains("  1.0"), "{text}");
    // The same with the model named, over lines, from the rows themselves and from a moved folder.
    let named = ["search", "notes.i8bin", "-m", "model", "the lorry is empty", "--json"];
    assert_eq!(ok(at, &named), found);
    let asked = fed(at, &["search", "notes.i8bin", "--json"], "the lorry is empty\n");
    assert_eq!(out(&asked), found);
    let like = lines(&ok(at, &["search", "notes.i8bin", "--like", "1", "-k", "1", "--json"]));
    assert_eq!(like[0]["hits"][0]["row"], 4);
    std::fs::rename(at.join("model"), at.join("moved")).unwrap();
    let (code, error) = refused(at, &["search", "notes.i8bin", "x"]);
    assert!(code == 4 && error.contains("is not on this machine") && error.contains("--model"));
    ok(at, &["search", "notes.i8bin", "x", "-m", "moved"]);
}

#[test]
fn records_are_shown_and_filter_rows() {
    let folder = samples();
    let at = folder.path();
    let table = "id,title,set\n17,a full truck,A\n18,the lorry is empty,B\n19,king and queen,A\n";
    std::fs::write(at.join("t.csv"), table).unwrap();
    ok(at, &["embed", "-m", "model", "-i", "t.csv", "--column", "title", "-o", "t.i8bin", "-q"]);
    let arguments = ["search", "t.i8bin", "a full lorry", "--filter", "set=A", "--show", "id,set"];
    let found = lines(&ok(at, &[&arguments[..], &["--json"]].concat()));
    let hits = found[0]["hits"].as_array().unwrap();
    assert_eq!(hits.len(), 2);
    assert!(hits.iter().all(|hit| hit["record"]["set"] == "A"));
    assert_eq!(hits[0]["record"].as_object().unwrap().len(), 2);
    let text = ok(at, &arguments);
    assert!(text.contains("17") && !text.contains("truck"), "{text}");
    let similar = ok(at, &["similar", "t.i8bin", "id=18", "-k", "2", "--json"]);
    let similar = &lines(&similar)[0];
    assert_on_the_page(similar, "similar");
    assert_eq!(similar["hits"].as_array().unwrap().len(), 2);
    assert!(similar["hits"][0]["record"]["title"].is_string());
    // Records of others, for a file that has none.
    ok(at, &["embed", "-m", "model", "-i", "t.csv", "--column", "title", "-o", "t.npy", "-q"]);
    let with = ["search", "t.npy", "-m", "model", "king and queen", "--records", "t.csv", "--json"];
    assert_eq!(lines(&ok(at, &with))[0]["hits"][0]["record"]["id"], "19");
    for (bad, code, expected) in [
        (&["--filter", "colour=red"][..], 2, "no record has a field \"colour\""),
        (&["--show", "colour"], 2, "no record has a field \"colour\""),
        (&["--filter", "set"], 2, "a field and a value"),
        (&["-k", "4"], 2, "4 hits were asked for, and there are 3 rows"),
        (&["-k", "0"], 2, "at least 1"),
        (&["--tensor", "other"], 4, "there is no tensor \"other\""),
    ] {
        let arguments = [&["search", "t.i8bin", "king"][..], bad].concat();
        let (found, error) = refused(at, &arguments);
        assert_eq!(found, code, "{bad:?}: {error}");
        assert!(error.contains(expected), "{bad:?}: {error}");
    }
    std::fs::write(at.join("two.csv"), "id\n1\n2\n").unwrap();
    let (code, error) = refused(at, &["search", "t.npy", "--like", "0", "--records", "two.csv"]);
    assert!(code == 2 && error.contains("2 records for 3 rows"), "{error}");
    // Without words and without a model there is nothing to ask with.
    let (code, error) = refused(at, &["search", "t.npy", "king"]);
    assert!(code == 2 && error.contains("does not say which model"), "{error}");
}

#[test]
fn another_model_is_refused() {
    let folder = notes();
    let at = folder.path();
    // The same model with other weights.
    let other = at.join("other");
    weighbridge::samples::write_encoder(&other).unwrap();
    let weights = other.join("model.safetensors");
    let mut bytes = std::fs::read(&weights).unwrap();
    let end = bytes.len();
    for chunk in bytes[end - 60_000..].chunks_exact_mut(4) {
        let value = f32::from_le_bytes(chunk.try_into().unwrap());
        chunk.copy_from_slice(&(-value * 0.3).to_le_bytes());
    }
    std::fs::write(&weights, bytes).unwrap();
    let (code, error) = refused(at, &["search", "notes.i8bin", "x", "-m", "other"]);
    assert!(code == 2 && error.contains("can't be asked for them"), "{error}");
    // Rounded weights are near enough.
    ok(at, &["quantize", "model", "q8.mcf", "--method", "q8", "--no-calibrate", "-q"]);
    ok(at, &["search", "notes.i8bin", "x", "-m", "q8.mcf"]);
    // What a file says of its model may be nonsense.
    let meta = std::fs::read_to_string(at.join("meta.json")).unwrap();
    let broken = meta.replace("\"dimensions\":", "\"dimension\":");
    assert_ne!(meta, broken);
    std::fs::write(at.join("meta.json"), broken).unwrap();
    let (code, error) = refused(at, &["search", "notes.i8bin", "x"]);
    assert!(code == 2 && error.contains("makes no sense"), "{error}");
    ok(at, &["search", "notes.i8bin", "x", "-m", "model"]);
}

#[test]
fn words_and_vectors_ask_too() {
    let folder = notes();
    let at = folder.path();
    ok(at, &["quickstart", "q", "--offline", "-q"]);
    let found = lines(&ok(at, &["search", "q/words.fifu", "truck", "-k", "2", "--json"]));
    assert_eq!(found[0]["hits"][0]["word"], "lorry");
    let output = run(at, &["search", "q/words.vec", "truck", "kohlrabi", "-k", "1"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(out(&output).contains("lorry") && err(&output).contains("kohlrabi"));
    // A vector for each row of a file; the answer of each is itself.
    ok(at, &["embed", "-m", "model", "-i", "notes.txt", "-o", "asked.npy", "-q"]);
    let arguments = ["search", "notes.i8bin", "--queries", "asked.npy", "-k", "1"];
    let found = lines(&ok(at, &[&arguments[..], &["--json"]].concat()));
    let rows: Vec<_> = found.iter().map(|f| f["hits"][0]["row"].as_u64().unwrap()).collect();
    assert_eq!(rows, [0, 1, 2, 3, 1]);
    assert_eq!(found[3]["query"], 3);
    ok(at, &[&arguments[..], &["-o", "found.jsonl"]].concat());
    let written = std::fs::read_to_string(at.join("found.jsonl")).unwrap();
    assert_eq!(lines(&written), found);
    ok(at, &[&arguments[..], &["-o", "found.safetensors"]].concat());
    let tensors = weighbridge::open(at.join("found.safetensors")).unwrap();
    let rows = tensors.tensor("rows").unwrap().values_f32(0, 5).unwrap();
    assert_eq!(rows, [0.0, 1.0, 2.0, 3.0, 1.0]);
    let (code, _) = refused(at, &[&arguments[..], &["-o", "found.jsonl"]].concat());
    assert_eq!(code, 2);
    let (code, error) = refused(at, &["search", "q/words.fifu", "--queries", "asked.npy"]);
    assert!(code == 2 && error.contains("values, and the rows have 10"), "{error}");
    for metric in ["dot", "l2", "cosine"] {
        ok(at, &["search", "notes.i8bin", "truck", "--metric", metric, "--threads", "1"]);
    }
    let rescored = ["search", "notes.i8bin", "--rescore", "asked.npy", "--like", "0", "-k", "2"];
    ok(at, &rescored);
}

#[test]
fn neighbours_groups_and_recall_are_told() {
    let folder = notes();
    let at = folder.path();
    let groups = lines(&ok(at, &["neighbours", "notes.i8bin", "--threshold", "0.999", "--json"]));
    assert_eq!(groups.len(), 1);
    assert_eq!(groups[0]["rows"], serde_json::json!([1, 4]));
    assert_eq!(groups[0]["records"][1]["text"], "the lorry is empty");
    assert_on_the_page(&groups[0], "neighbours");
    ok(at, &["neighbours", "notes.i8bin", "--threshold", "0.999", "-o", "groups.jsonl"]);
    assert_eq!(std::fs::read_to_string(at.join("groups.jsonl")).unwrap().lines().count(), 1);
    ok(at, &["neighbours", "notes.i8bin", "-o", "near.jsonl"]);
    let near = lines(&std::fs::read_to_string(at.join("near.jsonl")).unwrap());
    assert_eq!(near.len(), 5);
    assert!(near.iter().all(|line| line["hits"].as_array().unwrap().len() == 4));
    ok(at, &["embed", "-m", "model", "-i", "notes.txt", "-o", "exact.npy", "-q"]);
    let recall = ok(at, &["recall", "exact.npy", "notes.i8bin", "-k", "2", "--json"]);
    let recall: Json = serde_json::from_str(&recall).unwrap();
    assert_on_the_page(&recall, "recall");
    assert_eq!((&recall["k"], &recall["queries"]), (&Json::from(2), &Json::from(5)));
    let converted = ["convert", "exact.npy", "c.i8bin", "--recall", "--allow-loss", "--json"];
    let converted: Json = serde_json::from_str(&ok(at, &converted)).unwrap();
    assert_eq!(converted["recall"]["k"], 4);
    let quantized = ["quantize", "exact.npy", "d.i8bin", "--method", "i8", "--json"];
    let quantized: Json = serde_json::from_str(&ok(at, &quantized)).unwrap();
    assert!(quantized["recall_at_10"].is_number(), "{quantized}");
    let (code, error) = refused(at, &["recall", "exact.npy", "model"]);
    assert!(code != 0, "{error}");
}

#[test]
fn prompts_stand_in_front_and_are_said() {
    let folder = samples();
    let at = folder.path();
    let prompts = r#"{"prompts": {"query": "the lorry ", "passage": "a truck "}}"#;
    std::fs::write(at.join("model/config_sentence_transformers.json"), prompts).unwrap();
    let vectors = |arguments: &[&str]| {
        let output = run(at, &[&["embed", "-m", "model", "--json"][..], arguments].concat());
        assert!(output.status.success(), "{}", err(&output));
        (lines(&out(&output))[0]["vector"].clone(), err(&output))
    };
    let (plain, said) = vectors(&["a truck is full", "--prompt", ""]);
    assert!(!said.contains("stands in front"), "{said}");
    let (prompted, said) = vectors(&["is full"]);
    assert!(said.contains("\"a truck \" stands in front of every text"), "{said}");
    assert_eq!(plain, prompted);
    assert_eq!(vectors(&["is full", "--prompt", "passage"]).0, plain);
    assert_eq!(vectors(&["is full", "--prompt", "a truck "]).0, plain);
    assert_ne!(vectors(&["is full", "--prompt", "query"]).0, plain);
    // Rows with one prompt are asked with the other.
    std::fs::write(at.join("notes.txt"), "is full\nis empty\n").unwrap();
    ok(at, &["embed", "-m", "model", "-i", "notes.txt", "-o", "n.f32bin", "-q"]);
    let meta = std::fs::read_to_string(at.join("meta.json")).unwrap();
    assert!(meta.contains(r#""prompt":{"name":"passage","text":"a truck "}"#), "{meta}");
    let asked = run(at, &["search", "n.f32bin", "is full", "--json"]);
    assert!(err(&asked).contains("\"the lorry \" stands in front of every text"));
    let own = lines(&ok(at, &["search", "n.f32bin", "is full", "--prompt", "passage", "--json"]));
    assert!(own[0]["hits"][0]["score"].as_f64().unwrap() > 0.99999);
    assert_ne!(lines(&out(&asked))[0]["hits"][0]["score"], own[0]["hits"][0]["score"]);
    // A run that is gone on with has the same prompt.
    let (code, error) = refused(at, &["embed", "-m", "model", "-i", "notes.txt", "-o", "n.f32bin"]);
    assert!(code == 2 && error.contains("--force"), "{error}");
}
