//! The best of many scores.

use crate::Hit;
use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A row and its score, which is not NaN.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scored {
    pub(crate) row: usize,
    pub(crate) score: f64,
}

/// The order of results: higher scores first, of the same score the lower row. Scores that are kept
/// are not NaN, so it is an order; and as no two rows are equal in it, the best `k` do not depend on
/// how the rows were divided.
fn order(a: &Scored, b: &Scored) -> Ordering {
    b.score.partial_cmp(&a.score).unwrap_or(Ordering::Equal).then(a.row.cmp(&b.row))
}

/// Sorts what several threads found and keeps the best.
pub(crate) fn best_of(mut found: Vec<Scored>, k: usize) -> Vec<Hit> {
    if k < found.len() && k > 0 {
        found.select_nth_unstable_by(k - 1, order);
    }
    found.truncate(k);
    found.sort_unstable_by(order);
    #[allow(clippy::cast_possible_truncation, reason = "rounded once, at the end")]
    found.iter().map(|one| Hit { row: one.row, score: one.score as f32 }).collect()
}

/// At most `k` rows, the best so far of those that a thread has seen. Memory grows with what was
/// found, never from `k`.
pub(crate) struct Top {
    k: usize,
    /// The worst is on top.
    heap: BinaryHeap<Ranked>,
}

impl Top {
    pub(crate) fn new(k: usize) -> Top {
        Top { k, heap: BinaryHeap::new() }
    }

    /// What the next row must reach: the worst score so far; anything while there are fewer than
    /// `k`.
    pub(crate) fn threshold(&self) -> f64 {
        match self.heap.peek() {
            Some(worst) if self.heap.len() >= self.k => worst.0.score,
            _ => f64::NEG_INFINITY,
        }
    }

    /// Takes a row that must be behind all that were offered before: then a score that only equals
    /// the worst need not be kept. Returns the threshold if it may have changed.
    pub(crate) fn offer(&mut self, row: usize, score: f64) -> Option<f64> {
        let scored = Scored { row, score };
        if score.is_nan() || self.k == 0 {
            return None;
        }
        if self.heap.len() < self.k {
            self.heap.push(Ranked(scored));
        } else {
            let mut worst = self.heap.peek_mut().filter(|worst| score > worst.0.score)?;
            *worst = Ranked(scored);
        }
        (self.heap.len() >= self.k).then(|| self.threshold())
    }

    /// What was kept, in no order.
    pub(crate) fn into_scored(self) -> impl Iterator<Item = Scored> {
        self.heap.into_iter().map(|ranked| ranked.0)
    }
}

/// A row among others: the worse is the greater.
#[derive(Clone, Copy)]
struct Ranked(Scored);

impl Ord for Ranked {
    fn cmp(&self, other: &Self) -> Ordering {
        order(&self.0, &other.0)
    }
}

impl PartialOrd for Ranked {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Ranked {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Ranked {}

/// A score that `k` rows of some thread have reached, for all threads to know. A row with less is none
/// of the best. One with the same may be: its number decides.
pub(crate) struct Shared(AtomicU64);

impl Shared {
    pub(crate) fn new() -> Shared {
        Shared(AtomicU64::new(to_bits(f64::NEG_INFINITY)))
    }

    pub(crate) fn get(&self) -> f64 {
        from_bits(self.0.load(Relaxed))
    }

    pub(crate) fn raise(&self, score: f64) {
        self.0.fetch_max(to_bits(score), Relaxed);
    }
}

/// Bits in the order of the numbers.
fn to_bits(score: f64) -> u64 {
    let bits = score.to_bits();
    if bits >> 63 == 1 { !bits } else { bits | 1 << 63 }
}

fn from_bits(bits: u64) -> f64 {
    f64::from_bits(if bits >> 63 == 1 { bits & !(1 << 63) } else { !bits })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shared_scores_only_rise() {
        let shared = Shared::new();
        assert_eq!(shared.get(), f64::NEG_INFINITY);
        for (raised, expected) in
            [(-2.5, -2.5), (-3.0, -2.5), (-0.0, 0.0), (0.0, 0.0), (1e300, 1e300), (7.0, 1e300)]
        {
            shared.raise(raised);
            assert_eq!(shared.get(), expected);
        }
    }
}
