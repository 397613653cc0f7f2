//! A container by hand.

use super::{Attachment, Container, Encoding, MATRIX, Records, Tensor, Value, Vocabulary};
use crate::source::View;
use crate::{Advice, Error};
use std::collections::HashSet;
use weighbridge_codec::DType;

/// Puts a container together: tensors from vectors or views, metadata, words, records.
///
/// ```
/// use weighbridge_format::{Container, Formats, Options};
///
/// let container = Container::builder()
///     .rows(2, vec![0.6, 0.8, 1.0, 0.0])
///     .words(["truck", "lorry"])
///     .metadata("license", "CC0")
///     .build()?;
/// let format = Formats::builtin().target("words.fifu", None)?;
/// let plan = format.plan(&container, &Options::default())?;
/// assert!(plan.report.losses.is_empty());
/// let bytes = plan.to_bytes()?;
/// # Ok::<(), weighbridge_format::Error>(())
/// ```
#[derive(Debug, Default)]
pub struct ContainerBuilder {
    container: Container,
    failed: Option<Error>,
}

impl ContainerBuilder {
    /// Adds a tensor.
    #[must_use]
    pub fn tensor(mut self, tensor: Tensor) -> Self {
        self.container.tensors.push(tensor);
        self
    }

    /// Adds a tensor of f32 values, in row-major order.
    #[must_use]
    pub fn values(self, name: impl Into<String>, shape: &[u64], values: Vec<f32>) -> Self {
        let bytes = values.iter().flat_map(|v| v.to_le_bytes()).collect();
        self.bytes(name, DType::F32, shape, View::owned(bytes))
    }

    /// Adds a tensor whose bytes are those of a view: little-endian, in row-major order.
    #[must_use]
    pub fn bytes(
        mut self,
        name: impl Into<String>,
        dtype: DType,
        shape: &[u64],
        bytes: View,
    ) -> Self {
        match Tensor::stored(name, Encoding::Plain(dtype), shape.to_vec(), bytes) {
            Ok(tensor) => self.container.tensors.push(tensor),
            Err(error) => self.failed = self.failed.or(Some(error)),
        }
        self
    }

    /// Adds the matrix of a file of rows, or of word embeddings: rows of `dim` values, one behind
    /// the other.
    #[must_use]
    pub fn rows(self, dim: u64, values: Vec<f32>) -> Self {
        let count = (values.len() as u64).checked_div(dim).unwrap_or(0);
        self.values(MATRIX, &[count, dim], values)
    }

    /// Sets a metadata text.
    #[must_use]
    pub fn metadata(mut self, key: &str, text: impl Into<String>) -> Self {
        self.container.set_text(key, text);
        self
    }

    /// Sets a metadata value of any type.
    #[must_use]
    pub fn value(mut self, key: &str, value: Value) -> Self {
        self.container.metadata.retain(|(k, _)| k != key);
        self.container.metadata.push((key.to_owned(), value));
        self
    }

    /// Gives the rows words, or the model a vocabulary.
    #[must_use]
    pub fn words<'a>(mut self, words: impl IntoIterator<Item = &'a str>) -> Self {
        self.container.vocabulary = Some(Vocabulary::from_tokens(words));
        self
    }

    /// Gives each row a record: a JSON object as text.
    #[must_use]
    pub fn records<'a>(mut self, objects: impl IntoIterator<Item = &'a str>) -> Self {
        match Records::from_objects(objects) {
            Ok(records) => self.container.records = Some(records),
            Err(bad) => {
                let error = Error::refused(format!("the records are not JSON objects: {bad}"), "");
                self.failed = self.failed.or(Some(error));
            }
        }
        self
    }

    /// Adds a file within the file.
    #[must_use]
    pub fn attachment(mut self, name: impl Into<String>, bytes: Vec<u8>) -> Self {
        let (name, data) = (name.into(), View::owned(bytes));
        self.container.attachments.push(Attachment { name, data, described: false });
        self
    }

    /// The container.
    ///
    /// # Errors
    /// [`Error::Refused`] if a tensor's bytes do not have the size of its shape, two tensors have
    /// one name, a record is not a JSON object, or there are other records than rows.
    pub fn build(self) -> Result<Container, Error> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        let container = self.container;
        let mut names = HashSet::new();
        if let Some(twice) = container.tensors.iter().find(|t| !names.insert(&t.name)) {
            return Err(Error::refused(format!("two tensors are named {:?}", twice.name), ""));
        }
        if let (Some(rows), Some(records)) = (container.rows(), &container.records)
            && let count = records.count()?
            && rows.count != count
        {
            let message = format!("there are {count} records for {} rows", rows.count);
            return Err(Error::refused(message, Advice::from("every row has one record")));
        }
        Ok(container)
    }
}
