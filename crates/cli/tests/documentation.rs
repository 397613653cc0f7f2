//! Every command shown in the documentation is run, and prints what is shown.

use std::path::{Path, PathBuf};
use std::process::Command;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

fn pages() -> Vec<PathBuf> {
    let root = Path::new(ROOT);
    let mut list: Vec<_> = ["README.md", "ARCHITECTURE.md", "COMPARE.md", "CONTRIBUTING.md"]
        .map(|p| root.join(p))
        .into();
    for folder in ["docs", "docs/formats"] {
        let entries = std::fs::read_dir(root.join(folder)).unwrap().map(|e| e.unwrap().path());
        list.extend(entries.filter(|p| p.extension().is_some_and(|e| e == "md")));
    }
    list
}

/// The program's folder comes first in the search path, and samples lie in the working folder.
fn shell(folder: &Path, command: &str) -> String {
    let program = Path::new(env!("CARGO_BIN_EXE_weighbridge"));
    let path =
        format!("{}:{}", program.parent().unwrap().display(), std::env::var("PATH").unwrap());
    let output = Command::new("sh")
        .arg("-c")
        .arg(format!("{command} 2>&1"))
        .current_dir(folder)
        .env("PATH", path)
        .env_remove("COLUMNS")
        .output();
    String::from_utf8(output.unwrap().stdout).unwrap()
}

/// Lines against lines; `...` alone stands for any number of them, `[..]` for any text in one.
fn fits(expected: &[&str], found: &[&str]) -> bool {
    match expected.split_first() {
        None => found.is_empty(),
        Some((&"...", rest)) => (0..=found.len()).any(|skip| fits(rest, &found[skip..])),
        Some((line, rest)) => {
            found.split_first().is_some_and(|(f, more)| line_fits(line, f) && fits(rest, more))
        }
    }
}

fn line_fits(expected: &str, found: &str) -> bool {
    match expected.trim_end().split_once("[..]") {
        None => expected.trim_end() == found.trim_end(),
        Some((start, end)) => {
            found.len() >= start.len() + end.len()
                && found.starts_with(start)
                && found.trim_end().ends_with(end)
        }
    }
}

/// The console blocks of a page: commands with the lines below them.
fn steps(page: &str) -> Vec<(String, Vec<String>)> {
    let mut list: Vec<(String, Vec<String>)> = Vec::new();
    let mut inside = false;
    for line in page.lines() {
        if line.starts_with("```") {
            inside = line == "```console";
        } else if let Some(command) = line.strip_prefix("$ ").filter(|_| inside) {
            list.push((command.to_owned(), Vec::new()));
        } else if inside {
            list.last_mut().expect("a console block starts with a command").1.push(line.to_owned());
        }
    }
    list
}

/// Blocks that are files, by name: "```json model.json".
fn files(page: &str) -> Vec<(&str, &str)> {
    let blocks = page.split("\n```json ").skip(1);
    blocks.filter_map(|block| block.split_once("\n```")?.0.split_once('\n')).collect()
}

#[test]
fn commands_print_what_the_pages_show() {
    let mut run = 0;
    for page in pages() {
        let text =
            std::fs::read_to_string(&page).unwrap_or_else(|e| panic!("{}: {e}", page.display()));
        let folder = tempfile::tempdir().unwrap();
        shell(folder.path(), "weighbridge quickstart --offline");
        for (name, content) in files(&text) {
            std::fs::write(folder.path().join(name), content).unwrap();
        }
        for (command, expected) in steps(&text) {
            assert!(command.starts_with("weighbridge "), "{}: {command}", page.display());
            let found = shell(folder.path(), &command);
            let expected: Vec<_> = expected.iter().map(String::as_str).collect();
            let lines: Vec<_> = found.lines().collect();
            assert!(
                fits(&expected, &lines),
                "{}: $ {command}\nexpected\n{}\nfound\n{found}",
                page.display(),
                expected.join("\n")
            );
            run += 1;
        }
    }
    assert!(run >= 10, "{run}");
}

/// The two commands of the README are these.
#[test]
fn the_readme_names_its_two_commands() {
    let readme = std::fs::read_to_string(Path::new(ROOT).join("README.md")).unwrap();
    for command in ["\ncargo run --release -- quickstart\n", "\n./test\n"] {
        assert!(readme.contains(command), "{command}");
    }
}

/// Each rule stands in its format's page, or in that of models, with its severity.
#[test]
fn every_rule_has_its_line() {
    let mut rules = 0;
    let text: String = pages().iter().map(|p| std::fs::read_to_string(p).unwrap()).collect();
    let of_formats = weighbridge::Formats::builtin().iter().flat_map(|format| format.info().rules);
    for rule in of_formats.chain(weighbridge::spec::model_rules()) {
        let severity = format!("{:?}", rule.severity).to_lowercase();
        let row = format!("| {} | {severity} |", rule.id);
        assert!(text.contains(&row), "{row} is missing");
        rules += 1;
    }
    assert!(rules > 80, "{rules}");
}
