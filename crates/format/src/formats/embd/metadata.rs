//! The required metadata keys: deriving them from the content, and holding them against it.

use super::rules::{DISAGREES, REQUIRED_KEY};
use crate::Advice;
use crate::model::Container;
use crate::wire::Findings;

/// The ten required keys, in the specification's order.
pub(super) const REQUIRED: [&str; 10] = [
    "model_name",
    "model_version",
    "embedding_dim",
    "vocab_size",
    "num_layers",
    "num_attention_heads",
    "hidden_size",
    "intermediate_size",
    "max_position_emb",
    "created_at",
];

/// What the tensors and the vocabulary say a key should be.
pub(in super::super) fn derived(container: &Container, key: &str) -> Option<u64> {
    let shape = |name: &str, dim: usize| {
        let tensor = container.tensors.iter().find(|t| {
            t.name == name || t.name.strip_prefix("bert.").is_some_and(|rest| rest == name)
        });
        tensor.and_then(|t| t.shape.get(dim).copied())
    };
    let words = "embeddings.word_embeddings.weight";
    match key {
        "embedding_dim" | "hidden_size" => shape(words, 1),
        "vocab_size" => {
            shape(words, 0).or_else(|| container.vocabulary.as_ref().map(|v| v.len() as u64))
        }
        "num_layers" => {
            let layer = |name: &str| {
                let name = name.strip_prefix("bert.").unwrap_or(name);
                let number = name.strip_prefix("encoder.layer.")?.split('.').next()?;
                number.parse::<u64>().ok()
            };
            container
                .tensors
                .iter()
                .filter_map(|t| layer(&t.name))
                .max()
                .and_then(|n| n.checked_add(1))
        }
        "intermediate_size" => shape("encoder.layer.0.intermediate.dense.weight", 0),
        "max_position_emb" => shape("embeddings.position_embeddings.weight", 0),
        _ => None,
    }
}

/// Missing keys are warnings; a number that the content contradicts is an error.
pub(super) fn check(container: &Container, metadata_offset: u32, findings: &mut Findings) {
    let at = u64::from(metadata_offset);
    for key in REQUIRED {
        let field = format!("metadata {key:?}");
        let Some(text) = container.text(key) else {
            findings.push(REQUIRED_KEY.at(at..at + 8).field(field).hint(Advice::set_to(
                "set",
                format!("{key}=VALUE"),
                "adds it",
            )));
            continue;
        };
        // The output of an embedder may be narrower than its hidden layers.
        let from_content = derived(container, key).filter(|_| key != "embedding_dim");
        if let Some(expected) = from_content
            && text.parse() != Ok(expected)
        {
            let finding = DISAGREES.at(at..at + 8).field(field);
            findings.push(finding.expected(format!("{expected}, from the tensors")).found(text));
        }
    }
    let tokens = container.vocabulary.as_ref().map(|v| v.len() as u64);
    if let (Some(tokens), Some(text)) = (tokens, container.text("vocab_size"))
        && text.parse() != Ok(tokens)
        && derived(container, "vocab_size") != Some(tokens)
    {
        let finding = DISAGREES.at(at..at + 8).field("metadata \"vocab_size\"");
        findings
            .push(finding.expected(format!("{tokens}, the tokens in the vocabulary")).found(text));
    }
}
