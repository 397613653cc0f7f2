//! Texts to vectors.

use crate::buffer::Buffer;
use crate::error::Failure;
use crate::fork::free;
use crate::watch::watched;
use pyo3::prelude::*;
use std::ops::ControlFlow;
use weighbridge::embed::{OutputType, Ranges, quantize};
use weighbridge::encoder::{Precision, PromptChoice, Purpose, Settings, Tokenizer};
use weighbridge::source::Bytes;
use weighbridge::{Advice, Error, Stage, models};

/// A model that is ready.
#[pyclass(frozen, module = "weighbridge._native")]
#[derive(Debug)]
pub(crate) struct Encoder(pub(crate) weighbridge::Encoder);

#[pymethods]
impl Encoder {
    #[new]
    fn new(
        py: Python<'_>,
        model: &str,
        compute: &str,
        threads: Option<usize>,
    ) -> Result<Encoder, Failure> {
        Ok(free(py, || -> Result<Encoder, Error> {
            let path = models::find(model)?;
            let settings =
                Settings { precision: precision(compute)?, threads, ..Settings::default() };
            Ok(Encoder(weighbridge::Encoder::open_with(path, &settings)?))
        })?)
    }

    #[getter]
    fn dimensions(&self) -> usize {
        self.0.dimensions()
    }

    #[getter]
    fn max_tokens(&self) -> usize {
        self.0.max_tokens()
    }

    /// Prompts by name.
    #[getter]
    fn prompts(&self) -> Vec<(&str, &str)> {
        let prompts = &self.0.spec().prompts;
        prompts.iter().map(|prompt| (prompt.name.as_str(), prompt.text.as_str())).collect()
    }

    #[getter]
    fn default_prompt(&self) -> Option<&str> {
        self.0.spec().default_prompt.as_deref()
    }

    /// The vectors of texts, one behind the other. `prompt` is what stands in front of each, `purpose`
    /// chooses the model's own.
    #[pyo3(signature = (texts, prompt=None, purpose=None, tell=None))]
    fn embed(
        &self,
        py: Python<'_>,
        texts: Vec<String>,
        prompt: Option<String>,
        purpose: Option<&str>,
        tell: Option<Py<PyAny>>,
    ) -> PyResult<Buffer> {
        let vectors = watched(py, tell, |progress| {
            let encoder = self.prompted(prompt, purpose);
            progress.begin(Stage::Embedding, texts.len() as u64)?;
            let mut counted = 0;
            let vectors = encoder.embed_flat_telling(&texts, &mut |done| {
                let more = (done - counted) as u64;
                counted = done;
                match progress.advance(more) {
                    Ok(()) => ControlFlow::Continue(()),
                    Err(_) => ControlFlow::Break(()),
                }
            })?;
            progress.advance((texts.len() - counted) as u64)?;
            Ok(vectors)
        })?;
        Ok(Buffer::of_floats(&vectors))
    }

    /// The numbers of each text's tokens.
    #[pyo3(signature = (texts, prompt=None))]
    fn tokenize(
        &self,
        py: Python<'_>,
        texts: Vec<String>,
        prompt: Option<String>,
    ) -> Vec<Vec<u32>> {
        free(py, || {
            let front = prompt.unwrap_or_default();
            let tokens = |text: &String| {
                let mut ids = Vec::new();
                let text = [front.as_str(), text].concat();
                self.0.tokenizer().encode_into(&text, self.0.max_tokens(), &mut ids);
                ids
            };
            texts.iter().map(tokens).collect()
        })
    }
}

impl Encoder {
    fn prompted(&self, prompt: Option<String>, purpose: Option<&str>) -> weighbridge::Encoder {
        let choice = match (prompt, purpose) {
            (Some(text), _) => PromptChoice::Given(text),
            (None, Some("query")) => PromptChoice::For(Purpose::Query),
            (None, Some("document")) => PromptChoice::For(Purpose::Document),
            (None, _) => PromptChoice::Given(self.default_prompt().unwrap_or_default().to_owned()),
        };
        self.0.with_prompt(&choice)
    }
}

/// Whether a model can be opened, and has no tokenizer that could be used.
#[pyfunction]
pub(crate) fn lacks_tokenizer(py: Python<'_>, model: &str) -> bool {
    free(py, || {
        let container = models::find(model).and_then(weighbridge::open);
        container.is_ok_and(|container| Tokenizer::of(&container).is_err())
    })
}

/// The codes of vectors of f32 that lie one behind the other, between these ends or their own.
#[pyfunction]
#[pyo3(signature = (vectors, dimensions, precision, ranges=None))]
pub(crate) fn quantize_vectors(
    py: Python<'_>,
    vectors: &[u8],
    dimensions: usize,
    precision: &str,
    ranges: Option<(Vec<f32>, Vec<f32>)>,
) -> Result<Buffer, Failure> {
    Ok(free(py, || -> Result<Buffer, Error> {
        let unknown = || {
            let names = OutputType::ALL.map(OutputType::name);
            Error::refused(
                format!("there is no precision {precision:?}"),
                Advice::one_of("precision", names),
            )
        };
        let to = OutputType::from_name(precision).ok_or_else(unknown)?;
        let values = vectors.as_chunks::<4>().0.iter().map(|bytes| f32::from_le_bytes(*bytes));
        let values: Vec<f32> = values.collect();
        let ends = ranges.and_then(|(low, high)| Ranges::new(low, high));
        let codes = quantize(&values, dimensions, to, ends.as_ref())?;
        Ok(Buffer::new(Bytes::owned(codes)))
    })?)
}

pub(crate) fn precision(name: &str) -> Result<Precision, Error> {
    let unknown = || {
        let what = format!("there is no precision {name:?}");
        Error::refused(what, Advice::one_of("compute", ["f32", "bf16", "q8"]))
    };
    Precision::from_name(name).ok_or_else(unknown)
}
