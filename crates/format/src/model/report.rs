//! What a conversion keeps, changes and loses.

use serde::Serialize;

/// Something that the target can't hold.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Loss {
    /// What is lost, such as `tensor "w"` or `metadata "mode"`.
    pub what: String,
    pub why: String,
}

/// A tensor that is stored differently with the same values (or with a listed [`Loss`]).
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Changed {
    pub tensor: String,
    pub from: String,
    pub to: String,
}

#[derive(Clone, Debug, Default, Serialize)]
pub struct Report {
    /// Tensors whose bytes stay as they are.
    pub kept: usize,
    /// Tensors with the same values in another type.
    pub changed: Vec<Changed>,
    pub losses: Vec<Loss>,
    /// Left out without loss, such as a README.
    pub ignored: Vec<String>,
    pub warnings: Vec<String>,
}

impl Report {
    pub fn lose(&mut self, what: impl Into<String>, why: impl Into<String>) {
        self.losses.push(Loss { what: what.into(), why: why.into() });
    }
}
