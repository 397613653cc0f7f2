//! The program, for the entry point of the package.

use pyo3::prelude::*;
use std::ffi::OsString;

/// Runs a command line, the program's name first; the number that the process should end with. Signals
/// end the process and remove unfinished files, so it is for processes that do nothing else.
#[pyfunction]
pub(crate) fn main(py: Python<'_>, arguments: Vec<OsString>) -> u8 {
    py.detach(|| {
        weighbridge::source::exit_cleanly_on_signals();
        weighbridge_cli::run(arguments).number()
    })
}
