//! The ways in which opening, converting and writing can fail.

use crate::Advice;
use crate::plan::Loss;
use crate::source::FileChanged;
use crate::wire::Finding;
use serde::Serialize;
use std::fmt;
use std::path::{Path, PathBuf};

/// Why something could not be done. Every variant belongs to one [`ErrorKind`].
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The format was recognised, but the file breaks one of its rules.
    Malformed {
        /// The file, as the input calls it.
        file: String,
        /// The broken rule, with its place.
        finding: Box<Finding>,
    },
    /// No format fits, or a text is not what it should be.
    Unrecognised {
        /// The file, as the input calls it.
        file: String,
        /// What it is instead.
        problem: Box<Problem>,
    },
    /// It is known what this is, but it can't be used here; the subject names it.
    Unsupported(Box<Problem>),
    /// There is no such file, model or word; the subject names it.
    NotFound(Box<Problem>),
    /// The request can't be carried out as it was made; the subject is the option or value that is
    /// in the way.
    Refused(Box<Problem>),
    /// Something would be lost, and that was not allowed.
    Loss(Vec<Loss>),
    /// A limit was reached that protects memory and time.
    Limit {
        /// What there was too much of.
        what: String,
        /// How much is allowed.
        most: u64,
        /// What would help.
        advice: Advice,
    },
    /// Whoever watched the work stopped it.
    Cancelled,
    /// A file was cut or rewritten while it was read.
    Changed {
        /// The file, or what stands for one.
        path: PathBuf,
    },
    /// Reading or writing failed.
    Io {
        /// The file, or what stands for one.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
}

/// What went wrong, about what, and what would help.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Problem {
    /// What went wrong: a sentence without its full stop.
    pub message: String,
    /// The file that it is about. Empty where it is about none.
    pub file: String,
    /// What it is about, by name: a feature, an option, a word. Empty where nothing has a name.
    pub subject: String,
    /// What would help.
    pub advice: Advice,
}

impl Problem {
    /// A problem; the subject is the option that the advice is about, if there is one.
    pub fn new(message: impl Into<String>, advice: impl Into<Advice>) -> Problem {
        let advice = advice.into();
        let subject = advice.option().unwrap_or_default().to_owned();
        Problem { message: message.into(), file: String::new(), subject, advice }
    }

    /// The same about a file.
    #[must_use]
    pub fn in_file(mut self, path: &Path) -> Problem {
        self.file = path.display().to_string();
        self
    }

    /// The same about something with a name.
    #[must_use]
    pub fn about(mut self, subject: impl Into<String>) -> Problem {
        self.subject = subject.into();
        self
    }
}

/// The kinds of errors. The table that fixes exit codes, and what other front ends make of an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The file breaks a rule of its format.
    Malformed,
    /// No format fits.
    Unrecognised,
    /// It is known and can't be used here.
    Unsupported,
    /// There is no such thing.
    NotFound,
    /// Another request would work.
    Refused,
    /// Something would be lost.
    Loss,
    /// Too much of something.
    Limit,
    /// Whoever watched stopped it.
    Cancelled,
    /// A file is no longer what it was when it was opened.
    Changed,
    /// The system failed.
    Io,
}

impl ErrorKind {
    /// Every kind with its name and the exit code of a program that ends with it.
    const TABLE: [(ErrorKind, &'static str, u8); 10] = [
        (ErrorKind::Malformed, "malformed", 3),
        (ErrorKind::Unrecognised, "unrecognised", 3),
        (ErrorKind::Unsupported, "unsupported", 3),
        (ErrorKind::NotFound, "not-found", 4),
        (ErrorKind::Refused, "refused", 2),
        (ErrorKind::Loss, "loss", 2),
        (ErrorKind::Limit, "limit", 5),
        (ErrorKind::Cancelled, "cancelled", 130),
        (ErrorKind::Changed, "changed", 4),
        (ErrorKind::Io, "io", 4),
    ];

    fn entry(self) -> (&'static str, u8) {
        let entry = ErrorKind::TABLE.iter().find(|(kind, ..)| *kind == self);
        entry.map_or(("io", 4), |(_, name, code)| (name, *code))
    }

    /// Its name in JSON.
    pub fn name(self) -> &'static str {
        self.entry().0
    }

    /// The exit code of a program that ends with it.
    pub fn exit_code(self) -> u8 {
        self.entry().1
    }

    /// Every kind.
    pub fn all() -> impl Iterator<Item = ErrorKind> {
        ErrorKind::TABLE.iter().map(|(kind, ..)| *kind)
    }
}

impl Error {
    /// A failure of the system at a file. One that is not there is [`Error::NotFound`].
    pub fn io(path: &Path, source: std::io::Error) -> Error {
        if source.kind() == std::io::ErrorKind::NotFound {
            let message = format!("{}: {source}", path.display());
            let problem = Problem::new(message, Advice::None).in_file(path);
            return Error::NotFound(Box::new(problem));
        }
        Error::Io { path: path.to_owned(), source }
    }

    /// A request that can't be carried out as it was made.
    pub fn refused(message: impl Into<String>, advice: impl Into<Advice>) -> Error {
        Error::Refused(Box::new(Problem::new(message, advice)))
    }

    /// The same because of a file; what it does or is follows its name.
    pub fn refused_file(path: &Path, what: &str, advice: impl Into<Advice>) -> Error {
        let message = format!("{} {what}", path.display());
        Error::Refused(Box::new(Problem::new(message, advice).in_file(path)))
    }

    /// Something known by name that can't be used here.
    pub fn unsupported(
        name: impl Into<String>,
        message: impl Into<String>,
        advice: impl Into<Advice>,
    ) -> Error {
        Error::Unsupported(Box::new(Problem::new(message, advice).about(name)))
    }

    /// Something that is not there, by name.
    pub fn not_found(
        name: impl Into<String>,
        message: impl Into<String>,
        advice: impl Into<Advice>,
    ) -> Error {
        Error::NotFound(Box::new(Problem::new(message, advice).about(name)))
    }

    /// A file of no known format, or a text that is not what it should be.
    pub fn unrecognised(
        file: impl Into<String>,
        message: impl Into<String>,
        advice: impl Into<Advice>,
    ) -> Error {
        let problem = Box::new(Problem::new(message, advice));
        Error::Unrecognised { file: file.into(), problem }
    }

    /// Too much of something.
    pub fn limit(what: impl Into<String>, most: u64) -> Error {
        Error::Limit { what: what.into(), most, advice: Advice::None }
    }

    /// A file that breaks a rule of its format.
    pub fn malformed(file: &str, finding: impl Into<Box<Finding>>) -> Error {
        Error::Malformed { file: file.to_owned(), finding: finding.into() }
    }

    /// The same error for somebody else who asks. What the system said is kept as a text.
    pub(crate) fn again(&self) -> Error {
        match self {
            Error::Malformed { file, finding } => Error::malformed(file, finding.clone()),
            Error::Changed { path } => Error::Changed { path: path.clone() },
            Error::Io { path, source } => {
                let source = std::io::Error::new(source.kind(), source.to_string());
                Error::Io { path: path.clone(), source }
            }
            Error::Limit { what, most, advice } => {
                Error::Limit { what: what.clone(), most: *most, advice: advice.clone() }
            }
            Error::Cancelled => Error::Cancelled,
            other => Error::refused(other.message(), other.advice()),
        }
    }

    /// Which kind it is.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Error::Malformed { .. } => ErrorKind::Malformed,
            Error::Unrecognised { .. } => ErrorKind::Unrecognised,
            Error::Unsupported(_) => ErrorKind::Unsupported,
            Error::NotFound(_) => ErrorKind::NotFound,
            Error::Refused(_) => ErrorKind::Refused,
            Error::Loss(_) => ErrorKind::Loss,
            Error::Limit { .. } => ErrorKind::Limit,
            Error::Cancelled => ErrorKind::Cancelled,
            Error::Changed { .. } => ErrorKind::Changed,
            Error::Io { .. } => ErrorKind::Io,
        }
    }

    /// What would help.
    pub fn advice(&self) -> Advice {
        match self {
            Error::Malformed { finding, .. } => finding.hint.clone(),
            Error::Unrecognised { problem, .. }
            | Error::Unsupported(problem)
            | Error::NotFound(problem)
            | Error::Refused(problem) => problem.advice.clone(),
            Error::Loss(_) => Advice::set("allow-loss", "goes on without it"),
            Error::Changed { .. } => "run it again when nothing writes to the file".into(),
            Error::Limit { advice, .. } => advice.clone(),
            Error::Cancelled | Error::Io { .. } => Advice::None,
        }
    }

    /// What went wrong, in one sentence, without what would help.
    pub fn message(&self) -> String {
        match self {
            Error::Malformed { finding, .. } => finding.message.clone(),
            Error::Unrecognised { file, problem } => format!("{file}: {}", problem.message),
            Error::Unsupported(problem) | Error::NotFound(problem) | Error::Refused(problem) => {
                problem.message.clone()
            }
            Error::Loss(losses) => {
                // The error has them all; a message of a hundred would help nobody.
                const SHOWN: usize = 3;
                let list: Vec<_> = losses.iter().take(SHOWN).map(Loss::to_string).collect();
                let others = match losses.len().saturating_sub(SHOWN) {
                    0 => String::new(),
                    n => format!("; and {n} more"),
                };
                format!("this would be lost: {}{others}", list.join("; "))
            }
            Error::Limit { what, most, .. } => format!("{what}: {most} at most"),
            Error::Cancelled => "stopped".to_owned(),
            Error::Changed { path } => format!("{}: {FileChanged}", path.display()),
            Error::Io { path, source } => format!("{}: {source}", path.display()),
        }
    }

    /// The error as the object that front ends print or pass on.
    pub fn report(&self) -> ErrorReport {
        let mut report = ErrorReport {
            kind: self.kind().name(),
            message: self.message(),
            hint: self.advice().to_string(),
            ..ErrorReport::default()
        };
        match self {
            Error::Malformed { file, finding } => {
                report.file.clone_from(file);
                report.rule = finding.rule.to_owned();
                (report.start, report.end) = (Some(finding.start), Some(finding.end));
                report.field.clone_from(&finding.field);
                report.expected.clone_from(&finding.expected);
                report.found.clone_from(&finding.found);
            }
            Error::Unrecognised { file, .. } => report.file.clone_from(file),
            Error::Unsupported(problem) | Error::NotFound(problem) | Error::Refused(problem) => {
                report.file.clone_from(&problem.file);
                report.field.clone_from(&problem.subject);
            }
            Error::Io { path, .. } | Error::Changed { path } => {
                report.file = path.display().to_string()
            }
            Error::Limit { most, .. } => report.expected = format!("{most} at most"),
            Error::Loss(losses) => report.losses.clone_from(losses),
            Error::Cancelled => {}
        }
        report
    }
}

/// An error as JSON has it. Members that don't apply are left out.
#[derive(Clone, Debug, Default, Serialize)]
#[non_exhaustive]
pub struct ErrorReport {
    /// The name of its [`ErrorKind`].
    pub kind: &'static str,
    /// What went wrong.
    pub message: String,
    /// The file that it is about.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub file: String,
    /// The rule of the format that is broken.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub rule: String,
    /// The first byte that it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start: Option<u64>,
    /// The byte behind the last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end: Option<u64>,
    /// The field, tensor or option that it is about.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub field: String,
    /// What was expected there.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub expected: String,
    /// What was found instead.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub found: String,
    /// What would help.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub hint: String,
    /// What would be lost.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub losses: Vec<Loss>,
}

/// The message, for a broken rule with its place, and what would help.
impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Error::Malformed { file, finding: x } = self {
            match x.has_place() {
                true => write!(f, "{file}, bytes {:#x}..{:#x}", x.start, x.end)?,
                false => f.write_str(file)?,
            }
            write!(f, ": [{}] {}", x.rule, x.message)?;
            let parts = [("in", &x.field), ("expected", &x.expected), ("found", &x.found)];
            parts
                .iter()
                .filter(|p| !p.1.is_empty())
                .try_for_each(|(k, v)| write!(f, "; {k} {v}"))?;
        } else {
            f.write_str(&self.message())?;
        }
        match self {
            Error::Loss(_) => Ok(()),
            _ => match self.advice() {
                Advice::None => Ok(()),
                advice => write!(f, "; hint: {advice}"),
            },
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_have_the_documented_exit_codes() {
        let codes: Vec<_> = ErrorKind::all().map(ErrorKind::exit_code).collect();
        assert_eq!(codes, [3, 3, 3, 4, 2, 2, 5, 130, 4, 4]);
        let missing = Error::io(Path::new("x"), std::io::ErrorKind::NotFound.into());
        assert_eq!((missing.kind(), missing.report().file.as_str()), (ErrorKind::NotFound, "x"));
    }

    #[test]
    fn reports_leave_out_what_does_not_apply() {
        let error = Error::refused("there is no rounding", Advice::one_of("rounding", ["nearest"]));
        assert_eq!(
            serde_json::to_string(&error.report()).unwrap(),
            r#"{"kind":"refused","message":"there is no rounding","field":"rounding","hint":"the option rounding takes one of: nearest"}"#
        );
        assert_eq!(
            serde_json::to_string(&Error::Cancelled.report()).unwrap(),
            r#"{"kind":"cancelled","message":"stopped"}"#
        );
    }
}
