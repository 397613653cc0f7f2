//! Facts that mean something to one format only.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json};

/// Facts of a format that mean something to that format only (a version, the place of a block),
/// kept so that it can write the same bytes again.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Dialect(Map<String, Json>);

impl Dialect {
    /// Without any facts.
    pub fn new() -> Dialect {
        Dialect::default()
    }

    /// Whether there are no facts.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether there is a fact of this name.
    pub fn contains_key(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// The names of all facts.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// Notes a fact that is simply true.
    pub fn mark(&mut self, name: impl Into<String>) {
        self.0.insert(name.into(), true.into());
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Json> {
        self.0.get(name)
    }

    pub(crate) fn insert(&mut self, name: String, value: Json) {
        self.0.insert(name, value);
    }
}

impl FromIterator<(String, Json)> for Dialect {
    fn from_iter<T: IntoIterator<Item = (String, Json)>>(facts: T) -> Dialect {
        Dialect(facts.into_iter().collect())
    }
}
