//! Looking for values that no finished weights should have.

use crate::element::read;
use crate::simd::{Eight, Level, dispatch};
use crate::{Class, DType};

/// Index of the first NaN or infinity among `count` elements; `None` for types that have neither.
///
/// # Panics
///
/// May panic when `bytes` holds fewer than `count` elements of a float or complex type.
pub fn first_non_finite(dtype: DType, bytes: &[u8], count: usize) -> Option<usize> {
    if dtype.class() != Class::Float && dtype.class() != Class::Complex {
        return None;
    }
    // Blocks are tested for having one, which vectorises; only a block that has one is searched.
    let block = 1024;
    let level = Level::best();
    let suspicious = |raw: &[u8]| match dtype {
        DType::F32 | DType::C64 => any_f32_special(level, raw),
        DType::F16 => any_u16_special(raw, 0x7C00),
        DType::BF16 => any_u16_special(raw, 0x7F80),
        _ => true,
    };
    let mut start = 0;
    while start < count {
        let n = block.min(count - start);
        let bits = usize::try_from(dtype.bits()).unwrap_or(64);
        let (from, to) = (start * bits / 8, (start + n) * bits / 8);
        if suspicious(&bytes[from..to]) {
            let bad = |i: &usize| match read(dtype, bytes, *i) {
                crate::Scalar::Complex(re, im) => !(re.is_finite() && im.is_finite()),
                value => !value.to_f64().is_finite(),
            };
            if let Some(i) = (start..start + n).find(bad) {
                return Some(i);
            }
        }
        start += n;
    }
    None
}

/// Whether none of some values is NaN or infinite.
pub fn all_finite(values: &[f32]) -> bool {
    !any_special_value(Level::best(), values)
}

dispatch! {
    /// Whether one of some values is NaN or infinite.
    fn any_special_value(values: &[f32]) -> bool = eight any_special_value_with;
    /// Whether one of some f32 is NaN or infinite.
    fn any_f32_special(raw: &[u8]) -> bool = eight any_f32_special_with;
}

/// Adding one to the exponent overflows into the sign bit for NaN and infinity (all ones), and for
/// no other value: the sums of a block are or-ed together and tested once. Compilers make vectors of
/// this themselves, once they may use the processor's instructions.
#[inline(always)]
fn any_special(bits: impl Iterator<Item = u32>) -> bool {
    bits.fold(0, |all, bits| all | ((bits & 0x7F80_0000) + 0x0080_0000)) >> 31 != 0
}

#[inline(always)]
fn any_special_value_with<V: Eight>(_: V::Token, values: &[f32]) -> bool {
    any_special(values.iter().map(|value| value.to_bits()))
}

#[inline(always)]
fn any_f32_special_with<V: Eight>(_: V::Token, raw: &[u8]) -> bool {
    any_special(raw.chunks_exact(4).map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]])))
}

/// The same for floats of 16 bits with this mask of the exponent.
pub(crate) fn any_u16_special(raw: &[u8], exponent_mask: u16) -> bool {
    let one = exponent_mask & exponent_mask.wrapping_neg();
    let incremented_exponent = |b: &[u8]| (u16::from_le_bytes([b[0], b[1]]) & exponent_mask) + one;
    raw.chunks_exact(2).fold(0, |all, b| all | incremented_exponent(b)) >> 15 != 0
}

/// Index of the first byte that is not zero.
pub fn first_non_zero(bytes: &[u8]) -> Option<usize> {
    bytes.iter().position(|&b| b != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_first_in_every_place_and_type() {
        for dtype in [DType::F64, DType::F32, DType::F16, DType::BF16, DType::F8E5M2] {
            for place in [0, 1, 1023, 1024, 2500] {
                let mut bytes = vec![0; dtype.byte_len(3000).unwrap() as usize];
                assert_eq!(first_non_finite(dtype, &bytes, 3000), None);
                crate::element::write(dtype, &mut bytes, place, crate::Scalar::Float(f64::NAN));
                assert_eq!(first_non_finite(dtype, &bytes, 3000), Some(place));
                crate::element::write(
                    dtype,
                    &mut bytes,
                    place,
                    crate::Scalar::Float(f64::NEG_INFINITY),
                );
            }
        }
        assert_eq!(first_non_finite(DType::I8, &[0xFF; 8], 8), None);
    }

    /// Every code of both half types, and the edges of f32, agree with the definition.
    #[test]
    fn special_codes_are_those_of_the_definition() {
        for dtype in [DType::F16, DType::BF16] {
            for code in 0..=u16::MAX {
                let special = !read(dtype, &code.to_le_bytes(), 0).to_f64().is_finite();
                let found = first_non_finite(dtype, &code.to_le_bytes(), 1);
                assert_eq!(found.is_some(), special, "{dtype} {code:#x}");
            }
        }
        for value in [f32::MAX, f32::MIN, f32::INFINITY, f32::NEG_INFINITY, -f32::NAN, -0.0] {
            let found = first_non_finite(DType::F32, &value.to_le_bytes(), 1);
            assert_eq!(found.is_some(), !value.is_finite(), "{value}");
        }
    }

    /// For every length, alignment and place.
    #[test]
    fn every_level_finds_the_same() {
        for length in 0..70 {
            for shift in 0..4 {
                for place in 0..=length {
                    let mut bytes = vec![0x7F; shift + 4 * length];
                    bytes[shift..].chunks_exact_mut(4).for_each(|b| b[2] = 0x70);
                    if place < length {
                        bytes[shift + 4 * place..][..4].copy_from_slice(&f32::NAN.to_le_bytes());
                    }
                    let raw = &bytes[shift..];
                    let values: Vec<f32> =
                        raw.as_chunks().0.iter().map(|b| f32::from_le_bytes(*b)).collect();
                    for level in Level::available() {
                        assert_eq!(any_f32_special(level, raw), place < length, "{level}");
                        assert_eq!(any_special_value(level, &values), place < length, "{level}");
                    }
                }
            }
        }
    }
}
