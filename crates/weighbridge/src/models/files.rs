//! The files of a model: which are needed, whether they are all there, and whose architecture it is.

use crate::plan::Piece;
use crate::source::{Access, Folder, RealFolder, clashing_names, is_plain_name, stays_inside};
use crate::{Advice, Error};
use serde_json::Value as Json;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use weighbridge_encoder::Lack;
use weighbridge_format::source::{Bytes, mistaken};
use weighbridge_format::spec::{ModelFiles, ModelSpec};
use weighbridge_format::wire::Stop;

pub(super) const CONFIG: &str = "config.json";
/// What says the architecture of static models that have no config.json.
const MODULES: &str = "modules.json";
const TOKENIZER: &str = "tokenizer.json";
const MODEL: &str = "model.safetensors";
const INDEX: &str = "model.safetensors.index.json";
const NESTED: &str = "0_StaticEmbedding/model.safetensors";

/// A file of settings is never larger; what is, is something else.
const LARGEST_CONFIG: u64 = 1 << 20;
/// The index names every tensor.
const LARGEST_INDEX: u64 = 32 << 20;
/// No model of this architecture is larger.
const LARGEST_MODEL: u64 = 64 << 30;

/// Files that say something about the model, or about what may be done with it.
const WANTED: [&str; 15] = [
    CONFIG,
    "config_sentence_transformers.json",
    "sentence_bert_config.json",
    MODULES,
    TOKENIZER,
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "vocab.txt",
    "vocab.json",
    "README.md",
    "LICENSE",
    "LICENSE.txt",
    "LICENSE.md",
    "NOTICE",
];

/// Somewhere that has the files of a model.
pub(super) trait Offer {
    /// All of them, relative, with `/` between folders. Not trusted.
    fn names(&self) -> Vec<String>;
    /// The bytes of one, to be read when they are written.
    fn piece(&self, name: &str) -> Result<Piece, Error>;
}

/// The needed files of a model. Its architecture is looked at before anything but its
/// configuration is asked for.
pub(super) fn choose(model: &str, offer: &dyn Offer) -> Result<Vec<(String, Piece)>, Error> {
    let mut names = BTreeSet::new();
    for name in offer.names() {
        if !stays_inside(&name) {
            let what = format!("{model} has a file named {name:?}, which leads out of its folder");
            return Err(Error::refused(what, "nothing was fetched"));
        }
        // Others that may not become files (`.DS_Store`) are none that a model needs.
        if is_plain_name(&name) {
            names.insert(name);
        }
    }
    let piece = |name: &str| match names.contains(name) {
        true => offer.piece(name),
        false => Err(Error::refused(format!("{model} has no {name}"), "it can't be used here")),
    };
    let is_config = names.contains(CONFIG) || !names.contains(MODULES);
    let description = if is_config { CONFIG } else { MODULES };
    let bytes = read(&piece(description)?, description, LARGEST_CONFIG)?;
    check_architecture(model, description, &bytes)?;
    let mut chosen = vec![(description.to_owned(), Piece::Bytes(bytes))];
    let has_nested = || names.iter().any(|n| is_wanted(n) && n.ends_with(&format!("/{MODEL}")));
    if names.contains(INDEX) && !names.contains(MODEL) {
        let index = read(&piece(INDEX)?, INDEX, LARGEST_INDEX)?;
        for shard in shards(&index)? {
            chosen.push((shard.clone(), piece(&shard)?));
        }
        chosen.push((INDEX.to_owned(), Piece::Bytes(index)));
    } else if names.contains(MODEL) {
        chosen.push((MODEL.to_owned(), piece(MODEL)?));
    } else if is_config || !has_nested() {
        let what = format!("{model} has no weights in safetensors");
        let advice = "files of other kinds can run code when they are opened";
        return Err(Error::unsupported("weights in other formats", what, advice));
    }
    // An index may name the weights of a module too.
    for name in names.iter().filter(|n| is_wanted(n)) {
        if !chosen.iter().any(|(n, _)| n == name) {
            chosen.push((name.clone(), piece(name)?));
        }
    }
    if let Some((_, name)) = clashing_names(chosen.iter().map(|(n, _)| n.as_str())).first() {
        let what = format!("{model} has {name:?} and a file that is the same one on some systems");
        return Err(Error::refused(what, "nothing was fetched"));
    }
    let total = chosen.iter().try_fold(0u64, |sum, (_, p)| sum.checked_add(p.len()));
    match total.filter(|bytes| *bytes <= LARGEST_MODEL) {
        Some(_) => Ok(chosen),
        None => Err(Error::limit(format!("bytes of the files of {model}"), LARGEST_MODEL)),
    }
}

/// The bytes of a small file.
fn read(piece: &Piece, name: &str, limit: u64) -> Result<Vec<u8>, Error> {
    if piece.len() > limit {
        return Err(Error::limit(format!("bytes of {name}"), limit));
    }
    match piece {
        Piece::Bytes(bytes) => Ok(bytes.clone()),
        Piece::View(view) => Ok(view.in_place()?.to_vec()),
        Piece::Stream { from, .. } => {
            let mut bytes = Vec::new();
            from.produce(&mut |block| {
                bytes.extend_from_slice(block);
                Ok(())
            })?;
            Ok(bytes)
        }
        _ => Ok(Vec::new()),
    }
}

/// Small files by name, and those of the modules behind the encoder: `1_Pooling/config.json`.
fn is_wanted(name: &str) -> bool {
    let is_module = |folder: &str| {
        let (number, kind) = folder.split_once('_').unwrap_or_default();
        let digits = !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit());
        digits && !kind.is_empty() && kind.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
    };
    match name.rsplit_once('/') {
        None => WANTED.contains(&name),
        Some((folder, file)) => is_module(folder) && [CONFIG, MODEL, TOKENIZER].contains(&file),
    }
}

/// The files that an index names.
fn shards(index: &[u8]) -> Result<BTreeSet<String>, Error> {
    let broken = |why: &str| Error::refused(format!("{INDEX} is not an index: {why}"), "");
    let json: Json = serde_json::from_slice(index).map_err(|e| broken(&e.to_string()))?;
    let map = json["weight_map"].as_object().ok_or_else(|| broken("it has no weight_map"))?;
    let mut names = BTreeSet::new();
    for shard in map.values() {
        let is_shard = |n: &&str| is_plain_name(n) && n.ends_with(".safetensors");
        let name = shard.as_str().filter(is_shard);
        names.insert(name.ok_or_else(|| broken(&format!("it names {shard}")))?.to_owned());
    }
    Ok(names)
}

/// The file that says the architecture, before anything else of a model is asked for.
struct Config<'a> {
    name: &'static str,
    bytes: &'a [u8],
}

impl ModelFiles for Config<'_> {
    fn has(&self, name: &str) -> bool {
        name == self.name
    }

    fn bytes(&self, _: &str) -> Result<Bytes, Stop> {
        Ok(Bytes::owned(self.bytes.to_vec()))
    }

    fn not_json(&self, name: &str, _: u64, why: String, advice: Advice) -> Stop {
        Error::refused(format!("{name} is not JSON: {why}"), advice).into()
    }
}

/// Refuses a model whose configuration says that the encoder can't use it.
pub(super) fn check_architecture(
    model: &str,
    name: &'static str,
    bytes: &[u8],
) -> Result<(), Error> {
    if let Some((what, advice)) = mistaken::recognise_pointer(bytes) {
        return Err(Error::unrecognised(
            format!("{model}: {name}"),
            format!("this is {what}"),
            advice,
        ));
    }
    let spec = match ModelSpec::from_files(&Config { name, bytes }) {
        Ok(spec) => spec,
        Err(Stop::Failed(error)) => {
            return Err(Error::refused(format!("{model}: {}", error.message()), ""));
        }
        Err(Stop::Broken(finding)) => return Err(Error::malformed(model, *finding)),
    };
    if spec.architecture.is_none() && spec.class.is_none() {
        let what = format!("{name} of {model} does not say which architecture it is");
        return Err(Error::unsupported("architecture", what, ""));
    }
    match weighbridge_encoder::lacks(&spec).into_iter().next() {
        None => Ok(()),
        Some(Lack { name, message, advice, .. }) => {
            Err(Error::unsupported(name, format!("{model}: {message}"), advice))
        }
    }
}

/// The same for a folder that has a configuration.
pub(super) fn check_folder(model: &str, folder: &Path) -> Result<(), Error> {
    if !folder.join(CONFIG).is_file() {
        return Ok(());
    }
    match small_file(folder, CONFIG, LARGEST_CONFIG)? {
        Some(config) => check_architecture(model, CONFIG, &config),
        None => Err(Error::limit(format!("bytes of {CONFIG} of {model}"), LARGEST_CONFIG)),
    }
}

/// A file of a folder; nothing if it is larger than such a file is.
fn small_file(folder: &Path, name: &str, limit: u64) -> Result<Option<Bytes>, Error> {
    let source = RealFolder::new(folder, Access::Reads).open(name);
    let source = source.map_err(|e| Error::io(&folder.join(name), e))?;
    (source.len() <= limit).then(|| source.bytes(0..source.len())).transpose()
}

/// What the configuration of a folder calls the architecture, if it says so.
pub(super) fn architecture(folder: &Path) -> Option<String> {
    let name = if folder.join(CONFIG).is_file() { CONFIG } else { MODULES };
    let bytes = small_file(folder, name, LARGEST_CONFIG).ok()??;
    let spec = ModelSpec::from_files(&Config { name, bytes: &bytes }).ok()?;
    spec.architecture.map(|fact| fact.value)
}

/// What keeps a folder from being a whole model. Links to nowhere count as missing.
pub(super) fn lacks(folder: &Path) -> Option<String> {
    let has = |name: &str| folder.join(name).is_file();
    let missing = |name: &str| Some(format!("{name} is missing"));
    let model = match has(CONFIG) {
        true => MODEL,
        // A static model has none, and may have its table in a folder of the module's own.
        false if architecture(folder).is_none() => return missing(CONFIG),
        false if has(NESTED) => NESTED,
        false => MODEL,
    };
    if has(model) {
        return pointer(&folder.join(model)).then(|| format!("{model} is a Git LFS pointer"));
    }
    if !has(INDEX) {
        return missing(MODEL);
    }
    let index = match small_file(folder, INDEX, LARGEST_INDEX) {
        Ok(Some(index)) => index,
        Ok(None) => return Some(format!("{INDEX} is absurdly large")),
        Err(error) => return Some(error.to_string()),
    };
    match shards(&index) {
        Ok(names) => names.iter().find(|name| !has(name)).and_then(|name| missing(name)),
        Err(error) => Some(error.to_string()),
    }
}

/// A file that only points to another one, as a clone without Git LFS has them.
fn pointer(path: &Path) -> bool {
    let mut head = Vec::new();
    let read = File::open(path).and_then(|file| file.take(64).read_to_end(&mut head));
    read.is_ok() && mistaken::recognise_pointer(&head).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_needed() {
        for name in [
            "vocab.txt",
            "tokenizer.json",
            "1_Pooling/config.json",
            "2_Dense/model.safetensors",
            "10_Normalize/config.json",
        ] {
            assert!(is_wanted(name), "{name}");
        }
        for name in [
            "pytorch_model.bin",
            "tf_model.h5",
            "onnx/model.onnx",
            "onnx/config.json",
            "2_Dense/pytorch_model.bin",
            "a/1_Pooling/config.json",
            "_Pooling/config.json",
            "1_/config.json",
            "1_C:/config.json",
            ".gitattributes",
            "train_script.py",
        ] {
            assert!(!is_wanted(name), "{name}");
        }
    }

    #[test]
    fn architectures() {
        let check = |text: &str| check_architecture("org/m", CONFIG, text.as_bytes());
        let modules = br#"[{"type": "sentence_transformers.models.StaticEmbedding"}]"#;
        assert!(check_architecture("org/m", MODULES, modules).is_ok());
        let modules = br#"[{"type": "sentence_transformers.models.Transformer"}]"#;
        assert!(check_architecture("org/m", MODULES, modules).is_err());
        assert!(check(r#"{"model_type": "bert"}"#).is_ok());
        assert!(check(r#"{"architectures": ["BertForMaskedLM"]}"#).is_ok());
        for known in ["roberta", "xlm-roberta", "distilbert", "mpnet", "model2vec"] {
            assert!(check(&format!(r#"{{"model_type": "{known}"}}"#)).is_ok(), "{known}");
        }
        for (text, word) in [
            (
                r#"{"model_type": "deberta", "architectures": ["DebertaModel"]}"#,
                "\"deberta\" (DebertaModel)",
            ),
            (r#"{"model_type": "qwen3"}"#, "\"qwen3\""),
            (r#"{"model_type": "gpt2", "architectures": ["BertModel"]}"#, "\"gpt2\""),
            (r#"{"architectures": ["GPT2LMHeadModel"]}"#, "GPT2LMHeadModel"),
            ("{}", "does not say"),
            ("[1]", "does not say"),
            ("<html>", "not JSON"),
        ] {
            let error = check(text).unwrap_err().to_string();
            assert!(error.contains(word) && error.contains("org/m"), "{error}");
        }
    }

    #[test]
    fn shards_of_an_index() {
        let index = br#"{"weight_map": {"a": "x-1.safetensors", "b": "x-1.safetensors"}}"#;
        assert_eq!(shards(index).unwrap().into_iter().collect::<Vec<_>>(), ["x-1.safetensors"]);
        for text in [
            "",
            "{}",
            r#"{"weight_map": {"a": 1}}"#,
            r#"{"weight_map": {"a": "../x.safetensors"}}"#,
            r#"{"weight_map": {"a": "C:x.safetensors"}}"#,
            r#"{"weight_map": {"a": "pytorch_model.bin"}}"#,
        ] {
            assert!(shards(text.as_bytes()).is_err(), "{text}");
        }
    }
}
