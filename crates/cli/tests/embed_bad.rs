//! `embed` with bad input, bad luck, and going on after it.

mod common;

use common::{err, folder_with_model as samples, out};
use serde_json::Value as Json;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};
use weighbridge_testkit::data::skip_on_this_machine;

fn program(folder: &Path, arguments: &[&str]) -> Command {
    common::program(folder, &[&["embed", "--model", "model"], arguments].concat())
}

fn run(folder: &Path, arguments: &[&str]) -> Output {
    program(folder, arguments).output().expect("the program starts")
}

fn names(folder: &Path) -> Vec<String> {
    let entries = folder.read_dir().unwrap().map(|e| e.unwrap().file_name().into_string().unwrap());
    let mut list: Vec<_> = entries.filter(|name| name != "model").collect();
    list.sort();
    list
}

#[test]
fn odd_texts_have_vectors() {
    let folder = samples();
    let at = folder.path();
    let odd =
        ["", "   ", "\t", "a\0b", "\u{fffd}\u{200b}", &"x".repeat(1 << 20), &"a ".repeat(1 << 19)];
    std::fs::write(at.join("odd.txt"), odd.join("\n")).unwrap();
    let output = run(at, &["--input", "odd.txt", "--output", "odd.npy"]);
    assert!(output.status.success(), "{}", err(&output));
    let rows = weighbridge::open(at.join("odd.npy")).unwrap();
    assert_eq!(rows.tensors[0].shape, [7, 32]);
    assert!(rows.tensors[0].values_f32(0, 7 * 32).unwrap().iter().all(|v| v.is_finite()));
    // No texts are no vectors.
    std::fs::write(at.join("none.txt"), "").unwrap();
    let output = run(at, &["--input", "none.txt"]);
    assert!(output.status.success() && output.stdout.is_empty());
    assert!(run(at, &["--input", "none.txt", "--output", "none.npy"]).status.success());
    assert_eq!(weighbridge::open(at.join("none.npy")).unwrap().tensors[0].shape, [0, 32]);
}

#[test]
fn bytes_that_are_not_utf8_are_placed() {
    let folder = samples();
    let at = folder.path();
    std::fs::write(at.join("bad.txt"), b"fine\nalso fine\nbad \xC3( here\nfine\n").unwrap();
    let output = run(at, &["--input", "bad.txt", "--output", "bad.npy"]);
    assert_eq!(output.status.code(), Some(3));
    let said = err(&output);
    assert!(
        said.contains("bad.txt: line 3: not UTF-8: byte 0xc3 at offset 19 of the file"),
        "{said}"
    );
    assert!(said.contains("--lossy"), "{said}");
    assert_eq!(names(at), ["bad.txt"]);
    let output = run(at, &["--input", "bad.txt", "--lossy"]);
    assert!(out(&output).contains("\"bad \u{fffd}( here\""), "{}", err(&output));
    let output = run(at, &["--input", "bad.txt", "--skip-bad"]);
    assert_eq!(out(&output).lines().count(), 3);
    assert!(err(&output).contains("skipped: line 3: not UTF-8"), "{}", err(&output));
}

/// Input of other kinds is named, and never offered `--lossy`.
#[test]
fn what_is_not_lines_of_text_is_refused() {
    let folder = samples();
    let at = folder.path();
    let gzip = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03\x4b\x04\x00\x43\xbe\xb7\xe8";
    let vectors = run(at, &["a truck", "--output", "vectors.npy"]);
    assert!(vectors.status.success(), "{}", err(&vectors));
    let table = b"id,text,price\n1,\"a truck, empty\",5\n2,a lorry,6\n";
    for (name, bytes, word) in [
        ("texts.txt.gz", &gzip[..], "gzip"),
        ("texts.zip", b"PK\x03\x04\x14\0\0\0\x08\0", "a zip archive"),
        ("texts.parquet", b"PAR1\x15\x00\x15\xde\xad\xbe\xef\x00", "not text"),
        ("table.txt", table, "\"id\", \"text\", \"price\""),
        ("objects.txt", b"{\"title\": \"a truck\"}\n", "\"title\""),
    ] {
        std::fs::write(at.join(name), bytes).unwrap();
        let refusals =
            [run(at, &["--input", name]), common::fed(at, &["embed", "-m", "model"], bytes)];
        for output in &refusals {
            let said = err(output);
            assert_eq!(output.status.code(), Some(3), "{name}: {said}");
            assert!(said.contains(word) && !said.contains("lossy"), "{name}: {said}");
            assert!(output.stdout.is_empty(), "{name}");
        }
    }
    for name in ["vectors.npy", "model/model.safetensors"] {
        let said = err(&run(at, &["--input", name]));
        assert!(said.contains("a file of ") && !said.contains("lossy"), "{name}: {said}");
    }
    let said = err(&run(at, &["--input", "table.txt"]));
    let hint = "--column NAME names the one with the texts; --lines takes each line as a text";
    assert!(said.contains(hint), "{said}");
    let forced = run(at, &["--input", "table.txt", "--lines"]);
    assert!(out(&forced).starts_with("{\"text\": \"id,text,price\""), "{}", err(&forced));
    // Commas by themselves make no table.
    std::fs::write(at.join("prose.txt"), "a truck, a lorry\nthe road, the town\nfull, empty\n")
        .unwrap();
    assert_eq!(out(&run(at, &["--input", "prose.txt"])).lines().count(), 3);
}

/// What a model leaves out of long texts is said, by every verb that leaves it out.
#[test]
fn texts_that_are_cut_are_counted() {
    let folder = samples();
    let at = folder.path();
    // The sample takes 32 tokens, two of which are marks.
    let (fits, long) = ("a ".repeat(30), "a ".repeat(31));
    let note = "note: 1 text has more than 32 tokens; the rest was ignored\n";
    for (text, said) in [(&fits, ""), (&long, note)] {
        assert_eq!(err(&run(at, &[text, "a"])), said);
        assert_eq!(err(&common::run(at, &["tokenize", "-m", "model", text])), said);
        assert_eq!(err(&common::run(at, &["compare", "-m", "model", text, "a"])), said);
    }
    let many = format!("{long}\n{fits}\n").repeat(300);
    std::fs::write(at.join("many.txt"), many).unwrap();
    let output = run(at, &["-i", "many.txt", "-o", "many.npy", "--json"]);
    let report: Json = serde_json::from_str(&out(&output)).unwrap();
    assert_eq!((&report["cut"], &report["rows"]), (&300.into(), &600.into()));
    assert!(err(&run(at, &["-i", "many.txt"])).contains("300 texts have more than 32 tokens"));
    assert_eq!(err(&run(at, &[&long, "--max-tokens", "40"])), "");
}

#[test]
fn the_name_of_a_file_as_a_text_is_noted() {
    let folder = samples();
    let at = folder.path();
    std::fs::write(at.join("notes.txt"), "a truck\n").unwrap();
    let output = run(at, &["notes.txt", "a truck"]);
    assert!(output.status.success() && out(&output).starts_with("{\"text\": \"notes.txt\""));
    let note = "note: notes.txt is a file; its name was used as the text, not its content";
    assert_eq!(err(&output), format!("{note}; -i notes.txt reads it\n"));
    let output = common::run(at, &["compare", "-m", "model", "notes.txt", "a"]);
    assert_eq!(err(&output), format!("{note}\n"));
    let output = common::run(at, &["tokenize", "-m", "model", "notes.txt"]);
    assert_eq!(err(&output), format!("{note}; < notes.txt reads its lines\n"));
}

#[test]
fn a_line_without_end_is_an_error() {
    let folder = samples();
    let at = folder.path();
    let mut file = std::fs::File::create(at.join("long.txt")).unwrap();
    for _ in 0..17 {
        file.write_all(&vec![b'x'; 1 << 20]).unwrap();
    }
    file.write_all(b"\nshort\n").unwrap();
    let output = run(at, &["--input", "long.txt"]);
    assert_eq!(output.status.code(), Some(3));
    assert!(err(&output).contains("line 1: it is longer than 16 MiB"), "{}", err(&output));
    let output = run(at, &["--input", "long.txt", "--skip-bad"]);
    assert_eq!(out(&output).lines().count(), 1);
}

#[test]
fn one_bad_line_of_very_many_is_named() {
    let folder = samples();
    let at = folder.path();
    let mut text: String =
        (0..100_000).map(|i| format!("{{\"text\": \"t {}\"}}\n", i % 10)).collect();
    let place = text.match_indices('\n').nth(56_788).unwrap().0 + 1;
    text.replace_range(place..=place, "<");
    std::fs::write(at.join("many.jsonl"), &text).unwrap();
    let arguments = ["--input", "many.jsonl", "--output", "many.npy", "--dimensions", "2"];
    let output = run(at, &arguments);
    assert_eq!(output.status.code(), Some(3));
    let said = err(&output);
    assert!(
        said.contains("many.jsonl: line 56790: not JSON: expected value at column 1"),
        "{said}"
    );
    assert!(said.contains("56,320 finished rows are kept in many.npy.partial"), "{said}");
    assert!(said.contains("--skip-bad"), "{said}");
    // The work before it is not lost.
    let output = run(at, &[&arguments[..], &["--resume", "--skip-bad", "--json"]].concat());
    assert!(output.status.success(), "{}", err(&output));
    let report: Json = serde_json::from_str(&out(&output)).unwrap();
    assert_eq!(report["rows"], 99_999);
    assert_eq!(report["resumed"], 56_320);
    assert_eq!(report["skipped"], 1);
    assert_eq!(names(at), ["many.jsonl", "many.npy"]);
}

#[test]
fn a_model_that_was_cut_short_is_refused() {
    let folder = samples();
    let at = folder.path();
    for file in ["model/model.safetensors", "model/vocab.txt", "model/config.json"] {
        let whole = std::fs::read(at.join(file)).unwrap();
        std::fs::write(at.join(file), &whole[..whole.len() / 2]).unwrap();
        let output = run(at, &["a truck", "--output", "out.npy"]);
        // A shorter list of words may be another one.
        if file != "model/vocab.txt" {
            assert!(matches!(output.status.code(), Some(2 | 3)), "{file}: {}", err(&output));
            assert!(err(&output).starts_with("error"), "{}", err(&output));
            assert_eq!(names(at), <[&str; 0]>::default());
        }
        let _ = std::fs::remove_file(at.join("out.npy"));
        std::fs::write(at.join(file), &whole).unwrap();
    }
}

/// Lines that take some time, all different.
fn many_lines(count: usize) -> String {
    (0..count).map(|i| format!("truck number {i} is on the road to town {}\n", i * 7)).collect()
}

#[cfg(unix)]
#[test]
fn a_killed_run_goes_on_and_gives_the_same_file() {
    let folder = samples();
    let at = folder.path();
    std::fs::write(at.join("in.txt"), many_lines(30_000)).unwrap();
    let common = ["--input", "in.txt", "--batch", "256"];
    for (name, beside) in [("v.npy", ""), ("v.jsonl", ""), ("v.i8bin", "meta.json")] {
        let whole = at.join("whole");
        std::fs::create_dir(&whole).unwrap();
        let path = format!("whole/{name}");
        assert!(run(at, &[&common[..], &["-o", &path]].concat()).status.success());

        let arguments = [&common[..], &["-o", name]].concat();
        let mut child = program(at, &arguments).stderr(Stdio::null()).spawn().unwrap();
        let journal = at.join(format!("{name}.partial"));
        let began = Instant::now();
        while std::fs::metadata(&journal).map_or(0, |m| m.len()) < 4 * 32 * 2000 {
            assert!(began.elapsed() < Duration::from_secs(120), "nothing happens");
            assert!(child.try_wait().unwrap().is_none(), "it ended too soon");
            std::thread::sleep(Duration::from_millis(1));
        }
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(!at.join(name).exists());

        let again = run(at, &arguments);
        assert_eq!(again.status.code(), Some(2));
        assert!(err(&again).contains("--resume goes on with it; --force starts over"));
        let other = run(at, &[&arguments[..], &["--resume", "--no-normalize"]].concat());
        assert_eq!(other.status.code(), Some(2));
        let resumed = run(at, &[&arguments[..], &["--resume", "--json"]].concat());
        assert!(resumed.status.success(), "{}", err(&resumed));
        let report: Json = serde_json::from_str(&out(&resumed)).unwrap();
        assert!(report["resumed"].as_u64().unwrap() >= 1792, "{report}");
        let same = |name: &str| {
            assert!(
                std::fs::read(at.join(name)).unwrap() == std::fs::read(whole.join(name)).unwrap()
            );
            std::fs::remove_file(at.join(name)).unwrap();
        };
        same(name);
        if !beside.is_empty() {
            same(beside);
        }
        std::fs::remove_dir_all(&whole).unwrap();
        assert_eq!(names(at), ["in.txt"]);
    }
}

/// The system refuses to make files longer: what a full disk looks like to a program.
#[cfg(unix)]
fn limited(folder: &Path, blocks: u32, arguments: &str) -> Output {
    let program = env!("CARGO_BIN_EXE_weighbridge");
    let script =
        format!("trap '' XFSZ; ulimit -f {blocks}; exec {program} embed --model model {arguments}");
    let mut command = Command::new("bash");
    command.args(["-c", &script]).current_dir(folder).stdin(Stdio::null());
    command.output().unwrap()
}

#[cfg(unix)]
#[test]
fn a_full_disk_leaves_a_journal_and_no_file() {
    let folder = samples();
    let at = folder.path();
    std::fs::write(at.join("in.txt"), many_lines(2000)).unwrap();
    assert!(run(at, &["--input", "in.txt", "-o", "whole.npy"]).status.success());
    // Full while rows are collected (2000 rows have 250 KiB), and while the file is written.
    for (blocks, options) in [(150, "--to npy"), (200, "--to npy"), (300, "--to jsonl")] {
        let output = limited(at, blocks, &format!("--input in.txt -o out.npy {options}"));
        assert_eq!(output.status.code(), Some(4), "{}", err(&output));
        assert!(err(&output).contains("finished rows are kept"), "{}", err(&output));
        let left = [
            "in.txt",
            "out.npy.partial",
            "out.npy.partial.hashes",
            "out.npy.partial.json",
            "out.npy.partial.records",
            "out.npy.partial.windows",
            "whole.npy",
        ];
        let mut found = names(at);
        found.retain(|name| !name.ends_with(".document"));
        assert_eq!(found, left);
        let output = run(at, &["--input", "in.txt", "-o", "out.npy", "--resume"]);
        assert!(output.status.success(), "{}", err(&output));
        assert!(
            std::fs::read(at.join("out.npy")).unwrap()
                == std::fs::read(at.join("whole.npy")).unwrap()
        );
        std::fs::remove_file(at.join("out.npy")).unwrap();
        assert_eq!(names(at), ["in.txt", "whole.npy"]);
    }
}

#[cfg(unix)]
#[test]
fn a_full_standard_output_is_said() {
    if !Path::new("/dev/full").exists() {
        return skip_on_this_machine("no /dev/full");
    }
    let folder = samples();
    let at = folder.path();
    std::fs::write(at.join("in.txt"), many_lines(2000)).unwrap();
    let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
    let output = program(at, &["--input", "in.txt"]).stdout(full).output().unwrap();
    assert_eq!(output.status.code(), Some(4), "{}", err(&output));
    assert!(err(&output).contains("standard output"), "{}", err(&output));
}

#[test]
fn texts_that_are_there_twice_are_no_words_but_vectors() {
    let folder = samples();
    let at = folder.path();
    std::fs::write(at.join("in.txt"), "a truck\na lorry\na truck\n").unwrap();
    let same = ["--input", "in.txt", "-o", "out", "--batch", "2", "--to"];
    let output = run(at, &[&same[..], &["finalfusion"]].concat());
    assert_eq!(output.status.code(), Some(2));
    let said = err(&output);
    assert!(said.contains("text 3, \"a truck\", is the same as text 1"), "{said}");
    assert!(said.contains("2 finished rows") && said.contains("--resume"), "{said}");
    let output = run(at, &[&same[..], &["npy", "--resume", "--json"]].concat());
    let report: Json = serde_json::from_str(&out(&output)).unwrap();
    assert_eq!(report["resumed"], 2, "{}", err(&output));
    assert_eq!(names(at), ["in.txt", "out"]);
}

#[cfg(unix)]
#[test]
fn a_reader_that_went_away_ends_it() {
    let folder = samples();
    let at = folder.path();
    std::fs::write(at.join("in.txt"), many_lines(20_000)).unwrap();
    let mut child = program(at, &["--input", "in.txt"]).stdout(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    assert!(child.wait().unwrap().success());
}
