//! Words with their numbers in decimal digits, a line each: with a first line that says how many
//! (`text`, as word2vec, fastText and gensim write it) or without (`glove`). See docs/formats/text.md.

mod probe;
mod read;
mod rules;
#[cfg(test)]
mod tests;
mod write;

pub(super) use rules::{bad_line, unfinished};

use super::wordlist::{ESCAPE, LOSSY};
use super::{Format, FormatInfo, Stop, Sureness};
use crate::model::{Container, Holds, Plan};
use crate::wire::Findings;
use crate::{Error, Input, Options};
use weighbridge_codec::DType;

/// Which of the two formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// The first line has the number of rows and of values in a row.
    Counted,
    /// Every line is a row.
    Glove,
}

const HOLDS: Holds =
    Holds { dtypes: &[DType::F32], rank: (2, 2), empty: false, vocabulary: true, ..Holds::NOTHING };

static COUNTED: FormatInfo = FormatInfo {
    id: "text",
    name: "word vectors as text .vec",
    summary: "words and decimal numbers, a line each, behind a line that counts them",
    extensions: &["vec", "txt"],
    magic: b"",
    writes: true,
    is_folder: false,
    open_ended: false,
    holds: HOLDS,
    options: &[ESCAPE, LOSSY],
    rules: rules::RULES,
    declarations: false,
};

static GLOVE: FormatInfo = FormatInfo {
    id: "glove",
    name: "GloVe text",
    summary: "words and decimal numbers, a line each, and nothing else",
    extensions: &["glove"],
    magic: b"",
    writes: true,
    is_folder: false,
    open_ended: true,
    holds: HOLDS,
    options: &[ESCAPE, LOSSY],
    rules: rules::RULES,
    declarations: false,
};

impl Kind {
    const fn info(self) -> &'static FormatInfo {
        match self {
            Kind::Counted => &COUNTED,
            Kind::Glove => &GLOVE,
        }
    }
}

impl Format for Kind {
    fn info(&self) -> &'static FormatInfo {
        Kind::info(*self)
    }

    fn probe(&self, input: &Input) -> Sureness {
        probe::probe(*self, input)
    }

    fn read(
        &self,
        input: &Input,
        options: &Options,
        findings: &mut Findings,
    ) -> Result<Container, Stop> {
        read::read(*self, input, options, findings)
    }

    fn check(&self, container: &Container, input: &Input, findings: &mut Findings) {
        rules::check(*self, container, input, findings);
    }

    fn lay_out(&self, container: &Container, options: &Options) -> Result<Plan, Error> {
        write::plan(*self, container, options)
    }
}
