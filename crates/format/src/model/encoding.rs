//! How a tensor's values are stored.

use super::{BlockCoded, Product, Tensor};
use crate::Error;
use crate::wire::numel;
use std::borrow::Cow;
use std::sync::Arc;
use weighbridge_codec::{DType, convert, element};

/// A tensor's encoding: knows its size, and how to come to f32 values and back.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Encoding {
    /// The values themselves.
    Plain(DType),
    /// Whole numbers with a scale.
    Scaled(Arc<Scaled>),
    /// Rows of codes in blocks, by a block codec.
    Blocks(Arc<BlockCoded>),
    /// Rows of codes that stand for parts of vectors.
    Product(Arc<Product>),
}

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

impl Encoding {
    /// The type of the stored elements. Blocks of codes count as bytes.
    pub fn stored(&self) -> DType {
        match self {
            Encoding::Plain(dtype) => *dtype,
            Encoding::Scaled(scaled) => scaled.codes,
            Encoding::Blocks(_) | Encoding::Product(_) => DType::U8,
        }
    }

    /// The values are computed from something else that is stored.
    pub fn is_quantized(&self) -> bool {
        !matches!(self, Encoding::Plain(_))
    }

    /// Rows of codes that are decoded together: single elements have no bytes of their own.
    pub fn is_coded(&self) -> bool {
        matches!(self, Encoding::Blocks(_) | Encoding::Product(_))
    }

    /// The codec and what it needs besides the codes, of codes in blocks.
    pub fn blocks(&self) -> Option<&BlockCoded> {
        match self {
            Encoding::Blocks(blocks) => Some(blocks),
            _ => None,
        }
    }

    /// Bytes that rows of codes need besides the codes: scales before them, centroids.
    pub fn side_len(&self) -> u64 {
        match self {
            Encoding::Plain(_) | Encoding::Scaled(_) => 0,
            Encoding::Blocks(blocks) => blocks.front.len(),
            Encoding::Product(product) => product.side_len(),
        }
    }

    /// Bytes of a tensor's data, without its scales; `None` when the shape is impossible.
    pub fn byte_len(&self, shape: &[u64]) -> Option<u64> {
        match self {
            Encoding::Blocks(blocks) => blocks.layout(shape).map(|layout| layout.codes_size()),
            Encoding::Product(product) => product.codes_len(shape),
            _ => self.stored().byte_len(numel(shape)?),
        }
    }

    /// The values can be told. Those of codes without a scale can't.
    pub fn has_values(&self) -> bool {
        !matches!(self, Encoding::Scaled(scaled) if scaled.scaling == Scaling::Unknown)
    }

    /// The type that all values fit into, or the codes where the values are not known: what a reader
    /// sees.
    pub fn value_type(&self) -> DType {
        match self {
            Encoding::Plain(dtype) => *dtype,
            Encoding::Scaled(scaled) if !self.has_values() => scaled.codes,
            _ => DType::F32,
        }
    }

    /// The values are real numbers rather than whole ones.
    pub fn is_real(&self) -> bool {
        self.value_type().is_float()
    }

    /// Whether there is a scale for every channel of a tensor of this shape.
    pub fn fits(&self, shape: &[u64]) -> bool {
        let scaled = match self {
            Encoding::Plain(_) => return true,
            Encoding::Scaled(scaled) => scaled,
            Encoding::Blocks(blocks) => return blocks.layout(shape).is_some(),
            Encoding::Product(product) => return product.fits(shape),
        };
        let Scaling::Affine { axis, scales, zero_points } = &scaled.scaling else { return true };
        let channels = axis.map_or(Some(1), |axis| shape.get(axis).copied());
        scaled.codes.is_integer()
            && channels == Some(scales.len() as u64)
            && zero_points.as_ref().is_none_or(|z| z.len() == scales.len())
    }

    /// The codes of a tensor in this encoding come back from their values, so that storing the values
    /// loses nothing.
    ///
    /// # Errors
    /// If the codes can't be read.
    pub(super) fn is_recoverable(&self, tensor: &Tensor) -> Result<bool, Error> {
        match (self, tensor.view()) {
            (Encoding::Plain(_), _) => Ok(true),
            (Encoding::Scaled(scaled), _) => Ok(scaled.is_recoverable()),
            (Encoding::Blocks(blocks), Some(codes)) => blocks.is_recoverable(&tensor.shape, codes),
            // The same row may have been made of other codes. A declaration has none.
            (Encoding::Blocks(_), None) => Ok(!tensor.has_data()),
            (Encoding::Product(_), _) => Ok(false),
        }
    }

    /// Its name in reports: `f32`, `i8:scaled`, `i8:unscaled`, `q8`.
    pub fn name(&self) -> Cow<'static, str> {
        match self {
            Encoding::Plain(dtype) => dtype.name().into(),
            Encoding::Scaled(scaled) if !self.has_values() => {
                format!("{}:unscaled", scaled.codes).into()
            }
            Encoding::Scaled(scaled) => format!("{}:scaled", scaled.codes).into(),
            Encoding::Blocks(blocks) => blocks.codec.name().into(),
            Encoding::Product(product) => product.name().into(),
        }
    }

    /// Elements `start..start + out.len()` of a tensor as f32, from its canonical bytes, which
    /// begin at element `start`. Codes in blocks and of parts are decoded by the tensor.
    pub(super) fn decode(&self, bytes: &[u8], start: u64, shape: &[u64], out: &mut [f32]) {
        match self {
            Encoding::Plain(dtype) => convert::to_f32(*dtype, bytes, 0, out),
            Encoding::Scaled(scaled) => {
                scaled.decode(bytes, scaled.channels(start, shape), out);
            }
            Encoding::Blocks(_) | Encoding::Product(_) => out.fill(0.0),
        }
    }
}

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
    fn decode(&self, bytes: &[u8], mut channels: Channels, out: &mut [f32]) {
        let mut first = 0;
        while first < out.len() {
            let (channel, length) = channels.run(out.len() - first);
            let (run, raw) = (&mut out[first..][..length], bytes.get(first..first + length));
            match (self.codes, raw) {
                (DType::I8, Some(raw)) => {
                    self.decode_bytes(raw, |byte| i32::from(byte.cast_signed()), channel, run);
                }
                (DType::U8, Some(raw)) => self.decode_bytes(raw, i32::from, channel, run),
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

    /// What [`Scaled::value`] says of bytes of one channel, in loops that compilers make vectors of.
    #[allow(clippy::cast_precision_loss)]
    fn decode_bytes(&self, raw: &[u8], code: impl Fn(u8) -> i32, channel: usize, out: &mut [f32]) {
        // Differences from a zero point that is not farther away are exact in either type.
        const FARTHEST: u32 = 1 << 20;
        let zero = self.zero_point(channel);
        let each = out.iter_mut().zip(raw);
        match &self.scaling {
            Scaling::Divisor(divisor) => {
                each.for_each(|(value, byte)| *value = code(*byte) as f32 / divisor);
            }
            Scaling::Affine { scales, .. } if zero.unsigned_abs() <= FARTHEST => {
                let scale = scales.get(channel).copied().unwrap_or(f32::NAN);
                each.for_each(|(value, byte)| *value = scale * (code(*byte) - zero) as f32);
            }
            _ => each.for_each(|(value, byte)| *value = self.value(code(*byte).into(), channel)),
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

#[cfg(test)]
mod tests {
    use super::*;

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
