//! Processes that are ended in the middle, and several that write to the same place.

#![cfg(unix)]

mod common;

use common::{err, is_ignored, out};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use weighbridge::model::Records;
use weighbridge::{Container, Options, Output, Progress};

const PROGRAM: &str = env!("CARGO_BIN_EXE_weighbridge");

/// The names in a folder.
fn names(folder: &Path) -> Vec<String> {
    let list = std::fs::read_dir(folder).unwrap();
    let mut names: Vec<_> = list.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// Rows that point up or down, with records that say so.
fn put_rows(folder: &Path, name: &str, up: bool) {
    let mut values = vec![0.0; 200 * 64];
    values.iter_mut().step_by(64).for_each(|v| *v = if up { 1.0 } else { -1.0 });
    let mut rows = Container::builder().values("rows", &[200, 64], values).build().unwrap();
    let record = format!("{{\"is\": \"{name}\"}}");
    rows.records = Records::from_objects(vec![record.as_str(); 200]).ok();
    std::fs::create_dir(folder.join(name)).unwrap();
    let output = Output::new(folder.join(name).join("x.f32bin"));
    let format = weighbridge::Formats::builtin().find("f32bin").unwrap();
    let plan = format.plan(&rows, &Options::default()).unwrap();
    plan.write(output, &mut Progress::none()).unwrap();
}

fn convert(folder: &Path, from: &str) -> Child {
    let mut command = Command::new(PROGRAM);
    command.args([
        "convert",
        &format!("{from}/x.f32bin"),
        "out/x.i8bin",
        "--force",
        "--allow-loss",
    ]);
    command.current_dir(folder).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

/// Whether rows and records are of the same run; `None` if that can be seen not to be so.
fn is_whole(folder: &Path) -> Option<bool> {
    let container = weighbridge::open(folder.join("out/x.i8bin")).unwrap();
    container.check_damage().ok()?;
    let up = container.tensors[0].values_f32(0, 1).unwrap()[0] > 0.0;
    let said = container.records.as_ref().unwrap().items().unwrap()[0].to_owned();
    Some(said.contains(if up { "up" } else { "down" }))
}

fn ups_and_downs() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    put_rows(folder.path(), "up", true);
    put_rows(folder.path(), "down", false);
    std::fs::create_dir(folder.path().join("out")).unwrap();
    folder
}

#[test]
fn two_processes_write_one_after_the_other() {
    let folder = ups_and_downs();
    for _ in 0..100 {
        let both = ["up", "down"].map(|from| convert(folder.path(), from));
        for mut child in both {
            assert!(child.wait().unwrap().success());
        }
        assert_eq!(is_whole(folder.path()), Some(true));
    }
    assert_eq!(names(&folder.path().join("out")), ["meta.json", "x.i8bin"]);
}

/// Whenever a signal comes, the files are those of one run; whenever a process is killed, they are,
/// or it can be seen that they are not, and the next run mends that.
#[test]
fn a_process_that_is_ended_leaves_files_that_fit() {
    let folder = ups_and_downs();
    for from in ["up", "down"] {
        assert!(convert(folder.path(), from).wait().unwrap().success());
    }
    for round in 0..60 {
        let signal = ["-INT", "-TERM", "-HUP", "-KILL"][round % 4];
        let mut child = convert(folder.path(), ["up", "down"][round / 4 % 2]);
        std::thread::sleep(Duration::from_micros(700 * round as u64));
        let _ = Command::new("kill")
            .args([signal, &child.id().to_string()])
            .stderr(Stdio::null())
            .status();
        child.wait().unwrap();
        if signal == "-KILL" {
            assert_ne!(is_whole(folder.path()), Some(false));
            assert!(convert(folder.path(), "up").wait().unwrap().success());
        }
        assert_eq!(is_whole(folder.path()), Some(true), "{signal}");
        assert_eq!(names(&folder.path().join("out")), ["meta.json", "x.i8bin"], "{signal}");
    }
}

/// A file of a quarter of a gigabyte that takes no place on the disk.
fn big() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let header = br#"{"t":{"dtype":"U8","shape":[268435456],"data_offsets":[0,268435456]}}  "#;
    let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
    bytes.extend_from_slice(header);
    let path = folder.path().join("big.safetensors");
    std::fs::write(&path, &bytes).unwrap();
    let file = std::fs::File::options().write(true).open(&path).unwrap();
    file.set_len(bytes.len() as u64 + (1 << 28)).unwrap();
    folder
}

/// Converts it with a shell's settings, and waits until a file is being written.
fn writing(folder: &Path, settings: &str) -> Child {
    let script = format!("{settings} exec {PROGRAM} convert big.safetensors big.oinf --force");
    let mut command = Command::new("sh");
    command.args(["-c", &script]).current_dir(folder);
    // One that was killed may have left another.
    let before = names(folder);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let is_part = |name: &String| name.ends_with(".part") && !before.contains(name);
    while !names(folder).iter().any(is_part) && child.try_wait().unwrap().is_none() {
        std::thread::sleep(Duration::from_millis(1));
    }
    child
}

fn send(signal: &str, child: &Child) {
    assert!(
        Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap().success()
    );
}

#[test]
fn signals_leave_no_litter_and_the_next_run_sweeps_what_a_kill_leaves() {
    let folder = big();
    let signals = [("-INT", 2), ("-HUP", 1), ("-TERM", 15), ("-KILL", 9)];
    for (signal, number) in signals.into_iter().filter(|(_, number)| !is_ignored(*number)) {
        let code = Some(128 + number).filter(|_| signal != "-KILL");
        let mut child = writing(folder.path(), "");
        send(signal, &child);
        assert_eq!(child.wait().unwrap().code(), code, "{signal}");
        let left = names(folder.path()).len();
        // Its turn may not have been over.
        let expected = if signal == "-KILL" { 2..=3 } else { 1..=1 };
        assert!(expected.contains(&left), "{signal}: {left}");
    }
    // What is ignored (`nohup`) is ignored.
    let mut child = writing(folder.path(), "trap '' INT HUP;");
    send("-INT", &child);
    send("-HUP", &child);
    assert!(child.wait().unwrap().success());
    assert_eq!(names(folder.path()), ["big.oinf", "big.safetensors"]);
    // Files must not become so large.
    std::fs::remove_file(folder.path().join("big.oinf")).unwrap();
    let script = format!("ulimit -f 1000; exec {PROGRAM} convert big.safetensors big.oinf");
    let output = Command::new("sh").args(["-c", &script]).current_dir(folder.path()).output();
    let output = output.unwrap();
    assert_eq!(output.status.code(), Some(4), "{}", err(&output));
    assert!(err(&output).contains("big.oinf"), "{}", err(&output));
    assert_eq!(names(folder.path()), ["big.safetensors"]);
}

fn quickstart() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let output = common::run(folder.path(), &["quickstart", ".", "--offline"]);
    assert!(output.status.success(), "{}", err(&output));
    folder
}

/// Output that nobody takes is an error on standard output, and nothing on standard error.
#[test]
fn a_full_device_is_no_panic() {
    if !Path::new("/dev/full").exists() {
        return;
    }
    let folder = quickstart();
    let full = || std::fs::File::options().write(true).open("/dev/full").unwrap();
    let verbs: [&[&str]; 8] = [
        &["inspect", "tiny.weights"],
        &["inspect", "none"],
        &["verify", "damaged.weights"],
        &["diff", "tiny.weights", "none", "--json"],
        &["embed", "--model", "hf-model", "some text"],
        &["similar", "words.fifu", "no-such-word"],
        &["formats"],
        &["--no-such-flag"],
    ];
    for verb in verbs {
        let run = |out: Stdio, err: Stdio| {
            let mut command = Command::new(PROGRAM);
            command.args(verb).current_dir(folder.path()).stdin(Stdio::null());
            command.stdout(out).stderr(err).output().unwrap()
        };
        let usual = run(Stdio::piped(), Stdio::piped());
        let deaf = run(Stdio::piped(), full().into());
        assert_eq!((usual.status, out(&usual)), (deaf.status, out(&deaf)), "{verb:?}");
        let full_out = run(full().into(), Stdio::piped());
        assert!(!err(&full_out).contains("panicked"), "{verb:?}: {}", err(&full_out));
        assert!(matches!(full_out.status.code(), Some(1..=5)), "{verb:?}: {}", full_out.status);
        let both = run(full().into(), full().into());
        assert_eq!(both.status, full_out.status, "{verb:?}");
    }
}

/// Somebody who may write into the folder can't have another file overwritten.
#[test]
fn links_in_the_place_of_a_journal_are_not_followed() {
    let folder = quickstart();
    let theirs = folder.path().join("theirs");
    let journal =
        |ending: &str| -> PathBuf { folder.path().join(format!("x.f32bin.partial{ending}")) };
    let embed = |flags: &[&str]| {
        let arguments = ["embed", "--model", "hf-model", "--output", "x.f32bin", "some text"];
        let arguments: Vec<_> = arguments.iter().chain(flags).copied().collect();
        common::run(folder.path(), &arguments)
    };
    for content in [None, Some("{}")] {
        for ending in ["", ".json", ".records", ".windows", ".hashes"] {
            let _ = std::fs::remove_file(&theirs);
            if let Some(text) = content {
                std::fs::write(&theirs, text).unwrap();
            }
            symlink(&theirs, journal(ending)).unwrap();
            for flags in [&[][..], &["--force"], &["--resume"]] {
                let output = embed(flags);
                assert_eq!(output.status.code(), Some(2), "{ending} {flags:?}: {}", err(&output));
                assert_eq!(std::fs::read_to_string(&theirs).ok().as_deref(), content);
            }
            std::fs::remove_file(journal(ending)).unwrap();
        }
        // With facts of a journal that are there, the others are not followed either.
        std::fs::write(journal(".json"), "{}").unwrap();
        for ending in ["", ".records", ".windows", ".hashes"] {
            symlink(&theirs, journal(ending)).unwrap();
            let output = embed(&["--force"]);
            assert_eq!(output.status.code(), Some(2), "{ending}: {}", err(&output));
            assert_eq!(std::fs::read_to_string(&theirs).ok().as_deref(), content);
            let others = names(folder.path()).into_iter().filter(|n| n.contains(".partial"));
            for name in others.filter(|name| !name.ends_with(".json")) {
                std::fs::remove_file(folder.path().join(name)).unwrap();
            }
            std::fs::write(journal(".json"), "{}").unwrap();
        }
        std::fs::remove_file(journal(".json")).unwrap();
    }
    let output = embed(&[]);
    assert!(output.status.success(), "{}", err(&output));
}
