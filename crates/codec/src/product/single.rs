//! Single rows, and how good a rotation is.

use super::{Codebook, linear};
use crate::panel::PANEL;
use crate::simd::{Level, Vector, dispatch};
use std::sync::OnceLock;

/// How far a codebook's projection is from a rotation, once somebody asked. It follows from the
/// projection, so that codebooks do not differ in it.
#[derive(Clone, Debug, Default)]
pub(super) struct Distortion(OnceLock<f64>);

impl PartialEq for Distortion {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Codebook {
    /// By how much at most the square of a row's length changes when it is rotated back, as a share: how far
    /// the projection times its transpose is from the identity (in the Frobenius norm). 0 without a
    /// projection, NaN if it holds NaN. It is found out once.
    pub fn distortion(&self) -> f64 {
        *self.distortion.0.get_or_init(|| match &self.projection {
            Some(projection) => distortion(projection, self.dim),
            None => 0.0,
        })
    }

    /// Decodes rows one at a time, with the same values as [`Codebook::decode`], which takes many
    /// times as long for one.
    pub fn row_decoder(&self) -> RowDecoder<'_> {
        let width = self.dim.next_multiple_of(PANEL);
        let mut columns = Vec::new();
        if let Some(projection) = &self.projection {
            columns = vec![0.0; self.dim * width];
            let transposed = linear::transposed(projection, self.dim);
            for (to, from) in columns.chunks_exact_mut(width).zip(transposed.chunks_exact(self.dim))
            {
                to[..self.dim].copy_from_slice(from);
            }
        }
        RowDecoder { book: self, columns }
    }
}

/// See [`Codebook::row_decoder`].
#[derive(Debug)]
pub struct RowDecoder<'a> {
    book: &'a Codebook,
    /// The columns of the projection, padded; empty without one.
    columns: Vec<f32>,
}

impl RowDecoder<'_> {
    /// Decodes one row.
    ///
    /// # Panics
    ///
    /// When `out` is not one row, or `codes` not a code for each part.
    pub fn decode(&self, codes: &[u8], out: &mut [f32]) {
        let book = self.book;
        assert!(out.len() == book.dim && codes.len() == book.parts, "one row");
        if self.columns.is_empty() {
            return book.decode_part(codes, 0, out);
        }
        let mut rotated = vec![0.0; book.dim];
        book.decode_part(codes, 0, &mut rotated);
        let mut values = vec![0.0; book.dim.next_multiple_of(PANEL)];
        sum_columns(Level::best(), &rotated, &self.columns, &mut values);
        out.copy_from_slice(&values[..book.dim]);
    }
}

dispatch! {
    /// The sum of columns, each times a factor, in the order of the factors.
    fn sum_columns(factors: &[f32], columns: &[f32], sums: &mut [f32]) = sixteen sum_columns_with;
}

#[inline(always)]
fn sum_columns_with<V: Vector>(
    token: V::Token,
    factors: &[f32],
    columns: &[f32],
    sums: &mut [f32],
) {
    /// Registers of columns whose sums are made side by side.
    const SIDE: usize = 4;
    let width = sums.len();
    for (at, sums) in sums.chunks_mut(SIDE * PANEL).enumerate() {
        let mut lanes = [V::splat(token, 0.0); SIDE];
        for (factor, column) in factors.iter().zip(columns.chunks_exact(width)) {
            let factor = V::splat(token, *factor);
            let column = column[at * SIDE * PANEL..].as_chunks::<PANEL>().0;
            for (lanes, column) in lanes.iter_mut().zip(column) {
                *lanes = factor.mul_add(V::load(token, column), *lanes);
            }
        }
        for (lanes, sums) in lanes.into_iter().zip(sums.chunks_exact_mut(PANEL)) {
            lanes.store(sums);
        }
    }
}

/// The Frobenius norm of `P^T P - 1`, in f64.
fn distortion(projection: &[f32], dim: usize) -> f64 {
    let columns = linear::transposed(projection, dim);
    let mut sum = 0.0;
    for (i, a) in columns.chunks_exact(dim).enumerate() {
        for (j, b) in columns.chunks_exact(dim).enumerate().take(i + 1) {
            let mut sums = [0.0f64; 8];
            for (a, b) in a.chunks(8).zip(b.chunks(8)) {
                for (sum, (a, b)) in sums.iter_mut().zip(a.iter().zip(b)) {
                    *sum += f64::from(*a) * f64::from(*b);
                }
            }
            let product: f64 = sums.iter().sum();
            sum += if i == j { (product - 1.0).powi(2) } else { 2.0 * product.powi(2) };
        }
    }
    sum.sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn single_rows_have_the_bits_of_many() {
        let mut state = 1u64;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 40) as f32 / (1 << 23) as f32 - 1.0
        };
        for (dim, parts) in [(1, 1), (6, 3), (40, 8), (64, 4), (70, 7), (130, 13), (300, 30)] {
            let values: Vec<f32> = (0..dim * 5).map(|_| next()).collect();
            let square: Vec<f32> = (0..dim * dim).map(|_| next()).collect();
            for projection in [None, Some(square)] {
                let book = Codebook::new(dim, parts, 5, values.clone(), projection).unwrap();
                let codes: Vec<u8> = (0..parts * 20).map(|i| (i * 7 % 11 % 6) as u8).collect();
                let mut all = vec![0.0; 20 * dim];
                book.decode(&codes, &mut all);
                let (decoder, mut row) = (book.row_decoder(), vec![0.0; dim]);
                for (codes, expected) in codes.chunks_exact(parts).zip(all.chunks_exact(dim)) {
                    decoder.decode(codes, &mut row);
                    assert_eq!(row, expected, "{dim}");
                }
            }
        }
    }

    #[test]
    fn distortion_is_that_of_the_projection() {
        let book = |projection| Codebook::new(2, 1, 1, vec![0.0; 2], projection).unwrap();
        assert_eq!(book(None).distortion(), 0.0);
        let turned = book(Some(vec![0.6, -0.8, 0.8, 0.6]));
        assert!(turned.distortion() < 1e-6);
        assert_eq!(book(Some(vec![2.0, 0.0, 0.0, 1.0])).distortion(), 3.0);
        assert!(book(Some(vec![f32::NAN; 4])).distortion().is_nan());
        assert_eq!(turned, book(Some(vec![0.6, -0.8, 0.8, 0.6])), "whether it was asked or not");
    }
}
