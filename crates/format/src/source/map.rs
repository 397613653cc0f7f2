//! Memory mapping.
//!
//! A mapped file that another process cuts short raises SIGBUS when the missing pages are touched.
//! Library users decide for themselves what to do about it; the program installs the handler of
//! [`super::signal`], which turns the signal into an error message and exit code 4.

use super::file::Stamp;
use super::{Inner, Source};
use crate::Error;
use std::fs::File;
use std::sync::{Arc, OnceLock};

/// A file that is mapped.
#[derive(Debug)]
pub(super) struct Mapped {
    map: memmap2::Mmap,
    stamp: Stamp,
    /// A copy of the first bytes, which are parsed.
    pub head: OnceLock<Vec<u8>>,
}

impl Mapped {
    pub(super) fn bytes(&self) -> &[u8] {
        &self.map
    }

    pub(super) fn check_unchanged(&self) -> Result<(), Error> {
        self.stamp.check()
    }
}

/// The whole file mapped; `None` where that is not possible.
pub(super) fn map(file: &File, stamp: Stamp) -> Option<Source> {
    // SAFETY: the mapping is read-only and private to us. What Rust can't promise is that no other
    // process writes to the file meanwhile: what is parsed is copied first (headers, documents,
    // lines, words), values are read as whatever they are then, and a file cut short raises SIGBUS,
    // see above.
    let map = unsafe { memmap2::Mmap::map(file) }.ok()?;
    Some(Source(Arc::new(Inner::Mapped(Mapped { map, stamp, head: OnceLock::new() }))))
}
