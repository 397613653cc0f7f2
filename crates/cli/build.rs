//! Tells the program which commit it is made from and for which machine.

// Cargo reads what a build script prints.
#![allow(clippy::disallowed_macros)]

use std::path::Path;
use std::process::Command;

fn main() {
    let target = std::env::var("TARGET").unwrap_or_default();
    println!("cargo::rustc-env=WEIGHBRIDGE_TARGET={target}");
    println!(
        "cargo::rustc-env=WEIGHBRIDGE_COMMIT={}",
        packaged().or_else(checked_out).unwrap_or_default()
    );
    println!("cargo::rerun-if-changed=build.rs");
}

/// Of a package: `cargo package` notes the commit in it.
fn packaged() -> Option<String> {
    const NOTE: &str = ".cargo_vcs_info.json";
    let note = std::fs::read_to_string(NOTE).ok()?;
    println!("cargo::rerun-if-changed={NOTE}");
    let (_, hash) = note.split_once("\"sha1\"")?;
    hash.split('"').nth(1).map(short)
}

/// Of a checkout; a repository further up is that of somebody else.
fn checked_out() -> Option<String> {
    Path::new("../../.git").exists().then_some(())?;
    // The log has a line more after each commit, and exists in worktrees too.
    for file in ["HEAD", "logs/HEAD"] {
        let path = git(&["rev-parse", "--git-path", file])?;
        if Path::new(&path).exists() {
            println!("cargo::rerun-if-changed={path}");
        }
    }
    git(&["rev-parse", "HEAD"]).map(|hash| short(&hash))
}

fn short(hash: &str) -> String {
    hash.chars().take(12).collect()
}

/// What git prints; nothing where there is no git.
fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    (output.status.success()).then(|| text.trim().to_owned())
}
