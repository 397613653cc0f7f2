//! What `inspect` shows, and what it says when there is nothing to show.

mod common;

use common::{err, out, run};
use serde_json::{Value as Json, json};
use std::path::Path;
use weighbridge::codec::DType;
use weighbridge::model::{Scaled, Scaling};
use weighbridge::{Container, Encoding, Formats, Options, Tensor, View};
use weighbridge_testkit::data;

fn samples() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    assert!(run(folder.path(), &["quickstart", ".", "--offline"]).status.success());
    folder
}

fn object(folder: &Path, arguments: &[&str]) -> Json {
    let output = run(folder, arguments);
    serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{e}: {}", err(&output)))
}

fn write(tensors: Vec<Tensor>, format: &str, path: &Path) {
    let container = Container { tensors, ..Container::default() };
    let format = Formats::builtin().find(format).unwrap();
    let plan = format.plan(&container, &Options::default()).unwrap();
    std::fs::write(path, plan.to_bytes().unwrap()).unwrap();
}

#[test]
fn scales_zero_points_and_axes_are_shown() {
    let folder = samples();
    let at = folder.path();
    let scaling = Scaling::Affine {
        axis: Some(0),
        scales: vec![0.5, 2.0, 1.0],
        zero_points: Some(vec![-1, 0, 4]),
    };
    let scaled = |scaling| Encoding::Scaled(Scaled { codes: DType::I8, scaling }.into());
    let tensor = |name: &str, scaling| {
        let data = View::owned(vec![1, 2, 3, 4, 5, 6]);
        Tensor::stored(name, scaled(scaling), vec![3, 2], data).unwrap()
    };
    let one = Scaling::per_tensor(0.25, Some(3.0));
    write(vec![tensor("rows", scaling), tensor("whole", one)], "oinf", &at.join("q.oinf"));
    let told = object(at, &["inspect", "q.oinf", "--json"]);
    let rows = json!({"kind": "scales", "axis": 0, "count": 3, "scales": [0.5, 2.0, 1.0],
        "zero_points": [-1.0, 0.0, 4.0]});
    assert_eq!(told["tensors"][0]["quantization"], rows);
    let whole = json!({"kind": "scales", "axis": null, "count": 1, "scales": [0.25],
        "zero_points": [3.0]});
    assert_eq!(told["tensors"][1]["quantization"], whole);
    let text = out(&run(at, &["inspect", "q.oinf"]));
    assert!(text.contains("- 3 scales on axis 0, 0.5 to 2, zero points -1 to 4\n"), "{text}");
    assert!(text.contains("- scale 0.25, zero point 3\n"), "{text}");

    let parts = ["quantize", "words.fifu", "parts.fifu", "--method", "pq", "--subquantizers", "2"];
    assert!(run(at, &[&parts[..], &["--allow-loss"]].concat()).status.success());
    for (file, shown) in [
        ("i8bin/embeddings.i8bin", "divided by 127"),
        ("sample-q8.mcf", "blocks of 32"),
        ("parts.fifu", "2 parts of 256 centroids"),
    ] {
        let text = out(&run(at, &["inspect", file]));
        assert!(text.contains(shown) && text.contains("  quantized\n"), "{file}: {text}");
    }
    assert!(!out(&run(at, &["inspect", "tiny.weights"])).contains("quantized"));
}

/// Files that the upstream writer of OINF quantized.
#[test]
fn scales_of_others_are_shown() {
    let Some(folder) = data::conformance("oinf/v2") else { return };
    for (file, kind) in
        [("quantized-q4.oinf", "i4"), ("quantized-q8.oinf", "i8"), ("quantized-u8.oinf", "u8")]
    {
        let told = object(&folder, &["inspect", file, "--json"]);
        let tensors = told["tensors"].as_array().unwrap();
        let scaled = tensors.iter().find(|t| t["encoding"] == format!("{kind}:scaled")).unwrap();
        let how = &scaled["quantization"];
        assert_eq!(how["kind"], "scales", "{file}");
        let count = match how["axis"].as_u64() {
            Some(axis) => scaled["shape"][usize::try_from(axis).unwrap()].clone(),
            None => json!(1),
        };
        assert_eq!(
            (&how["count"], how["scales"].as_array().unwrap().len()),
            (&count, usize::try_from(count.as_u64().unwrap()).unwrap())
        );
    }
}

#[test]
fn flags_have_names() {
    let folder = samples();
    let at = folder.path();
    let flags = object(at, &["inspect", "tiny.weights", "--json"])["flags"].clone();
    assert_eq!(flags, json!(["vocabulary", "aligned", "checksums"]));
    let text = out(&run(at, &["inspect", "tiny.weights"]));
    assert!(text.contains("\nflags: vocabulary, aligned, checksums\n"), "{text}");
    let Some(conformance) = data::conformance("embd") else { return };
    for (file, flags) in [
        ("indexed-unaligned-nocrc.weights", json!(["vocabulary"])),
        ("mixed-novocab.weights", json!(["aligned", "checksums"])),
    ] {
        assert_eq!(object(&conformance, &["inspect", file, "--json"])["flags"], flags, "{file}");
    }
}

#[test]
fn vocabularies_are_listed_in_every_format() {
    let folder = samples();
    let at = folder.path();
    for (file, count, first) in [
        ("tiny.weights", 24, "[PAD]"),
        ("tiny.oinf", 24, "[PAD]"),
        ("tiny.mcf", 24, "[PAD]"),
        ("tiny.safetensors", 24, "[PAD]"),
        ("hf-model", 106, "[PAD]"),
        ("words.fifu", 12, ""),
        ("words.vec", 12, ""),
        ("words.glove", 12, ""),
        ("words.w2v", 12, ""),
        ("words.bin", 12, ""),
    ] {
        let told = object(at, &["inspect", file, "--vocab", "--json"]);
        let tokens = told["vocabulary"]["tokens"].as_array().unwrap_or_else(|| panic!("{file}"));
        assert_eq!(tokens.len(), told["vocabulary"]["size"].as_u64().unwrap() as usize, "{file}");
        assert!(first.is_empty() || tokens[0] == first, "{file}");
        assert!(count == tokens.len() || first.is_empty() || file == "hf-model", "{file}");
        let text = out(&run(at, &["inspect", file, "--vocab"]));
        let last =
            format!("{:>6}  {}\n", tokens.len() - 1, tokens[tokens.len() - 1].as_str().unwrap());
        assert!(text.contains(&last), "{file}: {last:?} in {text}");
    }
    for file in ["npy/embeddings.npy", "i8bin/embeddings.i8bin"] {
        let told = object(at, &["inspect", file, "--vocab", "--json"]);
        assert_eq!(told["vocabulary"], Json::Null, "{file}");
        let shown = out(&run(at, &["inspect", file, "--vocab"]));
        assert!(shown.contains("\nno vocabulary\n"), "{shown}");
    }
}

/// Tokenizers of all kinds: the tokens are those that the file lists, by number.
#[test]
fn vocabularies_of_other_tokenizers_are_listed() {
    for family in ["qwen3", "xlmr-unigram", "roberta-bpe", "gemma3-embedding", "mpnet"] {
        let Some(folder) = data::reference(&format!("families/{family}")) else { return };
        let told = object(&folder, &["inspect", ".", "--vocab", "--json"]);
        let tokens =
            told["vocabulary"]["tokens"].as_array().unwrap_or_else(|| panic!("{family}: {told}"));
        let text = std::fs::read(folder.join("tokenizer.json")).unwrap();
        let file: Json = serde_json::from_slice(&text).unwrap();
        match &file["model"]["vocab"] {
            Json::Array(list) => {
                assert!(
                    list.iter().zip(tokens).all(|(entry, token)| entry[0] == *token),
                    "{family}"
                );
            }
            map => {
                let map = map.as_object().unwrap();
                assert!(
                    map.iter().all(|(token, id)| tokens[id.as_u64().unwrap() as usize] == **token),
                    "{family}"
                );
            }
        }
        for added in file["added_tokens"].as_array().unwrap() {
            let id = added["id"].as_u64().unwrap() as usize;
            assert_eq!(tokens[id], added["content"], "{family}");
        }
    }
}

#[test]
fn a_long_name_does_not_widen_every_row() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let tensor = |name: String| {
        let data = View::owned(1f32.to_le_bytes().to_vec());
        Tensor::stored(name, Encoding::Plain(DType::F32), vec![1], data).unwrap()
    };
    let long = "n".repeat(65_536);
    write(
        vec![tensor("short".to_owned()), tensor(long.clone())],
        "safetensors",
        &at.join("x.safetensors"),
    );
    let text = out(&run(at, &["inspect", "x.safetensors", "--stats", "--values"]));
    assert!(text.lines().all(|line| line.chars().count() < 160), "{text}");
    let half = "n".repeat(40);
    assert!(text.contains(&format!("  {half}…{half}  f32 ")), "{text}");
    let told = object(at, &["inspect", "x.safetensors", "--json"]);
    let names: Vec<_> = told["tensors"].as_array().unwrap().iter().map(|t| &t["name"]).collect();
    assert!(names.contains(&&json!(long)));
}

/// A pattern that fits no tensor is a mistake, whatever it is for.
#[test]
fn patterns_fit_something() {
    let folder = samples();
    let at = folder.path();
    for arguments in [
        &["inspect", "tiny.weights", "--tensors", "none*"][..],
        &["inspect", "tiny.oinf", "--tensors", "none*"],
        &["inspect", "tiny.weights", "--tensors", "none*", "--json"],
        &["convert", "tiny.weights", "x.oinf", "--select", "none*"],
        &["convert", "tiny.weights", "x.oinf", "--exclude", "none*"],
        &["quantize", "tiny.weights", "x.mcf", "--method", "q8", "--select", "none*"],
        &["quantize", "tiny.weights", "x.mcf", "--method", "q8", "--exclude", "none*"],
        &["quantize", "tiny.weights", "x.mcf", "--method", "q8", "--override", "none*=k4"],
        &["quantize", "npy/embeddings.npy", "x.i8bin", "--method", "i8", "--exclude", "none*"],
    ] {
        let output = run(at, arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", out(&output));
        let said = if arguments.contains(&"--json") { out(&output) } else { err(&output) };
        assert!(said.contains("no tensor fits"), "{arguments:?}: {said}");
    }
}

#[test]
fn tolerances_are_not_negative() {
    let folder = samples();
    for tolerance in ["-1", "NaN", "much"] {
        let arguments = ["diff", "tiny.weights", "tiny.oinf", "--tolerance", tolerance];
        let output = run(folder.path(), &arguments);
        assert_eq!(output.status.code(), Some(2), "{tolerance}");
        assert!(err(&output).contains("a number of at least 0 is needed"), "{}", err(&output));
    }
    let whole = ["diff", "tiny.weights", "tiny.oinf", "--tolerance", "inf"];
    assert!(run(folder.path(), &whole).status.success());
}
