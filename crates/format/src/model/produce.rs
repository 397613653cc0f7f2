//! Bytes that are made when they are needed.

use crate::Error;
use crate::wire::to_len;
use std::fmt::Debug;
use weighbridge_codec::parallel::*;

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

/// Makes blocks of about so many bytes on all cores, and passes them on in order. There are only some
/// at a time, which bounds the memory. `make` gets the number of a block, and one that was passed on
/// before or is empty.
pub(crate) fn blocks_in_order<B: Default + Send>(
    count: u64,
    bytes: u64,
    make: impl Fn(u64, &mut B) -> Result<(), Error> + Send + Sync,
    mut each: impl FnMut(&B) -> Result<(), Error>,
) -> Result<(), Error> {
    const BYTES: u64 = 8 << 20;
    let at_once = (BYTES / bytes.max(1)).clamp(1, 32);
    let mut blocks = Vec::new();
    blocks.resize_with(to_len(count.min(at_once)), B::default);
    for first in (0..count).step_by(to_len(at_once)) {
        let some = &mut blocks[..to_len(at_once.min(count - first))];
        let work = |(i, block): (usize, &mut [B])| make(first + i as u64, &mut block[0]);
        some.par_chunks_mut(1).enumerate().try_for_each(work)?;
        some.iter().try_for_each(&mut each)?;
    }
    Ok(())
}
