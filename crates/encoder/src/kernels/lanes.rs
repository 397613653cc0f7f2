//! Everything around the products: activations, softmax, layer normalization, rounding to integers.
//!
//! Each is written once, with the few operations of a `Vector`, and compiled for what there is.

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
    /// Makes `exp((x - max) * scale)` of scores and gives their sum. There are whole panels of them;
    /// what is not a score is negative infinity.
    fn softmax(scores: &mut [f32], scale: f32) -> f32 = softmax_with;
    /// The largest and the sum of all absolute values.
    fn extent(row: &[f32]) -> (f32, f32) = extent_with;
    /// Multiplies a row and rounds it to integers, in which it has room.
    fn round(row: &[f32], by: f32, integers: &mut [i16]) = round_with;
    /// The same to bytes; gives their sum.
    fn round_bytes(row: &[f32], by: f32, integers: &mut [i8]) -> i32 = round_bytes_with;
    /// Takes mean and variance out of a row, then applies gains and shifts.
    fn layer_norm(row: &mut [f32], gains: &[f32], shifts: &[f32], epsilon: f32) = layer_norm_with;
}

/// A polynomial, the highest coefficient first.
#[inline(always)]
fn polynomial<V: Vector, const N: usize>(x: V, coefficients: [f32; N]) -> V {
    let mut sum = V::all(coefficients[0]);
    for &c in &coefficients[1..] {
        sum = sum.step(x, V::all(c));
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
        let z = x.mul(V::all(FRAC_1_SQRT_2));
        let z = z.max(V::all(-ERF_END)).min(V::all(ERF_END));
        let t = z.mul(z);
        let erf = z.mul(polynomial(t, ERF_P)).div(polynomial(t, ERF_Q));
        let half = x.mul(V::all(0.5));
        half.step(erf, half)
    });
}

#[inline(always)]
fn gelu_tanh_with<V: Vector>(values: &mut [f32]) {
    const SLOPE: f32 = 0.797_884_6; // sqrt(2 / pi)
    for_lanes::<V>(values, |x| {
        // x / 2 * (1 + tanh(u)) = x / (1 + exp(-2u))
        let u = x.mul(x).mul(V::all(0.044_715)).step(x, x);
        x.div(exp(u.mul(V::all(-2.0 * SLOPE))).add(V::all(1.0)))
    });
}

#[inline(always)]
fn relu_with<V: Vector>(values: &mut [f32]) {
    for_lanes::<V>(values, |x| x.max(V::all(0.0)));
}

#[inline(always)]
fn for_lanes<V: Vector>(values: &mut [f32], f: impl Fn(V) -> V) {
    for lanes in values.chunks_exact_mut(V::LANES) {
        f(V::load(lanes)).store(lanes);
    }
}

/// Right to about 2e-7 of the result; below -87 it is as at -87, above 88 as at 88.
#[inline(always)]
fn exp<V: Vector>(x: V) -> V {
    const TERMS: [f32; 7] = [1.0 / 720.0, 1.0 / 120.0, 1.0 / 24.0, 1.0 / 6.0, 0.5, 1.0, 1.0];
    // ln 2 in two parts: the first has few enough bits that whole multiples of it are exact.
    const LN_2: (f32, f32) = (0.693_359_4, -2.121_944_4e-4);
    // So large that adding it rounds to a whole number, which is then in the last bits.
    const ROUNDER: f32 = 12_582_912.0;
    let x = x.max(V::all(-87.0)).min(V::all(88.0));
    let rounded = x.step(V::all(LOG2_E), V::all(ROUNDER));
    let n = rounded.add(V::all(-ROUNDER));
    let rest = n.step(V::all(-LN_2.1), n.step(V::all(-LN_2.0), x));
    polynomial(rest, TERMS).times_power(rounded)
}

#[inline(always)]
fn softmax_with<V: Vector>(scores: &mut [f32], scale: f32) -> f32 {
    let mut max = V::all(f32::NEG_INFINITY);
    for lanes in scores.chunks_exact(V::LANES) {
        max = V::load(lanes).max(max);
    }
    // (x - max) * scale in one step.
    let (scale, shift) = (V::all(scale), V::all(-max.largest() * scale));
    let mut sum = V::all(0.0);
    for lanes in scores.chunks_exact_mut(V::LANES) {
        let e = exp(V::load(lanes).step(scale, shift));
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
    let less = V::all(-mean);
    let variance = sum_of::<V>(row, |x| x.add(less).mul(x.add(less)), |x| (x - mean).powi(2)) * by;
    let factor = 1.0 / (variance + epsilon).sqrt();
    let whole = row.len() - row.len() % V::LANES;
    let parts = row[..whole].chunks_exact_mut(V::LANES);
    let gain_parts = gains.chunks_exact(V::LANES).zip(shifts.chunks_exact(V::LANES));
    for (lanes, (gains, shifts)) in parts.zip(gain_parts) {
        let x = V::load(lanes).add(less).mul(V::all(factor));
        x.step(V::load(gains), V::load(shifts)).store(lanes);
    }
    for (i, x) in row.iter_mut().enumerate().skip(whole) {
        *x = super::step((*x - mean) * factor, gains[i], shifts[i]);
    }
}

/// The sum of something made of every value.
#[inline(always)]
fn sum_of<V: Vector>(row: &[f32], each: impl Fn(V) -> V, one: impl Fn(f32) -> f32) -> f32 {
    let parts = row.chunks_exact(V::LANES);
    let rest: f32 = parts.remainder().iter().map(|&x| one(x)).sum();
    let mut sum = V::all(0.0);
    for lanes in parts {
        sum = sum.add(each(V::load(lanes)));
    }
    sum.sum() + rest
}

#[inline(always)]
fn extent_with<V: Vector>(row: &[f32]) -> (f32, f32) {
    let parts = row.chunks_exact(V::LANES);
    let rest = parts.remainder().iter().map(|x| x.abs());
    let (rest_largest, rest_sum) = rest.fold((0f32, 0f32), |(m, s), x| (m.max(x), s + x));
    let (mut largest, mut sum) = (V::all(0.0), V::all(0.0));
    for part in parts {
        let x = V::load(part);
        let x = x.max(x.mul(V::all(-1.0)));
        largest = x.max(largest);
        sum = sum.add(x);
    }
    (rest_largest.max(largest.largest()), rest_sum + sum.sum())
}

#[inline(always)]
fn round_with<V: Vector>(row: &[f32], by: f32, integers: &mut [i16]) {
    for (part, places) in row.chunks_exact(V::LANES).zip(integers.chunks_exact_mut(V::LANES)) {
        V::load(part).mul(V::all(by)).round_into(places);
    }
    let whole = row.len() - row.len() % V::LANES;
    for (place, x) in integers[whole..].iter_mut().zip(&row[whole..]) {
        *place = super::vector::rounded(x * by);
    }
}

#[inline(always)]
fn round_bytes_with<V: Vector>(row: &[f32], by: f32, integers: &mut [i8]) -> i32 {
    let mut wide = [0i16; 32];
    let mut sum = 0;
    for (part, places) in row.chunks(32).zip(integers.chunks_mut(32)) {
        let wide = &mut wide[..part.len()];
        round_with::<V>(part, by, wide);
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
