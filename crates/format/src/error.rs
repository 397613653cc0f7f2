//! The ways in which opening, converting and writing can fail.

use crate::model::Loss;
use crate::wire::Finding;
use std::fmt;
use std::path::{Path, PathBuf};

#[derive(Debug)]
pub enum Error {
    /// The format was recognised, but the file breaks one of its rules.
    Malformed { file: String, finding: Box<Finding> },
    /// No format fits.
    Unrecognised { file: String, what: String, hint: String },
    /// Reading or writing failed.
    Io { path: PathBuf, source: std::io::Error },
    /// The request can't be carried out as it was made.
    Refused { what: String, hint: String },
    /// Something would be lost, and that was not allowed.
    Loss(Vec<Loss>),
}

impl Error {
    pub fn io(path: &Path, source: std::io::Error) -> Error {
        Error::Io { path: path.to_owned(), source }
    }

    pub fn refused(what: impl Into<String>, hint: impl Into<String>) -> Error {
        Error::Refused { what: what.into(), hint: hint.into() }
    }

    pub fn malformed(file: &str, finding: impl Into<Box<Finding>>) -> Error {
        Error::Malformed { file: file.to_owned(), finding: finding.into() }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Malformed { file, finding: x } => {
                write!(
                    f,
                    "{file}, bytes {:#x}..{:#x}: [{}] {}",
                    x.start, x.end, x.rule, x.message
                )?;
                let parts = [
                    ("in", &x.field),
                    ("expected", &x.expected),
                    ("found", &x.found),
                    ("hint:", &x.hint),
                ];
                parts
                    .iter()
                    .filter(|p| !p.1.is_empty())
                    .try_for_each(|(k, v)| write!(f, "; {k} {v}"))
            }
            Error::Unrecognised { file, what, hint } => write!(f, "{file}: {what}; hint: {hint}"),
            Error::Io { path, source } => write!(f, "{}: {source}", path.display()),
            Error::Refused { what, hint } if hint.is_empty() => write!(f, "{what}"),
            Error::Refused { what, hint } => write!(f, "{what}; hint: {hint}"),
            Error::Loss(losses) => {
                write!(f, "{} things would be lost:", losses.len())?;
                losses.iter().try_for_each(|l| write!(f, " {}: {};", l.what, l.why))
            }
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Io { source, .. } => Some(source),
            _ => None,
        }
    }
}
