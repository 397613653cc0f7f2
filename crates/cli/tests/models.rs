//! Models by name: every verb takes one, and `models` says what there is.

mod common;

use common::{err, out};
use serde_json::{Value as Json, json};
use std::path::{Path, PathBuf};
use std::process::Output;

/// A machine with caches of its own, and a working folder.
struct Machine(tempfile::TempDir);

impl Machine {
    fn new() -> Machine {
        let machine = Machine(tempfile::tempdir().unwrap());
        std::fs::create_dir(machine.path("work")).unwrap();
        machine
    }

    /// With the sample in our own cache, as `pull` puts it there.
    fn with_minilm() -> Machine {
        let machine = Machine::new();
        weighbridge::samples::write_encoder(&machine.path("cache/models/minilm")).unwrap();
        machine
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// The sample in the hub's cache.
    fn put_in_hub(&self, repo: &str) -> PathBuf {
        let folder = self.path("hub").join(format!("models--{}", repo.replace('/', "--")));
        let snapshot = folder.join("snapshots/abc");
        weighbridge::samples::write_encoder(&snapshot).unwrap();
        std::fs::create_dir_all(folder.join("refs")).unwrap();
        std::fs::write(folder.join("refs/main"), "abc").unwrap();
        snapshot
    }

    fn run(&self, arguments: &[&str]) -> Output {
        let mut command = common::program(&self.path("work"), arguments);
        for name in ["HF_TOKEN", "HF_HUB_OFFLINE", "HF_HOME", "HF_ENDPOINT"] {
            command.env_remove(name);
        }
        command.env("WEIGHBRIDGE_CACHE", self.path("cache")).env("HF_HUB_CACHE", self.path("hub"));
        command.output().expect("the program starts")
    }

    fn said(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert!(output.status.success(), "{arguments:?}: {}", err(&output));
        out(&output)
    }

    fn json(&self, arguments: &[&str]) -> Json {
        serde_json::from_str(&self.said(&[arguments, &["--json"]].concat())).expect("JSON")
    }

    fn refused(&self, code: i32, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {}", err(&output));
        err(&output)
    }
}

#[test]
fn every_verb_takes_the_name_of_a_model() {
    let machine = Machine::with_minilm();
    assert!(machine.said(&["inspect", "minilm"]).contains("`embed` can use it"));
    assert!(machine.said(&["verify", "minilm", "minilm"]).contains("ok"));
    machine.said(&["convert", "minilm", "x.weights"]);
    machine.said(&["quantize", "minilm", "x.mcf"]);
    let same = machine.said(&["diff", "minilm", "x.weights", "--tensors-only"]);
    assert!(same.contains("the same"), "{same}");
    assert_eq!(machine.refused(1, &["diff", "x.mcf", "minilm"]), "");
    assert!(machine.said(&["metadata", "minilm"]).contains("model_name"));
    assert!(machine.said(&["tokenize", "--model", "minilm", "a truck"]).contains("truck"));
    assert!(machine.said(&["compare", "-m", "minilm", "a", "a"]).starts_with("1.0000"));
    assert!(machine.said(&["embed", "-m", "minilm", "a"]).contains("vector"));
    // By its other names too, and out of the hub's cache.
    assert!(machine.said(&["inspect", "all-MiniLM-L6-v2"]).contains("BERT"));
    machine.put_in_hub("org/m");
    assert!(machine.said(&["inspect", "org/m"]).contains("BERT"));
    machine.said(&["quantize", "org/m", "m.mcf"]);
}

#[test]
fn a_path_that_exists_wins() {
    let machine = Machine::with_minilm();
    std::fs::write(machine.path("work/minilm"), "not a model").unwrap();
    assert!(machine.refused(3, &["inspect", "minilm"]).contains("known format"));
    machine.refused(3, &["embed", "-m", "minilm", "a"]);
}

/// A model that the encoder can't run can still be looked at, converted and quantized.
#[test]
fn names_lead_to_models_of_any_architecture() {
    let machine = Machine::new();
    let snapshot = machine.put_in_hub("org/other");
    let config = snapshot.join("config.json");
    let mut json: Json = serde_json::from_slice(&std::fs::read(&config).unwrap()).unwrap();
    json["model_type"] = json!("llama");
    json["architectures"] = json!(["LlamaModel"]);
    std::fs::write(&config, json.to_string()).unwrap();
    assert!(machine.said(&["inspect", "org/other"]).contains("llama"));
    machine.said(&["convert", "org/other", "x.safetensors"]);
    assert!(machine.refused(3, &["embed", "-m", "org/other", "a"]).contains("llama"));
    assert_eq!(machine.json(&["models"])[0]["architecture"], "llama");
}

#[test]
fn a_name_that_is_not_there_says_what_is() {
    let machine = Machine::with_minilm();
    machine.put_in_hub("org/m");
    for verb in [
        &["inspect", "no-such-model"][..],
        &["verify", "no-such-model"],
        &["convert", "no-such-model", "x.mcf"],
        &["quantize", "no-such-model", "x.mcf"],
        &["diff", "no-such-model", "minilm"],
        &["embed", "-m", "no-such-model", "a"],
        &["models", "show", "no-such-model"],
        &["models", "remove", "no-such-model"],
    ] {
        let said = machine.refused(4, verb);
        assert!(said.contains("\"no-such-model\""), "{said}");
        assert!(said.contains("the models on this machine are minilm, org/m"), "{said}");
        assert!(said.contains("`weighbridge models` lists them"), "{said}");
        assert!(said.contains("`weighbridge pull no-such-model --network` fetches it"), "{said}");
    }
    assert!(machine.refused(4, &["inspect", "minlm"]).contains("did you mean minilm?"));
    // What is named as files are is a file that is not there.
    let said = machine.refused(4, &["inspect", "none.safetensors"]);
    assert!(said.contains("No such file") && !said.contains("pull"), "{said}");
    let said = machine.refused(4, &["inspect", "../none"]);
    assert!(said.contains("no file, folder or model") && !said.contains("pull"), "{said}");
}

#[test]
fn models_are_listed_with_their_sizes() {
    let machine = Machine::new();
    let text = machine.said(&["models"]);
    assert!(text.contains("no models") && text.contains("pull minilm"), "{text}");
    assert_eq!(machine.json(&["models"]), json!([]));

    weighbridge::samples::write_encoder(&machine.path("cache/models/org--b")).unwrap();
    let snapshot = machine.put_in_hub("org/a");
    machine.put_in_hub("org/b");
    std::fs::remove_file(snapshot.join("model.safetensors")).unwrap();
    let list = machine.json(&["models"]);
    let short: Vec<_> =
        list.as_array().unwrap().iter().map(|m| (&m["name"], &m["cache"])).collect();
    let (a, b) = (&json!("org/a"), &json!("org/b"));
    let (ours, hubs) = (&json!("weighbridge"), &json!("huggingface"));
    assert_eq!(short, [(a, hubs), (b, ours), (b, hubs)]);
    assert_eq!(list[0]["lacks"], "model.safetensors is missing");
    assert_eq!((&list[1]["lacks"], &list[1]["from"]), (&Json::Null, &Json::Null));
    let files = std::fs::read_dir(machine.path("cache/models/org--b")).unwrap().flatten();
    let size = |path: &Path| std::fs::metadata(path).unwrap().len();
    let own: u64 = files.map(|e| e.path()).filter(|p| p.is_file()).map(|p| size(&p)).sum();
    let pooling = size(&machine.path("cache/models/org--b/1_Pooling/config.json"));
    assert_eq!(list[1]["bytes"], own + pooling);
    assert_eq!(list[1]["files"], 8);
    let text = machine.said(&["models", "list"]);
    assert!(text.contains("org/b") && text.contains("kB") && text.contains("bert"), "{text}");
    assert!(text.contains("not whole: model.safetensors is missing"), "{text}");
    assert!(text.contains(&machine.path("hub").display().to_string()), "{text}");
}

#[test]
fn one_model_is_shown() {
    let machine = Machine::with_minilm();
    let snapshot = machine.put_in_hub("sentence-transformers/all-MiniLM-L6-v2");
    let shown = machine.json(&["models", "show", "minilm"]);
    assert_eq!(shown["name"], "minilm");
    assert_eq!(shown["places"].as_array().unwrap().len(), 2);
    assert_eq!(shown["places"][1]["model"], snapshot.to_str().unwrap());
    assert_eq!(shown["places"][1]["from"]["revision"], "abc");
    assert_eq!(shown["model"]["architecture"]["value"], "bert");
    let text = machine.said(&["models", "show", "minilm"]);
    assert!(
        text.contains("mean pooling") && text.contains("in the cache of Hugging Face"),
        "{text}"
    );
}

#[test]
fn a_model_is_removed_from_our_own_cache_only() {
    let machine = Machine::with_minilm();
    let snapshot = machine.put_in_hub("org/m");
    let bytes = machine.json(&["models"])[0]["bytes"].clone();
    let removed = machine.json(&["models", "remove", "minilm"]);
    assert_eq!((&removed["bytes"], &removed["files"]), (&bytes, &json!(8)));
    assert_eq!(removed["removed"][0], machine.path("cache/models/minilm").to_str().unwrap());
    assert_eq!(removed["remains"], Json::Null);
    assert!(!machine.path("cache/models/minilm").exists());
    assert_eq!(std::fs::read_dir(machine.path("cache/partial")).unwrap().count(), 0);

    let said = machine.refused(2, &["models", "remove", "org/m"]);
    assert!(said.contains("Hugging Face") && said.contains("nothing is removed there"), "{said}");
    assert!(snapshot.join("model.safetensors").is_file());
    // A copy in ours goes, and what stays is said.
    weighbridge::samples::write_encoder(&machine.path("cache/models/org--m")).unwrap();
    let text = machine.said(&["models", "remove", "org/m"]);
    assert!(text.contains("freed") && text.contains("remains"), "{text}");
    assert!(snapshot.join("model.safetensors").is_file());
    assert!(machine.refused(2, &["models", "remove", "../work"]).contains("can't be the name"));
    assert!(machine.path("work").is_dir());
}

#[cfg(unix)]
#[test]
fn links_are_removed_and_not_followed() {
    use std::os::unix::fs::symlink;
    let machine = Machine::with_minilm();
    std::fs::create_dir(machine.path("precious")).unwrap();
    std::fs::write(machine.path("precious/file"), "kept").unwrap();
    symlink(machine.path("precious"), machine.path("cache/models/minilm/2_Link")).unwrap();
    symlink(machine.path("precious"), machine.path("cache/models/org--linked")).unwrap();
    let removed = machine.json(&["models", "remove", "minilm"]);
    assert_eq!(removed["files"], 8);
    let removed = machine.json(&["models", "remove", "org/linked"]);
    assert_eq!((&removed["files"], &removed["bytes"]), (&json!(0), &json!(0)));
    assert!(machine.path("cache/models/org--linked").symlink_metadata().is_err());
    assert_eq!(std::fs::read_to_string(machine.path("precious/file")).unwrap(), "kept");
}

#[test]
fn pulling_says_what_it_would_fetch() {
    let machine = Machine::new();
    let said = machine.refused(4, &["pull", "org/m"]);
    assert!(said.contains("org/m is not on this machine"), "{said}");
    assert!(said.contains("--network fetches it from https://huggingface.co/org/m"), "{said}");
    assert!(said.contains("only the hub knows how large they are"), "{said}");
    let mut offline = common::program(&machine.path("work"), &["pull", "org/m"]);
    offline
        .env("WEIGHBRIDGE_CACHE", machine.path("cache"))
        .env("HF_HUB_CACHE", machine.path("hub"));
    let said = err(&offline.env("HF_HUB_OFFLINE", "1").output().unwrap());
    assert!(said.contains("HF_HUB_OFFLINE keeps off the hub"), "{said}");
}

#[test]
fn a_dry_run_of_pull_keeps_nothing() {
    let machine = Machine::new();
    machine.put_in_hub("org/m");
    let planned = machine.json(&["pull", "org/m", "--dry-run"]);
    assert_eq!((&planned["name"], &planned["already"]), (&json!("org/m"), &json!(false)));
    assert!(machine.said(&["pull", "org/m", "--dry-run"]).starts_with("org/m would be in "));
    assert!(!machine.path("cache/models").exists());
    assert_eq!(std::fs::read_dir(machine.path("cache/partial")).unwrap().count(), 0);
    assert_eq!(machine.json(&["pull", "org/m"]), planned);
    assert!(machine.said(&["pull", "org/m", "--dry-run"]).starts_with("org/m is already in "));
}
