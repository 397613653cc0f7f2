//! The native half of the Python package: containers, reports, encoders, words and indexes, as thin as
//! they can be. What arrays, mappings and classes of other packages look like is Python, in
//! python/weighbridge; what both and others need is the library.

mod buffer;
mod encoder;
mod error;
mod file;
mod fork;
mod index;
mod program;
mod report;
mod reranker;
mod save;
mod watch;
mod words;

use pyo3::prelude::*;

#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<buffer::Buffer>()?;
    module.add_class::<file::File>()?;
    module.add_class::<encoder::Encoder>()?;
    module.add_function(wrap_pyfunction!(encoder::lacks_tokenizer, module)?)?;
    module.add_function(wrap_pyfunction!(encoder::quantize_vectors, module)?)?;
    module.add_class::<reranker::Reranker>()?;
    module.add_class::<words::Words>()?;
    module.add_class::<index::Index>()?;
    module.add_function(wrap_pyfunction!(file::open, module)?)?;
    module.add_function(wrap_pyfunction!(file::open_bytes, module)?)?;
    module.add_function(wrap_pyfunction!(save::build, module)?)?;
    module.add_function(wrap_pyfunction!(save::write, module)?)?;
    module.add_function(wrap_pyfunction!(save::to_bytes, module)?)?;
    module.add_function(wrap_pyfunction!(save::encode, module)?)?;
    module.add_function(wrap_pyfunction!(report::verify, module)?)?;
    module.add_function(wrap_pyfunction!(report::diff, module)?)?;
    module.add_function(wrap_pyfunction!(report::convert, module)?)?;
    module.add_function(wrap_pyfunction!(report::quantize, module)?)?;
    module.add_function(wrap_pyfunction!(report::recall, module)?)?;
    module.add_function(wrap_pyfunction!(fork::forked, module)?)?;
    module.add_function(wrap_pyfunction!(program::main, module)?)?;
    Ok(())
}
