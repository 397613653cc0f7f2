//! floret's text format: a table of rows that words share by hashing, without any words.
//!
//! See docs/formats/floret.md.

mod layout;
mod read;
mod rules;
#[cfg(test)]
mod tests;
mod write;

use super::head;
use super::{Format, FormatInfo, Sureness, by_content_or_name};
use crate::Input;
use crate::model::SubwordVectors;
use crate::plan::Holds;
use weighbridge_codec::DType;

const INFO: FormatInfo = FormatInfo {
    summary: "rows that words share by hashing, as decimal numbers",
    extensions: &["floret"],
    decimal: true,
    holds: Holds {
        dtypes: &[DType::F32],
        rank: (2, 2),
        empty: false,
        subwords: true,
        ..Holds::NOTHING
    },
    rules: rules::RULES,
    subword_vectors: SubwordVectors::Mean,
    ..FormatInfo::new("floret", "floret text .floret")
};

pub(super) static FORMAT: Format = Format {
    probe,
    read: Some(|input, _, _| read::read(input)),
    check: rules::check,
    lay_out: Some(write::plan),
    ..Format::new(INFO)
};

fn probe(input: &Input, info: &FormatInfo) -> Sureness {
    let looks_right = layout::Header::parse(head(input)).is_some();
    by_content_or_name(looks_right, input, info)
}
