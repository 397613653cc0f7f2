//! What the vector versions have in common: they work on chunks of four blocks.

use super::BLOCK;

/// Blocks of a chunk.
pub(super) const CHUNK_BLOCKS: usize = 4;
/// Values of a chunk.
pub(super) const CHUNK_VALUES: usize = CHUNK_BLOCKS * BLOCK;

/// Calls the instance of a generic function for the bits of the row's codes.
macro_rules! by_bits {
    ($function:ident($row:expr $(, $argument:expr)*)) => {
        match $row.method.bits() {
            2 => $function::<2>($row $(, $argument)*),
            3 => $function::<3>($row $(, $argument)*),
            4 => $function::<4>($row $(, $argument)*),
            6 => $function::<6>($row $(, $argument)*),
            _ => $function::<8>($row $(, $argument)*),
        }
    };
}
pub(super) use by_bits;

/// The first `N` values of a slice, with zeros behind those of a shorter one.
#[inline]
pub(super) fn zero_padded<T: Copy + Default, const N: usize>(from: &[T]) -> [T; N] {
    from.first_chunk().copied().unwrap_or_else(|| {
        let mut out = [T::default(); N];
        out[..from.len()].copy_from_slice(from);
        out
    })
}
