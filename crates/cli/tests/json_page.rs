//! docs/json.md names every member that a verb prints.

mod common;

use common::{assert_on_the_page, fed, out, run};
use serde_json::Value as Json;
use std::collections::BTreeSet;

/// Every verb that prints JSON, with what makes it say the most. `metadata` alone prints what a file
/// calls its own things; `pull` is in the tests of that verb.
const COMMANDS: &[&str] = &[
    "inspect tiny.weights --stats --values --vocab --bytes",
    "inspect tiny.oinf --stats --values --bytes",
    "inspect tiny.mcf --vocab",
    "inspect tiny.safetensors",
    "inspect sample-q8.mcf --stats",
    "inspect small.mcf --stats",
    "inspect words.fifu --vocab --bytes",
    "inspect words.bin",
    "models",
    "diff hf-model sample-q8.mcf --texts default",
    "inspect words.vec --vocab",
    "inspect texts-q8.i8bin",
    "inspect product.fifu",
    "inspect i8bin/embeddings.i8bin --stats --values",
    "inspect hf-model --vocab",
    "inspect rounded.oinf",
    "verify tiny.weights damaged.weights none words.txt",
    "verify damaged.weights",
    "convert tiny.weights x.safetensors --dry-run",
    "convert tiny.weights tiny.oinf --dry-run",
    "convert tiny.weights x.npy --dry-run --select *word_embeddings*",
    "convert tiny.weights x.weights --dtype f16 --dry-run",
    "convert tiny.weights x.weights --dtype f16",
    "convert hf-model x.weights --dry-run",
    "convert none x.weights",
    "convert tiny.weights x.unknown",
    "convert damaged.weights x.mcf",
    "quantize tiny.weights q.mcf --method q8",
    "quantize hf-model calibrated.mcf --method k4 --allow-loss",
    "quantize words.fifu --method pq --subquantizers 2 --dry-run",
    "distill --model hf-model --output static.safetensors --dimensions 8",
    "lookup words.fifu truck kohlrabi",
    "similar words.vec truck kohlrabi",
    "analogy words.fifu car truck lorry",
    "analogy words.fifu car truck kohlrabi",
    "evaluate words.fifu questions.txt",
    "select words.fifu wanted.txt few.fifu --ignore-unknown --dry-run",
    "metadata tiny.oinf --set a=b -o other.oinf",
    "embed --model hf-model --input texts.txt",
    "embed --model hf-model --input texts.txt --output v.npy",
    "embed --model hf-model --input texts.txt --output one.f32bin --shard 1/1",
    "merge all.safetensors one.f32bin --output-type int8",
    "compare --model hf-model one two",
    "tokenize --model hf-model one",
    "search texts.i8bin one -k 2",
    "search words.fifu truck -k 2",
    "search words.fifu truck -o found.safetensors",
    "neighbours texts.i8bin -k 2",
    "neighbours texts.i8bin --threshold 0.5",
    "recall words.fifu words.vec -k 3",
    "convert texts.i8bin vectors.npy --allow-loss --recall",
    "similar texts.i8bin 3 99",
    "diff tiny.weights tiny.oinf",
    "diff tiny.weights half.weights",
    "diff words.fifu words.vec",
    "formats",
    "new made.oinf --data new.json",
];

#[test]
fn every_member_is_on_the_page() {
    let folder = tempfile::tempdir().unwrap();
    assert!(run(folder.path(), &["quickstart", ".", "--offline"]).status.success());
    let at = folder.path();
    for made in [
        &["convert", "tiny.weights", "half.weights", "--dtype", "f16", "--allow-loss"][..],
        &["convert", "sample-q8.mcf", "rounded.oinf", "--allow-loss"],
        &[
            "quantize",
            "words.fifu",
            "product.fifu",
            "--method",
            "opq",
            "--subquantizers",
            "2",
            "--allow-loss",
        ],
    ] {
        let output = run(at, made);
        assert!(output.status.success(), "{made:?}: {}", common::err(&output));
    }
    std::fs::write(at.join("words.txt"), "just words\n").unwrap();
    std::fs::write(at.join("new.json"), r#"{"tensors": {"w": {"values": [1]}}}"#).unwrap();
    let mut verbs = BTreeSet::new();
    let texts = "Give me a weighbridge.\nAnother text.\n";
    for command in COMMANDS {
        let mut arguments: Vec<_> = command.split(' ').collect();
        arguments.push("--json");
        verbs.insert(arguments[0]);
        let output = fed(at, &arguments, texts);
        let text = out(&output);
        let values = serde_json::Deserializer::from_str(&text).into_iter::<Json>();
        let mut seen = 0;
        for value in values {
            assert_on_the_page(
                &value.unwrap_or_else(|e| panic!("{command}: {e}: {text}")),
                command,
            );
            seen += 1;
        }
        assert!(seen > 0, "{command}: {}", common::err(&output));
    }
    // Those of all verbs that have the option.
    let help = out(&run(at, &["--help"]));
    let listed = help.lines().filter_map(|l| l.strip_prefix("  ")?.split_once("  "));
    for verb in listed.map(|(verb, _)| verb).filter(|v| v.chars().all(|c| c.is_ascii_lowercase())) {
        let has_json = out(&run(at, &[verb, "--help"])).contains("--json");
        // These two need a server, and a model of another kind: their own tests look at the page.
        let is_elsewhere = ["pull", "rerank"].contains(&verb);
        assert!(verbs.contains(verb) || !has_json || is_elsewhere, "{verb} is not among them");
    }
}
