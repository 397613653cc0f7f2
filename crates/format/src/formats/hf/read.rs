//! Folder to container.

use super::super::{Stop, safetensors};
use super::files::Files;
use super::{MISSING, TENSORS, describe};
use crate::Input;
use crate::model::{Attachment, Container, Value};
use crate::wire::Findings;

pub(super) const MODEL: &str = "model.safetensors";
pub(super) const INDEX: &str = "model.safetensors.index.json";
/// Endings of weights in other forms than safetensors: not read, and not carried either.
const OTHER_WEIGHTS: [&str; 9] =
    [".bin", ".pt", ".pth", ".ckpt", ".h5", ".msgpack", ".onnx", ".ot", ".gguf"];

/// Files that say something about the model, in the order in which they are attached.
const CARRIED: [&str; 12] = [
    "config.json",
    "generation_config.json",
    "modules.json",
    "sentence_bert_config.json",
    "config_sentence_transformers.json",
    "1_Pooling/config.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "vocab.txt",
    "vocab.json",
    "merges.txt",
];

pub(super) fn read(input: &Input, findings: &mut Findings) -> Result<Container, Stop> {
    let files = Files::of_folder(&*input.folder);
    let mut container = read_tensors(input, &files, findings)?;
    container.format = "hf";
    // A folder has no bytes of its own to map.
    container.regions = Default::default();
    // `format: pt` is in every such file and says nothing.
    let own = std::mem::take(&mut container.metadata);
    container.metadata.push(("model_name".into(), Value::Text(input.name.clone())));

    let description = describe::read(&files, findings)?;
    for (key, value) in &description.settings {
        container.set_text(key, value.clone());
    }
    for (key, value) in own.into_iter().filter(|(key, _)| key != "format") {
        if container.text(&key).is_none() {
            container.metadata.push((key, value));
        }
    }
    container.vocabulary = description.vocabulary;
    let mut headers = serde_json::Map::new();
    for name in input.folder.list().map_err(|e| MISSING.at(0..0).found(e.to_string()))? {
        let is_model = name == MODEL || is_shard(&name);
        if is_model {
            let file = files.view(&name)?;
            headers.insert(name, safetensors::header_text(&file).into());
        } else if OTHER_WEIGHTS.iter().any(|e| name.ends_with(e)) {
            container.ignored.push(name);
        } else {
            // Weights of further modules (a dense layer behind the pooling) are not read, nor what
            // their configuration says; whoever can't attach them must say so.
            let further = name.contains('/')
                && (name.ends_with(".safetensors") || name.ends_with("/config.json"));
            let known = CARRIED.contains(&name.as_str());
            let described = if known { description.is_whole } else { !further };
            let data = files.view(&name)?;
            container.attachments.push(Attachment { name, data, described });
        }
    }
    container.dialect.insert("headers".into(), headers.into());
    let place = |name: &str| CARRIED.iter().position(|n| *n == name).unwrap_or(usize::MAX);
    container.attachments.sort_by_key(|a| place(&a.name));
    Ok(container)
}

/// Name and text of the headers of the safetensors files that a container's tensors stood in.
pub(in super::super) fn headers(container: &Container) -> Vec<(String, String)> {
    let headers = container.dialect_of("hf").and_then(|d| d.get("headers")?.as_object());
    let text = |(name, text): (&String, &serde_json::Value)| {
        Some((name.clone(), text.as_str()?.to_owned()))
    };
    headers.map(|map| map.iter().filter_map(text).collect()).unwrap_or_default()
}

/// `model-00001-of-00003.safetensors`: named by the index, if there is one.
fn is_shard(name: &str) -> bool {
    name.starts_with("model-") && name.ends_with(".safetensors") && !name.contains('/')
}

fn read_tensors(input: &Input, files: &Files, findings: &mut Findings) -> Result<Container, Stop> {
    if files.has(MODEL) {
        let source = files.source(MODEL)?;
        let in_model = |stop| match stop {
            Stop::Broken(mut finding) => {
                finding.field = format!("{MODEL}: {}", finding.field);
                Stop::Broken(finding)
            }
            failed => failed,
        };
        let mut container = safetensors::read_file(&source, findings).map_err(in_model)?;
        container.layout = MODEL.to_owned();
        return Ok(container);
    }
    if files.has(INDEX) {
        let mut container = safetensors::read_index(input, &files.source(INDEX)?, findings)?;
        container.layout = "sharded safetensors".to_owned();
        return Ok(container);
    }
    let names = input.folder.list().unwrap_or_default();
    let pickled =
        names.iter().find(|n| n.ends_with(".bin") || n.ends_with(".pt") || n.ends_with(".ckpt"));
    Err(match pickled {
        Some(name) => TENSORS
            .at(0..0)
            .field(name.clone())
            .expected(format!("{MODEL} or {INDEX}"))
            .found("a Python pickle, which can run code when it is opened")
            .hint("load it where you trust it and save it with safe_serialization=True")
            .into(),
        None => MISSING
            .at(0..0)
            .field(MODEL)
            .expected(format!("{MODEL} or {INDEX}"))
            .found("neither")
            .into(),
    })
}
