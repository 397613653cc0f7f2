//! Counts and moments of many values: what statistics are made of.
//!
//! The loops have sixteen lanes side by side and a fixed order of sums. Compilers make vectors of
//! them, once they may use the processor's instructions, so that every level gives the same bits.

use crate::simd::{Eight, Level, dispatch};

/// Values side by side.
const LANES: usize = 16;

/// How many edges [`count_below`] takes.
pub const EDGES: usize = 9;

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

    /// Of some values, at most 2^32 of them.
    pub fn of(level: Level, values: &[f32]) -> Moments {
        let mut moments = sums(level, values);
        if moments.finite > 0 {
            moments.mean /= moments.finite as f64;
            moments.squares = squares(level, values, moments.mean);
        }
        if moments.finite < values.len() as u64 {
            let count = |what: fn(f32) -> bool| values.iter().filter(|v| what(**v)).count() as u64;
            moments.nan = count(f32::is_nan);
            moments.inf = count(|v| v == f32::INFINITY);
            moments.negative_inf = count(|v| v == f32::NEG_INFINITY);
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
    /// Counts, bounds and, in the place of the mean, the sum.
    fn sums(values: &[f32]) -> Moments = eight sums_with;
    /// The sum of the squares of the distances from a value.
    fn squares(values: &[f32], mean: f64) -> f64 = eight squares_with;
    /// Adds to `counts`, for each edge, how many values are below it. NaN is below none.
    pub fn count_below(values: &[f32], edges: &[f32; EDGES], counts: &mut [u64; EDGES])
        = eight count_below_with;
    /// Whether a value begins with these 16 bits.
    fn has_prefix(values: &[f32], prefix: u32) -> bool = eight has_prefix_with;
}

/// The values behind the last whole chunk as one; what is missing is NaN, which counts for nothing.
#[inline(always)]
fn last_chunk(rest: &[f32]) -> [[f32; LANES]; 1] {
    let mut last = [f32::NAN; LANES];
    last[..rest.len()].copy_from_slice(rest);
    [last]
}

#[inline(always)]
fn sums_with<V: Eight>(_: V::Token, values: &[f32]) -> Moments {
    let (mut sum, mut zero, mut finite) = ([0f64; LANES], [0u32; LANES], [0u32; LANES]);
    let (mut min, mut max) = ([f32::INFINITY; LANES], [f32::NEG_INFINITY; LANES]);
    let (whole, rest) = values.as_chunks::<LANES>();
    for chunks in [whole, &last_chunk(rest)] {
        for chunk in chunks {
            for i in 0..LANES {
                let v = chunk[i];
                let is_finite = v.abs() < f32::INFINITY;
                let low = if is_finite { v } else { f32::INFINITY };
                let high = if is_finite { v } else { f32::NEG_INFINITY };
                sum[i] += f64::from(if is_finite { v } else { 0.0 });
                min[i] = if low < min[i] { low } else { min[i] };
                max[i] = if high > max[i] { high } else { max[i] };
                zero[i] += u32::from(v == 0.0);
                finite[i] += u32::from(is_finite);
            }
        }
    }
    let total = |lanes: [u32; LANES]| lanes.iter().map(|n| u64::from(*n)).sum();
    Moments {
        finite: total(finite),
        min: min.into_iter().fold(f32::INFINITY, f32::min),
        max: max.into_iter().fold(f32::NEG_INFINITY, f32::max),
        mean: sum.iter().sum(),
        zero: total(zero),
        ..Moments::NONE
    }
}

#[inline(always)]
fn squares_with<V: Eight>(_: V::Token, values: &[f32], mean: f64) -> f64 {
    let mut sum = [0f64; LANES];
    let (whole, rest) = values.as_chunks::<LANES>();
    for chunks in [whole, &last_chunk(rest)] {
        for chunk in chunks {
            for i in 0..LANES {
                let apart = f64::from(chunk[i]) - mean;
                let apart = if chunk[i].abs() < f32::INFINITY { apart } else { 0.0 };
                sum[i] += apart * apart;
            }
        }
    }
    sum.iter().sum()
}

#[inline(always)]
fn count_below_with<V: Eight>(
    _: V::Token,
    values: &[f32],
    edges: &[f32; EDGES],
    counts: &mut [u64; EDGES],
) {
    let mut below = [[0u32; LANES]; EDGES];
    let (whole, rest) = values.as_chunks::<LANES>();
    for chunks in [whole, &last_chunk(rest)] {
        for chunk in chunks {
            for e in 0..EDGES {
                for i in 0..LANES {
                    below[e][i] += u32::from(chunk[i] < edges[e]);
                }
            }
        }
    }
    for (count, below) in counts.iter_mut().zip(below) {
        *count += below.iter().map(|n| u64::from(*n)).sum::<u64>();
    }
}

#[inline(always)]
fn has_prefix_with<V: Eight>(_: V::Token, values: &[f32], prefix: u32) -> bool {
    values.iter().fold(false, |any, v| any | (v.to_bits() >> 16 == prefix))
}

/// How often each code of 16 bits occurred, among fewer than 2^32 of them.
#[derive(Clone, Debug)]
pub struct CodeCounts {
    /// Neighbours are counted apart: adding to the same place twice would wait for memory.
    even: Box<[u32; CODES]>,
    odd: Box<[u32; CODES]>,
    /// Bytes that were counted as a code with a zero behind them.
    alone: u64,
}

/// Codes of 16 bits.
pub const CODES: usize = 1 << 16;

impl CodeCounts {
    /// Nothing was counted yet.
    pub fn new() -> CodeCounts {
        CodeCounts { even: zeros(), odd: zeros(), alone: 0 }
    }

    /// Counts codes of 16 bits, little-endian.
    pub fn add_pairs(&mut self, raw: &[u8]) {
        let (fours, rest) = raw.as_chunks::<4>();
        for four in fours {
            self.add([
                u16::from_le_bytes([four[0], four[1]]),
                u16::from_le_bytes([four[2], four[3]]),
            ]);
        }
        if let [low, high, ..] = rest {
            self.even[usize::from(u16::from_le_bytes([*low, *high]))] += 1;
        }
    }

    /// Counts bytes, two at a time: [`CodeCounts::of_bytes`] takes them apart again.
    pub fn add_bytes(&mut self, raw: &[u8]) {
        self.add_pairs(raw);
        if raw.len() % 2 == 1 {
            self.even[usize::from(raw[raw.len() - 1])] += 1;
            self.alone += 1;
        }
    }

    /// Counts the first 16 bits of values.
    pub fn add_prefixes(&mut self, values: &[f32]) {
        let (twos, rest) = values.as_chunks::<2>();
        twos.iter().for_each(|two| self.add(two.map(prefix)));
        rest.iter().for_each(|v| self.even[usize::from(prefix(*v))] += 1);
    }

    /// Counts the last 16 bits of the values with these first 16.
    pub fn add_rests(&mut self, level: Level, values: &[f32], prefix: u16) {
        for part in values.chunks(64) {
            if has_prefix(level, part, prefix.into()) {
                for v in part.iter().filter(|v| v.to_bits() >> 16 == u32::from(prefix)) {
                    self.even[(v.to_bits() & 0xFFFF) as usize] += 1;
                }
            }
        }
    }

    #[inline(always)]
    fn add(&mut self, [even, odd]: [u16; 2]) {
        self.even[usize::from(even)] += 1;
        self.odd[usize::from(odd)] += 1;
    }

    /// How often each byte occurred, where bytes were counted.
    pub fn of_bytes(&self) -> Vec<u64> {
        let mut bytes = vec![0; 256];
        for (code, count) in self.to_vec().into_iter().enumerate() {
            bytes[code & 0xFF] += count;
            bytes[code >> 8] += count;
        }
        bytes[0] -= self.alone;
        bytes
    }

    /// How often each code occurred.
    pub fn to_vec(&self) -> Vec<u64> {
        let both = self.even.iter().zip(&self.odd[..]);
        both.map(|(even, odd)| u64::from(*even) + u64::from(*odd)).collect()
    }
}

impl Default for CodeCounts {
    fn default() -> CodeCounts {
        CodeCounts::new()
    }
}

#[inline(always)]
#[allow(clippy::cast_possible_truncation)]
fn prefix(value: f32) -> u16 {
    (value.to_bits() >> 16) as u16
}

fn zeros() -> Box<[u32; CODES]> {
    vec![0; CODES].try_into().unwrap_or_else(|_| Box::new([0; CODES]))
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
            let m = Moments::of(Level::best(), &all);
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
        let edges = [-0.8, -0.6, -0.4, -0.2, 0.0, 0.2, 0.4, 0.6, 0.8];
        for n in [0, 1, 7, 16, 33, 64, 100, 5000] {
            let all = values(n);
            let made = |level| {
                let (mut below, mut rests) = ([0; EDGES], CodeCounts::new());
                count_below(level, &all, &edges, &mut below);
                rests.add_rests(level, &all, 0xBF00);
                let m = Moments::of(level, &all);
                let bits = [m.mean.to_bits(), m.squares.to_bits(), u64::from(m.min.to_bits())];
                (format!("{m:?}"), bits, below, rests.even)
            };
            for level in Level::available() {
                assert_eq!(made(level), made(Level::PLAIN), "{level} {n}");
            }
            let (.., below, rests) = made(Level::best());
            for (edge, below) in edges.iter().zip(below) {
                assert_eq!(below, all.iter().filter(|v| *v < edge).count() as u64);
            }
            let begins = all.iter().filter(|v| v.to_bits() >> 16 == 0xBF00).count();
            assert_eq!(rests.iter().map(|n| *n as usize).sum::<usize>(), begins);
        }
    }

    #[test]
    fn joined_moments_are_those_of_all() {
        let mut all = values(3000);
        all.retain(|v| v.abs() < 2.0);
        let whole = Moments::of(Level::best(), &all);
        let parts = all.chunks(700).map(|part| Moments::of(Level::best(), part));
        let joined = parts.fold(Moments::NONE, Moments::join);
        let counts = |m: Moments| (m.finite, m.zero, m.min.to_bits(), m.max.to_bits());
        assert_eq!(counts(joined), counts(whole));
        assert!((joined.mean - whole.mean).abs() < 1e-14);
        assert!((joined.squares - whole.squares).abs() < whole.squares * 1e-12);
    }

    #[test]
    fn codes_are_counted_one_by_one() {
        let raw: Vec<u8> = (0..10_007u32).map(|i| (i * i % 251) as u8).collect();
        let (mut bytes, mut pairs) = (CodeCounts::new(), CodeCounts::new());
        bytes.add_bytes(&raw);
        pairs.add_pairs(&raw[..10_006]);
        let (mut each, mut each_pair) = (vec![0u64; 256], vec![0u64; CODES]);
        raw.iter().for_each(|b| each[usize::from(*b)] += 1);
        let words = raw[..10_006].chunks_exact(2).map(|b| u16::from_le_bytes([b[0], b[1]]));
        words.for_each(|code| each_pair[usize::from(code)] += 1);
        assert!(bytes.of_bytes() == each && pairs.to_vec() == each_pair);
    }
}
