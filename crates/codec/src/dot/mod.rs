//! Dot products of rows of f32 with vectors, and the squared lengths of the rows.
//!
//! A dot product is defined by `scalar::tile`: value `i` is accumulated into sum `i % 8` by a fused
//! multiply-add, which rounds once, and the eight sums are added in a fixed order. Every function
//! here and every version of it keeps to that. So the product of a row with a query has the same
//! bits whether it was asked for alone or among others, and on every machine (a processor without
//! fused multiply-add computes it slowly).
//!
//! To first order it differs from the exact sum of products by at most `(dim / 8 + 4) * 2^-24` of
//! the sum of their absolute values, as far as nothing overflows and products are not below 2^-126.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "aarch64")]
mod neon;
mod scalar;

use std::ops::Range;

/// Rows that are multiplied at the same time, one from each quarter of all: memory is read faster in
/// four places than in one. With three queries this fills the registers of AVX2.
const ROWS: usize = 4;

/// How many values of rows are multiplied with all queries before the next: half of a usual L1
/// cache, so that there is room for the three queries that they are multiplied with.
const CACHED_VALUES: usize = 4096;

/// Calls the fastest version that the processor has.
macro_rules! fastest_tile {
    ($rows:expr, $queries:expr, $squares:expr; $($argument:expr),*) => {{
        #[cfg(target_arch = "x86_64")]
        if *avx2::AVAILABLE {
            // SAFETY: the processor has what the function needs.
            return unsafe { avx2::tile::<$rows, $queries, $squares>($($argument),*) };
        }
        #[cfg(target_arch = "aarch64")]
        if neon::AVAILABLE {
            // SAFETY: the processor has what the function needs.
            return unsafe { neon::tile::<$rows, $queries, $squares>($($argument),*) };
        }
        scalar::tile::<$rows, $queries, $squares>($($argument),*)
    }};
}

/// The dot product of two vectors.
///
/// # Panics
///
/// When their lengths differ.
pub fn dot(a: &[f32], b: &[f32]) -> f32 {
    assert_eq!(a.len(), b.len(), "vectors of the same length");
    tile::<1, 1, false>(a, b, a.len(), a.len()).0[0][0]
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
    Sweep::new(rows, queries, dim, products, &mut []).run::<false>();
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
    assert_eq!(squares.len(), rows.len() / dim, "a square for each row");
    Sweep::new(rows, queries, dim, products, squares).run::<true>();
}

/// The products of all rows with all queries.
struct Sweep<'a> {
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
        Sweep { rows, row_count, queries, query_count, dim, products, squares }
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
                tile::<ROWS, QUERIES, SQUARES>(rows, queries, dim, spacing * dim);
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

/// See [`scalar::tile`].
#[inline]
fn tile<const ROWS: usize, const QUERIES: usize, const SQUARES: bool>(
    rows: &[f32],
    queries: &[f32],
    dim: usize,
    stride: usize,
) -> ([[f32; ROWS]; QUERIES], [f32; ROWS]) {
    fastest_tile!(ROWS, QUERIES, SQUARES; rows, queries, dim, stride)
}

#[cfg(test)]
mod tests;
