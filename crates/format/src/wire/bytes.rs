//! Checked sizes, and little-endian fields for writers.

/// The next multiple of `alignment`; `None` on overflow.
pub fn align_up(value: u64, alignment: u64) -> Option<u64> {
    value.div_ceil(alignment).checked_mul(alignment)
}

/// Number of elements of a shape; `None` when it is more than a `u64` can say.
pub fn numel(shape: &[u64]) -> Option<u64> {
    // A zero anywhere makes the product zero, whatever the other dimensions would overflow to.
    if shape.contains(&0) {
        return Some(0);
    }
    shape.iter().try_fold(1u64, |n, &d| n.checked_mul(d))
}

/// A length that is known to lie inside memory, as an index.
pub fn to_len(n: u64) -> usize {
    usize::try_from(n).unwrap_or(usize::MAX)
}

/// A byte order mark, which some editors begin a text with. It is no part of the text.
pub const MARK: &[u8] = b"\xEF\xBB\xBF";

/// A text without the byte order mark that it may begin with.
pub fn without_mark(text: &[u8]) -> &[u8] {
    text.strip_prefix(MARK).unwrap_or(text)
}

/// 32-bit FNV-1a.
pub fn fnv1a32(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0x811C_9DC5, |h, &b| (h ^ u32::from(b)).wrapping_mul(0x0100_0193))
}

/// Adds a number of 16 bits, little-endian.
pub fn put_u16(out: &mut Vec<u8>, v: u16) {
    out.extend_from_slice(&v.to_le_bytes());
}

/// Adds a number of 32 bits, little-endian.
pub fn put_u32(out: &mut Vec<u8>, v: u32) {
    out.extend_from_slice(&v.to_le_bytes());
}

/// Adds a number of 64 bits, little-endian.
pub fn put_u64(out: &mut Vec<u8>, v: u64) {
    out.extend_from_slice(&v.to_le_bytes());
}
