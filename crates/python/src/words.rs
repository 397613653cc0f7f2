//! Words to vectors and neighbours.

use crate::buffer::Buffer;
use crate::error::{Failure, json};
use crate::file::File;
use crate::fork::free;
use crate::watch::watched;
use pyo3::prelude::*;
use std::borrow::Cow;
use weighbridge::search::Query;
use weighbridge::{Embeddings, words};

/// Vectors that go by words.
#[pyclass(frozen, module = "weighbridge._native")]
#[derive(Debug)]
pub(crate) struct Words(Embeddings);

/// Rows with their scores.
type Hits = Vec<(usize, f32)>;

#[pymethods]
impl Words {
    #[new]
    fn new(file: &Bound<'_, File>) -> Result<Words, Failure> {
        Ok(Words(Embeddings::new(&file.get().container)?))
    }

    fn __len__(&self) -> usize {
        self.0.len()
    }

    #[getter]
    fn dimensions(&self) -> usize {
        self.0.dim()
    }

    fn find(&self, word: &str) -> Option<usize> {
        self.0.find(word)
    }

    fn word(&self, row: usize) -> Cow<'_, str> {
        self.0.word(row)
    }

    /// All words, by row.
    fn words(&self, py: Python<'_>) -> Vec<String> {
        free(py, || (0..self.0.len()).map(|row| self.0.word(row).into_owned()).collect())
    }

    /// The vector of a word, and whether it is one of the file; none if it can't be made of parts.
    fn lookup(&self, word: &str) -> Result<Option<(bool, Buffer)>, Failure> {
        let found = self.0.lookup(word)?;
        Ok(found.map(|found| (found.known, Buffer::of_floats(&found.vector))))
    }

    /// The rows nearest to a vector by the cosine, but for some, among the first `limit`.
    #[pyo3(signature = (vector, k, exclude, limit=None))]
    fn nearest(
        &self,
        py: Python<'_>,
        vector: Vec<f32>,
        k: usize,
        exclude: Vec<usize>,
        limit: Option<usize>,
    ) -> Result<Hits, Failure> {
        let query = Query { vector: &vector, exclude: &exclude };
        let found = free(py, || self.0.nearest_of_first(&[query], k, limit.unwrap_or(usize::MAX)))?;
        let hits = found.into_iter().flatten();
        Ok(hits.map(|hit| (hit.row, hit.score)).collect())
    }

    /// What `evaluate --json` prints.
    fn evaluate(&self, py: Python<'_>, name: &str, questions: &[u8]) -> PyResult<String> {
        let found =
            watched(py, None, |progress| words::evaluate(&self.0, questions, name, progress))?;
        json(&found)
    }
}
