//! Containers: what a file holds.

use crate::buffer::Buffer;
use crate::error::{Failure, json};
use crate::fork::free;
use crate::watch::awaited;
use pyo3::exceptions::{PyIndexError, PyKeyError};
use pyo3::prelude::*;
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use weighbridge::{Array, Container, Detail, Formats, Input, Options, Tensor, summary};

/// An open file.
#[pyclass(frozen, module = "weighbridge._native")]
#[derive(Debug)]
pub(crate) struct File {
    pub(crate) container: Arc<Container>,
    places: HashMap<String, usize>,
}

impl File {
    fn open(input: &Input, format: Option<&str>) -> Result<File, weighbridge::Error> {
        let formats = Formats::builtin();
        let options = Options::default();
        let container = match format {
            None => formats.open(input, &options)?,
            Some(id) => formats.open(input, &options.with("from", id))?,
        };
        Ok(File::of(container))
    }

    pub(crate) fn of(container: Container) -> File {
        let names = container.tensors.iter().enumerate().map(|(i, t)| (t.name.clone(), i));
        File { places: names.collect(), container: Arc::new(container) }
    }

    fn tensor(&self, name: &str) -> PyResult<&Tensor> {
        let place = self.places.get(name).ok_or_else(|| PyKeyError::new_err(name.to_owned()))?;
        Ok(&self.container.tensors[*place])
    }
}

/// Opens a file or a model directory.
#[pyfunction]
#[pyo3(signature = (path, format=None))]
pub(crate) fn open(py: Python<'_>, path: PathBuf, format: Option<&str>) -> Result<File, Failure> {
    Ok(free(py, || File::open(&Input::open(&path)?, format))?)
}

/// Opens bytes as if they were a file of this name.
#[pyfunction]
#[pyo3(signature = (name, bytes, format=None))]
pub(crate) fn open_bytes(
    py: Python<'_>,
    name: &str,
    bytes: &[u8],
    format: Option<&str>,
) -> Result<File, Failure> {
    Ok(free(py, || File::open(&Input::from_bytes(name, bytes.to_vec()), format))?)
}

/// Name of the encoding, type of the values as arrays have them, shape, and where the bytes are.
type Described = (String, String, Vec<u64>, Option<u64>, Option<u64>);

#[pymethods]
impl File {
    #[getter]
    fn format(&self) -> &str {
        self.container.format
    }

    /// The names of the tensors, in the order of the file.
    fn names(&self) -> Vec<&str> {
        self.container.tensors.iter().map(|tensor| tensor.name.as_str()).collect()
    }

    fn has(&self, name: &str) -> bool {
        self.places.contains_key(name)
    }

    /// Name of the encoding, shape, first byte and number of bytes of a tensor.
    fn describe(&self, name: &str) -> PyResult<Described> {
        let tensor = self.tensor(name)?;
        let offset = tensor.view().map(|view| view.span().start);
        let stored = tensor.encoding.stored().name().to_owned();
        let encoding = tensor.encoding.name().into_owned();
        Ok((encoding, stored, tensor.shape.clone(), offset, tensor.stored_len()))
    }

    /// The values of some rows: their type, their shape and their bytes.
    #[pyo3(signature = (name, start=None, end=None))]
    fn values(
        &self,
        py: Python<'_>,
        name: &str,
        start: Option<u64>,
        end: Option<u64>,
    ) -> PyResult<(&'static str, Vec<u64>, Buffer)> {
        let tensor = self.tensor(name)?;
        let rows = tensor.shape.first().copied().unwrap_or(1);
        let range = start.unwrap_or(0)..end.unwrap_or(rows);
        let array = free(py, || Array::of_rows(tensor, range)).map_err(Failure::from)?;
        Ok((array.dtype.name(), array.shape, Buffer::new(array.bytes)))
    }

    /// The bytes of a tensor as they are stored.
    fn raw(&self, py: Python<'_>, name: &str) -> PyResult<Option<Buffer>> {
        let Some(view) = self.tensor(name)?.view() else { return Ok(None) };
        Ok(Some(Buffer::new(free(py, || view.in_place()).map_err(Failure::from)?)))
    }

    /// What `inspect --json` prints.
    #[pyo3(signature = (*, tensors=None, stats=false, values=false, vocabulary=false, regions=false))]
    fn summary(
        &self,
        py: Python<'_>,
        tensors: Option<&str>,
        stats: bool,
        values: bool,
        vocabulary: bool,
        regions: bool,
    ) -> PyResult<String> {
        let mut detail = Detail::new();
        detail.tensors = tensors.map(str::parse).transpose().map_err(Failure::from)?;
        (detail.stats, detail.values) = (stats, values);
        (detail.vocabulary, detail.bytes) = (vocabulary, regions);
        let container = self.container.clone();
        awaited(py, move || Ok(json(&summary(&container, &detail)?)))?
    }

    /// Values by key, as `inspect --json` has them.
    fn metadata(&self, py: Python<'_>) -> PyResult<String> {
        free(py, || {
            let value = |(key, value): &(String, _)| (key.clone(), serde_json::json!(value));
            let all: serde_json::Map<_, _> = self.container.metadata.iter().map(value).collect();
            json(&all)
        })
    }

    /// All tokens or words.
    fn vocabulary(&self) -> Result<Option<Vec<String>>, Failure> {
        let found = weighbridge::vocabulary(&self.container)?;
        Ok(found.map(|words| words.tokens().map(std::borrow::Cow::into_owned).collect()))
    }

    /// How many rows have a record.
    fn records(&self) -> Result<Option<u64>, Failure> {
        Ok(self.container.records.as_ref().map(|records| records.count()).transpose()?)
    }

    /// The record of a row, a JSON object.
    fn record(&self, row: u64) -> PyResult<String> {
        let records = self.container.records.as_ref();
        let found = records.map(|r| r.record(row)).transpose().map_err(Failure::from)?;
        found.flatten().ok_or_else(|| PyIndexError::new_err(format!("there is no record {row}")))
    }
}
