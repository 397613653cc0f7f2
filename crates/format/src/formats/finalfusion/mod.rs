//! finalfusion `.fifu`: word embeddings with subwords, plain or product-quantized.
//!
//! Two dialects share the magic: the early *draft* of the specification, and what the software
//! became. Both are read, the second is written unless asked otherwise. See
//! docs/formats/finalfusion.md.

mod layout;
mod metadata;
mod read;
mod rules;
mod storage;
mod vocabulary;
mod write;

#[cfg(test)]
mod tests;

use super::{Format, FormatInfo, QuantizedContent};
use crate::OptionSpec;
use crate::plan::{Holds, Keeps};
use weighbridge_codec::DType;

const INFO: FormatInfo = FormatInfo {
    summary: "word embeddings with subwords, plain or product-quantized",
    extensions: &["fifu"],
    magic: layout::MAGIC,
    holds: Holds {
        dtypes: &[DType::F32],
        product: true,
        rank: (1, 2),
        empty: false,
        metadata: Keeps::Text,
        vocabulary: true,
        subwords: true,
        ..Holds::NOTHING
    },
    options: &[OptionSpec {
        name: "dialect",
        value: "DIALECT",
        choices: &["current", "draft"],
        help: "finalfusion: what the software writes, or the early draft of the specification",
        reading: false,
    }],
    rules: rules::RULES,
    damage: &[rules::CODE],
    quantized: Some(QuantizedContent::Words),
    no_metadata: |c| c.dialect.contains_key("draft").then_some("the early draft of finalfusion"),
    ..FormatInfo::new("finalfusion", "finalfusion .fifu")
};

pub(super) static FORMAT: Format = Format {
    read: Some(|input, _, findings| read::read(input, findings)),
    check: rules::check,
    lay_out: Some(write::plan),
    ..Format::new(INFO)
};
