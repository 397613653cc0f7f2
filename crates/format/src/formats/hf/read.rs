//! Folder to container.

use super::super::{Stop, safetensors};
use super::settings::Settings;
use super::{JSON, MISSING, TENSORS, TOKENIZER, tokenizer};
use crate::Input;
use crate::model::{Attachment, Container, Value};
use crate::source::Source;
use crate::wire::Findings;
use serde_json::Value as Json;

const MODEL: &str = "model.safetensors";
const INDEX: &str = "model.safetensors.index.json";

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

/// The files of a folder that are known by name.
pub(super) struct Files<'a> {
    input: &'a Input,
}

impl Files<'_> {
    pub(super) fn has(&self, name: &str) -> bool {
        self.input.folder.exists(name)
    }

    pub(super) fn source(&self, name: &str) -> Result<Source, Stop> {
        self.input.folder.open(name).map_err(|e| {
            MISSING.at(0..0).field(name).expected("a readable file").found(e.to_string()).into()
        })
    }

    /// A JSON file; null when it is not there.
    pub(super) fn json(&self, name: &str) -> Result<Json, Stop> {
        if !self.has(name) {
            return Ok(Json::Null);
        }
        let source = self.source(name)?;
        serde_json::from_slice(source.bytes()).map_err(|e| {
            let finding = JSON.at(0..source.len()).field(name).expected("JSON");
            finding.found(e.to_string()).hint("the file may be cut short").into()
        })
    }
}

pub(super) fn read(input: &Input, findings: &mut Findings) -> Result<Container, Stop> {
    let files = Files { input };
    let config = files.json("config.json")?;
    let mut container = read_tensors(input, &files, findings)?;
    container.format = "hf";
    // A folder has no bytes of its own to map.
    container.regions = Default::default();
    // `format: pt` is in every such file and says nothing.
    let own = std::mem::take(&mut container.metadata);
    container.metadata.push(("model_name".into(), Value::Text(input.name.clone())));

    let tokenizer = tokenizer::read(&files, findings)?;
    let settings = Settings::read(&files, &config, &tokenizer)?;
    settings.add_to(&mut container);
    for (key, value) in own.into_iter().filter(|(key, _)| key != "format") {
        if container.text(&key).is_none() {
            container.metadata.push((key, value));
        }
    }
    // Without any tokenizer file there is nothing that would need more words.
    let has_tokenizer = files.has("tokenizer.json") || files.has("vocab.txt");
    let described = settings.is_bert && (tokenizer.is_plain || !has_tokenizer);
    if !tokenizer.is_plain && settings.is_bert && has_tokenizer {
        findings.push(
            TOKENIZER
                .at(0..0)
                .field("tokenizer.json")
                .expected("BERT's normalizer, pre-tokenizer and WordPiece")
                .hint("formats without attachments can't keep it"),
        );
    }
    container.vocabulary = tokenizer.vocabulary;
    for name in input.folder.list().map_err(|e| MISSING.at(0..0).found(e.to_string()))? {
        // Weights of further modules (a dense layer behind the pooling) are not read; whoever can't
        // attach them must say so.
        let is_model = name == MODEL || name == INDEX || is_shard(&name);
        let further = name.contains('/')
            && (name.ends_with(".safetensors") || name.ends_with("/config.json"));
        let described = described && CARRIED.contains(&name.as_str());
        if !is_model && (further || CARRIED.contains(&name.as_str())) {
            let source = files.source(&name)?;
            let size = source.len();
            let data = source.view(0..size).ok_or_else(|| MISSING.at(0..size))?;
            container.attachments.push(Attachment { name, data, described });
        } else if !is_model {
            container.ignored.push(name);
        }
    }
    container.attachments.sort_by_key(|a| CARRIED.iter().position(|n| *n == a.name));
    Ok(container)
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
