//! Files that have no end, that nobody writes, that change while they are used, and that want to write
//! on the terminal.

mod common;

use common::{err, out, program, run};
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};

/// A folder with what `quickstart` makes, and a small model.
fn samples() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let output = run(folder.path(), &["quickstart", ".", "--offline"]);
    assert!(output.status.success(), "{}", err(&output));
    weighbridge::samples::write_encoder(&folder.path().join("model")).unwrap();
    folder
}

/// Every way to name a file of words, questions, texts or figures.
fn ways(input: &str) -> Vec<Vec<&str>> {
    vec![
        vec!["select", "words.fifu", input, "out.fifu"],
        vec!["evaluate", "words.fifu", input],
        vec!["quantize", "model", "out.mcf", "--method", "q4", "--calibrate-with", input],
        vec!["quantize", "model", "out.mcf", "--method", "q4", "--importance", input],
        vec!["diff", "model", "model", "--texts", input],
        vec!["embed", "--model", "model", "-i", input],
        vec!["embed", "--model", "model", "-i", input, "-o", "out.npy"],
        vec!["convert", "words.fifu", "out.fifu", "--words", input],
        vec!["inspect", input],
        vec!["verify", input],
    ]
}

#[cfg(target_os = "linux")]
#[test]
fn what_has_no_end_is_refused() {
    let folder = samples();
    let at = folder.path();
    assert!(Command::new("mkfifo").arg(at.join("pipe")).status().unwrap().success());
    std::fs::create_dir(at.join("folder")).unwrap();
    for (input, said) in [
        ("/dev/zero", "it is a device"),
        ("/dev/urandom", "it is a device"),
        ("pipe", "nobody writes to"),
        ("folder", ""),
    ] {
        let running: Vec<_> = ways(input)
            .into_iter()
            .map(|way| {
                let mut command = program(at, &way);
                let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
                (way, child)
            })
            .collect();
        for (way, child) in running {
            let output = child.wait_with_output().unwrap();
            let text = err(&output) + &out(&output);
            let code = output.status.code();
            assert!(code.is_some_and(|c| (1..=4).contains(&c)), "{way:?}: {code:?} {text}");
            assert!(text.contains(said), "{way:?}: {text}");
            assert!(!text.contains("panicked"), "{way:?}: {text}");
        }
    }
    assert!(!at.join("out.fifu").exists() && !at.join("out.npy").exists());
}

/// What is bounded where it has an end may come through a pipe.
#[cfg(target_os = "linux")]
#[test]
fn pipes_with_an_end_are_read() {
    let folder = samples();
    let at = folder.path();
    let shell = |script: &str| {
        let program = env!("CARGO_BIN_EXE_weighbridge");
        let script = script.replace("WB", program);
        Command::new("bash").args(["-c", &script]).current_dir(at).output().unwrap()
    };
    for script in [
        "WB select words.fifu <(echo truck) out.fifu --force",
        "echo truck | WB select words.fifu /dev/stdin out.fifu --force",
        "echo truck | WB select words.fifu - out.fifu --force",
        "WB embed --model model -i <(sleep 0.1; echo a text)",
        "WB evaluate words.fifu <(echo truck lorry king queen)",
        "WB inspect <(cat words.fifu)",
    ] {
        let output = shell(script);
        assert!(output.status.success(), "{script}: {}", err(&output));
    }
    // Whatever goes on and on ends at a limit.
    for script in
        ["yes | WB select words.fifu - out.fifu --force", "yes | WB evaluate words.fifu /dev/stdin"]
    {
        let output = shell(script);
        assert_eq!(output.status.code(), Some(5), "{script}: {}", err(&output));
    }
    let output = shell("head -c 40000000 /dev/zero | WB lookup words.fifu");
    assert_eq!(output.status.code(), Some(3), "{}", err(&output));
    assert!(err(&output).contains("line 1 is longer"), "{}", err(&output));
}

/// A file that is rewritten or cut while questions are asked ends the answers with an error.
#[cfg(target_os = "linux")]
#[test]
fn a_file_that_changes_between_two_questions_is_an_error() {
    let folder = samples();
    let at = folder.path();
    let bytes = std::fs::read(at.join("words.fifu")).unwrap();
    let zeros = |path: &Path| {
        let mut file = std::fs::File::options().write(true).open(path).unwrap();
        file.write_all(&vec![0xEE; bytes.len()]).unwrap();
        file.set_modified(std::time::SystemTime::now() + std::time::Duration::from_secs(9))
            .unwrap();
    };
    let cut = |path: &Path| {
        std::fs::File::options().write(true).open(path).unwrap().set_len(0).unwrap();
    };
    let changes: [&dyn Fn(&Path); 2] = [&zeros, &cut];
    for (change, said) in changes.into_iter().zip(["rewritten", ""]) {
        for verb in [vec!["lookup"], vec!["lookup", "--json"], vec!["similar"]] {
            let path = at.join("words.fifu");
            std::fs::write(&path, &bytes).unwrap();
            let mut command = program(at, &[&verb[..1], &["words.fifu"], &verb[1..]].concat());
            let pipes = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
            let mut child = pipes.spawn().unwrap();
            let mut stdin = child.stdin.take().unwrap();
            let mut stdout = BufReader::new(child.stdout.take().unwrap());
            stdin.write_all(b"truck\n").unwrap();
            let mut line = String::new();
            stdout.read_line(&mut line).unwrap();
            assert!(line.contains("truck"), "{line}");
            change(&path);
            // The program may be gone already.
            let _ = stdin.write_all(b"lorry\n");
            drop(stdin);
            let (mut rest, mut errors) = (String::new(), String::new());
            stdout.read_to_string(&mut rest).unwrap();
            child.stderr.take().unwrap().read_to_string(&mut errors).unwrap();
            assert_eq!(child.wait().unwrap().code(), Some(4), "{verb:?} {rest} {errors}");
            let text = errors + &rest;
            assert!(text.contains(said) && !text.contains("panicked"), "{text}");
        }
    }
}

/// Nothing from a file commands the terminal in JSON either, and the JSON says the same.
#[test]
fn json_escapes_what_text_escapes() {
    let folder = samples();
    let at = folder.path();
    let hostile = "a\u{7f}\u{9b}31m\u{202e}\u{2066}\u{61c}\u{200f}b é 東京";
    let set = format!("model_name={hostile}");
    let made = run(at, &["convert", "tiny.weights", "evil.weights", "--set", &set]);
    assert!(made.status.success(), "{}", err(&made));
    for verb in [
        vec!["inspect", "evil.weights", "--json"],
        vec!["metadata", "evil.weights", "--json"],
        vec!["inspect", hostile, "--json"],
        vec!["embed", "--model", "model", "--json", hostile],
        vec!["tokenize", "--model", "model", "--json", hostile],
        vec!["lookup", "words.fifu", "--json", hostile],
        vec!["diff", "tiny.weights", "evil.weights", "--json"],
        vec!["inspect", "evil.weights"],
        vec!["metadata", "evil.weights"],
    ] {
        let shown = run(at, &verb);
        let text = out(&shown);
        let hidden = text.chars().find(|c| *c != '\n' && weighbridge::source::is_hidden(*c));
        assert_eq!(hidden, None, "{verb:?}: {text:?}");
        if verb.contains(&"--json") {
            let lines = text.lines().count();
            let value: Result<serde_json::Value, _> = serde_json::from_str(&text);
            assert!(value.is_ok() || lines > 1, "{verb:?}: {text}");
        }
    }
    let shown = run(at, &["metadata", "evil.weights", "--json"]);
    let value: serde_json::Value = serde_json::from_str(&out(&shown)).unwrap();
    assert!(value.to_string().contains(hostile), "{value}");
}
