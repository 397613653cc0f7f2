//! Dot products of rows of f32 with vectors, and the squared lengths of the rows.
//!
//! A dot product is defined so: value `i` is accumulated into sum `i % 8` by a fused
//! multiply-add, which rounds once, and the eight sums are added in a fixed order. Vectors are padded
//! with zeros to a multiple of eight. Every function here keeps to that at every level. So the product of a row with a query has the same
//! bits whether it was asked for alone or among others, and on every machine (a processor without
//! fused multiply-add computes it slowly).
//!
//! To first order it differs from the exact sum of products by at most `(dim / 8 + 4) * 2^-24` of
//! the sum of their absolute values, as far as nothing overflows and products are not below 2^-126.

use crate::simd::{Eight, EightKernel, Level};
use std::ops::Range;

/// Rows that are multiplied at the same time, one from each quarter of all: memory is read faster in
/// four places than in one. With three queries this fills the registers of AVX2.
const ROWS: usize = 4;

/// How many values of rows are multiplied with all queries before the next: half of a usual L1
/// cache, so that there is room for the three queries that they are multiplied with.
const CACHED_VALUES: usize = 4096;

/// The dot product of two vectors.
///
/// # Panics
///
/// When their lengths differ.
pub fn dot(a: &[f32], b: &[f32]) -> f32 {
    assert_eq!(a.len(), b.len(), "vectors of the same length");
    dot_at(Level::best(), a, b)
}

/// Each row with each query: `products[q * count + r]` is that of row `r` with query `q`, where
/// `count` is the number of rows.
///
/// Reading memory is fastest if the rows are 128 KiB or more.
///
/// # Panics
///
/// When `dim` is 0, `rows` or `queries` are not whole rows of `dim` values, or `products` does not
/// have a place for each product exactly.
pub fn dots(rows: &[f32], queries: &[f32], dim: usize, products: &mut [f32]) {
    dots_at(Level::best(), rows, queries, dim, products);
}

/// Like [`dots`], and each row's product with itself: its squared length.
///
/// # Panics
///
/// As [`dots`], and when `squares` does not have a place for each row exactly.
pub fn dots_and_squares(
    rows: &[f32],
    queries: &[f32],
    dim: usize,
    products: &mut [f32],
    squares: &mut [f32],
) {
    dots_and_squares_at(Level::best(), rows, queries, dim, products, squares);
}

fn dot_at(level: Level, a: &[f32], b: &[f32]) -> f32 {
    tile::<1, 1, false>(level, a, b, a.len(), a.len()).0[0][0]
}

fn dots_at(level: Level, rows: &[f32], queries: &[f32], dim: usize, products: &mut [f32]) {
    Sweep::new(level, rows, queries, dim, products, &mut []).run::<false>();
}

fn dots_and_squares_at(
    level: Level,
    rows: &[f32],
    queries: &[f32],
    dim: usize,
    products: &mut [f32],
    squares: &mut [f32],
) {
    assert_eq!(squares.len(), rows.len() / dim, "a square for each row");
    Sweep::new(level, rows, queries, dim, products, squares).run::<true>();
}

/// The products of all rows with all queries.
struct Sweep<'a> {
    level: Level,
    rows: &'a [f32],
    row_count: usize,
    queries: &'a [f32],
    query_count: usize,
    dim: usize,
    products: &'a mut [f32],
    squares: &'a mut [f32],
}

impl<'a> Sweep<'a> {
    fn new(
        level: Level,
        rows: &'a [f32],
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
        let (dim, row_count) = (self.dim, self.row_count);
        let queries = &self.queries[first * dim..][..QUERIES * dim];
        for row in range {
            let rows = &self.rows[row * dim..];
            let (products, squares) =
                tile::<ROWS, QUERIES, SQUARES>(self.level, rows, queries, dim, spacing * dim);
            for (q, products) in products.iter().enumerate() {
                let out = &mut self.products[(first + q) * row_count..][..row_count];
                for (r, product) in products.iter().enumerate() {
                    out[row + r * spacing] = *product;
                }
            }
            if SQUARES {
                for (r, square) in squares.iter().enumerate() {
                    self.squares[row + r * spacing] = *square;
                }
            }
        }
        QUERIES
    }
}

/// Each row with each query, and the squared lengths of the rows if `SQUARES`. A row begins
/// `stride` values behind the one before, a query right behind it.
#[inline]
fn tile<const ROWS: usize, const QUERIES: usize, const SQUARES: bool>(
    level: Level,
    rows: &[f32],
    queries: &[f32],
    dim: usize,
    stride: usize,
) -> ([[f32; ROWS]; QUERIES], [f32; ROWS]) {
    level.run_eight(Tile::<ROWS, QUERIES, SQUARES> { rows, queries, dim, stride })
}

struct Tile<'a, const ROWS: usize, const QUERIES: usize, const SQUARES: bool> {
    rows: &'a [f32],
    queries: &'a [f32],
    dim: usize,
    stride: usize,
}

impl<const ROWS: usize, const QUERIES: usize, const SQUARES: bool> EightKernel
    for Tile<'_, ROWS, QUERIES, SQUARES>
{
    type Output = ([[f32; ROWS]; QUERIES], [f32; ROWS]);

    #[inline(always)]
    fn run<V: Eight>(self, token: V::Token) -> Self::Output {
        let Tile { rows, queries, dim, stride } = self;
        let mut row_values = [&[][..]; ROWS];
        for (r, values) in row_values.iter_mut().enumerate() {
            *values = &rows[r * stride..][..dim];
        }
        let mut query_values = [&[][..]; QUERIES];
        for (q, values) in query_values.iter_mut().enumerate() {
            *values = &queries[q * dim..][..dim];
        }
        let zero = V::splat(token, 0.0);
        let mut sums = [[zero; ROWS]; QUERIES];
        let mut squares = [zero; ROWS];
        let mut accumulate = |row: [V; ROWS], query: [V; QUERIES]| {
            for r in 0..ROWS {
                for q in 0..QUERIES {
                    sums[q][r] = row[r].fused_mul_add(query[q], sums[q][r]);
                }
                if SQUARES {
                    squares[r] = row[r].fused_mul_add(row[r], squares[r]);
                }
            }
        };
        let tail = dim - dim % 8;
        let (mut row, mut query) = ([zero; ROWS], [zero; QUERIES]);
        let mut at = 0;
        while at < tail {
            for (query, values) in query.iter_mut().zip(query_values) {
                *query = V::load(token, &values[at..at + 8]);
            }
            for (row, values) in row.iter_mut().zip(row_values) {
                *row = V::load(token, &values[at..at + 8]);
            }
            accumulate(row, query);
            at += 8;
        }
        if tail < dim {
            for (query, values) in query.iter_mut().zip(query_values) {
                *query = V::load_padded(token, &values[tail..]);
            }
            for (row, values) in row.iter_mut().zip(row_values) {
                *row = V::load_padded(token, &values[tail..]);
            }
            accumulate(row, query);
        }
        let mut products = [[0.0; ROWS]; QUERIES];
        for (products, sums) in products.iter_mut().zip(sums) {
            *products = V::sum_each(sums);
        }
        (products, V::sum_each(squares))
    }
}

#[cfg(test)]
mod tests;
