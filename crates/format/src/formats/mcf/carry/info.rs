//! Metadata as the fields and entries of ModelInfo, and back.

use super::super::super::hf;
use super::super::model_info::{ARCH, CONTEXT_LENGTH, Entry, HEAD_COUNT_KV, ModelInfo, ROPE_TYPE};
use super::config::{config_facts, fill_from_config};
use super::{BESIDE, FILE, is_file, section_of};
use crate::Error;
use crate::model::{Array, Attachment, Container, Value};
use crate::source::View;
use weighbridge_codec::DType;

pub(super) const ARCHITECTURES: [&str; 7] =
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

/// Fills metadata and attachments from ModelInfo.
pub(in super::super) fn from_model_info(
    info: ModelInfo,
    container: &mut Container,
) -> Result<(), Error> {
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
                container.metadata.push((key, value_of(entry)?));
            }
        }
    }
    Ok(())
}

fn value_of(entry: Entry) -> Result<Value, Error> {
    Ok(match entry {
        Entry::U32(v) => Value::Number(DType::U32, v.into()),
        Entry::F32(v) => Value::Number(DType::F32, v.to_bits().into()),
        Entry::Bytes(view) => {
            let data = view.load()?;
            match std::str::from_utf8(&data) {
                Ok(text) => Value::Text(text.to_owned()),
                Err(_) => {
                    let shape = vec![data.len() as u64];
                    Value::Array(Array { dtype: DType::U8, shape, data })
                }
            }
        }
    })
}

/// The entry that comes back as this very value.
fn entry_of(value: &Value) -> Option<Entry> {
    let low = |bits: u64| u32::try_from(bits).ok();
    match value {
        Value::Text(text) => Some(Entry::Bytes(View::owned(text.clone().into_bytes()))),
        Value::Number(DType::U32, bits) => low(*bits).map(Entry::U32),
        Value::Number(DType::F32, bits) => low(*bits).map(|b| Entry::F32(f32::from_bits(b))),
        Value::Array(a) if a.dtype == DType::U8 && a.shape.len() == 1 => {
            std::str::from_utf8(&a.data).is_err().then(|| Entry::Bytes(a.data.clone().into()))
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
pub(in super::super) fn keeps(value: &Value) -> bool {
    entry_of(value).is_some()
}

/// The ModelInfo of a container whose attachments are complete.
pub(in super::super) fn model_info(container: &Container) -> Result<ModelInfo, Error> {
    let (description, _) = hf::describe_files(&container.attachments)?;
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
    if description.has_config {
        if dialect.is_none() {
            fill_from_config(&description, &mut info);
        }
        if dialect.is_none_or(|d| d.contains_key("config_facts")) {
            for (key, value) in config_facts(&description) {
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
    Ok(info)
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
