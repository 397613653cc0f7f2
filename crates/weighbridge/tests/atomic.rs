//! Writing is all or nothing, whatever fails.

use std::collections::BTreeMap;
use std::path::Path;
use weighbridge::sink::{self, RealFiles};
use weighbridge::{Options, Request, convert, find, samples};
use weighbridge_testkit::FailingFiles;

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
    sample.format = find(format).unwrap().info().id;
    let plan = find(format).unwrap().plan(&sample, &Options::default()).unwrap();
    let mut failures = 0;
    for operation in 0.. {
        let folder = tempfile::tempdir().unwrap();
        for file in old {
            std::fs::write(folder.path().join(file), b"old").unwrap();
        }
        let before = snapshot(folder.path());
        let files = FailingFiles::at(operation);
        let result = sink::write(&plan, &folder.path().join(name), &files, &mut |_| {});
        if !files.failed() {
            result.unwrap();
            let after = snapshot(folder.path());
            assert_eq!(after.len(), plan.files.len().max(old.len()));
            assert!(after.values().all(|content| content != b"old"));
            break;
        }
        assert!(result.is_err(), "operation {operation}");
        assert_eq!(snapshot(folder.path()), before, "operation {operation}");
        failures += 1;
    }
    assert!(failures >= 5, "{failures}");
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
    let plan = find("embd").unwrap().plan(&samples::tiny_model(), &Options::default()).unwrap();
    sink::write(&plan, &path, &RealFiles, &mut |_| {}).unwrap();
    let before = std::fs::read(&path).unwrap();
    let mut request = Request { force: true, ..Request::default() };
    convert(&path, &path, &request).unwrap().write(&mut |_| {}).unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), before);
    request.set.push(("model_name".into(), "renamed".into()));
    convert(&path, &path, &request).unwrap().write(&mut |_| {}).unwrap();
    assert_eq!(weighbridge::open(&path).unwrap().text("model_name"), Some("renamed"));
    assert_eq!(snapshot(folder.path()).len(), 1);
}

#[test]
fn existing_files_and_losses_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.oinf");
    let mut sample = samples::tiny_model();
    sample.format = "oinf";
    sample.sizevars.push(("B".into(), 4));
    let plan = find("oinf").unwrap().plan(&sample, &Options::default()).unwrap();
    sink::write(&plan, &path, &RealFiles, &mut |_| {}).unwrap();
    let out = folder.path().join("y.weights");
    let refused =
        convert(&path, &out, &Request::default()).unwrap().write(&mut |_| {}).unwrap_err();
    assert!(matches!(refused, weighbridge::Error::Loss(l) if l.len() == 1));
    assert!(!out.exists());
    let allowed = Request { allow_loss: true, ..Request::default() };
    convert(&path, &out, &allowed).unwrap().write(&mut |_| {}).unwrap();
    let again = convert(&path, &out, &allowed).unwrap().write(&mut |_| {}).unwrap_err();
    assert!(again.to_string().contains("--force"), "{again}");
}

/// The same for a folder: it is there whole, or not at all.
#[test]
fn a_folder_is_written_whole_or_not_at_all() {
    let files = samples::model_directory().unwrap();
    let count = files.len();
    let mut input = weighbridge::Input::in_memory("tiny", Vec::new(), files);
    input.is_folder = true;
    let container = weighbridge::open_with(&input, &Options::default()).unwrap();
    let plan = find("hf").unwrap().plan(&container, &Options::default()).unwrap();
    for operation in 0.. {
        let parent = tempfile::tempdir().unwrap();
        let target = parent.path().join("model");
        let files = FailingFiles::at(operation);
        let result = sink::write(&plan, &target, &files, &mut |_| {});
        if !files.failed() {
            result.unwrap();
            assert_eq!(weighbridge::open(&target).unwrap().tensors.len(), container.tensors.len());
            assert!(operation > 2 * u64::try_from(count).unwrap(), "{operation}");
            break;
        }
        assert!(result.is_err(), "operation {operation}");
        let left: Vec<_> = std::fs::read_dir(parent.path()).unwrap().collect();
        assert!(left.is_empty(), "operation {operation}: {left:?}");
    }
}
