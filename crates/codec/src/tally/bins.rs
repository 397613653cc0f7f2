//! Counts of values between the edges of a histogram, and the few values near another one.

use super::{TOGETHER, collect_between, count_below};
use crate::simd::{Level, Numbers, Prefetcher, dispatch};

/// Edges between the bins of a histogram.
pub const EDGES: usize = 9;

/// Ten bins of the same width, and a range whose values are kept.
#[derive(Clone, Copy, Debug)]
pub struct Bins {
    edges: [f32; EDGES],
    near: [f32; 2],
    grid: Option<Grid>,
}

/// What was found among some values.
#[derive(Clone, Debug, Default)]
pub struct Binned {
    /// For each edge, how many are below it. NaN is below none.
    pub below: [u64; EDGES],
    /// How many are below the range whose values are kept.
    pub before: u64,
    /// Values in that range.
    pub near: Vec<f32>,
}

/// Numbers that values are given: the lower half of the bits of value times factor plus offset, which
/// is a whole number there. A larger value never has a smaller number, however it is rounded. So
/// comparing numbers decides, unless a value has one of the few that the value has which it is
/// compared with.
#[derive(Clone, Copy, Debug)]
struct Grid {
    factor: f32,
    offset: f32,
    /// The first value of bin `i` has a number between `i << STEP_BITS` and this much more.
    blur: u16,
    /// The number of the first value that is kept, and how much larger that behind the last one is.
    first: u16,
    span: u16,
}

/// Numbers that belong to a bin, as a power of two.
const STEP_BITS: i32 = 11;

/// From here on floats are whole numbers, and there is room on both sides.
const WHOLE: f32 = 1.5 * (1u32 << 23) as f32;

impl Bins {
    /// Of values between two numbers. `edges` are the smallest values of all bins but the first. Values
    /// are kept that are not below the first of `near`, but below the second.
    pub fn new(min: f32, max: f32, edges: [f32; EDGES], near: [f32; 2]) -> Bins {
        Bins { edges, near, grid: Grid::new(min, max, edges, near) }
    }

    /// Adds what is among some values, all of which lie between the two numbers or are not finite.
    /// Whoever knows that all are finite gets them counted faster. Beside it memory is prefetched that is needed soon.
    pub fn count(
        &self,
        level: Level,
        values: &[f32],
        finite: bool,
        mut next: Prefetcher<'_>,
        found: &mut Binned,
    ) {
        for part in values.chunks(TOGETHER) {
            let next = next.take(size_of_val(part));
            if !finite || !count_by_number(level, part, self, next, found) {
                count_below(level, part, &self.edges, &mut found.below);
                found.before += collect_between(level, part, self.near, &mut found.near);
            }
        }
    }
}

impl Grid {
    /// None where numbers would not be exact enough.
    #[allow(clippy::cast_possible_truncation, reason = "what comes of it is looked at")]
    fn new(min: f32, max: f32, edges: [f32; EDGES], near: [f32; 2]) -> Option<Grid> {
        let bins = (EDGES + 1) as f64;
        let factor = bins * f64::from(1u32 << STEP_BITS) / (f64::from(max) - f64::from(min));
        let offset = (-f64::from(min) * factor).round();
        // So that factor and offset, rounded, move no value by more than a number.
        let is_exact = offset.abs() < 2f64.powi(21) && (factor as f32).is_normal();
        let mut grid = Grid {
            factor: factor as f32,
            offset: WHOLE + offset as f32,
            blur: 0,
            first: 0,
            span: 0,
        };
        let blurs = |grid: &Grid| {
            let places = (1..).map(|bin: i32| bin << STEP_BITS);
            let numbers = edges.map(|edge| grid.number(edge));
            let mut blurs = places.zip(numbers).map(|(place, number)| number.wrapping_sub(place));
            blurs.next().map(|first| blurs.fold((first, first), |(a, b), v| (a.min(v), b.max(v))))
        };
        let (least, _) = blurs(&grid).filter(|_| is_exact)?;
        grid.offset -= least.min(grid.number(min)) as f32;
        // Whatever was rounded on the way: this decides.
        let (least, most) = blurs(&grid)?;
        let [first, last] = near.map(|v| grid.number(v.clamp(min, max)));
        let fits = |number: i32| u16::try_from(number).ok().filter(|n| *n <= i16::MAX as u16);
        fits(least).and(fits(grid.number(min))).and(fits(grid.number(max)))?;
        (grid.blur, grid.first) = (fits(most).filter(|blur| *blur <= 8)?, fits(first)?);
        grid.span = fits(last.checked_sub(first)?)?;
        Some(grid)
    }

    /// The number of a value.
    #[inline(always)]
    fn number(&self, value: f32) -> i32 {
        let bits = value.mul_add(self.factor, self.offset).to_bits();
        bits.cast_signed().wrapping_sub(WHOLE.to_bits().cast_signed())
    }
}

dispatch! {
    /// Counts no more than [`TOGETHER`] values, which are finite, in a fraction of the time. False, with
    /// nothing counted, if too many of them have to be looked at one by one.
    fn count_by_number(values: &[f32], bins: &Bins, next: Prefetcher<'_>, found: &mut Binned) -> bool
        = numbers count_by_number_with;
}

/// Vectors whose lanes are given numbers at once: a group. And the values of the widest.
const VECTORS: usize = 4;
const WIDEST: usize = 16 * VECTORS;

/// Of how many values one may be looked at by itself, on average, before that takes as long as comparing all.
const VALUES_A_DOUBT: usize = 16;

/// Pairs of bins, and how many groups can be counted before one of a pair fills its half of a byte.
const PAIRS: usize = EDGES.div_ceil(2);
const MOST_IN_HALF: usize = 15;

/// What a value of each bin adds to the counts of each pair.
const PAIR_TABLES: [[u8; 16]; PAIRS] = {
    let mut tables = [[0; 16]; PAIRS];
    let mut pair = 0;
    while pair < PAIRS {
        tables[pair][2 * pair] = 1;
        tables[pair][2 * pair + 1] = 1 << 4;
        pair += 1;
    }
    tables
};

#[inline(always)]
#[allow(clippy::cast_sign_loss, reason = "numbers that were checked have no sign")]
fn count_by_number_with<V: Numbers>(
    token: V::Token,
    values: &[f32],
    bins: &Bins,
    mut next: Prefetcher<'_>,
    found: &mut Binned,
) -> bool {
    let Some(grid) = bins.grid else { return false };
    let (factor, offset) = (V::splat(token, grid.factor), V::splat(token, grid.offset));
    let range = (grid.first, grid.span);
    // A block has few values for a lane, so that its counts fit a byte.
    let mut counts = [[0u8; WIDEST]; 2 * PAIRS];
    let mut before = V::no_halves(token);
    let (groups, rest) = values.split_at(values.len() / (VECTORS * V::LANES) * VECTORS * V::LANES);
    // Groups with values that have to be looked at: nobody can guess which, so there is no branch.
    let (mut listed, mut hits) = ([(0, 0); TOGETHER / (VECTORS * 8)], 0);
    for (part, some) in groups.chunks(MOST_IN_HALF * VECTORS * V::LANES).enumerate() {
        // Two bins share a byte, while the counts of either fit half of it.
        let mut pairs = [V::no_quarters(token); PAIRS];
        for (place, group) in some.chunks_exact(VECTORS * V::LANES).enumerate() {
            for _ in 0..V::LANES / 8 {
                next.advance();
            }
            let a = V::load(token, group).multiplied(factor, offset);
            let b = V::load(token, &group[V::LANES..]).multiplied(factor, offset);
            let c = V::load(token, &group[2 * V::LANES..]).multiplied(factor, offset);
            let d = V::load(token, &group[3 * V::LANES..]).multiplied(factor, offset);
            let numbers = [a.lower_halves(b), c.lower_halves(d)];
            let bin = V::upper_bits::<STEP_BITS>(numbers[0], numbers[1]);
            // Not in a loop, which would keep the counts in memory.
            pairs[0] = V::add_from(pairs[0], &PAIR_TABLES[0], bin);
            pairs[1] = V::add_from(pairs[1], &PAIR_TABLES[1], bin);
            pairs[2] = V::add_from(pairs[2], &PAIR_TABLES[2], bin);
            pairs[3] = V::add_from(pairs[3], &PAIR_TABLES[3], bin);
            pairs[4] = V::add_from(pairs[4], &PAIR_TABLES[4], bin);
            before = V::add_lower(before, numbers[0], numbers[1], grid.first);
            let doubts = V::are_among::<STEP_BITS>(numbers, grid.blur, range);
            listed[hits] = (part * MOST_IN_HALF + place, doubts);
            hits += usize::from(doubts != 0);
        }
        let mut bytes = [0; WIDEST];
        for (counts, pair) in counts.as_chunks_mut::<2>().0.iter_mut().zip(pairs) {
            V::store_quarters(pair, &mut bytes);
            let [first, second] = counts;
            for (byte, (a, b)) in bytes.iter().zip(first.iter_mut().zip(second)) {
                *a += byte & 15;
                *b += byte >> 4;
            }
        }
    }
    let doubts = listed[..hits].iter().map(|(_, doubts)| doubts.count_ones() as usize);
    if doubts.sum::<usize>() > groups.len() / VALUES_A_DOUBT {
        return false;
    }
    let mut sum = 0;
    for (below, counts) in found.below.iter_mut().zip(counts) {
        sum += counts.iter().map(|n| u64::from(*n)).sum::<u64>();
        *below += sum;
    }
    let mut numbers = [0; WIDEST / 2];
    V::store_halves(before, &mut numbers);
    found.before += numbers.iter().map(|n| u64::from(*n)).sum::<u64>();
    for (group, doubts) in &listed[..hits] {
        let (group, mut doubts) = (&groups[group * VECTORS * V::LANES..], *doubts);
        while doubts != 0 {
            let bit = doubts.trailing_zeros() as usize;
            doubts &= doubts - 1;
            // As `are_among` and `lower_halves` put them.
            let (half, place) = (bit / (2 * V::LANES), bit % (2 * V::LANES));
            let value = group[(2 * half + place % 2) * V::LANES + place / 2];
            let number = grid.number(value);
            // It was taken to be in this bin.
            let edge = (number >> STEP_BITS) as usize;
            if let Some(edge) = edge.checked_sub(1).filter(|e| *e < EDGES) {
                found.below[edge] += u64::from(value < bins.edges[edge]);
            }
            let is_before = value < bins.near[0];
            found.before += u64::from(is_before && number >= i32::from(grid.first));
            if !is_before && value < bins.near[1] {
                found.near.push(value);
            }
        }
    }
    for (count, edge) in found.below.iter_mut().zip(bins.edges) {
        *count += rest.iter().filter(|v| **v < edge).count() as u64;
    }
    found.before += rest.iter().filter(|v| **v < bins.near[0]).count() as u64;
    found.near.extend(rest.iter().filter(|v| **v >= bins.near[0] && **v < bins.near[1]));
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
        let mut fast = [0; 3];
        for (min, max) in ranges {
            let edges = edges(min, max);
            for (low, high) in [(0.49, 0.51), (0.0, 0.001), (0.9, 2.0), (0.5, 0.5), (-1.0, 3.0)] {
                let near = [low, high].map(|part| (min + (max - min) * part) as f32);
                let bins = Bins::new(min as f32, max as f32, edges, near);
                let lengths = [0, 1, 31, 32, 100, 4096, 10_000];
                for (n, beside) in
                    lengths.map(|n| [0, 1, 2].map(|beside| (n, beside))).as_flattened()
                {
                    let value = |i: usize| {
                        let edge = [edges[i % EDGES], near[i % 2]][i % 7 % 2];
                        let shift = i % [usize::MAX, 50, 4][*beside];
                        let value = match shift {
                            0 => edge,
                            1 => edge.next_down(),
                            2 => edge.next_up(),
                            _ => (min + (max - min) * next()) as f32,
                        };
                        value.clamp(min as f32, max as f32)
                    };
                    let values: Vec<f32> = (0..*n).map(value).collect();
                    let below = |edge: f32| values.iter().filter(|v| **v < edge).count() as u64;
                    let mut kept: Vec<f32> =
                        values.iter().copied().filter(|v| *v >= near[0] && *v < near[1]).collect();
                    kept.sort_by(f32::total_cmp);
                    for level in Level::available() {
                        let mut found = Binned::default();
                        bins.count(level, &values, true, Prefetcher::new(&values), &mut found);
                        let what = format!("{level} {min} {max} {n} {low} {beside}");
                        assert_eq!(found.below, edges.map(below), "{what}");
                        assert_eq!(found.before, below(near[0]), "{what}");
                        found.near.sort_by(f32::total_cmp);
                        assert_eq!(found.near, kept, "{what}");
                        let part = &values[..(*n).min(TOGETHER)];
                        let fast = &mut fast[*beside];
                        let next = Prefetcher::behind(part);
                        *fast += u32::from(count_by_number(level, part, &bins, next, &mut found));
                    }
                }
            }
        }
        // Most are counted the fast way, but where many values are put beside edges.
        assert!(fast[0] > 100 && fast[1] > 50 && fast[2] < fast[1], "{fast:?}");
    }
}
