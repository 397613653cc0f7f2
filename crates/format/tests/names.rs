//! Names from files that would become files somewhere else, or be acted on there, and links of a model
//! directory that lead out of it.

mod common;

use common::{findings, format_of, open};
use std::path::Path;
use weighbridge_format::model::{Attachment, Subject};
use weighbridge_format::sink::to_memory;
use weighbridge_format::{
    Container, Error, Formats, Input, Options, Output, Plan, Progress, View, samples,
};

/// A model that carries these files, through a file of a format.
fn carried(format: &str, names: &[&str]) -> (Container, Vec<&'static str>) {
    let tensors = samples::tiny_model().tensors;
    let mut container = Container { tensors, ..Container::default() };
    for name in names {
        let data = View::owned(b"{}".to_vec());
        let name = (*name).to_owned();
        container.attachments.push(Attachment { name, data, described: false });
    }
    let plan = format_of(format).plan(&container, &Options::default()).unwrap();
    let bytes = to_memory(&plan).unwrap().remove(0).1;
    let input = Input::from_bytes(&format!("x.{format}"), bytes);
    let (_, found) = Formats::builtin().check(&input, &Options::default(), false).unwrap();
    let rules = found.list().iter().map(|f| f.rule).collect();
    (Formats::builtin().open(&input, &Options::default()).unwrap(), rules)
}

fn directory_of(container: &Container) -> Plan {
    format_of("hf").plan(container, &Options::default()).unwrap()
}

/// Names of the files that a plan leaves out as a loss.
fn lost(plan: &Plan) -> Vec<String> {
    let lost = plan.report.losses.iter().filter_map(|loss| match &loss.subject {
        Subject::Attachment(name) => Some(name.clone()),
        _ => None,
    });
    lost.collect()
}

fn planned(plan: &Plan) -> Vec<String> {
    plan.files.iter().filter_map(|f| f.beside.clone()).collect()
}

#[test]
fn files_with_hostile_names_are_not_unpacked() {
    for name in [
        "../evil",
        "/etc/evil",
        "a/../../evil",
        "a\\evil",
        ".git/config",
        "sub/.GIT/config",
        "git~1/config",
        ".cache/x",
        ".bashrc",
        "NUL",
        "com1.txt",
        "evil.",
        "config.json:evil",
        "a\u{202e}b",
    ] {
        for format in ["mcf", "safetensors"] {
            let (container, rules) = carried(format, &["config.json", name, "good.txt"]);
            assert_eq!(rules.contains(&"MCF-40"), format == "mcf", "{name:?}");
            let plan = directory_of(&container);
            assert_eq!(lost(&plan), [name], "{format}");
            assert!(planned(&plan).contains(&"good.txt".to_owned()));
            assert!(!planned(&plan).contains(&name.to_owned()));
            // Refused by name; left out only where that was allowed.
            let folder = tempfile::tempdir().unwrap();
            let target = folder.path().join("model");
            let write = |plan: &Plan| plan.write(Output::new(&target), &mut Progress::none());
            let Err(Error::Loss(losses)) = write(&plan) else { panic!("{name:?}") };
            assert!(losses.iter().any(|l| l.what().contains(&format!("{name:?}"))));
            assert!(!target.exists());
            write(&plan.accept_losses(true)).unwrap();
            let mut there: Vec<_> =
                std::fs::read_dir(&target).unwrap().map(|e| e.unwrap().file_name()).collect();
            there.sort();
            assert_eq!(there, ["config.json", "good.txt", "model.safetensors"], "{name:?}");
            assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
        }
    }
}

#[test]
fn of_files_that_are_one_on_some_systems_one_stays() {
    for (name, other) in [
        ("Config.json", "config.json"),
        ("MODEL.SAFETENSORS", "model.safetensors"),
        ("config.json/evil", "config.json"),
        ("Model.safetensors/x", "model.safetensors"),
    ] {
        // Whichever comes first.
        for names in [["config.json", name], [name, "config.json"]] {
            let plan = directory_of(&carried("mcf", &names).0);
            assert_eq!(lost(&plan), [name]);
            assert_eq!(planned(&plan), ["config.json", "model.safetensors"]);
            let why = plan.report.losses[0].why.to_string();
            assert!(why.contains(other), "{why}");
        }
    }
}

/// The names of the safetensors files that there were come from a file too.
#[test]
fn headers_under_hostile_names_are_not_used() {
    for name in [".git/x", "../x", "a/CON", "x\u{200b}"] {
        let (mut container, _) = carried("mcf", &["config.json"]);
        let data = View::owned(safetensors_header(&container).into_bytes());
        let name = format!("{name}.safetensors.header");
        container.attachments.push(Attachment { name, data, described: false });
        let plan = directory_of(&container);
        assert_eq!(planned(&plan), ["config.json", "model.safetensors"]);
    }
}

/// The header of a safetensors file with the tensors of a container.
fn safetensors_header(container: &Container) -> String {
    let bare = Container { tensors: container.tensors.clone(), ..Container::default() };
    let plan = format_of("safetensors").plan(&bare, &Options::default()).unwrap();
    let bytes = to_memory(&plan).unwrap().remove(0).1;
    let length = u64::from_le_bytes(bytes[..8].try_into().unwrap());
    String::from_utf8(bytes[8..8 + usize::try_from(length).unwrap()].to_vec()).unwrap()
}

fn put(folder: &Path, files: &[(String, Vec<u8>)]) {
    for (name, content) in files {
        let path = folder.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }
}

/// What systems and tools leave in real directories is left out, and that is said.
#[test]
fn directories_with_dot_files_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let mut files = samples::model_directory().unwrap();
    for name in [
        ".gitattributes",
        ".gitignore",
        ".DS_Store",
        "1_Pooling/.DS_Store",
        ".cache/huggingface/download/config.json.metadata",
        ".git/config",
        ".ipynb_checkpoints/x",
        "onnx/model.onnx",
    ] {
        files.push((name.into(), b"x".to_vec()));
    }
    put(folder.path(), &files);
    let container = open(folder.path()).unwrap();
    let carried = |name: &str| container.attachments.iter().any(|a| a.name == name);
    assert!(carried(".gitattributes") && carried(".gitignore") && carried("1_Pooling/config.json"));
    for name in [".DS_Store", "1_Pooling/.DS_Store", ".ipynb_checkpoints/", ".cache/", ".git/"] {
        assert!(container.ignored.contains(&Subject::File(name.into())), "{name}");
        assert!(!container.attachments.iter().any(|a| a.name.starts_with(name)), "{name}");
    }
    let notes: Vec<_> = container.notes.iter().map(|n| n.text.to_string()).collect();
    assert_eq!(notes.len(), 3, "{notes:?}");
    assert!(notes.iter().all(|n| n.contains("begins with a dot")), "{notes:?}");
    // It goes round without a loss.
    let plan = directory_of(&container);
    assert!(plan.report.losses.is_empty(), "{:?}", plan.report.losses);
}

#[cfg(unix)]
#[test]
fn links_that_lead_out_of_a_model_directory_are_not_followed() {
    use std::os::unix::fs::symlink;
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let files = samples::model_directory().unwrap();
    put(&at("elsewhere"), &files);
    for name in
        ["config.json", "tokenizer.json", "vocab.txt", "model.safetensors", "1_Pooling/config.json"]
    {
        let model = at("model");
        put(&model, &files);
        if !model.join(name).exists() {
            continue;
        }
        std::fs::remove_file(model.join(name)).unwrap();
        symlink(at("elsewhere").join(name), model.join(name)).unwrap();
        let said = findings(&model);
        let found = |f: &weighbridge_format::Finding| f.found.contains("leads out of the folder");
        assert!(said.list().iter().any(|f| f.rule == "HF-01" && found(f)), "{name}: {said:?}");
        assert!(open(&model).is_err(), "{name}");
        std::fs::remove_dir_all(&model).unwrap();
    }
    // A whole folder of the model.
    put(&at("model"), &files);
    std::fs::remove_dir_all(at("model/1_Pooling")).unwrap();
    symlink(at("elsewhere/1_Pooling"), at("model/1_Pooling")).unwrap();
    assert!(open(at("model")).is_err());
    std::fs::remove_file(at("model/1_Pooling")).unwrap();
    // What the model does not need is left out, with a note.
    symlink("/etc/passwd", at("model/notes.txt")).unwrap();
    let container = open(at("model")).unwrap();
    assert!(!container.attachments.iter().any(|a| a.name == "notes.txt"));
    let notes: Vec<_> = container.notes.iter().map(|n| n.text.to_string()).collect();
    assert!(notes.iter().any(|n| n.contains("notes.txt leads out of the folder")), "{notes:?}");
    // The directory itself may be a link.
    symlink(at("elsewhere"), at("linked")).unwrap();
    assert!(open(at("linked")).is_ok());
}

#[cfg(unix)]
#[test]
fn shards_are_not_read_through_links_that_lead_out() {
    use std::os::unix::fs::symlink;
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let files = samples::model_directory().unwrap();
    let weights = files.iter().find(|(n, _)| n == "model.safetensors").unwrap().1.clone();
    put(&at("elsewhere"), &[("x.safetensors".into(), weights.clone())]);
    let container = open(at("elsewhere/x.safetensors")).unwrap();
    let map: serde_json::Map<_, _> =
        container.tensors.iter().map(|t| (t.name.clone(), "x.safetensors".into())).collect();
    let index = serde_json::json!({"weight_map": map}).to_string().into_bytes();
    put(&at("model"), &[("model.safetensors.index.json".into(), index)]);
    symlink("../elsewhere/x.safetensors", at("model/x.safetensors")).unwrap();
    let error = open(at("model/model.safetensors.index.json")).unwrap_err().to_string();
    assert!(error.contains("leads out of the folder"), "{error}");
    std::fs::remove_file(at("model/x.safetensors")).unwrap();
    std::fs::write(at("model/x.safetensors"), weights).unwrap();
    assert!(open(at("model/model.safetensors.index.json")).is_ok());
}
