//! Texts to files: windows, journals, and going on with them.

use std::path::{Path, PathBuf};
use weighbridge::embed::{self, Done, Embedded, Reading, Request, Texts};
use weighbridge::encoder::{Precision, Settings};
use weighbridge::{Encoder, Error, samples};

/// A folder with the small model in it.
fn model() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model");
    samples::write_encoder(&path).unwrap();
    (folder, path)
}

fn request(output: &Path) -> Request {
    Request {
        output: output.to_owned(),
        to: None,
        window: 8,
        resume: false,
        force: false,
        model: "model".to_owned(),
        settings: Settings::default(),
    }
}

fn numbered(count: usize) -> String {
    (0..count).map(|i| format!("truck {i} of the town {}\n", "x".repeat(i % 7))).collect()
}

fn embed(encoder: &Encoder, request: &Request, input: &str) -> Result<Embedded, Error> {
    let mut texts = Texts::new("input", input.as_bytes(), &Reading::default());
    let mut run = request.begin(encoder, None)?;
    let resumed = run.embed(&mut texts, &mut |_: Done| {})?;
    let embedded = run.finish(resumed)?;
    embedded.write(&mut |_| {})?;
    Ok(embedded)
}

fn names(folder: &Path) -> Vec<String> {
    let mut list: Vec<_> = folder
        .read_dir()
        .unwrap()
        .map(|e| e.unwrap().file_name().into_string().unwrap())
        .filter(|name| name != "model")
        .collect();
    list.sort();
    list
}

/// Stops a run before its file is written, as if it had been killed then.
fn begun(encoder: &Encoder, request: &Request, input: &str) {
    let mut texts = Texts::new("input", input.as_bytes(), &Reading::default());
    let mut run = request.begin(encoder, None).unwrap();
    run.embed(&mut texts, &mut |_: Done| {}).unwrap();
}

#[test]
fn a_journal_cut_anywhere_gives_the_same_file() {
    let (folder, model) = model();
    let encoder = Encoder::open(&model).unwrap();
    let input = numbered(43);
    let whole = folder.path().join("whole.npy");
    let embedded = embed(&encoder, &request(&whole), &input).unwrap();
    assert_eq!((embedded.rows, embedded.resumed), (43, 0));
    let expected = std::fs::read(&whole).unwrap();
    assert_eq!(names(folder.path()), ["whole.npy"]);

    let output = folder.path().join("cut.npy");
    begun(&encoder, &request(&output), &input);
    let at = |ending: &str| folder.path().join(format!("cut.npy.partial{ending}"));
    let [rows, records, facts] = ["", ".records", ".json"].map(|e| std::fs::read(at(e)).unwrap());
    let row = 4 * encoder.dimensions();
    assert_eq!(rows.len(), 43 * row);
    // Rows and records that end anywhere, the records before the rows or behind them.
    for (row_bytes, record_bytes, resumed) in [
        (0, 0, 0),
        (row * 7, records.len(), 0),
        (row * 8, records.len(), 8),
        (row * 8 + 5, records.len(), 8),
        (row * 31 + row / 2, records.len() - 100, 24),
        (row * 40, records.len(), 40),
        (row * 43, records.len() - 1, 40),
        (row * 43, 30, 0),
        (row * 43, records.len(), 43),
    ] {
        std::fs::write(at(""), &rows[..row_bytes]).unwrap();
        std::fs::write(at(".records"), &records[..record_bytes]).unwrap();
        std::fs::write(at(".json"), &facts).unwrap();
        let _ = std::fs::remove_file(&output);
        let resume = Request { resume: true, ..request(&output) };
        let embedded = embed(&encoder, &resume, &input).unwrap();
        assert_eq!((embedded.rows, embedded.resumed), (43, resumed), "{row_bytes} {record_bytes}");
        assert_eq!(std::fs::read(&output).unwrap(), expected, "{row_bytes} {record_bytes}");
        assert_eq!(names(folder.path()), ["cut.npy", "whole.npy"]);
    }
}

#[test]
fn other_settings_models_and_inputs_are_refused() {
    let (folder, model) = model();
    let encoder = Encoder::open(&model).unwrap();
    let (input, output) = (numbered(20), folder.path().join("out.npy"));
    begun(&encoder, &request(&output), &input);
    let resume = Request { resume: true, ..request(&output) };
    let refused = |encoder: &Encoder, request: &Request, input: &str, expected: &str| {
        let error = embed(encoder, request, input).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
        assert!(!output.exists());
    };
    refused(
        &encoder,
        &request(&output),
        &input,
        "out.npy.partial is of a run that was not finished",
    );
    refused(
        &encoder,
        &Request { window: 9, ..resume.clone() },
        &input,
        "another batch: 8, and not 9",
    );
    let settings = Settings { precision: Precision::Q8, ..Settings::default() };
    let quantized = Encoder::open_with(&model, &settings).unwrap();
    let asked = Request { settings, ..resume.clone() };
    refused(&quantized, &asked, &input, "another precision: \"f32\", and not \"q8\"");
    let settings = Settings { dimensions: Some(7), ..Settings::default() };
    let shorter = Encoder::open_with(&model, &settings).unwrap();
    refused(
        &shorter,
        &Request { settings, ..resume.clone() },
        &input,
        "another dimensions: 32, and not 7",
    );
    let changed = input.replace("truck 3", "lorry 3");
    refused(&encoder, &resume, &changed, "row 4 of");
    refused(&encoder, &resume, &numbered(16), "has 20 rows, and the input 16");
    // A model that is the same but for one number.
    let weights = model.join("model.safetensors");
    let mut bytes = std::fs::read(&weights).unwrap();
    let near_last = bytes.len() - 2;
    bytes[near_last] ^= 0x40;
    drop(encoder);
    std::fs::write(&weights, bytes).unwrap();
    let other = Encoder::open(&model).unwrap();
    refused(&other, &resume, &input, "the model gives other vectors than model gave");
    let force = Request { force: true, ..request(&output) };
    assert_eq!(embed(&other, &force, &input).unwrap().resumed, 0);
    assert!(output.exists());
}

#[test]
fn an_input_that_grew_is_gone_on_with() {
    let (folder, model) = model();
    let encoder = Encoder::open(&model).unwrap();
    let output = folder.path().join("out.f32bin");
    begun(&encoder, &request(&output), &numbered(20));
    let resume = Request { resume: true, ..request(&output) };
    let embedded = embed(&encoder, &resume, &numbered(50)).unwrap();
    assert_eq!((embedded.rows, embedded.resumed), (50, 16));
    let grown = std::fs::read(&output).unwrap();
    let force = Request { force: true, ..request(&output) };
    embed(&encoder, &force, &numbered(50)).unwrap();
    assert_eq!(std::fs::read(&output).unwrap(), grown);
}

#[test]
fn threads_and_windows_make_no_difference() {
    let (_folder, model) = model();
    let input = numbered(300);
    let texts: Vec<_> = input.lines().collect();
    let all = Encoder::open(&model).unwrap().embed_flat(&texts).unwrap();
    for threads in [1, 2, 3] {
        let settings = Settings { threads: Some(threads), ..Settings::default() };
        let encoder = Encoder::open_with(&model, &settings).unwrap();
        for size in [1, 7, 300] {
            let parts = texts.chunks(size).flat_map(|some| encoder.embed_flat(some).unwrap());
            let most = parts.zip(&all).map(|(a, b)| (a - b).abs()).fold(0f32, f32::max);
            assert!(most < 1e-6, "{threads} {size}: {most}");
        }
    }
}

#[test]
fn a_failed_beginning_leaves_nothing() {
    let (folder, model) = model();
    let encoder = Encoder::open(&model).unwrap();
    let output = folder.path().join("out.npy");
    assert!(embed(&encoder, &request(&folder.path().join("no/out.npy")), "a\n").is_err());
    assert!(embed(&encoder, &request(&folder.path().join("out.what")), "a\n").is_err());
    let mut texts = Texts::new("input", &b"\xFF\n"[..], &Reading::default());
    let mut run = request(&output).begin(&encoder, None).unwrap();
    assert!(run.embed(&mut texts, &mut |_: Done| {}).is_err());
    drop(run);
    assert_eq!(names(folder.path()), <[&str; 0]>::default());
    // One at a time.
    let _first = request(&output).begin(&encoder, None).unwrap();
    let second = Request { resume: true, ..request(&output) }.begin(&encoder, None).unwrap_err();
    assert!(second.to_string().contains("is in use"), "{second}");
}

#[test]
fn the_cosine_is_that_of_the_vectors() {
    let (_folder, model) = model();
    let settings = Settings { normalize: Some(false), ..Settings::default() };
    for encoder in [Encoder::open(&model).unwrap(), Encoder::open_with(&model, &settings).unwrap()]
    {
        let near = embed::compare(&encoder, "a full truck", "the truck is full").unwrap();
        let far = embed::compare(&encoder, "a full truck", "king and queen").unwrap();
        let same = embed::compare(&encoder, "a full truck", "A full truck").unwrap();
        assert!((same - 1.0).abs() < 1e-6 && near > far && far < 0.9, "{same} {near} {far}");
    }
}
