//! Shards of an input and one file of them again, and rows that are taken from earlier files.

mod common;

use common::with;
use std::cell::Cell;
use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use weighbridge::embed::{
    self, EmbedFile, EmbedSettings, Embedded, InputRows, Manifest, MergeSettings, Shard,
    TextOptions, Texts,
};
use weighbridge::encoder::Settings;
use weighbridge::sink::{self, FileSystem, OutFile, RealFiles};
use weighbridge::{Encoder, Error, Formats, Output, Progress, samples};

const FORMATS: [&str; 5] = ["npy", "f32bin", "i8bin", "safetensors", "jsonl"];

/// A folder with the small model in it.
fn model() -> (tempfile::TempDir, Encoder) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model");
    samples::write_encoder(&path).unwrap();
    let encoder = Encoder::open(&path).unwrap();
    (folder, encoder)
}

fn request(output: &Path) -> EmbedSettings {
    let format = Formats::builtin().target(&output.to_string_lossy(), None).unwrap();
    with(EmbedSettings::new(output, format), |settings| {
        settings.window = 8;
        settings.manifest = true;
    })
}

fn forced(settings: EmbedSettings) -> EmbedSettings {
    with(settings, |s| s.output = s.output.clone().overwrite(true))
}

fn shard(output: &Path, number: u64, of: u64) -> EmbedSettings {
    with(request(output), |settings| settings.shard = Shard::new(number, of))
}

fn reusing(output: &Path, files: &[&Path]) -> EmbedSettings {
    with(request(output), |s| s.reuse = files.iter().map(|f| f.to_path_buf()).collect())
}

/// Texts of which each fifth is the first again.
fn numbered(rows: std::ops::Range<usize>) -> String {
    let text = |i: usize| if i % 5 == 4 { 0 } else { i };
    rows.map(|i| format!("truck {} of the town\n", text(i))).collect()
}

/// Reads the texts of a shard, as far as this many windows go.
fn collect(
    encoder: &Encoder,
    settings: &EmbedSettings,
    input: &str,
    windows: usize,
) -> Result<(EmbedFile, Embedded), Error> {
    let texts = Texts::new("input", input.as_bytes(), &TextOptions::default());
    let mut rows = InputRows::new(texts, settings.shard);
    let mut file = EmbedFile::begin(encoder, settings.clone())?;
    let some = rows.by_ref().take(windows.saturating_mul(settings.window));
    let done = embed::embed(encoder, some, settings.window, &mut file, &mut Progress::none())?;
    file.set_input(rows.id());
    Ok((file, done))
}

fn embed(encoder: &Encoder, settings: &EmbedSettings, input: &str) -> Result<Embedded, Error> {
    let (file, done) = collect(encoder, settings, input, usize::MAX)?;
    file.finish()?.write(&mut Progress::none())?;
    Ok(done)
}

fn merge(output: &Path, shards: &[PathBuf]) -> Result<u64, Error> {
    let format = Formats::builtin().target(&output.to_string_lossy(), None)?;
    let settings = MergeSettings::new(output, format);
    let file = embed::merge(&settings, shards, &mut Progress::none())?;
    file.write(&mut Progress::none())?;
    Ok(file.rows)
}

fn names(folder: &Path) -> Vec<String> {
    let list = folder.read_dir().unwrap().map(|e| e.unwrap().file_name().into_string().unwrap());
    let mut list: Vec<_> = list.filter(|name| name != "model").collect();
    list.sort();
    list
}

/// The bytes of a file of vectors and of what describes it.
fn contents(path: &Path) -> [Option<Vec<u8>>; 3] {
    let stem = path.file_stem().unwrap().to_string_lossy().into_owned();
    let about = path.with_file_name(format!("{stem}.meta.json"));
    [path, &about, &Manifest::hashes_for(path)].map(|path| std::fs::read(path).ok())
}

#[test]
fn shards_become_the_file_of_the_whole_input() {
    for format in FORMATS {
        let (folder, encoder) = model();
        let at = |name: String| folder.path().join(format!("{name}.{format}"));
        for (rows, of) in [(43, 1), (43, 3), (43, 8), (2, 3), (0, 2)] {
            let (input, name) = (numbered(0..rows), format!("{rows}-{of}"));
            let whole = at(format!("whole-{name}"));
            let done = embed(&encoder, &request(&whole), &input).unwrap();
            assert_eq!(done.rows, rows as u64);
            let mut parts = Vec::new();
            for number in 1..=of {
                let part = at(format!("part-{name}-{number}"));
                let done = embed(&encoder, &shard(&part, number, of), &input).unwrap();
                assert_eq!(done.rows, Shard::new(number, of).unwrap().share(rows as u64));
                parts.insert(0, part);
            }
            let merged = at(format!("merged-{name}"));
            assert_eq!(merge(&merged, &parts).unwrap(), rows as u64);
            assert_eq!(contents(&merged), contents(&whole), "{format} {name}");
            let [a, b] = [&merged, &whole].map(|path| Manifest::of(path).unwrap());
            assert_eq!((a.input, a.rows, a.shard, a.form), (b.input, b.rows, None, b.form));
            if rows > 0 {
                let made = weighbridge::open(&merged).unwrap();
                assert_eq!(made.tensors[0].shape[0], rows as u64);
            }
        }
        assert!(!names(folder.path()).iter().any(|name| name.contains("partial")));
    }
}

#[test]
fn a_manifest_says_what_the_files_are() {
    let (folder, encoder) = model();
    let output = folder.path().join("part.f32bin");
    embed(&encoder, &shard(&output, 2, 3), "a\nabc\nc\nd\n").unwrap();
    let expected =
        ["part.f32bin", "part.f32bin.hashes", "part.f32bin.manifest.json", "part.meta.json"];
    assert_eq!(names(folder.path()), expected);
    let manifest = Manifest::of(&output).unwrap();
    assert_eq!((manifest.rows, manifest.shard), (1, Shard::new(2, 3)));
    // What `sha256sum` says of the four records, each on a line.
    let input = manifest.input.clone().unwrap();
    assert_eq!(input.rows, 4);
    assert_eq!(input.sha256, "6a44e99ae6dd4db9469535104c90458d429ac7ca4d261b32328e436f67bd4105");
    let listed: Vec<_> = manifest.files.iter().map(|file| file.name.as_str()).collect();
    assert_eq!(listed, ["part.f32bin", "part.meta.json", "part.f32bin.hashes"]);
    let hashes = std::fs::read(Manifest::hashes_for(&output)).unwrap();
    let digits: String = hashes.iter().map(|b| format!("{b:02x}")).collect();
    assert_eq!(digits, "ba7816bf8f01cfea414140de5dae2223");
    manifest.check_files(&output, &mut Progress::none()).unwrap();
    for file in &listed {
        let path = folder.path().join(file);
        let bytes = std::fs::read(&path).unwrap();
        std::fs::write(&path, [&bytes[..bytes.len() - 1], b"!"].concat()).unwrap();
        let error = manifest.check_files(&output, &mut Progress::none()).unwrap_err().to_string();
        assert!(error.contains(&format!("{file} is not what its manifest says")), "{error}");
        std::fs::write(&path, bytes).unwrap();
    }
}

#[test]
fn what_does_not_belong_together_is_not_merged() {
    let (folder, encoder) = model();
    let input = numbered(0..20);
    let at = |name: &str| folder.path().join(name);
    let part = |name: &str, number, of, input: &str| {
        let path = at(name);
        embed(&encoder, &shard(&path, number, of), input).unwrap();
        path
    };
    let [a, b, c] = [1, 2, 3].map(|n| part(&format!("p{n}.npy"), n, 3, &input));
    let refused = |shards: &[&PathBuf], expected: &str| {
        let shards: Vec<PathBuf> = shards.iter().map(|path| (*path).clone()).collect();
        let error = merge(&at("all.npy"), &shards).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
        let left: Vec<_> = names(folder.path());
        assert!(!left.iter().any(|name| name.starts_with("all")), "{left:?}");
    };
    refused(&[&a, &c], "shard 2/3 is missing");
    refused(&[&a], "shard 2/3 is missing");
    refused(&[&b, &c], "shard 1/3 is missing");
    refused(&[], "there are no shards");
    refused(&[&a, &b, &c, &b], "p2.npy is shard 2/3, and so is");
    let other = part("other.npy", 2, 3, &numbered(0..21));
    refused(&[&a, &other, &c], "other.npy is a shard of another input");
    let same_length = part("same.npy", 2, 3, &input.replace("truck 7", "truck x"));
    refused(&[&a, &same_length, &c], "same.npy is a shard of another input");
    let of_four = part("four.npy", 2, 4, &input);
    refused(&[&a, &of_four, &c], "four.npy is shard 2/4, and");
    let settings = Settings { dimensions: Some(7), ..Settings::default() };
    let shorter = Encoder::open_with(folder.path().join("model"), &settings).unwrap();
    let narrow = at("narrow.npy");
    embed(&shorter, &shard(&narrow, 2, 3), &input).unwrap();
    refused(&[&a, &narrow, &c], "narrow.npy was made with vectors of so many values: 7");
    let prompted = encoder.with_prompt(&weighbridge::encoder::PromptChoice::Given("q: ".into()));
    let asked = at("asked.npy");
    embed(&prompted, &shard(&asked, 2, 3), &input).unwrap();
    refused(&[&a, &asked, &c], "asked.npy was made with the prompt \"q: \", and not \"\"");
    let whole = at("whole.npy");
    embed(&encoder, &request(&whole), &input).unwrap();
    refused(&[&whole], "whole.npy is no shard");
    let plain = at("plain.npy");
    embed(&encoder, &with(request(&plain), |s| s.manifest = false), &input).unwrap();
    refused(&[&plain], "plain.npy has no manifest");
    let rounded = at("p2.i8bin");
    embed(&encoder, &shard(&rounded, 2, 3), &input).unwrap();
    refused(&[&a, &rounded, &c], "p2.i8bin has rows that are stored as");
    // A bit of the rows, and a row less.
    let bytes = std::fs::read(&b).unwrap();
    let mut changed = bytes.clone();
    changed[200] ^= 1;
    for damaged in [&changed[..], &bytes[..bytes.len() - 128]] {
        std::fs::write(&b, damaged).unwrap();
        refused(&[&a, &b, &c], "p2.npy is not what its manifest says");
    }
    std::fs::write(&b, bytes).unwrap();
    std::fs::write(Manifest::path_for(&b), "{}").unwrap();
    refused(&[&a, &b, &c], "p2.npy.manifest.json is no manifest");
    std::fs::remove_file(&b).unwrap();
    embed(&encoder, &forced(shard(&b, 2, 3)), &input).unwrap();
    std::fs::write(at("all.npy"), "mine").unwrap();
    let error = merge(&at("all.npy"), &[a.clone(), b.clone(), c.clone()]).unwrap_err();
    assert!(error.to_string().contains("all.npy exists"), "{error}");
    std::fs::remove_file(at("all.npy")).unwrap();
    merge(&at("all.npy"), &[c, a, b]).unwrap();
    assert_eq!(std::fs::read(at("all.npy")).unwrap(), std::fs::read(whole).unwrap());
}

/// However far a shard came, running it again makes the same file, and so does running it once more.
#[test]
fn a_shard_can_be_run_again() {
    for format in ["f32bin", "i8bin", "safetensors"] {
        let (folder, encoder) = model();
        let input = numbered(0..100);
        let path = |name: &str| folder.path().join(format!("{name}.{format}"));
        let (once, again) = (path("once"), path("again"));
        embed(&encoder, &shard(&once, 2, 3), &input).unwrap();
        for windows in 0..6 {
            let settings = shard(&again, 2, 3);
            // As a process leaves it that was ended.
            drop(collect(&encoder, &settings, &input, windows).unwrap());
            let done = embed(&encoder, &settings, &input).unwrap();
            assert_eq!((done.rows, done.resumed), (33, (windows as u64 * 8).min(33)));
            assert_eq!(contents(&again), contents(&once));
            for name in names(folder.path()).iter().filter(|name| name.starts_with("again")) {
                std::fs::remove_file(folder.path().join(name)).unwrap();
            }
        }
        let settings = shard(&again, 2, 3);
        embed(&encoder, &settings, &input).unwrap();
        let done = embed(&encoder, &settings, &input).unwrap();
        assert_eq!((done.rows, done.reused), (33, 33));
        assert_eq!(contents(&again), contents(&once));
        // What was damaged is made anew.
        std::fs::write(Manifest::hashes_for(&again), "").unwrap();
        let done = embed(&encoder, &settings, &input).unwrap();
        assert_eq!((done.rows, done.reused), (33, 0));
        assert_eq!(contents(&again), contents(&once));
        // Another input, shard or model is somebody's mistake.
        let error = embed(&encoder, &settings, &numbered(0..90)).unwrap_err().to_string();
        assert!(error.contains("is a shard of another input"), "{error}");
        assert_eq!(contents(&again), contents(&once));
        let error = embed(&encoder, &shard(&again, 1, 3), &input).unwrap_err().to_string();
        assert!(error.contains(&format!("again.{format}")), "{error}");
        let done = embed(&encoder, &forced(settings), &numbered(0..90)).unwrap();
        assert_eq!((done.rows, done.reused), (30, 0));
    }
}

#[test]
fn texts_of_earlier_files_are_not_embedded_again() {
    for format in FORMATS {
        let (folder, encoder) = model();
        let path = |name: &str| folder.path().join(format!("{name}.{format}"));
        let (first, second, all) = (path("first"), path("second"), path("all"));
        embed(&encoder, &request(&first), &numbered(0..50)).unwrap();
        embed(&encoder, &request(&second), &numbered(40..60)).unwrap();
        let input = numbered(30..70);
        embed(&encoder, &request(&all), &input).unwrap();
        let again = path("again");
        let done = embed(&encoder, &reusing(&again, &[&first, &second]), &input).unwrap();
        // Eight of the forty are the first text of all, which the first file has.
        assert_eq!((done.rows, done.reused, done.repeated), (40, 32, 0));
        assert_eq!(contents(&again), contents(&all), "{format}");
        // What was reused can be reused.
        let third = path("third");
        let done = embed(&encoder, &reusing(&third, &[&again]), &input).unwrap();
        assert_eq!((done.rows, done.reused), (40, 40));
        assert_eq!(contents(&third), contents(&all), "{format}");
        // Going on anywhere.
        for windows in 0..6 {
            let output = path(&format!("cut{windows}"));
            let settings = reusing(&output, &[&first]);
            drop(collect(&encoder, &settings, &input, windows).unwrap());
            let resuming = with(settings, |s| s.resume = true);
            let done = embed(&encoder, &resuming, &input).unwrap();
            assert_eq!(done.resumed, (windows as u64 * 8).min(40));
            assert_eq!(contents(&output), contents(&all), "{format} {windows}");
        }
    }
}

#[test]
fn rows_that_would_come_out_otherwise_are_not_reused() {
    let (folder, encoder) = model();
    let at = |name: &str| folder.path().join(name);
    let input = numbered(0..20);
    let floats = at("floats.f32bin");
    embed(&encoder, &request(&floats), &input).unwrap();
    let refused = |encoder: &Encoder, settings: EmbedSettings, expected: &str| {
        let error = embed(encoder, &settings, &input).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    };
    let settings = Settings { dimensions: Some(7), ..Settings::default() };
    let shorter = Encoder::open_with(at("model"), &settings).unwrap();
    refused(&shorter, reusing(&at("x.npy"), &[&floats]), "it was made with vectors of so many");
    let prompted = encoder.with_prompt(&weighbridge::encoder::PromptChoice::Given("q: ".into()));
    refused(&prompted, reusing(&at("x.npy"), &[&floats]), "it was made with the prompt \"\"");
    let asked = with(reusing(&at("x.npy"), &[&floats]), |s| s.settings.normalize = Some(false));
    refused(&encoder, asked, "it was made with the lengths");
    refused(&encoder, reusing(&at("x.npy"), &[&at("none.npy")]), "none.npy has no manifest");
    // Floats become codes, and no codes become floats.
    let (codes, from_floats) = (at("codes.i8bin"), at("from.i8bin"));
    embed(&encoder, &request(&codes), &input).unwrap();
    let done = embed(&encoder, &reusing(&from_floats, &[&floats]), &input).unwrap();
    assert_eq!(done.reused, 20);
    assert_eq!(contents(&from_floats), contents(&codes));
    refused(&encoder, reusing(&at("x.npy"), &[&codes]), "its rows are stored as");
    let mut bytes = std::fs::read(&floats).unwrap();
    bytes[9] ^= 4;
    std::fs::write(&floats, bytes).unwrap();
    refused(&encoder, reusing(&at("x.npy"), &[&floats]), "is not what its manifest says");
    assert!(!names(folder.path()).iter().any(|name| name.starts_with("x.npy")));
}

/// A text that is there twice gets the same vector, which is computed once.
#[test]
fn repeated_texts_are_embedded_once() {
    let (folder, encoder) = model();
    let input = numbered(0..53);
    let mut expected = Vec::new();
    let texts = Texts::new("input", input.as_bytes(), &TextOptions::default());
    embed::embed(&encoder, texts, 8, &mut expected, &mut Progress::none()).unwrap();
    for format in ["npy", "i8bin"] {
        let output = folder.path().join(format!("out.{format}"));
        let settings = with(request(&output), |s| s.manifest = false);
        let done = embed(&encoder, &settings, &input).unwrap();
        assert_eq!((done.rows, done.repeated, done.reused), (53, 10, 0));
        let container = weighbridge::open(&output).unwrap();
        let made = container.tensors[0].values_f32(0, expected.len()).unwrap();
        match format {
            "npy" => assert_eq!(made, expected),
            _ => assert!(made.iter().zip(&expected).all(|(a, b)| (a - b).abs() < 0.01)),
        }
    }
    // Nothing of it stays.
    assert_eq!(names(folder.path()), ["meta.json", "out.i8bin", "out.npy"]);
}

/// A merge that was ended anywhere goes on, and one that was ended while it put files into their
/// places, too.
#[test]
fn a_merge_can_be_run_again() {
    let (folder, encoder) = model();
    let at = |name: &str| folder.path().join(name);
    let input = numbered(0..3000);
    let whole = at("whole.f32bin");
    embed(&encoder, &with(request(&whole), |s| s.window = 1024), &input).unwrap();
    let parts: Vec<_> = (1..=2).map(|n| at(&format!("p{n}.f32bin"))).collect();
    for (number, part) in (1..).zip(&parts) {
        embed(&encoder, &shard(part, number, 2), &input).unwrap();
    }
    let merged = at("all.f32bin");
    for stop_at in [0, 1, 1024, 2048, 3000] {
        let format = Formats::builtin().find("f32bin").unwrap();
        let settings = MergeSettings::new(Output::new(&merged), format);
        let mut stop = |status: weighbridge::Status| {
            let enough = status.stage == weighbridge::Stage::Merging && status.done >= stop_at;
            if enough {
                std::ops::ControlFlow::Break(())
            } else {
                std::ops::ControlFlow::Continue(())
            }
        };
        let stopped = embed::merge(&settings, &parts, &mut Progress::new(&mut stop));
        assert!(matches!(stopped, Err(Error::Cancelled)), "{stop_at}");
        // The file that an interrupted commit may have put there.
        if stop_at > 1 {
            std::fs::write(&merged, "half").unwrap();
        }
        assert_eq!(merge(&merged, &parts).unwrap(), 3000);
        assert_eq!(contents(&merged), contents(&whole));
        for name in names(folder.path()).iter().filter(|name| name.starts_with("all")) {
            std::fs::remove_file(folder.path().join(name)).unwrap();
        }
    }
}

/// A file system that stops to work after some steps, as for a process that was killed: what it would
/// do then is not done either.
struct Dying {
    left: Rc<Cell<usize>>,
}

impl Dying {
    fn step<T>(&self, work: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        step(&self.left, work)
    }
}

fn step<T>(left: &Cell<usize>, work: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    match left.get() {
        0 => Err(io::Error::other("dead")),
        n => {
            left.set(n - 1);
            work()
        }
    }
}

struct DyingFile {
    file: Box<dyn OutFile>,
    left: Rc<Cell<usize>>,
}

impl io::Write for DyingFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        step(&self.left, || self.file.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl OutFile for DyingFile {
    fn sync(&mut self) -> io::Result<()> {
        step(&self.left, || self.file.sync())
    }
}

impl FileSystem for Dying {
    fn create(&self, path: &Path, like: &Path) -> io::Result<Box<dyn OutFile>> {
        let file = self.step(|| RealFiles.create(path, like))?;
        Ok(Box::new(DyingFile { file, left: self.left.clone() }))
    }

    fn modify(&self, path: &Path) -> io::Result<Box<dyn OutFile>> {
        let file = self.step(|| RealFiles.modify(path))?;
        Ok(Box::new(DyingFile { file, left: self.left.clone() }))
    }

    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.step(|| RealFiles.link(from, to))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.step(|| RealFiles.rename(from, to))
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.step(|| RealFiles.remove(path))
    }

    fn create_folder(&self, path: &Path) -> io::Result<()> {
        self.step(|| RealFiles.create_folder(path))
    }

    fn remove_folder(&self, path: &Path) -> io::Result<()> {
        self.step(|| RealFiles.remove_folder(path))
    }

    fn sync_folder(&self, folder: &Path) -> io::Result<()> {
        self.step(|| RealFiles.sync_folder(folder))
    }

    fn sync_tree(&self, files: &[&Path], folders: &[&Path]) -> io::Result<()> {
        self.step(|| RealFiles.sync_tree(files, folders))
    }
}

/// Whenever a process is killed that puts the files of a shard or of a merge into their places, what is
/// there is whole or can be seen not to be, and running it again makes it whole.
#[test]
fn a_kill_at_any_step_is_mended_by_the_next_run() {
    for format in ["npy", "i8bin", "safetensors"] {
        let (folder, encoder) = model();
        let input = numbered(0..30);
        let at = |name: &str| folder.path().join(format!("{name}.{format}"));
        let (whole, once, output, other) = (at("whole"), at("once"), at("again"), at("other"));
        embed(&encoder, &request(&whole), &input).unwrap();
        embed(&encoder, &shard(&once, 1, 2), &input).unwrap();
        embed(&encoder, &shard(&other, 2, 2), &input).unwrap();
        let mut deaths = 0;
        for (merging, existing) in [(false, false), (false, true), (true, false)] {
            for steps in 0.. {
                for name in names(folder.path()).iter().filter(|n| n.contains("again")) {
                    std::fs::remove_file(folder.path().join(name)).unwrap();
                }
                if existing {
                    embed(&encoder, &shard(&output, 1, 2), &input).unwrap();
                }
                let parts = [once.clone(), other.clone()];
                let file = if merging {
                    let format = Formats::builtin().find(format).unwrap();
                    let settings = MergeSettings::new(&output, format);
                    embed::merge(&settings, &parts, &mut Progress::none()).unwrap()
                } else {
                    let settings = shard(&output, 1, 2);
                    let (file, _) = collect(&encoder, &settings, &input, usize::MAX).unwrap();
                    file.finish().unwrap()
                };
                let files = Dying { left: Rc::new(Cell::new(steps)) };
                let written = sink::write(&file.plan, &output, &files, &mut Progress::none());
                drop(file);
                let manifest = Manifest::of(&output);
                let check = |m: Manifest| m.check_files(&output, &mut Progress::none());
                let is_seen_whole = manifest.and_then(check).is_ok();
                let expected = if merging { &whole } else { &once };
                if is_seen_whole {
                    assert_eq!(contents(&output), contents(expected), "{format} {steps}");
                }
                if merging {
                    merge(&output, &parts).unwrap();
                } else {
                    embed(&encoder, &shard(&output, 1, 2), &input).unwrap();
                }
                assert_eq!(contents(&output), contents(expected), "{format} {steps}");
                if written.is_ok() {
                    break;
                }
                deaths += 1;
            }
        }
        assert!(deaths > 20, "{deaths}");
    }
}
