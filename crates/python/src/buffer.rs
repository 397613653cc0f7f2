//! Bytes that numpy and others can look at where they are.

use pyo3::buffer::PyBuffer;
use pyo3::exceptions::PyBufferError;
use pyo3::ffi;
use pyo3::prelude::*;
use std::ffi::{c_int, c_void};
use std::io;
use weighbridge::source::{Bytes, ReadRange};

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

/// The bytes of somebody's array, read where they are.
#[derive(Debug)]
pub(crate) struct Lent(PyBuffer<u8>);

impl Lent {
    pub(crate) fn new(bytes: PyBuffer<u8>) -> Lent {
        Lent(bytes)
    }
}

impl ReadRange for Lent {
    fn len(&self) -> u64 {
        self.0.len_bytes() as u64
    }

    #[allow(unsafe_code)]
    fn read_at(&self, offset: u64, out: &mut [u8]) -> io::Result<usize> {
        // Attached, so that no Python changes the array meanwhile.
        Python::attach(|_| {
            let all = self.0.as_slice_ptr().ok_or(io::ErrorKind::InvalidData)?;
            let start = usize::try_from(offset).unwrap_or(usize::MAX).min(all.len());
            let count = out.len().min(all.len() - start);
            // SAFETY: the exporter keeps the bytes in place as long as there is the buffer; the range
            // lies within them, and `out` is memory of ours. They are copied as raw bytes, of which any
            // are good.
            unsafe {
                let from = all.cast::<u8>().as_ptr().add(start);
                std::ptr::copy_nonoverlapping(from, out.as_mut_ptr(), count);
            }
            Ok(count)
        })
    }

    fn is_cheap(&self) -> bool {
        true
    }
}
