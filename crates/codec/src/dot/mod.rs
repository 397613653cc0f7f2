//! Products of rows of f32 with vectors, and the lengths of the rows.
//!
//! A product is defined by `scalar::tile`: value `i` goes into the running sum `i % 8` by a fused
//! step that rounds once, and the eight sums are added in a fixed order. Every function here and
//! every version of it keeps to that. So the product of a row with a query has the same bits
//! whether it was asked for alone or among others, and on every machine (a processor without fused
//! steps computes them slowly).
//!
//! To first order it differs from the exact sum of products by at most `(dim / 8 + 4) * 2^-24` of the sum of their
//! absolute values, as far as nothing overflows and products are not below 2^-126.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "aarch64")]
mod neon;
mod scalar;

/// Rows that are multiplied at the same time. With three queries this fills the registers of AVX2.
const ROWS: usize = 4;

/// How many values of rows are taken through all queries before the next: half of a usual first
/// cache, so that there is room for the three queries that they are multiplied with.
const CACHED: usize = 4096;

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

/// The product of two vectors. Panics unless their lengths agree.
pub fn dot(a: &[f32], b: &[f32]) -> f32 {
    assert_eq!(a.len(), b.len(), "vectors of the same length");
    tile::<1, 1, false>(a, b, a.len()).0[0][0]
}

/// Each row with each query: `products[q * count + r]` is that of row `r` with query `q`, where
/// `count` is the number of rows. Panics unless there are whole rows and queries of `dim` values
/// (not zero), and room for all products exactly.
pub fn dots(rows: &[f32], queries: &[f32], dim: usize, products: &mut [f32]) {
    sweep::<false>(rows, queries, dim, products, &mut []);
}

/// The same, and each row's product with itself.
pub fn dots_and_squares(
    rows: &[f32],
    queries: &[f32],
    dim: usize,
    products: &mut [f32],
    squares: &mut [f32],
) {
    assert_eq!(squares.len(), rows.len() / dim, "a square for each row");
    sweep::<true>(rows, queries, dim, products, squares);
}

fn sweep<const SQUARES: bool>(
    rows: &[f32],
    queries: &[f32],
    dim: usize,
    products: &mut [f32],
    squares: &mut [f32],
) {
    assert_eq!((rows.len() % dim, queries.len() % dim), (0, 0), "whole rows and queries");
    let (count, asked) = (rows.len() / dim, queries.len() / dim);
    assert_eq!(Some(products.len()), count.checked_mul(asked), "a product for each pair");
    let cached = (CACHED / dim).max(1).next_multiple_of(ROWS);
    for start in (0..count).step_by(cached) {
        let end = count.min(start + cached);
        let mut q = 0;
        loop {
            let todo = &queries[q * dim..];
            let out = Out { products: &mut products[q * count..], count, squares };
            // The squares take the place of one query in the registers.
            q += match (SQUARES && q == 0, asked - q) {
                (true, 0) => strip::<0, true>(rows, todo, dim, start..end, out),
                (true, 1) => strip::<1, true>(rows, todo, dim, start..end, out),
                (true, _) => strip::<2, true>(rows, todo, dim, start..end, out),
                (false, 0) => break,
                (false, 1) => strip::<1, false>(rows, todo, dim, start..end, out),
                (false, 2) => strip::<2, false>(rows, todo, dim, start..end, out),
                (false, _) => strip::<3, false>(rows, todo, dim, start..end, out),
            };
            if q == asked {
                break;
            }
        }
    }
}

/// Where results go: those of query `q` and row `r` at `q * count + r`.
struct Out<'a> {
    products: &'a mut [f32],
    count: usize,
    squares: &'a mut [f32],
}

/// Some rows with a few queries; gives their number.
fn strip<const QUERIES: usize, const SQUARES: bool>(
    rows: &[f32],
    queries: &[f32],
    dim: usize,
    range: std::ops::Range<usize>,
    out: Out,
) -> usize {
    let queries = &queries[..QUERIES * dim];
    let mut r = range.start;
    while r + ROWS <= range.end {
        let rows = &rows[r * dim..][..ROWS * dim];
        let (products, squares) = tile::<ROWS, QUERIES, SQUARES>(rows, queries, dim);
        for (q, products) in products.iter().enumerate() {
            out.products[q * out.count + r..][..ROWS].copy_from_slice(products);
        }
        if SQUARES {
            out.squares[r..][..ROWS].copy_from_slice(&squares);
        }
        r += ROWS;
    }
    for r in r..range.end {
        let rows = &rows[r * dim..][..dim];
        let (products, squares) = tile::<1, QUERIES, SQUARES>(rows, queries, dim);
        for (q, products) in products.iter().enumerate() {
            out.products[q * out.count + r] = products[0];
        }
        if SQUARES {
            out.squares[r] = squares[0];
        }
    }
    QUERIES
}

#[inline]
fn tile<const ROWS: usize, const QUERIES: usize, const SQUARES: bool>(
    rows: &[f32],
    queries: &[f32],
    dim: usize,
) -> ([[f32; ROWS]; QUERIES], [f32; ROWS]) {
    fastest_tile!(ROWS, QUERIES, SQUARES; rows, queries, dim)
}

#[cfg(test)]
mod tests;
