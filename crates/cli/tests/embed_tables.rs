//! `embed` with tables, and `--records` of other verbs, as a user meets them.

mod common;

use common::{err, folder_with_model as samples, out};
use serde_json::{Value as Json, json};
use std::path::Path;
use std::process::Output;

fn run(folder: &Path, arguments: &[&str]) -> Output {
    common::run(folder, &[&["embed", "--model", "model"], arguments].concat())
}

fn fed(folder: &Path, arguments: &[&str], text: &str) -> Output {
    common::fed(folder, &[&["embed", "--model", "model"], arguments].concat(), text)
}

fn lines(output: &Output) -> Vec<Json> {
    assert!(output.status.success(), "{}", err(output));
    out(output).lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

/// The members of each line but the vector.
fn records(output: &Output) -> Vec<Json> {
    let mut list = lines(output);
    for line in &mut list {
        let vector = line.as_object_mut().unwrap().shift_remove("vector");
        assert_eq!(vector.unwrap().as_array().unwrap().len(), 32);
    }
    list
}

const NOTES: &str =
    "id,body,price\r\n1,\"a truck, \"\"empty\"\"\r\nor full\",5\r\n2,a lorry,6.5\r\n\r\n3,,\r\n";

#[test]
fn a_column_is_embedded_with_the_others_beside_it() {
    let folder = samples();
    let at = folder.path();
    std::fs::write(at.join("notes.csv"), NOTES).unwrap();
    let note = "note: the column \"body\" holds the texts; --column chooses another\n";
    let own = run(at, &["-i", "notes.csv"]);
    assert_eq!(err(&own), note);
    let named = run(at, &["-i", "notes.csv", "--column", "body"]);
    assert_eq!(err(&named), "");
    assert_eq!(out(&named), out(&own));
    let text = "a truck, \"empty\"\r\nor full";
    let expected = [
        json!({"id": "1", "body": text, "price": "5"}),
        json!({"id": "2", "body": "a lorry", "price": "6.5"}),
        json!({"id": "3", "body": "", "price": ""}),
    ];
    assert_eq!(records(&own), expected);
    let plain = lines(&run(at, &[text, "a lorry", ""]));
    let own = lines(&own);
    assert!((0..3).all(|i| own[i]["vector"] == plain[i]["vector"]));

    let kept = run(at, &["-i", "notes.csv", "--column", "body", "--keep", "price,id"]);
    assert_eq!(records(&kept), expected);
    let kept = run(at, &["-i", "notes.csv", "--column", "body", "--keep", "id"]);
    assert_eq!(records(&kept)[1], json!({"id": "2", "body": "a lorry"}));
    assert!(out(&kept).starts_with("{\"id\": \"1\", \"body\": "), "{}", out(&kept));

    for name in ["v.i8bin", "v.safetensors"] {
        let output = run(at, &["-i", "notes.csv", "--column", "body", "-o", name]);
        assert!(output.status.success(), "{}", err(&output));
        let records = weighbridge::open(at.join(name)).unwrap().records.unwrap();
        let second = "{\"id\": \"2\", \"body\": \"a lorry\", \"price\": \"6.5\"}";
        assert_eq!(records.items().unwrap()[1], second, "{name}");
    }
    let output = run(at, &["-i", "notes.csv", "--column", "body", "-o", "v.npy", "--json"]);
    let report: Json = serde_json::from_str(&out(&output)).unwrap();
    assert_eq!(report["rows"], 3);
    assert_eq!(report["report"]["losses"][0]["what"], "3 row records");
    let dry = ["-i", "notes.csv", "--column", "body", "-o", "w.npy", "--dry-run"];
    assert!(out(&run(at, &dry)).contains("3 vectors of 32 values"));
    let output = run(at, &["-i", "notes.csv", "--lines"]);
    assert_eq!(lines(&output)[0]["text"], "id,body,price");
}

#[test]
fn tables_of_every_kind_are_read() {
    let folder = samples();
    let at = folder.path();
    let expected = [json!({"n": "1", "text": "a; b"}), json!({"n": "2", "text": "c, d"})];
    for (name, text, options) in [
        ("a.tsv", "n\ttext\n1\ta; b\n2\tc, d\n", &[][..]),
        ("a.TAB", "n\ttext\r\n1\ta; b\r\n2\tc, d", &[]),
        ("a.csv", "\u{feff}n;text\n1;\"a; b\"\n2;c, d\n", &[]),
        ("b.csv", "n|text\n1|a; b\n2|c, d\n", &["--column", "text"]),
        ("a.txt", "n,text\n1,a; b\n2,\"c, d\"\n", &["--column", "text"]),
        ("c.csv", "n:text\n1:a; b\n2:c, d\n", &["--delimiter", ":"]),
        ("d.csv", "n\ttext\n1\ta; b\n2\tc, d\n", &["--delimiter", "tab"]),
    ] {
        std::fs::write(at.join(name), text).unwrap();
        let output = run(at, &[&["-i", name], options].concat());
        assert_eq!(records(&output), expected, "{name}: {}", err(&output));
        if !options.is_empty() {
            let arguments = [&["--column", "text"], options].concat();
            let arguments = if options[0] == "--column" { options } else { &arguments };
            assert_eq!(records(&fed(at, arguments, text)), expected, "{name}");
        }
    }
    let bare = fed(at, &["--no-header", "--column", "2"], "1,a\n2,b\n");
    assert_eq!(records(&bare), [json!({"1": "1", "2": "a"}), json!({"1": "2", "2": "b"})]);
    std::fs::write(at.join("bare.csv"), "1,a truck\n2,b\n").unwrap();
    let bare = run(at, &["-i", "bare.csv", "--no-header"]);
    assert!(err(&bare).contains("the column \"2\" holds the texts"), "{}", err(&bare));
    // One column needs no words about it, and is a table all the same.
    std::fs::write(at.join("one.csv"), "sentence\na truck, full\n\"\"\n").unwrap();
    let one = run(at, &["-i", "one.csv"]);
    assert_eq!(records(&one), [json!({"sentence": "a truck, full"}), json!({"sentence": ""})]);
    assert_eq!(err(&one), "");
    // Names are made where there are none.
    let odd = fed(at, &["--column", "text"], ",text,text\n1,a,b\n");
    assert_eq!(records(&odd), [json!({"column_1": "1", "text": "a", "column_3": "b"})]);
    let note = "note: columns without a name of their own are called column_1, column_3\n";
    assert_eq!(err(&odd), note);
}

#[test]
fn what_is_not_clear_is_asked_for() {
    let folder = samples();
    let at = folder.path();
    std::fs::write(at.join("two.csv"), "title,note,n\na truck,it is full,1\nb,,2\n").unwrap();
    let output = run(at, &["-i", "two.csv"]);
    let said = err(&output);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("two.csv: several columns may hold the texts"), "{said}");
    let hint = said.split_whitespace().collect::<Vec<_>>().join(" ");
    let listed = "--column NAME chooses one of \"title\" (such as \"a truck\"), \"note\" (such as \"it is full\"), \"n\" (such as \"1\")";
    assert!(hint.contains(listed), "{hint}");
    let output = run(at, &["-i", "two.csv", "--column", "titel"]);
    let said = err(&output);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(
        said.contains("there is no column \"titel\"") && said.contains("mean title?"),
        "{said}"
    );
    let output = run(at, &["-i", "two.csv", "--column", "title", "--keep", "no"]);
    assert!(err(&output).contains("there is no column \"no\""), "{}", err(&output));
    // A table that nobody announced.
    let output = fed(at, &[], "id,text\n1,a\n2,b\n");
    let said = err(&output);
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert!(said.contains("--column NAME names the one with the texts; --lines"), "{said}");
    for (arguments, expected) in [
        (&["a text", "--column", "x"][..], "cannot be used with"),
        (&["-i", "two.csv", "--column", "x", "--field", "y"], "cannot be used with"),
        (&["-i", "two.csv", "--column", "x", "--lines"], "cannot be used with"),
        (&["-i", "two.csv", "--delimiter", "::"], "one ASCII character is needed"),
        (&["-i", "two.csv", "--delimiter", "\""], "one ASCII character is needed"),
    ] {
        let output = run(at, arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(err(&output).contains(expected), "{arguments:?}: {}", err(&output));
    }
}

#[test]
fn bad_rows_are_placed_and_can_be_left_out() {
    let folder = samples();
    let at = folder.path();
    let bad = b"id,text\n1,a\n2\n3,b,c\n4,caf\xE9\n5,\"x\ny\"\n6,\"open\n7,z\n";
    std::fs::write(at.join("bad.csv"), bad).unwrap();
    let output = run(at, &["-i", "bad.csv", "-o", "bad.npy"]);
    let said = err(&output);
    assert_eq!(output.status.code(), Some(3), "{said}");
    let expected = "bad.csv: line 3, byte 12: expected 2 fields, as in the first row, found 1";
    assert!(said.contains(expected) && said.contains("--skip-bad"), "{said}");
    assert!(!at.join("bad.npy.partial").exists());
    let output = run(at, &["-i", "bad.csv", "--skip-bad"]);
    assert_eq!(records(&output).len(), 2);
    for part in [
        "skipped: line 3: expected 2 fields",
        "skipped: line 4: expected 2 fields, as in the first row, found 3",
        "skipped: line 5: expected UTF-8, found the byte 0xe9",
        "skipped: line 8: expected a closing quote, found the end of the input",
        "skipped: 4 lines",
    ] {
        assert!(err(&output).contains(part), "{part}: {}", err(&output));
    }
    let output = run(at, &["-i", "bad.csv", "--skip-bad", "--lossy"]);
    assert_eq!(records(&output)[1]["text"], "caf\u{fffd}");
    std::fs::write(at.join("latin.csv"), b"id,text\n4,caf\xE9\n").unwrap();
    let said = err(&run(at, &["-i", "latin.csv"]));
    assert!(said.contains("line 2, byte 13: expected UTF-8, found the byte 0xe9"), "{said}");
    assert!(said.contains("--lossy replaces such bytes; --skip-bad"), "{said}");
    std::fs::write(at.join("empty.csv"), "").unwrap();
    assert_eq!(run(at, &["-i", "empty.csv"]).status.code(), Some(3));
    std::fs::write(at.join("none.csv"), "id,text\n").unwrap();
    assert!(lines(&run(at, &["-i", "none.csv"])).is_empty());
    std::fs::write(at.join("packed.csv"), b"\x1f\x8b\x08\0\0\0\0\0\0\x03\x4b\x04\0").unwrap();
    assert!(err(&run(at, &["-i", "packed.csv"])).contains("gzip"));
}

#[test]
fn a_run_with_a_table_goes_on() {
    let folder = samples();
    let at = folder.path();
    let row = |i: usize| format!("{i},\"truck {i},\non the road\"\n");
    let table: String = (0..40).map(row).collect();
    std::fs::write(at.join("in.csv"), format!("id,text\n{table}\"open\n")).unwrap();
    let arguments = ["-i", "in.csv", "-o", "out.i8bin", "--batch", "16"];
    let output = run(at, &arguments);
    assert_eq!(output.status.code(), Some(3));
    assert!(err(&output).contains("32 finished rows are kept"), "{}", err(&output));
    let other = run(at, &[&arguments[..], &["--resume", "--keep", "id"]].concat());
    assert!(other.status.code() == Some(3), "{}", err(&other));
    let other = run(at, &[&arguments[..], &["--resume", "--column", "id"]].concat());
    assert_eq!(other.status.code(), Some(2));
    assert!(err(&other).contains("another input"), "{}", err(&other));
    std::fs::write(at.join("in.csv"), format!("id,text\n{table}")).unwrap();
    let output = run(at, &[&arguments[..], &["--resume", "--json"]].concat());
    let report: Json = serde_json::from_str(&out(&output)).unwrap();
    assert_eq!((&report["rows"], &report["resumed"]), (&json!(40), &json!(32)));
}

#[test]
fn blank_and_repeated_texts_are_rows_of_files() {
    let folder = samples();
    let at = folder.path();
    std::fs::write(at.join("in.txt"), "a truck\n\na truck\n\n").unwrap();
    for name in ["a/v.i8bin", "b/v.f32bin"] {
        std::fs::create_dir(at.join(&name[..1])).unwrap();
        let output = run(at, &["-i", "in.txt", "-o", name]);
        assert!(output.status.success(), "{}", err(&output));
        let container = weighbridge::open(at.join(name)).unwrap();
        let texts = ["a truck", "", "a truck", ""].map(|t| format!("{{\"text\": \"{t}\"}}"));
        assert_eq!(container.records.unwrap().items().unwrap(), texts, "{name}");
        assert!(common::run(at, &["verify", name]).status.success(), "{name}");
    }
    let output = run(at, &["-i", "in.txt", "-o", "v.fifu"]);
    assert!(err(&output).contains("is the same as text 1"), "{}", err(&output));
}

#[test]
fn records_are_attached() {
    let folder = samples();
    let at = folder.path();
    let vectors = run(at, &["a truck", "a lorry", "-o", "v.npy"]);
    assert!(vectors.status.success(), "{}", err(&vectors));
    std::fs::write(at.join("ids.csv"), "id,title\n1,\"a, b\"\n2,\n").unwrap();
    std::fs::write(at.join("ids.json"), "[{\"id\": 1}, {\"id\": 2}]").unwrap();
    std::fs::write(at.join("three.jsonl"), "{}\n{}\n{}\n").unwrap();
    let read = |name: &str| {
        let records = weighbridge::open(at.join(name)).unwrap().records.unwrap();
        records.items().unwrap()[1].to_owned()
    };
    let convert =
        |arguments: &[&str]| common::run(at, &[&["convert", "v.npy"], arguments].concat());
    let output = convert(&["v.f32bin", "--records", "ids.csv"]);
    assert!(output.status.success(), "{}", err(&output));
    assert_eq!(read("v.f32bin"), r#"{"id": "2", "title": ""}"#);
    // Others take their place.
    let again = ["convert", "v.f32bin", "w/w.f32bin", "--records", "ids.json"];
    std::fs::create_dir(at.join("w")).unwrap();
    let output = common::run(at, &again);
    assert!(output.status.success(), "{}", err(&output));
    assert_eq!(read("w/w.f32bin"), "{\"id\": 2}");
    std::fs::create_dir(at.join("q")).unwrap();
    let quantize = ["quantize", "v.npy", "q/v.i8bin", "--method", "i8"];
    let output = common::run(at, &[&quantize[..], &["--records", "ids.csv"]].concat());
    assert!(output.status.success(), "{}", err(&output));
    assert_eq!(read("q/v.i8bin"), r#"{"id": "2", "title": ""}"#);

    let output = convert(&["x.f32bin", "--records", "three.jsonl", "--force"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(err(&output).contains("three.jsonl: 3 records for 2 rows"), "{}", err(&output));
    // What the target has no place for is lost, and that has to be allowed.
    let output = convert(&["x.npy", "--records", "ids.csv"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(err(&output).contains("2 row records"), "{}", err(&output));
    let output = common::run(at, &["convert", "model", "x.mcf", "--records", "ids.csv"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(err(&output).contains("the rows of one matrix"), "{}", err(&output));
    for (name, text, code, expected) in [
        ("bad.csv", "id,t\n1\n", 3, "bad.csv: line 2, byte 5: expected 2 fields"),
        ("bad.jsonl", "{}\n[]\n", 3, "bad.jsonl: line 2, byte 3: an array"),
        ("bad.json", "{}", 3, "no array \"records\""),
        ("bad.txt", "{}", 2, "names end with .csv"),
    ] {
        std::fs::write(at.join(name), text).unwrap();
        let output = convert(&["x.f32bin", "--records", name, "--force"]);
        assert_eq!(output.status.code(), Some(code), "{}", err(&output));
        assert!(err(&output).contains(expected), "{}", err(&output));
    }
    assert_eq!(convert(&["x.f32bin", "--records", "no.csv"]).status.code(), Some(4));
}
