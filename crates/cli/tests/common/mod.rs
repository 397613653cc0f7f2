//! What the tests of the program share: starting it, and what it said.

#![allow(dead_code, reason = "each test program uses some of it")]

use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// The program in a folder, with nothing on standard input.
pub(crate) fn program(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_weighbridge"));
    command.args(arguments).current_dir(folder).stdin(Stdio::null()).env_remove("COLUMNS");
    command
}

pub(crate) fn run(folder: &Path, arguments: &[&str]) -> Output {
    program(folder, arguments).output().expect("the program starts")
}

/// Whether these tests were started with a signal ignored, as `nohup` and `&` do.
pub(crate) fn is_ignored(number: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> (number - 1) & 1 == 1)
}

/// With a text on standard input.
pub(crate) fn fed(folder: &Path, arguments: &[&str], text: impl Into<Vec<u8>>) -> Output {
    let mut command = program(folder, arguments);
    let pipes = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = pipes.spawn().unwrap();
    let (mut stdin, text) = (child.stdin.take().unwrap(), text.into());
    let writer = std::thread::spawn(move || stdin.write_all(&text));
    let output = child.wait_with_output().unwrap();
    // The program may have stopped before it had read everything.
    let _ = writer.join().unwrap();
    output
}

pub(crate) fn out(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

pub(crate) fn err(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// A folder with a small model in `model`.
pub(crate) fn folder_with_model() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    weighbridge::samples::write_encoder(&folder.path().join("model")).unwrap();
    folder
}

/// Every member of an output stands on the page of the JSON shapes, as `name`.
pub(crate) fn assert_on_the_page(value: &serde_json::Value, about: &str) {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/json.md");
    let page = std::fs::read_to_string(page).unwrap();
    let mut names = Vec::new();
    member_names(value, &mut names);
    let missing: Vec<_> = names.iter().filter(|n| !page.contains(&format!("`{n}`"))).collect();
    assert!(missing.is_empty(), "{about}: {missing:?} are not on docs/json.md");
}

fn member_names(value: &serde_json::Value, names: &mut Vec<String>) {
    // Their members are what a file calls its own things.
    const FREE: [&str; 5] = ["metadata", "sizevars", "special", "record", "records"];
    match value {
        serde_json::Value::Array(list) => list.iter().for_each(|v| member_names(v, names)),
        serde_json::Value::Object(map) => {
            for (name, value) in map {
                names.push(name.clone());
                if !FREE.contains(&name.as_str()) {
                    member_names(value, names);
                }
            }
        }
        _ => {}
    }
}
