//! The linear algebra that finding a rotation takes: eigenvectors of a symmetric matrix, and the
//! orthogonal matrix nearest to one. Matrices are stored row by row.

use crate::parallel::*;

/// The fewest rows of a matrix that are worth a task for another thread.
const ROWS_PER_TASK: usize = 64;

pub(super) fn identity(dim: usize) -> Vec<f32> {
    let mut matrix = vec![0.0; dim * dim];
    matrix.iter_mut().step_by(dim + 1).for_each(|value| *value = 1.0);
    matrix
}

pub(super) fn transposed<T: Copy + Default>(matrix: &[T], dim: usize) -> Vec<T> {
    let mut columns = vec![T::default(); matrix.len()];
    for (i, row) in matrix.chunks_exact(dim).enumerate() {
        for (j, &value) in row.iter().enumerate() {
            columns[j * dim + i] = value;
        }
    }
    columns
}

/// The orthogonal matrix nearest to a square one: its polar factor, by Newton's iteration
/// `x = (x + x⁻ᵀ) / 2` with scaling. `None` when the matrix has no inverse, or nearly so.
pub(super) fn polar(matrix: &[f64], dim: usize) -> Option<Vec<f64>> {
    let mut x = matrix.to_vec();
    // It takes about ten rounds, and more only where rounding errors keep it from converging.
    for _ in 0..40 {
        let inverse = transposed(&inverse(&x, dim)?, dim);
        let scale = (norm(&inverse) / norm(&x)).sqrt();
        if !scale.is_finite() {
            return None;
        }
        // Near the end the scale is one up to rounding, which it would only add to.
        let scale = if (scale - 1.0).abs() < 0.01 { 1.0 } else { scale };
        let mut change = 0.0;
        for (x, inverse) in x.iter_mut().zip(inverse) {
            let new = 0.5 * (scale * *x + inverse / scale);
            change += (new - *x) * (new - *x);
            *x = new;
        }
        // Convergence is quadratic: after so small a step there is only rounding.
        if change.sqrt() <= 1e-9 * norm(&x) {
            return Some(x);
        }
    }
    None
}

/// The Frobenius norm.
fn norm(matrix: &[f64]) -> f64 {
    matrix.iter().map(|value| value * value).sum::<f64>().sqrt()
}

/// The inverse of a matrix by Gauss-Jordan elimination, with the largest value of a column as
/// pivot; `None` when there is none.
fn inverse(matrix: &[f64], dim: usize) -> Option<Vec<f64>> {
    let mut a = matrix.to_vec();
    let mut swaps = Vec::with_capacity(dim);
    for k in 0..dim {
        let larger = |&i: &usize, &j: &usize| {
            a[i * dim + k].abs().total_cmp(&a[j * dim + k].abs()).then(j.cmp(&i))
        };
        let pivot = (k..dim).max_by(larger)?;
        swaps.push(pivot);
        if pivot != k {
            let (head, tail) = a.split_at_mut(pivot * dim);
            head[k * dim..][..dim].swap_with_slice(&mut tail[..dim]);
        }
        let factor = 1.0 / a[k * dim + k];
        if !factor.is_finite() {
            return None;
        }
        let row = &mut a[k * dim..][..dim];
        row[k] = 1.0;
        row.iter_mut().for_each(|value| *value *= factor);
        let row = row.to_vec();
        a.par_chunks_exact_mut(dim).with_min_len(ROWS_PER_TASK).enumerate().for_each(
            |(i, other)| {
                if i != k {
                    let factor = std::mem::take(&mut other[k]);
                    other.iter_mut().zip(&row).for_each(|(value, row)| *value -= factor * row);
                }
            },
        );
    }
    for (k, pivot) in swaps.into_iter().enumerate().rev().filter(|(k, pivot)| k != pivot) {
        a.chunks_exact_mut(dim).for_each(|row| row.swap(k, pivot));
    }
    Some(a)
}

/// The eigenvalues of a symmetric matrix, in no order, and its eigenvectors as rows. `None` when
/// the iteration does not converge.
///
/// # Panics
/// If the matrix has no rows.
pub fn eigen(matrix: &[f64], dim: usize) -> Option<(Vec<f64>, Vec<f64>)> {
    let (mut diagonal, mut off_diagonal, reflections) = tridiagonal(matrix, dim);
    let mut vectors = vec![0.0; dim * dim];
    vectors.iter_mut().step_by(dim + 1).for_each(|value| *value = 1.0);
    implicit_ql(&mut diagonal, &mut off_diagonal, &mut vectors)?;
    // These are the vectors of the tridiagonal matrix: the reflections lead back to those of the
    // first.
    vectors.par_chunks_exact_mut(dim).for_each(|vector| {
        for (k, v) in reflections.iter().enumerate().rev() {
            let tail = &mut vector[k + 1..];
            let product = 2.0 * dot(tail, v);
            tail.iter_mut().zip(v).for_each(|(value, v)| *value -= product * v);
        }
    });
    Some((diagonal, vectors))
}

/// Householder's reduction to a tridiagonal matrix: its diagonal, the values beside the diagonal,
/// and the unit vectors of the reflections, the first of which leaves only the first value alone.
fn tridiagonal(matrix: &[f64], dim: usize) -> (Vec<f64>, Vec<f64>, Vec<Vec<f64>>) {
    let mut a = matrix.to_vec();
    let mut off_diagonal = vec![0.0; dim];
    let mut reflections = Vec::new();
    for k in 0..dim.saturating_sub(1) {
        // The matrix is symmetric, so the column below the diagonal is this part of the row.
        let mut v = a[k * dim + k + 1..][..dim - k - 1].to_vec();
        let length = norm(&v);
        let image = if v[0] > 0.0 { -length } else { length };
        off_diagonal[k] = image;
        v[0] -= image;
        let length = norm(&v);
        if length > 0.0 {
            v.iter_mut().for_each(|value| *value /= length);
        }
        let rest = &mut a[(k + 1) * dim..];
        let rows = rest.par_chunks_exact(dim).with_min_len(ROWS_PER_TASK);
        let mut w: Vec<f64> = rows.map(|row| 2.0 * dot(&row[k + 1..], &v)).collect();
        let common = dot(&w, &v);
        w.iter_mut().zip(&v).for_each(|(w, v)| *w -= common * v);
        let rows = rest.par_chunks_exact_mut(dim).with_min_len(ROWS_PER_TASK);
        rows.zip(&w).zip(&v).for_each(|((row, &wi), &vi)| {
            for ((value, w), v) in row[k + 1..].iter_mut().zip(&w).zip(&v) {
                *value -= vi * w + wi * v;
            }
        });
        reflections.push(v);
    }
    let diagonal = a.iter().copied().step_by(dim + 1).collect();
    (diagonal, off_diagonal, reflections)
}

/// The QL iteration with implicit shifts. `vectors` are turned with it, as rows.
fn implicit_ql(d: &mut [f64], e: &mut [f64], vectors: &mut [f64]) -> Option<()> {
    let n = d.len();
    for l in 0..n {
        for round in 0.. {
            let small = |m: &usize| e[*m].abs() <= f64::EPSILON * (d[*m].abs() + d[m + 1].abs());
            let m = (l..n - 1).find(small).unwrap_or(n - 1);
            if m == l {
                break;
            }
            if round == 100 {
                return None;
            }
            let g = (d[l + 1] - d[l]) / (2.0 * e[l]);
            let mut g = d[m] - d[l] + e[l] / (g + g.hypot(1.0).copysign(g));
            let (mut s, mut c, mut p) = (1.0, 1.0, 0.0);
            let mut deflated = false;
            for i in (l..m).rev() {
                let (f, b) = (s * e[i], c * e[i]);
                let r = f.hypot(g);
                e[i + 1] = r;
                if r == 0.0 {
                    d[i + 1] -= p;
                    e[m] = 0.0;
                    deflated = true;
                    break;
                }
                (s, c) = (f / r, g / r);
                g = d[i + 1] - p;
                let r = (d[i] - g) * s + 2.0 * c * b;
                p = s * r;
                d[i + 1] = g + p;
                g = c * r - b;
                let (head, tail) = vectors.split_at_mut((i + 1) * n);
                for (a, b) in head[i * n..].iter_mut().zip(&mut tail[..n]) {
                    (*a, *b) = (c * *a - s * *b, s * *a + c * *b);
                }
            }
            if !deflated {
                d[l] -= p;
                e[l] = g;
                e[m] = 0.0;
            }
        }
    }
    Some(())
}

/// The dot product of two vectors of the same length, in f64.
pub fn dot(a: &[f64], b: &[f64]) -> f64 {
    // Four sums, which the compiler can keep in vectors.
    let (heads, tails) = (a.as_chunks::<4>(), b.as_chunks::<4>());
    let mut sums = [0.0; 4];
    for (a, b) in heads.0.iter().zip(tails.0) {
        for i in 0..4 {
            sums[i] += a[i] * b[i];
        }
    }
    let rest: f64 = heads.1.iter().zip(tails.1).map(|(a, b)| a * b).sum();
    sums.iter().sum::<f64>() + rest
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::product::random::Random;

    fn random_matrix(dim: usize, seed: u64) -> Vec<f64> {
        let mut random = Random::new(seed);
        (0..dim * dim).map(|_| random.unit() - 0.5).collect()
    }

    fn product(a: &[f64], b: &[f64], dim: usize) -> Vec<f64> {
        let b = transposed(b, dim);
        a.chunks_exact(dim).flat_map(|row| b.chunks_exact(dim).map(|c| dot(row, c))).collect()
    }

    fn distance(a: &[f64], b: &[f64]) -> f64 {
        a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max)
    }

    fn unit(dim: usize) -> Vec<f64> {
        identity(dim).into_iter().map(f64::from).collect()
    }

    #[test]
    fn an_inverse_is_one() {
        for dim in [1, 2, 3, 10, 65, 130] {
            let matrix = random_matrix(dim, 3);
            let inverse = inverse(&matrix, dim).unwrap();
            assert!(distance(&product(&matrix, &inverse, dim), &unit(dim)) < 1e-9);
        }
        assert_eq!(inverse(&[0.0], 1), None);
        assert_eq!(inverse(&[1.0, 2.0, 2.0, 4.0], 2), None);
        // With a zero on the diagonal rows are swapped.
        assert_eq!(inverse(&[0.0, 1.0, 1.0, 0.0], 2).unwrap(), [0.0, 1.0, 1.0, 0.0]);
    }

    /// The polar factor is orthogonal, and what is left of the matrix symmetric.
    #[test]
    fn a_polar_factor_is_one() {
        for dim in [1, 2, 3, 10, 65, 130] {
            let matrix = random_matrix(dim, 4);
            let factor = polar(&matrix, dim).unwrap();
            let columns = transposed(&factor, dim);
            assert!(distance(&product(&columns, &factor, dim), &unit(dim)) < 1e-9);
            let rest = product(&columns, &matrix, dim);
            assert!(distance(&rest, &transposed(&rest, dim)) < 1e-9);
        }
        assert_eq!(polar(&[0.0; 9], 3), None);
        assert_eq!(polar(&[f64::NAN; 9], 3), None);
    }

    #[test]
    fn eigenvectors_are_such() {
        for dim in [1, 2, 3, 4, 10, 65, 130] {
            let half = random_matrix(dim, 5);
            let mut matrices = vec![product(&half, &transposed(&half, dim), dim), unit(dim)];
            matrices.push(vec![0.0; dim * dim]);
            matrices.push(vec![1.0; dim * dim]);
            for matrix in matrices {
                let (values, vectors) = eigen(&matrix, dim).unwrap();
                let columns = transposed(&vectors, dim);
                assert!(distance(&product(&vectors, &columns, dim), &unit(dim)) < 1e-9);
                for (value, vector) in values.iter().zip(vectors.chunks_exact(dim)) {
                    for (row, v) in matrix.chunks_exact(dim).zip(vector) {
                        assert!((dot(row, vector) - value * v).abs() < 1e-9);
                    }
                }
            }
        }
    }
}
