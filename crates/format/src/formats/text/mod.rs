//! Words with their numbers in decimal digits, a line each: with a first line that says how many
//! (`text`, as word2vec, fastText and gensim write it) or without (`glove`). See docs/formats/text.md.

mod probe;
mod read;
mod rules;
#[cfg(test)]
mod tests;
mod write;

pub(super) use rules::{bad_line, marked, unfinished};

use super::wordlist::{ESCAPE, LOSSY};
use super::{Format, FormatInfo};
use crate::plan::Holds;
use weighbridge_codec::DType;

/// Which of the two formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// The first line has the number of rows and of values in a row.
    Counted,
    /// Every line is a row.
    Glove,
}

const HOLDS: Holds =
    Holds { dtypes: &[DType::F32], rank: (2, 2), empty: false, vocabulary: true, ..Holds::NOTHING };

const COUNTED_INFO: FormatInfo = FormatInfo {
    summary: "words and decimal numbers, a line each, behind a line that counts them",
    extensions: &["vec", "txt"],
    decimal: true,
    holds: HOLDS,
    options: &[ESCAPE, LOSSY],
    rules: rules::RULES,
    ..FormatInfo::new("text", "word vectors as text .vec")
};

const GLOVE_INFO: FormatInfo = FormatInfo {
    summary: "words and decimal numbers, a line each, and nothing else",
    extensions: &["glove"],
    decimal: true,
    open_ended: true,
    holds: HOLDS,
    options: &[ESCAPE, LOSSY],
    rules: rules::RULES,
    ..FormatInfo::new("glove", "GloVe text")
};

pub(super) static COUNTED: Format = Format {
    probe: |input, info| probe::probe(Kind::Counted, input, info),
    read: Some(|input, options, findings| read::read(Kind::Counted, input, options, findings)),
    check: |container, input, findings| rules::check(Kind::Counted, container, input, findings),
    lay_out: Some(|container, options, info| write::plan(Kind::Counted, container, options, info)),
    ..Format::new(COUNTED_INFO)
};

pub(super) static GLOVE: Format = Format {
    probe: |input, info| probe::probe(Kind::Glove, input, info),
    read: Some(|input, options, findings| read::read(Kind::Glove, input, options, findings)),
    check: |container, input, findings| rules::check(Kind::Glove, container, input, findings),
    lay_out: Some(|container, options, info| write::plan(Kind::Glove, container, options, info)),
    ..Format::new(GLOVE_INFO)
};

impl Kind {
    const fn info(self) -> &'static FormatInfo {
        match self {
            Kind::Counted => &COUNTED_INFO,
            Kind::Glove => &GLOVE_INFO,
        }
    }
}
