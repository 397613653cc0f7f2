//! The verbs that tell something of files, as the JSON of docs/json.md.

use crate::error::json;
use crate::watch::{awaited, watched};
use pyo3::prelude::*;
use std::path::{Path, PathBuf};
use weighbridge::codec::DType;
use weighbridge::index::RecallSettings;
use weighbridge::quantize::{Calibration, Method, Quantization, QuantizeSettings};
use weighbridge::search::Metric;
use weighbridge::{
    Container, Conversion, DiffSettings, Edit, Error, Formats, Index, Input, Options, Output,
    QuantizedFile,
};

fn open(path: &Path) -> Result<Container, Error> {
    Formats::builtin().open(&Input::open(path)?, &Options::default())
}

/// Holds a file against every rule of its format.
#[pyfunction]
pub(crate) fn verify(py: Python<'_>, path: PathBuf, quick: bool) -> PyResult<String> {
    let verdict = awaited(py, move || {
        let input = Input::open(&path)?;
        weighbridge::verify(Formats::builtin(), &input, &Options::default(), quick)
    })?;
    json(&verdict)
}

/// Compares what two files hold.
#[pyfunction]
pub(crate) fn diff(
    py: Python<'_>,
    first: PathBuf,
    second: PathBuf,
    tolerance: f64,
    tensors_only: bool,
) -> PyResult<String> {
    awaited(py, move || {
        let settings = DiffSettings::new().tolerance(tolerance).tensors_only(tensors_only);
        let (first, second) = (open(&first)?, open(&second)?);
        Ok(json(&weighbridge::diff(&first, &second, &settings)?))
    })?
}

/// Writes a file in another format.
#[pyfunction]
#[allow(clippy::too_many_arguments)]
pub(crate) fn convert(
    py: Python<'_>,
    source: PathBuf,
    target: PathBuf,
    to: Option<&str>,
    select: Vec<String>,
    exclude: Vec<String>,
    rename: Vec<(String, String)>,
    set: Vec<(String, String)>,
    dtype: Option<&str>,
    options: Vec<(String, String)>,
    overwrite: bool,
    allow_loss: bool,
    dry_run: bool,
    tell: Option<Py<PyAny>>,
) -> PyResult<String> {
    let conversion = watched(py, tell, |progress| {
        let formats = Formats::builtin();
        let format = formats.target(&target.to_string_lossy(), to)?;
        let mut given = Options::default();
        options.iter().for_each(|(name, value)| given.set(name, value.clone()));
        let container = formats.open(&Input::open(&source)?, &given)?;
        formats.check_options(&given, container.format, format)?;
        let mut edit = Edit::new();
        edit.select = select;
        edit.exclude = exclude;
        edit.rename = rename;
        edit.set = set;
        edit.dtype = dtype.map(element_type).transpose()?;
        weighbridge::check_changes(&container, &edit, format)?;
        let container = edit.apply(container)?;
        let plan = format.plan(&container, &given)?.accept_losses(allow_loss);
        let output = Output::new(&target).overwrite(overwrite);
        if !dry_run {
            plan.write(output.clone(), progress)?;
        }
        Conversion::new(&plan, &output, !dry_run)
    })?;
    json(&conversion)
}

fn element_type(name: &str) -> Result<DType, Error> {
    let all = DType::ALL.iter().map(|dtype| dtype.name().to_owned());
    let unknown = || {
        let what = format!("there is no element type {name:?}");
        Error::refused(what, weighbridge::Advice::one_of("dtype", all))
    };
    DType::from_name(name).ok_or_else(unknown)
}

/// Writes a file with fewer bits a weight.
#[pyfunction]
#[allow(clippy::too_many_arguments)]
pub(crate) fn quantize(
    py: Python<'_>,
    source: PathBuf,
    target: PathBuf,
    method: &str,
    select: Vec<String>,
    exclude: Vec<String>,
    calibrate: Option<bool>,
    texts: Option<Vec<String>>,
    overwrite: bool,
    allow_loss: bool,
    tell: Option<Py<PyAny>>,
) -> PyResult<String> {
    let (conversion, figures) = watched(py, tell, |progress| {
        let mut settings = QuantizeSettings::new(Method::named(method)?);
        settings.select = select;
        settings.exclude = exclude;
        settings.calibration = match (texts, calibrate) {
            (Some(texts), _) => Calibration::Texts(texts),
            (None, Some(false)) => Calibration::Never,
            (None, _) => Calibration::Automatic,
        };
        settings.method.check_output(&target.to_string_lossy(), Formats::builtin())?;
        let container = open(&source)?;
        let output = Output::new(&target).overwrite(overwrite);
        output.obstacle().map_or(Ok(()), Err)?;
        let job = Quantization::new(&container, &settings)?;
        if !allow_loss {
            let losses = job.losses()?;
            if !losses.is_empty() {
                return Err(Error::Loss(losses));
            }
        }
        let quantized = job.run(progress)?;
        let plan = quantized.plan.accept_losses(allow_loss);
        plan.write(output.clone(), progress)?;
        let mut figures = quantized.report;
        if figures.recall_at_10.is_none() {
            let found = weighbridge::index::recall_of_written(&container, &target, progress)?;
            figures.recall_at_10 = found.map(|found| found.recall);
        }
        Ok((Conversion::new(&plan, &output, true)?, figures))
    })?;
    json(&QuantizedFile::new(method, "best", &conversion, figures))
}

/// What makes a row near, by its name.
pub(crate) fn metric(name: &str) -> Result<Metric, Error> {
    let known = [("cosine", Metric::Cosine), ("dot", Metric::Dot), ("l2", Metric::L2)];
    let unknown = || {
        let names = known.map(|(name, _)| name.to_owned());
        let what = format!("there is no metric {name:?}");
        Error::refused(what, weighbridge::Advice::one_of("metric", names))
    };
    known.iter().find(|(known, _)| *known == name).map(|(_, metric)| *metric).ok_or_else(unknown)
}

/// How many neighbours stay the same between two files.
#[pyfunction]
#[allow(clippy::too_many_arguments)]
pub(crate) fn recall(
    py: Python<'_>,
    first: PathBuf,
    second: PathBuf,
    k: usize,
    name: &str,
    sample: usize,
    seed: u64,
    tell: Option<Py<PyAny>>,
) -> PyResult<String> {
    let found = watched(py, tell, |progress| {
        let first = Index::of(&open(&first)?, None)?;
        let second = Index::of(&open(&second)?, None)?;
        let mut settings = RecallSettings::default();
        (settings.k, settings.metric) = (k, metric(name)?);
        (settings.sample, settings.seed) = (sample, seed);
        weighbridge::recall(&first, &second, None, &settings, progress)
    })?;
    json(&found)
}
