//! Completions in real shells, and manual pages.

mod common;

use common::{err, out, run};
use std::path::Path;
use std::process::{Command, Output};
use weighbridge_testkit::data::skip_on_this_machine;

/// Runs a script in a shell of a machine that has one model; `None` where there is no such shell.
fn shell(folder: &Path, shell: &str, flags: &[&str], script: &str) -> Option<String> {
    Command::new(shell).arg("--version").output().ok()?;
    let program = Path::new(env!("CARGO_BIN_EXE_weighbridge")).parent().unwrap();
    let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap());
    let output = Command::new(shell)
        .args(flags)
        .args(["-c", script])
        .current_dir(folder)
        .env("PATH", path)
        .env("HOME", folder)
        .env("WEIGHBRIDGE_CACHE", folder.join("cache"))
        .env("HF_HUB_CACHE", folder.join("hub"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{shell}: {}", err(&output));
    Some(out(&output))
}

fn machine() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    weighbridge::samples::write_encoder(&folder.path().join("cache/models/org--tiny")).unwrap();
    std::fs::write(folder.path().join("other.npy"), "").unwrap();
    folder
}

/// What is typed, and what is offered among other things.
const TYPED: [(&[&str], &[&str]); 7] = [
    (&["inspe"], &["inspect"]),
    (&["convert", "a", "b", "--to", "s"], &["safetensors"]),
    (&["inspect", "a", "--from", "saf"], &["safetensors"]),
    (&["quantize", "a", "b", "--method", "k"], &["k4", "k2"]),
    (&["inspect", "o"], &["org/tiny", "other.npy"]),
    (&["embed", "--model", "o"], &["org/tiny", "other.npy"]),
    (&["models", "remove", "o"], &["org/tiny"]),
];

fn try_all(name: &str, flags: &[&str], script: impl Fn(&[&str]) -> String) {
    let folder = machine();
    for (typed, offered) in TYPED {
        let Some(said) = shell(folder.path(), name, flags, &script(typed)) else {
            return skip_on_this_machine(&format!("no {name}"));
        };
        let words: Vec<_> = said.split_whitespace().collect();
        for word in offered {
            assert!(words.contains(word), "{name}: {typed:?}: {said}");
        }
        assert!(words.len() < 10, "{name}: {typed:?}: {said}");
    }
}

#[test]
fn bash_completes() {
    try_all("bash", &["--norc"], |typed| {
        format!(
            "source <(weighbridge completions bash)
             COMP_WORDS=(weighbridge {}) COMP_CWORD={} COMP_TYPE=9
             _clap_complete_weighbridge weighbridge \"${{COMP_WORDS[COMP_CWORD]}}\" x 2> /dev/null
             printf '%s\\n' \"${{COMPREPLY[@]}}\"",
            typed.join(" "),
            typed.len()
        )
    });
}

#[test]
fn zsh_completes() {
    // Both ways: sourced, and as a file that zsh calls the first time.
    for load in [
        "source ./_weighbridge; _clap_dynamic_completer_weighbridge",
        "fpath=(. $fpath); autoload -U _weighbridge; _weighbridge",
    ] {
        try_all("zsh", &["-f"], |typed| {
            format!(
                "compdef() {{ }}
                 _describe() {{ print -l -- ${{${{(P)3}}%%:*}} }}
                 weighbridge completions zsh > _weighbridge
                 words=(weighbridge {}) CURRENT={}
                 {load}",
                typed.join(" "),
                typed.len() + 1
            )
        });
    }
}

#[test]
fn fish_completes() {
    try_all("fish", &["--no-config"], |typed| {
        format!(
            "weighbridge completions fish | source; complete -C 'weighbridge {}' | cut -f 1",
            typed.join(" ")
        )
    });
}

#[test]
fn other_shells_have_scripts_too() {
    for shell in ["elvish", "powershell"] {
        let script = run(Path::new("."), &["completions", shell]);
        assert!(out(&script).contains("weighbridge"), "{shell}");
    }
}

#[test]
fn every_verb_has_a_page() {
    let folder = tempfile::tempdir().unwrap();
    let written = run(folder.path(), &["man", "--output", "man1"]);
    assert!(written.status.success(), "{}", err(&written));
    let mut names: Vec<_> = std::fs::read_dir(folder.path().join("man1"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert!(names.contains(&"weighbridge.1".to_owned()), "{names:?}");
    let help = out(&run(folder.path(), &["--help"]));
    let verb =
        |name: &String| name.strip_prefix("weighbridge-")?.strip_suffix(".1").map(str::to_owned);
    let verbs: Vec<_> = names.iter().filter_map(verb).collect();
    assert!(verbs.len() >= 20, "{verbs:?}");
    for verb in verbs {
        assert!(help.contains(&format!("  {verb} ")), "{verb}");
        let page = out(&run(folder.path(), &["man", &verb]));
        let written = folder.path().join(format!("man1/weighbridge-{verb}.1"));
        assert_eq!(page, std::fs::read_to_string(written).unwrap());
        assert!(page.contains(".SH EXAMPLES") && page.contains(".br"), "{verb}");
    }
    assert_eq!(run(folder.path(), &["man", "help"]).status.code(), Some(2));
    let groff = |name: &str| -> std::io::Result<Output> {
        Command::new("groff")
            .args(["-man", "-ww", "-z", name])
            .current_dir(folder.path().join("man1"))
            .output()
    };
    for name in names {
        let Ok(checked) = groff(&name) else { return skip_on_this_machine("no groff") };
        assert_eq!((err(&checked), checked.status.success()), (String::new(), true), "{name}");
    }
}
