//! Shards, what is made of them, rows of earlier files, and values in fewer bits, through the program.

mod common;

use common::{assert_on_the_page, err, out, run};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

fn samples() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let output = run(folder.path(), &["quickstart", ".", "--offline"]);
    assert!(output.status.success(), "{}", err(&output));
    let texts: String = (0..200).map(|i| format!("truck {} in town\n", i % 150)).collect();
    std::fs::write(folder.path().join("many.txt"), texts).unwrap();
    folder
}

fn json(folder: &Path, arguments: &[&str]) -> serde_json::Value {
    let output = run(folder, arguments);
    serde_json::from_str(&out(&output)).unwrap_or_else(|e| panic!("{e}: {}", err(&output)))
}

fn embed<'a>(flags: &[&'a str]) -> Vec<&'a str> {
    ["embed", "-m", "hf-model", "-i", "many.txt"].iter().chain(flags).copied().collect()
}

#[test]
fn parts_are_put_together() {
    let folder = samples();
    let at = folder.path();
    let whole = json(at, &embed(&["-o", "whole.f32bin", "--manifest", "--json"]));
    assert_eq!(
        (&whole["rows"], &whole["repeated"], &whole["reused"]),
        (&200.into(), &50.into(), &0.into())
    );
    for part in ["1/3", "2/3", "3/3"] {
        let name = format!("part{}.f32bin", &part[..1]);
        let made = json(at, &embed(&["-o", &name, "--shard", part, "--json"]));
        assert_eq!(made["rows"], if part == "3/3" { 66 } else { 67 });
    }
    let parts = ["part3.f32bin", "part1.f32bin", "part2.f32bin"];
    let merged: Vec<_> = ["merge", "all.f32bin", "--json"].into_iter().chain(parts).collect();
    let merged = json(at, &merged);
    assert_eq!((&merged["rows"], &merged["shards"]), (&200.into(), &3.into()));
    let bytes = |name: &str| std::fs::read(at.join(name)).unwrap();
    assert_eq!(bytes("all.f32bin"), bytes("whole.f32bin"));
    assert_eq!(bytes("all.meta.json"), bytes("whole.meta.json"));
    let manifest: serde_json::Value =
        serde_json::from_slice(&bytes("part2.f32bin.manifest.json")).unwrap();
    assert_on_the_page(&manifest, "a manifest");
    assert_eq!(manifest["shard"]["number"], 2);
    // The same rows are found in it.
    let found = json(at, &["search", "all.f32bin", "truck 7 in town", "-k", "1", "--json"]);
    assert_eq!(found["hits"][0]["row"], 7);
    // A shard is not lost to what is made of it.
    let own: Vec<_> = ["merge", "part1.f32bin", "--force"].into_iter().chain(parts).collect();
    let own = run(at, &own);
    assert_eq!(own.status.code(), Some(2));
    assert!(err(&own).contains("is one of the shards"), "{}", err(&own));
    let missing = run(at, &["merge", "x.f32bin", "part1.f32bin", "part3.f32bin"]);
    assert_eq!(missing.status.code(), Some(2));
    assert!(err(&missing).contains("shard 2/3 is missing"), "{}", err(&missing));
    assert!(
        err(&missing).contains("`weighbridge embed --shard 2/3` makes it"),
        "{}",
        err(&missing)
    );
    for wrong in ["0/3", "4/3", "3", "a/b"] {
        let refused = run(at, &embed(&["-o", "x.npy", "--shard", wrong]));
        assert_eq!(refused.status.code(), Some(2), "{wrong}");
    }
}

#[test]
fn texts_of_earlier_files_are_taken() {
    let folder = samples();
    let at = folder.path();
    let made = run(at, &embed(&["-o", "old.i8bin", "--manifest", "--quiet"]));
    assert!(made.status.success(), "{}", err(&made));
    let more: String = (100..300).map(|i| format!("truck {i} in town\n")).collect();
    std::fs::write(at.join("many.txt"), more).unwrap();
    let made = json(at, &embed(&["-o", "new.i8bin", "--json", "--reuse", "old.i8bin"]));
    assert_eq!((&made["rows"], &made["reused"]), (&200.into(), &50.into()));
    let made = run(at, &embed(&["-o", "newer.i8bin", "--reuse", "new.i8bin", "old.i8bin"]));
    assert!(out(&made).contains("200 of them from earlier files"), "{}", out(&made));
    let refused = run(at, &embed(&["-o", "x.npy", "--reuse", "old.i8bin"]));
    assert_eq!(refused.status.code(), Some(2));
    assert!(err(&refused).contains("can't be reused"), "{}", err(&refused));
    let refused = run(at, &embed(&["-o", "x.i8bin", "--prompt", "p: ", "--reuse", "old.i8bin"]));
    assert!(err(&refused).contains("made with the prompt"), "{}", err(&refused));
}

/// The codes of a file, computed once more by the formulas of sentence-transformers.
#[test]
fn values_are_stored_in_fewer_bits() {
    let folder = samples();
    let at = folder.path();
    let made = run(at, &embed(&["-o", "floats.npy", "--output-type", "f32"]));
    assert!(made.status.success(), "{}", err(&made));
    let floats = weighbridge::open(at.join("floats.npy")).unwrap();
    let values = floats.tensors[0].values_f32(0, 200 * 32).unwrap();
    let column = |j: usize| values.iter().skip(j).step_by(32).copied();
    let low: Vec<f32> = (0..32).map(|j| column(j).fold(f32::INFINITY, f32::min)).collect();
    let high: Vec<f32> = (0..32).map(|j| column(j).fold(f32::NEG_INFINITY, f32::max)).collect();
    for kind in ["f16", "int8", "uint8", "binary", "ubinary"] {
        for format in ["npy", "safetensors"] {
            let name = format!("{kind}.{format}");
            let made = run(at, &embed(&["-o", &name, "--output-type", kind]));
            assert!(made.status.success(), "{name}: {}", err(&made));
            let stored = weighbridge::open(at.join(&name)).unwrap();
            let tensor = &stored.tensors[0];
            let width = if kind.ends_with("binary") { 4 } else { 32 };
            assert_eq!(tensor.shape, [200, width], "{name}");
            let codes = tensor.values_f32(0, 200 * width as usize).unwrap();
            let turn = if ["int8", "binary"].contains(&kind) { 128.0 } else { 0.0 };
            for (row, vector) in values.chunks(32).enumerate() {
                let row = &codes[row * width as usize..][..width as usize];
                match kind {
                    "f16" => assert!(row.iter().zip(vector).all(|(a, b)| (a - b).abs() < 1e-3)),
                    "int8" | "uint8" => {
                        for j in 0..32 {
                            let step = (high[j] - low[j]) / 255.0;
                            let code = ((vector[j] - low[j]) / step).floor().clamp(0.0, 255.0);
                            assert_eq!(row[j], code - turn, "{name}");
                        }
                    }
                    _ => {
                        for (byte, eight) in row.iter().zip(vector.chunks(8)) {
                            let bits = eight.iter().fold(0, |b, v| b << 1 | u8::from(*v > 0.0));
                            assert_eq!(*byte, f32::from(bits) - turn, "{name}");
                        }
                    }
                }
            }
        }
    }
    // The ranges are stored, and others can be coded with them.
    let beside = weighbridge::open(at.join("int8.ranges.npy")).unwrap();
    assert_eq!(beside.tensors[0].values_f32(0, 64).unwrap(), [low, high].concat());
    std::fs::write(at.join("few.txt"), "truck 3 in town\ntruck 9 in town\n").unwrap();
    for ranges in ["int8.ranges.npy", "int8.safetensors", "floats.npy"] {
        let few = ["embed", "-m", "hf-model", "-i", "few.txt", "-o", "few.npy", "--force"];
        let few: Vec<_> =
            few.into_iter().chain(["--output-type", "int8", "--ranges", ranges]).collect();
        let made = run(at, &few);
        assert!(made.status.success(), "{ranges}: {}", err(&made));
        let rows = |name: &str| weighbridge::open(at.join(name)).unwrap().tensors[0].clone();
        let (all, few) = (rows("int8.npy"), rows("few.npy"));
        assert_eq!(few.values_f32(0, 32).unwrap(), all.values_f32(3 * 32, 32).unwrap(), "{ranges}");
        assert_eq!(
            few.values_f32(32, 32).unwrap(),
            all.values_f32(9 * 32, 32).unwrap(),
            "{ranges}"
        );
    }
    for (name, kind, said) in [
        ("x.f32bin", "int8", "f32bin can't hold vectors as int8"),
        ("x.i8bin", "uint8", "i8bin can't hold vectors as uint8"),
        ("x.i8bin", "f32", "i8bin can't hold vectors as f32"),
        ("x.jsonl", "binary", "jsonl can't hold vectors as binary"),
        ("x.fifu", "f16", "finalfusion can't hold vectors as f16"),
    ] {
        let refused = run(at, &embed(&["-o", name, "--output-type", kind]));
        assert_eq!(refused.status.code(), Some(2), "{name} {kind}");
        assert!(err(&refused).contains(said), "{}", err(&refused));
        assert!(!at.join(name).exists());
    }
    let made = run(at, &embed(&["-o", "y.i8bin", "--output-type", "int8"]));
    assert!(made.status.success(), "{}", err(&made));
    let refused = run(at, &["search", "int8.safetensors", "truck", "--tensor", "embeddings"]);
    assert!(err(&refused).contains("the rows are int8 codes"), "{}", err(&refused));
    let one = ["embed", "-m", "hf-model", "one text", "-o", "one.npy", "--output-type", "int8"];
    let refused = run(at, &one);
    assert!(err(&refused).contains("one vector does not say"), "{}", err(&refused));
}

/// Whenever a worker or a merge is killed, starting it again gives the same file.
#[cfg(unix)]
/// Codes are no values: neither to take ranges of, nor to be printed.
#[test]
fn codes_are_not_taken_for_values() {
    let folder = samples();
    let at = folder.path();
    let made = run(at, &embed(&["-o", "codes.npy", "--output-type", "int8"]));
    assert!(made.status.success(), "{}", err(&made));
    let again = ["-o", "again.npy", "--output-type", "int8", "--ranges"];
    let refused = run(at, &embed(&[&again[..], &["codes.npy"]].concat()));
    assert_eq!(refused.status.code(), Some(2));
    assert!(err(&refused).contains("it holds codes"), "{}", err(&refused));
    let beside = run(at, &embed(&[&again[..], &["codes.ranges.npy"]].concat()));
    assert!(beside.status.success(), "{}", err(&beside));
    let bytes = |name: &str| std::fs::read(at.join(name)).unwrap();
    assert_eq!(bytes("again.npy"), bytes("codes.npy"));
    let printed = run(at, &["embed", "-m", "hf-model", "truck", "--output-type", "int8"]);
    assert_eq!((printed.status.code(), out(&printed).as_str()), (Some(2), ""));
    assert!(err(&printed).contains("vectors are printed as f32"), "{}", err(&printed));
}

#[test]
fn what_is_killed_can_simply_be_started_again() {
    let folder = samples();
    let at = folder.path();
    let texts: String = (0..4000).map(|i| format!("truck {i} in town, {}\n", i / 7)).collect();
    std::fs::write(at.join("many.txt"), texts).unwrap();
    let start = |arguments: &[&str], wait: Option<Duration>| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_weighbridge"));
        command.args(arguments).current_dir(at).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        if let Some(wait) = wait {
            std::thread::sleep(wait);
            let _ = child.kill();
        }
        child.wait().unwrap().success()
    };
    let part = |name: &'static str, shard: &'static str| {
        embed(&["-o", name, "--shard", shard, "--batch", "64"])
    };
    assert!(start(&embed(&["-o", "whole.f32bin", "--manifest"]), None));
    assert!(start(&part("once.f32bin", "1/2"), None));
    assert!(start(&part("other.f32bin", "2/2"), None));
    let bytes = |name: &str| std::fs::read(at.join(name)).unwrap();
    let remove = |begin: &str| {
        let list = std::fs::read_dir(at).unwrap().map(|e| e.unwrap().path());
        let is_of = |path: &Path| path.file_name().unwrap().to_string_lossy().contains(begin);
        list.filter(|path| is_of(path)).for_each(|path| std::fs::remove_file(path).unwrap());
    };
    let merge = ["merge", "all.f32bin", "again.f32bin", "other.f32bin"];
    for round in 0..24u64 {
        for times in 0..3 {
            start(&part("again.f32bin", "1/2"), Some(Duration::from_millis(4 * round + 9 * times)));
        }
        assert!(start(&part("again.f32bin", "1/2"), None), "{round}");
        assert_eq!(bytes("again.f32bin"), bytes("once.f32bin"), "{round}");
        assert_eq!(bytes("again.f32bin.hashes"), bytes("once.f32bin.hashes"), "{round}");
        start(&merge, Some(Duration::from_millis(round)));
        // One that had written everything is done.
        let done = at.join("all.f32bin").exists() && !at.join("all.f32bin.partial.json").exists();
        assert!(done || start(&merge, None), "{round}");
        assert_eq!(bytes("all.f32bin"), bytes("whole.f32bin"), "{round}");
        assert_eq!(bytes("all.meta.json"), bytes("whole.meta.json"), "{round}");
        remove("all.");
        if round % 3 == 0 {
            remove("again.");
        }
    }
}
