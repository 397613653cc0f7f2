//! Single values: reading and writing element `index` of a buffer.

use crate::{DType, minifloat};
use half::{bf16, f16};

/// One value of any element type, exactly.
#[derive(Clone, Copy, Debug)]
pub enum Scalar {
    /// A value of a signed or ternary type.
    Int(i64),
    /// A value of an unsigned type, a bool (0 or 1), or eight flags.
    UInt(u64),
    /// A value of a float type of any width.
    Float(f64),
    /// The real and the imaginary part.
    Complex(f32, f32),
}

/// As a number; a complex one with both parts, such as `1-2i`.
impl std::fmt::Display for Scalar {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Scalar::Int(v) => write!(f, "{v}"),
            Scalar::UInt(v) => write!(f, "{v}"),
            Scalar::Float(v) => write!(f, "{v}"),
            // NaN has no sign of its own.
            Scalar::Complex(re, im) if im.is_nan() => write!(f, "{re}+NaNi"),
            Scalar::Complex(re, im) => write!(f, "{re}{im:+}i"),
        }
    }
}

impl Scalar {
    /// As a double: exact but for 64-bit integers beyond 2^53. A complex number gives its real part.
    #[allow(clippy::cast_precision_loss)]
    pub fn to_f64(self) -> f64 {
        match self {
            Scalar::Int(v) => v as f64,
            Scalar::UInt(v) => v as f64,
            Scalar::Float(v) => v,
            Scalar::Complex(re, _) => f64::from(re),
        }
    }

    /// The same number, whatever holds it. Any NaN is the same as any other; -0 and 0 differ.
    pub fn same(self, other: Scalar) -> bool {
        match (self, other) {
            (Scalar::Complex(a, b), Scalar::Complex(c, d)) => {
                a.to_bits() == c.to_bits() && b.to_bits() == d.to_bits()
            }
            (Scalar::Complex(..), _) | (_, Scalar::Complex(..)) => false,
            (Scalar::Float(a), Scalar::Float(b)) => {
                a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan())
            }
            (Scalar::Float(f), n) | (n, Scalar::Float(f)) => {
                f.fract() == 0.0 && n.to_f64() == f && n.to_i128() == Some(float_to_i128(f))
            }
            (a, b) => a.to_i128() == b.to_i128(),
        }
    }

    /// As a whole number, when it is one.
    pub fn to_i128(self) -> Option<i128> {
        match self {
            Scalar::Int(v) => Some(i128::from(v)),
            Scalar::UInt(v) => Some(i128::from(v)),
            Scalar::Float(v) if v.fract() == 0.0 => Some(float_to_i128(v)),
            _ => None,
        }
    }

    /// Rounded to the nearest whole number within the bounds; NaN gives 0.
    fn clamp_to(self, low: i128, high: i128) -> i128 {
        match self {
            Scalar::Float(v) => float_to_i128(v.round_ties_even()).clamp(low, high),
            other => other.to_i128().unwrap_or(0).clamp(low, high),
        }
    }
}

/// `as` saturates and turns NaN into 0, which is what the callers want.
#[allow(clippy::cast_possible_truncation)]
fn float_to_i128(v: f64) -> i128 {
    v as i128
}

/// The value of element `index`.
///
/// # Panics
///
/// When `bytes` ends before that element does.
pub fn read(dtype: DType, bytes: &[u8], index: usize) -> Scalar {
    macro_rules! le {
        ($t:ty) => {{
            let size = size_of::<$t>();
            let mut raw = [0; size_of::<$t>()];
            raw.copy_from_slice(&bytes[index * size..][..size]);
            <$t>::from_le_bytes(raw)
        }};
    }
    match dtype {
        DType::F64 => Scalar::Float(le!(f64)),
        DType::F32 => Scalar::Float(f64::from(le!(f32))),
        DType::F16 => Scalar::Float(f16::from_bits(le!(u16)).to_f64()),
        DType::BF16 => Scalar::Float(bf16::from_bits(le!(u16)).to_f64()),
        DType::C64 => {
            let raw = le!(u64).to_le_bytes();
            let part =
                |at: usize| f32::from_le_bytes([raw[at], raw[at + 1], raw[at + 2], raw[at + 3]]);
            Scalar::Complex(part(0), part(4))
        }
        DType::I64 => Scalar::Int(le!(i64)),
        DType::I32 => Scalar::Int(i64::from(le!(i32))),
        DType::I16 => Scalar::Int(i64::from(le!(i16))),
        DType::I8 => Scalar::Int(i64::from(le!(i8))),
        DType::U64 => Scalar::UInt(le!(u64)),
        DType::U32 => Scalar::UInt(u64::from(le!(u32))),
        DType::U16 => Scalar::UInt(u64::from(le!(u16))),
        DType::U8 | DType::Bitset => Scalar::UInt(u64::from(le!(u8))),
        DType::Bool => Scalar::UInt(u64::from(le!(u8) != 0)),
        DType::I4 | DType::I2 | DType::I1 | DType::T2 => {
            let width = narrow_bits(dtype);
            let code = packed(bytes, index, width);
            // Shift the sign bit to the top and back, so that it fills the upper bits.
            let shift = 8 - width;
            Scalar::Int(i64::from((code << shift).cast_signed() >> shift))
        }
        DType::T1 => Scalar::Int(if packed(bytes, index, 1) == 0 { -1 } else { 1 }),
        DType::U4 | DType::U2 | DType::U1 => {
            Scalar::UInt(u64::from(packed(bytes, index, narrow_bits(dtype))))
        }
        DType::F8E5M2
        | DType::F8E4M3
        | DType::F8E5M2Fnuz
        | DType::F8E4M3Fnuz
        | DType::F8E8M0
        | DType::F6E2M3
        | DType::F6E3M2
        | DType::F4E2M1 => {
            let code = packed(bytes, index, narrow_bits(dtype));
            Scalar::Float(minifloat::decode(dtype, code).unwrap_or(f64::NAN))
        }
    }
}

/// Stores a value as element `index`, rounded to nearest even and saturated where it must be.
/// Packed types need a buffer that was zero before.
///
/// # Panics
///
/// When `bytes` ends before that element does.
#[allow(clippy::cast_possible_truncation)]
pub fn write(dtype: DType, bytes: &mut [u8], index: usize, value: Scalar) {
    macro_rules! le {
        ($value:expr) => {{
            let raw = $value.to_le_bytes();
            bytes[index * raw.len()..][..raw.len()].copy_from_slice(&raw);
        }};
    }
    macro_rules! int {
        ($t:ty) => {
            le!(value.clamp_to(i128::from(<$t>::MIN), i128::from(<$t>::MAX)) as $t)
        };
    }
    match dtype {
        DType::F64 => le!(value.to_f64()),
        DType::F32 => le!(value.to_f64() as f32),
        DType::F16 => le!(f16::from_f64(value.to_f64()).to_bits()),
        DType::BF16 => le!(bf16::from_f64(value.to_f64()).to_bits()),
        DType::C64 => {
            let (re, im) = match value {
                Scalar::Complex(re, im) => (re, im),
                other => (other.to_f64() as f32, 0.0),
            };
            le!((u64::from(im.to_bits()) << 32 | u64::from(re.to_bits())));
        }
        DType::I64 => int!(i64),
        DType::I32 => int!(i32),
        DType::I16 => int!(i16),
        DType::I8 => int!(i8),
        DType::U64 => int!(u64),
        DType::U32 => int!(u32),
        DType::U16 => int!(u16),
        DType::U8 | DType::Bitset => int!(u8),
        DType::Bool => le!(u8::from(value.to_f64() != 0.0)),
        DType::I4 | DType::I2 | DType::I1 | DType::T2 => {
            let width = narrow_bits(dtype);
            let half = 1i128 << (width - 1);
            let lowest = if dtype == DType::T2 { -1 } else { -half };
            let code = value.clamp_to(lowest, half - 1) as i8;
            set_packed(bytes, index, width, code.cast_unsigned());
        }
        DType::T1 => set_packed(bytes, index, 1, u8::from(value.to_f64() > 0.0)),
        DType::U4 | DType::U2 | DType::U1 => {
            let width = narrow_bits(dtype);
            let code = value.clamp_to(0, (1 << width) - 1) as u8;
            set_packed(bytes, index, width, code);
        }
        DType::F8E5M2
        | DType::F8E4M3
        | DType::F8E5M2Fnuz
        | DType::F8E4M3Fnuz
        | DType::F8E8M0
        | DType::F6E2M3
        | DType::F6E3M2
        | DType::F4E2M1 => {
            let code = minifloat::encode(dtype, value.to_f64()).unwrap_or(0);
            set_packed(bytes, index, narrow_bits(dtype), code);
        }
    }
}

/// Width of a type of at most eight bits.
fn narrow_bits(dtype: DType) -> usize {
    usize::try_from(dtype.bits()).unwrap_or(8)
}

/// Code `index` of a stream of `width`-bit codes, LSB first.
fn packed(bytes: &[u8], index: usize, width: usize) -> u8 {
    let bit = index * width;
    let low = u16::from(bytes[bit / 8]);
    let high = u16::from(bytes.get(bit / 8 + 1).copied().unwrap_or(0));
    let word = (low | high << 8) >> (bit % 8);
    (word & ((1 << width) - 1)).to_le_bytes()[0]
}

/// Stores code `index` of a stream of `width`-bit codes, whose bits must be zero.
fn set_packed(bytes: &mut [u8], index: usize, width: usize, code: u8) {
    let bit = index * width;
    let word = (u16::from(code) & ((1 << width) - 1)) << (bit % 8);
    let [low, high] = word.to_le_bytes();
    bytes[bit / 8] |= low;
    if high != 0 {
        bytes[bit / 8 + 1] |= high;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packed_values_survive_in_every_position() {
        for dtype in DType::ALL.iter().copied().filter(|d| d.is_packed()) {
            let count = 16;
            let codes = 1usize << dtype.bits();
            let mut source = vec![0; 16];
            let mut bytes = vec![0; 16];
            for i in 0..count {
                // T2 has no use for its fourth code.
                let code = if dtype == DType::T2 { [0, 1, 3][i % 3] } else { (i * 5) % codes };
                set_packed(&mut source, i, dtype.bits() as usize, code as u8);
            }
            for i in 0..count {
                write(dtype, &mut bytes, i, read(dtype, &source, i));
            }
            assert_eq!(bytes, source, "{dtype}");
        }
    }

    #[test]
    fn packing_is_lsb_first() {
        let bytes = [0b1110_0100];
        let values: Vec<_> = (0..4).map(|i| read(DType::I2, &bytes, i).to_f64()).collect();
        assert_eq!(values, [0.0, 1.0, -2.0, -1.0]);
        let values: Vec<_> = (0..4).map(|i| read(DType::T1, &bytes, i).to_f64()).collect();
        assert_eq!(values, [-1.0, -1.0, 1.0, -1.0]);
    }

    #[test]
    fn integers_saturate() {
        let mut bytes = [0; 8];
        write(DType::I8, &mut bytes, 0, Scalar::Float(1e30));
        assert_eq!(bytes[0], 127);
        write(DType::U8, &mut bytes, 0, Scalar::Int(-5));
        assert_eq!(bytes[0], 0);
        write(DType::I64, &mut bytes, 0, Scalar::UInt(u64::MAX));
        assert_eq!(read(DType::I64, &bytes, 0).to_i128(), Some(i128::from(i64::MAX)));
    }
}
