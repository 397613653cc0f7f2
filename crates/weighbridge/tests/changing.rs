//! Files that are rewritten while they are mapped: whatever is then found in them, nothing panics, and
//! who asks is told that the file has changed.

use std::fs::File;
use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};
use weighbridge::quantize::{Method, QuantizeSettings};
use weighbridge::{
    Container, Detail, DiffSettings, Embeddings, Encoder, Error, Formats, Input, Options, Progress,
    diff, quantize, stats, summary, verify,
};
use weighbridge_testkit::{Fixture, fixtures};

/// A fixture as files; the path is that of the file or of the folder.
fn put(fixture: &Fixture, folder: &Path) -> PathBuf {
    let place = folder.join("place");
    for (name, bytes) in &fixture.beside {
        let path = place.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    }
    std::fs::create_dir_all(&place).unwrap();
    let is_folder = Formats::builtin().find(fixture.format).unwrap().info().is_folder;
    if is_folder {
        return place;
    }
    std::fs::write(place.join(&fixture.name), &fixture.main).unwrap();
    place.join(&fixture.name)
}

fn files_of(path: &Path, out: &mut Vec<PathBuf>) {
    match path.is_dir() {
        false => out.push(path.to_owned()),
        true => {
            let entries = path.read_dir().unwrap();
            entries.for_each(|entry| files_of(&entry.unwrap().path(), out));
        }
    }
}

/// Other bytes in the same file, which is then as old as it really is.
fn rewrite(path: &Path, bytes: &[u8]) {
    let mut file = File::options().write(true).open(path).unwrap();
    file.seek(SeekFrom::Start(0)).unwrap();
    file.write_all(bytes).unwrap();
    // Clocks of file systems are slow.
    file.set_modified(SystemTime::now() + Duration::from_secs(10)).unwrap();
}

fn open(path: &Path) -> Result<Container, Error> {
    Formats::builtin().open(&Input::open(path)?, &Options::default())
}

/// Everything that can be done with a container; only panics matter.
fn use_all(container: &Container) {
    let mut detail = Detail::new();
    (detail.stats, detail.vocabulary, detail.bytes, detail.values) = (true, true, true, true);
    let _ = summary(container, &detail).map(|s| serde_json::to_string(&s));
    container.tensors.iter().for_each(|t| drop(stats(t)));
    if let Some(words) = &container.vocabulary {
        let _ = (words.find("truck"), words.duplicate(), words.token(words.len() / 2));
        assert_eq!(words.tokens().count(), words.len());
        let _ = words.without_repeats();
        words.clone().find_special();
    }
    if let Some(records) = &container.records {
        let _ = (records.items().len(), records.to_document().len());
    }
    if let Ok(words) = Embeddings::new(container) {
        let _ = words.lookup("truck").map(|l| l.map(|l| l.vector.len()));
        let _ = words.lookup("unbeknownst");
        let _ = words.similar("truck", 3).map(|hits| words.neighbours(&hits).len());
        let _ = weighbridge::words::select(container, &["truck".to_owned(), "x".to_owned()]);
        let _ = weighbridge::words::evaluate(
            &words,
            b"truck lorry king queen\n",
            "questions",
            &mut Progress::none(),
        );
    }
    for format in Formats::builtin().iter().filter(|f| f.writes()) {
        if let Ok(plan) = format.plan(container, &Options::default()) {
            let _ = plan.accept_losses(true).to_bytes();
        }
    }
    let _ = diff(container, container, &DiffSettings::new());
    let settings = QuantizeSettings::new(Method::from_name("q8").unwrap());
    let _ = quantize(container, &settings, &mut Progress::none()).map(|q| q.plan.to_bytes());
    if let Ok(encoder) = Encoder::new(container, &Default::default()) {
        let _ = encoder.embed(&["a text"]);
    }
}

/// What files may be overwritten with: nothing, all bits, another order, numbers that are too large.
fn other_bytes(bytes: &[u8]) -> Vec<Vec<u8>> {
    let flipped = |mask: u8, step: usize| {
        let mut other = bytes.to_vec();
        other.iter_mut().step_by(step).for_each(|b| *b ^= mask);
        other
    };
    let mut turned = bytes.to_vec();
    turned.rotate_left(bytes.len() / 3);
    let mut half = bytes.to_vec();
    half[bytes.len() / 2..].fill(0xFF);
    vec![
        vec![0; bytes.len()],
        vec![0xFF; bytes.len()],
        turned,
        half,
        flipped(0x10, 1),
        flipped(1, 7),
    ]
}

/// Before anything was asked for, so that every table is made of what is there later.
#[test]
fn files_that_are_rewritten_after_they_were_opened() {
    let mut visited = 0;
    for fixture in fixtures() {
        let folder = tempfile::tempdir().unwrap();
        let path = put(&fixture, folder.path());
        let mut files = Vec::new();
        files_of(&path, &mut files);
        for file in &files {
            let bytes = std::fs::read(file).unwrap();
            for other in other_bytes(&bytes).into_iter().filter(|other| *other != bytes) {
                let Ok(container) = open(&path) else { panic!("{}", fixture.name) };
                rewrite(file, &other);
                use_all(&container);
                let is_mapped = container.opened.iter().any(|s| s.check_unchanged().is_err());
                if is_mapped {
                    let refused = container.check_unchanged();
                    assert!(matches!(refused, Err(Error::Changed { .. })), "{}", fixture.name);
                    // Nothing is made of what is there now.
                    for format in Formats::builtin().iter().filter(|f| f.writes()) {
                        let plan = format.plan(&container, &Options::default());
                        let made = plan.and_then(|plan| plan.accept_losses(true).to_bytes());
                        assert!(made.is_err(), "{} to {}", fixture.name, format.info().id);
                    }
                    visited += 1;
                }
                rewrite(file, &bytes);
            }
        }
    }
    assert!(visited > 50, "{visited}");
}

/// Says that it is the end when it is dropped.
struct Ended<'a>(&'a AtomicBool);

impl Drop for Ended<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// While it is opened, checked and used. Which bytes are met depends on luck, so that this is a search
/// for panics to be run by hand rather than a test: `cargo test --test changing -- --ignored`.
#[test]
#[ignore = "depends on luck"]
fn files_that_are_rewritten_all_the_time() {
    for fixture in fixtures() {
        let folder = tempfile::tempdir().unwrap();
        let path = put(&fixture, folder.path());
        let mut files = Vec::new();
        files_of(&path, &mut files);
        let file = files.into_iter().max_by_key(|f| f.metadata().unwrap().len()).unwrap();
        let bytes = std::fs::read(&file).unwrap();
        let others = other_bytes(&bytes);
        let ended = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for other in others.iter().cycle() {
                    rewrite(&file, other);
                    rewrite(&file, &bytes);
                    if ended.load(Ordering::Relaxed) {
                        return;
                    }
                }
            });
            // Also where something panics.
            let _end = Ended(&ended);
            for _ in 0..20 {
                let Ok(input) = Input::open(&path) else { continue };
                let _ = verify(Formats::builtin(), &input, &Options::default(), false);
                if let Ok(container) = open(&path) {
                    use_all(&container);
                }
            }
        });
    }
}
