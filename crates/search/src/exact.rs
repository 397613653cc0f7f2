//! Looking at every row. Kernels give approximate products, as fast as rows can be read, and what may
//! be one of the best is scored once more as the definition says, while it is in the cache.

use crate::bound::{Bound, is_regular, to_x};
use crate::form::codes::Codes;
use crate::form::floats::Floats;
use crate::form::product::Product;
use crate::form::{Buffers, Decoded, Form, Limits, Sums};
use crate::score::score_with;
use crate::top::{Shared, Top, best_of};
use crate::{Ask, Error, Found, Hit, NotFinite, Query, Rows, Stored, Unreadable};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use weighbridge_codec::DType;
use weighbridge_codec::dot::{Reached, next_to_reach};
use weighbridge_codec::panel::PANEL;
use weighbridge_codec::parallel::*;
use weighbridge_codec::simd::Level;

/// How many products with loose queries are kept at a time: they fit the L2 cache.
const BLOCK_PRODUCTS: usize = 1 << 15;

/// How many hits each thread may keep for a group of queries. Where many are wanted groups are
/// smaller.
const MOST_HITS: usize = 1 << 20;

/// With fewer multiplications than this, other threads are not worth waking.
const SINGLE_THREAD_WORK: usize = 1 << 17;

/// How many blocks a thread takes one behind the other, at most.
const MOST_RUN: usize = 8;

/// Of a block in which only one row in so many may be found, only these are looked at.
const SPARSE: usize = 16;

/// See [`crate::Exact`].
pub(crate) fn search<R: Rows + ?Sized>(
    rows: &R,
    queries: &[Query],
    ask: &Ask,
) -> Result<Found, Error> {
    search_at(Level::best(), rows, queries, ask)
}

/// The same with the instructions of a level, which changes nothing but the time it takes.
pub(crate) fn search_at<R: Rows + ?Sized>(
    level: Level,
    rows: &R,
    queries: &[Query],
    ask: &Ask,
) -> Result<Found, Error> {
    let dim = rows.dim();
    for (index, query) in queries.iter().enumerate() {
        if query.vector.len() != dim {
            let found = query.vector.len();
            return Err(Error::Dimension { query: index, expected: dim, found });
        }
    }
    let half = match rows.stored() {
        Stored::F16 => Some(DType::F16),
        Stored::Bf16 => Some(DType::BF16),
        Stored::Codes { values } => match Codes::new(rows, dim, values) {
            Some(form) => return in_groups(level, &form, rows.count(), queries, ask),
            None => None,
        },
        Stored::Product { book, norms } => match Product::new(rows, dim, book, norms) {
            Some(form) => return in_groups(level, &form, rows.count(), queries, ask),
            None => None,
        },
        Stored::Values => None,
    };
    in_groups(level, &Floats { rows, dim, half }, rows.count(), queries, ask)
}

/// Groups of queries one after the other.
fn in_groups<F: Form>(
    level: Level,
    form: &F,
    count: usize,
    queries: &[Query],
    ask: &Ask,
) -> Result<Found, Error> {
    let count = count.min(ask.limit);
    let k = ask.k.min(count);
    if k == 0 {
        return Ok(Found { hits: vec![Vec::new(); queries.len()], not_finite: None });
    }
    let not_finite = Counter::default();
    let group = (MOST_HITS / k).clamp(1, form.queries_together());
    let mut hits = Vec::with_capacity(queries.len());
    for (i, queries) in queries.chunks(group).enumerate() {
        let (prepared, bounds) = form.prepare(queries, ask.metric);
        let excluded = |query: &Query| {
            let mut excluded = query.exclude.to_vec();
            excluded.sort_unstable();
            excluded
        };
        let loose = queries.len() - F::paneled(&prepared);
        let block = form.rows_together(queries.len()).min(BLOCK_PRODUCTS / loose.max(1));
        // Whole tiles of any kernel.
        let block = block.max(1).next_multiple_of(60);
        let pass = Pass {
            level,
            form,
            ask,
            count,
            k,
            block,
            run: (count / block / current_num_threads() / 16).clamp(1, MOST_RUN),
            prepared,
            bounds,
            queries,
            excluded: queries.iter().map(excluded).collect(),
            shared: queries.iter().map(|_| Shared::new()).collect(),
            next: AtomicUsize::new(0),
            // All groups meet the same rows.
            not_finite: (i == 0).then_some(&not_finite),
        };
        hits.extend(pass.run().map_err(Error::Rows)?);
    }
    Ok(Found { hits, not_finite: not_finite.found() })
}

/// Counts rows that are not finite, from several threads.
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
    fn add(&self, row: usize) {
        self.rows.fetch_add(1, Relaxed);
        self.first.fetch_min(row, Relaxed);
    }

    fn found(&self) -> Option<NotFinite> {
        let rows = self.rows.load(Relaxed);
        (rows > 0).then(|| NotFinite { rows, first: self.first.load(Relaxed) })
    }
}

/// One pass over all rows with a group of queries.
struct Pass<'a, F: Form> {
    level: Level,
    form: &'a F,
    ask: &'a Ask<'a>,
    count: usize,
    k: usize,
    /// How many rows are taken at a time.
    block: usize,
    /// How many blocks a thread takes one behind the other: what is prefetched is the next.
    run: usize,
    prepared: F::Prepared,
    bounds: Vec<Bound>,
    queries: &'a [Query<'a>],
    /// Rows that are not wanted, in order, for each query.
    excluded: Vec<Vec<usize>>,
    /// What rows must reach, as far as all threads know.
    shared: Vec<Shared>,
    /// The block that no thread has taken yet.
    next: AtomicUsize,
    /// Where rows are counted that are not finite.
    not_finite: Option<&'a Counter>,
}

impl<F: Form> Pass<'_, F> {
    fn run(&self) -> Result<Vec<Vec<Hit>>, Unreadable> {
        let dim = self.queries.first().map_or(0, |query| query.vector.len());
        let work = self.count.saturating_mul(dim).saturating_mul(self.queries.len());
        let threads = match work {
            ..SINGLE_THREAD_WORK => 1,
            _ => self.count.div_ceil(self.block).min(current_num_threads()),
        };
        let tops_of_threads = match threads {
            1 => vec![Worker::new(self).take_blocks()?],
            _ => {
                let threads = (0..threads).into_par_iter().with_max_len(1);
                threads.map(|_| Worker::new(self).take_blocks()).collect::<Result<_, _>>()?
            }
        };
        let mut found = vec![Vec::new(); self.queries.len()];
        for tops in tops_of_threads {
            for (found, top) in found.iter_mut().zip(tops) {
                found.extend(top.into_scored());
            }
        }
        Ok(found.into_iter().map(|found| best_of(found, self.k)).collect())
    }
}

/// A thread's part of a pass.
struct Worker<'a, F: Form> {
    pass: &'a Pass<'a, F>,
    tops: Vec<Top>,
    /// Slope and limit of each query; with room for all columns of the panels.
    slopes: Vec<f32>,
    limits: Vec<f32>,
    /// Of the rows of a block: squared lengths, what lines are made for, and whether none is wanted.
    squares: Vec<f32>,
    xs: Vec<f32>,
    unwanted: Vec<bool>,
    products: Vec<f32>,
    told: Vec<Reached>,
    pairs: Vec<[i16; 2]>,
    decoded: Decoded,
}

impl<'a, F: Form> Worker<'a, F> {
    fn new(pass: &'a Pass<'a, F>) -> Self {
        let columns = pass.queries.len().next_multiple_of(PANEL);
        Worker {
            pass,
            tops: pass.queries.iter().map(|_| Top::new(pass.k)).collect(),
            // No product reaches the limit of a column without a query.
            slopes: vec![0.0; columns],
            limits: vec![f32::INFINITY; columns],
            squares: Vec::new(),
            xs: Vec::new(),
            unwanted: Vec::new(),
            products: Vec::new(),
            told: Vec::new(),
            pairs: Vec::new(),
            decoded: Decoded::default(),
        }
    }

    /// Takes blocks until there are none. A thread gets them in ascending order.
    fn take_blocks(mut self) -> Result<Vec<Top>, Unreadable> {
        let pass = self.pass;
        let mut buffers = Buffers::default();
        let blocks = pass.count.div_ceil(pass.block);
        loop {
            let first = pass.next.fetch_add(pass.run, Relaxed);
            if first >= blocks {
                return Ok(self.tops);
            }
            for index in first..blocks.min(first + pass.run) {
                let start = index * pass.block;
                let n = pass.block.min(pass.count - start);
                let wanted = pass.ask.among.map_or(n, |among| among.count_in(start..start + n));
                if wanted == 0 {
                    continue;
                }
                match pass.form.read(&pass.prepared, (start, n), &mut buffers) {
                    Ok(block) => self.look_at(block, start, n, wanted),
                    Err(why) => {
                        // The others need not go on.
                        pass.next.store(blocks, Relaxed);
                        return Err(why);
                    }
                }
            }
        }
    }

    /// Looks at the rows of a block, of which so many may be found.
    fn look_at(&mut self, block: F::Block<'_>, start: usize, n: usize, wanted: usize) {
        let Worker { pass, .. } = *self;
        self.decoded.forget();
        self.unwanted.clear();
        match pass.ask.among {
            Some(among) => self.unwanted.extend((start..start + n).map(|r| !among.contains(r))),
            None => self.unwanted.resize(n, false),
        }
        let few = wanted < n && wanted <= n / SPARSE;
        if few || pass.queries.first().is_none_or(|query| query.vector.is_empty()) {
            return self.look_at_few(block, start);
        }
        let paneled = F::paneled(&pass.prepared);
        let loose = pass.queries.len() - paneled;
        self.squares.resize(n, 0.0);
        self.products.resize(n * loose, 0.0);
        let metric = pass.ask.metric;
        let (squares, products) = (&mut self.squares[..], &mut self.products[..]);
        let sums = Sums { metric, squares, products };
        pass.form.measure(pass.level, &pass.prepared, block, sums);
        self.measure_rows(block, start);
        for q in 0..pass.queries.len() {
            self.aim(q);
        }
        for q in paneled..pass.queries.len() {
            let mut from = 0;
            loop {
                let products = &self.products[(q - paneled) * n..][..n];
                let line = (self.slopes[q], self.limits[q]);
                let next = next_to_reach(pass.level, products, &self.xs, line, from);
                let Some(row) = next else { break };
                self.score(block, start, row, q);
                from = row + 1;
            }
        }
        if paneled > 0 {
            let mut told = std::mem::take(&mut self.told);
            told.clear();
            let columns = paneled.next_multiple_of(PANEL);
            let limits = Limits {
                xs: &self.xs,
                lines: (&self.slopes[..columns], &self.limits[..columns]),
                told: &mut told,
                pairs: &mut self.pairs,
            };
            pass.form.reach(pass.level, &pass.prepared, block, limits);
            for reached in &told {
                self.look_again(block, start, reached, paneled);
            }
            self.told = told;
        }
    }

    /// Since products were compared with limits, other rows may have raised these.
    fn look_again(&mut self, block: F::Block<'_>, start: usize, reached: &Reached, paneled: usize) {
        let Reached { row, column, products } = reached;
        for (q, product) in (*column..paneled).zip(products) {
            let sum = self.slopes[q].mul_add(self.xs[*row], *product);
            #[allow(clippy::neg_cmp_op_on_partial_ord, reason = "NaN reaches every limit")]
            if !(sum < self.limits[q]) {
                self.score(block, start, *row, q);
            }
        }
    }

    /// Every row that may be found, with every query.
    fn look_at_few(&mut self, block: F::Block<'_>, start: usize) {
        for row in 0..self.unwanted.len() {
            if !self.unwanted[row] {
                let values = self.pass.form.row(block, row, &mut self.decoded);
                if let Some(counter) = self.pass.not_finite
                    && values.iter().any(|value| !value.is_finite())
                {
                    counter.add(start + row);
                }
                (0..self.tops.len()).for_each(|q| self.score(block, start, row, q));
            }
        }
    }

    /// Makes squared lengths into what lines are made for, and looks at rows that have none.
    fn measure_rows(&mut self, block: F::Block<'_>, start: usize) {
        let (pass, metric) = (self.pass, self.pass.ask.metric);
        let floor = pass.form.floor();
        self.xs.clear();
        self.xs.extend(self.squares.iter().map(|square| to_x(*square, metric, floor)));
        if self.squares.iter().fold(true, |all, square| all & is_regular(*square, metric)) {
            return;
        }
        for row in 0..self.squares.len() {
            if is_regular(self.squares[row], metric) || self.unwanted[row] {
                continue;
            }
            let values = pass.form.row(block, row, &mut self.decoded);
            // Whatever it is, it is looked at closely.
            self.xs[row] = f32::NAN;
            if values.iter().any(|value| !value.is_finite()) {
                let nan = values.iter().any(|value| value.is_nan());
                self.unwanted[row] = nan || metric == crate::Metric::Cosine;
                if let Some(counter) = pass.not_finite {
                    counter.add(start + row);
                }
            } else if metric == crate::Metric::Cosine && values.iter().all(|value| *value == 0.0) {
                // All products with it are zero, and so is its cosine: as if it had length 1 and a
                // right angle to everything.
                self.xs[row] = 1.0;
            }
        }
    }

    /// Takes up what rows must reach by now.
    fn aim(&mut self, q: usize) {
        let threshold = self.tops[q].threshold().max(self.pass.shared[q].get());
        let line = self.pass.bounds[q].line(self.pass.ask.metric, threshold);
        (self.slopes[q], self.limits[q]) = line;
    }

    /// Scores a row of a block as it is defined, and keeps it if it is one of the best.
    fn score(&mut self, block: F::Block<'_>, start: usize, row: usize, q: usize) {
        let pass = self.pass;
        if self.unwanted[row] || pass.excluded[q].binary_search(&(start + row)).is_ok() {
            return;
        }
        let values = pass.form.row(block, row, &mut self.decoded);
        let query = pass.queries[q].vector;
        let score = score_with(values, query, pass.bounds[q].square, pass.ask.metric);
        if score >= pass.shared[q].get()
            && let Some(threshold) = self.tops[q].offer(start + row, score)
        {
            pass.shared[q].raise(threshold);
            self.aim(q);
        }
    }
}

#[cfg(test)]
mod tests;
