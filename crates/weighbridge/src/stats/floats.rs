//! Of f32, in two walks. The first finds the moments, and counts the values by their first 16 bits:
//! that says in which of these groups the median is. The second counts within that group, and
//! between the edges of the histogram.

use super::list::{BLOCK, PART, add_counts, blocks};
use super::{Bins, Stats};
use weighbridge_codec::parallel::*;
use weighbridge_codec::simd::Level;
use weighbridge_codec::tally::{CodeCounts, EDGES, Moments, count_below};
use weighbridge_format::{Error, Tensor};

/// What one walk found in some parts.
struct Found {
    /// Of each part by itself: joined in their order they don't depend on who did which.
    moments: Vec<Moments>,
    below: [u64; EDGES],
    /// Counts of codes, of one kind or two.
    codes: [Vec<u64>; 2],
}

impl Found {
    fn nothing() -> Found {
        Found { moments: Vec::new(), below: [0; EDGES], codes: [Vec::new(), Vec::new()] }
    }

    fn join(mut self, other: Found) -> Found {
        self.moments.extend(other.moments);
        self.below.iter_mut().zip(other.below).for_each(|(a, b)| *a += b);
        let ([a, b], [c, d]) = (self.codes, other.codes);
        self.codes = [add_counts(a, c), add_counts(b, d)];
        self
    }
}

/// Walks through all parts of a tensor, on all cores: what a part begins with, what its values add to
/// that, and what was found.
fn walk<S>(
    tensor: &Tensor,
    begin: impl Fn() -> S + Send + Sync,
    add: impl Fn(&mut S, &[f32]) + Send + Sync,
    end: impl Fn(S) -> Found + Send + Sync,
) -> Result<Found, Error> {
    let parts: Vec<u64> = (0..tensor.count()).step_by(PART).collect();
    let part = |start: u64| {
        let (mut raw, mut values, mut state) = (Vec::new(), vec![0.0; BLOCK], begin());
        for (at, n) in blocks(tensor, start) {
            tensor.decode(at, &mut values[..n], &mut raw)?;
            add(&mut state, &values[..n]);
        }
        Ok(end(state))
    };
    parts.into_par_iter().map(part).try_reduce(Found::nothing, |a, b| Ok(a.join(b)))
}

#[allow(clippy::cast_precision_loss)]
pub(super) fn of_floats(tensor: &Tensor) -> Result<Stats, Error> {
    let level = Level::best();
    let first = walk(
        tensor,
        || (Moments::NONE, CodeCounts::new()),
        |(moments, codes), values| {
            *moments = moments.join(Moments::of(level, values));
            codes.add_prefixes(values);
        },
        |(moments, codes)| Found {
            moments: vec![moments],
            codes: [codes.to_vec(), Vec::new()],
            ..Found::nothing()
        },
    )?;
    let m = first.moments.into_iter().fold(Moments::NONE, Moments::join);
    let mut s = Stats {
        count: tensor.count(),
        nan: m.nan,
        inf: m.inf + m.negative_inf,
        zero: m.zero,
        ..Stats::default()
    };
    if m.finite == 0 {
        return Ok(s.without_finite());
    }
    (s.min, s.max, s.mean) = (f64::from(m.min), f64::from(m.max), m.mean);
    s.std = (m.squares / m.finite as f64).sqrt();
    let mut bins = Bins::new(s.min, s.max, false);
    let edges = std::array::from_fn(|i| bins.edges.get(i + 1).map_or(f32::INFINITY, |e| above(*e)));
    let lower = group(&first.codes[0], (m.finite - 1) / 2);
    let upper = group(&first.codes[0], m.finite / 2);
    let second = walk(
        tensor,
        || (Found::nothing(), [CodeCounts::new(), CodeCounts::new()]),
        |(found, [low, high]), values| {
            count_below(level, values, &edges, &mut found.below);
            low.add_rests(level, values, lower.prefix);
            if upper.prefix != lower.prefix {
                high.add_rests(level, values, upper.prefix);
            }
        },
        |(found, codes)| Found { codes: codes.map(|codes| codes.to_vec()), ..found },
    )?;
    let high = usize::from(upper.prefix != lower.prefix);
    s.median = f64::midpoint(lower.value(&second.codes[0]), upper.value(&second.codes[high])) + 0.0;
    let mut before = 0;
    let ends = second.below.iter().map(|below| below - m.negative_inf).take(bins.counts.len() - 1);
    for (count, end) in bins.counts.iter_mut().zip(ends.chain([m.finite])) {
        *count = end - before;
        before = end;
    }
    s.histogram = bins.into_list();
    Ok(s)
}

/// The smallest f32 that is not below a value.
#[allow(clippy::cast_possible_truncation)]
fn above(value: f64) -> f32 {
    let near = value as f32;
    if f64::from(near) < value { near.next_up() } else { near }
}

/// Values with the same first 16 bits, and a rank among them.
#[derive(Clone, Copy)]
struct Group {
    prefix: u16,
    rank: u64,
}

/// The group that the finite value of a rank is in.
fn group(counts: &[u64], mut rank: u64) -> Group {
    // Negative numbers come first, the largest magnitudes at their head.
    let finite = (0x8000..=0xFF7F).rev().chain(0..=0x7F7F);
    let mut last = 0;
    for prefix in finite {
        let count = counts.get(usize::from(prefix)).copied().unwrap_or(0);
        if rank < count {
            return Group { prefix, rank };
        }
        rank -= count;
        last = prefix;
    }
    Group { prefix: last, rank }
}

impl Group {
    /// The value of the rank, by how often the last 16 bits of the group's values occur.
    fn value(self, counts: &[u64]) -> f64 {
        let is_negative = self.prefix >> 15 == 1;
        let (mut rank, mut rest) = (self.rank, 0u16);
        for code in 0..=u16::MAX {
            rest = if is_negative { u16::MAX - code } else { code };
            let count = counts.get(usize::from(rest)).copied().unwrap_or(0);
            if rank < count {
                break;
            }
            rank -= count;
        }
        f64::from(f32::from_bits(u32::from(self.prefix) << 16 | u32::from(rest)))
    }
}
