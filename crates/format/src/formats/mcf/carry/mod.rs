//! What a container has besides tensors, as sections and ModelInfo entries; and back.
//!
//! | what | where |
//! |---|---|
//! | the six files that have sections | sections 0x100 to 0x105 |
//! | other files | entries `file:<path>` |
//! | the vocabulary, where no file tells it | `file:vocab.txt` |
//! | numbers and names that ModelInfo has fields for | those fields |
//! | other metadata | entries of the same key, unless a file tells it |
//! | sections of unknown types, and data without an index | themselves; attachments `/mcf/section-<type>` elsewhere |

mod config;
mod files;
mod info;

pub(super) use config::take_config_facts;
pub(super) use files::complete;
pub(super) use info::{from_model_info, keeps, model_info};

use super::layout::{MODEL_INFO, QUANT_INFO, RESOURCES, TENSOR_DATA, TENSOR_INDEX};

const FILE: &str = "file:";
const BESIDE: &str = "entry:";
/// No file of a folder has such a name.
const SECTION: &str = "/mcf/section-0x";

/// The name under which a section travels that is no file.
pub(super) fn carried_section(kind: u32) -> String {
    format!("{SECTION}{kind:04x}")
}

pub(super) fn is_section(name: &str) -> bool {
    section_kind(name).is_some()
}

fn section_kind(name: &str) -> Option<u32> {
    let kind = u32::from_str_radix(name.strip_prefix(SECTION)?, 16).ok()?;
    let known = [MODEL_INFO, TENSOR_INDEX].contains(&kind) || is_resource(kind);
    (!known && carried_section(kind) == name).then_some(kind)
}

fn is_resource(kind: u32) -> bool {
    RESOURCES.iter().any(|(k, _)| *k == kind)
}

/// Whether an attachment is a section in whose place the tensors of a file stand, if it has any.
fn is_place_of_tensors(name: &str) -> bool {
    section_kind(name).is_some_and(|kind| [QUANT_INFO, TENSOR_DATA].contains(&kind))
}

/// The section that an attachment is written as, if it has one.
pub(super) fn section_of(name: &str) -> Option<u32> {
    RESOURCES.iter().find(|(_, n)| *n == name).map(|(kind, _)| *kind).or_else(|| section_kind(name))
}

/// Whether an entry of this key is a file.
pub(super) fn is_file(key: &str) -> bool {
    key.starts_with(FILE)
}
