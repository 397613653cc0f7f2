//! The lossless hub: what safetensors can't say itself, as JSON in one metadata entry.
//!
//! Texts of the metadata stay ordinary entries, tensors stay ordinary tensors. The entry holds the
//! rest: the original format with its dialect, order, typed metadata, size variables, vocabulary,
//! attachments, records, and the encodings that tensors had before they were widened. Parts above
//! 1 MiB become U8 tensors named `weighbridge/<part>`, because readers refuse long headers.

mod pack;
mod subwords;
mod tensors;
mod unpack;
mod values;

pub(super) use pack::pack;
pub(super) use tensors::{Stored, can_name};
pub(super) use unpack::{Bad, unpack};

use crate::model::Container;
use serde::{Deserialize, Serialize};

/// The metadata entry's name, and the beginning of the names of tensors that carry parts of it.
pub(super) const KEY: &str = "weighbridge";
/// A part longer than this becomes a tensor; so does everything once the entry is this long.
const INLINE: usize = 1 << 20;
const VERSION: u32 = 1;
/// Where a tensor named `__metadata__` stands.
const RENAMED: &str = "weighbridge/__metadata__";

#[derive(Serialize, Deserialize)]
struct HubVocabulary {
    tokens: Vec<String>,
    special: Vec<(String, u32)>,
}

#[derive(Serialize, Deserialize)]
struct HubAttachment {
    name: String,
    described: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tensor: Option<String>,
}

/// The name under which a tensor stands in the file: its own, but for the one that means something
/// else there.
pub(super) fn stored_name(name: &str) -> &str {
    if name == "__metadata__" { RENAMED } else { name }
}

/// Whether the metadata's texts can stand in the header without making it too long to be read.
pub(super) fn texts_fit(container: &Container) -> bool {
    let lengths = container.metadata.iter().map(|(k, v)| k.len() + v.as_text().map_or(0, str::len));
    lengths.sum::<usize>() <= 8 * INLINE
}
