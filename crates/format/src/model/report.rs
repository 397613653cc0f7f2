//! What a conversion keeps, changes and loses.

use crate::{Advice, Error};
use serde::ser::SerializeMap;
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
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Subject::Tensor(name) => write!(f, "tensor {name:?}"),
            Subject::Metadata(key) => write!(f, "metadata {key:?}"),
            Subject::MetadataText => f.write_str("the metadata text"),
            Subject::SizeVariable(name, value) => write!(f, "size variable {name} := {value}"),
            Subject::Vocabulary(tokens) => write!(f, "vocabulary of {tokens} tokens"),
            Subject::Token(id) => write!(f, "token {id}"),
            Subject::SpecialToken(name, id) => write!(f, "special token {name} = {id}"),
            Subject::SpecialTokens => f.write_str("the special tokens of the vocabulary"),
            Subject::Subwords(rows) => write!(f, "subwords with {rows} rows"),
            Subject::RowLengths => f.write_str("the lengths of the rows"),
            Subject::Attachment(name) => write!(f, "attachment {name:?}"),
            Subject::File(name) => f.write_str(name),
            Subject::Records(count) => write!(f, "{count} row records"),
        }
    }
}

/// As its text.
impl Serialize for Subject {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// In which way something is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum LossKind {
    /// It does not arrive.
    Dropped,
    /// It arrives as text, without its type.
    Type,
    /// Values are rounded.
    Precision,
}

/// What rounding does to the values of a tensor.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Rounding {
    /// The encoding that the values had.
    pub from: String,
    /// The encoding that they get.
    pub to: String,
    /// How many values change.
    pub changed: u64,
    /// How many there are.
    pub of: u64,
    /// By how much at most.
    pub largest: f64,
}

/// Something that the target can't hold.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Loss {
    /// In which way it is lost.
    pub kind: LossKind,
    /// What is lost.
    pub subject: Subject,
    /// Why, for people.
    pub why: Cow<'static, str>,
    /// The figures, where values are rounded.
    pub rounding: Option<Rounding>,
}

impl Loss {
    /// Something does not arrive.
    pub fn dropped(subject: Subject, why: impl Into<Cow<'static, str>>) -> Loss {
        Loss { kind: LossKind::Dropped, subject, why: why.into(), rounding: None }
    }

    /// Something of this type arrives as text.
    pub fn as_text(subject: Subject, type_name: &str) -> Loss {
        let why = format!("{type_name} is kept as text").into();
        Loss { kind: LossKind::Type, subject, why, rounding: None }
    }

    /// The values of a tensor are rounded.
    pub fn rounded(
        tensor: impl Into<String>,
        from: impl Into<String>,
        to: impl Into<String>,
        changed: u64,
        of: u64,
        largest: f64,
    ) -> Loss {
        let rounding = Rounding { from: from.into(), to: to.into(), changed, of, largest };
        let why = format!(
            "{} to {}: {changed} of {of} values change, by {largest:.3e} at most",
            rounding.from, rounding.to
        );
        Loss {
            kind: LossKind::Precision,
            subject: Subject::Tensor(tensor.into()),
            why: why.into(),
            rounding: Some(rounding),
        }
    }

    /// What is lost, such as `tensor "w"` or `precision of tensor "w"`.
    pub fn what(&self) -> String {
        match self.kind {
            LossKind::Dropped => self.subject.to_string(),
            LossKind::Type => format!("type of {}", self.subject),
            LossKind::Precision => format!("precision of {}", self.subject),
        }
    }
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.what(), self.why)
    }
}

impl Serialize for Loss {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("what", &self.what())?;
        map.serialize_entry("why", &self.why)?;
        map.serialize_entry("kind", &self.kind)?;
        map.serialize_entry("subject", &self.subject)?;
        if let Some(rounding) = &self.rounding {
            map.serialize_entry("rounding", rounding)?;
        }
        map.end()
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

/// A tensor that is stored differently with the same values (or with a listed [`Loss`]).
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Changed {
    /// Its name.
    pub tensor: String,
    /// The encoding that it had.
    pub from: String,
    /// The encoding that it gets.
    pub to: String,
}

impl Changed {
    /// A tensor that is stored differently.
    pub fn new(
        tensor: impl Into<String>,
        from: impl Into<String>,
        to: impl Into<String>,
    ) -> Changed {
        Changed { tensor: tensor.into(), from: from.into(), to: to.into() }
    }
}

/// What becomes of a container in a format.
#[derive(Clone, Debug, Default, Serialize)]
#[non_exhaustive]
pub struct Report {
    /// Tensors whose bytes stay as they are.
    pub kept: usize,
    /// Tensors with the same values in another type.
    pub changed: Vec<Changed>,
    /// What the format can't hold.
    pub losses: Vec<Loss>,
    /// Left out without loss, such as a README.
    pub ignored: Vec<Subject>,
    /// What there is to know.
    pub warnings: Vec<Note>,
}

impl Report {
    /// Nothing is known yet.
    pub fn new() -> Report {
        Report::default()
    }

    /// Something does not arrive.
    pub fn lose(&mut self, subject: Subject, why: impl Into<Cow<'static, str>>) {
        self.losses.push(Loss::dropped(subject, why));
    }

    /// The error of a format of one matrix or array that could take none of what there is: without
    /// it there is no file, so that this is more than a loss.
    pub(crate) fn nothing_fits(&self, format: &str, advice: impl Into<Advice>) -> Error {
        let why = self.losses.last().map(Loss::to_string).unwrap_or_default();
        Error::refused(format!("nothing can be written as {format}; {why}"), advice)
    }

    /// Puts what another report lists before what this one has.
    pub(crate) fn prepend(&mut self, first: Report) {
        self.losses.splice(0..0, first.losses);
        self.ignored.extend(first.ignored);
    }
}
