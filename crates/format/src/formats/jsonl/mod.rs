//! JSON lines: each row's record with its vector. See docs/formats/jsonl.md.

mod lines;
mod read;
mod rules;
#[cfg(test)]
mod tests;
mod write;

pub use write::line;

use super::{Format, FormatInfo};
use crate::plan::Holds;
use weighbridge_codec::DType;

/// The member of an object that is the vector.
pub const VECTOR: &str = "vector";
/// The member that is the text, unless another is named.
pub const TEXT: &str = "text";

const INFO: FormatInfo = FormatInfo {
    summary: "an object with a vector on each line",
    extensions: &["jsonl", "ndjson"],
    open_ended: true,
    decimal: true,
    rules: rules::RULES,
    holds: Holds {
        dtypes: &[DType::F32],
        single: true,
        records: true,
        rank: (2, 2),
        ..Holds::NOTHING
    },
    ..FormatInfo::new("jsonl", "JSON lines")
};

pub(super) static FORMAT: Format = Format {
    probe: read::probe,
    read: Some(read::read),
    check: rules::check,
    lay_out: Some(write::plan),
    ..Format::new(INFO)
};
