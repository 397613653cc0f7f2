//! Files that are rewritten while they are mapped: whatever is then found in them, nothing panics, and
//! who asks is told that the file has changed.

use std::fs::File;
use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use weighbridge::quantize::{Method, QuantizeSettings};
use weighbridge::{
    Container, Detail, DiffSettings, Embeddings, Encoder, Error, Formats, Input, Options, Progress,
    diff, quantize, stats, summary, verify,
};
use weighbridge_testkit::{Fixture, Ranges, Reads, fixtures};

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
        let _ = (records.items().map(|i| i.len()), records.to_document().map(|d| d.len()));
        let _ = (records.record(1).is_ok(), records.member(0, "name").is_ok());
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

/// How many [`other_bytes`] there are.
const CHANGES: usize = 6;

/// What files may be overwritten with: nothing, all bits, another order, numbers that are too large.
fn other_bytes(bytes: &[u8]) -> [Vec<u8>; CHANGES] {
    let flipped = |mask: u8, step: usize| {
        let mut other = bytes.to_vec();
        other.iter_mut().step_by(step).for_each(|b| *b ^= mask);
        other
    };
    let mut turned = bytes.to_vec();
    turned.rotate_left(bytes.len() / 3);
    let mut half = bytes.to_vec();
    half[bytes.len() / 2..].fill(0xFF);
    [vec![0; bytes.len()], vec![0xFF; bytes.len()], turned, half, flipped(0x10, 1), flipped(1, 7)]
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

/// At every read while it is opened and checked, and at some while it is used: a source hands out other
/// bytes from then on and says nothing of it, as a mapping does.
#[test]
fn files_that_are_rewritten_between_any_two_reads() {
    const WHILE_USED: u64 = 3;
    let mut opened = 0;
    for fixture in fixtures() {
        let reads = || Arc::new(Reads::default());
        let (to_open, to_check, to_use) = (reads(), reads(), reads());
        let unchanged =
            |reads: &Arc<Reads>| fixture.input_from(|bytes| Ranges::new(bytes).counted(reads));
        let open = |input: &Input| Formats::builtin().open(input, &Options::default());
        let check =
            |input: &Input| drop(verify(Formats::builtin(), input, &Options::default(), false));
        open(&unchanged(&to_open)).unwrap();
        check(&unchanged(&to_check));
        use_all(&open(&unchanged(&to_use)).unwrap());
        let (to_open, to_use) = (to_open.calls(), to_use.calls());
        for change in 0..CHANGES {
            let changing = |read| {
                let reads = reads();
                fixture.input_from(|bytes| {
                    let other = other_bytes(&bytes)[change].clone();
                    Ranges::new(bytes).changing_at(read, other).counted(&reads)
                })
            };
            (0..to_check.calls()).for_each(|read| check(&changing(read)));
            for read in 0..to_open {
                opened += usize::from(open(&changing(read)).is_ok());
            }
            for read in (to_open..to_use)
                .step_by(usize::try_from((to_use - to_open) / WHILE_USED + 1).unwrap())
            {
                use_all(&open(&changing(read)).unwrap());
            }
        }
    }
    assert!(opened > 50, "{opened}");
}
