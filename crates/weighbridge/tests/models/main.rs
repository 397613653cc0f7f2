//! Finding and pulling models: against a hub of our own, and a cache in the hub's layout.

mod machine;
mod safety;
mod server;

use machine::{Machine, put_in_hub_cache, same_files};
use serde_json::{Value as Json, json};
use server::{Answer, Asked, Server};
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::Mutex;
use weighbridge::models::pull;
use weighbridge::{Error, Progress, Status};

const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";

fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|b| format!("{b:02x}")).collect()
}

/// The files of the sample, and some that nobody needs.
fn files() -> Vec<(String, Vec<u8>)> {
    let mut files = weighbridge::samples::model_directory().unwrap();
    for name in ["pytorch_model.bin", "onnx/model.onnx", "tf_model.h5", ".gitattributes"] {
        files.push((name.to_owned(), b"not needed".to_vec()));
    }
    files
}

fn bytes_of(files: &[(String, Vec<u8>)], name: &str) -> Vec<u8> {
    files.iter().find(|(n, _)| n == name).unwrap().1.clone()
}

/// The list of files as the hub gives it.
fn list(files: &[(String, Vec<u8>)]) -> Json {
    let sibling = |(name, bytes): &(String, Vec<u8>)| {
        let mut object = json!({"rfilename": name, "size": bytes.len(), "blobId": "x"});
        if name.ends_with(".safetensors") {
            let lfs = json!({"sha256": sha256(bytes), "size": bytes.len(), "pointerSize": 134});
            object["lfs"] = lfs;
        }
        object
    };
    json!({"id": "org/m", "sha": COMMIT, "siblings": files.iter().map(sibling).collect::<Vec<_>>()})
}

/// Answers as the hub does, for one model: the list, and the files.
fn hub(list: Json, files: Vec<(String, Vec<u8>)>) -> impl Fn(&Asked) -> Answer + Send + Sync {
    let files: HashMap<_, _> = files.into_iter().collect();
    move |asked| {
        if asked.path.starts_with("/api/models/org/m/revision/") {
            return Answer::ok(list.to_string());
        }
        let name = asked.path.strip_prefix(&format!("/org/m/resolve/{COMMIT}/"));
        match name.and_then(|name| files.get(name)) {
            None => Answer::status(404),
            Some(bytes) => match asked.from {
                None => Answer::ok(bytes.clone()),
                Some(from) => {
                    let range = format!("bytes {from}-{}/{}", bytes.len() - 1, bytes.len());
                    let headers = vec![("Content-Range".into(), range)];
                    Answer { status: 206, headers, ..Answer::ok(&bytes[from..]) }
                }
            },
        }
    }
}

#[test]
fn from_the_hub_over_the_network() {
    let files = files();
    let server = Server::start(hub(list(&files), files.clone()));
    let mut machine = Machine::new(&server.address);
    let mut seen = 0;
    let mut tell = |status: Status| {
        seen = status.done;
        ControlFlow::Continue(())
    };
    let ready = pull("org/m", &machine.request).unwrap();
    let bytes = ready.bytes();
    let report = ready.write(&mut Progress::new(&mut tell)).unwrap();
    assert!(!report.already);
    assert_eq!((report.bytes, seen), (bytes, bytes));
    let from = report.from.clone().unwrap();
    assert_eq!((from.kind.as_str(), from.revision.as_deref()), ("hub", Some(COMMIT)));
    assert_eq!(report.model, machine.folder.path().join("ours/models/org--m"));

    let needed = weighbridge::samples::model_directory().unwrap();
    assert_eq!(report.files, needed.len() as u64);
    same_files(&report.model, &needed);
    assert_eq!(machine.find("org/m").unwrap(), report.model);
    weighbridge::open(&report.model).unwrap();
    let paths = server.paths();
    assert_eq!(paths[0], "/api/models/org/m/revision/main?blobs=true");
    assert_eq!(paths[1], format!("/org/m/resolve/{COMMIT}/config.json"));
    assert_eq!(paths.len(), 1 + needed.len(), "{paths:?}");

    // It is there now: nothing is asked for, unless another revision is wanted.
    let again = machine.pull("org/m").unwrap();
    assert!(again.already);
    assert_eq!((again.from.as_ref(), again.bytes), (Some(&from), bytes));
    machine.request.revision = Some(COMMIT.to_owned());
    assert!(machine.pull("org/m").unwrap().already);
    assert_eq!(server.paths().len(), paths.len());
    machine.request.revision = Some("v2/beta".to_owned());
    let error = machine.pull("org/m").unwrap_err().to_string();
    assert!(error.contains(COMMIT) && error.contains("overwrite"), "{error}");
    machine.request.force = true;
    std::fs::write(report.model.join("left-over"), "x").unwrap();
    assert!(!machine.pull("org/m").unwrap().already);
    assert!(!report.model.join("left-over").exists());
    machine.request.revision = Some("../../x".to_owned());
    assert!(machine.pull("org/m").unwrap_err().to_string().contains("can't be a revision"));
    assert!(server.paths().contains(&"/api/models/org/m/revision/v2%2Fbeta?blobs=true".to_owned()));
    assert_eq!(std::fs::read_dir(machine.folder.path().join("ours/partial")).unwrap().count(), 0);
}

#[test]
fn redirects_are_followed_and_the_token_stays() {
    let files = files();
    let elsewhere = Server::start(hub(list(&files), files.clone()));
    let cdn = elsewhere.address.clone();
    let own = hub(list(&files), files);
    let server = Server::start(move |asked| match asked.path.ends_with("model.safetensors") {
        // Another port is another host.
        true => Answer::redirect(format!("{cdn}{}", asked.path)),
        false => own(asked),
    });
    let mut machine = Machine::new(&server.address);
    machine.request.hub.token = Some("hf_secret".to_owned());
    machine.pull("org/m").unwrap();
    assert!(server.asked().iter().all(|a| a.token.as_deref() == Some("Bearer hf_secret")));
    assert_eq!(elsewhere.asked().len(), 1);
    assert_eq!(elsewhere.asked()[0].token, None);
}

#[test]
fn other_architectures_are_refused_before_weights_are_asked_for() {
    let mut files = files();
    let config =
        json!({"model_type": "deberta", "architectures": ["DebertaForMaskedLM"]}).to_string();
    files.iter_mut().find(|(name, _)| name == "config.json").unwrap().1 = config.into_bytes();
    for sizes in [true, false] {
        let mut list = list(&files);
        if !sizes {
            for sibling in list["siblings"].as_array_mut().unwrap() {
                *sibling = json!({"rfilename": sibling["rfilename"]});
            }
        }
        let server = Server::start(hub(list, files.clone()));
        let error = Machine::new(&server.address).refused("org/m");
        assert!(error.contains("org/m") && error.contains("\"deberta\""), "{error}");
        let asked = server.paths();
        assert!(asked[1..].iter().all(|path| path.ends_with("/config.json")), "{asked:?}");
    }
    // The same when it lies on this machine already, found or pulled.
    let machine = Machine::alone();
    put_in_hub_cache(&machine, "org/m", &files);
    assert!(machine.refused("org/m").contains("DebertaForMaskedLM"));
    assert!(machine.find("org/m").unwrap_err().to_string().contains("\"deberta\""));
    let path = machine.folder.path().join("hub/models--org--m/snapshots").join(COMMIT);
    let error = weighbridge::models::find(&path).unwrap_err().to_string();
    assert!(error.contains("\"deberta\""), "{error}");
}

#[test]
fn lists_without_sizes_are_completed() {
    let files = files();
    let mut list = list(&files);
    for sibling in list["siblings"].as_array_mut().unwrap() {
        *sibling = json!({"rfilename": sibling["rfilename"]});
    }
    let server = Server::start(hub(list, files));
    let machine = Machine::new(&server.address);
    let report = machine.pull("org/m").unwrap();
    same_files(&report.model, &weighbridge::samples::model_directory().unwrap());
    assert!(server.asked().iter().any(|a| a.method == "HEAD"));
}

#[test]
fn shards_come_by_their_index() {
    let mut files = weighbridge::samples::model_directory().unwrap();
    let at = files.iter().position(|(name, _)| name == "model.safetensors").unwrap();
    let (_, weights) = files.remove(at);
    let header_size = u64::from_le_bytes(weights[..8].try_into().unwrap()) as usize;
    let header: Json = serde_json::from_slice(&weights[8..8 + header_size]).unwrap();
    let tensors = header.as_object().unwrap().keys().filter(|k| *k != "__metadata__");
    let map: serde_json::Map<_, _> =
        tensors.map(|name| (name.clone(), "model-1.safetensors".into())).collect();
    files.push(("model-1.safetensors".into(), weights));
    files.push(("unrelated.safetensors".into(), b"x".to_vec()));
    let index = json!({"metadata": {}, "weight_map": map}).to_string();
    files.push(("model.safetensors.index.json".into(), index.into_bytes()));
    let server = Server::start(hub(list(&files), files.clone()));
    let machine = Machine::new(&server.address);
    let report = machine.pull("org/m").unwrap();
    assert_eq!(weighbridge::open(&report.model).unwrap().tensors.len(), map_len(&files));
    assert!(!report.model.join("unrelated.safetensors").exists());

    // An index that names a shard that is not there, or a place elsewhere.
    for (shard, word) in [("model-2.safetensors", "has no model-2"), ("../x.safetensors", "../x")] {
        let index = json!({"weight_map": {"a": shard}}).to_string().into_bytes();
        files.last_mut().unwrap().1 = index;
        let server = Server::start(hub(list(&files), files.clone()));
        let error = Machine::new(&server.address).refused("org/m");
        assert!(error.contains(word), "{error}");
    }
}

fn map_len(files: &[(String, Vec<u8>)]) -> usize {
    let index: Json =
        serde_json::from_slice(&bytes_of(files, "model.safetensors.index.json")).unwrap();
    index["weight_map"].as_object().unwrap().len()
}

#[test]
fn broken_lines_are_mended() {
    let files = files();
    let whole = bytes_of(&files, "model.safetensors");
    for ranges in [true, false] {
        let own = hub(list(&files), files.clone());
        let tries = Mutex::new(0);
        let server = Server::start(move |asked| {
            if !asked.path.ends_with("model.safetensors") {
                return own(asked);
            }
            let asked = Asked { from: asked.from.filter(|_| ranges), ..asked.clone() };
            let mut tries = tries.lock().unwrap();
            *tries += 1;
            match *tries {
                1 => Answer { cut: Some(1000), ..own(&asked) },
                2 if ranges => Answer::status(503),
                _ => own(&asked),
            }
        });
        let machine = Machine::new(&server.address);
        let report = machine.pull("org/m").unwrap();
        assert_eq!(std::fs::read(report.model.join("model.safetensors")).unwrap(), whole);
        assert!(server.asked().iter().any(|a| a.from == Some(1000)));
    }
}

#[test]
fn servers_that_fail_or_lie_leave_nothing() {
    let files = files();
    let weights = bytes_of(&files, "model.safetensors");
    let mut flipped = weights.clone();
    *flipped.last_mut().unwrap() ^= 1;
    let longer = [weights.as_slice(), b"more"].concat();
    let shorter = weights[..weights.len() - 4].to_vec();
    let cases: Vec<(Answer, &str)> = vec![
        (Answer::status(404), "no such model, revision or file"),
        (Answer::status(403), "HF_TOKEN"),
        (Answer::status(418), "status 418"),
        (Answer { cut: Some(1000), ..Answer::ok(weights.clone()) }, "(18)"),
        (Answer::ok(flipped.clone()), "SHA-256"),
        (Answer::ok(longer), "more than"),
        (Answer::ok(shorter), "instead of"),
        (Answer::redirect("file:///etc/passwd".into()), "(1)"),
    ];
    for (answer, word) in cases {
        let own = hub(list(&files), files.clone());
        let server = Server::start(move |asked| match asked.path.ends_with("model.safetensors") {
            // Begins anew each time.
            true => answer.clone(),
            false => own(asked),
        });
        let machine = Machine::new(&server.address);
        let error = machine.refused("org/m");
        assert!(error.contains(word), "{word}: {error}");
        assert!(machine.find("org/m").is_err());
    }

    // Where no checksum was announced, what came must at least be what it should be.
    let mut without = list(&files);
    for sibling in without["siblings"].as_array_mut().unwrap() {
        sibling.as_object_mut().unwrap().remove("lfs");
    }
    let mut files = files;
    let at = files.iter().position(|(name, _)| name == "model.safetensors").unwrap();
    files[at].1 = vec![b'<'; weights.len()];
    let server = Server::start(hub(without, files));
    let machine = Machine::new(&server.address);
    assert!(matches!(machine.pull("org/m"), Err(Error::Malformed { .. })));
    machine.is_clean();
}

#[test]
fn lists_are_not_trusted() {
    let files = files();
    for name in ["../../evil", "/etc/evil", "a/../../evil", "a\\..\\evil", "evil\0", "a//b", ".."] {
        let mut list = list(&files);
        list["siblings"].as_array_mut().unwrap().push(json!({"rfilename": name, "size": 1}));
        let server = Server::start(hub(list, files.clone()));
        let error = Machine::new(&server.address).refused("org/m");
        assert!(error.contains("leads out of its folder"), "{name:?}: {error}");
        assert_eq!(server.asked().len(), 1);
    }
    let sized = |name: &str, size: Json| {
        let mut list = list(&files);
        for sibling in list["siblings"].as_array_mut().unwrap() {
            if sibling["rfilename"] == name {
                sibling["size"] = size.clone();
            }
        }
        list
    };
    let mut bad_commit = list(&files);
    bad_commit["sha"] = "../x".into();
    let huge_config = sized("config.json", json!(1u64 << 40));
    for (list, word) in [
        (sized("vocab.txt", json!(u64::MAX)), "bytes of the files of org/m"),
        (sized("vocab.txt", json!(-1)), "not a list"),
        (bad_commit, "no commit"),
        (huge_config, "bytes of config.json"),
        (json!({"error": "x"}), "no commit"),
        (json!([]), "not a list"),
        (json!({"sha": COMMIT}), "has no config.json"),
    ] {
        let server = Server::start(hub(list, files.clone()));
        let error = Machine::new(&server.address).refused("org/m");
        assert!(error.contains(word), "{word}: {error}");
        assert!(!server.paths().iter().any(|path| path.ends_with(".safetensors")));
    }
    // Pickles only.
    let files: Vec<_> =
        files.into_iter().filter(|(name, _)| !name.ends_with(".safetensors")).collect();
    let server = Server::start(hub(list(&files), files));
    let error = Machine::new(&server.address).refused("org/m");
    assert!(error.contains("no weights in safetensors"), "{error}");
}

#[test]
fn hubs_that_are_not_there() {
    let server = Server::start(|_| Answer::status(401));
    let error = Machine::new(&server.address).refused("org/m");
    assert!(error.contains("no public model org/m"), "{error}");
    let error = Machine::new("http://127.0.0.1:1").refused("org/m");
    assert!(error.contains("127.0.0.1"), "{error}");
    let mut machine = Machine::new(&server.address);
    machine.request.hub.offline = true;
    assert!(machine.refused("org/m").contains("HF_HUB_OFFLINE"));
    assert_eq!(server.asked().len(), 1);
}

#[test]
fn from_the_cache_of_the_hub() {
    let machine = Machine::alone();
    let files = files();
    let snapshot = put_in_hub_cache(&machine, "org/m", &files);
    assert_eq!(machine.find("org/m").unwrap(), snapshot);
    let report = machine.pull("org/m").unwrap();
    let from = report.from.unwrap();
    assert_eq!((from.kind.as_str(), from.revision.as_deref()), ("hub-cache", Some(COMMIT)));
    let needed = weighbridge::samples::model_directory().unwrap();
    same_files(&report.model, &needed);
    assert_eq!(report.files, needed.len() as u64);
    // Ours goes first from now on.
    assert_eq!(machine.find("org/m").unwrap(), report.model);
}

#[test]
fn known_names_have_two_sides() {
    let machine = Machine::alone();
    let files = weighbridge::samples::model_directory().unwrap();
    let repo = "sentence-transformers/all-MiniLM-L6-v2";
    let snapshot = put_in_hub_cache(&machine, repo, &files);
    for name in ["minilm", repo] {
        assert_eq!(machine.find(name).unwrap(), snapshot);
    }
    let report = machine.pull(repo).unwrap();
    assert_eq!(report.model, machine.folder.path().join("ours/models/minilm"));
    std::fs::remove_dir_all(machine.folder.path().join("hub")).unwrap();
    for name in ["minilm", repo] {
        assert_eq!(machine.find(name).unwrap(), report.model);
        assert!(machine.pull(name).unwrap().already);
    }
}

#[test]
fn what_is_not_found_says_where_it_was_looked_for() {
    let machine = Machine::alone();
    let at = |path: &str| machine.folder.path().join(path).display().to_string();
    let error = machine.find("minilm").unwrap_err().to_string();
    for place in [
        "there is no model \"minilm\"".to_owned(),
        at("ours/models/minilm"),
        at("ours/models/sentence-transformers--all-MiniLM-L6-v2"),
        at("hub/models--sentence-transformers--all-MiniLM-L6-v2"),
        "pulling minilm fetches it".to_owned(),
    ] {
        assert!(error.contains(&place), "{place}: {error}");
    }
    let error = machine.find("org/m").unwrap_err().to_string();
    assert!(error.contains("pulling org/m over the network fetches it"), "{error}");
    assert!(machine.find("mini-lm").unwrap_err().to_string().contains("did you mean minilm?"));
    let error = machine.find("./m.weights").unwrap_err().to_string();
    assert!(error.contains("there is no model \"./m.weights\""), "{error}");

    // What is there but not whole says why.
    let files = files();
    let some: Vec<_> = files.into_iter().filter(|(name, _)| name == "config.json").collect();
    put_in_hub_cache(&machine, "org/model", &some);
    let error = machine.find("org/model").unwrap_err().to_string();
    assert!(error.contains("models--org--model (model.safetensors is missing)"), "{error}");
    // It is not offered either.
    assert!(
        !machine.find("org/modle").unwrap_err().to_string().contains("did you mean org/model?")
    );
    let error = machine.refused("org/model");
    assert!(error.contains("is missing") && error.contains("network"), "{error}");
    for name in ["../m", "/m", "a/b/c", ""] {
        assert!(machine.refused(name).contains("can't be the name"));
    }
}

#[test]
fn a_path_wins() {
    let folder = tempfile::tempdir().unwrap();
    for (name, bytes) in weighbridge::samples::model_directory().unwrap() {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    }
    assert_eq!(weighbridge::models::find(folder.path()).unwrap(), folder.path());
    let file = folder.path().join("model.safetensors");
    assert_eq!(weighbridge::models::find(&file).unwrap(), file);
}
