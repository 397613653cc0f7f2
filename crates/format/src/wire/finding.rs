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
            file: String::new(),
            start: span.start,
            end: span.end,
            field: String::new(),
            message: self.title.to_owned(),
            expected: String::new(),
            found: String::new(),
            hint: Advice::None,
        }
    }

    /// Says that a file, which ends at `end`, has more bytes behind it.
    pub fn appended(&self, end: u64, size: u64) -> Finding {
        let message = match size.saturating_sub(end) {
            1 => "1 byte is appended after the end of the file".to_owned(),
            more => format!("{more} bytes are appended after the end of the file"),
        };
        let finding = self.at(end..size).message(message);
        let finding = finding.expected(format!("a file of {end} bytes"));
        finding.found(format!("{size} bytes")).hint("cut it off at the expected size")
    }

    /// Says that a file is of a later minor version than those that are known, at this place.
    pub fn newer(&self, span: Span, (major, minor): (u32, u32), known: u32) -> Finding {
        let message = format!("version {major}.{minor} is newer than {major}.{known}");
        let finding = self.at(span).message(message).expected(format!("{major}.{known} or older"));
        let hint = "what this version added is not known, and was not checked";
        finding.found(format!("{major}.{minor}")).hint(hint)
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
    /// The file: while a format reads, the name of a file beside the main one, or nothing; whoever
    /// opened the input gets its path, as the input was given.
    pub file: String,
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

    /// About a file beside the main one, by its name in the folder.
    #[must_use]
    pub fn in_file(mut self, name: impl Into<String>) -> Self {
        self.file = name.into();
        self
    }

    /// Whether it is about some bytes, rather than about something that is not there.
    pub fn has_place(&self) -> bool {
        self.end > 0
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
    /// What could not be checked.
    pub unchecked: Vec<Unchecked>,
    errors: bool,
    /// All that is asked for, if that is not everything.
    only: Option<&'static [Rule]>,
    /// What could be left for later is checked too.
    thorough: bool,
}

/// Something that was not checked, or can't be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Unchecked {
    /// The structure alone was asked for.
    Data,
    /// Reading ended at an error.
    Rest,
    /// The file has no checksums.
    Checksums,
    /// The file says nowhere how long it is.
    Length,
}

impl std::fmt::Display for Unchecked {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Unchecked::Data => "structure only",
            Unchecked::Rest => "nothing after the error was checked",
            Unchecked::Checksums => "no checksums in this file",
            Unchecked::Length => "nothing in this file says how long it is",
        })
    }
}

impl Findings {
    const MOST: usize = 200;

    /// Collects findings of these rules alone.
    pub fn only(rules: &'static [Rule]) -> Findings {
        Findings { only: Some(rules), ..Findings::default() }
    }

    /// Collects findings for whoever wants to know them all. Others have parts of a file checked when
    /// they use them.
    pub(crate) fn thorough() -> Findings {
        Findings { thorough: true, ..Findings::default() }
    }

    /// Whether reading is to check what could be left for later.
    pub(crate) fn is_thorough(&self) -> bool {
        self.thorough
    }

    /// Whether a rule is asked for. A check that takes long asks this before it begins.
    pub fn wants(&self, rule: Rule) -> bool {
        self.wants_id(rule.id)
    }

    fn wants_id(&self, id: &str) -> bool {
        self.only.is_none_or(|only| only.iter().any(|rule| rule.id == id))
    }

    /// Adds a finding, if its rule is asked for.
    pub fn push(&mut self, finding: Finding) {
        if !self.wants_id(finding.rule) {
            return;
        }
        self.errors |= finding.severity == Severity::Error;
        if self.list.len() < Self::MOST {
            self.list.push(finding);
        } else {
            self.suppressed += 1;
        }
    }

    /// Adds those about a file beside the main one.
    pub fn append(&mut self, others: Findings, file: &str) {
        self.suppressed += others.suppressed;
        self.errors |= others.errors;
        for finding in others.list {
            self.push(finding.in_file(file));
        }
    }

    /// Says which file each is about, as whoever opened it calls it.
    pub(crate) fn locate(&mut self, path_of: impl Fn(&str) -> String) {
        for finding in &mut self.list {
            finding.file = path_of(&finding.file);
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
