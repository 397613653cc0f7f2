//! Looking at every row.

use crate::prepared::Batch;
use crate::top::{Top, best_of};
use crate::{Error, Hit, Metric, Query, Rows, Unreadable};
use std::sync::atomic::{AtomicUsize, Ordering};
use weighbridge_codec::dot;
use weighbridge_codec::parallel::*;

/// How many values of rows are taken at a time: they fit the L2 cache of a core, so that decoded
/// rows are still in it when they are multiplied.
const BLOCK_VALUES: usize = 1 << 16;

/// How many products are kept at a time: as above, they fit the L2 cache.
const BLOCK_PRODUCTS: usize = 1 << 15;

/// How many queries go through the rows together. With more, reading the rows once for all of them
/// would save next to nothing.
const GROUP_QUERIES: usize = 64;

/// How many hits each thread may keep for a group. Where many are wanted groups are smaller.
const MOST_HITS: usize = 1 << 20;

/// With fewer multiplications than this, other threads are not worth waking.
const SINGLE_THREAD_WORK: usize = 1 << 17;

/// The `k` rows nearest to each query, the nearest first, of equal scores the lower row; fewer
/// where there are not so many. Rows whose score is NaN are not found.
///
/// # Errors
///
/// When a query does not have as many values as a row, or rows can't be read.
///
/// # Panics
///
/// When [`Rows::block`] gives another number of values than it was asked for.
pub fn nearest<R: Rows + ?Sized>(
    rows: &R,
    queries: &[Query],
    k: usize,
    metric: Metric,
) -> Result<Vec<Vec<Hit>>, Error> {
    nearest_within(rows, usize::MAX, queries, k, metric)
}

/// Like [`nearest`] among the first `limit` rows, or all where there are fewer.
///
/// # Errors
///
/// When a query does not have as many values as a row, or rows can't be read.
///
/// # Panics
///
/// When [`Rows::block`] gives another number of values than it was asked for.
pub fn nearest_within<R: Rows + ?Sized>(
    rows: &R,
    limit: usize,
    queries: &[Query],
    k: usize,
    metric: Metric,
) -> Result<Vec<Vec<Hit>>, Error> {
    nearest_telling(rows, limit, queries, k, metric).map(|(hits, _)| hits)
}

/// Like [`nearest_within`], and says which rows no query can find by the cosine because they hold
/// NaN or an infinity.
///
/// # Errors
///
/// When a query does not have as many values as a row, or rows can't be read.
///
/// # Panics
///
/// When [`Rows::block`] gives another number of values than it was asked for.
pub fn nearest_telling<R: Rows + ?Sized>(
    rows: &R,
    limit: usize,
    queries: &[Query],
    k: usize,
    metric: Metric,
) -> Result<(Vec<Vec<Hit>>, Option<NotFinite>), Error> {
    let (dim, count) = (rows.dim(), rows.count().min(limit));
    for (index, query) in queries.iter().enumerate() {
        if query.vector.len() != dim {
            let found = query.vector.len();
            return Err(Error::Dimension { query: index, expected: dim, found });
        }
    }
    let k = k.min(count);
    if k == 0 {
        return Ok((vec![Vec::new(); queries.len()], None));
    }
    let not_finite = Counter::default();
    let group = (MOST_HITS / k).clamp(1, GROUP_QUERIES);
    let groups = queries.chunks(group).enumerate().map(|(i, queries)| {
        // All groups meet the same rows.
        let not_finite = (i == 0).then_some(&not_finite);
        let batch = Batch::new(queries, metric);
        let queries = batch.queries.len();
        let block =
            (BLOCK_VALUES / dim.max(1)).min(BLOCK_PRODUCTS / queries).max(1).next_multiple_of(4);
        Pass { rows, dim, count, k, block, batch, next: AtomicUsize::new(0), not_finite }.run()
    });
    let groups = groups.collect::<Result<Vec<_>, _>>().map_err(Error::Rows)?;
    Ok((groups.into_iter().flatten().collect(), not_finite.found()))
}

/// Rows that hold NaN or an infinity. Their cosine with anything is NaN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NotFinite {
    /// How many there are.
    pub rows: usize,
    /// The first of them.
    pub first: usize,
}

/// Counts such rows from several threads.
struct Counter {
    rows: AtomicUsize,
    first: AtomicUsize,
}

impl Default for Counter {
    fn default() -> Counter {
        Counter { rows: AtomicUsize::new(0), first: AtomicUsize::new(usize::MAX) }
    }
}

impl Counter {
    /// Looks at some rows from `start` on; only those whose squared length is not finite can hold
    /// such values.
    fn look(&self, start: usize, rows: &[f32], dim: usize, squares: &[f32]) {
        for (i, _) in squares.iter().enumerate().filter(|(_, square)| !square.is_finite()) {
            if rows[i * dim..][..dim].iter().any(|v| !v.is_finite()) {
                self.rows.fetch_add(1, Ordering::Relaxed);
                self.first.fetch_min(start + i, Ordering::Relaxed);
            }
        }
    }

    fn found(&self) -> Option<NotFinite> {
        let rows = self.rows.load(Ordering::Relaxed);
        (rows > 0).then(|| NotFinite { rows, first: self.first.load(Ordering::Relaxed) })
    }
}

/// One pass over all rows with a group of queries.
struct Pass<'a, R: ?Sized> {
    rows: &'a R,
    dim: usize,
    count: usize,
    k: usize,
    /// How many rows are taken at a time.
    block: usize,
    batch: Batch,
    /// The block that no thread has taken yet.
    next: AtomicUsize,
    /// Where rows are counted that no query finds.
    not_finite: Option<&'a Counter>,
}

impl<R: Rows + ?Sized> Pass<'_, R> {
    fn run(&self) -> Result<Vec<Vec<Hit>>, Unreadable> {
        let queries = self.batch.queries.len();
        let work = self.count.saturating_mul(self.dim).saturating_mul(queries);
        let threads = match work {
            ..SINGLE_THREAD_WORK => 1,
            _ => self.count.div_ceil(self.block).min(current_num_threads()),
        };
        let tops_of_threads = match threads {
            1 => vec![self.take_blocks()?],
            _ => {
                let threads = (0..threads).into_par_iter().with_max_len(1);
                threads.map(|_| self.take_blocks()).collect::<Result<_, _>>()?
            }
        };
        let mut hits = vec![Vec::new(); queries];
        for tops in tops_of_threads {
            for (hits, top) in hits.iter_mut().zip(tops) {
                hits.extend(top.into_hits());
            }
        }
        Ok(hits.into_iter().map(|hits| best_of(hits, self.k)).collect())
    }

    /// Takes blocks until there are none. A thread gets them in ascending order.
    fn take_blocks(&self) -> Result<Vec<Top>, Unreadable> {
        let queries = &self.batch.queries;
        let mut tops: Vec<Top> = queries.iter().map(|_| Top::new(self.k)).collect();
        let (mut buffer, mut products, mut squares) = (Vec::new(), Vec::new(), Vec::new());
        loop {
            let index = self.next.fetch_add(1, Ordering::Relaxed);
            if index >= self.count.div_ceil(self.block) {
                return Ok(tops);
            }
            let start = index * self.block;
            let n = self.block.min(self.count - start);
            let rows = match self.rows.block(start, n, &mut buffer) {
                Ok(rows) => rows,
                Err(why) => {
                    // The others need not go on.
                    self.next.store(self.count.div_ceil(self.block), Ordering::Relaxed);
                    return Err(why);
                }
            };
            assert_eq!(Some(rows.len()), n.checked_mul(self.dim), "as many values as asked for");
            products.resize(n * queries.len(), 0.0);
            squares.resize(n, 0.0);
            self.score(start, rows, &mut products, &mut squares);
            for ((top, query), scores) in tops.iter_mut().zip(queries).zip(products.chunks_exact(n))
            {
                top.offer(start, scores, &query.excluded);
            }
        }
    }

    /// Computes the scores of some rows, from `start` on, for all queries.
    fn score(&self, start: usize, rows: &[f32], scores: &mut [f32], squares: &mut [f32]) {
        let batch = &self.batch;
        match batch.metric {
            // Rows without values are all zero.
            _ if self.dim == 0 => scores.fill(0.0),
            Metric::Dot | Metric::L2 => dot::dots(rows, &batch.vectors, self.dim, scores),
            Metric::Cosine => {
                dot::dots_and_squares(rows, &batch.vectors, self.dim, scores, squares);
                if let Some(counter) = self.not_finite {
                    counter.look(start, rows, self.dim, squares);
                }
                batch.cosines(rows, squares, scores);
            }
        }
    }
}
