//! Counts of values between the edges of a histogram.

use super::{TOGETHER, count_below};
use crate::simd::{Eight, Level, dispatch};

/// Edges between the bins of a histogram.
pub const EDGES: usize = 9;

/// Ten bins of the same width, as a value's place among them: times a factor, plus another number.
#[derive(Clone, Copy, Debug)]
pub struct Bins {
    edges: [f32; EDGES],
    /// What makes a value its place, where that is exact enough.
    place: Option<[f32; 2]>,
    /// How far a place may be off.
    error: f32,
}

impl Bins {
    /// Of values between two numbers. `edges` are the smallest values of all bins but the first.
    #[allow(clippy::cast_possible_truncation, reason = "the error counts what is rounded off")]
    pub fn new(min: f64, max: f64, edges: [f32; EDGES]) -> Bins {
        let step = (max - min) / (EDGES + 1) as f64;
        let (factor, offset) = (1.0 / step, -min / step);
        // Both numbers, the place and the edges are rounded to f32, each by half of a unit in the last
        // place or less; twice that is room enough.
        let largest = min.abs().max(max.abs()) * factor + offset.abs() + (EDGES + 1) as f64;
        let error = (largest * 4.0 * f64::from(f32::EPSILON)) as f32;
        let place = [factor as f32, offset as f32];
        let is_exact = place.iter().all(|v| v.is_finite()) && factor as f32 > 0.0 && error < 0.01;
        Bins { edges, place: is_exact.then_some(place), error }
    }

    /// Adds to `counts`, for each edge, how many values are below it. NaN is below none. Whoever knows
    /// that all values are finite gets them counted faster.
    pub fn count(&self, level: Level, values: &[f32], finite: bool, counts: &mut [u64; EDGES]) {
        for part in values.chunks(TOGETHER) {
            if !finite || !count_bins(level, part, *self, counts) {
                count_below(level, part, &self.edges, counts);
            }
        }
    }
}

dispatch! {
    /// Like [`count_below`], for no more than [`TOGETHER`] values, which are finite, in a fraction of the
    /// time. False, with nothing counted, if a value is so near to an edge that rounding decides.
    fn count_bins(values: &[f32], bins: Bins, counts: &mut [u64; EDGES]) -> bool
        = eight count_bins_with;
}

#[inline(always)]
#[allow(clippy::cast_possible_truncation, reason = "there are few bins")]
fn count_bins_with<V: Eight>(
    token: V::Token,
    values: &[f32],
    bins: Bins,
    counts: &mut [u64; EDGES],
) -> bool {
    let Some([factor, offset]) = bins.place else { return false };
    let (factor, offset) = (V::splat(token, factor), V::splat(token, offset));
    // Adding and subtracting it leaves the nearest whole number.
    let whole = V::splat(token, 1.5 * (1u32 << 23) as f32);
    let mut nearest = V::splat(token, 1.0);
    let mut below = [[0u8; 32]; EDGES];
    let (groups, rest) = values.as_chunks::<32>();
    for group in groups {
        let places: [V; 4] =
            std::array::from_fn(|i| V::load(token, &group[8 * i..]).fused_mul_add(factor, offset));
        for place in places {
            nearest = place.sub(place.add(whole).sub(whole)).abs().min(nearest);
        }
        let places = V::truncate(places);
        for (edge, below) in below.iter_mut().enumerate() {
            for (count, place) in below.iter_mut().zip(places) {
                // One block has few values for a lane, so that its counts fit a byte.
                *count += u8::from(place.cast_signed() <= edge as i8);
            }
        }
    }
    if nearest.to_array().iter().any(|distance| *distance <= bins.error) {
        return false;
    }
    for ((count, below), edge) in counts.iter_mut().zip(below).zip(bins.edges) {
        *count += below.iter().map(|n| u64::from(*n)).sum::<u64>();
        *count += rest.iter().filter(|v| **v < edge).count() as u64;
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Edges of ten bins, as whoever makes a histogram has them.
    fn edges(min: f64, max: f64) -> [f32; EDGES] {
        std::array::from_fn(|i| ((i + 1) as f64 * ((max - min) / 10.0) + min) as f32)
    }

    /// Also of values that are edges, or right beside one, and far from zero.
    #[test]
    fn bins_count_as_comparing_does() {
        let mut state = 1u32;
        let mut next = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            f64::from(state >> 8) / f64::from(1 << 24)
        };
        let ranges = [(-1.0, 1.0), (0.0, 3e-5), (-7e8, 2e4), (1000.0, 1000.5), (1e-45, 4e-45)];
        let mut fast = 0;
        for (min, max) in ranges {
            let edges = edges(min, max);
            let bins = Bins::new(min, max, edges);
            for near in [false, true] {
                for n in [0, 1, 31, 32, 100, 4096, 10_000] {
                    let value = |i: usize| {
                        let edge = edges[i % EDGES];
                        match i % 50 {
                            0 if near => edge,
                            1 if near => edge.next_down(),
                            2 if near => edge.next_up(),
                            _ => (min + (max - min) * next()) as f32,
                        }
                    };
                    let values: Vec<f32> = (0..n).map(value).collect();
                    let below = |edge: &f32| values.iter().filter(|v| *v < edge).count() as u64;
                    let expected: Vec<u64> = edges.iter().map(below).collect();
                    for level in Level::available() {
                        let mut counts = [0; EDGES];
                        bins.count(level, &values, true, &mut counts);
                        assert_eq!(counts.to_vec(), expected, "{level} {min} {max} {n}");
                        let part = &values[..n.min(TOGETHER)];
                        fast += u32::from(count_bins(level, part, bins, &mut [0; EDGES]));
                    }
                }
            }
        }
        // Most are counted the fast way, where values are not put beside edges.
        assert!(fast > 20, "{fast}");
    }
}
