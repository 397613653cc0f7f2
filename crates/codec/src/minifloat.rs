//! Floats of eight bits and fewer: decoding by definition, encoding rounded to nearest even.

use crate::DType;

/// What the codes with all exponent bits set mean.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Specials {
    /// As in IEEE 754: infinity and NaN.
    Ieee,
    /// Only the all-ones code is NaN; nothing is infinite.
    OneNan,
    /// Negative zero is NaN; nothing is infinite.
    NegativeZeroNan,
    /// Every code is a number.
    None,
}

/// Field widths, exponent bias and special codes of a small float.
#[derive(Clone, Copy)]
struct Shape {
    exponent_bits: u32,
    mantissa_bits: u32,
    bias: i32,
    specials: Specials,
}

fn shape(dtype: DType) -> Option<Shape> {
    let (exponent_bits, mantissa_bits, bias, specials) = match dtype {
        DType::F8E5M2 => (5, 2, 15, Specials::Ieee),
        DType::F8E4M3 => (4, 3, 7, Specials::OneNan),
        DType::F8E5M2Fnuz => (5, 2, 16, Specials::NegativeZeroNan),
        DType::F8E4M3Fnuz => (4, 3, 8, Specials::NegativeZeroNan),
        DType::F6E2M3 => (2, 3, 1, Specials::None),
        DType::F6E3M2 => (3, 2, 3, Specials::None),
        DType::F4E2M1 => (2, 1, 1, Specials::None),
        _ => return None,
    };
    Some(Shape { exponent_bits, mantissa_bits, bias, specials })
}

/// The value of a code; `None` for types that are not floats of eight bits or fewer.
pub fn decode(dtype: DType, code: u8) -> Option<f64> {
    if dtype == DType::F8E8M0 {
        return Some(if code == 0xFF { f64::NAN } else { 2f64.powi(i32::from(code) - 127) });
    }
    let s = shape(dtype)?;
    let sign_bit = 1u8 << (s.exponent_bits + s.mantissa_bits);
    let negative = code & sign_bit != 0;
    let magnitude = u32::from(code & (sign_bit - 1));
    let exponent = magnitude >> s.mantissa_bits;
    let mantissa = magnitude & ((1 << s.mantissa_bits) - 1);
    let top = (1 << s.exponent_bits) - 1;
    let special = match s.specials {
        Specials::Ieee if exponent == top && mantissa == 0 => Some(f64::INFINITY),
        Specials::Ieee if exponent == top => Some(f64::NAN),
        Specials::OneNan if magnitude == u32::from(sign_bit) - 1 => Some(f64::NAN),
        Specials::NegativeZeroNan if negative && magnitude == 0 => Some(f64::NAN),
        _ => None,
    };
    let scale = 2f64.powi(-s.bias - s.mantissa_bits.cast_signed());
    let value = special.unwrap_or_else(|| {
        if exponent == 0 {
            f64::from(mantissa) * 2.0 * scale
        } else {
            f64::from(mantissa | 1 << s.mantissa_bits) * scale * 2f64.powi(exponent.cast_signed())
        }
    });
    Some(if negative && !value.is_nan() { -value } else { value })
}

/// The code nearest to a value, ties to even; NaN stays NaN where the type has one.
///
/// Beyond the largest value: infinity where the type has it, NaN for the types with only NaN,
/// else the largest value. `None` for types that are not floats of eight bits or fewer.
pub fn encode(dtype: DType, value: f64) -> Option<u8> {
    if dtype == DType::F8E8M0 {
        return Some(encode_power_of_two(value));
    }
    let s = shape(dtype)?;
    let sign_bit = 1u8 << (s.exponent_bits + s.mantissa_bits);
    let sign = if value.is_sign_negative() { sign_bit } else { 0 };
    let codes = sign_bit - 1;
    let nan = match s.specials {
        Specials::Ieee => Some(codes | sign),
        Specials::OneNan => Some(codes | sign),
        Specials::NegativeZeroNan => Some(sign_bit),
        Specials::None => None,
    };
    if value.is_nan() {
        return Some(nan.unwrap_or(0));
    }
    // The magnitudes rise with their codes, so that the neighbours of a value are found by
    // bisection, and the carry into the exponent needs no care of its own.
    let largest = match s.specials {
        Specials::Ieee => codes - (1 << s.mantissa_bits),
        Specials::OneNan => codes - 1,
        Specials::NegativeZeroNan | Specials::None => codes,
    };
    let magnitude = value.abs();
    let at = |code: u8| decode(dtype, code).unwrap_or(f64::NAN);
    let (mut low, mut high) = (0u8, largest);
    while low < high {
        let middle = low + (high - low).div_ceil(2);
        if at(middle) <= magnitude {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    let code = if low == largest {
        let step = at(largest) - at(largest - 1);
        if magnitude < at(largest) + step / 2.0 {
            largest
        } else {
            match s.specials {
                Specials::Ieee => codes & !((1 << s.mantissa_bits) - 1),
                Specials::OneNan => codes,
                Specials::NegativeZeroNan => return Some(sign_bit),
                Specials::None => largest,
            }
        }
    } else {
        let (below, above) = (magnitude - at(low), at(low + 1) - magnitude);
        if below < above || (below == above && low.is_multiple_of(2)) { low } else { low + 1 }
    };
    if code == 0 && s.specials == Specials::NegativeZeroNan {
        return Some(0);
    }
    Some(code | sign)
}

fn encode_power_of_two(value: f64) -> u8 {
    if value.is_nan() || value < 0.0 {
        return 0xFF;
    }
    (0..=254u8)
        .min_by(|a, b| {
            let distance = |code: u8| (2f64.powi(i32::from(code) - 127) - value).abs();
            distance(*a).total_cmp(&distance(*b))
        })
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: &[DType] = &[
        DType::F8E5M2,
        DType::F8E4M3,
        DType::F8E5M2Fnuz,
        DType::F8E4M3Fnuz,
        DType::F8E8M0,
        DType::F6E2M3,
        DType::F6E3M2,
        DType::F4E2M1,
    ];

    #[test]
    fn every_code_survives() {
        for &dtype in SMALL {
            for code in 0..=u8::try_from((1u32 << dtype.bits()) - 1).unwrap() {
                let value = decode(dtype, code).unwrap();
                let back = encode(dtype, value).unwrap();
                if value.is_nan() {
                    assert!(decode(dtype, back).unwrap().is_nan());
                } else {
                    assert_eq!(back, code, "{dtype} {code:#x} = {value}");
                }
            }
        }
    }

    /// E5M2 is an f16 cut in half: the crate `half` gives the expected values.
    #[test]
    fn e5m2_agrees_with_half() {
        for code in 0..=255u8 {
            let expected = half::f16::from_bits(u16::from(code) << 8).to_f64();
            let value = decode(DType::F8E5M2, code).unwrap();
            assert!(value == expected || (value.is_nan() && expected.is_nan()));
        }
    }

    /// Between any two neighbours: below the middle goes down, above goes up, the middle to even.
    #[test]
    fn rounds_to_nearest_even_at_every_boundary() {
        let mut boundaries = 0;
        for &dtype in SMALL.iter().filter(|d| **d != DType::F8E8M0) {
            let sign = 1u8 << (dtype.bits() - 1);
            for code in 0..sign - 1 {
                let (low, high) = (decode(dtype, code).unwrap(), decode(dtype, code + 1).unwrap());
                if !high.is_finite() {
                    break;
                }
                let middle = f64::midpoint(low, high);
                let even = code + code % 2;
                // A type without a negative zero rounds to the one zero it has.
                let one_zero = matches!(dtype, DType::F8E5M2Fnuz | DType::F8E4M3Fnuz) && even == 0;
                let negative = if one_zero { 0 } else { even | sign };
                for (value, expected) in [
                    (middle, even),
                    (middle.next_down(), code),
                    (middle.next_up(), code + 1),
                    (-middle, negative),
                ] {
                    assert_eq!(encode(dtype, value), Some(expected), "{dtype} {value:e}");
                }
                boundaries += 1;
            }
        }
        assert_eq!(boundaries, 123 + 126 + 127 + 127 + 31 + 31 + 7);
        // 1.96875 must carry into the exponent, and the top of the range become infinity.
        assert_eq!(encode(DType::F8E5M2, 1.96875), Some(0x40));
        assert_eq!(encode(DType::F8E5M2, 61439.9), Some(0x7B));
        assert_eq!(encode(DType::F8E5M2, 61440.0), Some(0x7C));
        assert_eq!(encode(DType::F8E4M3, 463.9), Some(0x7E));
        assert_eq!(encode(DType::F8E4M3, 464.1), Some(0x7F));
    }
}
