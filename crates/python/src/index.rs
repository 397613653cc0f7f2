//! Vectors to the nearest rows.

use crate::buffer::Buffer;
use crate::encoder::Encoder;
use crate::error::Failure;
use crate::file::File;
use crate::fork::free;
use crate::report::metric;
use crate::watch::watched;
use pyo3::prelude::*;
use weighbridge::index::{TextSettings, parse_filter};
use weighbridge::search::{Ask, Query};
use weighbridge::source::Bytes;
use weighbridge::{Error, Stage};

/// Queries between two looks at whether the work should stop.
const WINDOW: usize = 256;

/// Rows that can be searched.
#[pyclass(frozen, module = "weighbridge._native")]
#[derive(Debug)]
pub(crate) struct Index(weighbridge::Index);

#[pymethods]
impl Index {
    #[new]
    #[pyo3(signature = (file, tensor=None))]
    fn new(py: Python<'_>, file: &Bound<'_, File>, tensor: Option<&str>) -> Result<Index, Failure> {
        let container = file.get().container.clone();
        Ok(Index(free(py, || weighbridge::Index::of(&container, tensor))?))
    }

    fn __len__(&self) -> usize {
        self.0.len()
    }

    #[getter]
    fn dimensions(&self) -> usize {
        self.0.dim()
    }

    /// The record of a row, a JSON object.
    fn record(&self, row: usize) -> Result<Option<String>, Failure> {
        Ok(self.0.record(row)?)
    }

    fn word(&self, row: usize) -> Option<String> {
        self.0.word(row).map(std::borrow::Cow::into_owned)
    }

    /// The model that the rows were made with, or another one if it is comparable.
    #[pyo3(signature = (model=None))]
    fn encoder(&self, py: Python<'_>, model: Option<&str>) -> Result<Encoder, Failure> {
        Ok(Encoder(free(py, || {
            let mut settings = TextSettings::default();
            settings.model = model.map(str::to_owned);
            self.0.encoder_with(&settings, |path, settings| {
                weighbridge::Encoder::open_with(path, settings)
            })
        })?))
    }

    /// The rows nearest to each of some queries, which are f32 one behind the other: scores as f32,
    /// rows as i64, and how many there are for each.
    #[pyo3(signature = (queries, k, name, filters, tell=None))]
    fn search(
        &self,
        py: Python<'_>,
        queries: &[u8],
        k: usize,
        name: &str,
        filters: Vec<String>,
        tell: Option<Py<PyAny>>,
    ) -> PyResult<(Buffer, Buffer, usize)> {
        let (scores, rows, k) = watched(py, tell, |progress| {
            let filters = filters.iter().map(|text| {
                let wrong = || {
                    let what = format!("{text:?} is not a filter");
                    Error::refused(what, "a filter is KEY=VALUE")
                };
                parse_filter(text).ok_or_else(wrong)
            });
            let filters = filters.collect::<Result<Vec<_>, Error>>()?;
            let among = match filters.is_empty() {
                true => None,
                false => Some(self.0.matching(&filters)?),
            };
            let possible = among.as_ref().map_or(self.0.len(), |rows| rows.len());
            let k = k.min(possible);
            let mut ask = Ask::new(k, metric(name)?);
            ask.among = among.as_ref();
            let (values, _) = queries.as_chunks();
            let values: Vec<f32> = values.iter().map(|b| f32::from_le_bytes(*b)).collect();
            let vectors: Vec<Query> = values
                .chunks_exact(self.0.dim().max(1))
                .map(|vector| Query { vector, exclude: &[] })
                .collect();
            progress.begin(Stage::Answering, vectors.len() as u64)?;
            let (mut scores, mut rows) = (Vec::new(), Vec::new());
            for some in vectors.chunks(WINDOW) {
                for hits in self.0.search_batch(some, &ask)? {
                    let missing = k - hits.len().min(k);
                    scores.extend(hits.iter().map(|hit| hit.score));
                    rows.extend(hits.iter().map(|hit| hit.row as i64));
                    // Rows with NaN are never found, so that there may be fewer.
                    scores.extend(std::iter::repeat_n(f32::NEG_INFINITY, missing));
                    rows.extend(std::iter::repeat_n(-1, missing));
                }
                progress.advance(some.len() as u64)?;
            }
            Ok((scores, rows, k))
        })?;
        let rows = rows.iter().flat_map(|row| row.to_le_bytes()).collect();
        Ok((Buffer::of_floats(&scores), Buffer::new(Bytes::owned(rows)), k))
    }
}
