//! The Cholesky factor of the sums of products of inputs.

use weighbridge_codec::gram::add_products;
use weighbridge_codec::panel::PANEL;
use weighbridge_codec::parallel::*;
use weighbridge_codec::simd::{Level, Vector, dispatch};

/// Columns that are eliminated together.
const TOGETHER: usize = 64;

/// Values of sixteen rows in one column.
pub(super) type Lanes = [f32; PANEL];

/// The upper triangular `R` with `H = R Rᵀ`.
///
/// The squared error `e H eᵀ` is then the squared length of `e R`, whose values depend on the first
/// `k` errors only: so errors that were made can be made up for by the next.
#[derive(Debug, PartialEq)]
pub(super) struct Factor {
    pub width: usize,
    /// From a row to the next. Rows that are a power of two apart would be in each other's way in the
    /// cache.
    pub stride: usize,
    /// Its rows, with zeros below the diagonal.
    pub values: Vec<f32>,
    /// One over each value of the diagonal.
    pub inverses: Vec<f32>,
}

impl Factor {
    /// The factor of a symmetric matrix, of which the right half is read. None when it is not
    /// positive.
    pub(super) fn new(matrix: &[f32], width: usize) -> Option<Factor> {
        // Turned around, it is the usual lower triangular factor.
        let mut a: Vec<f32> = matrix.iter().rev().copied().collect();
        for start in (0..width).step_by(TOGETHER) {
            let end = width.min(start + TOGETHER);
            let (head, tail) = a.split_at_mut(end * width);
            let (block, inverses) = factor_block(&mut head[start * width..], width, start)?;
            // The columns of sixteen rows side by side.
            let columns = end - start;
            let mut lanes = vec![[0.0; PANEL]; tail.len().div_ceil(PANEL * width) * columns];
            let panels =
                tail.par_chunks_mut(PANEL * width).zip(lanes.par_chunks_exact_mut(columns));
            panels.for_each(|(rows, lanes)| {
                for (i, row) in rows.chunks_exact(width).enumerate() {
                    lanes.iter_mut().zip(&row[start..end]).for_each(|(lane, v)| lane[i] = *v);
                }
                solve(Level::best(), &block, &inverses, lanes);
                for (i, row) in rows.chunks_exact_mut(width).enumerate() {
                    row[start..end].iter_mut().zip(&*lanes).for_each(|(v, lane)| *v = lane[i]);
                }
            });
            tail.par_chunks_mut(PANEL * width).enumerate().for_each(|(i, rows)| {
                let own = &lanes[i * columns..][..columns];
                for (j, others) in lanes.chunks_exact(columns).take(i + 1).enumerate() {
                    let mut tile = [[0.0; PANEL]; PANEL];
                    add_products(Level::best(), own, others, &mut tile);
                    for (row, tile) in rows.chunks_exact_mut(width).zip(tile) {
                        let places = row[end + j * PANEL..].iter_mut().zip(tile);
                        places.for_each(|(value, product)| *value -= product);
                    }
                }
            });
        }
        let stride = width + PANEL;
        let mut values = vec![0.0; width * stride];
        values.par_chunks_exact_mut(stride).enumerate().for_each(|(i, row)| {
            let turned = a[(width - 1 - i) * width..][..width - i].iter().rev();
            row[i..].iter_mut().zip(turned).for_each(|(to, value)| *to = *value);
        });
        let inverses = values.iter().step_by(stride + 1).map(|v| 1.0 / v).collect();
        Some(Factor { width, stride, values, inverses })
    }

    /// What the errors of a column count if those behind it make up for them as well as they can.
    pub(super) fn importance(&self) -> Vec<f32> {
        self.values.iter().step_by(self.stride + 1).map(|v| v * v).collect()
    }
}

/// Factors the block at the diagonal, in rows of so many values. Its rows, and one over each value of
/// its diagonal.
fn factor_block(rows: &mut [f32], width: usize, start: usize) -> Option<(Vec<f32>, Vec<f32>)> {
    let count = rows.len() / width;
    let mut block = vec![0.0; count * count];
    let mut inverses = Vec::with_capacity(count);
    for i in 0..count {
        let (done, own) = block.split_at_mut(i * count);
        for j in 0..=i {
            let dot = |other: &[f32], own: &[f32]| {
                other[..j].iter().zip(own).map(|(a, b)| a * b).sum::<f32>()
            };
            let value = rows[i * width + start + j];
            if j < i {
                let other = &done[j * count..][..count];
                own[j] = (value - dot(other, own)) * inverses[j];
            } else {
                let square = value - dot(own, own);
                if square.is_nan() || square <= 0.0 || square.is_infinite() {
                    return None;
                }
                own[i] = square.sqrt();
                inverses.push(1.0 / own[i]);
            }
        }
        rows[i * width + start..][..=i].copy_from_slice(&own[..=i]);
    }
    Some((block, inverses))
}

dispatch! {
    /// Solves `x Lᵀ = lanes` for sixteen rows, where `L` is a block at the diagonal.
    fn solve(block: &[f32], inverses: &[f32], lanes: &mut [Lanes]) = sixteen solve_with;
}

#[inline(always)]
fn solve_with<V: Vector>(token: V::Token, block: &[f32], inverses: &[f32], lanes: &mut [Lanes]) {
    let count = inverses.len();
    for (k, (row, inverse)) in block.chunks_exact(count).zip(inverses).enumerate() {
        let (done, own) = lanes.split_at_mut(k);
        let mut sum = V::load(token, &own[0]);
        for (lane, value) in done.iter().zip(row) {
            sum = V::splat(token, -value).mul_add(V::load(token, lane), sum);
        }
        sum.mul(V::splat(token, *inverse)).store(&mut own[0]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_factor_times_its_transpose_is_the_matrix() {
        for width in [1, 2, 47, 48, 49, 63, 64, 65, 130] {
            let value = |i: usize| ((i * 7919 + 13) % 1009) as f32 / 1009.0 - 0.5;
            let half: Vec<f32> = (0..width * width).map(value).collect();
            let product = |a: &[f32], stride: usize, i: usize, j: usize| -> f64 {
                let rows = a[i * stride..][..width].iter().zip(&a[j * stride..][..width]);
                rows.map(|(x, y)| f64::from(x * y)).sum()
            };
            let mut matrix = vec![0.0; width * width];
            for i in 0..width {
                for j in 0..width {
                    matrix[i * width + j] = product(&half, width, i, j) as f32;
                }
                matrix[i * width + i] += 1.0;
            }
            let factor = Factor::new(&matrix, width).unwrap();
            for i in 0..width {
                let row = &factor.values[i * factor.stride..][..width];
                assert!(row[..i].iter().all(|v| *v == 0.0));
                assert!((row[i] * factor.inverses[i] - 1.0).abs() < 1e-6);
                for j in 0..width {
                    let found = product(&factor.values, factor.stride, i, j);
                    assert!((found - f64::from(matrix[i * width + j])).abs() < 1e-4);
                }
            }
        }
        assert_eq!(Factor::new(&[1.0, 2.0, 2.0, 1.0], 2), None);
        assert_eq!(Factor::new(&[f32::NAN], 1), None);
        assert_eq!(Factor::new(&[f32::INFINITY], 1), None);
    }
}
