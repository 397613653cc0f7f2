//! The program as a user meets it: exit codes, JSON, errors, refusals.

mod common;

use common::{err, out, program, run};
use serde_json::Value as Json;
use std::path::Path;
use std::process::Command;

/// A folder in which `quickstart` was run.
fn samples() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let output = run(folder.path(), &["quickstart", ".", "--offline"]);
    assert!(output.status.success(), "{}", err(&output));
    assert!(out(&output).contains("and the vocabulary are the same"), "{}", out(&output));
    folder
}

fn json(folder: &Path, arguments: &[&str]) -> Json {
    serde_json::from_str(&out(&run(folder, arguments))).expect("JSON")
}

/// Whether a file is mapped or read piece by piece, the same comes of it.
#[test]
fn files_that_are_not_mapped_give_the_same() {
    let folder = samples();
    let files = ["tiny.weights", "tiny.oinf", "tiny.safetensors", "i8bin/embeddings.i8bin"];
    for file in files.into_iter().chain(["words.fifu", "tiny.mcf"]) {
        if !folder.path().join(file).exists() {
            panic!("{file} is not among the samples");
        }
        for verb in [&["inspect", "--stats", "--json"][..], &["verify", "--json"]] {
            let mapped = run(folder.path(), &[verb, &[file]].concat());
            let read = run(folder.path(), &[verb, &[file, "--no-mmap"]].concat());
            assert!(mapped.status.success(), "{}", err(&mapped));
            assert_eq!(out(&mapped), out(&read), "{verb:?} {file}");
        }
        let convert = |to: &str, flag: &[&str]| {
            let output = run(folder.path(), &[&["convert", file, to], flag].concat());
            assert!(output.status.success(), "{}", err(&output));
            std::fs::read(folder.path().join(to)).unwrap()
        };
        let to = file.replace('/', "-");
        let mapped = convert(&format!("{to}.mapped.safetensors"), &[]);
        assert!(mapped == convert(&format!("{to}.read.safetensors"), &["--no-mmap"]), "{file}");
    }
}

/// A file that is larger than what may be mapped is read piece by piece instead.
#[test]
#[cfg(target_os = "linux")]
fn where_mapping_fails_files_are_read() {
    use std::io::Write;
    let folder = tempfile::tempdir().unwrap();
    let header = "{'descr': '<f4', 'fortran_order': False, 'shape': (3000000, 256), }";
    let mut file = std::fs::File::create(folder.path().join("big.npy")).unwrap();
    file.write_all(b"\x93NUMPY\x01\0").unwrap();
    file.write_all(&u16::try_from(header.len()).unwrap().to_le_bytes()).unwrap();
    file.write_all(header.as_bytes()).unwrap();
    // Without blocks on the disk.
    file.set_len(10 + header.len() as u64 + 3_000_000 * 256 * 4).unwrap();
    let output = Command::new("sh")
        .args(["-c", "ulimit -v 1500000; exec \"$0\" inspect big.npy --json"])
        .arg(env!("CARGO_BIN_EXE_weighbridge"))
        .current_dir(folder.path())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", err(&output));
    let told: Json = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(told["tensors"][0]["shape"], serde_json::json!([3_000_000, 256]));
}

#[test]
fn inspect_json_has_its_documented_shape() {
    let folder = samples();
    let object = json(folder.path(), &["inspect", "tiny.weights", "--json"]);
    let keys: Vec<_> = object.as_object().unwrap().keys().cloned().collect();
    assert_eq!(
        keys,
        [
            "format",
            "layout",
            "flags",
            "size",
            "metadata",
            "sizevars",
            "tensors",
            "vocabulary",
            "attachments",
            "rows",
            "model"
        ]
    );
    assert_eq!(object["format"], "embd");
    assert_eq!(object["vocabulary"]["special"]["cls"], 2);
    assert_eq!(object["metadata"]["hidden_size"], "16");
    let model = &object["model"];
    assert_eq!(
        (&model["architecture"]["value"], &model["layers"]["value"]),
        (&serde_json::json!("bert"), &serde_json::json!(1))
    );
    assert_eq!(
        model["heads"],
        serde_json::json!({"value": 4, "said_by": {"metadata": "num_attention_heads"}})
    );
    assert_eq!(
        (&model["pooling"]["said_by"], &model["lacks"]),
        (&serde_json::json!("assumed"), &serde_json::json!([]))
    );
    let tensor = object["tensors"][0].as_object().unwrap();
    assert_eq!(tensor.keys().collect::<Vec<_>>(), ["name", "encoding", "shape", "offset", "bytes"]);
    let rows = &json(folder.path(), &["inspect", "i8bin/embeddings.i8bin", "--json"])["rows"];
    assert_eq!(*rows, serde_json::json!({"count": 6, "dim": 64, "records": true}));
    let detail = [
        "inspect",
        "tiny.oinf",
        "--json",
        "--stats",
        "--values",
        "--vocab",
        "--bytes",
        "--tensors",
        "*LayerNorm*",
    ];
    let object = json(folder.path(), &detail);
    assert_eq!(object["tensors"].as_array().unwrap().len(), 6);
    assert_eq!(object["tensors"][0]["stats"]["count"], 16);
    assert_eq!(object["tensors"][0]["first"].as_array().unwrap().len(), 5);
    assert_eq!(object["vocabulary"]["tokens"][23], "京");
    let regions = object["regions"].as_array().unwrap();
    assert_eq!(regions[0]["what"], "header");
    // Every byte has a name.
    let mut next = 0;
    for region in regions {
        assert_eq!(region["start"], next);
        next = region["end"].as_u64().unwrap();
    }
    assert_eq!(object["size"], next);
}

#[test]
fn verify_exit_codes_and_json() {
    let folder = samples();
    let at = folder.path();
    assert_eq!(run(at, &["verify", "tiny.weights", "tiny.oinf"]).status.code(), Some(0));
    assert_eq!(run(at, &["verify", "tiny.weights", "damaged.weights"]).status.code(), Some(1));
    assert_eq!(run(at, &["verify", "--quick", "damaged.weights"]).status.code(), Some(0));
    assert_eq!(run(at, &["verify", "missing.weights"]).status.code(), Some(4));
    assert_eq!(run(at, &["verify"]).status.code(), Some(2));
    let object = json(at, &["verify", "--json", "damaged.weights"]);
    assert_eq!(object["ok"], false);
    assert_eq!(object["format"], "embd");
    let finding = object["findings"][0].as_object().unwrap();
    let keys = [
        "rule", "severity", "file", "start", "end", "field", "message", "expected", "found", "hint",
    ];
    assert_eq!(finding.keys().collect::<Vec<_>>(), keys);
    assert_eq!((&finding["rule"], &finding["severity"]), (&"EMBD-08".into(), &"error".into()));
    let list = json(at, &["verify", "--json", "tiny.weights", "missing.weights"]);
    assert_eq!((&list[0]["ok"], &list[1]["ok"]), (&true.into(), &false.into()));
}

#[test]
fn verify_says_what_it_could_not_check_and_which_file_it_means() {
    let folder = samples();
    let at = folder.path();
    let text = |args: &[&str]| out(&run(at, &[&["verify"], args].concat()));
    assert_eq!(text(&["tiny.weights"]), "tiny.weights: embd ok\n");
    assert_eq!(text(&["--quick", "tiny.weights"]), "tiny.weights: embd ok (structure only)\n");
    assert_eq!(text(&["tiny.oinf"]), "tiny.oinf: oinf ok (no checksums in this file)\n");
    let object = json(at, &["verify", "--json", "--quick", "tiny.oinf"]);
    assert_eq!(object["unchecked"], serde_json::json!(["data", "checksums"]));
    // Rows with a meta.json that has no version: the path is as it was given.
    std::fs::create_dir(at.join("rows")).unwrap();
    std::fs::write(at.join("rows/x.i8bin"), [127, 0]).unwrap();
    let meta =
        r#"{"quantization":{"dtype":"int8","scale_factor":127},"shape":[1,2],"records":[{}]}"#;
    std::fs::write(at.join("rows/meta.json"), meta).unwrap();
    let path = "./rows/x.i8bin";
    let object = json(at, &["verify", "--json", path]);
    assert_eq!(object["findings"][0]["file"], "./rows/meta.json");
    assert!(text(&[path]).contains("warning[I8-07] ./rows/meta.json, bytes"), "{}", text(&[path]));
    // Errors of other verbs name it as well.
    std::fs::write(at.join("rows/meta.json"), "[]").unwrap();
    let failed = err(&run(at, &["inspect", path]));
    assert!(failed.contains("./rows/meta.json"), "{failed}");
}

#[test]
fn times_that_there_are_not_are_refused() {
    let folder = samples();
    let at = folder.path();
    let to = ["convert", "tiny.mcf", "new.weights", "--allow-loss"];
    for time in ["2024-02-30T12:00:00Z", "2024-01-01T24:30:00Z", "yesterday"] {
        let output = run(at, &[&to[..], &["--created-at", time]].concat());
        assert_eq!(output.status.code(), Some(2), "{time}");
        assert!(err(&output).contains(time), "{}", err(&output));
        assert!(!at.join("new.weights").exists());
    }
    for seconds in ["abc", "-1", "1e9"] {
        let output = program(at, &to).env("SOURCE_DATE_EPOCH", seconds).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{seconds}");
        assert!(err(&output).contains("SOURCE_DATE_EPOCH"), "{}", err(&output));
    }
}

/// What people really have when a file is not what its name says.
#[test]
fn usual_mistakes_are_named() {
    let folder = samples();
    let at = folder.path();
    let whole = std::fs::read(at.join("tiny.weights")).unwrap();
    for (name, bytes, code, word) in [
        (
            "lfs.safetensors",
            &b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n"[..],
            3,
            "Git LFS pointer",
        ),
        ("page.weights", b"<!DOCTYPE html>\n<html></html>", 3, "HTML page"),
        ("archive.npy", b"PK\x03\x04....", 3, "zip archive"),
        ("empty.oinf", b"", 3, "empty file"),
        ("notes.txt", b"hello", 3, "not a file of any known format"),
        ("cut.weights", &whole[..whole.len() - 100], 1, "cut short"),
        ("cut.oinf", b"OINF\0", 1, "ends too early"),
    ] {
        std::fs::write(at.join(name), bytes).unwrap();
        let output = run(at, &["verify", name]);
        let text = out(&output) + &err(&output);
        assert_eq!(output.status.code(), Some(code), "{name}: {text}");
        assert!(text.contains(word), "{name}: {text}");
    }
    let output = run(at, &["inspect", "cut.weights"]);
    assert_eq!(output.status.code(), Some(3));
    assert!(err(&output).starts_with("error[EMBD-05]"), "{}", err(&output));
}

#[test]
fn converting_refuses_and_reports() {
    let folder = samples();
    let at = folder.path();
    // Precision is a loss; a dry run says so and writes nothing.
    let lossy = ["convert", "tiny.weights", "half.safetensors", "--dtype", "f16"];
    let output = run(at, &lossy);
    assert_eq!(output.status.code(), Some(2));
    assert!(err(&output).contains("--allow-loss"), "{}", err(&output));
    let dry = run(at, &[&lossy[..], &["--dry-run"]].concat());
    assert!(dry.status.success() && out(&dry).contains("would write"));
    assert!(!at.join("half.safetensors").exists());
    assert!(run(at, &[&lossy[..], &["--allow-loss"]].concat()).status.success());
    let again = run(at, &[&lossy[..], &["--allow-loss"]].concat());
    assert_eq!(again.status.code(), Some(2));
    assert!(err(&again).contains("--force"));
    // A name that does not say the format.
    let vague = run(at, &["convert", "tiny.weights", "x.bin"]);
    assert_eq!(vague.status.code(), Some(2));
    assert!(err(&vague).contains("--to"));
    assert!(run(at, &["convert", "tiny.weights", "x.bin", "--to", "embd"]).status.success());
    assert_eq!(
        std::fs::read(at.join("x.bin")).unwrap(),
        std::fs::read(at.join("tiny.weights")).unwrap()
    );
    // Options that mean nothing for the target.
    let wrong = run(at, &["convert", "tiny.weights", "x.oinf", "--layout", "stream"]);
    assert_eq!(wrong.status.code(), Some(2));
    assert!(err(&wrong).contains("--layout"));
    let report = json(
        at,
        &[
            "convert",
            "tiny.weights",
            "y.oinf",
            "--json",
            "--select",
            "embeddings.*",
            "--exclude",
            "*.bias",
            "--rename",
            "embeddings.LayerNorm.weight=gamma",
            "--set",
            "note=hello world",
        ],
    );
    assert_eq!(report["report"]["kept"], 4);
    let made = json(at, &["inspect", "y.oinf", "--json"]);
    assert_eq!(made["metadata"]["note"], "hello world");
    assert!(made["tensors"].as_array().unwrap().iter().any(|t| t["name"] == "gamma"));
}

#[test]
fn every_verb_has_help_with_examples() {
    let folder = tempfile::tempdir().unwrap();
    let verbs = "inspect verify convert quantize lookup similar analogy evaluate select metadata diff \
                 formats embed merge compare rerank tokenize pull models quickstart completions man";
    for verb in verbs.split_whitespace() {
        let output = run(folder.path(), &[verb, "--help"]);
        assert!(output.status.success() && out(&output).contains("Examples:"), "{verb}");
    }
    let formats = json(folder.path(), &["formats", "--json"]);
    let ids: Vec<_> =
        formats.as_array().unwrap().iter().map(|f| f["id"].as_str().unwrap()).collect();
    for id in ["embd", "oinf", "i8bin", "f32bin", "safetensors", "npy", "hf"] {
        assert!(ids.contains(&id), "{id}");
    }
}

#[test]
fn differences_are_measured() {
    let folder = samples();
    let at = folder.path();
    let same = run(at, &["diff", "tiny.weights", "tiny.oinf"]);
    assert_eq!(
        (same.status.code(), out(&same).as_str()),
        (Some(0), "21 tensors, 10 metadata entries and the vocabulary are the same\n")
    );
    let half = [
        "convert",
        "tiny.weights",
        "half.weights",
        "--dtype",
        "f16",
        "--allow-loss",
        "--exclude",
        "*.bias",
    ];
    assert!(run(at, &half).status.success());
    let object = json(at, &["diff", "tiny.weights", "half.weights", "--json"]);
    assert_eq!(object["same"], false);
    assert_eq!(object["only_first"].as_array().unwrap().len(), 9);
    assert_eq!(object["tensors"][0]["encodings"], serde_json::json!(["f32", "f16"]));
    assert!(object["tensors"][0]["values"]["max_abs"].as_f64().unwrap() < 2e-4);
    assert_eq!(run(at, &["diff", "tiny.weights", "half.weights"]).status.code(), Some(1));
    let rows = ["diff", "npy/embeddings.npy", "i8bin/embeddings.i8bin", "--tolerance", "0.004"];
    // The array has no records.
    assert_eq!(run(at, &rows).status.code(), Some(1));
    assert_eq!(run(at, &[&rows[..], &["--tensors-only"]].concat()).status.code(), Some(0));
}

/// Text from a file can't command the terminal.
#[test]
fn escapes_do_not_reach_the_terminal() {
    let folder = samples();
    let at = folder.path();
    let set = run(
        at,
        &["convert", "tiny.weights", "evil.weights", "--set", "model_name=\u{1b}[2J\u{7}gone"],
    );
    assert!(set.status.success(), "{}", err(&set));
    let shown = run(at, &["inspect", "evil.weights"]);
    assert!(!out(&shown).contains('\u{1b}') && out(&shown).contains("\\u{1b}[2J\\u{7}gone"));
}

/// A mapped file that shrinks while it is read ends the program with a message, not a crash; an
/// interrupted conversion leaves nothing behind.
#[cfg(target_os = "linux")]
#[test]
fn interrupted_conversions_leave_no_litter() {
    use std::time::Duration;
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    // A pipe that is never written to keeps the program waiting with its output not yet begun, so a
    // large sparse input is used instead: converting it takes long enough to be interrupted.
    let header =
        br#"{"x":{"dtype":"F32","shape":[268435456],"data_offsets":[0,1073741824]}}        "#;
    let header = &header[..header.len() / 8 * 8];
    let path = at.join("big.safetensors");
    let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
    bytes.extend_from_slice(header);
    std::fs::write(&path, &bytes).unwrap();
    std::fs::File::options()
        .write(true)
        .open(&path)
        .unwrap()
        .set_len(bytes.len() as u64 + (1 << 30))
        .unwrap();
    let mut child = Command::new(env!("CARGO_BIN_EXE_weighbridge"))
        .args(["convert", "big.safetensors", "big.weights"])
        .current_dir(at)
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let partial = || {
        std::fs::read_dir(at)
            .unwrap()
            .any(|e| e.unwrap().file_name().to_string_lossy().ends_with(".part"))
    };
    while !partial() && child.try_wait().unwrap().is_none() {
        std::thread::sleep(Duration::from_millis(1));
    }
    let interrupted =
        Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap().success();
    let output = child.wait_with_output().unwrap();
    assert!(interrupted && output.status.code() == Some(143), "{}", output.status);
    assert_eq!(err(&output), "stopped: nothing was written\n");
    let left: Vec<_> = std::fs::read_dir(at).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(left, ["big.safetensors"]);
    // Now cut it short while it is mapped: the signal becomes exit code 4.
    let mut child = Command::new(env!("CARGO_BIN_EXE_weighbridge"))
        .args(["verify", "big.safetensors"])
        .current_dir(at)
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let maps = format!("/proc/{}/maps", child.id());
    while !std::fs::read_to_string(&maps).unwrap_or_default().contains("big.safetensors") {
        std::thread::yield_now();
    }
    std::fs::File::options().write(true).open(&path).unwrap().set_len(4096).unwrap();
    let status = child.wait().unwrap();
    let mut message = String::new();
    std::io::Read::read_to_string(&mut child.stderr.take().unwrap(), &mut message).unwrap();
    assert_eq!(status.code(), Some(4), "{message}");
    assert!(message.contains("became shorter"), "{message}");
}

#[test]
fn quantizing_reports_what_it_cost() {
    let folder = samples();
    let at = folder.path();
    let model = "tiny.safetensors";
    let report = json(at, &["quantize", model, "made.mcf", "--method", "k4", "--json"]);
    for member in [
        "method",
        "encoder",
        "written",
        "files",
        "report",
        "bytes_before",
        "bytes_after",
        "bits_per_weight",
        "relative_rmse",
        "max_error",
        "cosine",
        "snr_db",
        "tensors",
        "kept",
    ] {
        assert!(!report[member].is_null(), "{member}: {report}");
    }
    let errors: Vec<_> = report["tensors"]
        .as_array()
        .unwrap()
        .iter()
        .map(|t| t["relative_rmse"].as_f64().unwrap())
        .collect();
    assert!(errors.len() > 3 && errors.is_sorted_by(|a, b| a >= b), "{errors:?}");
    assert!(at.join("made.mcf").exists());
    assert!(run(at, &["verify", "made.mcf"]).status.success());

    // The report alone needs no output and writes nothing.
    let shown = run(at, &["quantize", model, "--method", "k2", "--dry-run"]);
    assert!(shown.status.success() && !at.join("out.mcf").exists());
    let text = out(&shown);
    assert!(text.contains("bits per quantized weight"), "{text}");
    assert!(text.contains("error by tensor"), "{text}");
    assert!(text.contains("█") && text.contains("has 1 dimension"), "{text}");

    for (arguments, code, said) in [
        (vec!["quantize", model, "made.mcf", "--method", "k4"], 2, "exists"),
        (vec!["quantize", model, "--method", "k4"], 2, "required"),
        (vec!["quantize", model, "x.mcf", "--method", "k5"], 2, "k5"),
        (vec!["quantize", model, "x.weights", "--method", "k4"], 2, "writes mcf"),
        (vec!["quantize", model, "x.gguf"], 2, "q8 writes mcf"),
        (vec!["quantize", model, "x.parquet"], 2, "name the output x.mcf"),
        (vec!["quantize", model, "x.pt"], 2, "writes mcf"),
        (vec!["quantize", model, "x"], 2, "writes mcf"),
        (vec!["quantize", "none.npy", "x.i8bin"], 2, "--method i8 writes i8bin"),
        (vec!["quantize", model, "x.mcf", "--method", "Q4_K_M"], 2, "k4 is the closest"),
        (vec!["quantize", model, "x.mcf", "--method", "Q8_0"], 2, "q8 is the closest"),
        (
            vec!["quantize", model, "x.mcf", "--method", "fp16"],
            2,
            "`weighbridge convert --dtype f16`",
        ),
        (vec!["quantize", model, "x.mcf", "--method", "keep"], 2, "no method"),
        (vec!["quantize", model, "x.mcf", "--override", "*=Q6_K"], 2, "k6 is the closest"),
        (vec!["quantize", model, "x.mcf", "--method", "k4", "--override", "*=z"], 2, "no method"),
        (
            vec!["quantize", model, "x.mcf", "--method", "int8", "--encoder", "reference"],
            2,
            "no reference",
        ),
        (vec!["quantize", model, "x.mcf", "--method", "k4", "--clip", "1,-1"], 2, "not bounds"),
        (
            vec!["quantize", model, "x.mcf", "--method", "k4", "--domain", "activations"],
            2,
            "weights only",
        ),
    ] {
        let output = run(at, &arguments);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {}", err(&output));
        assert!(err(&output).contains(said), "{arguments:?}: {}", err(&output));
    }
    assert!(!at.join("x.mcf").exists());
    for name in ["x.gguf", "x.parquet", "x.pt", "x"] {
        assert!(!at.join(name).exists(), "{name}");
    }
}

/// Without a method it is q8, and one scale for a tensor says what it costs.
#[test]
fn the_usual_method_is_q8_and_int8_is_explained() {
    let folder = samples();
    let at = folder.path();
    let report = json(at, &["quantize", "hf-model", "usual.mcf", "--json"]);
    assert_eq!(report["method"], "q8");
    assert_eq!(report["vectors"], report["calibrated"]);
    let report = json(at, &["quantize", "hf-model", "int8.mcf", "--method", "int8", "--json"]);
    assert!(report["vectors"]["mean_cosine"].as_f64().is_some_and(|c| c > 0.9 && c < 1.0));
    assert!(report["calibrated"].is_null());
    let warning = report["report"]["warnings"][0].as_str().unwrap();
    assert!(warning.contains("one scale for a whole tensor"), "{warning}");
    assert!(warning.contains("--method q8 has one for every 32 weights"), "{warning}");
    let text = out(&run(at, &["quantize", "hf-model", "--method", "int4", "--dry-run"]));
    assert!(
        text.contains("  vectors  of 20 texts: cosine") && text.contains("--method q4"),
        "{text}"
    );
    // Texts to calibrate with are read as those to embed are.
    std::fs::write(at.join("table.csv"), "id,text\n1,a truck\n").unwrap();
    std::fs::write(at.join("packed.gz"), b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03\x4b").unwrap();
    std::fs::write(at.join("blank.txt"), "\n  \n").unwrap();
    for (name, said) in
        [("table.csv", "\"id\", \"text\""), ("packed.gz", "gzip"), ("blank.txt", "no text")]
    {
        let output = run(at, &["quantize", "hf-model", "t.mcf", "--calibrate-with", name]);
        assert_eq!(output.status.code(), Some(3), "{name}: {}", err(&output));
        assert!(
            err(&output).contains(said) && err(&output).contains("a text on each line"),
            "{}",
            err(&output)
        );
        assert!(!err(&output).contains("--l"), "{}", err(&output));
    }
    let help = out(&run(at, &["quantize", "--help"]));
    assert!(help.contains("What most people mean by int8 is q8"), "{help}");
}

#[test]
fn directories_are_packed_and_unpacked() {
    let folder = samples();
    let at = folder.path();
    assert!(run(at, &["convert", "hf-model", "packed.mcf"]).status.success());
    let unpacked = run(at, &["convert", "packed.mcf", "unpacked", "--to", "hf"]);
    assert!(unpacked.status.success(), "{}", err(&unpacked));
    assert!(out(&unpacked).contains("Hugging Face directory, 8 files"), "{}", out(&unpacked));
    let original = std::fs::read(at.join("hf-model/model.safetensors")).unwrap();
    assert_eq!(std::fs::read(at.join("unpacked/model.safetensors")).unwrap(), original);
    let again = run(at, &["convert", "packed.mcf", "unpacked", "--to", "hf", "--force"]);
    assert_eq!(again.status.code(), Some(2));
}
