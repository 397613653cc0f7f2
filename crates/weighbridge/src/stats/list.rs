//! Of values that are listed, each with how often it occurs: a few, or all codes of a short type.

use super::{Bins, Stats};
use weighbridge_codec::parallel::*;
use weighbridge_codec::tally::CodeCounts;
use weighbridge_codec::{DType, Scalar, element};
use weighbridge_format::{Error, Tensor};

/// Sorting so many is cheaper than anything else.
pub(super) const FEW: u64 = 4096;

/// Codes that are counted by one thread at a time, and those that are read at once. A part has a
/// table of its own, so it is a large one.
const PART: usize = 1 << 23;
const BLOCK: usize = 1 << 16;

pub(super) fn of_few(tensor: &Tensor) -> Result<Stats, Error> {
    let mut list = Vec::new();
    tensor.for_each_block(|values| list.extend(values.iter().map(|v| (*v, 1))))?;
    Ok(of_list(list, !tensor.encoding.is_real()))
}

/// Of a type of 8 or 16 bits: its codes are counted. `value` is what a stored number stands for.
pub(super) fn of_codes(
    tensor: &Tensor,
    dtype: DType,
    value: impl Fn(Scalar) -> f64,
) -> Result<Stats, Error> {
    let empty = || match dtype.bits() {
        8 => CodeCounts::of_bytes(tensor.count()),
        _ => CodeCounts::of_pairs(),
    };
    let parts: Vec<u64> = (0..tensor.count()).step_by(PART).collect();
    let part = |start: u64| {
        let (mut raw, mut codes) = (Vec::new(), empty());
        for (at, n) in blocks(tensor, start, PART, BLOCK) {
            codes.add(tensor.canonical(at, n, &mut raw)?);
        }
        Ok(codes.to_vec())
    };
    let counts =
        parts.into_par_iter().map(part).try_reduce(Vec::new, |a, b| Ok(add_counts(a, b)))?;
    let found = counts.into_iter().enumerate().filter(|(_, count)| *count > 0);
    let stored = |code: usize| element::read(dtype, &code.to_le_bytes(), 0);
    let list = found.map(|(code, count)| (value(stored(code)), count)).collect();
    Ok(of_list(list, !tensor.encoding.is_real()))
}

/// The blocks of the part that begins with a value: first value and length of each.
pub(super) fn blocks(
    tensor: &Tensor,
    start: u64,
    part: usize,
    block: usize,
) -> impl Iterator<Item = (u64, usize)> {
    let end = tensor.count().min(start + part as u64);
    let length = move |at: u64| usize::try_from(end - at).unwrap_or(usize::MAX).min(block);
    (start..end).step_by(block).map(move |at| (at, length(at)))
}

/// The sum of counts of the same things; none are as good as zeros.
fn add_counts(mut a: Vec<u64>, b: Vec<u64>) -> Vec<u64> {
    if a.is_empty() {
        return b;
    }
    a.iter_mut().zip(b).for_each(|(a, b)| *a += b);
    a
}

#[allow(clippy::cast_precision_loss)]
fn of_list(mut list: Vec<(f64, u64)>, integers: bool) -> Stats {
    let count = |list: &[(f64, u64)], what: fn(f64) -> bool| {
        list.iter().filter(|(v, _)| what(*v)).map(|(_, n)| n).sum()
    };
    let mut s = Stats {
        count: count(&list, |_| true),
        nan: count(&list, f64::is_nan),
        inf: count(&list, f64::is_infinite),
        zero: count(&list, |v| v == 0.0),
        ..Stats::default()
    };
    list.retain(|(v, _)| v.is_finite());
    list.sort_by(|(a, _), (b, _)| a.total_cmp(b));
    let (Some((min, _)), Some((max, _))) = (list.first(), list.last()) else {
        return s.without_finite();
    };
    (s.min, s.max) = (*min, *max);
    let finite: u64 = list.iter().map(|(_, n)| n).sum();
    s.mean = list.iter().map(|(v, n)| v * *n as f64).sum::<f64>() / finite as f64;
    let squares = list.iter().map(|(v, n)| (v - s.mean) * (v - s.mean) * *n as f64);
    s.std = (squares.sum::<f64>() / finite as f64).sqrt();
    let at = |rank: u64| {
        let mut left = rank;
        let found = list.iter().find(|(_, n)| match left.checked_sub(*n) {
            Some(rest) => {
                left = rest;
                false
            }
            None => true,
        });
        found.map_or(f64::NAN, |(v, _)| *v)
    };
    s.median = f64::midpoint(at((finite - 1) / 2), at(finite / 2)) + 0.0;
    let mut bins = Bins::new(s.min, s.max, integers);
    list.iter().for_each(|(v, n)| bins.add(*v, *n));
    s.histogram = bins.into_list();
    s
}
