//! What a config.json says of what ModelInfo has.

use super::super::super::hf::Description;
use super::super::model_info::{ARCH, CONTEXT_LENGTH, HEAD_COUNT_KV, ModelInfo};
use super::info::ARCHITECTURES;
use crate::model::{Container, Value};
use crate::spec::Fact;
use weighbridge_codec::DType;

/// What the reference packer takes from a config.json, where the metadata doesn't say it.
pub(super) fn fill_from_config(config: &Description, info: &mut ModelInfo) {
    let spec = &config.spec;
    let number = |fact: &Option<Fact<u64>>| {
        fact.as_ref().and_then(|fact| u32::try_from(fact.value).ok()).unwrap_or(0)
    };
    for (at, fact) in [(HEAD_COUNT_KV, &spec.key_value_heads), (CONTEXT_LENGTH, &spec.positions)] {
        if info.numbers[at] == 0 {
            info.numbers[at] = number(fact);
        }
    }
    #[allow(clippy::cast_possible_truncation)]
    if let Some(theta) = spec.rope_theta.as_ref().filter(|_| info.rope_freq_base == 0.0) {
        info.rope_freq_base = theta.value as f32;
    }
    let kind = config.model_type().unwrap_or_default();
    let known = ARCHITECTURES.iter().skip(1).position(|a| kind.starts_with(a));
    if let Some(known) = known.filter(|_| info.numbers[ARCH] == 0) {
        info.numbers[ARCH] = u32::try_from(known + 1).unwrap_or(0);
    }
}

/// The entries with which the reference packer repeats what config.json says.
pub(super) fn config_facts(config: &Description) -> Vec<(String, Value)> {
    let mut facts = vec![("hf.config_json_present".to_owned(), Value::Number(DType::U32, 1))];
    if let Some(kind) = config.model_type() {
        facts.push(("hf.model_type".to_owned(), Value::Text(kind.to_owned())));
    }
    facts
}

/// Takes those entries out of the metadata, if they are all there: other formats have no use for
/// them.
pub(in super::super) fn take_config_facts(config: &Description, container: &mut Container) -> bool {
    if !config.has_config {
        return false;
    }
    let facts = config_facts(config);
    let is_fact = |key: &String, value: &Value| {
        let same = |v: &Value| {
            v.to_plain_text() == value.to_plain_text() && v.type_name() == value.type_name()
        };
        facts.iter().any(|(k, v)| k == key && same(v))
    };
    let all = container.metadata.iter().filter(|(k, v)| is_fact(k, v)).count() == facts.len();
    if all {
        container.metadata.retain(|(k, v)| !is_fact(k, v));
    }
    all
}
