//! Patterns of names.

use std::str::FromStr;
use weighbridge_format::Error;

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

/// Several patterns.
pub(crate) fn patterns(list: &[String]) -> Result<Vec<Pattern>, Error> {
    list.iter().map(|text| text.parse()).collect()
}
