//! The Cholesky factor of a Hessian.

use weighbridge_codec::parallel::*;
use weighbridge_codec::product::dot;

/// Columns that are eliminated together.
const TOGETHER: usize = 48;

/// The Cholesky factor: the upper triangular `R` with `H = R Rᵀ`, row by row, with zeros below the diagonal. None when the
/// matrix is not positive.
///
/// The squared error `e H eᵀ` is then the squared length of `e R`, whose values depend on the first
/// `k` errors only: so errors that were made can be made up for by the next.
pub(super) fn upper_factor(matrix: &[f32], width: usize) -> Option<Vec<f32>> {
    // Turned around, it is the usual lower triangular factor.
    let mut a: Vec<f64> = matrix.iter().rev().map(|v| f64::from(*v)).collect();
    for start in (0..width).step_by(TOGETHER) {
        let end = width.min(start + TOGETHER);
        for k in start..end {
            let (head, tail) = a.split_at_mut((k + 1) * width);
            let own = &mut head[k * width..];
            let square = own[k] - dot(&own[start..k], &own[start..k]);
            if square.is_nan() || square <= 0.0 {
                return None;
            }
            let root = square.sqrt();
            own[k] = root;
            let own = &own[start..k];
            for row in tail.chunks_exact_mut(width).take(end - k - 1) {
                row[k] = (row[k] - dot(&row[start..k], own)) / root;
            }
        }
        let (head, tail) = a.split_at_mut(end * width);
        let head = &head[start * width..];
        tail.par_chunks_exact_mut(width).for_each(|row| {
            for k in start..end {
                let own = &head[(k - start) * width..];
                row[k] = (row[k] - dot(&row[start..k], &own[start..k])) / own[k];
            }
        });
        // What the next columns get to see, for which all rows must be done.
        let done: Vec<f64> =
            tail.chunks_exact(width).flat_map(|row| &row[start..end]).copied().collect();
        tail.par_chunks_exact_mut(width).enumerate().for_each(|(i, row)| {
            let (own, rest) = row.split_at_mut(end);
            let own = &own[start..];
            for (value, other) in rest[..=i].iter_mut().zip(done.chunks_exact(end - start)) {
                *value -= dot(own, other);
            }
        });
    }
    #[allow(clippy::cast_possible_truncation)]
    let mut factor: Vec<f32> = a.iter().rev().map(|v| *v as f32).collect();
    for (i, row) in factor.chunks_exact_mut(width).enumerate() {
        row[..i].fill(0.0);
    }
    Some(factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_factor_times_its_transpose_is_the_matrix() {
        for width in [1, 2, 47, 48, 49, 130] {
            let value = |i: usize| ((i * 7919 + 13) % 1009) as f32 / 1009.0 - 0.5;
            let half: Vec<f32> = (0..width * width).map(value).collect();
            let product = |a: &[f32], i: usize, j: usize| -> f64 {
                let rows = a[i * width..][..width].iter().zip(&a[j * width..][..width]);
                rows.map(|(x, y)| f64::from(x * y)).sum()
            };
            let mut matrix = vec![0.0; width * width];
            for i in 0..width {
                for j in 0..width {
                    matrix[i * width + j] = product(&half, i, j) as f32;
                }
                matrix[i * width + i] += 1.0;
            }
            let factor = upper_factor(&matrix, width).unwrap();
            for i in 0..width {
                assert!(factor[i * width..][..i].iter().all(|v| *v == 0.0));
                for j in 0..width {
                    let found = product(&factor, i, j);
                    assert!((found - f64::from(matrix[i * width + j])).abs() < 1e-4);
                }
            }
        }
        assert_eq!(upper_factor(&[1.0, 2.0, 2.0, 1.0], 2), None);
        assert_eq!(upper_factor(&[f32::NAN], 1), None);
    }
}
