//! Errors of the library as exceptions of the package.

use pyo3::prelude::*;

/// An error on its way to Python.
#[derive(Debug)]
pub(crate) struct Failure(weighbridge::Error);

impl From<weighbridge::Error> for Failure {
    fn from(error: weighbridge::Error) -> Failure {
        Failure(error)
    }
}

/// The classes are Python: they are also other exceptions, such as `FileNotFoundError`.
impl From<Failure> for PyErr {
    fn from(Failure(error): Failure) -> PyErr {
        Python::attach(|py| {
            let report = serde_json::to_string(&error.report()).unwrap_or_default();
            let made =
                py.import("weighbridge._errors").and_then(|m| m.call_method1("made_of", (report,)));
            match made {
                Ok(exception) => PyErr::from_value(exception),
                Err(other) => other,
            }
        })
    }
}

/// A report as the text of a JSON object.
pub(crate) fn json(value: &impl serde::Serialize) -> PyResult<String> {
    serde_json::to_string(value)
        .map_err(|error| pyo3::exceptions::PyValueError::new_err(error.to_string()))
}
