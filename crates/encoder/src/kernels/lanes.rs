//! Everything around the products: activations, softmax, layer normalization, rounding to integers.
//!
//! Each is written once, with the few operations of a `Vector`, and compiled for each kind of
//! processor.

use super::vector::{Portable, Vector};
use super::{LEVEL, Level};
use std::f32::consts::{FRAC_1_SQRT_2, FRAC_2_SQRT_PI, LOG2_E};

/// A function under its name, that calls the generic one in the best version for the processor.
macro_rules! versions {
    ($($(#[$doc:meta])* fn $name:ident($($argument:ident: $kind:ty),*) $(-> $result:ty)? = $body:ident;)*) => {$(
        $(#[$doc])*
        pub(crate) fn $name($($argument: $kind),*) $(-> $result)? {
            #[cfg(target_arch = "x86_64")]
            if *LEVEL >= Level::Avx2 {
                #[target_feature(enable = "avx2,fma")]
                fn avx2($($argument: $kind),*) $(-> $result)? {
                    $body::<super::vector::Avx2>($($argument),*)
                }
                // SAFETY: the processor has it.
                return unsafe { avx2($($argument),*) };
            }
            $body::<Portable>($($argument),*)
        }
    )*};
}

versions! {
    /// The activation of BERT, `x / 2 * (1 + erf(x / sqrt(2)))`, for whole panels.
    fn gelu(values: &mut [f32]) = gelu_with;
    /// Its approximation by tanh, which some models were trained with.
    fn gelu_tanh(values: &mut [f32]) = gelu_tanh_with;
    fn relu(values: &mut [f32]) = relu_with;
    /// Replaces scores by `exp((x - max) * scale)` and returns their sum. There are whole panels of
    /// them; what is not a score is negative infinity.
    fn softmax(scores: &mut [f32], scale: f32) -> f32 = softmax_with;
    /// The largest absolute value, and the sum of all absolute values.
    fn abs_max_and_sum(row: &[f32]) -> (f32, f32) = abs_max_and_sum_with;
    /// Multiplies a row and rounds it to integers, whose range it must not exceed.
    fn round_i16(row: &[f32], by: f32, integers: &mut [i16]) = round_i16_with;
    /// The same to bytes; returns their sum.
    fn round_i8(row: &[f32], by: f32, integers: &mut [i8]) -> i32 = round_i8_with;
    /// Layer normalization: brings a row to mean 0 and variance 1, then applies gains and shifts.
    fn layer_norm(row: &mut [f32], gains: &[f32], shifts: &[f32], epsilon: f32) = layer_norm_with;
}

/// A polynomial, the highest coefficient first.
#[inline(always)]
fn polynomial<V: Vector, const N: usize>(x: V, coefficients: [f32; N]) -> V {
    let mut sum = V::splat(coefficients[0]);
    for &c in &coefficients[1..] {
        sum = sum.mul_add(x, V::splat(c));
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
fn gelu_with<V: Vector>(values: &mut [f32]) {
    for_lanes::<V>(values, |x| {
        let z = x.mul(V::splat(FRAC_1_SQRT_2));
        let z = z.max(V::splat(-ERF_END)).min(V::splat(ERF_END));
        let t = z.mul(z);
        let erf = z.mul(polynomial(t, ERF_P)).div(polynomial(t, ERF_Q));
        let half = x.mul(V::splat(0.5));
        half.mul_add(erf, half)
    });
}

#[inline(always)]
fn gelu_tanh_with<V: Vector>(values: &mut [f32]) {
    const SLOPE: f32 = 0.797_884_6; // sqrt(2 / pi)
    for_lanes::<V>(values, |x| {
        // x / 2 * (1 + tanh(u)) = x / (1 + exp(-2u))
        let u = x.mul(x).mul(V::splat(0.044_715)).mul_add(x, x);
        x.div(exp(u.mul(V::splat(-2.0 * SLOPE))).add(V::splat(1.0)))
    });
}

#[inline(always)]
fn relu_with<V: Vector>(values: &mut [f32]) {
    for_lanes::<V>(values, |x| x.max(V::splat(0.0)));
}

#[inline(always)]
fn for_lanes<V: Vector>(values: &mut [f32], f: impl Fn(V) -> V) {
    for lanes in values.chunks_exact_mut(V::LANES) {
        f(V::load(lanes)).store(lanes);
    }
}

/// The exponential function to a relative error of about 2e-7, with `x` clamped to -87 and 88.
#[inline(always)]
fn exp<V: Vector>(x: V) -> V {
    const TERMS: [f32; 7] = [1.0 / 720.0, 1.0 / 120.0, 1.0 / 24.0, 1.0 / 6.0, 0.5, 1.0, 1.0];
    // ln 2 in two parts: the first has few enough bits that integer multiples of it are exact.
    const LN_2: (f32, f32) = (0.693_359_4, -2.121_944_4e-4);
    // So large that adding it rounds to an integer, which is then in the last bits.
    const ROUNDER: f32 = 12_582_912.0;
    let x = x.max(V::splat(-87.0)).min(V::splat(88.0));
    let rounded = x.mul_add(V::splat(LOG2_E), V::splat(ROUNDER));
    let n = rounded.add(V::splat(-ROUNDER));
    let rest = n.mul_add(V::splat(-LN_2.1), n.mul_add(V::splat(-LN_2.0), x));
    polynomial(rest, TERMS).mul_power_of_two(rounded)
}

#[inline(always)]
fn softmax_with<V: Vector>(scores: &mut [f32], scale: f32) -> f32 {
    let mut max = V::splat(f32::NEG_INFINITY);
    for lanes in scores.chunks_exact(V::LANES) {
        max = V::load(lanes).max(max);
    }
    // (x - max) * scale as one multiply-add.
    let (scale, shift) = (V::splat(scale), V::splat(-max.largest() * scale));
    let mut sum = V::splat(0.0);
    for lanes in scores.chunks_exact_mut(V::LANES) {
        let e = exp(V::load(lanes).mul_add(scale, shift));
        e.store(lanes);
        sum = sum.add(e);
    }
    sum.sum()
}

#[inline(always)]
fn layer_norm_with<V: Vector>(row: &mut [f32], gains: &[f32], shifts: &[f32], epsilon: f32) {
    #[allow(clippy::cast_precision_loss)]
    let by = 1.0 / row.len() as f32;
    let mean = sum_of::<V>(row, |x| x, |x| x) * by;
    let minus_mean = V::splat(-mean);
    let variance =
        sum_of::<V>(row, |x| x.add(minus_mean).mul(x.add(minus_mean)), |x| (x - mean).powi(2)) * by;
    let factor = 1.0 / (variance + epsilon).sqrt();
    let tail = row.len() - row.len() % V::LANES;
    let parts = row[..tail].chunks_exact_mut(V::LANES);
    let gain_parts = gains.chunks_exact(V::LANES).zip(shifts.chunks_exact(V::LANES));
    for (lanes, (gains, shifts)) in parts.zip(gain_parts) {
        let x = V::load(lanes).add(minus_mean).mul(V::splat(factor));
        x.mul_add(V::load(gains), V::load(shifts)).store(lanes);
    }
    for (i, x) in row.iter_mut().enumerate().skip(tail) {
        *x = super::mul_add((*x - mean) * factor, gains[i], shifts[i]);
    }
}

/// The sum of a function of every value, given for vectors and for single values.
#[inline(always)]
fn sum_of<V: Vector>(row: &[f32], each: impl Fn(V) -> V, one: impl Fn(f32) -> f32) -> f32 {
    let parts = row.chunks_exact(V::LANES);
    let rest: f32 = parts.remainder().iter().map(|&x| one(x)).sum();
    let mut sum = V::splat(0.0);
    for lanes in parts {
        sum = sum.add(each(V::load(lanes)));
    }
    sum.sum() + rest
}

#[inline(always)]
fn abs_max_and_sum_with<V: Vector>(row: &[f32]) -> (f32, f32) {
    let parts = row.chunks_exact(V::LANES);
    let rest = parts.remainder().iter().map(|x| x.abs());
    let (rest_largest, rest_sum) = rest.fold((0f32, 0f32), |(m, s), x| (m.max(x), s + x));
    let (mut largest, mut sum) = (V::splat(0.0), V::splat(0.0));
    for part in parts {
        let x = V::load(part);
        let x = x.max(x.mul(V::splat(-1.0)));
        largest = x.max(largest);
        sum = sum.add(x);
    }
    (rest_largest.max(largest.largest()), rest_sum + sum.sum())
}

#[inline(always)]
fn round_i16_with<V: Vector>(row: &[f32], by: f32, integers: &mut [i16]) {
    for (part, places) in row.chunks_exact(V::LANES).zip(integers.chunks_exact_mut(V::LANES)) {
        V::load(part).mul(V::splat(by)).round_into(places);
    }
    let tail = row.len() - row.len() % V::LANES;
    for (place, x) in integers[tail..].iter_mut().zip(&row[tail..]) {
        *place = super::vector::nearest_i16(x * by);
    }
}

#[inline(always)]
fn round_i8_with<V: Vector>(row: &[f32], by: f32, integers: &mut [i8]) -> i32 {
    let mut wide = [0i16; 32];
    let mut sum = 0;
    for (part, places) in row.chunks(32).zip(integers.chunks_mut(32)) {
        let wide = &mut wide[..part.len()];
        round_i16_with::<V>(part, by, wide);
        for (place, &code) in places.iter_mut().zip(&*wide) {
            // What is rounded here is at most 127.
            #[allow(clippy::cast_possible_truncation)]
            let byte = code as i8;
            *place = byte;
            sum += i32::from(byte);
        }
    }
    sum
}
