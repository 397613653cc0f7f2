//! Containers of what Python has: arrays, values, words and records.

use crate::buffer::Lent;
use crate::error::{Failure, json};
use crate::file::File;
use crate::fork::free;
use crate::watch::watched;
use pyo3::buffer::PyBuffer;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyBytes;
use std::borrow::Cow;
use std::path::PathBuf;
use weighbridge::codec::DType;
use weighbridge::codec::convert::convert;
use weighbridge::model::{Array, Value};
use weighbridge::source::{Bytes, Source};
use weighbridge::{
    Container, Conversion, Encoding, Error, Formats, Options, Output, Plan, Tensor, View,
};

/// Name, type, shape and bytes; none of a tensor that is only declared.
type Values = (String, String, Vec<u64>, Option<PyBuffer<u8>>);

/// Key, type, shape and bytes. Texts are of type `str`; flags `bitset`, their number the shape.
type Entry = (String, String, Vec<u64>, PyBackedBytes);

/// A container that is no file yet. `copy` says whether it has memory of its own; else it looks at the
/// arrays piece by piece while it is written.
#[pyfunction]
pub(crate) fn build(
    py: Python<'_>,
    tensors: Vec<Values>,
    metadata: Vec<Entry>,
    sizevars: Vec<(String, u64)>,
    words: Option<Vec<String>>,
    records: Option<Vec<String>>,
    copy: bool,
) -> PyResult<File> {
    let mut builder = Container::builder();
    for (name, dtype, shape, bytes) in tensors {
        let dtype = element_type(&dtype)?;
        builder = match bytes {
            Some(bytes) => builder.bytes(name, dtype, &shape, view(py, bytes, copy)?),
            None => builder.tensor(Tensor::declared(name, Encoding::Plain(dtype), shape)),
        };
    }
    for entry in metadata {
        let (key, value) = value(entry)?;
        builder = builder.value(&key, value);
    }
    if let Some(words) = &words {
        builder = builder.words(words.iter().map(String::as_str));
    }
    if let Some(records) = &records {
        builder = builder.records(records.iter().map(String::as_str));
    }
    let mut container = free(py, || builder.build()).map_err(Failure::from)?;
    container.sizevars = sizevars;
    Ok(File::of(container))
}

fn view(py: Python<'_>, bytes: PyBuffer<u8>, copy: bool) -> PyResult<View> {
    if copy || bytes.len_bytes() == 0 {
        return Ok(View::owned(bytes.to_vec(py)?));
    }
    let length = bytes.len_bytes() as u64;
    let view = Source::from_ranges("array", Lent::new(bytes)).view(0..length);
    view.ok_or_else(|| PyValueError::new_err("an array without an end"))
}

/// Where and how a container is written: id of the format, its options, whether losses are accepted.
fn plan(
    container: &Container,
    name: &str,
    format: Option<&str>,
    options: &[(String, String)],
    allow_loss: bool,
) -> Result<Plan, Error> {
    let target = Formats::builtin().target(name, format)?;
    let mut given = Options::default();
    options.iter().for_each(|(name, value)| given.set(name, value.clone()));
    Ok(target.plan(container, &given)?.accept_losses(allow_loss))
}

/// Writes a container to a file, and tells what became of its parts.
#[pyfunction]
pub(crate) fn write(
    file: &Bound<'_, File>,
    path: PathBuf,
    format: Option<&str>,
    options: Vec<(String, String)>,
    overwrite: bool,
    allow_loss: bool,
) -> PyResult<String> {
    let container = &file.get().container;
    let conversion = watched(file.py(), None, |progress| {
        let plan = plan(container, &path.to_string_lossy(), format, &options, allow_loss)?;
        let output = Output::new(&path).overwrite(overwrite);
        plan.write(output.clone(), progress)?;
        Conversion::new(&plan, &output, true)
    })?;
    json(&conversion)
}

/// The bytes of the file of this name that a container would become, and what became of its parts.
#[pyfunction]
pub(crate) fn to_bytes<'py>(
    file: &Bound<'py, File>,
    name: &str,
    format: Option<&str>,
    allow_loss: bool,
) -> PyResult<(Bound<'py, PyBytes>, String)> {
    let container = &file.get().container;
    let (bytes, conversion) = watched(file.py(), None, |progress| {
        let plan = plan(container, name, format, &[], allow_loss)?;
        let mut bytes = Vec::new();
        plan.write_to(&mut bytes, progress)?;
        Ok((bytes, Conversion::new(&plan, &Output::new(name), true)?))
    })?;
    Ok((PyBytes::new(file.py(), &bytes), json(&conversion)?))
}

fn element_type(name: &str) -> PyResult<DType> {
    let unknown = || PyValueError::new_err(format!("there is no element type {name:?}"));
    DType::from_name(name).ok_or_else(unknown)
}

fn value((key, kind, shape, bytes): Entry) -> PyResult<(String, Value)> {
    let wrong = || PyValueError::new_err(format!("{key:?} is not of the type {kind}"));
    let value = match kind.as_str() {
        "str" => Value::Text(String::from_utf8(bytes.to_vec()).map_err(|_| wrong())?),
        "bool" if shape.is_empty() => Value::Bool(bytes.first().is_some_and(|byte| *byte != 0)),
        "bitset" => {
            let count = shape.first().and_then(|count| u32::try_from(*count).ok());
            Value::Bits { count: count.ok_or_else(wrong)?, bytes: Bytes::owned(bytes.to_vec()) }
        }
        number => {
            let dtype = element_type(number)?;
            let count = shape.iter().try_fold(1u64, |n, dim| n.checked_mul(*dim));
            if count.and_then(|n| dtype.byte_len(n)) != Some(bytes.len() as u64) {
                return Err(wrong());
            }
            match shape.as_slice() {
                [] => Value::number(dtype, &bytes),
                _ => Value::Array(Array { dtype, shape, data: Bytes::owned(bytes.to_vec()) }),
            }
        }
    };
    Ok((key, value))
}

/// Values of one element type in another, as they are stored.
#[pyfunction]
pub(crate) fn encode(
    from: &str,
    to: &str,
    count: usize,
    bytes: &[u8],
) -> PyResult<Cow<'static, [u8]>> {
    let (from, to) = (element_type(from)?, element_type(to)?);
    if from.byte_len(count as u64) != Some(bytes.len() as u64) {
        return Err(PyValueError::new_err("there are not that many values"));
    }
    let mut out = Vec::new();
    convert(from, to, bytes, count, &mut out);
    Ok(out.into())
}
