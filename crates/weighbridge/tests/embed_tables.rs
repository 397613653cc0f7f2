//! Columns of tables to files, and texts that are blank or there twice.

mod common;

use common::with;
use std::cell::RefCell;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use weighbridge::embed::{
    self, EmbedFile, EmbedSettings, Embedded, TextOptions, TextRow, Texts, embed_as_they_come,
};
use weighbridge::table::TableOptions;
use weighbridge::{Encoder, Error, Formats, Progress, records, samples};

/// A folder with the small model in it.
fn model() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model");
    samples::write_encoder(&path).unwrap();
    (folder, path)
}

fn column(name: &str, keep: Option<&[&str]>) -> TextOptions {
    let table = with(TableOptions::new(), |table| {
        table.column = Some(name.to_owned());
        table.keep = keep.map(|names| names.iter().map(|n| (*n).to_owned()).collect());
    });
    TextOptions { table: Some(table), ..TextOptions::default() }
}

fn settings(output: &Path, resume: bool) -> EmbedSettings {
    let format = Formats::builtin().target(&output.to_string_lossy(), None).unwrap();
    with(EmbedSettings::new(output, format), |s| (s.window, s.resume) = (8, resume))
}

fn embed(
    encoder: &Encoder,
    mut settings: EmbedSettings,
    input: &str,
    options: &TextOptions,
    stop: bool,
) -> Result<Embedded, Error> {
    let mut texts = Texts::new("in.csv", input.as_bytes(), options);
    texts.check()?;
    settings.form = texts.form();
    let mut file = EmbedFile::begin(encoder, settings)?;
    let done = embed::embed(encoder, texts, 8, &mut file, &mut Progress::none())?;
    if !stop {
        file.finish()?.write(&mut Progress::none())?;
    }
    Ok(done)
}

fn table(rows: usize) -> String {
    let row = |i: usize| format!("{i},\"truck {i},\nof the \"\"town\"\"\",{}\n", "x".repeat(i % 3));
    "id,text,tag\n".to_owned() + &(0..rows).map(row).collect::<String>()
}

#[test]
fn a_column_becomes_vectors_and_rows_become_records() {
    let (folder, model) = model();
    let encoder = Encoder::open(&model).unwrap();
    let texts: Vec<_> = (0..20).map(|i| format!("truck {i},\nof the \"town\"")).collect();
    let expected = encoder.embed_flat(&texts).unwrap();
    for name in ["out.f32bin", "out.safetensors"] {
        let output = folder.path().join(name);
        let done =
            embed(&encoder, settings(&output, false), &table(20), &column("text", None), false);
        assert_eq!(done.unwrap().rows, 20);
        let container = weighbridge::open(&output).unwrap();
        let records = container.records.as_ref().unwrap();
        let record = r#"{"id": "5", "text": "truck 5,\nof the \"town\"", "tag": "xx"}"#;
        assert_eq!(records.items().unwrap()[5], record, "{name}");
        assert_eq!(container.tensors[0].values_f32(0, expected.len()).unwrap(), expected);
    }
    let output = folder.path().join("out.npy");
    let keep = column("text", Some(&["tag"]));
    embed(&encoder, settings(&output, false), &table(3), &keep, true).unwrap();
    let kept = std::fs::read_to_string(folder.path().join("out.npy.partial.records")).unwrap();
    let first = kept.lines().next().unwrap();
    assert_eq!(first, r#"{"text": "truck 0,\nof the \"town\"", "tag": ""}"#);
}

#[test]
fn a_run_goes_on_with_the_same_columns_only() {
    let (folder, model) = model();
    let encoder = Encoder::open(&model).unwrap();
    let output = folder.path().join("out.npy");
    let whole = folder.path().join("whole.npy");
    let text = column("text", None);
    embed(&encoder, settings(&whole, false), &table(30), &text, false).unwrap();
    embed(&encoder, settings(&output, false), &table(20), &text, true).unwrap();
    for (options, expected) in [
        (column("tag", None), "texts in \\\"tag\\\""),
        (column("text", Some(&["id"])), "records of [\\\"id\\\", \\\"text\\\"]"),
        (TextOptions { lines: true, ..TextOptions::default() }, "plain text"),
    ] {
        let error = embed(&encoder, settings(&output, true), &table(20), &options, false);
        let said = error.unwrap_err().to_string();
        assert!(said.contains("another input: \"a table with texts in"), "{said}");
        assert!(said.contains(expected), "{said}");
    }
    let changed = table(30).replace("4,\"truck 4", "4,\"lorry 4");
    let error = embed(&encoder, settings(&output, true), &changed, &text, false).unwrap_err();
    assert!(error.to_string().contains("row 5 of"), "{error}");
    let done = embed(&encoder, settings(&output, true), &table(30), &text, false).unwrap();
    assert_eq!((done.rows, done.resumed), (30, 16));
    assert_eq!(std::fs::read(&output).unwrap(), std::fs::read(&whole).unwrap());
}

/// Pieces of a stream, each of which is asked for; what happens is written down.
struct Pieces(std::vec::IntoIter<&'static str>, Rc<RefCell<Vec<String>>>);

impl Read for Pieces {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let Some(piece) = self.0.next() else { return Ok(0) };
        self.1.borrow_mut().push(format!("read {piece:?}"));
        buffer[..piece.len()].copy_from_slice(piece.as_bytes());
        Ok(piece.len())
    }
}

#[test]
fn rows_of_a_stream_are_answered_as_they_come() {
    let (_folder, model) = model();
    let encoder = Encoder::open(&model).unwrap();
    let events = Rc::new(RefCell::new(Vec::new()));
    let pieces = vec!["id,te", "xt\n1,a\n2,b\n3,", "\"c\n", "d\"\n4,e\n", "5,f"];
    let input = BufReader::new(Pieces(pieces.into_iter(), events.clone()));
    let mut texts = Texts::new("standard input", input, &column("text", None));
    let mut sink = |rows: &[TextRow], _: &[f32]| {
        let texts = rows.iter().map(|row| row.text.clone()).collect::<Vec<_>>();
        events.borrow_mut().push(format!("rows {}", texts.join("|")));
        Ok(())
    };
    embed_as_they_come(&encoder, &mut texts, 64, &mut sink, &mut Progress::none()).unwrap();
    let expected = [
        "read \"id,te\"",
        "read \"xt\\n1,a\\n2,b\\n3,\"",
        "rows a|b",
        "read \"\\\"c\\n\"",
        "read \"d\\\"\\n4,e\\n\"",
        "rows c\nd|e",
        "read \"5,f\"",
        "rows f",
    ];
    assert_eq!(*events.borrow(), expected);
}

/// Formats of rows have a row for every line, whatever stands on it.
#[test]
fn blank_and_repeated_texts_are_rows() {
    let (folder, model) = model();
    let encoder = Encoder::open(&model).unwrap();
    let plain = "a truck\n\na truck\n  \n\na lorry\n";
    let lines = TextOptions::default();
    for name in ["out.i8bin", "out.f32bin", "out.npy", "out.jsonl"] {
        let output = folder.path().join(name);
        let done = embed(&encoder, settings(&output, false), plain, &lines, false).unwrap();
        assert_eq!(done.rows, 6, "{name}");
        let _ = std::fs::rename(folder.path().join("meta.json"), folder.path().join("kept.json"));
        if name.ends_with("8bin") || name.ends_with("32bin") {
            std::fs::rename(folder.path().join("kept.json"), folder.path().join("meta.json"))
                .unwrap();
            let container = weighbridge::open(&output).unwrap();
            let texts = ["a truck", "", "a truck", "  ", "", "a lorry"];
            let expected = texts.map(|text| format!("{{\"text\": \"{text}\"}}"));
            assert_eq!(container.records.as_ref().unwrap().items().unwrap(), expected, "{name}");
            let matrix = &container.tensors[0];
            let values = matrix.values_f32(0, 6 * 32).unwrap();
            assert_eq!(values[..32], values[64..96]);
            assert_eq!(values[32..64], values[96..128]);
            assert!(values.iter().all(|v| v.is_finite()));
        }
        for file in [output, folder.path().join("meta.json"), folder.path().join("kept.json")] {
            let _ = std::fs::remove_file(file);
        }
    }
    // Words are there once.
    for name in ["out.fifu", "out.w2v"] {
        let output = folder.path().join(name);
        let Ok(format) = Formats::builtin().target(&output.to_string_lossy(), None) else {
            continue;
        };
        assert!(format.info().holds.words_only(), "{name}");
        let error = embed(&encoder, settings(&output, false), plain, &lines, false).unwrap_err();
        assert!(error.to_string().contains("is the same as text 1"), "{name}: {error}");
    }
    // A blank field of a table is a row, and a blank line is none.
    let output = folder.path().join("out.i8bin");
    let text = "n,text\n1,\n\n2,a truck\n3,a truck\n4,\"\"\n";
    embed(&encoder, settings(&output, false), text, &column("text", None), false).unwrap();
    let container = weighbridge::open(&output).unwrap();
    assert_eq!(
        container.records.as_ref().unwrap().items().unwrap()[3],
        r#"{"n": "4", "text": ""}"#
    );
}

#[test]
fn records_of_files_go_with_the_rows() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ids.csv");
    std::fs::write(&path, "id,title\n1,\"a, b\"\n2,\n").unwrap();
    let vectors = vec![1.0, 0.0, 0.6, 0.8];
    let mut rows = weighbridge::Container::builder().rows(2, vectors).build().unwrap();
    let found = records::read(&path).unwrap();
    records::attach(&mut rows, found, "ids.csv").unwrap();
    for name in ["out.i8bin", "out.f32bin", "out.jsonl"] {
        let (output, at) = (folder.path().join(name).join(name), folder.path().join(name));
        std::fs::create_dir(&at).unwrap();
        let format = Formats::builtin().target(name, None).unwrap();
        let plan = format.plan(&rows, &weighbridge::Options::default()).unwrap();
        plan.accept_losses(true).write(output.clone(), &mut Progress::none()).unwrap();
        if name == "out.jsonl" {
            let text = std::fs::read_to_string(&output).unwrap();
            assert!(text.starts_with("{\"id\": \"1\", \"title\": \"a, b\", \"vector\""), "{text}");
            continue;
        }
        let mut again = weighbridge::open(&output).unwrap();
        assert_eq!(
            again.records.as_ref().unwrap().items().unwrap()[1],
            r#"{"id": "2", "title": ""}"#
        );
        // Others take their place.
        let other = records::parse("a.jsonl", &b"{\"n\": 1}\n{\"n\": 2}\n"[..]).unwrap();
        records::attach(&mut again, other, "a.jsonl").unwrap();
        let plan = format.plan(&again, &weighbridge::Options::default()).unwrap();
        let second = at.join(name.replace("out", "second"));
        std::fs::create_dir(at.join("second")).unwrap();
        let second = at.join("second").join(second.file_name().unwrap());
        plan.accept_losses(true).write(second.clone(), &mut Progress::none()).unwrap();
        let found = weighbridge::open(&second).unwrap().records.unwrap();
        assert_eq!(found.items().unwrap(), ["{\"n\": 1}", "{\"n\": 2}"], "{name}");
    }
    // Of the file beside other rows only the records are taken.
    let found = records::read(folder.path().join("out.i8bin/meta.json")).unwrap();
    assert_eq!(found.items().unwrap()[1], r#"{"id": "2", "title": ""}"#);
    assert!(found.document().unwrap().unwrap().starts_with(b"[{"));
    let missing = records::read(folder.path().join("no.csv")).unwrap_err();
    assert!(matches!(missing, Error::NotFound(_)), "{missing}");
}
