//! What rounding did to neighbours: one file of vectors beside another of the same.

use super::Index;
use serde::Serialize;
#[cfg(feature = "fs")]
use std::path::Path;
#[cfg(feature = "fs")]
use weighbridge_format::{Container, model::MATRIX};
use weighbridge_format::{Error, Progress, Stage};
use weighbridge_search::{Ask, Metric, Query, score};

/// Rows that are asked with where nobody asked for a measurement: it takes no longer than writing.
pub(crate) const USUAL_SAMPLE: usize = 200;

/// Queries that go through both files together.
const TOGETHER: usize = 256;

/// How neighbours are compared.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct RecallSettings {
    /// Neighbours of each query; of an index with fewer rows, all.
    pub k: usize,
    /// What makes a row near.
    pub metric: Metric,
    /// Rows of the first file that are asked with, if nothing else is: all where there are no more.
    pub sample: usize,
    /// Other seeds choose other rows.
    pub seed: u64,
}

impl Default for RecallSettings {
    fn default() -> RecallSettings {
        RecallSettings { k: 10, metric: Metric::Cosine, sample: 1000, seed: 1 }
    }
}

/// How much of the neighbours is the same. Its JSON is described in docs/json.md.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Recall {
    /// Neighbours of each query.
    pub k: usize,
    /// How many queries there were.
    pub queries: usize,
    /// The share of the first file's neighbours that are neighbours in the second.
    pub recall: f64,
    /// Spearman's correlation between the order of the first file's neighbours there and the order
    /// that the second gives the same rows, the mean over all queries.
    pub rank_correlation: f64,
    /// The largest difference between the scores that both give one of these rows.
    pub max_score_error: f64,
}

/// Compares the neighbours of the same vectors in two files: of these queries, or of a sample of the
/// first file's own rows, which then are no neighbours of themselves.
///
/// # Errors
/// [`Error::Refused`] if the files have other shapes, or there are not two rows; if they can't be
/// read; [`Error::Cancelled`].
pub fn recall(
    first: &Index,
    second: &Index,
    queries: Option<&Index>,
    settings: &RecallSettings,
    progress: &mut Progress,
) -> Result<Recall, Error> {
    first.check_same_shape(second)?;
    let own = queries.is_none();
    let asked = match queries {
        Some(queries) => sample(queries.len(), queries.len(), settings.seed),
        None => sample(first.len(), settings.sample, settings.seed),
    };
    let from = queries.unwrap_or(first);
    // A row is no neighbour of itself.
    let k = settings.k.min(first.len() - usize::from(own && !first.is_empty()));
    let ask = Ask::new(k, settings.metric);
    let mut sums = Sums::default();
    progress.begin(Stage::Answering, asked.len() as u64)?;
    for rows in asked.chunks(TOGETHER) {
        let vectors = rows.iter().map(|row| from.row(*row)).collect::<Result<Vec<_>, Error>>()?;
        let queries: Vec<Query> = vectors
            .iter()
            .zip(rows)
            .map(|(vector, row)| {
                let exclude = if own { std::slice::from_ref(row) } else { &[] };
                Query { vector, exclude }
            })
            // What has no direction or holds NaN is near nothing, in no file.
            .filter(|query| first.can_be_asked(query.vector, settings.metric))
            .collect();
        let (before, after) =
            (first.search_batch(&queries, &ask)?, second.search_batch(&queries, &ask)?);
        for ((query, before), after) in queries.iter().zip(&before).zip(&after) {
            let scores: Result<Vec<[f64; 2]>, Error> = before
                .iter()
                .map(|hit| {
                    let of = |index: &Index| {
                        Ok::<_, Error>(score(&index.row(hit.row)?, query.vector, settings.metric))
                    };
                    Ok([of(first)?, of(second)?])
                })
                .collect();
            let kept = before.iter().filter(|b| after.iter().any(|a| a.row == b.row)).count();
            sums.add(kept, &scores?);
        }
        progress.advance(rows.len() as u64)?;
    }
    Ok(sums.result(k))
}

/// What became of the neighbours of rows or words in a file that was written of them; nothing if they
/// are none, or fewer than two.
///
/// # Errors
/// If the file can't be read; [`Error::Cancelled`].
#[cfg(feature = "fs")]
pub fn recall_of_written(
    before: &Container,
    written: &Path,
    progress: &mut Progress,
) -> Result<Option<Recall>, Error> {
    let is_words = before.vocabulary.is_some() && before.tensor(MATRIX).is_some();
    if before.rows().is_none() && !is_words {
        return Ok(None);
    }
    let Ok(first) = Index::of(before, None) else { return Ok(None) };
    let second = Index::open(written)?;
    if first.len() < 2 || first.check_same_shape(&second).is_err() {
        return Ok(None);
    }
    let settings = RecallSettings { sample: USUAL_SAMPLE, ..RecallSettings::default() };
    recall(&first, &second, None, &settings, progress).map(Some)
}

/// Some of `count` numbers in ascending order, all where there are no more: a step, and from a
/// seeded place within it.
pub(crate) fn sample(count: usize, most: usize, seed: u64) -> Vec<usize> {
    if count <= most {
        return (0..count).collect();
    }
    let mut state = seed;
    let mut random = || {
        // Steele and Vigna's SplitMix64: any seed will do.
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    };
    // One of each part, so that the whole file is looked at.
    let place = |i: usize| (i as u128 * count as u128 / most as u128) as usize;
    let one = |i: usize| {
        let (start, end) = (place(i), place(i + 1));
        start + (random() % (end - start) as u64) as usize
    };
    (0..most).map(one).collect()
}

#[derive(Default)]
struct Sums {
    queries: usize,
    kept: usize,
    wanted: usize,
    correlations: f64,
    ranked: usize,
    largest: f64,
}

impl Sums {
    /// The scores of a query's neighbours in both files.
    fn add(&mut self, kept: usize, scores: &[[f64; 2]]) {
        self.queries += 1;
        self.kept += kept;
        self.wanted += scores.len();
        if let Some(correlation) = spearman(scores) {
            self.correlations += correlation;
            self.ranked += 1;
        }
        let largest = scores.iter().map(|[a, b]| (a - b).abs()).fold(0.0, f64::max);
        self.largest = self.largest.max(largest);
    }

    #[allow(clippy::cast_precision_loss)]
    fn result(self, k: usize) -> Recall {
        let share = |part: f64, all: usize| if all == 0 { 1.0 } else { part / all as f64 };
        Recall {
            k,
            queries: self.queries,
            recall: share(self.kept as f64, self.wanted),
            rank_correlation: share(self.correlations, self.ranked),
            max_score_error: self.largest,
        }
    }
}

/// The correlation of ranks; equal scores share the mean of theirs. None where one side has no
/// order.
#[allow(clippy::cast_precision_loss)]
fn spearman(scores: &[[f64; 2]]) -> Option<f64> {
    let ranks = |side: usize| {
        let mut order: Vec<usize> = (0..scores.len()).collect();
        order.sort_by(|a, b| scores[*b][side].total_cmp(&scores[*a][side]));
        let mut ranks = vec![0.0; scores.len()];
        for equal in order.chunk_by(|a, b| scores[*a][side] == scores[*b][side]) {
            // Chunks are parts of the order, one behind the other.
            let start =
                equal.as_ptr().addr().wrapping_sub(order.as_ptr().addr()) / size_of::<usize>();
            let mean = start as f64 + (equal.len() - 1) as f64 / 2.0;
            equal.iter().for_each(|i| ranks[*i] = mean);
        }
        ranks
    };
    let (a, b) = (ranks(0), ranks(1));
    let middle = (scores.len() as f64 - 1.0) / 2.0;
    let (mut ab, mut aa, mut bb) = (0.0, 0.0, 0.0);
    for (x, y) in a.iter().zip(&b) {
        let (x, y) = (x - middle, y - middle);
        ab += x * y;
        aa += x * x;
        bb += y * y;
    }
    (aa > 0.0 && bb > 0.0).then(|| ab / (aa * bb).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_that_are_shared_or_turned_around_show() {
        let up: Vec<[f64; 2]> = (0..5).map(|i| [f64::from(i), f64::from(i * i)]).collect();
        assert_eq!(spearman(&up), Some(1.0));
        let down: Vec<[f64; 2]> = (0..5).map(|i| [f64::from(i), -f64::from(i)]).collect();
        assert_eq!(spearman(&down), Some(-1.0));
        // scipy.stats.spearmanr([1, 2, 3, 4, 5], [5, 6, 7, 8, 7])
        let some = [[1.0, 5.0], [2.0, 6.0], [3.0, 7.0], [4.0, 8.0], [5.0, 7.0]];
        let rho = spearman(&some).unwrap();
        assert!((rho - 0.820_782_681_668_123_3).abs() < 1e-12, "{rho}");
        assert_eq!(spearman(&[[1.0, 2.0], [1.0, 3.0]]), None);
        assert_eq!(spearman(&[[1.0, 2.0]]), None);
        assert_eq!(spearman(&[]), None);
    }

    #[test]
    fn samples_are_spread_and_seeded() {
        assert_eq!(sample(3, 5, 1), [0, 1, 2]);
        let some = sample(1000, 10, 1);
        assert!(some.iter().enumerate().all(|(i, row)| row / 100 == i), "{some:?}");
        assert_eq!(some, sample(1000, 10, 1));
        assert_ne!(some, sample(1000, 10, 2));
        assert_eq!(sample(7, 6, 3).len(), 6);
    }
}
