//! Everything around the products: activations, softmax, layer normalization, rounding to integers.
//!
//! Sums are made in eight lanes, whatever the processor has.

use std::f32::consts::{FRAC_1_SQRT_2, FRAC_2_SQRT_PI, LOG2_E};
use weighbridge_codec::simd::{Eight, Level, Vector, dispatch};

dispatch! {
    /// The activation of BERT, `x / 2 * (1 + erf(x / sqrt(2)))`, for whole panels.
    pub(crate) fn gelu(values: &mut [f32]) = sixteen gelu_with;
    /// Its approximation by tanh, which some models were trained with.
    pub(crate) fn gelu_tanh(values: &mut [f32]) = sixteen gelu_tanh_with;
    pub(crate) fn relu(values: &mut [f32]) = sixteen relu_with;
    /// `x / (1 + exp(-x))`.
    pub(crate) fn silu(values: &mut [f32]) = sixteen silu_with;
    /// The largest of values in whole panels.
    fn largest(values: &[f32]) -> f32 = eight largest_with;
    /// Replaces values, in whole panels, by `exp(x * scale + shift)`.
    fn exponentials(values: &mut [f32], scale: f32, shift: f32) = sixteen exponentials_with;
    /// The sum of values in whole panels.
    fn sum(values: &[f32]) -> f32 = eight sum_with;
    /// The largest absolute value, and the sum of all absolute values.
    pub(crate) fn abs_max_and_sum(row: &[f32]) -> (f32, f32) = eight abs_max_and_sum_with;
    /// Multiplies a row and rounds it to integers, whose range it must not exceed.
    pub(crate) fn round_i16(row: &[f32], by: f32, integers: &mut [i16]) = eight round_i16_with;
    /// Layer normalization: brings a row to mean 0 and variance 1, then applies gains and shifts.
    pub(crate) fn layer_norm(row: &mut [f32], gains: &[f32], shifts: &[f32], epsilon: f32) = eight layer_norm_with;
    /// Adds rows, little-endian f32 and each times its weight, to sums, one after the other. What is behind
    /// the last sum does not count; rows that are shorter end them.
    pub(crate) fn add_rows(sums: &mut [f32], rows: [&[u8]; ROWS], weights: [f32; ROWS]) = eight add_rows_with;
}

/// Replaces scores by `exp((x - max) * scale)` and returns their sum. There are whole panels of them; what
/// is not a score is negative infinity.
pub(crate) fn softmax(level: Level, scores: &mut [f32], scale: f32) -> f32 {
    // (x - max) * scale as one multiply-add.
    let shift = -largest(level, scores) * scale;
    exponentials(level, scores, scale, shift);
    sum(level, scores)
}

/// Rows that are added to sums at once: a sum is loaded and stored once for all of them.
pub(crate) const ROWS: usize = 4;

/// A polynomial, the highest coefficient first.
#[inline(always)]
fn polynomial<V: Vector, const N: usize>(token: V::Token, x: V, coefficients: [f32; N]) -> V {
    let mut sum = V::splat(token, coefficients[0]);
    for &c in &coefficients[1..] {
        sum = sum.mul_add(x, V::splat(token, c));
    }
    sum
}

/// `erf(x) = x * P(x^2) / Q(x^2)` up to [`ERF_END`], where it is one in f32. Fitted for the smallest
/// absolute error, 1.7e-8.
const ERF_P: [f32; 6] =
    [2.034_739_4e-6, 2.874_8e-4, 3.868_334_7e-3, 5.306_05e-2, 0.192_764_17, FRAC_2_SQRT_PI];
const ERF_Q: [f32; 6] =
    [3.807_072e-5, 1.188_117_9e-3, 1.517_230_9e-2, 0.115_084_67, 0.504_164_46, 1.0];
const ERF_END: f32 = 3.92;

#[inline(always)]
fn gelu_with<V: Vector>(token: V::Token, values: &mut [f32]) {
    for_lanes::<V>(token, values, |x| {
        let z = x.mul(V::splat(token, FRAC_1_SQRT_2));
        let z = z.max(V::splat(token, -ERF_END)).min(V::splat(token, ERF_END));
        let t = z.mul(z);
        let erf = z.mul(polynomial(token, t, ERF_P)).div(polynomial(token, t, ERF_Q));
        let half = x.mul(V::splat(token, 0.5));
        half.mul_add(erf, half)
    });
}

#[inline(always)]
fn gelu_tanh_with<V: Vector>(token: V::Token, values: &mut [f32]) {
    const SLOPE: f32 = 0.797_884_6; // sqrt(2 / pi)
    for_lanes::<V>(token, values, |x| {
        // x / 2 * (1 + tanh(u)) = x / (1 + exp(-2u))
        let u = x.mul(x).mul(V::splat(token, 0.044_715)).mul_add(x, x);
        x.div(exp(token, u.mul(V::splat(token, -2.0 * SLOPE))).add(V::splat(token, 1.0)))
    });
}

#[inline(always)]
fn relu_with<V: Vector>(token: V::Token, values: &mut [f32]) {
    for_lanes::<V>(token, values, |x| x.max(V::splat(token, 0.0)));
}

#[inline(always)]
fn silu_with<V: Vector>(token: V::Token, values: &mut [f32]) {
    for_lanes::<V>(token, values, |x| {
        x.div(exp(token, x.mul(V::splat(token, -1.0))).add(V::splat(token, 1.0)))
    });
}

#[inline(always)]
fn for_lanes<V: Vector>(token: V::Token, values: &mut [f32], f: impl Fn(V) -> V) {
    for lanes in values.chunks_exact_mut(V::LANES) {
        f(V::load(token, lanes)).store(lanes);
    }
}

#[inline(always)]
fn add_rows_with<V: Eight>(
    token: V::Token,
    sums: &mut [f32],
    rows: [&[u8]; ROWS],
    weights: [f32; ROWS],
) {
    let rows = rows.map(|row| row.as_chunks::<4>().0);
    let length = rows.iter().fold(sums.len(), |least, row| least.min(row.len()));
    let (sums, rows) = (&mut sums[..length], rows.map(|row| &row[..length]));
    let (eights, rest) = sums.as_chunks_mut::<8>();
    let whole = eights.len() * 8;
    let lanes = rows.map(|row| row.as_chunks::<8>().0);
    let mut factors = [V::splat(token, 0.0); ROWS];
    for (factor, weight) in factors.iter_mut().zip(weights) {
        *factor = V::splat(token, weight);
    }
    for (i, eight) in eights.iter_mut().enumerate() {
        let mut sum = V::load(token, eight);
        for (row, factor) in lanes.iter().zip(factors) {
            sum = sum.add(factor.mul(V::load(token, &row[i].map(f32::from_le_bytes))));
        }
        sum.store(eight);
    }
    for (row, weight) in rows.iter().zip(weights) {
        for (sum, value) in rest.iter_mut().zip(&row[whole..]) {
            *sum += weight * f32::from_le_bytes(*value);
        }
    }
}

/// The exponential function to a relative error of about 2e-7, with `x` clamped to -87 and 88.
#[inline(always)]
fn exp<V: Vector>(token: V::Token, x: V) -> V {
    const TERMS: [f32; 7] = [1.0 / 720.0, 1.0 / 120.0, 1.0 / 24.0, 1.0 / 6.0, 0.5, 1.0, 1.0];
    // ln 2 in two parts: the first has few enough bits that integer multiples of it are exact.
    const LN_2: (f32, f32) = (0.693_359_4, -2.121_944_4e-4);
    // So large that adding it rounds to an integer, which is then in the last bits.
    const ROUNDER: f32 = 12_582_912.0;
    let x = x.max(V::splat(token, -87.0)).min(V::splat(token, 88.0));
    let rounded = x.mul_add(V::splat(token, LOG2_E), V::splat(token, ROUNDER));
    let n = rounded.add(V::splat(token, -ROUNDER));
    let rest = n.mul_add(V::splat(token, -LN_2.1), n.mul_add(V::splat(token, -LN_2.0), x));
    polynomial(token, rest, TERMS).mul_power_of_two(rounded)
}

#[inline(always)]
fn largest_with<V: Eight>(token: V::Token, values: &[f32]) -> f32 {
    let mut max = V::splat(token, f32::NEG_INFINITY);
    for lanes in values.chunks_exact(8) {
        max = V::load(token, lanes).max(max);
    }
    max.largest()
}

#[inline(always)]
fn exponentials_with<V: Vector>(token: V::Token, values: &mut [f32], scale: f32, shift: f32) {
    let (scale, shift) = (V::splat(token, scale), V::splat(token, shift));
    for lanes in values.chunks_exact_mut(V::LANES) {
        exp(token, V::load(token, lanes).mul_add(scale, shift)).store(lanes);
    }
}

#[inline(always)]
fn sum_with<V: Eight>(token: V::Token, values: &[f32]) -> f32 {
    sum_of::<V>(token, values, |x| x, |x| x)
}

#[inline(always)]
fn layer_norm_with<V: Eight>(
    token: V::Token,
    row: &mut [f32],
    gains: &[f32],
    shifts: &[f32],
    epsilon: f32,
) {
    #[allow(clippy::cast_precision_loss)]
    let by = 1.0 / row.len() as f32;
    let mean = sum_of::<V>(token, row, |x| x, |x| x) * by;
    let minus_mean = V::splat(token, -mean);
    let variance = sum_of::<V>(
        token,
        row,
        |x| x.add(minus_mean).mul(x.add(minus_mean)),
        |x| (x - mean).powi(2),
    ) * by;
    let factor = 1.0 / (variance + epsilon).sqrt();
    let tail = row.len() - row.len() % 8;
    let parts = row[..tail].chunks_exact_mut(8);
    let gain_parts = gains.chunks_exact(8).zip(shifts.chunks_exact(8));
    for (lanes, (gains, shifts)) in parts.zip(gain_parts) {
        let x = V::load(token, lanes).add(minus_mean).mul(V::splat(token, factor));
        x.mul_add(V::load(token, gains), V::load(token, shifts)).store(lanes);
    }
    for (i, x) in row.iter_mut().enumerate().skip(tail) {
        *x = (*x - mean) * factor * gains[i] + shifts[i];
    }
}

/// The sum of a function of every value, given for vectors and for single values.
#[inline(always)]
fn sum_of<V: Eight>(
    token: V::Token,
    row: &[f32],
    each: impl Fn(V) -> V,
    one: impl Fn(f32) -> f32,
) -> f32 {
    let parts = row.chunks_exact(8);
    let rest: f32 = parts.remainder().iter().map(|&x| one(x)).sum();
    let mut sum = V::splat(token, 0.0);
    for lanes in parts {
        sum = sum.add(each(V::load(token, lanes)));
    }
    sum.sum() + rest
}

#[inline(always)]
fn abs_max_and_sum_with<V: Eight>(token: V::Token, row: &[f32]) -> (f32, f32) {
    let parts = row.chunks_exact(8);
    let rest = parts.remainder().iter().map(|x| x.abs());
    let (rest_largest, rest_sum) = rest.fold((0f32, 0f32), |(m, s), x| (m.max(x), s + x));
    let (mut largest, mut sum) = (V::splat(token, 0.0), V::splat(token, 0.0));
    for part in parts {
        let x = V::load(token, part);
        let x = x.abs();
        largest = x.max(largest);
        sum = sum.add(x);
    }
    (rest_largest.max(largest.largest()), rest_sum + sum.sum())
}

#[inline(always)]
fn round_i16_with<V: Eight>(token: V::Token, row: &[f32], by: f32, integers: &mut [i16]) {
    for (part, places) in row.chunks_exact(8).zip(integers.chunks_exact_mut(8)) {
        places.copy_from_slice(&V::load(token, part).mul(V::splat(token, by)).round());
    }
    let tail = row.len() - row.len() % 8;
    #[allow(clippy::cast_possible_truncation, reason = "the range is not exceeded")]
    for (place, x) in integers[tail..].iter_mut().zip(&row[tail..]) {
        *place = (x * by).round_ties_even() as i16;
    }
}

#[cfg(test)]
mod tests {
    use super::super::PANEL;
    use super::super::tests::noise;
    use super::*;

    /// Everything here, on whole panels or on rows of any width, one behind the other.
    fn all(level: Level, x: &[f32], gains: &[f32]) -> Vec<f32> {
        let mut results = Vec::new();
        let mut apply = |f: &dyn Fn(&mut [f32])| {
            let mut y = x.to_vec();
            f(&mut y);
            results.extend(y);
        };
        if x.len().is_multiple_of(PANEL) {
            apply(&|y| gelu(level, y));
            apply(&|y| gelu_tanh(level, y));
            apply(&|y| relu(level, y));
            apply(&|y| silu(level, y));
            apply(&|y| y[0] = softmax(level, y, 0.3));
            apply(&|y| assert!(softmax(level, y, 0.3) > 0.0 || x.iter().any(|x| x.is_nan())));
        }
        apply(&|y| layer_norm(level, y, gains, x, 1e-5));
        apply(&|y| (y[0], y[x.len() / 2]) = abs_max_and_sum(level, x));
        results
    }

    /// The same bits for all widths; NaN where the definition has NaN.
    #[test]
    fn every_level_has_the_bits_of_the_definition() {
        for level in Level::available() {
            for width in (1..=48).chain([384]) {
                let gains = noise(width, 16);
                let small = noise(width, 15);
                let large: Vec<f32> = small.iter().map(|x| x * 200.0).collect();
                let mut hostile = large.clone();
                let specials = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 1e38, -0.0, 1e-40];
                hostile.iter_mut().step_by(5).zip(specials).for_each(|(x, special)| *x = special);
                for x in [small, large, hostile] {
                    let found = all(level, &x, &gains);
                    let expected = all(level.definition(), &x, &gains);
                    assert_eq!(found.len(), expected.len());
                    for (found, expected) in found.iter().zip(&expected) {
                        let same = found.to_bits() == expected.to_bits();
                        assert!(same || found.is_nan() && expected.is_nan(), "{level} {width}");
                    }
                }
            }
        }
    }

    #[test]
    fn rounding_is_to_the_nearest() {
        for level in Level::available() {
            for width in (1..=48).chain([384]) {
                let x = noise(width, 15);
                let mut codes = vec![0i16; width];
                round_i16(level, &x, 1000.5, &mut codes);
                for i in 0..width {
                    assert_eq!(codes[i], (x[i] * 1000.5).round_ties_even() as i16, "{level}");
                }
                let (largest, sum) = abs_max_and_sum(level, &x);
                assert_eq!(largest, x.iter().fold(0.0, |m: f32, v| m.max(v.abs())));
                let exact = x.iter().map(|v| f64::from(v.abs())).sum::<f64>();
                let bound = exact * width as f64 * 2f64.powi(-24);
                assert!((f64::from(sum) - exact).abs() <= bound, "{level} {width}");
            }
        }
    }

    /// Against f64. The bounds are what was measured for the polynomials, and a few roundings.
    #[test]
    fn functions_are_right() {
        let x: Vec<f32> = (-96..96).map(|i| i as f32 / 16.0).collect();
        for level in Level::available() {
            let mut y = x.clone();
            gelu(level, &mut y);
            for (x, y) in x.iter().zip(&y) {
                let expected = exact_gelu(f64::from(*x));
                assert!((f64::from(*y) - expected).abs() < 1.2e-6, "{level} {x}: {y} {expected}");
            }
            let mut y = x.clone();
            gelu_tanh(level, &mut y);
            for (x, y) in x.iter().map(|x| f64::from(*x)).zip(&y) {
                let u = (2.0 / std::f64::consts::PI).sqrt() * (x + 0.044_715 * x.powi(3));
                let expected = 0.5 * x * (1.0 + u.tanh());
                assert!((f64::from(*y) - expected).abs() < 2e-6, "{level} {x}: {y} {expected}");
            }
            let mut y = x.clone();
            silu(level, &mut y);
            for (x, y) in x.iter().map(|x| f64::from(*x)).zip(&y) {
                let expected = x / (1.0 + (-x).exp());
                assert!((f64::from(*y) - expected).abs() < 2e-6, "{level} {x}: {y} {expected}");
            }
            let mut scores = noise(48, 14);
            scores[45..].fill(f32::NEG_INFINITY);
            let before = scores.clone();
            let sum = softmax(level, &mut scores, 3.0);
            let max = before.iter().fold(f32::MIN, |a, &b| a.max(b));
            let mut total = 0.0;
            for (score, x) in scores.iter().zip(&before[..45]) {
                let expected = (3.0 * f64::from(x - max)).exp();
                assert!((f64::from(*score) - expected).abs() < 1e-6 * expected, "{level}");
                total += expected;
            }
            assert!((f64::from(sum) - total).abs() < 1e-6 * total, "{level}");
        }
    }

    /// By the series of erf, in f64.
    fn exact_gelu(x: f64) -> f64 {
        let z = (x / std::f64::consts::SQRT_2).clamp(-4.5, 4.5);
        let (mut term, mut sum) = (z, z);
        for n in 1..200 {
            term *= -z * z / f64::from(n);
            sum += term / f64::from(2 * n + 1);
        }
        0.5 * x * (1.0 + sum * 2.0 / std::f64::consts::PI.sqrt())
    }

    #[test]
    fn normalization_is_right() {
        for level in Level::available() {
            for width in [1, 7, 8, 31, 384] {
                let (x, gains, shifts) = (noise(width, 15), noise(width, 16), noise(width, 17));
                let mut y = x.clone();
                layer_norm(level, &mut y, &gains, &shifts, 1e-5);
                let count = width as f64;
                let mean = x.iter().map(|v| f64::from(*v)).sum::<f64>() / count;
                let squares = x.iter().map(|v| (f64::from(*v) - mean).powi(2));
                let deviation = (squares.sum::<f64>() / count + 1e-5).sqrt();
                for i in 0..width {
                    let unit = (f64::from(x[i]) - mean) / deviation;
                    let (gain, shift) = (f64::from(gains[i]), f64::from(shifts[i]));
                    let error = (f64::from(y[i]) - (unit * gain + shift)).abs();
                    // The mean has an error of so many roundings of values up to one, as has the
                    // variance; then a handful more.
                    let roundings = (count / 8.0 + 16.0) * 2f64.powi(-24);
                    let bound =
                        roundings * ((unit.abs() + 1.0 / deviation) * gain.abs() + shift.abs());
                    assert!(error <= bound, "{level} {width}: {error} {bound}");
                }
            }
        }
    }
}
