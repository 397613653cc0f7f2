//! JSON lines: each row's record with its vector, written and not read. See docs/formats/jsonl.md.

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
    holds: Holds {
        dtypes: &[DType::F32],
        single: true,
        records: true,
        rank: (2, 2),
        ..Holds::NOTHING
    },
    ..FormatInfo::new("jsonl", "JSON lines")
};

pub(super) static FORMAT: Format = Format { lay_out: Some(write::plan), ..Format::new(INFO) };
