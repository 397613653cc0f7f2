//! The container: everything a file holds, as views into its bytes.

use super::{Records, Subwords, Tensor, Value, Vocabulary};
use crate::source::View;
use crate::wire::Regions;

/// Facts of a format that mean something to that format only (a version, the place of a block),
/// kept so that it can write the same bytes again.
pub type Dialect = serde_json::Map<String, serde_json::Value>;

/// The format a container had before it travelled through another one.
#[derive(Clone, Debug)]
pub struct Origin {
    pub format: String,
    pub layout: String,
    pub dialect: Dialect,
}

/// A file within the file, as it is.
#[derive(Clone, Debug)]
pub struct Attachment {
    pub name: String,
    pub data: View,
    /// The metadata and the vocabulary say the same, so that leaving it out loses nothing.
    pub described: bool,
}

#[derive(Clone, Debug, Default)]
pub struct Container {
    /// Id of the format it was read from.
    pub format: &'static str,
    /// Which of the format's layouts or versions was met.
    pub layout: String,
    pub dialect: Dialect,
    /// Set when the file carries another format's content (safetensors as a hub).
    pub origin: Option<Origin>,
    /// Size of the main file.
    pub size: u64,
    pub metadata: Vec<(String, Value)>,
    pub sizevars: Vec<(String, u64)>,
    pub tensors: Vec<Tensor>,
    pub vocabulary: Option<Vocabulary>,
    /// How words that are not in the vocabulary are made of parts; the parts' rows stand behind the
    /// words' rows.
    pub subwords: Option<Subwords>,
    pub attachments: Vec<Attachment>,
    /// Files that are part of the source but say nothing about its content (a README).
    pub ignored: Vec<String>,
    /// What whoever converts the file should know.
    pub notes: Vec<String>,
    pub records: Option<Records>,
    pub regions: Regions,
}

/// Row count and width of a container that is a matrix of vectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowShape {
    pub count: u64,
    pub dim: u64,
}

impl Container {
    pub fn text(&self, key: &str) -> Option<&str> {
        self.metadata.iter().find(|(k, _)| k == key).and_then(|(_, v)| v.as_text())
    }

    pub fn tensor(&self, name: &str) -> Option<&Tensor> {
        self.tensors.iter().find(|t| t.name == name)
    }

    /// Sets a metadata text, in its old place if it had one.
    pub fn set_text(&mut self, key: &str, text: impl Into<String>) {
        let value = Value::Text(text.into());
        match self.metadata.iter_mut().find(|(k, _)| k == key) {
            Some((_, old)) => *old = value,
            None => self.metadata.push((key.to_owned(), value)),
        }
    }

    /// Sets a metadata value from a text, in its old place if it had one. It keeps the type that it
    /// had where the text can be read as that.
    pub fn set_as_before(&mut self, key: &str, text: &str) {
        match self.metadata.iter_mut().find(|(k, _)| k == key) {
            Some((_, old)) => {
                *old = old.read_alike(text).unwrap_or_else(|| Value::Text(text.into()));
            }
            None => self.set_text(key, text),
        }
    }

    /// The dialect of `format`, if the content comes from there, directly or through a hub.
    pub fn dialect_of(&self, format: &str) -> Option<&Dialect> {
        match &self.origin {
            Some(origin) if origin.format == format => Some(&origin.dialect),
            None if self.format == format => Some(&self.dialect),
            _ => None,
        }
    }

    /// The matrix that a file of rows consists of: its only tensor, of rank 2.
    pub fn rows(&self) -> Option<RowShape> {
        match self.tensors.as_slice() {
            [t] if t.shape.len() == 2 => Some(RowShape { count: t.shape[0], dim: t.shape[1] }),
            _ => None,
        }
    }
}
