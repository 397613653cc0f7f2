//! Queries made ready, and products made into scores.

use crate::{Metric, Query};
use std::ops::RangeInclusive;

/// Squared lengths in f32 that are as accurate as the products: all but those that overflowed, and
/// those so small that squares may have underflowed. Others are computed once more in f64.
const ACCURATE_SQUARES: RangeInclusive<f32> = f32::from_bits(27 << 23)..=f32::MAX; // from 2^-100

/// A few queries that go through the rows together, one behind the other.
pub(crate) struct Batch {
    pub(crate) metric: Metric,
    pub(crate) vectors: Vec<f32>,
    pub(crate) queries: Vec<PreparedQuery>,
}

/// What is needed of a query beside its vector.
pub(crate) struct PreparedQuery {
    /// The length of the vector; 1 if it is zero, for all products are zero then.
    length: f32,
    /// Rows that are not wanted, in order.
    pub(crate) excluded: Vec<usize>,
}

impl Batch {
    pub(crate) fn new(queries: &[Query], metric: Metric) -> Batch {
        let mut vectors = Vec::with_capacity(queries.iter().map(|query| query.vector.len()).sum());
        let mut prepared = Vec::with_capacity(queries.len());
        for query in queries {
            let start = vectors.len();
            vectors.extend_from_slice(query.vector);
            let mut length = 1.0;
            if metric == Metric::Cosine {
                normalize_exponent(&mut vectors[start..]);
                let square: f64 = vectors[start..].iter().map(|&v| f64::from(v).powi(2)).sum();
                if square != 0.0 {
                    length = square.sqrt() as f32;
                }
            }
            let mut excluded = query.exclude.to_vec();
            excluded.sort_unstable();
            prepared.push(PreparedQuery { length, excluded });
        }
        Batch { metric, vectors, queries: prepared }
    }

    /// Makes products with all queries into cosines. `squares` become lengths.
    pub(crate) fn cosines(&self, rows: &[f32], squares: &mut [f32], products: &mut [f32]) {
        let (count, dim) = (squares.len(), self.vectors.len() / self.queries.len());
        let inaccurate: Vec<usize> =
            (0..count).filter(|&row| !ACCURATE_SQUARES.contains(&squares[row])).collect();
        let lengths = squares;
        lengths.iter_mut().for_each(|square| *square = square.sqrt());
        for (query, scores) in self.queries.iter().zip(products.chunks_exact_mut(count)) {
            for (score, length) in scores.iter_mut().zip(&*lengths) {
                *score /= length * query.length;
            }
        }
        for row in inaccurate {
            let values = &rows[row * dim..][..dim];
            let length = dot(values, values).sqrt();
            for (q, query) in self.queries.iter().enumerate() {
                let product = dot(values, &self.vectors[q * dim..][..dim]);
                let cosine = product / (length * f64::from(query.length));
                let zero = length == 0.0 && query.length.is_finite();
                products[q * count + row] = if zero { 0.0 } else { cosine as f32 };
            }
        }
    }
}

/// Multiplies a vector with a power of two such that its largest value is about 1. This changes no
/// cosine, and products then can't overflow but where the row's own length does.
fn normalize_exponent(vector: &mut [f32]) {
    let largest = vector.iter().fold(0.0f32, |largest, v| largest.max(v.abs()));
    if largest > 0.0 && largest.is_finite() {
        let exponent = (f64::from(largest).to_bits() >> 52) as i32 - 1023;
        let factor = 2f64.powi(-exponent);
        for value in vector {
            *value = (f64::from(*value) * factor) as f32;
        }
    }
}

/// The dot product in f64, where no product of two f32 overflows or underflows.
fn dot(a: &[f32], b: &[f32]) -> f64 {
    a.iter().zip(b).map(|(&a, &b)| f64::from(a) * f64::from(b)).sum()
}
