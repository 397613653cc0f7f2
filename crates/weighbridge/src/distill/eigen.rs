//! The eigenvectors of a symmetric matrix: reflections bring it to three diagonals, and rotations these
//! to one (Householder's method and the QL method with implicit shifts). In f64, and the same on every
//! machine: nothing depends on threads or on the processor.

/// More rotations than a value ever needs.
const MOST_STEPS: usize = 64;

/// Eigenvalues with their vectors of length 1, the largest value first. The matrix is square, its rows
/// one behind the other, and only what is on and below its diagonal counts. None if it holds what is
/// not finite.
pub(super) fn eigen(matrix: &[f64], n: usize) -> Option<Vec<(f64, Vec<f64>)>> {
    if matrix.len() != n * n || !matrix.iter().all(|value| value.is_finite()) {
        return None;
    }
    let mut a: Vec<Vec<f64>> = matrix.chunks_exact(n.max(1)).map(<[f64]>::to_vec).collect();
    let (mut diagonal, mut beside) = to_three_diagonals(&mut a);
    let mut vectors = rotations_of(&a, n);
    to_one_diagonal(&mut diagonal, &mut beside, &mut vectors)?;
    let mut pairs: Vec<_> = diagonal.into_iter().zip(vectors).collect();
    pairs.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    Some(pairs)
}

/// Leaves in the rows of the matrix the vectors that it was reflected at, below the diagonal, with the
/// halves of their squared lengths on it; zero where nothing had to be reflected. Returns the diagonal,
/// and what stands beside it, from the second row on.
fn to_three_diagonals(a: &mut [Vec<f64>]) -> (Vec<f64>, Vec<f64>) {
    let n = a.len();
    let (mut diagonal, mut beside) = (vec![0.0; n], vec![0.0; n]);
    for i in (1..n).rev() {
        let (above, rest) = a.split_at_mut(i);
        let Some(row) = rest.first_mut() else { break };
        let scale: f64 = row[..i].iter().map(|x| x.abs()).sum();
        diagonal[i] = row[i];
        if i == 1 || scale == 0.0 {
            beside[i] = row[i - 1];
            row[i] = 0.0;
            continue;
        }
        // The reflection that leaves one value of this row beside the diagonal.
        let u = &mut row[..i];
        u.iter_mut().for_each(|x| *x /= scale);
        let length = u.iter().map(|x| x * x).sum::<f64>();
        let last = u[i - 1];
        let side = if last >= 0.0 { -length.sqrt() } else { length.sqrt() };
        beside[i] = scale * side;
        let half = length - last * side;
        u[i - 1] = last - side;
        // Both sides of what is above: A - u qᵀ - q uᵀ.
        let mut p = vec![0.0; i];
        for (j, line) in above.iter().enumerate() {
            let (known, own) = (&line[..j], u[j]);
            let mut sum = line[j] * own;
            for ((x, y), z) in known.iter().zip(&u[..j]).zip(&mut p[..j]) {
                sum += x * y;
                *z += x * own;
            }
            p[j] += sum;
        }
        p.iter_mut().for_each(|x| *x /= half);
        let k = p.iter().zip(&*u).map(|(x, y)| x * y).sum::<f64>() / (2.0 * half);
        p.iter_mut().zip(&*u).for_each(|(x, y)| *x -= k * y);
        for (j, line) in above.iter_mut().enumerate() {
            let (f, g) = (u[j], p[j]);
            for ((x, q), v) in line[..=j].iter_mut().zip(&p[..=j]).zip(&u[..=j]) {
                *x -= f * q + g * v;
            }
        }
        row[i] = half;
    }
    if let Some(first) = a.first() {
        diagonal[0] = first[0];
    }
    (diagonal, beside)
}

/// The product of all reflections, a column in each row.
fn rotations_of(a: &[Vec<f64>], n: usize) -> Vec<Vec<f64>> {
    let mut q: Vec<Vec<f64>> =
        (0..n).map(|i| (0..n).map(|j| f64::from(u8::from(i == j))).collect()).collect();
    for (i, row) in a.iter().enumerate() {
        let half = row[i];
        if i == 0 || half == 0.0 {
            continue;
        }
        let u = &row[..i];
        // Columns behind this one are not touched by it yet.
        for column in &mut q[..i] {
            let by = column[..i].iter().zip(u).map(|(x, y)| x * y).sum::<f64>() / half;
            column[..i].iter_mut().zip(u).for_each(|(x, y)| *x -= by * y);
        }
    }
    q
}

/// Turns neighbours on the diagonal until nothing stands beside it. The rows of `vectors` are turned
/// along.
fn to_one_diagonal(d: &mut [f64], e: &mut [f64], vectors: &mut [Vec<f64>]) -> Option<()> {
    let n = d.len();
    if n == 0 {
        return Some(());
    }
    e.rotate_left(1);
    e[n - 1] = 0.0;
    for l in 0..n {
        for step in 0.. {
            // The first place behind l where the matrix falls apart.
            let is_small = |m: &usize| {
                let near = d[*m].abs() + d[*m + 1].abs();
                e[*m].abs() <= f64::EPSILON * near
            };
            let m = (l..n - 1).find(is_small).unwrap_or(n - 1);
            if m == l {
                break;
            }
            if step >= MOST_STEPS {
                return None;
            }
            let mut g = (d[l + 1] - d[l]) / (2.0 * e[l]);
            let r = g.hypot(1.0);
            g = d[m] - d[l] + e[l] / (g + r.copysign(g));
            let (mut s, mut c, mut p) = (1.0, 1.0, 0.0);
            let mut fell_apart = false;
            for i in (l..m).rev() {
                let (f, b) = (s * e[i], c * e[i]);
                let r = f.hypot(g);
                e[i + 1] = r;
                if r == 0.0 {
                    d[i + 1] -= p;
                    e[m] = 0.0;
                    fell_apart = true;
                    break;
                }
                (s, c) = (f / r, g / r);
                g = d[i + 1] - p;
                let r = (d[i] - g) * s + 2.0 * c * b;
                p = s * r;
                d[i + 1] = g + p;
                g = c * r - b;
                let (low, high) = vectors.split_at_mut(i + 1);
                if let (Some(low), Some(high)) = (low.last_mut(), high.first_mut()) {
                    for (x, y) in low.iter_mut().zip(high) {
                        (*x, *y) = (c * *x - s * *y, s * *x + c * *y);
                    }
                }
            }
            if !fell_apart {
                d[l] -= p;
                e[l] = g;
                e[m] = 0.0;
            }
        }
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A symmetric matrix of made-up numbers.
    fn matrix(n: usize) -> Vec<f64> {
        let value = |i: usize, j: usize| {
            let (i, j) = (i.min(j) as f64, i.max(j) as f64);
            (3.0 * i + 7.0 * j).sin() + if i == j { 2.0 } else { 0.0 }
        };
        (0..n * n).map(|at| value(at / n, at % n)).collect()
    }

    fn times(matrix: &[f64], vector: &[f64]) -> Vec<f64> {
        let row = |row: &[f64]| row.iter().zip(vector).map(|(a, b)| a * b).sum();
        matrix.chunks_exact(vector.len()).map(row).collect()
    }

    #[test]
    fn vectors_are_only_made_longer() {
        for n in [1, 2, 3, 5, 16, 61] {
            let matrix = matrix(n);
            let found = eigen(&matrix, n).unwrap();
            assert!(found.is_sorted_by(|a, b| a.0 >= b.0));
            let trace: f64 = (0..n).map(|i| matrix[i * n + i]).sum();
            let sum: f64 = found.iter().map(|(value, _)| value).sum();
            assert!((trace - sum).abs() < 1e-9, "{n}: {trace} {sum}");
            for (i, (value, vector)) in found.iter().enumerate() {
                for (a, b) in times(&matrix, vector).iter().zip(vector) {
                    assert!((a - value * b).abs() < 1e-9, "{n}: {a} {}", value * b);
                }
                for (j, (_, other)) in found.iter().enumerate() {
                    let dot: f64 = vector.iter().zip(other).map(|(a, b)| a * b).sum();
                    let wanted = f64::from(u8::from(i == j));
                    assert!((dot - wanted).abs() < 1e-9, "{n}: {i} {j} {dot}");
                }
            }
        }
    }

    #[test]
    fn odd_matrices() {
        assert_eq!(eigen(&[], 0).unwrap(), []);
        assert_eq!(eigen(&[0.0; 9], 3).unwrap().len(), 3);
        let equal = eigen(&[2.0, 0.0, 0.0, 2.0], 2).unwrap();
        assert!(equal.iter().all(|(value, _)| *value == 2.0));
        assert!(eigen(&[f64::NAN], 1).is_none());
        assert!(eigen(&[1.0], 2).is_none());
    }
}
