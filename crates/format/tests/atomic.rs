//! Writing is all or nothing, whatever fails.

mod common;

#[path = "common/faults.rs"]
mod faults;

use common::{format_of, open};
use faults::FailingFiles;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::Path;
use weighbridge_format::sink;
use weighbridge_format::{Error, Formats, Options, Output, Progress, Status, samples};

/// Every file in a folder with its content.
fn snapshot(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = std::fs::read_dir(folder).unwrap().map(|e| e.unwrap());
    entries
        .map(|e| (e.file_name().into_string().unwrap(), std::fs::read(e.path()).unwrap()))
        .collect()
}

/// Makes every create, write, sync and rename fail in turn; the folder must stay as it was.
fn fail_everywhere(format: &str, name: &str, old: &[&str]) {
    let mut sample = if format == "embd" { samples::tiny_model() } else { samples::unit_vectors() };
    sample.format = format_of(format).info().id;
    let plan = format_of(format).plan(&sample, &Options::default()).unwrap();
    let mut failures = 0;
    for operation in 0.. {
        let folder = tempfile::tempdir().unwrap();
        for file in old {
            std::fs::write(folder.path().join(file), b"old").unwrap();
        }
        let before = snapshot(folder.path());
        let files = FailingFiles::at(operation);
        let result = sink::write(&plan, &folder.path().join(name), &files, &mut Progress::none());
        if !files.failed() {
            result.unwrap();
            let after = snapshot(folder.path());
            assert_eq!(after.len(), plan.files.len().max(old.len()));
            assert!(after.values().all(|content| content != b"old"));
            break;
        }
        assert_names_no_temporary(&result.unwrap_err(), folder.path());
        assert_eq!(snapshot(folder.path()), before, "operation {operation}");
        failures += 1;
    }
    assert!(failures >= 5, "{failures}");
}

/// Errors are about files that somebody knows: what was to be written, or the folder it is in.
fn assert_names_no_temporary(error: &Error, folder: &Path) {
    let Error::Io { path, .. } = error else { panic!("{error}") };
    let inside = path.strip_prefix(folder).unwrap();
    assert!(!inside.to_string_lossy().starts_with('.'), "{error}");
}

#[test]
fn a_failed_write_leaves_the_old_file_and_no_litter() {
    fail_everywhere("embd", "x.weights", &["x.weights"]);
    fail_everywhere("embd", "x.weights", &[]);
}

#[test]
fn two_files_are_replaced_together_or_not_at_all() {
    fail_everywhere("i8bin", "x.i8bin", &["x.i8bin", "meta.json"]);
    fail_everywhere("i8bin", "x.i8bin", &[]);
}

#[test]
fn a_file_can_be_converted_onto_itself() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.weights");
    let plan = format_of("embd").plan(&samples::tiny_model(), &Options::default()).unwrap();
    common::write(&plan, &path);
    let before = std::fs::read(&path).unwrap();
    let again = || Output::new(&path).overwrite(true);
    let mut container = open(&path).unwrap();
    let plan = format_of("embd").plan(&container, &Options::default()).unwrap();
    plan.write(again(), &mut Progress::none()).unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), before);
    container.set_text("model_name", "renamed");
    let plan = format_of("embd").plan(&container, &Options::default()).unwrap();
    plan.write(again(), &mut Progress::none()).unwrap();
    assert_eq!(open(&path).unwrap().text("model_name"), Some("renamed"));
    assert_eq!(snapshot(folder.path()).len(), 1);
}

#[test]
fn existing_files_and_losses_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.oinf");
    let mut sample = samples::tiny_model();
    sample.format = "oinf";
    sample.sizevars.push(("B".into(), 4));
    let plan = format_of("oinf").plan(&sample, &Options::default()).unwrap();
    common::write(&plan, &path);
    let out = folder.path().join("y.weights");
    let plan = format_of("embd").plan(&open(&path).unwrap(), &Options::default()).unwrap();
    let refused = plan.write(&out, &mut Progress::none()).unwrap_err();
    assert!(matches!(refused, Error::Loss(l) if l.len() == 1));
    assert!(matches!(plan.to_bytes(), Err(Error::Loss(_))));
    assert!(!out.exists());
    let plan = plan.accept_losses(true);
    plan.write(&out, &mut Progress::none()).unwrap();
    assert_eq!(std::fs::read(&out).unwrap(), plan.to_bytes().unwrap());
    let mut written = Vec::new();
    plan.write_to(&mut written, &mut Progress::none()).unwrap();
    assert_eq!(written, plan.to_bytes().unwrap());
    let again = plan.write(&out, &mut Progress::none()).unwrap_err();
    assert!(matches!(&again, Error::Refused(p) if p.subject == "overwrite"), "{again}");
    plan.write(Output::new(&out).overwrite(true), &mut Progress::none()).unwrap();
}

/// Whoever watches can stop the work at any time; then nothing is there.
#[test]
fn a_stopped_write_leaves_nothing() {
    let mut sample = samples::unit_vectors();
    sample.format = "i8bin";
    let plan = format_of("i8bin").plan(&sample, &Options::default()).unwrap();
    let plan = plan.accept_losses(true);
    let folder = tempfile::tempdir().unwrap();
    for calls in 0.. {
        let mut left = calls;
        let mut tell = |status: Status| {
            assert_eq!(status.total, Some(plan.size()));
            left -= 1;
            if left < 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let path = folder.path().join("x.i8bin");
        match plan.write(&path, &mut Progress::new(&mut tell)) {
            Err(Error::Cancelled) => assert!(snapshot(folder.path()).is_empty(), "{calls}"),
            done => {
                done.unwrap();
                assert!(calls >= 3, "{calls}");
                break;
            }
        }
    }
    assert_eq!(snapshot(folder.path()).len(), 2);
}

/// The same for a folder: it is there whole, or not at all.
#[test]
fn a_folder_is_written_whole_or_not_at_all() {
    let files = samples::model_directory().unwrap();
    let count = files.len();
    let mut input = weighbridge_format::Input::in_memory("tiny", Vec::new(), files);
    input.is_folder = true;
    let container = Formats::builtin().open(&input, &Options::default()).unwrap();
    let plan = format_of("hf").plan(&container, &Options::default()).unwrap();
    for operation in 0.. {
        let parent = tempfile::tempdir().unwrap();
        let target = parent.path().join("model");
        let files = FailingFiles::at(operation);
        let result = sink::write(&plan, &target, &files, &mut Progress::none());
        if !files.failed() {
            result.unwrap();
            assert_eq!(open(&target).unwrap().tensors.len(), container.tensors.len());
            assert!(operation > 2 * u64::try_from(count).unwrap(), "{operation}");
            break;
        }
        assert_names_no_temporary(&result.unwrap_err(), parent.path());
        let left: Vec<_> = std::fs::read_dir(parent.path()).unwrap().collect();
        assert!(left.is_empty(), "operation {operation}: {left:?}");
    }
}

/// So many files that they are synced together.
#[test]
fn a_folder_of_many_files_is_written() {
    let mut files = samples::model_directory().unwrap();
    let extra = |i: u32| (format!("extra/{i}.json"), format!("{{\"number\": {i}}}").into_bytes());
    files.extend((0..200).map(extra));
    let mut input = weighbridge_format::Input::in_memory("tiny", Vec::new(), files);
    input.is_folder = true;
    let container = Formats::builtin().open(&input, &Options::default()).unwrap();
    let plan = format_of("hf").plan(&container, &Options::default()).unwrap();
    let parent = tempfile::tempdir().unwrap();
    let target = parent.path().join("model");
    plan.write(&target, &mut Progress::none()).unwrap();
    for (name, bytes) in (0..200).map(extra) {
        assert_eq!(std::fs::read(target.join(&name)).unwrap(), bytes, "{name}");
    }
    assert_eq!(std::fs::read_dir(parent.path()).unwrap().count(), 1);
}

/// The sample as rows: a file, and one beside it.
fn rows() -> weighbridge_format::Plan {
    let mut sample = samples::unit_vectors();
    sample.format = "i8bin";
    format_of("i8bin").plan(&sample, &Options::default()).unwrap().accept_losses(true)
}

/// A file that was made before and becomes the output: whoever made it has it when something fails.
#[test]
fn a_failed_write_gives_back_what_it_was_given() {
    let mut plan = rows();
    let bytes = plan.to_bytes().unwrap();
    for old in [&["x.i8bin", "meta.json"][..], &[]] {
        for operation in 0.. {
            let folder = tempfile::tempdir().unwrap();
            old.iter().for_each(|file| std::fs::write(folder.path().join(file), "old").unwrap());
            let journal = folder.path().join("x.i8bin.partial");
            std::fs::write(&journal, &bytes).unwrap();
            plan.files[0].adopted = Some(journal);
            let before = snapshot(folder.path());
            let files = FailingFiles::at(operation);
            let target = folder.path().join("x.i8bin");
            let result = sink::write(&plan, &target, &files, &mut Progress::none());
            if !files.failed() {
                result.unwrap();
                // Its checksum is told beside it all the same.
                let written = open(&target).unwrap();
                written.check_damage().unwrap();
                let document =
                    written.records.as_ref().unwrap().document().unwrap().unwrap().to_vec();
                assert!(String::from_utf8(document).unwrap().contains("\"checksum\": \""));
                assert_eq!(snapshot(folder.path()).len(), 2);
                break;
            }
            result.unwrap_err();
            assert_eq!(snapshot(folder.path()), before, "operation {operation}");
        }
    }
}

/// What a killed process left beside a target goes with the next write to it; what belongs to one
/// who lives, or to nobody we know, stays.
#[cfg(unix)]
#[test]
fn what_the_dead_left_is_swept() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let dead = [".x.i8bin.0123456789abcdef.part", ".meta.json.0123456789abcdef.part"];
    let backup = ".x.i8bin.0123456789abcdef.old";
    let others = [
        ".y.i8bin.0123456789abcdef.part",
        ".x.i8bin.0123456789abcdef.part.txt",
        ".x.i8bin.part",
        "x.i8bin.0123456789abcdef.part",
    ];
    for name in dead.iter().chain(&others).chain([&backup]) {
        std::fs::write(at(name), "left").unwrap();
    }
    std::fs::create_dir_all(at(".x.i8bin.00000000000000ff.part/inner")).unwrap();
    // Behind a link is what belongs to somebody else.
    std::fs::create_dir(at("theirs")).unwrap();
    std::fs::write(at("theirs/file"), "theirs").unwrap();
    for (name, to) in [("aaaaaaaaaaaaaaaa", "theirs"), ("bbbbbbbbbbbbbbbb", "theirs/file")] {
        std::os::unix::fs::symlink(at(to), at(&format!(".x.i8bin.{name}.part"))).unwrap();
    }
    let living = at(".x.i8bin.cccccccccccccccc.part");
    let held = std::fs::File::create(&living).unwrap();
    held.lock().unwrap();
    // A write that fails keeps the backup, which may be all that is left of an old file.
    let plan = rows();
    let failing = FailingFiles::at(2);
    sink::write(&plan, &at("x.i8bin"), &failing, &mut Progress::none()).unwrap_err();
    assert!(at(backup).exists() && !dead.iter().any(|name| at(name).exists()));
    plan.write(at("x.i8bin"), &mut Progress::none()).unwrap();
    assert!(!at(backup).exists() && !at(".x.i8bin.00000000000000ff.part").exists());
    assert!(others.iter().all(|name| at(name).exists()) && living.exists());
    assert_eq!(std::fs::read_to_string(at("theirs/file")).unwrap(), "theirs");
    drop(held);
    plan.write(Output::new(at("x.i8bin")).overwrite(true), &mut Progress::none()).unwrap();
    assert!(!living.exists());
    assert!(!at(".x.i8bin.lock").exists() && !at(".meta.json.lock").exists());
}

/// Whoever may not read the old file may not read the new one, at any time.
#[cfg(unix)]
#[test]
fn files_are_as_readable_as_what_they_replace() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
    let path = folder.path().join("x.i8bin");
    let plan = rows();
    for wanted in [0o600, 0o640, 0o666, 0o444] {
        std::fs::write(&path, "old").unwrap();
        std::fs::set_permissions(&path, PermissionsExt::from_mode(wanted)).unwrap();
        let mut seen = 0;
        let mut look = |_: Status| {
            let parts = std::fs::read_dir(folder.path()).unwrap().map(|e| e.unwrap().path());
            for part in parts.filter(|p| p.to_string_lossy().contains(".x.i8bin.")) {
                assert_eq!(mode(&part), wanted);
                seen += 1;
            }
            ControlFlow::Continue(())
        };
        let output = Output::new(&path).overwrite(true);
        plan.write(output, &mut Progress::new(&mut look)).unwrap();
        assert!(seen > 0);
        assert_eq!(mode(&path), wanted);
        std::fs::remove_file(&path).unwrap();
    }
}

/// Two who write the same files at once: the rows of one, and what is beside them of the same one.
#[test]
fn files_that_belong_together_stay_together() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.i8bin");
    let plans = [1.0f32, -1.0].map(|sign| {
        let mut values: Vec<f32> = vec![0.0; 4 * 64];
        values.iter_mut().step_by(64).for_each(|v| *v = sign);
        let rows = weighbridge_format::Container::builder().values("rows", &[4, 64], values);
        let mut rows = rows.build().unwrap();
        let records = vec![if sign > 0.0 { r#"{"is": "up"}"# } else { r#"{"is": "down"}"# }; 4];
        rows.records = weighbridge_format::model::Records::from_objects(records).ok();
        format_of("i8bin").plan(&rows, &Options::default()).unwrap().accept_losses(true)
    });
    let write = |plan: &weighbridge_format::Plan| {
        let output = Output::new(&path).overwrite(true);
        plan.write(output, &mut Progress::none()).unwrap();
    };
    for _ in 0..100 {
        std::thread::scope(|scope| {
            plans.iter().for_each(|plan| drop(scope.spawn(|| write(plan))));
        });
        let written = open(&path).unwrap();
        written.check_damage().unwrap();
        let is = written.records.as_ref().unwrap().items().unwrap()[0].contains("up");
        assert_eq!(written.tensors[0].values_f32(0, 1).unwrap()[0] > 0.0, is);
    }
    assert_eq!(snapshot(folder.path()).len(), 2);
}
