//! EMBD `.weights`: weights and vocabulary of a sentence embedder.
//!
//! Two layouts share the magic: *indexed* is the specification's, *stream* is what its reference
//! converter writes. See docs/formats/embd.md.

mod layout;
mod metadata;
mod read;
mod rules;
mod sections;
mod stream;
mod write;

use super::{Format, FormatInfo, MetadataChange, flag_names};
use crate::OptionSpec;
use crate::model::Container;
use crate::plan::{Holds, Keeps};

const INFO: FormatInfo = FormatInfo {
    summary: "weights and vocabulary of a sentence embedder, with checksums",
    extensions: &["weights"],
    magic: &layout::MAGIC,
    holds: Holds {
        dtypes: layout::DTYPES,
        rank: (1, 4),
        metadata: Keeps::Text,
        vocabulary: true,
        ..Holds::NOTHING
    },
    options: &[
        OptionSpec {
            name: "layout",
            value: "LAYOUT",
            choices: &["indexed", "stream"],
            help: "EMBD layout: the specification's, or the simpler one of its reference converter",
            reading: false,
        },
        OptionSpec {
            name: "created-at",
            value: "TIME",
            choices: &[],
            help: "EMBD created_at, as 2025-01-16T12:00:00Z; default SOURCE_DATE_EPOCH or now",
            reading: false,
        },
    ],
    rules: rules::RULES,
    damage: &[rules::DATA_CRC, rules::FILE_CRC],
    checksums: has_checksums,
    model_rule: Some(rules::DISAGREES),
    flags: |c| flag_names(c, &["vocabulary", "aligned", "checksums", "compressed"]),
    fixed_metadata: |container, key, change| {
        Ok(match change {
            // A file of EMBD's own is written without it, and a warning says so.
            MetadataChange::Remove if container.dialect_of("embd").is_none() => {
                metadata::REQUIRED.contains(&key).then_some("EMBD demands it")
            }
            MetadataChange::Set(text) if key == "created_at" && !super::clock::is_iso8601(text) => {
                Some("it is an ISO 8601 date in EMBD, such as 2025-01-16T12:00:00Z")
            }
            _ => None,
        })
    },
    no_metadata: |c| c.layout.starts_with("stream").then_some("the stream layout of EMBD"),
    ..FormatInfo::new("embd", "EMBD .weights")
};

/// The stream layout has none, and the indexed one where a flag says so.
fn has_checksums(container: &Container) -> bool {
    let flags = container.dialect.get("flags").and_then(|flags| flags.as_u64()).unwrap_or(0);
    container.layout == "indexed" && flags & u64::from(layout::CHECKSUMS) != 0
}

pub(super) static FORMAT: Format = Format {
    read: Some(|input, _, findings| read::read(input, findings)),
    check: rules::check,
    lay_out: Some(write::plan),
    ..Format::new(INFO)
};
