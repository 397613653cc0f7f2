//! What a config.json says of what ModelInfo has.

use super::super::super::hf;
use super::super::model_info::{ARCH, CONTEXT_LENGTH, HEAD_COUNT_KV, ModelInfo};
use super::info::ARCHITECTURES;
use crate::Error;
use crate::model::{Container, Value};
use serde_json::Value as Json;
use weighbridge_codec::DType;

/// What the reference packer takes from a config.json, where the metadata doesn't say it.
pub(super) fn fill_from_config(config: &Json, info: &mut ModelInfo) {
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
pub(super) fn config_facts(config: &Json) -> Vec<(String, Value)> {
    let mut facts = vec![("hf.config_json_present".to_owned(), Value::Number(DType::U32, 1))];
    if let Some(kind) = config["model_type"].as_str() {
        facts.push(("hf.model_type".to_owned(), Value::Text(kind.to_owned())));
    }
    facts
}

/// Takes those entries out of the metadata, if they are all there: other formats have no use for
/// them.
pub(in super::super) fn take_config_facts(container: &mut Container) -> Result<bool, Error> {
    let config = hf::config_of(&container.attachments)?;
    if config.is_null() {
        return Ok(false);
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
    Ok(there)
}
