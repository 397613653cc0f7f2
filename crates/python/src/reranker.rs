//! Pairs of texts to scores.

use crate::buffer::Buffer;
use crate::encoder::precision;
use crate::error::Failure;
use crate::fork::free;
use crate::watch::watched;
use pyo3::prelude::*;
use std::ops::ControlFlow;
use weighbridge::encoder::Settings;
use weighbridge::{Error, Stage, models};

/// A model that scores pairs of texts.
#[pyclass(frozen, module = "weighbridge._native")]
#[derive(Debug)]
pub(crate) struct Reranker(weighbridge::Reranker);

#[pymethods]
impl Reranker {
    #[new]
    fn new(
        py: Python<'_>,
        model: &str,
        compute: &str,
        threads: Option<usize>,
    ) -> Result<Reranker, Failure> {
        Ok(free(py, || -> Result<Reranker, Error> {
            let container = weighbridge::open(models::find(model)?)?;
            let settings =
                Settings { precision: precision(compute)?, threads, ..Settings::default() };
            Ok(Reranker(weighbridge::Reranker::new(&container, &settings)?))
        })?)
    }

    #[getter]
    fn labels(&self) -> usize {
        self.0.labels()
    }

    #[getter]
    fn max_tokens(&self) -> usize {
        self.0.max_tokens()
    }

    /// The scores of pairs, as many for each as there are labels.
    #[pyo3(signature = (pairs, tell=None))]
    fn score(
        &self,
        py: Python<'_>,
        pairs: Vec<(String, String)>,
        tell: Option<Py<PyAny>>,
    ) -> PyResult<Buffer> {
        let scores = watched(py, tell, |progress| {
            progress.begin(Stage::Scoring, pairs.len() as u64)?;
            let scores =
                self.0.score_telling(&pairs, &mut |done| match progress.reach(done as u64) {
                    Ok(()) => ControlFlow::Continue(()),
                    Err(_) => ControlFlow::Break(()),
                })?;
            progress.reach(pairs.len() as u64)?;
            Ok(scores)
        })?;
        Ok(Buffer::of_floats(&scores))
    }
}
