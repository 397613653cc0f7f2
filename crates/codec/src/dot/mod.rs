//! Products of rows with vectors, the kernels of searching, for rows as they are stored.
//!
//! * [`dots`], [`dots_and_squares`]: rows of floats with a few vectors, and their squared lengths.
//! * [`code_dots`]: rows of codes of one byte with a vector of integers, exactly.
//! * [`lookup_sums`]: rows of codes for parts of vectors.
//! * [`Panels`]: rows with many vectors, of which only those products are told that reach a limit.
//! * [`next_to_reach`]: the products of a few that do.
//!
//! A dot product of floats with a few vectors is defined so: value `i` is accumulated into sum `i % 8` by a fused
//! multiply-add, which rounds once, and the eight sums are added in a fixed order. Vectors are padded
//! with zeros to a multiple of eight. To first order it differs from the exact sum of products by at most
//! `(dim / 8 + 4) * 2^-24` of the sum of their absolute values, as far as nothing overflows and products
//! are not below 2^-126. With many vectors values are accumulated one behind the other, and the
//! bound is `(dim + 1) * 2^-24`.

mod codes;
mod lookup;
mod many;
mod reach;
mod stored;

pub use codes::{CODES_TOGETHER, code_dots, widen_codes};
pub use lookup::{Table, lookup_sums};
pub use many::{Factor, Panels, Reached};
pub use reach::next_to_reach;
pub use stored::{Bf16, F16, F32, StoredFloat};

use crate::simd::{Eight, EightKernel, Level, prefetch_line};
use std::marker::PhantomData;
use std::ops::Range;

/// Rows that are multiplied at the same time, one from each quarter of all: memory is read faster in
/// four places than in one. With three queries this fills the registers of AVX2.
const ROWS: usize = 4;

/// Bytes of a cache line.
const LINE: usize = 64;

/// How many bytes ahead rows are prefetched: processors do not look beyond the end of a page.
const AHEAD: usize = 2048;

/// How many values of rows are multiplied with all queries before the next: half of a usual L1
/// cache, so that there is room for the three queries that they are multiplied with.
const CACHED_VALUES: usize = 4096;

/// Each row with each query: `products[q * count + r]` is that of row `r` with query `q`, where
/// `count` is the number of rows.
///
/// Reading memory is fastest if the rows are 128 KiB or more.
///
/// # Panics
///
/// When `dim` is 0, `rows` or `queries` are not whole rows of `dim` values, or `products` does not
/// have a place for each product exactly.
pub fn dots<S: StoredFloat>(
    level: Level,
    rows: &[S::Stored],
    queries: &[f32],
    dim: usize,
    products: &mut [f32],
) {
    Sweep::<S>::new(level, rows, queries, dim, products, &mut []).run::<false>();
}

/// Like [`dots`], and each row's product with itself: its squared length.
///
/// # Panics
///
/// As [`dots`], and when `squares` does not have a place for each row exactly.
pub fn dots_and_squares<S: StoredFloat>(
    level: Level,
    rows: &[S::Stored],
    queries: &[f32],
    dim: usize,
    products: &mut [f32],
    squares: &mut [f32],
) {
    assert_eq!(squares.len(), rows.len() / dim, "a square for each row");
    Sweep::<S>::new(level, rows, queries, dim, products, squares).run::<true>();
}

/// The products of all rows with all queries.
struct Sweep<'a, S: StoredFloat> {
    level: Level,
    rows: &'a [S::Stored],
    row_count: usize,
    queries: &'a [f32],
    query_count: usize,
    dim: usize,
    products: &'a mut [f32],
    squares: &'a mut [f32],
}

impl<'a, S: StoredFloat> Sweep<'a, S> {
    fn new(
        level: Level,
        rows: &'a [S::Stored],
        queries: &'a [f32],
        dim: usize,
        products: &'a mut [f32],
        squares: &'a mut [f32],
    ) -> Self {
        assert_eq!((rows.len() % dim, queries.len() % dim), (0, 0), "whole rows and queries");
        let (row_count, query_count) = (rows.len() / dim, queries.len() / dim);
        assert_eq!(
            Some(products.len()),
            row_count.checked_mul(query_count),
            "a product for each pair"
        );
        Sweep { level, rows, row_count, queries, query_count, dim, products, squares }
    }

    fn run<const SQUARES: bool>(&mut self) {
        let quarter = self.row_count / ROWS;
        let cached = (CACHED_VALUES / ROWS / self.dim).max(1);
        for start in (0..quarter).step_by(cached) {
            let range = start..quarter.min(start + cached);
            self.all_queries::<ROWS, SQUARES>(range, quarter);
        }
        self.all_queries::<1, SQUARES>(ROWS * quarter..self.row_count, 0);
    }

    /// All queries with the rows of this range, those `spacing` rows behind them, and so on.
    fn all_queries<const ROWS: usize, const SQUARES: bool>(
        &mut self,
        range: Range<usize>,
        spacing: usize,
    ) {
        let mut q = 0;
        if SQUARES {
            // The squares take the place of one query in the registers.
            q += match self.query_count {
                0 => self.strip::<ROWS, 0, true>(range.clone(), spacing, q),
                1 => self.strip::<ROWS, 1, true>(range.clone(), spacing, q),
                _ => self.strip::<ROWS, 2, true>(range.clone(), spacing, q),
            };
        }
        while q < self.query_count {
            q += match self.query_count - q {
                1 => self.strip::<ROWS, 1, false>(range.clone(), spacing, q),
                2 => self.strip::<ROWS, 2, false>(range.clone(), spacing, q),
                _ => self.strip::<ROWS, 3, false>(range.clone(), spacing, q),
            };
        }
    }

    /// The same with `QUERIES` queries from `first` on; returns their number.
    fn strip<const ROWS: usize, const QUERIES: usize, const SQUARES: bool>(
        &mut self,
        range: Range<usize>,
        spacing: usize,
        first: usize,
    ) -> usize {
        self.level.run_eight(Strip::<S, ROWS, QUERIES, SQUARES> {
            rows: self.rows,
            range,
            spacing,
            queries: &self.queries[first * self.dim..][..QUERIES * self.dim],
            dim: self.dim,
            products: &mut self.products[first * self.row_count..][..QUERIES * self.row_count],
            squares: self.squares,
            stored: PhantomData,
        });
        QUERIES
    }
}

/// `QUERIES` queries with the rows of a range, and those `spacing` rows behind them, `ROWS` times;
/// and the squared lengths of these rows if `SQUARES`.
struct Strip<'a, S: StoredFloat, const ROWS: usize, const QUERIES: usize, const SQUARES: bool> {
    rows: &'a [S::Stored],
    range: Range<usize>,
    spacing: usize,
    queries: &'a [f32],
    dim: usize,
    products: &'a mut [f32],
    squares: &'a mut [f32],
    stored: PhantomData<S>,
}

impl<S: StoredFloat, const ROWS: usize, const QUERIES: usize, const SQUARES: bool> EightKernel
    for Strip<'_, S, ROWS, QUERIES, SQUARES>
{
    type Output = ();

    #[inline(always)]
    fn run<V: Eight>(self, token: V::Token) {
        let Strip { rows, range, spacing, queries, dim, products, squares, .. } = self;
        let row_count = products.len() / QUERIES.max(1);
        for row in range {
            let (tile_products, tile_squares) = tile::<V, S, ROWS, QUERIES, SQUARES>(
                token,
                &rows[row * dim..],
                queries,
                dim,
                spacing * dim,
            );
            for (q, tile_products) in tile_products.iter().enumerate() {
                let out = &mut products[q * row_count..][..row_count];
                for (r, product) in tile_products.iter().enumerate() {
                    out[row + r * spacing] = *product;
                }
            }
            if SQUARES {
                for (r, square) in tile_squares.iter().enumerate() {
                    squares[row + r * spacing] = *square;
                }
            }
        }
    }
}

/// Each row with each query, and the squared lengths of the rows if `SQUARES`. A row begins
/// `stride` values behind the one before, a query right behind it.
#[inline(always)]
fn tile<V: Eight, S: StoredFloat, const ROWS: usize, const QUERIES: usize, const SQUARES: bool>(
    token: V::Token,
    rows: &[S::Stored],
    queries: &[f32],
    dim: usize,
    stride: usize,
) -> ([[f32; ROWS]; QUERIES], [f32; ROWS]) {
    // Eights, and what is left behind them, of as many rows and queries.
    let mut row_parts = [(&[][..], &[][..]); ROWS];
    for (r, parts) in row_parts.iter_mut().enumerate() {
        *parts = rows[r * stride..][..dim].as_chunks::<8>();
    }
    let mut query_parts = [(&[][..], &[][..]); QUERIES];
    for (q, parts) in query_parts.iter_mut().enumerate() {
        *parts = queries[q * dim..][..dim].as_chunks::<8>();
    }
    let zero = V::splat(token, 0.0);
    let mut sums = Sums::<V, ROWS, QUERIES, SQUARES>([[zero; ROWS]; QUERIES], [zero; ROWS]);
    let (mut row, mut query) = ([zero; ROWS], [zero; QUERIES]);
    let step = size_of::<[S::Stored; 8]>();
    for at in 0..dim / 8 {
        // With more queries rows come from a cache.
        if QUERIES == 1 && at % (LINE / step) == 0 {
            for parts in &row_parts {
                prefetch_line(&parts.0[at], AHEAD / step * 8);
            }
        }
        for (query, parts) in query.iter_mut().zip(&query_parts) {
            *query = V::load(token, &parts.0[at]);
        }
        for (row, parts) in row.iter_mut().zip(&row_parts) {
            *row = S::eight(token, &parts.0[at]);
        }
        sums.add(row, query);
    }
    if !dim.is_multiple_of(8) {
        for (query, parts) in query.iter_mut().zip(&query_parts) {
            *query = V::load_padded(token, parts.1);
        }
        for (row, parts) in row.iter_mut().zip(&row_parts) {
            *row = S::padded(token, parts.1);
        }
        sums.add(row, query);
    }
    let mut products = [[0.0; ROWS]; QUERIES];
    for (products, sums) in products.iter_mut().zip(sums.0) {
        *products = V::sum_each(sums);
    }
    (products, V::sum_each(sums.1))
}

/// The sums of a tile: of rows with queries, and of rows with themselves.
struct Sums<V, const ROWS: usize, const QUERIES: usize, const SQUARES: bool>(
    [[V; ROWS]; QUERIES],
    [V; ROWS],
);

impl<V: Eight, const ROWS: usize, const QUERIES: usize, const SQUARES: bool>
    Sums<V, ROWS, QUERIES, SQUARES>
{
    #[inline(always)]
    fn add(&mut self, row: [V; ROWS], query: [V; QUERIES]) {
        for (r, row) in row.into_iter().enumerate() {
            for (sums, query) in self.0.iter_mut().zip(query) {
                sums[r] = row.fused_mul_add(query, sums[r]);
            }
            if SQUARES {
                self.1[r] = row.fused_mul_add(row, self.1[r]);
            }
        }
    }
}

#[cfg(test)]
mod tests;
