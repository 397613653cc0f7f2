//! Bytes that are made when they are needed.

use crate::Error;
use std::fmt::Debug;

/// Something that makes bytes while they are written, in bounded blocks.
pub trait Produce: Debug + Send + Sync {
    /// Passes all bytes to `out`, in order. As many as were planned, or the write fails.
    ///
    /// # Errors
    /// Those of `out`, and what keeps the bytes from being made.
    fn produce(&self, out: &mut dyn FnMut(&[u8]) -> Result<(), Error>) -> Result<(), Error>;

    /// Making the bytes takes so long that it is worth doing it while others are written.
    fn is_work(&self) -> bool {
        true
    }
}
