//! Bytes that numpy and others can look at where they are.

use pyo3::exceptions::PyBufferError;
use pyo3::ffi;
use pyo3::prelude::*;
use std::ffi::{c_int, c_void};
use weighbridge::source::Bytes;

/// Bytes of a file that stays mapped as long as somebody looks at them, or bytes in memory. They are
/// read-only.
#[pyclass(frozen, module = "weighbridge._native")]
#[derive(Debug)]
pub(crate) struct Buffer(Bytes);

impl Buffer {
    pub(crate) fn new(bytes: Bytes) -> Buffer {
        Buffer(bytes)
    }

    /// Of numbers that were computed.
    pub(crate) fn of_floats(values: &[f32]) -> Buffer {
        Buffer(Bytes::owned(values.iter().flat_map(|v| v.to_le_bytes()).collect()))
    }
}

#[pymethods]
impl Buffer {
    fn __len__(&self) -> usize {
        self.0.len()
    }

    /// # Safety
    /// Called by the interpreter with a view to fill.
    #[allow(unsafe_code)]
    unsafe fn __getbuffer__(
        slf: Bound<'_, Self>,
        view: *mut ffi::Py_buffer,
        flags: c_int,
    ) -> PyResult<()> {
        if flags & ffi::PyBUF_WRITABLE == ffi::PyBUF_WRITABLE {
            return Err(PyBufferError::new_err("the bytes are read-only"));
        }
        let bytes: &[u8] = &slf.get().0;
        let (start, length) = (bytes.as_ptr().cast_mut().cast::<c_void>(), bytes.len());
        let length = isize::try_from(length)
            .map_err(|_| PyBufferError::new_err("more bytes than a buffer can have"))?;
        // SAFETY: the bytes are immutable and live as long as this object, which the view keeps a
        // reference to; the interpreter gives a view that may be filled, and read-only was asked for.
        let failed = unsafe { ffi::PyBuffer_FillInfo(view, slf.as_ptr(), start, length, 1, flags) };
        match failed {
            0 => Ok(()),
            _ => Err(PyErr::fetch(slf.py())),
        }
    }
}
