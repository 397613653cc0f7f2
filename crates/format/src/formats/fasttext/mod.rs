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
use super::{Format, FormatInfo, Stop};
use crate::model::{Container, Holds, Plan};
use crate::wire::Findings;
use crate::{Error, Input, Options};
use weighbridge_codec::DType;

pub(super) struct FastText;

static INFO: FormatInfo = FormatInfo {
    id: "fasttext",
    name: "fastText model .bin",
    summary: "words and n-gram buckets with their rows, as fastText trains them",
    extensions: &["bin"],
    magic: &layout::MAGIC,
    writes: true,
    is_folder: false,
    open_ended: false,
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
    declarations: false,
};

impl Format for FastText {
    fn info(&self) -> &'static FormatInfo {
        &INFO
    }

    fn read(
        &self,
        input: &Input,
        options: &Options,
        findings: &mut Findings,
    ) -> Result<Container, Stop> {
        read::read(input, options, findings)
    }

    fn check(&self, container: &Container, _: &Input, findings: &mut Findings) {
        rules::check(container, findings);
    }

    fn lay_out(&self, container: &Container, options: &Options) -> Result<Plan, Error> {
        write::plan(container, options, &INFO)
    }
}
