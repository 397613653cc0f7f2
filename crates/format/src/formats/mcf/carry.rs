//! What a container has besides tensors, as sections and ModelInfo entries; and back.
//!
//! | what | where |
//! |---|---|
//! | the six files that have sections | sections 0x100 to 0x105 |
//! | other files | entries `file:<path>` |
//! | the vocabulary, where no file tells it | `file:vocab.txt` |
//! | numbers and names that ModelInfo has fields for | those fields |
//! | other metadata | entries of the same key, unless a file tells it |
//! | sections of unknown types | themselves; attachments `/mcf/section-<type>` elsewhere |

use super::super::hf;
use super::layout::{RESOURCES, TENSOR_DATA};
use super::model_info::{ARCH, CONTEXT_LENGTH, Entry, HEAD_COUNT_KV, ModelInfo, ROPE_TYPE};
use crate::Error;
use crate::model::{Array, Attachment, Container, Report, Subject, Value, Vocabulary};
use crate::source::View;
use serde_json::Value as Json;
use weighbridge_codec::DType;

const FILE: &str = "file:";
const BESIDE: &str = "entry:";
/// No file of a folder has such a name.
const SECTION: &str = "/mcf/section-0x";
const VOCABULARY: &str = "vocab.txt";
const ARCHITECTURES: [&str; 7] =
    ["unknown", "llama", "mistral", "qwen", "gemma", "granite", "smollm3"];
const ROPE_TYPES: [&str; 4] = ["none", "standard", "linear", "yarn"];
/// The counts of ModelInfo and the keys under which other formats have them.
const COUNTS: [(usize, &str); 7] = [
    (2, "vocab_size"),
    (3, "hidden_size"),
    (4, "num_layers"),
    (5, "num_attention_heads"),
    (HEAD_COUNT_KV, "num_key_value_heads"),
    (CONTEXT_LENGTH, "max_position_emb"),
    (8, "train_context"),
];

/// The name under which a section of an unknown type travels.
pub(super) fn unknown_section(kind: u32) -> String {
    format!("{SECTION}{kind:04x}")
}

pub(super) fn is_section(name: &str) -> bool {
    section_kind(name).is_some()
}

fn section_kind(name: &str) -> Option<u32> {
    let kind = u32::from_str_radix(name.strip_prefix(SECTION)?, 16).ok()?;
    let known = (1..=TENSOR_DATA).contains(&kind) || RESOURCES.iter().any(|(k, _)| *k == kind);
    (!known && unknown_section(kind) == name).then_some(kind)
}

/// The section that an attachment is written as, if it has one.
pub(super) fn section_of(name: &str) -> Option<u32> {
    RESOURCES.iter().find(|(_, n)| *n == name).map(|(kind, _)| *kind).or_else(|| section_kind(name))
}

/// Fills metadata and attachments from ModelInfo.
pub(super) fn from_model_info(info: ModelInfo, container: &mut Container) {
    let mut add = |key: &str, value: Value| container.metadata.push((key.to_owned(), value));
    for (key, name) in [("model_name", info.model_name), ("base_model", info.base_model)] {
        if let Some(name) = name {
            add(key, Value::Text(name));
        }
    }
    let named = |number: u32, names: &[&str]| {
        let name = usize::try_from(number).ok().and_then(|n| names.get(n).copied());
        Value::Text(name.map_or_else(|| number.to_string(), str::to_owned))
    };
    if info.numbers[ARCH] != 0 {
        add("arch", named(info.numbers[ARCH], &ARCHITECTURES));
    }
    for (at, key) in COUNTS.into_iter().filter(|(at, _)| info.numbers[*at] != 0) {
        add(key, Value::Text(info.numbers[at].to_string()));
    }
    if info.numbers[ROPE_TYPE] != 0 {
        add("rope_type", named(info.numbers[ROPE_TYPE], &ROPE_TYPES));
    }
    for (key, value) in [("rope_theta", info.rope_freq_base), ("rope_scale", info.rope_scale)] {
        if value.to_bits() != 0 {
            let text = Value::Text(value.to_string());
            let back = real_of(&text).is_some_and(|v| v.to_bits() == value.to_bits());
            add(key, if back { text } else { Value::Number(DType::F32, value.to_bits().into()) });
        }
    }
    let fields: Vec<_> = container.metadata.iter().map(|(key, _)| key.clone()).collect();
    for (key, entry) in info.entries {
        match (key.strip_prefix(FILE), entry) {
            (Some(name), Entry::Bytes(data)) => {
                let described = name.ends_with(hf::HEADER);
                let name = name.to_owned();
                container.attachments.push(Attachment { name, data, described });
            }
            // Beside a field that has a value, an entry of the same key goes by another.
            (_, entry) => {
                let taken = fields.iter().any(|field| field == base(&key));
                let key = if taken { format!("{BESIDE}{key}") } else { key };
                container.metadata.push((key, value_of(entry)));
            }
        }
    }
}

fn value_of(entry: Entry) -> Value {
    match entry {
        Entry::U32(v) => Value::Number(DType::U32, v.into()),
        Entry::F32(v) => Value::Number(DType::F32, v.to_bits().into()),
        Entry::Bytes(data) => match std::str::from_utf8(&data) {
            Ok(text) => Value::Text(text.to_owned()),
            Err(_) => {
                let shape = vec![data.len() as u64];
                Value::Array(Array { dtype: DType::U8, shape, data })
            }
        },
    }
}

/// The entry that comes back as this very value.
fn entry_of(value: &Value) -> Option<Entry> {
    let low = |bits: u64| u32::try_from(bits).ok();
    match value {
        Value::Text(text) => Some(Entry::Bytes(View::owned(text.clone().into_bytes()))),
        Value::Number(DType::U32, bits) => low(*bits).map(Entry::U32),
        Value::Number(DType::F32, bits) => low(*bits).map(|b| Entry::F32(f32::from_bits(b))),
        Value::Array(a) if a.dtype == DType::U8 && a.shape.len() == 1 => {
            std::str::from_utf8(&a.data).is_err().then(|| Entry::Bytes(a.data.clone()))
        }
        _ => None,
    }
}

/// A key without what says that it stands beside a field.
fn base(mut key: &str) -> &str {
    while let Some(rest) = key.strip_prefix(BESIDE) {
        key = rest;
    }
    key
}

/// Whether MCF keeps a metadata value with its type.
pub(super) fn keeps(value: &Value) -> bool {
    entry_of(value).is_some()
}

/// Whether an entry of this key is a file.
pub(super) fn is_file(key: &str) -> bool {
    key.starts_with(FILE)
}

/// The ModelInfo of a container whose attachments are complete.
pub(super) fn model_info(container: &Container) -> ModelInfo {
    let (description, _) = hf::describe_files(&container.attachments);
    let mut info = ModelInfo::default();
    let dialect = container.dialect_of("mcf");
    // What only the files of an MCF file said, ModelInfo is not to say either; and what both said,
    // both are to say.
    let only_told = |key: &String| {
        let keys = dialect.and_then(|d| d.get("told")?.as_array());
        keys.is_some_and(|keys| keys.iter().any(|k| k == key))
    };
    let (mut fields, mut others) = (Vec::new(), Vec::new());
    for (key, value) in container.metadata.iter().filter(|(key, _)| !is_file(key)) {
        let told = value.as_text().is_some_and(|text| description.tells(key, text));
        if told && only_told(key) {
            continue;
        } else if set_field(&mut info, key, value) {
            fields.push(key.as_str());
        } else if !(told && dialect.is_none()) {
            others.push((key, value));
        }
    }
    for (key, value) in others {
        let as_text = || value.to_plain_text().map(|t| Entry::Bytes(View::owned(t.into_bytes())));
        let beside = fields.contains(&base(key));
        let key = key.strip_prefix(BESIDE).filter(|_| beside).unwrap_or(key);
        if let Some(entry) = entry_of(value).or_else(as_text) {
            info.entries.push((key.to_owned(), entry));
        }
    }
    let config = hf::config_of(&container.attachments);
    if !config.is_null() {
        if dialect.is_none() {
            fill_from_config(&config, &mut info);
        }
        if dialect.is_none_or(|d| d.contains_key("config_facts")) {
            for (key, value) in config_facts(&config) {
                let is_new = !info.entries.iter().any(|(k, _)| *k == key);
                if let Some(entry) = entry_of(&value).filter(|_| is_new) {
                    info.entries.push((key, entry));
                }
            }
        }
    }
    for a in container.attachments.iter().filter(|a| section_of(&a.name).is_none()) {
        info.entries.push((format!("{FILE}{}", a.name), Entry::Bytes(a.data.clone())));
    }
    info.entries.sort_by(|a, b| a.0.cmp(&b.0));
    info
}

/// Puts a value into the field that is made for it, if that gives it back.
fn set_field(info: &mut ModelInfo, key: &str, value: &Value) -> bool {
    let number = |text: &str| text.parse::<u32>().ok().filter(|n| *n != 0 && n.to_string() == text);
    let place = |names: &[&str], text: &str| {
        let known = names.iter().position(|n| *n == text).and_then(|n| u32::try_from(n).ok());
        let beyond = || number(text).filter(|n| *n as usize >= names.len());
        known.filter(|n| *n != 0).or_else(beyond)
    };
    if key == "rope_theta" || key == "rope_scale" {
        let Some(real) = real_of(value) else { return false };
        let slot =
            if key == "rope_theta" { &mut info.rope_freq_base } else { &mut info.rope_scale };
        *slot = real;
        return true;
    }
    let Some(text) = value.as_text() else { return false };
    let (at, found) = match key {
        "model_name" => return info.model_name.replace(text.to_owned()).is_none(),
        "base_model" => return info.base_model.replace(text.to_owned()).is_none(),
        "arch" => (ARCH, place(&ARCHITECTURES, text)),
        "rope_type" => (ROPE_TYPE, place(&ROPE_TYPES, text)),
        _ => match COUNTS.iter().find(|(_, k)| *k == key) {
            Some((at, _)) => (*at, number(text)),
            None => return false,
        },
    };
    info.numbers[at] = found.unwrap_or(0);
    found.is_some()
}

/// A real number that a field of ModelInfo gives back.
fn real_of(value: &Value) -> Option<f32> {
    match value {
        Value::Text(text) => text
            .parse::<f32>()
            .ok()
            .filter(|v| v.to_bits() != 0 && v.is_finite() && v.to_string() == *text),
        Value::Number(DType::F32, bits) => {
            u32::try_from(*bits).ok().map(f32::from_bits).filter(|v| !v.is_finite())
        }
        _ => None,
    }
}

/// What the reference packer takes from a config.json, where the metadata doesn't say it.
fn fill_from_config(config: &Json, info: &mut ModelInfo) {
    let number = |key: &str| config[key].as_u64().and_then(|n| u32::try_from(n).ok());
    for (at, key) in
        [(HEAD_COUNT_KV, "num_key_value_heads"), (CONTEXT_LENGTH, "max_position_embeddings")]
    {
        if info.numbers[at] == 0 {
            info.numbers[at] = number(key).unwrap_or(0);
        }
    }
    #[allow(clippy::cast_possible_truncation)]
    if let Some(theta) = config["rope_theta"].as_f64().filter(|_| info.rope_freq_base == 0.0) {
        info.rope_freq_base = theta as f32;
    }
    let kind = config["model_type"].as_str().unwrap_or_default();
    let known = ARCHITECTURES.iter().skip(1).position(|a| kind.starts_with(a));
    if let Some(known) = known.filter(|_| info.numbers[ARCH] == 0) {
        info.numbers[ARCH] = u32::try_from(known + 1).unwrap_or(0);
    }
}

/// The entries with which the reference packer repeats what config.json says.
fn config_facts(config: &Json) -> Vec<(String, Value)> {
    let mut facts = vec![("hf.config_json_present".to_owned(), Value::Number(DType::U32, 1))];
    if let Some(kind) = config["model_type"].as_str() {
        facts.push(("hf.model_type".to_owned(), Value::Text(kind.to_owned())));
    }
    facts
}

/// Takes those entries out of the metadata, if they are all there: other formats have no use for
/// them.
pub(super) fn take_config_facts(container: &mut Container) -> bool {
    let config = hf::config_of(&container.attachments);
    if config.is_null() {
        return false;
    }
    let facts = config_facts(&config);
    let is_fact = |key: &String, value: &Value| {
        let same = |v: &Value| {
            v.to_plain_text() == value.to_plain_text() && v.type_name() == value.type_name()
        };
        facts.iter().any(|(k, v)| k == key && same(v))
    };
    let there = container.metadata.iter().filter(|(k, v)| is_fact(k, v)).count() == facts.len();
    if there {
        container.metadata.retain(|(k, v)| !is_fact(k, v));
    }
    there
}

/// The attachments as they are written: with the vocabulary, and with the headers of the safetensors
/// files that the tensors came from.
pub(super) fn complete(container: &Container, report: &mut Report) -> Result<Container, Error> {
    let mut full = container.clone();
    let from_folder = container.dialect_of("hf").is_some();
    let like_header = |a: &&Attachment| from_folder && a.name.ends_with(hf::HEADER);
    if let Some(file) = full.attachments.iter().find(like_header) {
        return Err(Error::refused(
            format!("the file {:?} is named as the headers of safetensors files are", file.name),
            "take it out of the folder, or give it another name",
        ));
    }
    for (name, text) in hf::headers(container) {
        let (name, data) = (hf::header_name(&name), View::owned(text.into_bytes()));
        full.attachments.push(Attachment { name, data, described: true });
    }
    if let Some(vocabulary) = full.vocabulary.take() {
        let (description, _) = hf::describe_files(&full.attachments);
        if description.vocabulary.is_none_or(|v| !v.same_as(&vocabulary)) {
            match vocabulary_file(&vocabulary, &full.attachments) {
                Some(file) => full.attachments.push(file),
                None => report.lose(
                    Subject::Vocabulary(vocabulary.len() as u64),
                    "a vocab.txt can't say it: line breaks, other special tokens, or there is one",
                ),
            }
        }
    }
    let long = |a: &&Attachment| u32::try_from(a.data.len()).is_err();
    let entries = full.attachments.iter().filter(|a| section_of(&a.name).is_none());
    if let Some(file) = entries.clone().find(long) {
        return Err(Error::refused(
            format!("the file {:?} has more than 4 GiB, which MCF has no room for", file.name),
            "take it out of the folder",
        ));
    }
    let mut names: Vec<_> = full.attachments.iter().map(|a| a.name.as_str()).collect();
    names.sort_unstable();
    match names.windows(2).find(|w| w[0] == w[1]) {
        None => Ok(full),
        Some(twice) => Err(Error::refused(format!("two files are named {:?}", twice[0]), "")),
    }
}

/// A vocab.txt that gives this vocabulary again.
fn vocabulary_file(vocabulary: &Vocabulary, files: &[Attachment]) -> Option<Attachment> {
    let mut text = String::new();
    for token in vocabulary.tokens() {
        text.push_str(&token);
        text.push('\n');
    }
    let data = View::owned(text.into_bytes());
    let file = Attachment { name: VOCABULARY.to_owned(), data, described: true };
    let taken = files.iter().any(|a| a.name == VOCABULARY || a.name == "tokenizer.json");
    let (again, _) = hf::describe_files(std::slice::from_ref(&file));
    (!taken && again.vocabulary.is_some_and(|v| v.same_as(vocabulary))).then_some(file)
}
