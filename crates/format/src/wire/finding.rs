//! Rules and findings: what is wrong with a file, as data.

use super::Span;
use crate::Advice;
use serde::Serialize;

/// How bad a broken rule is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Usable, but not as the specification says.
    Warning,
    /// The file can't be trusted, or can't be decoded as it claims.
    Error,
}

/// A numbered rule of a format; docs/formats has a line for each.
#[derive(Clone, Copy, Debug)]
pub struct Rule {
    /// Its number, such as `EMBD-07`.
    pub id: &'static str,
    /// How bad it is when it is broken.
    pub severity: Severity,
    /// What is wrong when the rule is broken.
    pub title: &'static str,
}

impl Rule {
    /// Starts a finding of this rule about some bytes of the file.
    pub fn at(&self, span: Span) -> Finding {
        Finding {
            rule: self.id,
            severity: self.severity,
            start: span.start,
            end: span.end,
            field: String::new(),
            message: self.title.to_owned(),
            expected: String::new(),
            found: String::new(),
            hint: Advice::None,
        }
    }
}

/// One broken rule in one place. Empty texts mean that there is nothing to say.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Finding {
    /// The rule's id.
    pub rule: &'static str,
    /// How bad it is.
    pub severity: Severity,
    /// The first byte that it is about.
    pub start: u64,
    /// The byte behind the last.
    pub end: u64,
    /// The field, tensor or file that it is about.
    pub field: String,
    /// What is wrong.
    pub message: String,
    /// What was expected.
    pub expected: String,
    /// What was found.
    pub found: String,
    /// What may be the cause, or what helps.
    pub hint: Advice,
}

impl Finding {
    /// What is said of a file that could not be looked at: no rule of a format is broken.
    pub fn unreadable(rule: &'static str, message: impl Into<String>) -> Finding {
        Rule { id: rule, severity: Severity::Error, title: "" }.at(0..0).message(message)
    }

    /// About a field, tensor or file.
    #[must_use]
    pub fn field(mut self, field: impl Into<String>) -> Self {
        self.field = shorten(field.into());
        self
    }

    /// With what was expected.
    #[must_use]
    pub fn expected(mut self, expected: impl ToString) -> Self {
        self.expected = shorten(expected.to_string());
        self
    }

    /// With what was found.
    #[must_use]
    pub fn found(mut self, found: impl ToString) -> Self {
        self.found = shorten(found.to_string());
        self
    }

    /// With what may be the cause, or what helps.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<Advice>) -> Self {
        self.hint = hint.into();
        self
    }

    /// Replaces the rule's title by something more exact.
    #[must_use]
    pub fn message(mut self, message: impl Into<String>) -> Self {
        self.message = shorten(message.into());
        self
    }
}

/// Texts out of a file can be megabytes long; a finding quotes their beginning.
fn shorten(text: String) -> String {
    const MOST: usize = 200;
    match text.char_indices().nth(MOST) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text,
    }
}

/// Collects findings; a hostile file can't make it grow without end.
#[derive(Debug, Default)]
pub struct Findings {
    list: Vec<Finding>,
    /// Findings beyond the limit, counted only.
    pub suppressed: u64,
    errors: bool,
}

impl Findings {
    const MOST: usize = 200;

    /// Adds a finding.
    pub fn push(&mut self, finding: Finding) {
        self.errors |= finding.severity == Severity::Error;
        if self.list.len() < Self::MOST {
            self.list.push(finding);
        } else {
            self.suppressed += 1;
        }
    }

    /// Whether one of them is an error.
    pub fn has_errors(&self) -> bool {
        self.errors
    }

    /// Whether there are none.
    pub fn is_clean(&self) -> bool {
        self.list.is_empty()
    }

    /// Those that were kept.
    pub fn list(&self) -> &[Finding] {
        &self.list
    }

    /// The first error, if there is one among those kept.
    pub fn first_error(&self) -> Option<&Finding> {
        self.list.iter().find(|f| f.severity == Severity::Error)
    }

    /// Those that were kept.
    pub fn into_list(self) -> Vec<Finding> {
        self.list
    }
}

/// Declares a format's rules: a constant for each, and the table of all in `RULES`.
#[macro_export]
macro_rules! rules {
    ($($name:ident $id:literal $severity:ident $title:literal;)*) => {
        $(pub(super) const $name: $crate::wire::Rule = $crate::wire::Rule {
            id: $id,
            severity: $crate::wire::Severity::$severity,
            title: $title,
        };)*
        /// Every rule of the format, by number.
        pub(super) static RULES: &[$crate::wire::Rule] = &[$($name,)*];
    };
}
impl Extend<Finding> for Findings {
    fn extend<I: IntoIterator<Item = Finding>>(&mut self, findings: I) {
        findings.into_iter().for_each(|finding| self.push(finding));
    }
}
