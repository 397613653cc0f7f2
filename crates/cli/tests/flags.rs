//! Flags that verbs share, old spellings of them, and what is suggested to who mistyped something.

mod common;

use common::{assert_on_the_page, err, out, program, run};
use std::path::Path;
use std::process::Output;

/// A folder with samples of every kind.
fn samples() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let made = run(folder.path(), &["quickstart", "--offline", "-o", "."]);
    assert!(made.status.success(), "{}", err(&made));
    folder
}

fn fine(folder: &Path, arguments: &[&str]) -> Output {
    let output = run(folder, arguments);
    assert!(output.status.success(), "{arguments:?}: {}", err(&output));
    output
}

fn files(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap().flatten();
    let mut list: Vec<_> = entries.map(|e| e.file_name().to_string_lossy().into_owned()).collect();
    list.sort();
    list
}

#[test]
fn an_output_is_an_argument_or_a_flag() {
    let folder = samples();
    let at = folder.path();
    for (verb, before, name) in [
        ("convert", vec!["tiny.weights"], "out.oinf"),
        ("select", vec!["words.fifu", "wanted.txt", "--ignore-unknown"], "out.fifu"),
        ("quantize", vec!["tiny.weights"], "out.mcf"),
    ] {
        let mut made = Vec::new();
        for how in [vec![name], vec!["-o", name], vec!["--output", name]] {
            let line = [vec![verb], before.clone(), how, vec!["--force"]].concat();
            fine(at, &line);
            made.push(std::fs::read(at.join(name)).unwrap());
        }
        assert!(made[0] == made[1] && made[1] == made[2], "{verb}");
        let both = run(at, &[vec![verb], before.clone(), vec![name, "-o", name]].concat());
        assert_eq!(both.status.code(), Some(2), "{verb}: {}", err(&both));
        let neither = run(at, &[vec![verb], before].concat());
        assert_eq!(neither.status.code(), Some(2), "{verb}: {}", err(&neither));
    }
}

#[test]
fn old_spellings_still_work() {
    let folder = samples();
    let at = folder.path();
    let old = fine(at, &["quantize", "tiny.weights", "--report-only"]);
    assert_eq!(out(&old), out(&fine(at, &["quantize", "tiny.weights", "--dry-run"])));
    fine(at, &["metadata", "words.fifu", "--set", "a=b", "--out", "old.fifu"]);
    fine(at, &["metadata", "words.fifu", "--set", "a=b", "-o", "new.fifu"]);
    let read = |name: &str| std::fs::read(at.join(name)).unwrap();
    assert!(read("old.fifu") == read("new.fifu"));
    fine(at, &["formats", "--colour", "never"]);
    fine(at, &["convert", "tiny.weights", "--out", "old.oinf", "--report-only"]);
    fine(at, &["quantize", "tiny.weights", "--out", "old.mcf", "--report-only"]);
    fine(at, &["select", "words.fifu", "wanted.txt", "--ignore-unknown", "--out", "o.fifu"]);
    // They are not shown to who looks for the new ones.
    for verb in ["quantize", "metadata"] {
        let help = out(&fine(at, &[verb, "--help"]));
        assert!(!help.contains("--report-only") && !help.contains("--out "), "{help}");
    }
}

#[test]
fn dry_runs_write_nothing() {
    let folder = samples();
    let at = folder.path();
    let (before, words) = (files(at), std::fs::read(at.join("words.fifu")).unwrap());
    for line in [
        "convert tiny.weights new.oinf --dry-run",
        "select words.fifu wanted.txt -o new.fifu --ignore-unknown --dry-run",
        "quantize tiny.weights new.mcf --dry-run",
        "metadata words.fifu --set a=b --dry-run",
        "embed --model hf-model --input wanted.txt -o new.npy --dry-run",
    ] {
        let arguments: Vec<_> = line.split(' ').collect();
        let said = out(&fine(at, &arguments));
        assert!(said.contains("would write") || line.starts_with("quantize"), "{line}: {said}");
        let said = out(&fine(at, &[&arguments[..], &["--json"]].concat()));
        let json: serde_json::Value = serde_json::from_str(&said).unwrap();
        assert_eq!(json["written"], false, "{line}");
        assert_on_the_page(&json, line);
        // Quiet or not, this is what was asked for.
        assert!(!fine(at, &[&arguments[..], &["-q"]].concat()).stdout.is_empty(), "{line}");
    }
    assert_eq!(files(at), before);
    assert!(std::fs::read(at.join("words.fifu")).unwrap() == words);
    let said = out(&fine(
        at,
        &"embed -m hf-model -i wanted.txt -o words.fifu --dry-run".split(' ').collect::<Vec<_>>(),
    ));
    assert!(said.contains("4 vectors of 32 values") && said.contains("--force"), "{said}");
}

#[test]
fn models_are_not_removed_by_a_dry_run() {
    let folder = tempfile::tempdir().unwrap();
    let model = folder.path().join("cache/models/minilm");
    weighbridge::samples::write_encoder(&model).unwrap();
    let remove = |flags: &[&str]| {
        let line = [&["models", "remove", "minilm"], flags].concat();
        let mut command = program(folder.path(), &line);
        command.env("WEIGHBRIDGE_CACHE", folder.path().join("cache"));
        command.env("HF_HUB_CACHE", folder.path().join("hub")).output().unwrap()
    };
    let said = out(&remove(&["--dry-run"]));
    assert!(said.contains("would remove minilm") && model.exists(), "{said}");
    let planned = out(&remove(&["--dry-run", "--json"]));
    assert_eq!(planned, out(&remove(&["--json"])));
    assert!(!model.exists());
}

#[test]
fn quiet_leaves_answers_and_errors() {
    let folder = samples();
    let at = folder.path();
    for line in [
        "convert tiny.weights out.oinf -q",
        "-q convert tiny.weights out.oinf --force",
        "select words.fifu wanted.txt few.fifu --ignore-unknown --quiet",
        "quantize tiny.weights out.mcf -q",
        "metadata words.fifu --set a=b -o out.fifu -q",
        "embed --model hf-model wanted.txt -o out.npy -q",
        "verify tiny.weights tiny.oinf -q",
        "man -o pages -q",
    ] {
        let output = fine(at, &line.split(' ').collect::<Vec<_>>());
        assert_eq!((out(&output), err(&output)), (String::new(), String::new()), "{line}");
    }
    // A word that is a name of a file gets a note, which is no answer.
    let texts = ["compare", "--model", "hf-model", "wanted.txt", "b"];
    assert!(err(&fine(at, &texts)).contains("note"));
    let quiet = fine(at, &[&texts[..], &["-q"]].concat());
    assert!(err(&quiet).is_empty() && !quiet.stdout.is_empty());
    for (line, code) in [
        ("verify tiny.weights damaged.weights -q", 1),
        ("similar words.fifu truck -q", 0),
        ("convert tiny.weights out.oinf --force --json -q", 0),
    ] {
        let output = run(at, &line.split(' ').collect::<Vec<_>>());
        assert_eq!(output.status.code(), Some(code), "{line}");
        assert!(!output.stdout.is_empty(), "{line}");
    }
    let verdict = out(&run(at, &["verify", "tiny.weights", "damaged.weights", "-q"]));
    assert!(!verdict.contains("tiny.weights") && verdict.contains("damaged.weights"), "{verdict}");
    let failed = run(at, &["inspect", "no-such-file.npy", "-q"]);
    assert!(err(&failed).contains("error"), "{}", err(&failed));
}

#[test]
fn verbose_says_more_on_standard_error() {
    let folder = samples();
    let at = folder.path();
    let (plain, more) =
        (fine(at, &["inspect", "tiny.oinf"]), fine(at, &["inspect", "tiny.oinf", "-v"]));
    assert_eq!(out(&plain), out(&more));
    assert_eq!(err(&plain), "");
    let said = err(&more);
    assert!(said.contains("tiny.oinf: oinf, ") && said.contains("took "), "{said}");
    let pieces = err(&fine(at, &["-v", "--no-mmap", "inspect", "tiny.oinf"]));
    assert!(pieces.contains("in pieces"), "{pieces}");
    assert_eq!(run(at, &["formats", "-q", "-v"]).status.code(), Some(2));
}

#[test]
fn colours_are_there_when_they_are_asked_for() {
    let folder = samples();
    let at = folder.path();
    let coloured = |arguments: &[&str], variable: &str| {
        let mut command = program(at, arguments);
        command.env_remove("NO_COLOR").env_remove("CLICOLOR_FORCE");
        if !variable.is_empty() {
            command.env(variable, "1");
        }
        let output = command.output().unwrap();
        (out(&output) + &err(&output)).contains('\x1b')
    };
    for line in [
        vec!["verify", "tiny.weights"],
        vec!["verify", "damaged.weights"],
        vec!["inspect", "no-such-file.npy"],
        vec!["convert", "--no-such-flag"],
        vec!["--help"],
    ] {
        assert!(!coloured(&line, ""), "{line:?}");
        assert!(coloured(&line, "CLICOLOR_FORCE"), "{line:?}");
        let always = [&["--color", "always"], &line[..]].concat();
        assert!(coloured(&always, ""), "{line:?}");
        assert!(coloured(&always, "NO_COLOR"), "{line:?}");
        assert!(!coloured(&[&["--color=never"], &line[..]].concat(), "CLICOLOR_FORCE"), "{line:?}");
    }
    assert!(!coloured(&["verify", "tiny.weights", "--json", "--color", "always"], ""));
}

#[test]
fn every_reader_can_be_told_the_format() {
    let folder = samples();
    let at = folder.path();
    std::fs::copy(at.join("tiny.weights"), at.join("first.data")).unwrap();
    std::fs::copy(at.join("tiny.weights"), at.join("second.data")).unwrap();
    fine(at, &["diff", "first.data", "second.data", "--from", "embd"]);
    for line in [
        "diff first.data second.data --from npy",
        "embed -m hf-model text --from npy",
        "compare -m hf-model a b --from npy",
        "tokenize -m hf-model a --from npy",
    ] {
        let output = run(at, &line.split(' ').collect::<Vec<_>>());
        assert!(!output.status.success(), "{line}: {}", out(&output));
    }
    for line in ["embed -m hf-model text", "compare -m hf-model a b", "tokenize -m hf-model a"] {
        fine(at, &[&line.split(' ').collect::<Vec<_>>()[..], &["--from", "hf"]].concat());
    }
    // Rows without a header need their number of values, in both files.
    std::fs::create_dir(at.join("bare")).unwrap();
    std::fs::write(at.join("bare/a.f32bin"), [0; 32]).unwrap();
    let rows = ["diff", "bare/a.f32bin", "bare/a.f32bin"];
    assert!(!run(at, &rows).status.success());
    fine(at, &[&rows[..], &["--dim", "4"]].concat());
}

#[test]
fn what_was_mistyped_is_suggested() {
    let folder = samples();
    let at = folder.path();
    for (line, code, meant) in [
        ("inspct tiny.oinf", 2, "'inspect'"),
        ("man convrt", 2, "did you mean convert?"),
        ("convert tiny.oinf out --to saftensors", 2, "did you mean safetensors?"),
        ("convert tiny.oinf out.savetensors", 2, "did you mean .safetensors?"),
        ("convert tiny.oinf out.xyz", 2, "--to takes one of"),
        ("inspect tiny.oinf --from onif", 2, "'oinf'"),
        (
            "inspect tiny.oinf --tensors embeddings.LayerNorm.wieght",
            2,
            "did you mean embeddings.LayerNorm.weight?",
        ),
        (
            "convert tiny.oinf out.mcf --select embeddings.LayerNorm.bais",
            2,
            "did you mean embeddings.LayerNorm.bias?",
        ),
        (
            "quantize tiny.oinf --dry-run --exclude embeddings.LayerNorm.bais",
            2,
            "did you mean embeddings.LayerNorm.bias?",
        ),
        (
            "convert tiny.oinf out.mcf --rename embeddings.LayerNorm.bais=x",
            2,
            "did you mean embeddings.LayerNorm.bias?",
        ),
        ("quantize tiny.oinf --dry-run --method oqp", 2, "did you mean opq?"),
        ("lookup words.vec trcuk", 1, "did you mean truck"),
        ("similar words.vec lory", 1, "did you mean lorry?"),
        ("analogy words.vec man kng woman", 1, "did you mean king?"),
    ] {
        let output = run(at, &line.split(' ').collect::<Vec<_>>());
        assert!(err(&output).contains(meant), "{line}: {}", err(&output));
        assert_eq!(output.status.code(), Some(code), "{line}");
    }
    fine(at, &["metadata", "words.fifu", "--set", "license=CC0", "-o", "licensed.fifu"]);
    let removed = run(at, &["metadata", "licensed.fifu", "--remove", "licence"]);
    assert!(err(&removed).contains("did you mean license?"), "{}", err(&removed));
}

#[test]
fn the_version_says_which_program_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let short = out(&fine(folder.path(), &["-V"]));
    assert_eq!(short, format!("weighbridge {}\n", env!("CARGO_PKG_VERSION")));
    let long = out(&fine(folder.path(), &["--version"]));
    assert!(long.starts_with(short.trim_end()), "{long}");
    for part in ["\ntarget: ", std::env::consts::ARCH, "\ninstructions: "] {
        assert!(long.contains(part), "{part}: {long}");
    }
}

#[test]
fn names_that_say_too_little_are_answered() {
    let folder = samples();
    let at = folder.path();
    let refused = |arguments: &[&str]| {
        let output = run(at, arguments);
        assert_eq!(output.status.code(), Some(2), "{}", err(&output));
        err(&output)
    };
    let said = refused(&["convert", "words.fifu", "o.bin"]);
    assert!(said.contains("--to takes one of: fasttext word2vec\n"), "{said}");
    let said = refused(&["convert", "tiny.weights", "-o", "-", "--to", "safetensors"]);
    assert!(said.contains("standard output") && !at.join("-").exists(), "{said}");
}

/// A folder may be the user's own, with files of the same names.
#[test]
fn quickstart_replaces_only_its_own_files() {
    let folder = tempfile::tempdir().unwrap();
    let notes = folder.path().join("texts.txt");
    std::fs::write(&notes, "mine").unwrap();
    let refused = run(folder.path(), &["quickstart", "--offline", "."]);
    assert_eq!(refused.status.code(), Some(2), "{}", err(&refused));
    assert_eq!(files(folder.path()), ["texts.txt"]);
    assert_eq!(std::fs::read_to_string(&notes).unwrap(), "mine");
    // Its own are made anew.
    fine(samples().path(), &["quickstart", "--offline", "."]);
}
