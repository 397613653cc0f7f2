//! word2vec's binary format: each word in front of its row of f32 values.
//!
//! See docs/formats/word2vec.md.

mod layout;
mod read;
mod rules;
#[cfg(test)]
mod tests;
mod write;

use super::head;
pub(super) use layout::{Header, is_text};

use super::wordlist::{self, ESCAPE, LOSSY};
use super::{Format, FormatInfo, Sureness, by_content_or_name};
use crate::model::Container;
use crate::plan::Holds;
use crate::wire::Findings;
use crate::{Error, Input};
use weighbridge_codec::DType;

const INFO: FormatInfo = FormatInfo {
    summary: "words, each in front of its row of f32 values",
    extensions: &["bin", "w2v"],
    holds: Holds {
        dtypes: &[DType::F32],
        rank: (2, 2),
        empty: false,
        vocabulary: true,
        ..Holds::NOTHING
    },
    options: &[ESCAPE, LOSSY],
    rules: rules::RULES,
    ..FormatInfo::new("word2vec", "word2vec binary .bin")
};

pub(super) static FORMAT: Format = Format {
    probe,
    read: Some(read::read),
    check,
    lay_out: Some(write::plan),
    ..Format::new(INFO)
};

fn probe(input: &Input, info: &FormatInfo) -> Sureness {
    by_content_or_name(layout::looks_like(head(input), input.source.len()), input, info)
}

fn check(container: &Container, input: &Input, findings: &mut Findings) -> Result<(), Error> {
    let file = 0..input.source.len();
    wordlist::check_finite(&container.tensors, rules::NOT_FINITE, findings, |_| file.clone())
}
