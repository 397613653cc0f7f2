//! What people see: output that fits the terminal, long tables that are cut, progress, a pager, answers
//! as questions come, and last words on Ctrl-C.

mod common;

use common::{err, folder_with_model, is_ignored, out, program, run};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use weighbridge_testkit::data::{reference, skip_on_this_machine};

fn samples() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    assert!(run(folder.path(), &["quickstart", ".", "--offline"]).status.success());
    folder
}

/// What a command prints on so many columns.
fn on_columns(folder: &Path, columns: usize, arguments: &[&str]) -> String {
    let output = program(folder, arguments).env("COLUMNS", columns.to_string()).output().unwrap();
    out(&output) + &err(&output)
}

#[test]
fn nothing_is_wider_than_the_terminal() {
    let folder = samples();
    for columns in [60, 80, 100] {
        for arguments in [
            &["formats"][..],
            &["inspect", "tiny.weights", "--bytes", "--stats"],
            &["inspect", "tiny.oinf"],
            &["inspect", "tiny.mcf", "--values"],
            &["verify", "damaged.weights", "tiny.weights"],
            &["verify", "questions.txt"],
            &["quantize", "hf-model", "--method", "k4", "--report-only", "--all"],
            &["convert", "tiny.weights", "half.mcf", "--dtype", "f16"],
            &["convert", "hf-model", "whole.weights", "--dry-run"],
            &["diff", "tiny.weights", "hf-model"],
            &["search", "texts.i8bin", "public transport"],
            &["metadata", "tiny.weights"],
            &["tokenize", "-m", "hf-model", "a full truck"],
            &["models"],
            &["quantize", "--help"],
            &["embed", "--help"],
        ] {
            let text = on_columns(folder.path(), columns, arguments);
            assert!(text.lines().count() > 1, "{arguments:?}: {text}");
            // A word that is longer than a line is left whole.
            let wide = |line: &&str| line.chars().count() > columns && line.trim().contains(' ');
            let wide: Vec<_> = text.lines().filter(wide).collect();
            assert!(wide.is_empty(), "{arguments:?} on {columns} columns: {wide:#?}");
        }
    }
}

#[test]
fn what_is_no_terminal_gets_whole_names() {
    let folder = samples();
    let name = "encoder.layer.0.attention.output.LayerNorm.weight";
    assert!(out(&run(folder.path(), &["inspect", "tiny.weights"])).contains(name));
    let narrow = on_columns(folder.path(), 60, &["inspect", "tiny.weights"]);
    assert!(!narrow.contains(name) && narrow.contains("erNorm.weight"), "{narrow}");
    assert!(narrow.contains('…'), "{narrow}");
    let json = on_columns(folder.path(), 60, &["inspect", "tiny.weights", "--json"]);
    assert!(json.contains(name), "{json}");
}

#[test]
fn long_tables_show_ten_rows_and_all_of_them_when_asked() {
    let folder = samples();
    let at = folder.path();
    let rows = |text: &str, of: &str| text.lines().filter(|line| line.contains(of)).count();
    let quantize = ["quantize", "hf-model", "--report-only", "--no-calibrate"];
    let short = out(&run(at, &quantize));
    assert!(short.ends_with("  … and 5 more; --all lists them\n"), "{short}");
    assert_eq!(rows(&short, " q8 "), 10, "{short}");
    let whole = out(&run(at, &[&quantize[..], &["--all"]].concat()));
    assert!(!whole.contains("more; --all"), "{whole}");
    assert_eq!(rows(&whole, " q8 "), 15, "{whole}");
    let json = out(&run(at, &[&quantize[..], &["--json"]].concat()));
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["tensors"].as_array().unwrap().len(), 15);

    let diff = ["diff", "tiny.weights", "hf-model", "--tensors-only"];
    let short = out(&run(at, &diff));
    assert_eq!(rows(&short, "only in the second:"), 10, "{short}");
    assert!(short.contains("  … and 11 more; --all lists them\n"), "{short}");
    let whole = out(&run(at, &[&diff[..], &["--all"]].concat()));
    assert!(rows(&whole, "only in the second:") > 10 && !whole.contains("more;"), "{whole}");
}

/// Each line is answered before the next one is written.
#[test]
fn lines_are_answered_as_they_arrive() {
    let folder = samples();
    for (arguments, questions) in [
        (&["lookup", "words.fifu"][..], ["truck", "car"]),
        (&["similar", "words.fifu", "--json"], ["truck", "car"]),
        (&["analogy", "words.fifu", "--json"], ["man king woman", "woman queen man"]),
        (&["embed", "-m", "hf-model"], ["a full truck", "the car"]),
        (&["embed", "-m", "hf-model", "-i", "-"], ["a full truck", "the car"]),
        (&["embed", "-m", "hf-model", "--field", "t"], ["{\"t\": \"a\"}", "{\"t\": \"b\"}"]),
        (&["tokenize", "-m", "hf-model", "--json"], ["a full truck", "the car"]),
        (&["compare", "-m", "hf-model"], ["a full truck\tthe car", "the car\tthe car"]),
    ] {
        let mut child = program(folder.path(), arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut input = child.stdin.take().unwrap();
        let mut answers = BufReader::new(child.stdout.take().unwrap()).lines();
        for question in questions {
            writeln!(input, "{question}").unwrap();
            let answer = answers.next().unwrap().unwrap();
            assert!(!answer.is_empty(), "{arguments:?}: {question}");
        }
        drop(input);
        assert!(answers.next().is_none(), "{arguments:?}");
        assert!(child.wait().unwrap().success(), "{arguments:?}");
    }
    let bad = common::fed(folder.path(), &["compare", "-m", "hf-model"], "one text\n");
    assert_eq!(bad.status.code(), Some(2));
    assert!(err(&bad).contains("one text instead of two"), "{}", err(&bad));
}

#[cfg(unix)]
#[test]
fn ctrl_c_says_what_is_kept_and_how_to_go_on() {
    if is_ignored(2) {
        skip_on_this_machine("these tests were started with Ctrl-C ignored, and so are programs");
        return;
    }
    let folder = folder_with_model();
    let at = folder.path();
    let embed = ["embed", "-m", "model", "-o", "out.npy", "--batch", "2"];
    let mut child =
        program(at, &embed).stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    input.write_all(b"one\ntwo\nthree\nfour\nfive\n").unwrap();
    // Two windows are stored, and the third is not full.
    let windows = at.join("out.npy.partial.windows");
    let stored = || std::fs::read_to_string(&windows).unwrap_or_default().lines().count();
    while stored() < 2 && child.try_wait().unwrap().is_none() {
        std::thread::yield_now();
    }
    assert!(
        Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success()
    );
    let output = child.wait_with_output().unwrap();
    drop(input);
    assert_eq!(output.status.code(), Some(130));
    // The journal has a window a moment before the number is told.
    let said = err(&output);
    let kept =
        |n: u32| format!("stopped: {n} texts are kept in out.npy.partial; --resume goes on\n");
    assert!(said.ends_with(&kept(4)) || said.ends_with(&kept(2)), "{said}");
    let resume = [&embed[..], &["--resume"]].concat();
    let output = common::fed(at, &resume, "one\ntwo\nthree\nfour\nfive\n");
    assert!(out(&output).contains("4 of them from the run before"), "{}", err(&output));
}

/// A command line in a terminal of 80 columns and 24 lines, and what it shows there.
#[cfg(unix)]
fn in_terminal(folder: &Path, line: &str) -> Option<String> {
    let version = Command::new("script").arg("--version").output();
    if !version.is_ok_and(|v| String::from_utf8_lossy(&v.stdout).contains("util-linux")) {
        skip_on_this_machine("there is no script(1) of util-linux to make a terminal");
        return None;
    }
    let bin = Path::new(env!("CARGO_BIN_EXE_weighbridge")).parent().unwrap();
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    let output = Command::new("script")
        .args(["-qec", &format!("stty cols 80 rows 24; {line}"), "/dev/null"])
        .current_dir(folder)
        .env("PATH", path)
        .env("TERM", "xterm")
        .env_remove("COLUMNS")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[cfg(unix)]
#[test]
fn a_terminal_sees_how_far_the_work_is() {
    let folder = folder_with_model();
    let at = folder.path();
    let texts: String = (0..3000).map(|n| format!("text number {n}\n")).collect();
    std::fs::write(at.join("texts.txt"), texts).unwrap();
    let Some(seen) = in_terminal(at, "weighbridge embed -m model -i texts.txt -o v.npy") else {
        return;
    };
    assert!(seen.contains(" texts") && seen.contains(" left"), "{seen}");
    assert!(seen.contains("3,000 vectors"), "{seen}");
    // Calibration is counted in the values that it rounds.
    let seen = in_terminal(at, "weighbridge quantize model small.mcf").unwrap();
    assert!(seen.contains("calibrating model") && seen.contains(" values, "), "{seen}");
    let elsewhere = run(at, &["quantize", "model", "other.mcf"]);
    assert_eq!(err(&elsewhere), "");
}

#[cfg(unix)]
#[test]
fn a_terminal_sees_how_far_reranking_is() {
    let Some(model) = reference("families/cross-encoder-bert") else { return };
    let model = model.display().to_string();
    let folder = folder_with_model();
    let at = folder.path();
    let texts: String = (0..1000).map(|n| format!("lorry {n} is on the road\n")).collect();
    std::fs::write(at.join("texts.txt"), texts).unwrap();
    let rerank = format!("weighbridge rerank -m '{model}' lorries -i texts.txt -k 1");
    let Some(seen) = in_terminal(at, &rerank) else { return };
    assert!(seen.contains("reranking texts") && seen.contains("/1,000 texts"), "{seen}");
    let made = run(at, &["embed", "-m", "model", "-i", "texts.txt", "-o", "v.i8bin"]);
    assert!(made.status.success(), "{}", err(&made));
    let search = format!("weighbridge search v.i8bin lorries --rerank '{model}' -k 200");
    let seen = in_terminal(at, &search).unwrap();
    assert!(seen.contains("reranking hits") && seen.contains("/200 texts"), "{seen}");
    // Elsewhere nothing is drawn.
    let quiet = run(at, &["rerank", "-m", &model, "lorries", "-i", "texts.txt", "-k", "1"]);
    assert_eq!(err(&quiet), "");
}

#[cfg(unix)]
#[test]
fn inspect_goes_through_the_pager_on_a_terminal() {
    let folder = samples();
    let at = folder.path();
    let marks = "PAGER='sed s/^/page:/' weighbridge inspect";
    let Some(seen) = in_terminal(at, &format!("{marks} tiny.weights")) else { return };
    let lines: Vec<_> = seen.lines().filter(|line| !line.is_empty()).collect();
    assert!(lines.len() > 24 && lines.iter().all(|line| line.starts_with("page:")), "{seen}");
    // What fits the screen needs none, nor does what is not shown there.
    let seen = in_terminal(at, &format!("{marks} npy/embeddings.npy")).unwrap();
    assert!(!seen.contains("page:"), "{seen}");
    let seen = in_terminal(at, &format!("{marks} tiny.weights | cat")).unwrap();
    assert!(!seen.contains("page:") && seen.contains("tensors"), "{seen}");
    // A pager that is not wanted or not there.
    for pager in ["cat", "", "no-such-pager -x"] {
        let line = format!("PAGER='{pager}' weighbridge inspect tiny.weights");
        let seen = in_terminal(at, &line).unwrap();
        assert!(seen.contains("LayerNorm") && !seen.contains("page:"), "{pager}: {seen}");
    }
    // Whoever leaves early is no error.
    let line = "PAGER='head -1' weighbridge inspect tiny.weights; echo code $?";
    let seen = in_terminal(at, line).unwrap();
    assert!(seen.contains("code 0") && !seen.contains("tensors"), "{seen}");
}

/// Every step of quickstart can be typed, and prints the same again.
#[cfg(unix)]
#[test]
fn the_steps_of_quickstart_can_be_typed() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let output = run(at, &["quickstart", "a folder", "--offline"]);
    assert!(output.status.success(), "{}", err(&output));
    let shown = out(&output);
    let (mut steps, mut lines) = (0, shown.lines().peekable());
    while let Some(line) = lines.next() {
        let Some(command) = line.strip_prefix("$ ") else { continue };
        let mut expected = String::new();
        while let Some(line) = lines.next_if(|line| !line.is_empty() && !line.starts_with("$ ")) {
            if !line.starts_with("took ") {
                expected.push_str(line);
                expected.push('\n');
            }
        }
        let typed = Command::new("sh").args(["-c", command]).current_dir(at).output().unwrap();
        assert!(out(&typed).starts_with(&expected), "{command}\n{}\n{shown}", out(&typed));
        assert!(!expected.is_empty(), "{command}");
        steps += 1;
    }
    assert!(steps >= 12, "{steps}: {shown}");
    let best = shown.find("How do I bake a loaf?").unwrap();
    assert!(shown[..best].lines().count() < 16, "{shown}");
}
