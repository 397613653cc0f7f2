//! What a score is.

use crate::Metric;
use weighbridge_codec::simd::{Eight, Level, dispatch};

/// The score of a row for a query: what results are ranked by.
///
/// Sums are made in f64: value `i` is added to sum `i % 8`, and the eight sums are added in the order
/// `((0+4)+(2+6)) + ((1+5)+(3+7))`. A product of two f32 is exact in f64, so that only sums are
/// rounded, and the bits are the same on every machine. Of a row and a query of different lengths
/// the values are counted that both have.
///
/// * [`Metric::Dot`]: the sum of products.
/// * [`Metric::Cosine`]: that divided by the square root of the product of the two sums of squares;
///   0 if one of these is 0, and NaN if one is not finite. A row's cosine with itself is 1.
/// * [`Metric::L2`]: the square root of the sum of squared differences, negative.
pub fn score(row: &[f32], query: &[f32], metric: Metric) -> f64 {
    let square =
        if metric == Metric::Cosine { products(Level::best(), query, query).0 } else { 0.0 };
    score_with(row, query, square, metric)
}

/// The sum of a vector's squares, as a score has it.
pub(crate) fn square(vector: &[f32]) -> f64 {
    products(Level::best(), vector, vector).0
}

/// The same with the query's sum of squares, which is the same for all rows.
pub(crate) fn score_with(row: &[f32], query: &[f32], query_square: f64, metric: Metric) -> f64 {
    match metric {
        Metric::Dot => products(Level::best(), row, query).0,
        // Not the negative zero.
        Metric::L2 => 0.0 - squared_differences(Level::best(), row, query).sqrt(),
        Metric::Cosine => {
            let (product, row_square) = products(Level::best(), row, query);
            // No product of two such sums overflows or underflows.
            match row_square * query_square {
                squares if !squares.is_finite() => f64::NAN,
                0.0 => 0.0,
                squares => product / squares.sqrt(),
            }
        }
    }
}

dispatch! {
    /// The sums of `row[i] * query[i]` and of `row[i]²`.
    fn products(row: &[f32], query: &[f32]) -> (f64, f64) = eight products_with;
    fn squared_differences(row: &[f32], query: &[f32]) -> f64 = eight squared_differences_with;
}

/// Plain Rust, which compilers turn into the instructions of each level. They do not fuse
/// multiplications with additions, and here it would change nothing.
#[inline(always)]
fn products_with<V: Eight>(_: V::Token, row: &[f32], query: &[f32]) -> (f64, f64) {
    let (mut products, mut squares) = ([0.0; 8], [0.0; 8]);
    each_eight(row, query, |i, row, query| {
        products[i] += row * query;
        squares[i] += row * row;
    });
    (sum(products), sum(squares))
}

#[inline(always)]
fn squared_differences_with<V: Eight>(_: V::Token, row: &[f32], query: &[f32]) -> f64 {
    let mut sums = [0.0; 8];
    each_eight(row, query, |i, row, query| {
        let difference = row - query;
        sums[i] += difference * difference;
    });
    sum(sums)
}

#[inline(always)]
fn each_eight(row: &[f32], query: &[f32], mut add: impl FnMut(usize, f64, f64)) {
    let n = row.len().min(query.len());
    let ((rows, row), (queries, query)) = (row[..n].as_chunks::<8>(), query[..n].as_chunks::<8>());
    for (row, query) in rows.iter().zip(queries) {
        for i in 0..8 {
            add(i, f64::from(row[i]), f64::from(query[i]));
        }
    }
    for (i, (row, query)) in row.iter().zip(query).enumerate() {
        add(i, f64::from(*row), f64::from(*query));
    }
}

#[inline(always)]
fn sum([a, b, c, d, e, f, g, h]: [f64; 8]) -> f64 {
    ((a + e) + (c + g)) + ((b + f) + (d + h))
}
