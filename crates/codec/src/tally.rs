//! Counts and moments of many values: what statistics are made of.
//!
//! Sums have sixteen lanes and a fixed order, so that every level gives the same bits.

mod bins;
mod codes;
mod select;

pub use bins::{Binned, Bins, EDGES};
pub use codes::CodeCounts;
pub use select::select;

use crate::simd::{Level, Numbers, Prefetcher, Vector, dispatch};

/// Values that are counted together, as many as the nearest cache holds: counts of fewer than 2^24
/// are exact in f32.
const TOGETHER: usize = 1 << 12;

/// Lanes of the vectors that sums are made with, and of the narrowest that count.
const LANES: usize = 16;
const LEAST_LANES: usize = 8;

/// Count, bounds, mean and deviation of some values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Moments {
    /// Finite values; all that follows but for the last three is about them.
    pub finite: u64,
    /// The smallest; infinity if there is none.
    pub min: f32,
    /// The largest; negative infinity if there is none.
    pub max: f32,
    /// Their mean; 0 if there is none.
    pub mean: f64,
    /// The sum of the squares of their distances from the mean.
    pub squares: f64,
    /// How many are zero.
    pub zero: u64,
    /// Values that are NaN.
    pub nan: u64,
    /// Values that are infinity.
    pub inf: u64,
    /// Values that are negative infinity.
    pub negative_inf: u64,
}

impl Moments {
    /// Of no values.
    pub const NONE: Moments = Moments {
        finite: 0,
        min: f32::INFINITY,
        max: f32::NEG_INFINITY,
        mean: 0.0,
        squares: 0.0,
        zero: 0,
        nan: 0,
        inf: 0,
        negative_inf: 0,
    };

    /// Of some values. Beside it memory is prefetched that is needed soon.
    pub fn of(level: Level, values: &[f32], mut next: Prefetcher<'_>) -> Moments {
        let parts = values.chunks(TOGETHER);
        let parts = parts.map(|part| Moments::of_part(level, part, next.take(size_of_val(part))));
        parts.fold(Moments::NONE, Moments::join)
    }

    fn of_part(level: Level, values: &[f32], next: Prefetcher<'_>) -> Moments {
        let mut moments = sums(level, values, next);
        // Only what is not finite makes the squares so: those of all f32 fit a double.
        if !moments.squares.is_finite() {
            let finite: Vec<f32> = values.iter().copied().filter(|v| v.is_finite()).collect();
            let count = |what: fn(f32) -> bool| values.iter().filter(|v| what(**v)).count() as u64;
            return Moments {
                nan: count(f32::is_nan),
                inf: count(|v| v == f32::INFINITY),
                negative_inf: count(|v| v == f32::NEG_INFINITY),
                ..Moments::of_part(level, &finite, next)
            };
        }
        if moments.finite > 0 {
            let (sum, squares) = (moments.mean, moments.squares);
            moments.mean = sum / moments.finite as f64;
            moments.squares = squares - sum * moments.mean;
            // Values that are far from zero, and close to each other: hardly a digit would be left.
            if moments.squares < squares * 1e-3 {
                let apart = |v: &f32| (f64::from(*v) - moments.mean).powi(2);
                moments.squares = values.iter().map(apart).sum();
            }
        }
        moments
    }

    /// Of these values and others. Joined in another order, the mean may differ in its last bits.
    #[must_use]
    pub fn join(self, other: Moments) -> Moments {
        let finite = self.finite + other.finite;
        let (mut mean, mut squares) = (self.mean, self.squares);
        if other.finite > 0 {
            let apart = other.mean - self.mean;
            let share = other.finite as f64 / finite as f64;
            // With no values before these, theirs to the bit.
            mean = if self.finite == 0 { other.mean } else { self.mean + apart * share };
            squares += other.squares + apart * apart * share * self.finite as f64;
        }
        Moments {
            finite,
            min: self.min.min(other.min),
            max: self.max.max(other.max),
            mean,
            squares,
            zero: self.zero + other.zero,
            nan: self.nan + other.nan,
            inf: self.inf + other.inf,
            negative_inf: self.negative_inf + other.negative_inf,
        }
    }
}

dispatch! {
    /// Counts and bounds, as if all were finite; in the place of the mean the sum, and in that of the
    /// squares those of the values.
    fn sums(values: &[f32], next: Prefetcher<'_>) -> Moments = sixteen sums_with;
    /// Adds to `counts`, for each edge, how many values are below it. NaN is below none.
    pub fn count_below(values: &[f32], edges: &[f32], counts: &mut [u64]) = numbers count_below_with;
    /// Adds the values to `found` that are not below the first edge but below the second, and counts
    /// those below the first.
    pub fn collect_between(values: &[f32], edges: [f32; 2], found: &mut Vec<f32>) -> u64
        = numbers collect_between_with;
}

#[inline(always)]
fn sums_with<V: Vector>(token: V::Token, values: &[f32], next: Prefetcher<'_>) -> Moments {
    let mut bounds = Bounds::<V>::new(token);
    let (mut sums, mut squares) = ([0f64; LANES], [0f64; LANES]);
    let (sixteens, rest) = values.as_chunks::<LANES>();
    let mut next = next;
    for (place, sixteen) in sixteens.iter().enumerate() {
        if place % 2 == 0 {
            next.advance();
        }
        let x = V::load(token, sixteen);
        x.add_moments(&mut sums, &mut squares);
        bounds.add(x);
    }
    let mut padded = [0.0; LANES];
    padded[..rest.len()].copy_from_slice(rest);
    V::load(token, &padded).add_moments(&mut sums, &mut squares);
    let (mut min, mut max, mut zero) = (f32::INFINITY, f32::NEG_INFINITY, 0);
    for v in lanes(bounds.min).into_iter().chain(rest.iter().copied()) {
        min = if v < min { v } else { min };
    }
    for v in lanes(bounds.max).into_iter().chain(rest.iter().copied()) {
        max = if v > max { v } else { max };
    }
    for v in rest {
        zero += u64::from(*v == 0.0);
    }
    Moments {
        finite: values.len() as u64,
        min,
        max,
        mean: sums.iter().sum(),
        squares: squares.iter().sum(),
        zero: zero + total::<V>(bounds.zeros),
        ..Moments::NONE
    }
}

#[inline(always)]
fn lanes<V: Vector>(values: V) -> [f32; LANES] {
    let mut lanes = [0.0; LANES];
    values.store(&mut lanes);
    lanes
}

/// The smallest and the largest value of each lane, and how many are zero.
struct Bounds<V: Vector> {
    min: V,
    max: V,
    zeros: V::Sums,
    /// The smallest number: of all magnitudes only zero is below it.
    tiny: V,
}

impl<V: Vector> Bounds<V> {
    #[inline(always)]
    fn new(token: V::Token) -> Bounds<V> {
        Bounds {
            min: V::splat(token, f32::INFINITY),
            max: V::splat(token, f32::NEG_INFINITY),
            zeros: V::sums(token, 0),
            tiny: V::splat(token, f32::from_bits(1)),
        }
    }

    #[inline(always)]
    fn add(&mut self, x: V) {
        self.min = x.min(self.min);
        self.max = x.max(self.max);
        self.zeros = V::count_less(self.zeros, x.abs(), self.tiny);
    }
}

/// The sum of counts, each of which is small.
#[inline(always)]
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn total<V: Vector>(counts: V::Sums) -> u64 {
    lanes(V::from_sums(counts)).iter().map(|count| *count as u64).sum()
}

#[inline(always)]
fn count_below_with<V: Numbers>(
    token: V::Token,
    values: &[f32],
    edges: &[f32],
    counts: &mut [u64],
) {
    for part in values.chunks(TOGETHER) {
        let mut slots = counts.iter_mut();
        // As many at a time as registers hold, which are read from the nearest cache again then.
        let (threes, rest) = edges.as_chunks::<3>();
        for three in threes {
            count_below_each::<V, 3>(token, part, three, &mut slots);
        }
        match *rest {
            [a, b] => count_below_each::<V, 2>(token, part, &[a, b], &mut slots),
            [edge] => count_below_each::<V, 1>(token, part, &[edge], &mut slots),
            _ => {}
        }
    }
}

#[inline(always)]
fn count_below_each<'a, V: Numbers, const N: usize>(
    token: V::Token,
    values: &[f32],
    edges: &[f32; N],
    slots: &mut impl Iterator<Item = &'a mut u64>,
) {
    let mut limits = [V::splat(token, 0.0); N];
    for (limit, edge) in limits.iter_mut().zip(edges) {
        *limit = V::splat(token, *edge);
    }
    let mut below = [V::sums(token, 0); N];
    let (whole, rest) = values.split_at(values.len() / V::LANES * V::LANES);
    for some in whole.chunks_exact(V::LANES) {
        let x = V::load(token, some);
        for (below, limit) in below.iter_mut().zip(limits) {
            *below = V::count_less(*below, x, limit);
        }
    }
    for ((below, edge), slot) in below.into_iter().zip(edges).zip(slots) {
        *slot += total::<V>(below) + rest.iter().filter(|v| *v < edge).count() as u64;
    }
}

#[inline(always)]
fn collect_between_with<V: Numbers>(
    token: V::Token,
    values: &[f32],
    [low, high]: [f32; 2],
    found: &mut Vec<f32>,
) -> u64 {
    let (from, to) = (V::splat(token, low), V::splat(token, high));
    let nothing = V::splat(token, f32::NEG_INFINITY);
    let mut count = 0;
    for part in values.chunks(TOGETHER) {
        let (groups, rest) = part.split_at(part.len() / V::LANES * V::LANES);
        // Few groups have one, and nobody can guess which: they are listed without a branch.
        let (mut listed, mut hits) = ([0; TOGETHER / LEAST_LANES], 0);
        let mut below = V::sums(token, 0);
        for (number, group) in groups.chunks_exact(V::LANES).enumerate() {
            let x = V::load(token, group);
            below = V::count_less(below, x, from);
            listed[hits] = number;
            // What is too large is as good as what is too small.
            hits += usize::from(V::select_less(x, to, x, nothing).any_reaches(from));
        }
        for number in &listed[..hits] {
            let (mut some, mut n) = ([0.0; LANES], 0);
            for &v in &groups[number * V::LANES..][..V::LANES] {
                some[n % LANES] = v;
                n += usize::from(v >= low) & usize::from(v < high);
            }
            found.extend_from_slice(&some[..n]);
        }
        found.extend(rest.iter().copied().filter(|v| *v >= low && *v < high));
        count += total::<V>(below) + rest.iter().filter(|v| **v < low).count() as u64;
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values of all magnitudes, with NaN, infinities and zeros among them.
    fn values(n: usize) -> Vec<f32> {
        let mut state = 7u32;
        let mut next = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            match state >> 28 {
                0 => f32::from_bits(state << 4),
                1 => 0.0,
                2 if state & 0xFF0_0000 == 0 => f32::NEG_INFINITY,
                _ => (state >> 8) as f32 / 8_388_608.0 - 1.0,
            }
        };
        (0..n).map(|_| next()).collect()
    }

    /// The definition, value by value.
    #[test]
    fn moments_are_those_of_the_definition() {
        for n in [0, 1, 15, 16, 17, 1000] {
            let all = values(n);
            let finite: Vec<f64> =
                all.iter().filter(|v| v.is_finite()).map(|v| f64::from(*v)).collect();
            let m = Moments::of(Level::best(), &all, Prefetcher::new(&all));
            assert_eq!(m.finite, finite.len() as u64);
            assert_eq!(m.nan, all.iter().filter(|v| v.is_nan()).count() as u64);
            let infinite = all.iter().filter(|v| v.is_infinite()).count() as u64;
            assert_eq!(m.inf + m.negative_inf, infinite);
            assert_eq!(m.zero, all.iter().filter(|v| **v == 0.0).count() as u64);
            assert_eq!(f64::from(m.min), finite.iter().copied().fold(f64::INFINITY, f64::min));
            assert_eq!(f64::from(m.max), finite.iter().copied().fold(f64::NEG_INFINITY, f64::max));
            let mean = finite.iter().sum::<f64>() / (finite.len().max(1)) as f64;
            assert!((m.mean - mean).abs() <= mean.abs() * 1e-12, "{} {mean}", m.mean);
            let squares: f64 = finite.iter().map(|v| (v - mean) * (v - mean)).sum();
            assert!((m.squares - squares).abs() <= squares * 1e-12, "{} {squares}", m.squares);
        }
    }

    #[test]
    fn every_level_gives_the_same_bits() {
        let edges = [-0.8, -0.6, -0.4, -0.2, 0.0, 0.2, 0.4, 0.6, 0.8, f32::INFINITY];
        for n in [0, 1, 7, 16, 33, 64, 100, 5000] {
            let all = values(n);
            let made = |level| {
                let (mut below, mut found) = ([0; 10], Vec::new());
                count_below(level, &all, &edges, &mut below);
                let before = collect_between(level, &all, [-0.25, 0.0], &mut found);
                let m = Moments::of(level, &all, Prefetcher::behind(&all));
                let bits = [m.mean.to_bits(), m.squares.to_bits(), u64::from(m.min.to_bits())];
                (format!("{m:?}"), bits, below, before, found)
            };
            for level in Level::available() {
                assert_eq!(made(level), made(Level::PLAIN), "{level} {n}");
            }
            let (.., below, before, found) = made(Level::best());
            for (edge, below) in edges.iter().zip(below) {
                assert_eq!(below, all.iter().filter(|v| *v < edge).count() as u64);
            }
            assert_eq!(before, all.iter().filter(|v| **v < -0.25).count() as u64);
            let between = all.iter().copied().filter(|v| (-0.25..0.0).contains(v));
            assert_eq!(found, between.collect::<Vec<_>>());
        }
    }

    /// Far from zero squares say little about how close values are to each other.
    #[test]
    fn values_close_to_each_other_have_small_deviations() {
        let all: Vec<f32> = (0..10_000).map(|i| 30_000.0 + (i % 5) as f32 / 256.0).collect();
        let nothing = Prefetcher::new::<u8>(&[]);
        let m = Moments::of(Level::best(), &all, nothing);
        assert!((m.squares / 10_000.0 * 65536.0 - 2.0).abs() < 1e-9, "{}", m.squares);
        assert_eq!(Moments::of(Level::best(), &[0.1; 10_000], nothing).squares, 0.0);
    }

    #[test]
    fn joined_moments_are_those_of_all() {
        let mut all = values(3000);
        all.retain(|v| v.abs() < 2.0);
        let of = |some: &[f32]| Moments::of(Level::best(), some, Prefetcher::behind(some));
        let whole = of(&all);
        let parts = all.chunks(700).map(of);
        let joined = parts.fold(Moments::NONE, Moments::join);
        let counts = |m: Moments| (m.finite, m.zero, m.min.to_bits(), m.max.to_bits());
        assert_eq!(counts(joined), counts(whole));
        assert!((joined.mean - whole.mean).abs() < 1e-14);
        assert!((joined.squares - whole.squares).abs() < whole.squares * 1e-12);
    }
}
