//! Four blocks at a time: what the vector versions have in common.

use super::BLOCK;

/// Blocks that are done at once.
pub(super) const BLOCKS: usize = 4;
/// Their values.
pub(super) const VALUES: usize = BLOCKS * BLOCK;

/// Calls the version of a function that is made for the row's bits.
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

/// The beginning of a slice; zeros behind one that is too short.
#[inline]
pub(super) fn filled_from<T: Copy + Default, const N: usize>(from: &[T]) -> [T; N] {
    from.first_chunk().copied().unwrap_or_else(|| {
        let mut out = [T::default(); N];
        out[..from.len()].copy_from_slice(from);
        out
    })
}
