//! Writing what Python has: arrays, values, words and records.

use crate::error::json;
use crate::watch::watched;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use std::borrow::Cow;
use std::path::PathBuf;
use weighbridge::codec::DType;
use weighbridge::codec::convert::convert;
use weighbridge::model::{Array, Value};
use weighbridge::source::Bytes;
use weighbridge::{Container, Conversion, Encoding, Formats, Options, Output, Tensor, View};

/// Name, type, shape and bytes; none of a tensor that is only declared.
type Values = (String, String, Vec<u64>, Option<PyBackedBytes>);

/// Key, type, shape and bytes. Texts are of type `str`; flags `bitset`, their number the shape.
type Entry = (String, String, Vec<u64>, PyBackedBytes);

/// Writes a file, and tells what became of its parts.
#[pyfunction]
#[pyo3(signature = (path, tensors, metadata, sizevars, words, records, format, options, overwrite, allow_loss))]
#[allow(clippy::too_many_arguments)]
pub(crate) fn save(
    py: Python<'_>,
    path: PathBuf,
    tensors: Vec<Values>,
    metadata: Vec<Entry>,
    sizevars: Vec<(String, u64)>,
    words: Option<Vec<String>>,
    records: Option<Vec<String>>,
    format: Option<&str>,
    options: Vec<(String, String)>,
    overwrite: bool,
    allow_loss: bool,
) -> PyResult<String> {
    let mut builder = Container::builder();
    for (name, dtype, shape, bytes) in tensors {
        let dtype = element_type(&dtype)?;
        builder = match bytes {
            Some(bytes) => builder.bytes(name, dtype, &shape, View::owned(bytes.to_vec())),
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
    let conversion = watched(py, None, |progress| {
        let mut container = builder.build()?;
        container.sizevars = sizevars;
        let target = Formats::builtin().target(&path.to_string_lossy(), format)?;
        let mut given = Options::default();
        options.iter().for_each(|(name, value)| given.set(name, value.clone()));
        let plan = target.plan(&container, &given)?.accept_losses(allow_loss);
        let output = Output::new(&path).overwrite(overwrite);
        plan.write(output.clone(), progress)?;
        Conversion::new(&plan, &output, true)
    })?;
    json(&conversion)
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
