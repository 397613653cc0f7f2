//! Memory mapping.
//!
//! A mapped file that another process cuts short raises SIGBUS when the missing pages are touched.
//! Library users decide for themselves what to do about it; the program installs the handler of
//! [`super::signal`], which turns the signal into an error message and exit code 4.

use super::file::Stamp;
use super::{Inner, Source};
use std::fs::File;
use std::sync::Arc;

/// The whole file mapped; `None` where that is not possible.
pub(super) fn map(file: &File, stamp: Stamp) -> Option<Source> {
    // SAFETY: the mapping is read-only and private to us. What Rust can't promise is that no other
    // process writes to the file meanwhile: changed bytes are read as whatever they are (every
    // parser bounds-checks what it reads, and re-reads nothing it relied on for memory safety), and
    // a file cut short raises SIGBUS, see above.
    let map = unsafe { memmap2::Mmap::map(file) };
    Some(Source(Arc::new(Inner::Mapped(map.ok()?, stamp))))
}
