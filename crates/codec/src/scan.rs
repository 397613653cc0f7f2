//! Looking for values that no finished weights should have.

use crate::element::read;
use crate::{Class, DType};

/// Index of the first NaN or infinity among `count` elements.
pub fn first_non_finite(dtype: DType, bytes: &[u8], count: usize) -> Option<usize> {
    if dtype.class() != Class::Float && dtype.class() != Class::Complex {
        return None;
    }
    // An exponent of all ones is the test for both; done on whole blocks so that it vectorises,
    // and only a block that has one is searched.
    let block = 1024;
    let suspicious = |raw: &[u8]| match dtype {
        DType::F32 | DType::C64 => any_f32_special(raw),
        DType::F16 => any_u16_masked(raw, 0x7C00),
        DType::BF16 => any_u16_masked(raw, 0x7F80),
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

fn any_f32_special(raw: &[u8]) -> bool {
    const MASK: u32 = 0x7F80_0000;
    raw.chunks_exact(4)
        .fold(false, |any, b| any | (u32::from_le_bytes([b[0], b[1], b[2], b[3]]) & MASK == MASK))
}

fn any_u16_masked(raw: &[u8], mask: u16) -> bool {
    raw.chunks_exact(2)
        .fold(false, |any, b| any | (u16::from_le_bytes([b[0], b[1]]) & mask == mask))
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
}
