//! Of f32, in two walks. The first finds the moments, and takes a sample, which tells nearly where
//! the median is. The second counts between the edges of the histogram, and collects the few values
//! near the median: it is one of them. Where it is not, it is found by counting again and again.

use super::list::blocks;
use super::{Bins, Stats};
use weighbridge_codec::DType;
use weighbridge_codec::parallel::*;
use weighbridge_codec::simd::{Level, Prefetcher};
use weighbridge_codec::tally::{self, Binned, Bins as Counter, EDGES, Moments, count_below};
use weighbridge_format::{Encoding, Error, Tensor, View};
use zerocopy::FromBytes;

/// Values that one thread goes through at a time, and those that are read at once, which the nearest
/// cache holds.
const PART: usize = 1 << 21;
const BLOCK: usize = 1 << 12;

/// Values near the median are collected up to this many.
const MOST: usize = 1 << 23;

/// A block of values, its number among those of a tensor, and the memory that the next one is made of.
struct Block<'a> {
    number: usize,
    values: &'a [f32],
    next: Prefetcher<'a>,
}

/// Walks through all parts of a tensor, on all cores. `add` puts a block to what was found in its part; what
/// parts found is joined in their order.
fn walk<T: Send>(
    tensor: &Tensor,
    nothing: impl Fn() -> T + Send + Sync,
    add: impl Fn(&mut T, Block) + Send + Sync,
    join: impl Fn(T, T) -> T + Send + Sync,
) -> Result<T, Error> {
    let parts: Vec<u64> = (0..tensor.count()).step_by(PART).collect();
    let part = |start: u64| {
        let (mut raw, mut values, mut found) = (Vec::new(), vec![0.0; BLOCK], nothing());
        for (at, n) in blocks(tensor, start, PART, BLOCK) {
            let number = usize::try_from(at).unwrap_or(usize::MAX) / BLOCK;
            // Values that are there need not be copied.
            if tensor.encoding == Encoding::Plain(DType::F32) && cfg!(target_endian = "little") {
                let bytes = tensor.canonical(at, n, &mut raw)?;
                if let Ok(values) = <[f32]>::ref_from_bytes(bytes) {
                    add(&mut found, Block { number, values, next: Prefetcher::behind(values) });
                    continue;
                }
            }
            tensor.decode(at, &mut values[..n], &mut raw)?;
            let next = Prefetcher::new(bytes_of(tensor, at + n as u64, n));
            add(&mut found, Block { number, values: &values[..n], next });
        }
        Ok(found)
    };
    parts.into_par_iter().map(part).try_reduce(&nothing, |a, b| Ok(join(a, b)))
}

/// About the bytes that some values are made of, where they are in memory.
fn bytes_of(tensor: &Tensor, start: u64, n: usize) -> &[u8] {
    let bytes = tensor.view().and_then(View::resident).unwrap_or_default();
    let place = |value: u64| {
        let part = u128::from(value) * bytes.len() as u128 / u128::from(tensor.count().max(1));
        usize::try_from(part).unwrap_or(usize::MAX).min(bytes.len())
    };
    &bytes[place(start)..place(start.saturating_add(n as u64))]
}

/// What the first walk finds.
#[derive(Default)]
struct First {
    /// Of each part by itself: joined in their order they don't depend on who did which.
    moments: Vec<Moments>,
    /// Whether all values of each block are finite.
    finite: Vec<bool>,
    sample: Vec<f32>,
}

/// What the second walk finds.
#[derive(Default)]
struct Second {
    binned: Binned,
    /// How many values are near the median, whether they were kept or not.
    nearby: u64,
    /// How many values are below the first of the two that the median is likely between, and how many are not
    /// above the last; only where either is there too often to be kept.
    ends: [u64; 2],
}

impl Second {
    /// The value of a rank, if it was found.
    fn select(&self, level: Level, likely: &Likely, rank: u64) -> Option<f32> {
        let Binned { before, near, .. } = &self.binned;
        if likely.is_often {
            if !(self.ends[0]..self.ends[1]).contains(&rank) {
                return None;
            }
            if rank < *before || likely.low == likely.high {
                return Some(likely.low);
            }
            if rank - *before >= self.nearby {
                return Some(likely.high);
            }
        }
        let place = usize::try_from(rank.checked_sub(*before)?).ok()?;
        let is_whole = near.len() as u64 == self.nearby;
        (is_whole && place < near.len()).then(|| tally::select(level, near, place))
    }
}

#[allow(clippy::cast_precision_loss)]
pub(super) fn of_floats(tensor: &Tensor) -> Result<Stats, Error> {
    let level = Level::best();
    let first = look(tensor, level)?;
    let m = first.moments.iter().copied().fold(Moments::NONE, Moments::join);
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
    let likely = Likely::of(level, &first.sample);
    let counter = Counter::new(m.min, m.max, edges, likely.kept());
    let second = count(tensor, level, &counter, &likely, &first.finite)?;
    let ranks = [(m.finite - 1) / 2, m.finite / 2].map(|rank| m.negative_inf + rank);
    let lower = second.select(level, &likely, ranks[0]);
    let same = ranks[0] == ranks[1];
    let upper = if same { lower } else { second.select(level, &likely, ranks[1]) };
    let [lower, upper] = match lower.zip(upper) {
        Some((lower, upper)) => [lower, upper].map(f64::from),
        None => select_both(tensor, level, ranks, &likely)?,
    };
    s.median = f64::midpoint(lower, upper) + 0.0;
    let mut before = 0;
    let below = second.binned.below.iter().take(bins.counts.len() - 1);
    let ends = below.map(|below| below.saturating_sub(m.negative_inf));
    for (count, end) in bins.counts.iter_mut().zip(ends.chain([m.finite])) {
        *count = end.saturating_sub(before);
        before = end;
    }
    s.histogram = bins.into_list();
    Ok(s)
}

fn look(tensor: &Tensor, level: Level) -> Result<First, Error> {
    let every = sampled(tensor.count());
    // About as much as a part finds: memory that grows is memory that the system clears.
    let most = usize::try_from(tensor.count()).unwrap_or(PART).min(PART);
    let nothing = || First {
        moments: Vec::with_capacity(1),
        finite: Vec::with_capacity(most.div_ceil(BLOCK)),
        sample: Vec::with_capacity(most.div_ceil(every) + most.div_ceil(BLOCK)),
    };
    walk(
        tensor,
        nothing,
        |first, Block { number, values, next }| {
            let moments = Moments::of(level, values, next);
            match first.moments.last_mut() {
                Some(sum) => *sum = sum.join(moments),
                None => first.moments.push(moments),
            }
            first.finite.push(moments.finite == values.len() as u64);
            // From another place in each block, so that no column of a matrix is preferred.
            let start = number.wrapping_mul(0x9E37_79B1) >> 8 & 0xFFFF;
            let some = values.iter().skip(start % every).step_by(every);
            first.sample.extend(some.filter(|v| v.is_finite()));
        },
        |mut a, b| {
            a.moments.extend(b.moments);
            a.finite.extend(b.finite);
            a.sample.extend(b.sample);
            a
        },
    )
}

/// Of how many values one is taken for the sample. A larger one takes longer, and the more values there
/// are, the more it pays to have fewer of them to collect: both together take least where this grows
/// as the cubic root of their number.
#[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn sampled(count: u64) -> usize {
    let every = 32.0 * (count as f64 / f64::from(1u32 << 20)).cbrt();
    every.clamp(16.0, BLOCK as f64) as usize
}

/// Two values that the median is hardly ever not between, by a sample.
struct Likely {
    low: f32,
    high: f32,
    /// One of the two is there so often, as zero is among quantized values, that counting is cheaper than keeping.
    is_often: bool,
}

impl Likely {
    /// By a sample: three and a half standard deviations of the median's rank away.
    #[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    fn of(level: Level, sample: &[f32]) -> Likely {
        let (half, away) = (sample.len() / 2, (1.75 * (sample.len() as f64).sqrt()) as usize + 1);
        if half < away || half + away >= sample.len() {
            return Likely { low: f32::MIN, high: f32::MAX, is_often: false };
        }
        let low = tally::select(level, sample, half - away);
        let high = tally::select(level, sample, half + away);
        let between = sample.iter().filter(|v| (low..=high).contains(v)).count();
        Likely { low, high, is_often: between > sample.len() / 32 }
    }

    /// The values that are kept, from one to another that is not.
    fn kept(&self) -> [f32; 2] {
        match self.is_often {
            // Nothing is between them.
            true if self.low == self.high => [f32::INFINITY; 2],
            true => [self.low.next_up(), self.high],
            false => [self.low, self.high.next_up()],
        }
    }
}

fn count(
    tensor: &Tensor,
    level: Level,
    counter: &Counter,
    likely: &Likely,
    finite: &[bool],
) -> Result<Second, Error> {
    let ends = [likely.low, likely.high.next_up()];
    walk(
        tensor,
        Second::default,
        |Second { binned, nearby, ends: below }, Block { number, values, next }| {
            let is_finite = finite.get(number).copied().unwrap_or(false);
            if likely.is_often {
                count_below(level, values, &ends, below);
            }
            let had = binned.near.len();
            counter.count(level, values, is_finite, next, binned);
            *nearby += (binned.near.len() - had) as u64;
            binned.near.truncate(MOST);
        },
        |mut a, b| {
            a.binned.below.iter_mut().zip(b.binned.below).for_each(|(a, b)| *a += b);
            a.binned.before += b.binned.before;
            a.nearby += b.nearby;
            a.ends.iter_mut().zip(b.ends).for_each(|(a, b)| *a += b);
            if a.binned.near.len() + b.binned.near.len() <= MOST {
                a.binned.near.extend(b.binned.near);
            }
            a
        },
    )
}

/// The smallest f32 that is not below a value.
#[allow(clippy::cast_possible_truncation)]
fn above(value: f64) -> f32 {
    let near = value as f32;
    if f64::from(near) < value { near.next_up() } else { near }
}

/// The values of a rank and of the same or the next one.
fn select_both(
    tensor: &Tensor,
    level: Level,
    [lower, upper]: [u64; 2],
    likely: &Likely,
) -> Result<[f64; 2], Error> {
    let (found, ranks) = select(tensor, level, lower, likely)?;
    let next = if upper < ranks { found } else { select(tensor, level, upper, likely)?.0 };
    Ok([found, next])
}

/// The value of a rank among all that are no NaN, by counting those below some edges, then below edges
/// between the two that it is between. The first edges are where it is likely. With it the first rank of
/// a larger value.
fn select(
    tensor: &Tensor,
    level: Level,
    rank: u64,
    &Likely { low, high, .. }: &Likely,
) -> Result<(f64, u64), Error> {
    let finite = |v: f32| key(v.clamp(f32::MIN, f32::MAX));
    let likely = [low, low.next_up(), high, high.next_up()].map(finite);
    let (mut from, mut to, mut ranks) = (key(f32::MIN), key(f32::INFINITY), u64::MAX);
    let mut edges: [u32; EDGES] = std::array::from_fn(|i| likely[i % likely.len()]);
    while to - from > 1 {
        let values = edges.map(value);
        let below = walk(
            tensor,
            || [0; EDGES],
            |below, block| count_below(level, block.values, &values, below),
            |a, b| std::array::from_fn(|i| a[i] + b[i]),
        )?;
        for (edge, below) in edges.into_iter().zip(below) {
            if below <= rank {
                from = from.max(edge);
            } else if edge <= to {
                (to, ranks) = (edge, below);
            }
        }
        let (first, span) = (u64::from(from), u64::from(to - from));
        edges = std::array::from_fn(|i| {
            let edge = first + span * (i as u64 + 1) / (EDGES as u64 + 1);
            u32::try_from(edge).unwrap_or(to)
        });
    }
    Ok((f64::from(value(from)), ranks))
}

/// Ordered as the numbers are: negative ones flipped, positive ones above them.
fn key(value: f32) -> u32 {
    let bits = value.to_bits();
    if bits >> 31 == 1 { !bits } else { bits | 1 << 31 }
}

fn value(key: u32) -> f32 {
    f32::from_bits(if key >> 31 == 1 { key & !(1 << 31) } else { !key })
}
