//! Folder to container.

use super::super::{Stop, safetensors};
use super::files::Files;
use super::tokenizer::LIST;
use super::{MISSING, TENSORS, describe, nested};
use crate::Input;
use crate::model::{Attachment, Container, Note, NoteKind, Subject, Value};
use crate::source::mistaken::recognise_pointer;
use crate::source::name_problem;
use crate::spec::ModelFiles;
use crate::wire::{Findings, MARK};
use std::collections::HashSet;
use std::io::ErrorKind;

pub(super) const MODEL: &str = "model.safetensors";
pub(super) const INDEX: &str = "model.safetensors.index.json";
/// The end of the name under which the header of a safetensors file travels.
pub(in super::super) const HEADER: &str = ".safetensors.header";
/// Endings of weights in other forms than safetensors: not read, and not carried either.
const OTHER_WEIGHTS: [&str; 10] =
    [".bin", ".pt", ".pth", ".ckpt", ".h5", ".msgpack", ".onnx", ".onnx_data", ".ot", ".gguf"];

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
    let flattened = nested::flattened(input);
    let input = flattened.as_ref().unwrap_or(input);
    let files = Files(&*input.folder);
    let mut container = read_tensors(input, &files, findings)?;
    container.format = "hf";
    // A model.safetensors that carries more than tensors: the folder's own files count.
    container.origin = None;
    container.attachments.retain(|a| !files.has(&a.name));
    // A folder has no bytes of its own to map.
    container.regions = Default::default();
    // `format: pt` is in every such file and says nothing.
    let own = std::mem::take(&mut container.metadata);
    container.metadata.push(("model_name".into(), Value::Text(input.name.clone())));

    let description = describe::read(&files, findings)?;
    for (key, value) in &description.settings {
        container.set_text(key, value.clone());
    }
    let mut keys: HashSet<_> = container.metadata.iter().map(|(k, _)| k.clone()).collect();
    for (key, value) in own.into_iter().filter(|(key, _)| key != "format") {
        if keys.insert(key.clone()) {
            container.metadata.push((key, value));
        } else if container.text(&key) != value.as_text() {
            let text =
                format!("metadata {key:?} of the tensors is not what the files say; left out");
            let note = Note::new(NoteKind::Disagrees, text).about(Subject::Metadata(key));
            container.notes.push(note);
        }
    }
    container.vocabulary = description.vocabulary;
    if files.has(LIST) && files.bytes(LIST)?.starts_with(MARK) {
        let text = "vocab.txt begins with a byte order mark, which is not part of its first token";
        let note = Note::new(NoteKind::LeftOut, text);
        container.notes.push(note.about(Subject::File(LIST.to_owned())));
    }
    let models = model_files(&files)?;
    let mut headers = serde_json::Map::new();
    for name in input.folder.list().map_err(|e| MISSING.at(0..0).found(e.to_string()))? {
        if models.contains(&name) {
            let text = safetensors::header_text(&files.source(&name)?)?;
            headers.insert(name, text.into());
            continue;
        }
        let known = CARRIED.contains(&name.as_str());
        // A folder that was not entered, a broken link, a pipe, a pointer to a file.
        let view = match files.view(&name) {
            Err(Stop::Failed(error)) => return Err(Stop::Failed(error)),
            found => found,
        };
        let is_other = OTHER_WEIGHTS.iter().any(|e| name.ends_with(e));
        if (view.is_err() && !known) || is_other {
            if let Some(why) = left_out(&name, &files)?.filter(|_| !is_other) {
                let note = Note::new(NoteKind::LeftOut, format!("{name} is left out: {why}"));
                container.notes.push(note.about(Subject::File(name.clone())));
            }
            container.ignored.push(Subject::File(name));
            continue;
        }
        // Weights that are not read (a dense layer behind the pooling), and what their
        // configuration says: whoever can't attach them must say so.
        let further = name.ends_with(".safetensors") || name.ends_with("/config.json");
        let described = if known { description.is_whole } else { !further };
        container.attachments.push(Attachment { name, data: view?, described });
    }
    let names: HashSet<_> = container.tensors.iter().map(|t| t.name.as_str()).collect();
    for (file, text) in &headers {
        let header = serde_json::from_str::<safetensors::Header>(text.as_str().unwrap_or_default());
        for (tensor, _) in header.map(|h| h.tensors).unwrap_or_default() {
            if !names.contains(tensor.as_ref()) && !models.contains(MODEL) {
                let what = format!("tensor {tensor} in {file}, not in the index");
                container.ignored.push(Subject::File(what));
            }
        }
    }
    container.dialect.insert("headers".into(), headers.into());
    let place = |name: &str| CARRIED.iter().position(|n| *n == name).unwrap_or(usize::MAX);
    container.attachments.sort_by_key(|a| place(&a.name));
    Ok(container)
}

/// Why a file that others would carry is not, if that has to be said. Whoever put a pipe or a link to
/// nowhere there, and the tools that keep `.git` and `.cache`, know it.
fn left_out(name: &str, files: &Files) -> Result<Option<String>, Stop> {
    if [".git/", ".cache/"].contains(&name) {
        return Ok(None);
    }
    if let Some(why) = name_problem(name.trim_end_matches('/')) {
        return Ok(Some(why.to_owned()));
    }
    Ok(match files.0.open(name) {
        // A link that leads elsewhere, or what nobody may read.
        Err(e) => (e.kind() == ErrorKind::PermissionDenied).then(|| e.to_string()),
        Ok(source) => recognise_pointer(source.head()?)
            .map(|_| "it is a Git LFS pointer, not the file itself".to_owned()),
    })
}

/// How the header of a safetensors file is named where it travels as a file.
pub(in super::super) fn header_name(file: &str) -> String {
    format!("{}{HEADER}", file.strip_suffix(".safetensors").unwrap_or(file))
}

/// Name and text of the headers of the safetensors files that a container's tensors stood in.
pub(in super::super) fn headers(container: &Container) -> Vec<(String, String)> {
    let headers = container.dialect_of("hf").and_then(|d| d.get("headers")?.as_object());
    let text = |(name, text): (&String, &serde_json::Value)| {
        Some((name.clone(), text.as_str()?.to_owned()))
    };
    headers.map(|map| map.iter().filter_map(text).collect()).unwrap_or_default()
}

/// The files that the tensors are read from: one, or those that the index names.
fn model_files(files: &Files) -> Result<HashSet<String>, Stop> {
    if files.has(MODEL) {
        return Ok(HashSet::from([MODEL.to_owned()]));
    }
    let index = files.json(INDEX)?;
    let shards = index["weight_map"].as_object().into_iter().flat_map(|map| map.values());
    Ok(shards.filter_map(|s| s.as_str().map(str::to_owned)).collect())
}

fn read_tensors(input: &Input, files: &Files, findings: &mut Findings) -> Result<Container, Stop> {
    if files.has(MODEL) {
        let source = files.source(MODEL)?;
        let mut own = Findings::default();
        let read = safetensors::read_file(&source, &mut own);
        findings.append(own, MODEL);
        let mut container = read.map_err(|stop: Stop| stop.in_file(MODEL))?;
        container.files.push((MODEL.to_owned(), source));
        container.layout = MODEL.to_owned();
        return Ok(container);
    }
    if files.has(INDEX) {
        let mut container = safetensors::read_index(input, &files.source(INDEX)?, INDEX, findings)?;
        container.layout = "sharded safetensors".to_owned();
        return Ok(container);
    }
    let names = input.folder.list().unwrap_or_default();
    let pickled =
        names.iter().find(|n| n.ends_with(".bin") || n.ends_with(".pt") || n.ends_with(".ckpt"));
    Err(match pickled {
        // A pointer in its place is an error of its own.
        Some(name) => TENSORS
            .at(0..files.source(name)?.len())
            .in_file(name.clone())
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
