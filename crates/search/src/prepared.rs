//! Queries made ready, and products made into scores.

use crate::{Metric, Query};
use std::ops::RangeInclusive;

/// Squared lengths in f32 that are as good as the products: all but those that overflowed, and
/// those so small that squares of some weight may have been lost. Others are found again in f64.
const SOUND: RangeInclusive<f32> = f32::from_bits(27 << 23)..=f32::MAX; // from 2^-100

/// A few queries, one behind the other.
pub(crate) struct Prepared {
    pub(crate) metric: Metric,
    pub(crate) vectors: Vec<f32>,
    pub(crate) asked: Vec<Asked>,
}

pub(crate) struct Asked {
    /// The length of the vector; 1 if it is zero, for all products are zero then.
    length: f32,
    /// Rows that are not wanted, in order.
    pub(crate) excluded: Vec<usize>,
}

impl Prepared {
    pub(crate) fn new(queries: &[Query], metric: Metric) -> Prepared {
        let mut vectors = Vec::with_capacity(queries.iter().map(|query| query.vector.len()).sum());
        let mut asked = Vec::with_capacity(queries.len());
        for query in queries {
            let start = vectors.len();
            vectors.extend_from_slice(query.vector);
            let mut length = 1.0;
            if metric == Metric::Cosine {
                scale(&mut vectors[start..]);
                let square: f64 = vectors[start..].iter().map(|&v| f64::from(v).powi(2)).sum();
                if square != 0.0 {
                    length = square.sqrt() as f32;
                }
            }
            let mut excluded = query.exclude.to_vec();
            excluded.sort_unstable();
            asked.push(Asked { length, excluded });
        }
        Prepared { metric, vectors, asked }
    }

    /// Makes products with all queries into cosines. `squares` become lengths.
    pub(crate) fn cosines(&self, rows: &[f32], squares: &mut [f32], products: &mut [f32]) {
        let (count, dim) = (squares.len(), self.vectors.len() / self.asked.len());
        let odd: Vec<usize> = (0..count).filter(|&row| !SOUND.contains(&squares[row])).collect();
        let lengths = squares;
        lengths.iter_mut().for_each(|square| *square = square.sqrt());
        for (asked, scores) in self.asked.iter().zip(products.chunks_exact_mut(count)) {
            for (score, length) in scores.iter_mut().zip(&*lengths) {
                *score /= length * asked.length;
            }
        }
        for row in odd {
            let values = &rows[row * dim..][..dim];
            let length = dot(values, values).sqrt();
            for (q, asked) in self.asked.iter().enumerate() {
                let product = dot(values, &self.vectors[q * dim..][..dim]);
                let cosine = product / (length * f64::from(asked.length));
                let zero = length == 0.0 && asked.length.is_finite();
                products[q * count + row] = if zero { 0.0 } else { cosine as f32 };
            }
        }
    }
}

/// Multiplies a vector with a power of two such that its largest value is about 1. This changes no
/// cosine, and products then can't overflow but where the row's own length does.
fn scale(vector: &mut [f32]) {
    let largest = vector.iter().fold(0.0f32, |largest, v| largest.max(v.abs()));
    if largest > 0.0 && largest.is_finite() {
        let exponent = (f64::from(largest).to_bits() >> 52) as i32 - 1023;
        let factor = 2f64.powi(-exponent);
        for value in vector {
            *value = (f64::from(*value) * factor) as f32;
        }
    }
}

/// The product in f64, where no product of two f32 overflows or is lost.
fn dot(a: &[f32], b: &[f32]) -> f64 {
    a.iter().zip(b).map(|(&a, &b)| f64::from(a) * f64::from(b)).sum()
}
