//! `embed`, `compare` and `tokenize` as a user meets them.

mod common;

use common::{err, fed, folder_with_model as samples, out, run};
use serde_json::{Value as Json, json};
use weighbridge::Encoder;
use weighbridge::encoder::{Pooling, Settings};

fn lines(text: &str) -> Vec<Json> {
    text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

const TEXTS: [&str; 4] = ["a full truck", "the lorry is empty", "king and queen", "東京 é"];

fn vector(json: &Json) -> Vec<f32> {
    json["vector"].as_array().unwrap().iter().map(|v| v.as_f64().unwrap() as f32).collect()
}

fn norm(vector: &[f32]) -> f32 {
    vector.iter().map(|v| v * v).sum::<f32>().sqrt()
}

fn far_apart(a: &[f32], b: &[f32]) -> f32 {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max)
}

#[test]
fn texts_are_printed_with_their_vectors() {
    let folder = samples();
    let at = folder.path();
    let expected = Encoder::open(at.join("model")).unwrap().embed(&TEXTS).unwrap();
    let arguments = [&["embed", "--model", "model", "--json"][..], &TEXTS].concat();
    let output = run(at, &arguments);
    assert!(output.status.success(), "{}", err(&output));
    let given = lines(&out(&output));
    let piped = ["embed", "--model", "model", "--to", "jsonl", "-i", "-", "-o", "-"];
    let piped = fed(at, &piped, TEXTS.join("\n"));
    let named = fed(at, &["embed", "-m", "model", "-i", "-", "--batch", "3"], TEXTS.join("\r\n"));
    assert_eq!(out(&piped), out(&output));
    for lines in [given, lines(&out(&named))] {
        assert_eq!(lines.len(), 4);
        for ((line, text), expected) in lines.iter().zip(TEXTS).zip(&expected) {
            assert_eq!(line["text"], text);
            assert!(far_apart(&vector(line), expected) < 1e-6);
        }
    }
    // A text may have several lines, and be empty.
    let output = run(at, &["embed", "--model", "model", "a\nb", "", "  "]);
    let found = lines(&out(&output));
    assert_eq!(found[0]["text"], "a\nb");
    assert_eq!(vector(&found[1]), vector(&found[2]));
}

#[test]
fn settings_have_their_effect() {
    let folder = samples();
    let at = folder.path();
    let with = |options: &[&str]| {
        let output =
            run(at, &[&["embed", "--model", "model", "a full truck"][..], options].concat());
        assert!(output.status.success(), "{}", err(&output));
        vector(&lines(&out(&output))[0])
    };
    let own = with(&[]);
    assert!((norm(&own) - 1.0).abs() < 1e-5);
    let raw = with(&["--no-normalize"]);
    assert!((norm(&raw) - 1.0).abs() > 0.1);
    let scaled: Vec<_> = raw.iter().map(|v| v / norm(&raw)).collect();
    assert!(far_apart(&scaled, &own) < 1e-6);
    // The first values, of unit length again.
    let short = with(&["--dimensions", "5"]);
    let cut: Vec<_> = raw[..5].iter().map(|v| v / norm(&raw[..5])).collect();
    assert!(far_apart(&short, &cut) < 1e-6);
    assert_eq!(with(&["--dimensions", "5", "--no-normalize"]), raw[..5]);
    for (name, pooling) in [("mean", Pooling::Mean), ("cls", Pooling::Cls), ("max", Pooling::Max)] {
        let settings = Settings { pooling: Some(pooling), ..Settings::default() };
        let encoder = Encoder::open_with(at.join("model"), &settings).unwrap();
        let expected = encoder.embed(&["a full truck"]).unwrap().remove(0);
        let found = with(&["--pooling", name]);
        assert!(far_apart(&found, &expected) < 1e-6, "{name}");
        assert_eq!(far_apart(&found, &own) < 1e-6, name == "mean");
    }
    assert!(far_apart(&with(&["--precision", "q8"]), &own) < 0.1);
    assert!(far_apart(&with(&["--threads", "1"]), &own) < 1e-6);
    // Only the first word between the two marks.
    let first = run(at, &["embed", "--model", "model", "a", "--max-tokens", "3"]);
    assert!(far_apart(&with(&["--max-tokens", "3"]), &vector(&lines(&out(&first))[0])) < 1e-6);
}

#[test]
fn every_format_holds_the_vectors() {
    let folder = samples();
    let at = folder.path();
    let texts: Vec<String> = (0..100).map(|i| format!("truck {i} on the road")).collect();
    std::fs::write(at.join("texts.txt"), texts.join("\n") + "\n").unwrap();
    let expected = Encoder::open(at.join("model")).unwrap().embed_flat(&texts).unwrap();
    for name in ["v.npy", "v.f32bin", "v.i8bin", "v.safetensors", "v.fifu", "v.jsonl", "v.oinf"] {
        std::fs::create_dir(at.join(name)).unwrap();
        let path = format!("{name}/{name}");
        let arguments = ["embed", "--model", "model", "--input", "texts.txt", "--output", &path];
        let output = run(at, &[&arguments[..], &["--batch", "30"]].concat());
        assert!(output.status.success(), "{name}: {}", err(&output));
        assert!(out(&output).contains("100 vectors of 32 values"), "{}", out(&output));
        let mut files: Vec<_> =
            at.join(name).read_dir().unwrap().map(|e| e.unwrap().file_name()).collect();
        files.sort();
        let of_rows = name.ends_with("8bin") || name.ends_with("32bin");
        assert_eq!(files.len(), if of_rows { 2 } else { 1 }, "{files:?}");
        if name == "v.jsonl" {
            let found = lines(&std::fs::read_to_string(at.join(&path)).unwrap());
            let values: Vec<f32> = found.iter().flat_map(vector).collect();
            assert!(far_apart(&values, &expected) < 1e-6);
            assert_eq!(found[7]["text"], texts[7].as_str());
            continue;
        }
        assert!(run(at, &["verify", &path]).status.success(), "{name}");
        let opened = weighbridge::open(at.join(&path)).unwrap();
        let tolerance = if name == "v.i8bin" { 0.01 } else { 1e-6 };
        let matrix = opened.word_matrix().unwrap();
        let values = matrix.original().unwrap().values_f32(0, expected.len()).unwrap();
        assert!(far_apart(&values, &expected) < tolerance, "{name}");
        if of_rows {
            let records = opened.records.as_ref().unwrap();
            assert_eq!(records.items().unwrap()[99], "{\"text\": \"truck 99 on the road\"}");
        }
        if name == "v.fifu" {
            let found = run(at, &["similar", &path, "truck 5 on the road", "-k", "1"]);
            assert!(out(&found).contains("on the road"), "{}", err(&found));
        }
        if name == "v.i8bin" {
            let said = out(&output);
            assert!(said.contains("precision of tensor") && said.contains("at most"), "{said}");
        }
    }
    // A file of one tensor, and nothing else to say but what it was made with.
    let plain = weighbridge::open(at.join("v.safetensors/v.safetensors")).unwrap();
    let keys: Vec<_> = plain.metadata.iter().map(|(key, _)| key.as_str()).collect();
    assert_eq!(keys, ["embedding"]);
    assert!(plain.origin.is_none() && plain.records.is_none());
}

#[test]
fn records_of_json_lines_are_kept() {
    let folder = samples();
    let at = folder.path();
    let input = "{\"id\": 1.50, \"text\": \"a truck\", \"vector\": [9]}\n\n{\"text\": \"a l\\u006frry\", \"tags\": [\"x\"]}\n";
    std::fs::write(at.join("in.jsonl"), input).unwrap();
    let model = ["embed", "--model", "model", "--input", "in.jsonl"];
    let printed = run(at, &model);
    let plain = run(at, &["embed", "--model", "model", "a truck", "a lorry"]);
    let (printed, plain) = (lines(&out(&printed)), lines(&out(&plain)));
    assert_eq!(printed[0]["id"], 1.5);
    assert_eq!(printed[1]["tags"], json!(["x"]));
    assert!((0..2).all(|i| printed[i]["vector"] == plain[i]["vector"]));

    for name in ["v.i8bin", "v.safetensors"] {
        let output = run(at, &[&model[..], &["-o", name]].concat());
        assert!(output.status.success(), "{}", err(&output));
        let records = weighbridge::open(at.join(name)).unwrap().records.unwrap();
        let items: Vec<_> = records.items().unwrap().iter().map(|r| (*r).to_owned()).collect();
        assert_eq!(items[0], "{\"id\": 1.50, \"text\": \"a truck\"}");
        assert_eq!(items[1], "{\"text\": \"a l\\u006frry\", \"tags\": [\"x\"]}");
    }
    let output = run(at, &[&model[..], &["-o", "v.npy", "--json"]].concat());
    let report: Json = serde_json::from_str(&out(&output)).unwrap();
    assert_eq!(report["rows"], 2);
    assert_eq!(report["dimensions"], 32);
    assert_eq!((&report["resumed"], &report["skipped"]), (&json!(0), &json!(0)));
    assert_eq!(report["report"]["losses"][0]["what"], "2 row records");

    std::fs::write(at.join("in.txt"), "{\"title\": \"a truck\"}\n").unwrap();
    let output = run(at, &["embed", "--model", "model", "--input", "in.txt", "--field", "title"]);
    assert_eq!(lines(&out(&output))[0]["vector"], plain[0]["vector"]);
}

#[test]
fn two_texts_are_compared() {
    let folder = samples();
    let at = folder.path();
    let output = run(at, &["compare", "--model", "model", "a full truck", "A full truck"]);
    assert_eq!(out(&output), "1.0000\n", "{}", err(&output));
    let output = run(at, &["compare", "--model", "model", "a truck", "a lorry", "--json"]);
    let object: Json = serde_json::from_str(&out(&output)).unwrap();
    assert_eq!(object["texts"], json!(["a truck", "a lorry"]));
    let vectors = Encoder::open(at.join("model")).unwrap().embed(&["a truck", "a lorry"]).unwrap();
    let expected: f32 = vectors[0].iter().zip(&vectors[1]).map(|(a, b)| a * b).sum();
    assert!((object["cosine"].as_f64().unwrap() - f64::from(expected)).abs() < 1e-6);
}

#[test]
fn tokens_are_shown() {
    let folder = samples();
    let at = folder.path();
    let output = run(at, &["tokenize", "--model", "model", "A weighbridge!", "--json"]);
    let vocabulary = std::fs::read_to_string(at.join("model/vocab.txt")).unwrap();
    let tokens = ["[CLS]", "a", "weigh", "##bridge", "!", "[SEP]"];
    let ids: Vec<_> =
        tokens.iter().map(|t| vocabulary.lines().position(|l| l == *t).unwrap()).collect();
    let expected = format!("{{\"ids\":{},\"tokens\":{}}}\n", json!(ids), json!(tokens));
    assert_eq!(out(&output), expected, "{}", err(&output));
    // What stands in front of a text is seen by the model, too.
    let ids = |prompt: &str, text: &str| {
        let output = run(at, &["tokenize", "-m", "model", "--prompt", prompt, text, "--json"]);
        serde_json::from_str::<Json>(&out(&output)).unwrap()["ids"].clone()
    };
    assert_eq!(ids("a ", "truck"), ids("", "a truck"));
    assert_ne!(ids("a ", "truck"), ids("", "truck"));
    let output = run(at, &["tokenize", "--model", "model", "A weighbridge!"]);
    assert!(out(&output).lines().any(|l| l.ends_with("  ##bridge")), "{}", out(&output));
}

#[test]
fn what_can_not_be_done_is_said_before_the_work() {
    let folder = samples();
    let at = folder.path();
    std::fs::write(at.join("exists.npy"), "x").unwrap();
    let model = ["embed", "--model", "model", "a truck"];
    for (options, code, expected) in [
        (&["--to", "npy"][..], 2, "--output names it"),
        (&["-o", "out.what"], 2, "does not tell the format"),
        (&["-o", "out.npy", "--to", "what"], 2, "there is no format \"what\""),
        (&["-o", "no/out.npy"], 2, "the folder no does not exist"),
        (&["-o", "exists.npy"], 2, "--force replaces it"),
        (&["-o", "out", "--to", "hf"], 2, "can't be written as hf"),
        (&["-o", "out.i8bin", "--no-normalize"], 2, "leave out --no-normalize"),
        (&["--dimensions", "33"], 2, "from 1 to 32"),
        (&["--max-tokens", "65"], 2, "64"),
        (&["--threads", "0"], 2, "at least 1"),
        (&["--input", "x"], 2, "cannot be used with"),
        (&["--resume"], 2, "--output"),
    ] {
        let output = run(at, &[&model[..], options].concat());
        assert_eq!(output.status.code(), Some(code), "{options:?}: {}", err(&output));
        assert!(err(&output).contains(expected), "{options:?}: {}", err(&output));
    }
    let missing = run(at, &["embed", "--model", "model", "--input", "missing.txt"]);
    assert_eq!(missing.status.code(), Some(4));
    let unknown = run(at, &["embed", "--model", "no such model", "a"]);
    assert_eq!(unknown.status.code(), Some(4), "{}", err(&unknown));
    assert_eq!(std::fs::read(at.join("exists.npy")).unwrap(), b"x");
    assert!(run(at, &[&model[..], &["-o", "exists.npy", "--force"]].concat()).status.success());
    assert_eq!(at.read_dir().unwrap().count(), 2);
}

/// A model's own prompt stands in front of every text, as its library puts it there.
#[test]
fn tokens_are_those_that_the_model_sees() {
    let Some(model) = weighbridge_testkit::data::reference("families/modernbert-mean") else {
        return;
    };
    let expected: Json =
        serde_json::from_slice(&std::fs::read(model.join("expected.json")).unwrap()).unwrap();
    let (texts, ids) = (&expected["texts"], &expected["token_ids"]);
    let model = model.display().to_string();
    let mut visited = 0;
    for (text, ids) in texts.as_array().unwrap().iter().zip(ids.as_array().unwrap()) {
        // No argument of a program has a zero byte.
        let text = text.as_str().unwrap();
        if text.contains('\0') || visited == 12 {
            continue;
        }
        let output =
            run(std::path::Path::new("."), &["tokenize", "-m", &model, "--json", "--", text]);
        let told: Json = serde_json::from_str(&out(&output)).unwrap();
        assert_eq!(told["ids"], *ids, "{text:?}");
        visited += 1;
    }
    assert_eq!(visited, 12);
}
