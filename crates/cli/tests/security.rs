//! SECURITY.md lists every file with `unsafe` in it, and how often it stands there.

use std::collections::BTreeMap;
use std::path::Path;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// How often a source says `unsafe`, outside comments and without the lints of that name.
fn count(source: &str) -> usize {
    let code = source.lines().map(|line| line.split("//").next().unwrap_or_default());
    let words = code.flat_map(|line| line.split(|c: char| !c.is_alphanumeric() && c != '_'));
    words.filter(|word| *word == "unsafe").count()
}

fn collect(folder: &Path, found: &mut BTreeMap<String, usize>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && !path.ends_with("target") {
            collect(&path, found);
        } else if path.extension().is_some_and(|e| e == "rs") {
            let count = count(&std::fs::read_to_string(&path).unwrap());
            let name = path.strip_prefix(ROOT).unwrap().to_string_lossy().replace('\\', "/");
            found.extend((count > 0).then_some((name, count)));
        }
    }
}

#[test]
fn every_unsafe_block_is_listed() {
    let mut found = BTreeMap::new();
    for folder in ["crates", "web", "consumer", "fuzz"] {
        collect(&Path::new(ROOT).join(folder), &mut found);
    }
    // This test speaks of it.
    found.remove("crates/cli/tests/security.rs");
    let page = std::fs::read_to_string(Path::new(ROOT).join("SECURITY.md")).unwrap();
    let mut listed = BTreeMap::new();
    for line in page.lines() {
        let cells: Vec<_> = line.split('|').map(str::trim).collect();
        if let ["", file, number, invariant, test, ""] = cells[..]
            && let (Some(file), Ok(number)) = (file.strip_suffix(".rs`"), number.parse::<usize>())
        {
            assert!(!invariant.is_empty() && !test.is_empty(), "{line}");
            listed.insert(format!("{}.rs", file.trim_start_matches('`')), number);
        }
    }
    assert_eq!(listed, found, "the table in SECURITY.md and the sources");
}
