//! Parts of a container by name, and what there is to know about them.

use crate::Advice;
use serde::{Serialize, Serializer};
use std::borrow::Cow;
use std::fmt;

/// A part of a container, by name.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Subject {
    /// A tensor.
    Tensor(String),
    /// An entry of the metadata.
    Metadata(String),
    /// The text that the metadata of a format stands in.
    MetadataText,
    /// A size variable and its value.
    SizeVariable(String, u64),
    /// The vocabulary, with so many tokens.
    Vocabulary(u64),
    /// A token, by its number.
    Token(u64),
    /// A special token, with its number.
    SpecialToken(String, u32),
    /// All special tokens.
    SpecialTokens,
    /// How unknown words are made of parts, with so many rows.
    Subwords(u64),
    /// The lengths that rows had.
    RowLengths,
    /// A file within the file.
    Attachment(String),
    /// A file beside others, or what else has a name of its own.
    File(String),
    /// The records of so many rows.
    Records(u64),
    /// So many rows whose words other rows had before.
    RepeatedWords(u64),
}

impl Subject {
    /// Whether it is none of something that is counted.
    pub fn is_nothing(&self) -> bool {
        matches!(self, Subject::Vocabulary(0) | Subject::Subwords(0) | Subject::Records(0))
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let of = |count: &u64, one: &str, more: &str| match count {
            1 => format!("1 {one}"),
            count => format!("{count} {more}"),
        };
        match self {
            Subject::Tensor(name) => write!(f, "tensor {name:?}"),
            Subject::Metadata(key) => write!(f, "metadata {key:?}"),
            Subject::MetadataText => f.write_str("the metadata text"),
            Subject::SizeVariable(name, value) => write!(f, "size variable {name} := {value}"),
            Subject::Vocabulary(tokens) => {
                write!(f, "vocabulary of {}", of(tokens, "token", "tokens"))
            }
            Subject::Token(id) => write!(f, "token {id}"),
            Subject::SpecialToken(name, id) => write!(f, "special token {name} = {id}"),
            Subject::SpecialTokens => f.write_str("the special tokens of the vocabulary"),
            Subject::Subwords(rows) => write!(f, "subwords with {}", of(rows, "row", "rows")),
            Subject::RowLengths => f.write_str("the lengths of the rows"),
            Subject::Attachment(name) => write!(f, "attachment {name:?}"),
            Subject::File(name) => f.write_str(name),
            Subject::Records(count) => f.write_str(&of(count, "row record", "row records")),
            Subject::RepeatedWords(1) => f.write_str("1 row of a word that appears twice"),
            Subject::RepeatedWords(rows) => write!(f, "{rows} rows of words that appear twice"),
        }
    }
}

/// As its text.
impl Serialize for Subject {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// What a [`Note`] is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum NoteKind {
    /// Something that the format asks for is not known.
    Missing,
    /// Parts of the content contradict each other.
    Disagrees,
    /// Something of the source is left out or not used.
    LeftOut,
    /// Reading left out the subject: whoever writes what was read loses it.
    Lost,
    /// Rows are brought to unit length.
    Normalized,
    /// The result keeps to the format, but strict readers may refuse it.
    Strict,
    /// Something is stored in another way than usual.
    Unusual,
}

/// Something that whoever converts a file should know, and that is no loss.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Note {
    /// What it is about.
    pub kind: NoteKind,
    /// The part that it is about, where it is one.
    pub subject: Option<Subject>,
    /// So many of so many things, where something is counted.
    pub count: Option<(u64, u64)>,
    /// What there is to know, for people.
    pub text: Cow<'static, str>,
    /// What would change it.
    pub advice: Advice,
}

impl Note {
    /// A note.
    pub fn new(kind: NoteKind, text: impl Into<Cow<'static, str>>) -> Note {
        let advice = Advice::None;
        Note { kind, subject: None, count: None, text: text.into(), advice }
    }

    /// About a part of the container.
    #[must_use]
    pub fn about(mut self, subject: Subject) -> Note {
        self.subject = Some(subject);
        self
    }

    /// With a count: so many of so many.
    #[must_use]
    pub fn counting(mut self, some: u64, all: u64) -> Note {
        self.count = Some((some, all));
        self
    }

    /// With what would change it.
    #[must_use]
    pub fn advice(mut self, advice: impl Into<Advice>) -> Note {
        self.advice = advice.into();
        self
    }
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)?;
        match &self.advice {
            Advice::None => Ok(()),
            advice => write!(f, "; {advice}"),
        }
    }
}

/// As its text.
impl Serialize for Note {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
