//! What a conversion keeps, changes and loses.

use crate::model::{Container, Note, Subject, Tensor};
use crate::{Advice, Error};
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use std::borrow::Cow;
use std::fmt;

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

    /// Codes without a scale arrive as whole numbers, which they are not.
    pub fn codes_as_numbers(tensor: impl Into<String>) -> Loss {
        let subject = Subject::Tensor(tensor.into());
        let why = "it has codes without a scale, which are kept as whole numbers".into();
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
        let change = if changed == 1 { "changes" } else { "change" };
        let values = if of == 1 { "value" } else { "values" };
        let why = format!(
            "{} to {}: {changed} of {of} {values} {change}, by {largest:.3e} at most",
            rounding.from, rounding.to
        );
        Loss {
            kind: LossKind::Precision,
            subject: Subject::Tensor(tensor.into()),
            why: why.into(),
            rounding: Some(rounding),
        }
    }

    /// Whether a tensor does not arrive.
    fn drops(&self, tensor: &str) -> bool {
        let named = matches!(&self.subject, Subject::Tensor(name) if name == tensor);
        named && self.kind == LossKind::Dropped
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

    /// Something does not arrive. Losing none of something is no loss.
    pub fn lose(&mut self, subject: Subject, why: impl Into<Cow<'static, str>>) {
        if !subject.is_nothing() {
            self.losses.push(Loss::dropped(subject, why));
        }
    }

    /// A tensor that was placed is stored in this way, whatever its type.
    pub(crate) fn store_as(&mut self, tensor: &Tensor, how: &str) {
        match self.changed.iter_mut().find(|c| c.tensor == tensor.name) {
            Some(changed) => how.clone_into(&mut changed.to),
            None => {
                self.kept = self.kept.saturating_sub(1);
                self.changed.push(Changed::new(&tensor.name, tensor.encoding.name(), how));
            }
        }
    }

    /// The tensors of a container stood in its file in this way, so that none is kept as it is.
    pub(crate) fn read_from(&mut self, container: &Container, how: &str) {
        self.kept = 0;
        for tensor in &container.tensors {
            let plain = tensor.encoding.name();
            match self.changed.iter_mut().find(|c| c.tensor == tensor.name) {
                Some(changed) if changed.from == plain => {
                    how.clone_into(&mut changed.from);
                    if changed.to == how {
                        changed.to = format!("the shortest {how}");
                    }
                }
                Some(_) => {}
                None if self.losses.iter().any(|l| l.drops(&tensor.name)) => {}
                None => self.changed.push(Changed::new(&tensor.name, how, plain)),
            }
        }
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
