//! The container: everything a file holds, as views into its bytes.

use super::{DamageCheck, Dialect, Note, Records, Subject, Subwords, Tensor, Value, Vocabulary};
use crate::source::{Source, View};
use crate::wire::Regions;
use weighbridge_codec::DType;

/// The format a container had before it travelled through another one.
#[derive(Clone, Debug)]
pub struct Origin {
    /// Id of the format.
    pub format: String,
    /// Which of its layouts or versions it was.
    pub layout: String,
    /// Its own facts.
    pub dialect: Dialect,
}

/// A file within the file, as it is.
#[derive(Clone, Debug)]
pub struct Attachment {
    /// Its name, with `/` between folders.
    pub name: String,
    /// Its bytes.
    pub data: View,
    /// The metadata and the vocabulary say the same, so that leaving it out loses nothing.
    pub described: bool,
}

/// Everything a file holds. Its tensors' bytes belong to views that can be cloned: they outlive it.
#[derive(Clone, Debug)]
pub struct Container {
    /// Id of the format it was read from; [`NO_FORMAT`] if it came from no file.
    pub format: &'static str,
    /// Which of the format's layouts or versions was met.
    pub layout: String,
    /// Facts that mean something to its format only.
    pub dialect: Dialect,
    /// Set when the file carries another format's content (safetensors as a hub).
    pub origin: Option<Origin>,
    /// Size of the main file.
    pub size: u64,
    /// It is more than one file.
    pub sharded: bool,
    /// The files that tensors stand in, by name, where they are others than the one that was opened.
    pub files: Vec<(String, Source)>,
    /// Values by key, in the order of the file.
    pub metadata: Vec<(String, Value)>,
    /// Sizes by name.
    pub sizevars: Vec<(String, u64)>,
    /// The tensors, in the order of the file.
    pub tensors: Vec<Tensor>,
    /// The tokens or words.
    pub vocabulary: Option<Vocabulary>,
    /// How words that are not in the vocabulary are made of parts; the parts' rows stand behind the
    /// words' rows.
    pub subwords: Option<Subwords>,
    /// Files within the file.
    pub attachments: Vec<Attachment>,
    /// What is part of the source but says nothing about its content (a README).
    pub ignored: Vec<Subject>,
    /// What whoever converts the file should know.
    pub notes: Vec<Note>,
    /// A JSON object for each row.
    pub records: Option<Records>,
    /// The type that real numbers shall be stored in from now on, if that was decided.
    pub dtype: Option<DType>,
    /// What every byte of the file is.
    pub regions: Regions,
    /// The files that the content is read from; they must stay as they are.
    pub opened: Vec<Source>,
    /// Tells whether the file's data is damaged; none where that can't be told, or is accepted.
    pub damage: Option<DamageCheck>,
    /// What is written of it may be far larger than it is.
    pub may_grow: bool,
}

/// The metadata entry that says what rows were made with: a JSON object as text.
pub const EMBEDDING: &str = "embedding";

/// What stands for the format of containers that came from no file.
pub const NO_FORMAT: &str = "none";

/// An empty one that came from no file.
impl Default for Container {
    fn default() -> Container {
        Container {
            format: NO_FORMAT,
            layout: String::new(),
            dialect: Dialect::default(),
            origin: None,
            size: 0,
            sharded: false,
            files: Vec::new(),
            metadata: Vec::new(),
            sizevars: Vec::new(),
            tensors: Vec::new(),
            vocabulary: None,
            subwords: None,
            attachments: Vec::new(),
            ignored: Vec::new(),
            notes: Vec::new(),
            records: None,
            dtype: None,
            regions: Regions::default(),
            opened: Vec::new(),
            damage: None,
            may_grow: false,
        }
    }
}

/// Row count and width of a container that is a matrix of vectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowShape {
    /// Rows.
    pub count: u64,
    /// Values in a row.
    pub dim: u64,
}

impl Container {
    /// Starts a container that comes from no file.
    pub fn builder() -> super::ContainerBuilder {
        super::ContainerBuilder::default()
    }

    /// A text of the metadata.
    pub fn text(&self, key: &str) -> Option<&str> {
        self.metadata.iter().find(|(k, _)| k == key).and_then(|(_, v)| v.as_text())
    }

    /// A tensor by name.
    pub fn tensor(&self, name: &str) -> Option<&Tensor> {
        self.tensors.iter().find(|t| t.name == name)
    }

    /// Sets a metadata text, in its old place if it had one.
    pub fn set_text(&mut self, key: &str, text: impl Into<String>) {
        self.set_value(key, Value::Text(text.into()));
    }

    /// Sets a metadata value, in its old place if it had one.
    pub fn set_value(&mut self, key: &str, value: Value) {
        match self.metadata.iter_mut().find(|(k, _)| k == key) {
            Some((_, old)) => *old = value,
            None => self.metadata.push((key.to_owned(), value)),
        }
    }

    /// The name of the file that bytes stand in; empty for the one that was opened.
    pub fn file_of(&self, view: &View) -> &str {
        let file = self.files.iter().find(|(_, source)| view.is_in(source));
        file.map_or("", |(name, _)| name)
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Bindings share containers between threads, and keep arrays when the container is gone.
    #[test]
    fn containers_are_shared_between_threads() {
        fn is_shared<T: Send + Sync>() {}
        is_shared::<Container>();
        is_shared::<View>();
        is_shared::<Tensor>();
    }
}
