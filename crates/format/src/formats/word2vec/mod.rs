//! word2vec's binary format: each word in front of its row of f32 values.
//!
//! See docs/formats/word2vec.md.

mod layout;
mod read;
mod rules;
#[cfg(test)]
mod tests;
mod write;

pub(super) use layout::{Header, is_text};

use super::wordlist::{self, ESCAPE, LOSSY};
use super::{Format, FormatInfo, Stop, Sureness};
use crate::model::{Container, Holds, Plan};
use crate::wire::Findings;
use crate::{Error, Input, Options};
use weighbridge_codec::DType;

pub(super) struct Word2Vec;

static INFO: FormatInfo = FormatInfo {
    id: "word2vec",
    name: "word2vec binary .bin",
    summary: "words, each in front of its row of f32 values",
    extensions: &["bin", "w2v"],
    magic: b"",
    writes: true,
    is_folder: false,
    open_ended: false,
    holds: Holds {
        dtypes: &[DType::F32],
        rank: (2, 2),
        empty: false,
        vocabulary: true,
        ..Holds::NOTHING
    },
    options: &[ESCAPE, LOSSY],
    rules: rules::RULES,
    declarations: false,
};

impl Format for Word2Vec {
    fn info(&self) -> &'static FormatInfo {
        &INFO
    }

    fn probe(&self, input: &Input) -> Sureness {
        let named = !input.is_folder && INFO.extensions.contains(&input.extension().as_str());
        if layout::looks_like(input.source.bytes()) {
            Sureness::Content
        } else if named {
            Sureness::Name
        } else {
            Sureness::No
        }
    }

    fn read(
        &self,
        input: &Input,
        options: &Options,
        findings: &mut Findings,
    ) -> Result<Container, Stop> {
        read::read(input, options, findings)
    }

    fn check(&self, container: &Container, input: &Input, findings: &mut Findings) {
        let file = 0..input.source.len();
        let place = |_| file.clone();
        wordlist::check_finite(&container.tensors, rules::NOT_FINITE, findings, place);
    }

    fn lay_out(&self, container: &Container, options: &Options) -> Result<Plan, Error> {
        write::plan(container, options, &INFO)
    }
}
