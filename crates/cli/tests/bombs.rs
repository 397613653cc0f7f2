//! Small files that ask for much: every verb comes to an end on them, in a gibibyte of addresses.

#![cfg(unix)]

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use weighbridge_testkit::bombs;

/// Addresses that a child may have, in kibibytes.
const ADDRESSES: u32 = 1 << 20;
/// Far more than any verb takes; it keeps a hanging child from holding up the tests.
const PATIENCE: Duration = Duration::from_secs(60);

/// A run that comes to an end: fine, findings or differences, a refusal, malformed, a limit.
const ENDS: [i32; 5] = [0, 1, 2, 3, 5];

/// Runs the program, and says with which code it ended and what it said on standard error.
fn run(arguments: &[&str], folder: &Path) -> (Option<i32>, String) {
    let said = folder.join("stderr");
    let stderr = std::fs::File::create(&said).unwrap();
    let mut child = Command::new("sh")
        .args(["-c", &format!("ulimit -v {ADDRESSES}; exec \"$0\" \"$@\"")])
        .arg(env!("CARGO_BIN_EXE_weighbridge"))
        .args(arguments)
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(stderr)
        .spawn()
        .unwrap();
    let began = Instant::now();
    let code = loop {
        match child.try_wait().unwrap() {
            Some(status) => break status.code(),
            None if began.elapsed() > PATIENCE => {
                child.kill().unwrap();
                child.wait().unwrap();
                break None;
            }
            None => std::thread::sleep(Duration::from_millis(5)),
        }
    };
    (code, String::from_utf8_lossy(&std::fs::read(said).unwrap()).into_owned())
}

#[test]
fn every_verb_ends_on_every_bomb() {
    let folder = tempfile::tempdir().unwrap();
    let work = folder.path();
    std::fs::write(work.join("words.txt"), "a\n").unwrap();
    let mut runs = 0;
    let mut limits = 0;
    let mut bad = Vec::new();
    for bomb in bombs(1_000_000) {
        let path = bomb.write(work).unwrap();
        let file = path.to_str().unwrap();
        let is_model = bomb.open.is_empty();
        let mut verbs = vec![
            vec!["inspect", file, "--stats", "--values", "--bytes", "--vocab"],
            vec!["--no-mmap", "inspect", file, "--json", "--stats", "--values", "--bytes"],
            vec!["verify", file],
            vec!["--no-mmap", "verify", file],
            vec!["metadata", file],
            vec!["diff", file, file],
            vec!["quantize", file, "out.mcf", "--allow-loss", "--no-calibrate", "--force"],
            vec!["convert", file, "out.safetensors", "--allow-loss", "--force"],
            vec!["convert", file, "out.oinf", "--allow-loss", "--dtype", "f16", "--force"],
            vec!["--no-mmap", "convert", file, "out.mcf", "--allow-loss", "--force"],
        ];
        if is_model {
            let long = "a".repeat(10_000);
            std::fs::write(work.join("text.txt"), long).unwrap();
            verbs.push(vec!["tokenize", "--model", file, "a b"]);
            verbs.push(vec!["embed", "--model", file, "--lines", "--input", "text.txt"]);
            verbs.push(vec!["convert", file, "out", "--to", "hf", "--allow-loss", "--dry-run"]);
        } else {
            verbs.push(vec!["lookup", file, "a"]);
            verbs.push(vec!["similar", file, "a"]);
            verbs.push(vec!["select", file, "words.txt", "out.fifu", "--allow-loss", "--force"]);
            verbs.push(vec!["quantize", file, "out.fifu", "--method", "pq", "--force"]);
            verbs.push(vec![
                "convert",
                file,
                "out.i8bin",
                "--normalize",
                "--allow-loss",
                "--force",
            ]);
            verbs.push(vec!["convert", file, "out.jsonl", "--allow-loss", "--force"]);
        }
        for verb in verbs {
            let (code, said) = run(&verb, work);
            runs += 1;
            limits += usize::from(code == Some(5));
            if !code.is_some_and(|code| ENDS.contains(&code)) || said.contains("panicked") {
                let said: String = said.chars().take(300).collect();
                bad.push(format!("{} {:?}: {code:?} {said}", bomb.name, &verb[..2]));
            }
        }
    }
    assert!(bad.is_empty(), "{} of {runs}:\n{}", bad.len(), bad.join("\n"));
    // No bomb and no verb is left out unnoticed, and limits are what most of them meet.
    assert!(runs >= 660 && limits >= 60, "{runs} runs, {limits} of them met a limit");
}

/// More than sixteen times the input is written only when that was asked for.
#[test]
fn growth_is_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let work = folder.path();
    let named = |name: &str| bombs(100_000).into_iter().find(|b| b.name == name).unwrap();
    let file = named("oinf-matrices").write(work).unwrap();
    let file = file.to_str().unwrap();
    let (code, said) = run(&["convert", file, "out.safetensors"], work);
    assert_eq!(code, Some(5), "{said}");
    assert!(said.contains("--allow-growth") && !work.join("out.safetensors").exists(), "{said}");
    let (code, said) = run(&["convert", file, "out.safetensors", "--dry-run"], work);
    assert_eq!(code, Some(0), "{said}");
    let (code, said) = run(&["convert", file, "out.safetensors", "--allow-growth"], work);
    assert_eq!(code, Some(0), "{said}");
    let size = work.join("out.safetensors").metadata().unwrap().len();
    assert!(size > 16 << 20, "{size}");
    // Where the format lets tensors share their data, nothing grows.
    let (code, said) = run(&["convert", file, "out.mcf"], work);
    assert_eq!(code, Some(0), "{said}");
    assert!(work.join("out.mcf").metadata().unwrap().len() < 200_000);
}
