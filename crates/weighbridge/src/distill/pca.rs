//! Principal components: the directions in which rows differ most, and the rows along them.

use weighbridge_codec::parallel::*;
use weighbridge_codec::product::{dot, eigen};

/// Rows whose sums are made by one task. Sums of tasks are added in their order, so that threads make no
/// difference.
const ROWS: usize = 4096;

/// Columns whose products are summed together, so that they stay in the cache.
const COLUMNS: usize = 16;

/// Rows along their principal components, and the share of the variance that these have. None if values
/// are not finite.
pub(super) fn reduce(rows: &[f32], width: usize, wanted: usize) -> Option<(Vec<f32>, f64)> {
    let mean = means(rows, width);
    let covariance = covariance(rows, width, &mean);
    if !covariance.iter().all(|value| value.is_finite()) {
        return None;
    }
    let (values, vectors) = eigen(&covariance, width)?;
    let mut components: Vec<_> = values.into_iter().zip(vectors.chunks_exact(width)).collect();
    components.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    let total: f64 = components.iter().map(|(value, _)| value.max(0.0)).sum();
    let kept: f64 = components.iter().take(wanted).map(|(value, _)| value.max(0.0)).sum();
    let share = if total > 0.0 { kept / total } else { 1.0 };
    let directions: Vec<_> =
        components.into_iter().take(wanted).map(|(_, vector)| pointing(vector.to_vec())).collect();
    let mut made = vec![0.0; rows.len() / width * wanted];
    let each = rows.par_chunks_exact(width).zip(made.par_chunks_exact_mut(wanted));
    each.for_each(|(row, made)| {
        let centred: Vec<_> = row.iter().zip(&mean).map(|(x, m)| f64::from(*x) - m).collect();
        #[allow(clippy::cast_possible_truncation)]
        for (value, direction) in made.iter_mut().zip(&directions) {
            *value = dot(&centred, direction) as f32;
        }
    });
    Some((made, share))
}

/// A direction, of which the largest value is positive: either would do, and this is what scikit-learn
/// takes.
fn pointing(mut vector: Vec<f64>) -> Vec<f64> {
    let largest =
        vector.iter().fold(0.0, |most: f64, x| if x.abs() > most.abs() { *x } else { most });
    if largest < 0.0 {
        vector.iter_mut().for_each(|x| *x = -*x);
    }
    vector
}

#[allow(clippy::cast_precision_loss)]
fn means(rows: &[f32], width: usize) -> Vec<f64> {
    let parts: Vec<Vec<f64>> = rows
        .par_chunks(ROWS * width)
        .map(|rows| {
            let mut sums = vec![0.0; width];
            for row in rows.chunks_exact(width) {
                sums.iter_mut().zip(row).for_each(|(sum, x)| *sum += f64::from(*x));
            }
            sums
        })
        .collect();
    let mut sums = add_up(parts, width);
    let count = (rows.len() / width).max(1) as f64;
    sums.iter_mut().for_each(|sum| *sum /= count);
    sums
}

/// The sums of products of columns, less their means, divided by the number of rows less one.
#[allow(clippy::cast_precision_loss)]
fn covariance(rows: &[f32], width: usize, mean: &[f64]) -> Vec<f64> {
    let parts: Vec<Vec<f64>> =
        rows.par_chunks(ROWS * width).map(|rows| products(rows, width, mean)).collect();
    let mut sums = add_up(parts, width * width);
    let count = (rows.len() / width).saturating_sub(1).max(1) as f64;
    sums.iter_mut().for_each(|sum| *sum /= count);
    // Both halves are the same.
    for i in 0..width {
        for j in 0..i {
            sums[j * width + i] = sums[i * width + j];
        }
    }
    sums
}

/// The sums of products of columns, below the diagonal.
fn products(rows: &[f32], width: usize, mean: &[f64]) -> Vec<f64> {
    const TOGETHER: usize = 128;
    let mut sums = vec![0.0; width * width];
    let mut columns = vec![0.0; width * TOGETHER];
    for rows in rows.chunks(TOGETHER * width) {
        columns.fill(0.0);
        for (r, row) in rows.chunks_exact(width).enumerate() {
            for ((column, x), m) in columns.chunks_exact_mut(TOGETHER).zip(row).zip(mean) {
                column[r] = f64::from(*x) - m;
            }
        }
        for first in (0..width).step_by(COLUMNS) {
            for i in first..width {
                let column = &columns[i * TOGETHER..][..TOGETHER];
                for j in first..(first + COLUMNS).min(i + 1) {
                    sums[i * width + j] += dot(column, &columns[j * TOGETHER..][..TOGETHER]);
                }
            }
        }
    }
    sums
}

fn add_up(parts: Vec<Vec<f64>>, len: usize) -> Vec<f64> {
    let mut sums = vec![0.0; len];
    for part in parts {
        sums.iter_mut().zip(part).for_each(|(sum, x)| *sum += x);
    }
    sums
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_along_a_line_need_one_component() {
        let rows: Vec<f32> = (0..40).flat_map(|i| [i as f32, 2.0 * i as f32 + 5.0]).collect();
        let (made, share) = reduce(&rows, 2, 1).unwrap();
        assert!((share - 1.0).abs() < 1e-9);
        for (i, value) in made.iter().enumerate() {
            let wanted = (i as f32 - 19.5) * 5f32.sqrt();
            assert!((value - wanted).abs() < 1e-4, "{i}: {value} {wanted}");
        }
    }

    #[test]
    fn all_components_keep_distances() {
        let rows: Vec<f32> = (0..300).map(|i| ((i * i) as f32).sin()).collect();
        let (made, share) = reduce(&rows, 10, 10).unwrap();
        assert!((share - 1.0).abs() < 1e-12);
        let distance = |rows: &[f32], i: usize, j: usize| -> f32 {
            let row = |i: usize| rows[i * 10..][..10].to_vec();
            row(i).iter().zip(row(j)).map(|(a, b)| (a - b) * (a - b)).sum()
        };
        for (i, j) in [(0, 1), (3, 29), (7, 8)] {
            assert!((distance(&rows, i, j) - distance(&made, i, j)).abs() < 1e-4);
        }
        assert!(reduce(&[f32::NAN, 1.0, 2.0, 3.0], 2, 1).is_none());
    }
}
