//! Facts, and who said them.

use crate::Finding;
use serde::Serialize;

/// Who said something about a model.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum SaidBy {
    /// A file: its name, and the key in it.
    File(String),
    /// The metadata, under this key.
    Metadata(String),
    /// The names or shapes of tensors, or the vocabulary.
    Content,
    /// Nobody, but models of this family are known to have it so; it is known by the model's name.
    Family(String),
    /// Nobody: it is what is usual.
    #[default]
    Assumed,
}

/// Something about a model, and who said it.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Fact<T> {
    /// What was said.
    pub value: T,
    /// Who said it.
    pub said_by: SaidBy,
}

impl<T> Fact<T> {
    /// What nobody said, and is usual.
    pub fn assumed(value: T) -> Fact<T> {
        Fact { value, said_by: SaidBy::Assumed }
    }

    pub(super) fn from_content(value: T) -> Fact<T> {
        Fact { value, said_by: SaidBy::Content }
    }

    /// Whether nobody said it.
    pub fn is_assumed(&self) -> bool {
        self.said_by == SaidBy::Assumed
    }

    /// Whether neither the model's files nor its content say it: it is what is usual, or known of
    /// its family.
    pub fn is_unsaid(&self) -> bool {
        matches!(self.said_by, SaidBy::Family(_) | SaidBy::Assumed)
    }

    /// Whether a file or its metadata says it in words, so that it would have to be written again.
    pub(super) fn is_stated(&self) -> bool {
        matches!(self.said_by, SaidBy::File(_) | SaidBy::Metadata(_))
    }
}

/// A setting that says nothing that makes sense.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Misstatement {
    /// Where it stands: a file with a key, or a key of the metadata.
    pub field: String,
    /// What would make sense.
    pub expected: String,
    /// What was found.
    pub found: String,
}

impl Misstatement {
    /// Of a file that is not what it should be.
    pub(super) fn unreadable(finding: &Finding) -> Misstatement {
        Misstatement {
            field: finding.field.clone(),
            expected: finding.expected.clone(),
            found: finding.found.clone(),
        }
    }
}
