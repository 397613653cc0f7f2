//! Patterns of names.

use std::str::FromStr;
use weighbridge_format::{Advice, Container, Error, Listing};

/// A pattern of names, with `*`, `?` and `[…]`.
#[derive(Clone, Debug)]
pub struct Pattern(glob::Pattern);

impl Pattern {
    /// Whether a name fits.
    pub fn matches(&self, name: &str) -> bool {
        self.0.matches(name)
    }

    /// The pattern as it was given.
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }
}

impl FromStr for Pattern {
    type Err = Error;

    fn from_str(text: &str) -> Result<Pattern, Error> {
        let bad = |e| Error::refused(format!("bad pattern {text:?}: {e}"), "");
        glob::Pattern::new(text).map(Pattern).map_err(bad)
    }
}

/// Several patterns of a container's tensors.
pub(crate) fn patterns(list: &[String], container: &Container) -> Result<Vec<Pattern>, Error> {
    let fitting = |text: &String| {
        let pattern = text.parse()?;
        must_fit(&pattern, container)?;
        Ok(pattern)
    };
    list.iter().map(fitting).collect()
}

/// A pattern that fits no tensor is a mistake, whatever it is for.
pub(crate) fn must_fit(pattern: &Pattern, container: &Container) -> Result<(), Error> {
    if container.tensors.iter().any(|t| pattern.matches(&t.name)) {
        return Ok(());
    }
    let what = format!("no tensor fits {:?}", pattern.as_str());
    // Only what could be a name can be a mistyped one.
    let is_name = !pattern.as_str().contains(['*', '?', '[']);
    let names = container.tensors.iter().filter(|_| is_name).map(|t| &t.name);
    let meant = Advice::meant(pattern.as_str(), names);
    Err(Error::refused(what, meant.and(Advice::See(Listing::Tensors))))
}
