//! Whole numbers with a scale.

use weighbridge_codec::simd::{Eight, Level, dispatch};
use weighbridge_codec::{DType, element};

/// Integer codes and the rule that makes values of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scaled {
    /// The type of the codes.
    pub codes: DType,
    /// How they become values.
    pub scaling: Scaling,
}

/// How codes become values.
#[derive(Clone, Debug)]
pub enum Scaling {
    /// `value = code / divisor`. Not the same as a scale of `1 / divisor` in the last bit.
    Divisor(f32),
    /// `value = scale * (code - zero_point)`, with one scale, or one for each index of an axis.
    Affine {
        /// The axis that the scales belong to; none if there is one scale.
        axis: Option<usize>,
        /// The scales.
        scales: Vec<f32>,
        /// As many zero points, where there are any.
        zero_points: Option<Vec<i32>>,
    },
    /// `value = scale * (code - zero)`, with a zero point that is not a whole number.
    Offset {
        /// The scale.
        scale: f32,
        /// The zero point.
        zero: f32,
    },
    /// Nothing says how: there are codes and no scale, and the values are not known.
    Unknown,
}

impl Scaling {
    /// One scale for a tensor, with a zero point if there is one. A small whole number is the same
    /// among integers and in f32; others stay f32.
    pub fn per_tensor(scale: f32, zero: Option<f32>) -> Scaling {
        #[allow(clippy::cast_possible_truncation)]
        let whole = |z: &f32| z.abs() < MOST_EXACT && (*z as i32 as f32).to_bits() == z.to_bits();
        match zero {
            Some(zero) if !whole(&zero) => Scaling::Offset { scale, zero },
            zero => {
                #[allow(clippy::cast_possible_truncation)]
                let zero_points = zero.map(|z| vec![z as i32]);
                Scaling::Affine { axis: None, scales: vec![scale], zero_points }
            }
        }
    }

    /// Scale and zero point of a whole tensor, where there is one of each that f32 can say.
    pub fn as_per_tensor(&self) -> Option<(f32, Option<f32>)> {
        match self {
            Scaling::Offset { scale, zero } => Some((*scale, Some(*zero))),
            Scaling::Affine { axis: None, scales, zero_points } => {
                let zero = zero_points.as_ref().and_then(|z| z.first()).map(|&z| z as f32);
                let fits = zero.is_none_or(|z| z.abs() < MOST_EXACT);
                scales.first().filter(|_| fits && scales.len() == 1).map(|&scale| (scale, zero))
            }
            _ => None,
        }
    }
}

/// Up to here f32 has room for every whole number and its half.
const MOST_EXACT: f32 = 8_388_608.0;

/// By the bits of the scales: a file with a NaN in them is the same as itself.
impl PartialEq for Scaling {
    fn eq(&self, other: &Self) -> bool {
        let bits = |scales: &[f32]| scales.iter().map(|s| s.to_bits()).collect::<Vec<_>>();
        match (self, other) {
            (Scaling::Unknown, Scaling::Unknown) => true,
            (Scaling::Divisor(a), Scaling::Divisor(b)) => a.to_bits() == b.to_bits(),
            (Scaling::Offset { scale, zero }, Scaling::Offset { scale: scale_b, zero: zero_b }) => {
                bits(&[*scale, *zero]) == bits(&[*scale_b, *zero_b])
            }
            (
                Scaling::Affine { axis, scales, zero_points },
                Scaling::Affine { axis: axis_b, scales: scales_b, zero_points: zero_b },
            ) => axis == axis_b && zero_points == zero_b && bits(scales) == bits(scales_b),
            _ => false,
        }
    }
}

/// So that one list of scales that many tensors share need not be compared with itself.
impl Eq for Scaling {}

impl Scaled {
    /// A code has the same value wherever it stands.
    pub fn is_uniform(&self) -> bool {
        !matches!(self.scaling, Scaling::Affine { axis: Some(_), .. })
    }

    /// The value of a code in a channel; NaN where it is not known.
    #[allow(clippy::cast_precision_loss)]
    pub fn value(&self, code: i128, channel: usize) -> f32 {
        match &self.scaling {
            Scaling::Unknown => f32::NAN,
            Scaling::Divisor(divisor) => code as f32 / divisor,
            Scaling::Offset { scale, zero } => scale * (code as f32 - zero),
            Scaling::Affine { scales, .. } => {
                let scale = scales.get(channel).copied().unwrap_or(f32::NAN);
                scale * (code - i128::from(self.zero_point(channel))) as f32
            }
        }
    }

    /// The values of codes, which belong to these channels.
    pub(super) fn decode(&self, bytes: &[u8], mut channels: Channels, out: &mut [f32]) {
        let mut first = 0;
        while first < out.len() {
            let (channel, length) = channels.run(out.len() - first);
            let (run, raw) = (&mut out[first..][..length], bytes.get(first..first + length));
            match raw {
                Some(raw) if matches!(self.codes, DType::I8 | DType::U8) => {
                    self.decode_bytes(raw, channel, run);
                }
                _ => {
                    for (i, value) in run.iter_mut().enumerate() {
                        let code = element::read(self.codes, bytes, first + i).to_i128();
                        *value = self.value(code.unwrap_or(0), channel);
                    }
                }
            }
            first += length;
        }
    }

    /// What [`Scaled::value`] says of bytes of one channel.
    fn decode_bytes(&self, raw: &[u8], channel: usize, out: &mut [f32]) {
        // Differences from a zero point that is not farther away are exact in either type.
        const FARTHEST: u32 = 1 << 20;
        let (level, is_signed) = (Level::best(), self.codes == DType::I8);
        let zero = self.zero_point(channel);
        match &self.scaling {
            Scaling::Divisor(divisor) => divide_bytes(level, raw, is_signed, *divisor, out),
            Scaling::Affine { scales, .. } if zero.unsigned_abs() <= FARTHEST => {
                let scale = scales.get(channel).copied().unwrap_or(f32::NAN);
                scale_bytes(level, raw, is_signed, (scale, zero), out);
            }
            _ => each_byte(raw, is_signed, out, |code| self.value(code.into(), channel)),
        }
    }

    /// The code that decodes to exactly this value, if there is one.
    #[allow(clippy::cast_possible_truncation)]
    pub fn exact_code(&self, value: f32, channel: usize) -> Option<i128> {
        let near = match &self.scaling {
            Scaling::Unknown => return None,
            Scaling::Divisor(divisor) => f64::from(value) * f64::from(*divisor),
            Scaling::Offset { scale, zero } => {
                f64::from(value) / f64::from(*scale) + f64::from(*zero)
            }
            Scaling::Affine { scales, .. } => {
                f64::from(value) / f64::from(*scales.get(channel)?)
                    + f64::from(self.zero_point(channel))
            }
        };
        if !near.is_finite() {
            return None;
        }
        let near = near.round() as i128;
        // Huge zero points cost precision: the neighbours may be the right ones.
        [near, near.saturating_sub(1), near.saturating_add(1)].into_iter().find(|&code| {
            self.in_range(code) && self.value(code, channel).to_bits() == value.to_bits()
        })
    }

    /// Every code comes back from its value, so that storing the values loses nothing.
    ///
    /// With an ordinary scale and a small `n = code - zero_point`, `scale * n` is off by at most
    /// one part in 2^24, so that dividing by the scale gives `n` again after rounding. Wide codes,
    /// far zero points and scales that overflow or lose bits don't promise that.
    pub fn is_recoverable(&self) -> bool {
        const FARTHEST: u32 = 1 << 20;
        let scales = match &self.scaling {
            Scaling::Divisor(_) => return true,
            Scaling::Offset { .. } | Scaling::Unknown => return false,
            Scaling::Affine { scales, .. } => scales,
        };
        self.codes.bits() <= 8
            && scales.iter().enumerate().all(|(channel, scale)| {
                let zero = self.zero_point(channel).unsigned_abs();
                let farthest = zero.saturating_add(255);
                farthest <= FARTHEST
                    && scale.is_normal()
                    && (f64::from(scale.abs()) * f64::from(farthest)) < f64::from(f32::MAX)
            })
    }

    fn in_range(&self, code: i128) -> bool {
        let mut slot = [0; 8];
        if let Ok(small) = i64::try_from(code) {
            element::write(self.codes, &mut slot, 0, element::Scalar::Int(small));
        }
        element::read(self.codes, &slot, 0).to_i128() == Some(code)
    }

    fn zero_point(&self, channel: usize) -> i32 {
        match &self.scaling {
            Scaling::Affine { zero_points: Some(points), .. } => {
                points.get(channel).copied().unwrap_or(0)
            }
            _ => 0,
        }
    }

    /// The channels of the elements from `start` on.
    pub fn channels(&self, start: u64, shape: &[u64]) -> Channels {
        let (inner, length) = match &self.scaling {
            Scaling::Affine { axis: Some(axis), .. } if *axis < shape.len() => {
                // An empty tensor may have dimensions whose product is no number.
                let inner = shape[axis + 1..].iter().fold(1u64, |n, &d| n.saturating_mul(d));
                (inner.max(1), shape[*axis].max(1))
            }
            _ => (u64::MAX, 1),
        };
        Channels { inner, length, at: start }
    }
}

/// Walks through the elements of a tensor and says which channel each belongs to.
#[derive(Debug)]
pub struct Channels {
    inner: u64,
    length: u64,
    at: u64,
}

impl Channels {
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> usize {
        let channel = self.at / self.inner % self.length;
        self.at += 1;
        crate::wire::to_len(channel)
    }

    /// The channel of the next elements, and how many of them it has, at most so many.
    fn run(&mut self, most: usize) -> (usize, usize) {
        let left = self.inner - self.at % self.inner;
        let length = crate::wire::to_len(left).min(most);
        let channel = self.next();
        self.at += (length - 1) as u64;
        (channel, length)
    }
}

dispatch! {
    /// Bytes as integers, divided.
    fn divide_bytes(raw: &[u8], is_signed: bool, divisor: f32, out: &mut [f32]) = eight divide_bytes_with;
    /// How far bytes, as integers, are from a zero point, times a scale.
    fn scale_bytes(raw: &[u8], is_signed: bool, scaling: (f32, i32), out: &mut [f32]) = eight scale_bytes_with;
}

#[inline(always)]
#[allow(clippy::cast_precision_loss)]
fn divide_bytes_with<V: Eight>(
    _: V::Token,
    raw: &[u8],
    is_signed: bool,
    divisor: f32,
    out: &mut [f32],
) {
    each_byte(raw, is_signed, out, |code| code as f32 / divisor);
}

#[inline(always)]
#[allow(clippy::cast_precision_loss)]
fn scale_bytes_with<V: Eight>(
    _: V::Token,
    raw: &[u8],
    is_signed: bool,
    (scale, zero): (f32, i32),
    out: &mut [f32],
) {
    each_byte(raw, is_signed, out, |code| scale * (code - zero) as f32);
}

/// Loops that compilers make vectors of, with those instructions that they may use.
#[inline(always)]
fn each_byte(raw: &[u8], is_signed: bool, out: &mut [f32], value: impl Fn(i32) -> f32) {
    let each = out.iter_mut().zip(raw);
    if is_signed {
        each.for_each(|(out, byte)| *out = value(byte.cast_signed().into()));
    } else {
        each.for_each(|(out, byte)| *out = value((*byte).into()));
    }
}
#[cfg(test)]
mod tests {
    use super::super::Encoding;
    use super::*;
    use std::sync::Arc;

    #[test]
    fn dividing_is_not_multiplying() {
        let divided = Scaled { codes: DType::I8, scaling: Scaling::Divisor(127.0) };
        assert_eq!(divided.value(3, 0), 3.0 / 127.0);
        assert!(divided.is_recoverable());
        assert_eq!(divided.exact_code(0.5, 0), None);
    }

    #[test]
    fn channels_follow_their_axis() {
        let scaling = Scaling::Affine {
            axis: Some(1),
            scales: vec![1.0, 10.0, 100.0],
            zero_points: Some(vec![0, 1, 2]),
        };
        let scaled = Scaled { codes: DType::U8, scaling };
        assert!(scaled.is_recoverable());
        let encoding = Encoding::Scaled(Arc::new(scaled));
        let mut out = [0.0; 12];
        encoding.decode(&[3; 12], 0, &[2, 3, 2], &mut out);
        assert_eq!(out, [3.0, 3.0, 20.0, 20.0, 100.0, 100.0, 3.0, 3.0, 20.0, 20.0, 100.0, 100.0]);
        let mut tail = [0.0; 3];
        encoding.decode(&[3; 3], 9, &[2, 3, 2], &mut tail);
        assert_eq!(tail, out[9..]);
    }

    /// Bytes of both signs, zero points far and near, on either axis.
    #[test]
    fn decoded_values_are_those_of_their_codes() {
        let raw: Vec<u8> = (0..=255).chain(7..55).collect();
        let shape = [8u64, 38];
        let affine = |axis, n: usize, far: i32| Scaling::Affine {
            axis,
            scales: (0..n).map(|i| 0.3 + i as f32).collect(),
            zero_points: Some((0..n).map(|i| far + i as i32).collect()),
        };
        for scaling in [
            Scaling::Divisor(127.0),
            Scaling::Offset { scale: 0.7, zero: 1.5 },
            Scaling::Unknown,
            affine(None, 1, -3),
            affine(Some(0), 8, 5),
            affine(Some(0), 8, i32::MIN),
            affine(Some(1), 38, 1 << 20),
        ] {
            for codes in [DType::I8, DType::U8] {
                let scaled = Scaled { codes, scaling: scaling.clone() };
                let mut channels = scaled.channels(0, &shape);
                let expected: Vec<u32> = (0..raw.len())
                    .map(|i| {
                        let code = element::read(codes, &raw, i).to_i128().unwrap();
                        scaled.value(code, channels.next()).to_bits()
                    })
                    .collect();
                let encoding = Encoding::Scaled(Arc::new(scaled));
                for start in [0, 8, 40, 200] {
                    let mut out = vec![0.0; raw.len() - start];
                    encoding.decode(&raw[start..], start as u64, &shape, &mut out);
                    assert!(out.iter().map(|v| v.to_bits()).eq(expected[start..].iter().copied()));
                }
            }
        }
    }

    /// What `is_recoverable` promises, tried out code by code.
    #[test]
    fn recoverable_codes_are_recovered() {
        let scales = [0.1, -0.37, 1e-30, 2.9e33, 1.0, f32::MIN_POSITIVE];
        for codes in [DType::I8, DType::U8, DType::I4, DType::T1] {
            for (scale, zero) in scales.iter().flat_map(|&s| [(s, 0), (s, -77), (s, 1 << 19)]) {
                let zero_points = (zero != 0).then(|| vec![zero]);
                let scaling = Scaling::Affine { axis: None, scales: vec![scale], zero_points };
                let scaled = Scaled { codes, scaling };
                let all = (-128i128..=255).filter(|&c| scaled.in_range(c));
                let recovered = all.map(|c| scaled.exact_code(scaled.value(c, 0), 0) == Some(c));
                assert!(!scaled.is_recoverable() || { recovered }.all(|r| r), "{scaled:?}");
            }
        }
        let divided = Scaled { codes: DType::I8, scaling: Scaling::Divisor(127.0) };
        assert!((-128..128).all(|c| divided.exact_code(divided.value(c, 0), 0) == Some(c)));
    }

    #[test]
    fn unusable_scales_are_not_recoverable() {
        for scale in [0.0, f32::NAN, f32::INFINITY, f32::MAX, f32::from_bits(1)] {
            let scaling = Scaling::Affine { axis: None, scales: vec![scale], zero_points: None };
            assert!(!Scaled { codes: DType::I8, scaling }.is_recoverable(), "{scale}");
        }
        let scaling =
            Scaling::Affine { axis: None, scales: vec![0.1], zero_points: Some(vec![i32::MIN]) };
        assert!(!Scaled { codes: DType::U8, scaling }.is_recoverable());
    }
}
