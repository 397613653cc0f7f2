//! fastText's binary models `.bin`: words, n-gram buckets and the rows of both.
//!
//! The file has a row for each word and for each bucket; the vector of a word is the mean of its own
//! row and its n-grams' rows. That mean is what the container has as the word's row, made when it is
//! asked for. See docs/formats/fasttext.md.

mod layout;
mod read;
mod rows;
mod rules;
#[cfg(test)]
mod tests;
mod write;

use super::wordlist::LOSSY;
use super::{Format, FormatInfo, Sureness, by_magic_or_name, head};
use crate::Input;
use crate::model::SubwordVectors;
use crate::plan::Holds;
use weighbridge_codec::DType;

const INFO: FormatInfo = FormatInfo {
    summary: "words and n-gram buckets with their rows, as fastText trains them",
    extensions: &["bin"],
    magic: &layout::MAGIC,
    holds: Holds {
        dtypes: &[DType::F32],
        rank: (2, 2),
        empty: false,
        vocabulary: true,
        subwords: true,
        ..Holds::NOTHING
    },
    options: &[LOSSY],
    rules: rules::RULES,
    subword_vectors: SubwordVectors::Mean,
    ..FormatInfo::new("fasttext", "fastText model .bin")
};

pub(super) static FORMAT: Format = Format {
    probe,
    read: Some(read::read),
    check: |container, _, findings| rules::check(container, findings),
    lay_out: Some(write::plan),
    ..Format::new(INFO)
};

/// The first models had no magic.
fn probe(input: &Input, info: &FormatInfo) -> Sureness {
    match by_magic_or_name(input, info) {
        Sureness::Magic => Sureness::Magic,
        _ if !input.is_folder && layout::is_first(head(input), input.source.len()) => {
            Sureness::Content
        }
        other => other,
    }
}
