//! The best of many scores.

use crate::Hit;
use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// The order of results: higher scores first, of the same score the lower row. Scores that are kept
/// are not NaN, so it is an order; and as no two hits are equal in it, the best `k` do not depend on
/// how the rows were divided.
fn order(a: &Hit, b: &Hit) -> Ordering {
    b.score.partial_cmp(&a.score).unwrap_or(Ordering::Equal).then(a.row.cmp(&b.row))
}

/// Sorts the hits of several threads and keeps the best.
pub(crate) fn best_of(mut hits: Vec<Hit>, k: usize) -> Vec<Hit> {
    if k < hits.len() && k > 0 {
        hits.select_nth_unstable_by(k - 1, order);
    }
    hits.truncate(k);
    hits.sort_unstable_by(order);
    hits
}

/// At most `k` hits, the best so far. Memory grows with what was found, never from `k`.
pub(crate) struct Top {
    k: usize,
    /// The worst is on top.
    heap: BinaryHeap<Ranked>,
}

impl Top {
    pub(crate) fn new(k: usize) -> Top {
        Top { k, heap: BinaryHeap::new() }
    }

    /// Takes the scores of the rows from `first` on, which must be behind all that were offered
    /// before: then a score that only equals the worst need not be kept.
    pub(crate) fn offer(&mut self, first: usize, scores: &[f32], excluded: &[usize]) {
        let mut row = first;
        // Nearly all scores are too low. Comparing many at a time without a branch shows it
        // quickly.
        for scores in scores.chunks(32) {
            let threshold = if self.heap.len() < self.k { None } else { self.threshold() };
            let wanted = match threshold {
                Some(threshold) => {
                    scores.iter().fold(false, |any, &score| any | (score > threshold))
                }
                None => self.k > 0,
            };
            if wanted {
                for (row, &score) in (row..).zip(scores) {
                    self.consider(Hit { row, score }, excluded);
                }
            }
            row += scores.len();
        }
    }

    /// The hits, in no order.
    pub(crate) fn into_hits(self) -> impl Iterator<Item = Hit> {
        self.heap.into_iter().map(|ranked| ranked.0)
    }

    /// The score that the next hit must beat: that of the worst so far.
    fn threshold(&self) -> Option<f32> {
        self.heap.peek().map(|worst| worst.0.score)
    }

    fn consider(&mut self, hit: Hit, excluded: &[usize]) {
        let full = self.heap.len() >= self.k;
        // Comparing with NaN is false: it is never kept.
        let better = match self.threshold() {
            Some(threshold) if full => hit.score > threshold,
            _ => !full && !hit.score.is_nan(),
        };
        if better && excluded.binary_search(&hit.row).is_err() {
            if full && let Some(mut worst) = self.heap.peek_mut() {
                *worst = Ranked(hit);
            } else {
                self.heap.push(Ranked(hit));
            }
        }
    }
}

/// A hit among others: the worse is the greater.
#[derive(Clone, Copy)]
struct Ranked(Hit);

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
