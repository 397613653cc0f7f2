//! Whole tensors as integers of 8 or 4 bits, with one scale and one zero point for all.
//!
//! The value of a code is `scale * (code - zero)`, where `zero` is the zero point. Weights have
//! codes on both sides of zero, as far down as up, and `zero` is 0. Activations lie anywhere: the
//! codes span the range that they have.

/// How wide a code is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Width {
    /// A byte.
    Int8,
    /// Half a byte: two codes are packed into one.
    Int4,
}

impl Width {
    /// Bits of a code.
    pub const fn bits(self) -> u32 {
        match self {
            Width::Int8 => 8,
            Width::Int4 => 4,
        }
    }

    /// Bytes of so many codes.
    pub const fn byte_len(self, count: usize) -> usize {
        match self {
            Width::Int8 => count,
            Width::Int4 => count.div_ceil(2),
        }
    }

    const fn largest_code(self) -> f32 {
        match self {
            Width::Int8 => 127.0,
            Width::Int4 => 7.0,
        }
    }
}

/// How values are quantized to codes, and codes decoded to values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mapping {
    /// The width of a code.
    pub width: Width,
    /// The difference between the values of two neighbouring codes.
    pub scale: f32,
    /// The zero point: the code that stands for 0. A whole number, which may lie outside of the
    /// codes' range.
    pub zero: f32,
    /// The smallest code in use; weights leave out the most negative.
    lowest: f32,
    /// Bounds that values are clamped to first.
    clip: (f32, f32),
}

/// Magnitudes are counted in so many bins: still eight for every step between codes when the scale
/// is the smallest that is tried.
const BINS: u16 = 1 << 14;

/// Scales that are tried, twice: from a little more than the largest magnitude needs down to a
/// sixteenth, as in a large tensor a few values can be very far from the others; then around the best.
const TRIES: u8 = 32;

impl Mapping {
    /// The mapping of weights with the smallest squared error, from the magnitudes that they have
    /// once they are clamped to the bounds.
    pub fn for_weights(width: Width, clip: (f32, f32), magnitudes: &Magnitudes) -> Mapping {
        let scale = magnitudes.best_scale(width.largest_code().into());
        Mapping { width, scale, zero: 0.0, lowest: -width.largest_code(), clip }
    }

    /// The mapping of activations that lie between two finite bounds.
    #[allow(clippy::cast_possible_truncation)]
    pub fn for_activations(width: Width, (low, high): (f32, f32)) -> Mapping {
        let lowest = -width.largest_code() - 1.0;
        let steps = 2f64.powi(width.bits().cast_signed()) - 1.0;
        let range = (f64::from(high) - f64::from(low)) / steps;
        // A zero point beyond 2^24 would not be an integer any more. So the steps of values that
        // are all (but) the same are as small as allows for that, which is as small as those of f32
        // there.
        let farthest = f64::from(low.abs().max(high.abs()));
        let scale = range.max(farthest * 2f64.powi(-23)) as f32;
        let scale = if scale > 0.0 { scale.max(f32::MIN_POSITIVE) } else { 1.0 };
        let zero = (f64::from(lowest) - f64::from(low) / f64::from(scale)).round() as f32;
        Mapping { width, scale, zero, lowest, clip: (low, high) }
    }

    /// Makes the codes of values: bytes, or two a byte with the first in the low half. Of an odd
    /// number of them the last half stays zero; so parts of a tensor should be even.
    ///
    /// # Panics
    ///
    /// When `codes` does not have the length that the values need, see [`Width::byte_len`].
    pub fn encode(&self, values: &[f32], codes: &mut [u8]) {
        assert_eq!(codes.len(), self.width.byte_len(values.len()), "length of the codes");
        match self.width {
            Width::Int8 => {
                for (byte, &value) in codes.iter_mut().zip(values) {
                    *byte = self.code(value);
                }
            }
            Width::Int4 => {
                let (pairs, rest) = values.as_chunks::<2>();
                for (byte, pair) in codes.iter_mut().zip(pairs) {
                    *byte = self.code(pair[0]) & 15 | self.code(pair[1]) << 4;
                }
                if let ([value], Some(byte)) = (rest, codes.last_mut()) {
                    *byte = self.code(*value) & 15;
                }
            }
        }
    }

    /// The nearest code, in two's complement.
    #[inline(always)]
    fn code(&self, value: f32) -> u8 {
        let exact = clamp(value, self.clip) / self.scale + self.zero;
        // Among numbers of this size the fraction has no room, and the integer is in the last bits.
        let rounded = clamp(exact, (self.lowest, self.width.largest_code())) + 12_582_912.0;
        rounded.to_bits().to_le_bytes()[0]
    }

    /// What a code stands for.
    pub fn value(&self, code: i8) -> f32 {
        self.scale * (f32::from(code) - self.zero)
    }
}

/// Unlike [`f32::clamp`] it takes any bounds.
#[inline(always)]
fn clamp(value: f32, (low, high): (f32, f32)) -> f32 {
    value.max(low).min(high)
}

/// The largest absolute value among values that are clamped to bounds.
pub fn largest_magnitude(values: &[f32], clip: (f32, f32)) -> f32 {
    values.iter().fold(0.0, |largest, &value| clamp(value, clip).abs().max(largest))
}

/// A histogram of absolute values, which the best scale for weights is found with. Parts of a
/// tensor are counted one by one, then merged.
#[derive(Clone, Debug)]
pub struct Magnitudes {
    largest: f32,
    bins_per_unit: f64,
    bins: Vec<(f64, f64)>,
}

impl Magnitudes {
    /// An empty histogram for values whose magnitude is at most `largest`.
    pub fn up_to(largest: f32) -> Magnitudes {
        let bins_per_unit = f64::from(BINS) / f64::from(largest);
        Magnitudes { largest, bins_per_unit, bins: vec![(0.0, 0.0); usize::from(BINS)] }
    }

    /// Counts values, after clamping them to bounds.
    pub fn add(&mut self, values: &[f32], clip: (f32, f32)) {
        values.iter().for_each(|&value| self.count(clamp(value, clip).abs()));
    }

    /// Adds what another histogram with the same `largest` has counted.
    pub fn merge(&mut self, other: &Magnitudes) {
        for ((count, sum), (other_count, other_sum)) in self.bins.iter_mut().zip(&other.bins) {
            *count += other_count;
            *sum += other_sum;
        }
    }

    #[inline(always)]
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    fn count(&mut self, magnitude: f32) {
        let magnitude = f64::from(magnitude);
        let bin = (magnitude * self.bins_per_unit) as usize;
        let (count, sum) = &mut self.bins[bin.min(usize::from(BINS) - 1)];
        *count += 1.0;
        *sum += magnitude;
    }

    /// The scale with the smallest squared error when codes go up to `limit`.
    #[allow(clippy::cast_possible_truncation)]
    fn best_scale(&self, limit: f64) -> f32 {
        let (mut most, mut best) = (0.0, 1.0);
        let (mut from, mut to) = (0.9, 16.0);
        for _ in 0..2 {
            let ratio = f64::powf(to / from, 1.0 / f64::from(TRIES - 1));
            let mut reach = from;
            for _ in 0..TRIES {
                let tried = f64::from(self.largest) / (limit * reach);
                let (gain, scale) = self.gain(tried, limit);
                if gain > most {
                    (most, best) = (gain, scale);
                    (from, to) = (reach / ratio, reach * ratio);
                }
                reach *= ratio;
            }
        }
        (best as f32).max(f32::MIN_POSITIVE)
    }

    /// The best scale for the codes that another gives, and by how much these lower the error.
    ///
    /// The scale is `sum(value * code) / sum(code^2)`, the gain `sum(value * code)^2 / sum(code^2)`.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    fn gain(&self, scale: f64, limit: f64) -> (f64, f64) {
        let (mut value_by_code, mut code_by_code) = (0.0, 0.0);
        for &(count, sum) in self.bins.iter().filter(|(count, _)| *count > 0.0) {
            let code = f64::from((sum / (count * scale) + 0.5) as u32).min(limit);
            value_by_code += sum * code;
            code_by_code += count * code * code;
        }
        (value_by_code * value_by_code / code_by_code, value_by_code / code_by_code)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOTH: [Width; 2] = [Width::Int8, Width::Int4];
    const ANY: (f32, f32) = (f32::NEG_INFINITY, f32::INFINITY);

    fn for_weights(width: Width, clip: (f32, f32), values: &[f32]) -> Mapping {
        let largest = largest_magnitude(values, clip);
        let mut all = Magnitudes::up_to(largest);
        for part in values.chunks(100) {
            let mut some = Magnitudes::up_to(largest);
            some.add(part, clip);
            all.merge(&some);
        }
        Mapping::for_weights(width, clip, &all)
    }

    fn bounds(values: &[f32]) -> (f32, f32) {
        values.iter().fold((f32::MAX, f32::MIN), |(low, high), &v| (v.min(low), v.max(high)))
    }

    fn codes(mapping: &Mapping, values: &[f32]) -> Vec<i8> {
        let mut bytes = vec![0xAA; mapping.width.byte_len(values.len())];
        mapping.encode(values, &mut bytes);
        match mapping.width {
            Width::Int8 => bytes.iter().map(|b| b.cast_signed()).collect(),
            Width::Int4 => {
                let halves = bytes.iter().flat_map(|b| [b << 4, *b]);
                halves.map(|b| b.cast_signed() >> 4).collect()
            }
        }
    }

    fn error(mapping: &Mapping, values: &[f32]) -> f64 {
        let codes = codes(mapping, values);
        let errors = values.iter().zip(codes).map(|(&v, c)| f64::from(v - mapping.value(c)));
        errors.map(|e| e * e).sum()
    }

    /// About normally distributed (sums of twelve uniform numbers), with a few values far away.
    fn sample(count: u32, far: f32) -> Vec<f32> {
        let mut state = 1u32;
        let mut next = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 8) as f32 / (1 << 24) as f32
        };
        let normal = |i| {
            let value = (0..12).map(|_| next()).sum::<f32>() - 6.0;
            if i % 1000 == 999 { value * far } else { value }
        };
        (0..count).map(normal).collect()
    }

    #[test]
    fn no_other_scale_of_weights_is_much_better() {
        for far in [1.0, 3.0, 10.0] {
            let values = sample(20_000, far);
            for width in BOTH {
                let chosen = for_weights(width, ANY, &values);
                let at = |factor: f32| Mapping { scale: chosen.scale * factor, ..chosen };
                let found = error(&chosen, &values);
                for factor in 50..200 {
                    let other = error(&at(factor as f32 / 100.0), &values);
                    assert!(found <= other * 1.005, "{width:?} {far} {factor}: {found} {other}");
                }
                let codes = codes(&chosen, &values);
                assert!(codes.iter().all(|&c| f32::from(c) >= -width.largest_code()));
            }
        }
    }

    #[test]
    fn weights_of_every_size_are_stored() {
        for width in BOTH {
            for size in [1e-45, 1e-38, 1e-20, 1.0, 1e30, f32::MAX] {
                let values = [size, -size, size / 7.0, 0.0, -0.0];
                let mapping = for_weights(width, ANY, &values);
                assert!(mapping.scale.is_normal(), "{size}");
                // What is smaller than any scale is rounded to zero.
                let slack = 1e-6 * size + f32::MIN_POSITIVE;
                for (&value, code) in values.iter().zip(codes(&mapping, &values)) {
                    let difference = (f64::from(value) - f64::from(mapping.value(code))).abs();
                    assert!(difference <= f64::from(mapping.scale) / 2.0 + f64::from(slack));
                }
            }
            let zero = for_weights(width, ANY, &[0.0; 5]);
            assert_eq!((zero.scale, zero.zero), (1.0, 0.0));
            assert!(codes(&zero, &[0.0; 5]).iter().all(|&c| c == 0));
            assert_eq!(for_weights(width, ANY, &[]).scale, 1.0);
        }
    }

    #[test]
    fn values_are_clamped_first() {
        let values = sample(999, 1.0);
        let clamped: Vec<f32> = values.iter().map(|v| v.clamp(-0.5, 1.0)).collect();
        for width in BOTH {
            let mapping = for_weights(width, (-0.5, 1.0), &values);
            assert_eq!(mapping.scale, for_weights(width, ANY, &clamped).scale);
            assert_eq!(codes(&mapping, &values), codes(&mapping, &clamped));
        }
    }

    #[test]
    fn activations_use_every_code_of_their_range() {
        for width in BOTH {
            let half = 1i16 << (width.bits() - 1);
            for (low, high) in [(-1.0, 3.0), (0.0, 6.0), (2.0, 5.0), (-9.0, -8.0), (1e3, 1e3 + 0.1)]
            {
                let mapping = Mapping::for_activations(width, (low, high));
                assert_eq!(mapping.zero, mapping.zero.round());
                let count = 1001u16;
                let value = |i| low + (high - low) * f32::from(i) / f32::from(count - 1);
                let values: Vec<f32> = (0..count).map(value).collect();
                let found = codes(&mapping, &values);
                let used = (found.iter().min().copied(), found[..1001].iter().max().copied());
                let full_range = (i8::try_from(-half).ok(), i8::try_from(half - 1).ok());
                assert_eq!(used, full_range, "{width:?} {low} {high}");
                for (value, code) in values.into_iter().zip(found) {
                    // The zero is rounded too, which can push an end out by half a step.
                    let difference = (value - mapping.value(code)).abs();
                    assert!(difference <= mapping.scale * 1.01 + 1e-7 * value.abs());
                }
            }
        }
    }

    #[test]
    fn activations_that_are_all_the_same_are_kept() {
        for width in BOTH {
            for value in [0.0, -0.0, 1.0, -1.0, 0.1, -255.7, 1e-30, 3e38, 123_456.79] {
                let values = [value; 3];
                let mapping = Mapping::for_activations(width, bounds(&values));
                assert!(mapping.scale.is_normal() && mapping.zero.is_finite());
                for code in codes(&mapping, &values).into_iter().take(3) {
                    let difference = (mapping.value(code) - value).abs();
                    assert!(difference <= value.abs() * 1e-6, "{value}: {}", mapping.value(code));
                }
            }
        }
    }

    #[test]
    fn halves_are_packed_low_first() {
        let mapping = Mapping { scale: 1.0, ..for_weights(Width::Int4, ANY, &[]) };
        let mut packed = [0; 2];
        mapping.encode(&[7.0, -7.0, -1.0], &mut packed);
        assert_eq!(packed, [0x97, 0x0F]);
    }

    #[test]
    fn nan_and_infinity_do_no_harm() {
        for width in BOTH {
            for value in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
                let values = [value, 1.0, value];
                codes(&for_weights(width, ANY, &values), &values);
                codes(&Mapping::for_activations(width, (value, 1.0)), &values);
            }
        }
    }
}
