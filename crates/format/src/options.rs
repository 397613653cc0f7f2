//! Options that belong to formats: each format declares its own, the program derives its flags
//! and help from the declarations.

use crate::Error;
use std::collections::BTreeMap;

/// One option of a format.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct OptionSpec {
    /// Its name.
    pub name: &'static str,
    /// What its value is called in the help; empty for a switch.
    pub value: &'static str,
    /// The values it may have; empty when any text may be given.
    pub choices: &'static [&'static str],
    /// What it does, in one line.
    pub help: &'static str,
    /// It changes how a file is read (else only how one is written).
    pub reading: bool,
}

impl OptionSpec {
    /// A switch that changes how a file is written.
    pub const fn new(name: &'static str, help: &'static str) -> OptionSpec {
        OptionSpec { name, value: "", choices: &[], help, reading: false }
    }
}

/// What was asked for: `name -> value`, a switch has the value `true`.
#[derive(Clone, Debug, Default)]
pub struct Options {
    values: BTreeMap<String, String>,
}

impl Options {
    /// With an option set.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<String>) -> Self {
        self.set(name, value);
        self
    }

    /// Sets an option.
    pub fn set(&mut self, name: &str, value: impl Into<String>) {
        self.values.insert(name.to_owned(), value.into());
    }

    /// The value of an option.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.values.get(name).map(String::as_str)
    }

    /// Whether a switch is on.
    pub fn flag(&self, name: &str) -> bool {
        self.get(name) == Some("true")
    }

    /// A whole number of at least 1.
    ///
    /// # Errors
    /// [`Error::Refused`] for anything else.
    pub fn count(&self, name: &str) -> Result<Option<u64>, Error> {
        let Some(text) = self.get(name) else { return Ok(None) };
        match text.parse() {
            Ok(n) if n >= 1 => Ok(Some(n)),
            _ => {
                let message =
                    format!("the option {name} takes a whole number of at least 1, not {text:?}");
                let problem = crate::Problem::new(message, "").about(name);
                Err(Error::Refused(Box::new(problem)))
            }
        }
    }
}
