//! `embed` with models that can't be used, and files that are not its own.

mod common;

use common::{err, folder_with_model as samples, run};
use serde_json::{Value as Json, json};
use std::path::Path;
use std::process::{Command, Output};

fn embed(folder: &Path, arguments: &[&str]) -> Output {
    run(folder, &[&["embed", "--model", "model"], arguments].concat())
}

/// Changes one of the model's files.
fn edit(folder: &Path, name: &str, change: impl Fn(&mut Json)) {
    let path = folder.join("model").join(name);
    let mut json = std::fs::read(&path).map_or(json!({}), |b| serde_json::from_slice(&b).unwrap());
    change(&mut json);
    std::fs::write(path, json.to_string()).unwrap();
}

/// The message with which a changed model is refused.
fn refusal(name: &str, change: impl Fn(&mut Json)) -> String {
    let folder = samples();
    edit(folder.path(), name, change);
    let output = embed(folder.path(), &["a truck"]);
    assert!(matches!(output.status.code(), Some(2 | 3)), "{}", err(&output));
    err(&output)
}

#[test]
fn models_that_would_give_wrong_vectors_are_refused() {
    let said = refusal("config.json", |c| {
        c["model_type"] = json!("deberta");
        c["architectures"] = json!(["DebertaModel"]);
    });
    assert!(said.contains("DebertaModel") && said.contains("architecture \"deberta\""), "{said}");
    let said = refusal("config.json", |c| c["position_embedding_type"] = json!("relative_key"));
    assert!(said.contains("relative_key"), "{said}");
    let said = refusal("config.json", |c| c["hidden_act"] = json!("quick_gelu"));
    assert!(said.contains("quick_gelu"), "{said}");
    let said = refusal("config.json", |c| c["num_attention_heads"] = json!(5));
    assert!(said.contains("5 attention heads"), "{said}");
    for layers in [json!(0), json!(100_000)] {
        let said = refusal("config.json", |c| c["num_hidden_layers"] = layers.clone());
        assert!(said.contains("number of layers"), "{said}");
    }
    let said = refusal("config.json", |c| c["num_hidden_layers"] = json!("many"));
    assert!(
        said.contains("config.json num_hidden_layers") && said.contains("is \"many\""),
        "{said}"
    );
    let said = refusal("config.json", |c| c["num_hidden_layers"] = json!(9));
    assert!(said.contains("lacks the tensor encoder.layer.") && said.contains("nearest"), "{said}");
    let said = refusal("modules.json", |m| {
        let dense = json!({"type": "sentence_transformers.models.Dense", "path": "3_Dense"});
        m.as_array_mut().unwrap().push(dense);
    });
    assert!(said.contains("lacks the file 3_Dense/config.json"), "{said}");
    let said = refusal("modules.json", |m| {
        let other = json!({"type": "sentence_transformers.models.LSTM", "path": "3_LSTM"});
        m.as_array_mut().unwrap().push(other);
    });
    assert!(said.contains("LSTM"), "{said}");
}

/// Flags of other kinds of pooling are not taken for the mean.
#[test]
fn other_poolings_are_refused() {
    let said = refusal("1_Pooling/config.json", |p| {
        *p = json!({"pooling_mode_mean_tokens": false, "pooling_mode_median": true});
    });
    assert!(said.contains("the pooling \"pooling_mode_median\" is not supported"), "{said}");
    let said = refusal("1_Pooling/config.json", |p| *p = json!({"pooling_mode": "median"}));
    assert!(said.contains("median"), "{said}");
}

/// What a format can't say of a model is a loss, not a model of another kind.
#[test]
fn modules_do_not_vanish_on_the_way() {
    let folder = samples();
    edit(folder.path(), "modules.json", |m| {
        let dense = json!({"type": "sentence_transformers.models.Dense", "path": "3_Dense"});
        m.as_array_mut().unwrap().push(dense);
    });
    let mut command = Command::new(env!("CARGO_BIN_EXE_weighbridge"));
    let command = command.args(["convert", "model", "model.weights"]).current_dir(folder.path());
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", err(&output));
    assert!(err(&output).contains("modules.json"), "{}", err(&output));
}

/// Sums and roundings would swallow them.
#[test]
fn weights_that_are_no_numbers_are_named() {
    for bad in [f32::NAN, f32::INFINITY] {
        let folder = samples();
        let path = folder.path().join("model/model.safetensors");
        let mut bytes = std::fs::read(&path).unwrap();
        let length = usize::try_from(u64::from_le_bytes(bytes[..8].try_into().unwrap())).unwrap();
        let header: Json = serde_json::from_slice(&bytes[8..8 + length]).unwrap();
        let name = "encoder.layer.1.attention.self.key.weight";
        let start = header[name]["data_offsets"][0].as_u64().unwrap();
        let at = 8 + length + usize::try_from(start).unwrap() + 40;
        bytes[at..at + 4].copy_from_slice(&bad.to_le_bytes());
        std::fs::write(&path, bytes).unwrap();
        for precision in ["f32", "q8"] {
            let output = embed(folder.path(), &["--precision", precision, "a truck"]);
            assert_eq!(output.status.code(), Some(2), "{}", err(&output));
            assert!(err(&output).contains(name), "{}", err(&output));
        }
    }
}

#[test]
fn files_of_others_are_left_alone() {
    let folder = samples();
    let at = folder.path();
    std::fs::write(at.join("texts.txt"), "a truck\na king\n").unwrap();
    let write = ["--input", "texts.txt", "--output", "v.npy", "--force"];
    for name in ["v.npy.partial", "v.npy.partial.records"] {
        std::fs::write(at.join(name), "precious").unwrap();
        let output = embed(at, &write);
        assert_eq!(output.status.code(), Some(2), "{}", err(&output));
        assert_eq!(std::fs::read_to_string(at.join(name)).unwrap(), "precious");
        std::fs::remove_file(at.join(name)).unwrap();
    }
    let output = embed(at, &["--input", "texts.txt", "-o", "texts.txt", "--to", "npy", "--force"]);
    assert_eq!(output.status.code(), Some(2), "{}", err(&output));
    assert!(std::fs::read_to_string(at.join("texts.txt")).unwrap().starts_with("a truck"));
    assert!(embed(at, &write).status.success());
}

#[test]
fn threads_have_a_limit() {
    let folder = samples();
    let output = embed(folder.path(), &["--threads", "100000", "a truck"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(err(&output).contains("at most 1024"), "{}", err(&output));
}

/// A model without modules.json: what is assumed is said once, and families are known by name.
#[test]
fn what_nobody_says_of_a_model_is_said() {
    let folder = samples();
    let at = folder.path();
    let vectors = |arguments: &[&str]| {
        let output = embed(at, arguments);
        assert!(output.status.success(), "{}", err(&output));
        (common::out(&output), err(&output))
    };
    let (said_mean, nothing) = vectors(&["a truck"]);
    assert_eq!(nothing, "");
    std::fs::remove_file(at.join("model/modules.json")).unwrap();
    std::fs::remove_dir_all(at.join("model/1_Pooling")).unwrap();
    let (assumed, note) = vectors(&["a truck", "a lorry"]);
    assert_eq!(note, "note: assumed: mean pooling, normalized; model does not say it\n");
    assert_eq!(assumed.lines().next(), said_mean.lines().next());
    let (cls, note) = vectors(&["a truck", "--pooling", "cls"]);
    assert_eq!(note, "note: assumed: normalized; model does not say it\n");
    let (_, note) = vectors(&["a truck", "--pooling", "cls", "--no-normalize"]);
    assert_eq!(note, "");

    // By the name in config.json, and by the folder's.
    edit(at, "config.json", |c| c["_name_or_path"] = json!("BAAI/bge-small-en-v1.5"));
    let expected = "note: assumed: cls pooling (known of bge), normalized (known of bge); \
                    model does not say it\n";
    assert_eq!(vectors(&["a truck"]), (cls.clone(), expected.to_owned()));
    let report = vectors(&["a truck", "-o", "v.npy", "--json"]).0;
    let report: Json = serde_json::from_str(&report).unwrap();
    assert_eq!(
        report["assumed"],
        json!(["cls pooling (known of bge)", "normalized (known of bge)"])
    );
    let shown = run(at, &["inspect", "model", "--json"]);
    let shown: Json = serde_json::from_slice(&shown.stdout).unwrap();
    let model = &shown["model"];
    assert_eq!(model["pooling"], json!({"value": ["cls"], "said_by": {"family": "bge"}}));
    assert_eq!(model["base"]["said_by"], json!({"file": "config.json _name_or_path"}));
    edit(at, "config.json", |c| c["_name_or_path"] = json!("bert-base-uncased"));
    std::fs::rename(at.join("model"), at.join("snowflake-arctic-embed-xs")).unwrap();
    let output = run(at, &["compare", "-m", "snowflake-arctic-embed-xs", "a truck", "a lorry"]);
    assert!(err(&output).contains("cls pooling (known of snowflake-arctic-embed)"));
    // Whoever packs it keeps the name, and so what is known of it.
    for packed in ["x.weights", "x.mcf"] {
        let done = run(at, &["convert", "snowflake-arctic-embed-xs", packed]);
        assert!(done.status.success(), "{}", err(&done));
        let output = run(at, &["embed", "-m", packed, "a truck"]);
        assert!(err(&output).contains("cls pooling (known of"), "{packed}: {}", err(&output));
        assert_eq!(common::out(&output), cls);
    }
}
