//! The required metadata keys: deriving them from the content.

use super::super::clock::is_iso8601;
use super::rules::{CREATED_AT, REQUIRED_KEY};
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

/// Missing keys, and a time that is none, are warnings.
pub(super) fn check(container: &Container, metadata_offset: u32, findings: &mut Findings) {
    let at = u64::from(metadata_offset);
    for key in REQUIRED.into_iter().filter(|key| container.text(key).is_none()) {
        let finding = REQUIRED_KEY.at(at..at + 8).field(format!("metadata {key:?}"));
        findings.push(finding.hint(Advice::set_to("set", format!("{key}=VALUE"), "adds it")));
    }
    let key = "created_at";
    if let Some(text) = container.text(key).filter(|text| !is_iso8601(text)) {
        let place = container.regions.entry(key);
        let finding = CREATED_AT.at(place.unwrap_or(at..at + 8)).field(format!("metadata {key:?}"));
        let finding = finding.expected("a date that there is, such as 2025-01-16T12:00:00Z");
        findings.push(finding.found(format!("{text:?}")));
    }
}
