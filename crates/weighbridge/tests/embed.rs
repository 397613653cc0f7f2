//! Texts to files: windows, journals, and going on with them.

mod common;

use common::with;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use weighbridge::embed::{self, EmbedFile, EmbedSettings, Embedded, TextOptions, Texts};
use weighbridge::encoder::{Precision, Settings};
use weighbridge::{Encoder, Error, Formats, Output, Progress, Stage, Status, samples};

/// A folder with the small model in it.
fn model() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model");
    samples::write_encoder(&path).unwrap();
    (folder, path)
}

fn request(output: &Path) -> EmbedSettings {
    let format = Formats::builtin().target(&output.to_string_lossy(), None).unwrap();
    let mut settings = EmbedSettings::new(output, format);
    settings.window = 8;
    settings.model = "model".to_owned();
    settings
}

fn resuming(output: &Path) -> EmbedSettings {
    with(request(output), |s| s.resume = true)
}

fn forced(output: &Path) -> EmbedSettings {
    with(request(output), |s| s.output = Output::new(output).overwrite(true))
}

fn numbered(count: usize) -> String {
    (0..count).map(|i| format!("truck {i} of the town {}\n", "x".repeat(i % 7))).collect()
}

fn collect(file: &mut EmbedFile, encoder: &Encoder, input: &[u8]) -> Result<Embedded, Error> {
    let texts = Texts::new("input", input, &TextOptions::default());
    embed::embed(encoder, texts, 8, file, &mut Progress::none())
}

fn embed(encoder: &Encoder, settings: &EmbedSettings, input: &str) -> Result<Embedded, Error> {
    let texts = Texts::new("input", input.as_bytes(), &TextOptions::default());
    let mut file = EmbedFile::begin(encoder, settings.clone())?;
    let done = embed::embed(encoder, texts, settings.window, &mut file, &mut Progress::none())?;
    let file = file.finish()?;
    file.write(&mut Progress::none())?;
    assert_eq!(file.rows, done.rows);
    Ok(done)
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
fn begun(encoder: &Encoder, settings: &EmbedSettings, input: &str) {
    let mut file = EmbedFile::begin(encoder, settings.clone()).unwrap();
    collect(&mut file, encoder, input.as_bytes()).unwrap();
}

#[test]
fn a_journal_cut_anywhere_gives_the_same_file() {
    let (folder, model) = model();
    let encoder = Encoder::open(&model).unwrap();
    let input = numbered(43);
    let whole = folder.path().join("whole.npy");
    let done = embed(&encoder, &request(&whole), &input).unwrap();
    assert_eq!((done.rows, done.resumed), (43, 0));
    let expected = std::fs::read(&whole).unwrap();
    assert_eq!(names(folder.path()), ["whole.npy"]);

    let output = folder.path().join("cut.npy");
    begun(&encoder, &request(&output), &input);
    let at = |ending: &str| folder.path().join(format!("cut.npy.partial{ending}"));
    let [rows, records, windows, facts] =
        ["", ".records", ".windows", ".json"].map(|e| std::fs::read(at(e)).unwrap());
    let (row, front) = (4 * encoder.dimensions(), 128);
    assert_eq!(rows.len(), front + 43 * row);
    let lines: Vec<usize> = windows.split_inclusive(|b| *b == b'\n').map(<[u8]>::len).collect();
    assert_eq!(lines.len(), 6);
    let all = windows.len();
    // Rows, records and windows that end anywhere, each before the others or behind them.
    for (row_bytes, record_bytes, window_bytes, resumed) in [
        (0, 0, 0, 0),
        (front + row * 7, records.len(), all, 0),
        (front + row * 8, records.len(), all, 8),
        (front + row * 8 + 5, records.len(), all, 8),
        (front + row * 31 + row / 2, records.len() - 100, all, 24),
        (front + row * 40, records.len(), all, 40),
        (front + row * 43, records.len() - 1, all, 40),
        (front + row * 43, 30, all, 0),
        (front + row * 43, records.len(), all, 43),
        (front + row * 43, records.len(), all - 1, 40),
        (front + row * 43, records.len(), lines[0] + 3, 8),
        (front + row * 43, records.len(), 0, 0),
    ] {
        std::fs::write(at(""), &rows[..row_bytes]).unwrap();
        std::fs::write(at(".records"), &records[..record_bytes]).unwrap();
        std::fs::write(at(".windows"), &windows[..window_bytes]).unwrap();
        std::fs::write(at(".json"), &facts).unwrap();
        let _ = std::fs::remove_file(&output);
        let done = embed(&encoder, &resuming(&output), &input).unwrap();
        assert_eq!((done.rows, done.resumed), (43, resumed), "{row_bytes} {record_bytes}");
        assert_eq!(std::fs::read(&output).unwrap(), expected, "{row_bytes} {record_bytes}");
        assert_eq!(names(folder.path()), ["cut.npy", "whole.npy"]);
    }
}

/// Whatever happened to a journal, going on gives the right file: what was damaged is made anew.
#[test]
fn a_damaged_journal_gives_the_same_file() {
    let (folder, model) = model();
    let encoder = Encoder::open(&model).unwrap();
    // The same text twice, so that windows can be swapped with their records.
    let input = numbered(16) + &numbered(16) + &numbered(11);
    for name in ["cut.npy", "cut.i8bin", "cut.jsonl"] {
        let output = folder.path().join(name);
        embed(&encoder, &forced(&output), &input).unwrap();
        let expected = std::fs::read(&output).unwrap();
        let _ = std::fs::remove_file(&output);
        let _ = std::fs::remove_file(folder.path().join("meta.json"));
        begun(&encoder, &request(&output), &input);
        let at = |ending: &str| folder.path().join(format!("{name}.partial{ending}"));
        let [rows, records, windows, facts] =
            ["", ".records", ".windows", ".json"].map(|e| std::fs::read(at(e)).unwrap());
        let row = if name == "cut.i8bin" { 32 } else { 4 * 32 };
        let front = rows.len() - 43 * row;
        let resume = |rows: &[u8], records: &[u8], windows: &[u8]| {
            std::fs::write(at(""), rows).unwrap();
            std::fs::write(at(".records"), records).unwrap();
            std::fs::write(at(".windows"), windows).unwrap();
            std::fs::write(at(".json"), &facts).unwrap();
            let done = embed(&encoder, &resuming(&output), &input).unwrap();
            assert!(std::fs::read(&output).unwrap() == expected, "{name}: {done:?}");
            std::fs::remove_file(&output).unwrap();
            let _ = std::fs::remove_file(folder.path().join("meta.json"));
            done.resumed
        };
        let window = |n: usize| front + n * 8 * row..front + (n + 1) * 8 * row;
        assert_eq!(resume(&rows, &records, &windows), 43);
        // A flipped bit, in the first window, in the third, and in the last row.
        for (at, resumed) in [(front + 1, 0), (window(2).end - 1, 16), (rows.len() - 1, 40)] {
            let mut bad = rows.clone();
            bad[at] ^= 4;
            assert_eq!(resume(&bad, &records, &windows), resumed, "{name}");
        }
        // What a file system may do to a tail that was not synced.
        let mut zeroed = rows.clone();
        zeroed[window(3).start + row..].fill(0);
        assert_eq!(resume(&zeroed, &records, &windows), 24);
        // Two rows of a window, two windows, and two windows with their lines.
        let mut swapped = rows.clone();
        swapped[window(1)].rotate_left(row);
        assert_eq!(resume(&swapped, &records, &windows), 8);
        let (first, third) = (rows[window(1)].to_vec(), rows[window(2)].to_vec());
        let mut swapped = rows.clone();
        swapped[window(1)].copy_from_slice(&third);
        swapped[window(2)].copy_from_slice(&first);
        assert_eq!(resume(&swapped, &records, &windows), 8);
        let mut lines: Vec<_> = windows.split_inclusive(|b| *b == b'\n').collect();
        lines.swap(0, 2);
        assert_eq!(resume(&rows, &records, &lines.concat()), 0);
        // Records and lines.
        for i in [0, 50, records.len() - 2] {
            let mut bad = records.clone();
            bad[i] ^= 1;
            assert!(resume(&rows, &bad, &windows) < 43);
        }
        for i in (0..windows.len()).step_by(13) {
            let mut bad = windows.clone();
            bad[i] ^= 1 << (i % 7);
            // Digits in upper case say the same.
            assert!(resume(&rows, &records, &bad) <= 43, "{i}");
        }
        // Nor are figures of the report believed that were changed.
        let text = String::from_utf8(windows.clone()).unwrap();
        let bad = text.replacen("\"normalized\":0", "\"normalized\":9", 1);
        assert_eq!(resume(&rows, &records, bad.as_bytes()), if bad == text { 43 } else { 0 });
    }
}

/// Formats of rows: the journal's file becomes the output, so that vectors are written once, and
/// what is reported is what it was when they were converted at the end.
#[cfg(unix)]
#[test]
fn vectors_reach_the_disk_once() {
    use std::os::unix::fs::MetadataExt;
    let (folder, model) = model();
    let encoder = Encoder::open(&model).unwrap();
    let input = numbered(43);
    for name in ["out.npy", "out.f32bin", "out.i8bin", "out.fifu"] {
        let output = folder.path().join(name);
        let mut file = EmbedFile::begin(&encoder, forced(&output)).unwrap();
        collect(&mut file, &encoder, input.as_bytes()).unwrap();
        let journal = std::fs::metadata(file.journal()).unwrap().ino();
        let made_with = file.made_with().clone();
        let file = file.finish().unwrap();
        let losses = file.plan.report.losses.clone();
        file.write(&mut Progress::none()).unwrap();
        let same = std::fs::metadata(&output).unwrap().ino() == journal;
        assert_eq!(same, name != "out.fifu", "{name}");
        // The same bytes and figures as from vectors that are converted.
        let vectors = encoder.embed_flat(&input.lines().collect::<Vec<_>>()).unwrap();
        let container = weighbridge::Container::builder().rows(32, vectors);
        let container = match name {
            "out.fifu" => container.words(input.lines()),
            _ => container,
        };
        let options = weighbridge::Options::default().with("rounding", "nearest-norm");
        let format = Formats::builtin().target(name, None).unwrap();
        let mut container = container.build().unwrap();
        if name == "out.fifu" {
            made_with.store(&mut container);
        }
        let plan = format.plan(&container, &options).unwrap();
        assert_eq!(plan.report.losses, losses, "{name}");
        let bytes = plan.accept_losses(true).to_bytes().unwrap();
        assert_eq!(std::fs::read(&output).unwrap(), bytes, "{name}");
        let _ = std::fs::remove_file(folder.path().join("meta.json"));
        std::fs::remove_file(&output).unwrap();
    }
}

#[test]
fn rows_stored_for_one_format_are_not_taken_for_another() {
    let (folder, model) = model();
    let encoder = Encoder::open(&model).unwrap();
    let (input, output) = (numbered(20), folder.path().join("out"));
    let to = |id: &str, resume: bool| {
        let mut settings = EmbedSettings::new(&output, Formats::builtin().find(id).unwrap());
        (settings.window, settings.resume) = (8, resume);
        settings
    };
    begun(&encoder, &to("i8bin", false), &input);
    let error = embed(&encoder, &to("npy", true), &input).unwrap_err().to_string();
    assert!(error.contains("rows stored as \"i8bin\"") && error.contains("\"npy\""), "{error}");
    let done = embed(&encoder, &to("i8bin", true), &input).unwrap();
    assert_eq!(done.resumed, 20);
    // Plain values serve every format, with the same bytes as if they had been meant for it.
    let expected = std::fs::read(&output).unwrap();
    for begin in ["npy", "f32bin", "jsonl"] {
        let clear = || ["out", "meta.json"].map(|f| std::fs::remove_file(folder.path().join(f)));
        let _ = clear();
        begun(&encoder, &to(begin, false), &input);
        assert_eq!(embed(&encoder, &to("i8bin", true), &input).unwrap().resumed, 20);
        assert_eq!(std::fs::read(&output).unwrap(), expected, "{begin}");
        let _ = clear();
        begun(&encoder, &to(begin, false), &input);
        assert_eq!(embed(&encoder, &to("jsonl", true), &input).unwrap().resumed, 20);
    }
}

/// Any texts, any sink, and an end whenever somebody wants one.
#[test]
fn texts_come_from_anywhere_and_rows_go_anywhere() {
    let (folder, model) = model();
    let encoder = Encoder::open(&model).unwrap();
    let texts = ["a truck", "another truck", "the town"];
    let expected = encoder.embed_flat(&texts).unwrap();
    let mut vectors = Vec::new();
    let done = embed::embed(&encoder, texts, 2, &mut vectors, &mut Progress::none()).unwrap();
    assert_eq!((done.rows, done.resumed), (3, 0));
    assert_eq!(vectors, expected);
    let mut seen = Vec::new();
    let mut sink = |rows: &[embed::TextRow], vectors: &[f32]| {
        seen.extend(rows.iter().map(|row| row.text.clone()));
        assert_eq!(vectors.len(), rows.len() * 32);
        Ok(())
    };
    let strings = texts.iter().map(|t| (*t).to_owned());
    embed::embed(&encoder, strings, 2, &mut sink, &mut Progress::none()).unwrap();
    assert_eq!(seen, texts);
    // Progress is told within a window too.
    let one = Settings { threads: Some(1), ..Settings::default() };
    let encoder_of_one = Encoder::open_with(&model, &one).unwrap();
    let mut told = Vec::new();
    let mut tell = |status: Status| {
        told.push(status.done);
        ControlFlow::Continue(())
    };
    let many = std::iter::repeat_n("a truck", 400);
    let mut progress = Progress::new(&mut tell);
    embed::embed(&encoder_of_one, many, 1024, &mut Vec::new(), &mut progress).unwrap();
    assert!(told.len() > 5 && told.is_sorted() && told.last() == Some(&400), "{told:?}");
    // What was done when it was stopped is kept.
    let output = folder.path().join("out.npy");
    let mut file = EmbedFile::begin(&encoder, request(&output)).unwrap();
    let mut stop = |status: Status| {
        assert_eq!((status.stage, status.total), (Stage::Embedding, Some(100)));
        if status.done >= 16 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let many = std::iter::repeat_n("a truck", 100);
    let stopped = embed::embed(&encoder, many, 8, &mut file, &mut Progress::new(&mut stop));
    assert!(matches!(stopped, Err(Error::Cancelled)));
    assert_eq!(file.finished(), 16);
    assert!(!output.exists());
}

/// A run that was stopped before anything was kept is no obstacle.
#[test]
fn a_journal_that_holds_nothing_is_begun_anew() {
    let (folder, model) = model();
    let encoder = Encoder::open(&model).unwrap();
    let output = folder.path().join("out.npy");
    // As a process leaves it that was killed.
    let file = EmbedFile::begin(&encoder, request(&output)).unwrap();
    let parts = ["", ".records", ".windows", ".json"].map(|part| {
        let path = folder.path().join(format!("out.npy.partial{part}"));
        (std::fs::read(&path).unwrap(), path)
    });
    drop(file);
    for (bytes, path) in parts {
        assert!(!path.exists());
        std::fs::write(path, bytes).unwrap();
    }
    embed(&encoder, &request(&output), &numbered(20)).unwrap();
    assert!(output.exists());
}

#[test]
fn other_settings_models_and_inputs_are_refused() {
    let (folder, model) = model();
    let encoder = Encoder::open(&model).unwrap();
    let (input, output) = (numbered(20), folder.path().join("out.npy"));
    begun(&encoder, &request(&output), &input);
    let resume = resuming(&output);
    let refused = |encoder: &Encoder, request: &EmbedSettings, input: &str, expected: &str| {
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
        &with(resume.clone(), |s| s.window = 9),
        &input,
        "another batch: 8, and not 9",
    );
    let settings = Settings { precision: Precision::Q8, ..Settings::default() };
    let quantized = Encoder::open_with(&model, &settings).unwrap();
    let asked = with(resume.clone(), |s| s.settings = settings);
    refused(&quantized, &asked, &input, "another precision: \"f32\", and not \"q8\"");
    let settings = Settings { dimensions: Some(7), ..Settings::default() };
    let shorter = Encoder::open_with(&model, &settings).unwrap();
    refused(
        &shorter,
        &with(resume.clone(), |s| s.settings = settings),
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
    refused(&other, &resume, &input, "the model has other weights than model had");
    let force = forced(&output);
    assert_eq!(embed(&other, &force, &input).unwrap().resumed, 0);
    assert!(output.exists());
}

#[test]
fn an_input_that_grew_is_gone_on_with() {
    let (folder, model) = model();
    let encoder = Encoder::open(&model).unwrap();
    let output = folder.path().join("out.f32bin");
    begun(&encoder, &request(&output), &numbered(20));
    let resume = resuming(&output);
    let embedded = embed(&encoder, &resume, &numbered(50)).unwrap();
    assert_eq!((embedded.rows, embedded.resumed), (50, 16));
    let grown = std::fs::read(&output).unwrap();
    let force = forced(&output);
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
    let mut file = EmbedFile::begin(&encoder, request(&output)).unwrap();
    assert!(collect(&mut file, &encoder, b"\xFF\n").is_err());
    drop(file);
    assert_eq!(names(folder.path()), <[&str; 0]>::default());
    // One at a time.
    let _first = EmbedFile::begin(&encoder, request(&output)).unwrap();
    let second = EmbedFile::begin(&encoder, resuming(&output)).unwrap_err();
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
