//! Codebooks and their training as a whole.

use super::random::Random;
use super::*;
use std::ops::ControlFlow;

/// Rows that a rotation helps with: few factors behind many correlated values.
fn correlated(rows: usize, dim: usize, seed: u64) -> Vec<f32> {
    let mut random = Random::new(seed);
    let mut normal = move || (0..6).map(|_| random.unit() as f32 - 0.5).sum::<f32>();
    let factors = 4;
    let basis: Vec<f32> = (0..factors * dim).map(|_| normal()).collect();
    let mut values = Vec::with_capacity(rows * dim);
    for _ in 0..rows {
        let row: Vec<f32> = (0..factors).map(|_| normal()).collect();
        for i in 0..dim {
            let sum: f32 = row.iter().enumerate().map(|(f, v)| v * basis[f * dim + i]).sum();
            values.push(sum + 0.05 * normal());
        }
    }
    values
}

fn training(parts: usize, centroids: usize, rotate: bool) -> Training {
    Training { centroids, rotate, iterations: 10, rotations: 8, ..Training::new(parts) }
}

fn train(training: &Training, rows: &[f32], dim: usize) -> Codebook {
    let mut last = 0.0;
    let progress = &mut |done| {
        assert!((last..=1.0).contains(&done), "{last} {done}");
        last = done;
        ControlFlow::Continue(())
    };
    training.train(rows, dim, progress).unwrap()
}

fn coded(codebook: &Codebook, rows: &[f32]) -> (Vec<u8>, Vec<f32>) {
    let mut codes = vec![0; rows.len() / codebook.dim() * codebook.parts()];
    codebook.encode(rows, &mut codes);
    let mut back = vec![0.0; rows.len()];
    codebook.decode(&codes, &mut back);
    (codes, back)
}

fn distance(a: &[f32], b: &[f32]) -> f64 {
    a.iter().zip(b).map(|(a, b)| f64::from(a - b).powi(2)).sum()
}

fn error(codebook: &Codebook, rows: &[f32]) -> f64 {
    distance(rows, &coded(codebook, rows).1)
}

#[test]
fn lengths_must_fit() {
    let values = |count| vec![0.0; count];
    assert!(Codebook::new(6, 3, 256, values(6 * 256), None).is_some());
    assert!(Codebook::new(6, 3, 2, values(12), Some(values(36))).is_some());
    assert!(Codebook::new(6, 3, 2, values(12), Some(values(35))).is_none());
    assert!(Codebook::new(6, 3, 2, values(11), None).is_none());
    assert!(Codebook::new(6, 3, 0, values(0), None).is_none());
    assert!(Codebook::new(6, 3, 257, values(6 * 257), None).is_none());
    assert!(Codebook::new(6, 4, 2, values(12), None).is_none());
    assert!(Codebook::new(6, 0, 2, values(12), None).is_none());
    assert!(Codebook::new(0, 1, 2, values(0), None).is_none());
    assert!(Codebook::new(usize::MAX, 1, 2, values(2), None).is_none());
}

#[test]
fn codes_are_of_the_nearest_centroids() {
    for (dim, parts, centroids) in
        [(1, 1, 256), (1, 1, 3), (6, 6, 17), (6, 3, 256), (20, 2, 255), (30, 3, 5), (100, 1, 64)]
    {
        let rows = correlated(701, dim, 1);
        let codebook = train(&training(parts, centroids, false), &rows, dim);
        let (codes, back) = coded(&codebook, &rows);
        let width = dim / parts;
        for (i, (part, &code)) in rows.chunks_exact(width).zip(&codes).enumerate() {
            let table = &codebook.values()[i % parts * centroids * width..][..centroids * width];
            let distances = table.chunks_exact(width).map(|c| distance(part, c));
            let least = distances.clone().fold(f64::INFINITY, f64::min);
            let chosen = distances.clone().nth(usize::from(code)).unwrap();
            assert!(chosen <= least + 1e-5, "{dim} {parts} {centroids}: {chosen} {least}");
            let decoded = &table[usize::from(code) * width..][..width];
            assert_eq!(decoded, &back[i * width..][..width]);
        }
    }
}

/// Far from zero, where squares have no digits left for small differences.
#[test]
fn rows_far_from_zero_are_distinguished() {
    let near = correlated(3000, 8, 2);
    let far: Vec<f32> = near.iter().map(|value| value + 1000.0).collect();
    for rotate in [false, true] {
        let training = training(4, 32, rotate);
        let near = error(&train(&training, &near, 8), &near);
        let far = error(&train(&training, &far, 8), &far);
        assert!(far < 1.1 * near, "{far} {near}");
    }
}

#[test]
fn codes_beyond_the_last_centroid_are_the_last() {
    let rotation = vec![0.0, 1.0, -1.0, 0.0];
    for (projection, expected) in [(None, [3.0, 6.0]), (Some(rotation), [6.0, -3.0])] {
        let values = vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
        let codebook = Codebook::new(2, 2, 3, values, projection).unwrap();
        let mut out = [0.0; 4];
        codebook.decode(&[2, 2, 3, 255], &mut out);
        assert_eq!([&out[..2], &out[2..]], [&expected, &expected]);
        // And back, with a row times the projection.
        let mut codes = [7; 4];
        codebook.encode(&out, &mut codes);
        assert_eq!(codes, [2; 4]);
    }
}

#[test]
fn training_lessens_the_error_and_a_rotation_even_more() {
    let (rows, dim) = (correlated(4000, 24, 3), 24);
    let few = Training { iterations: 0, ..training(6, 32, false) };
    let start = error(&train(&few, &rows, dim), &rows);
    let plain = error(&train(&training(6, 32, false), &rows, dim), &rows);
    let rotated = error(&train(&training(6, 32, true), &rows, dim), &rows);
    assert!(plain < 0.9 * start, "{plain} {start}");
    assert!(rotated < 0.9 * plain, "{rotated} {plain}");
}

#[test]
fn a_projection_is_orthogonal() {
    // The third has fewer factors than dimensions, exactly; the last two are all but empty.
    let mut flat = correlated(2000, 12, 4);
    flat.chunks_exact_mut(12).for_each(|row| row[3..].fill(1.0));
    let mut one = vec![0.0; 12 * 400];
    one[12 * 100] = 1.0;
    for rows in [correlated(2000, 12, 4), correlated(300, 12, 5), flat, vec![0.0; 12 * 400], one] {
        let codebook = train(&training(4, 16, true), &rows, 12);
        let p = codebook.projection().unwrap();
        for i in 0..12 {
            for j in 0..12 {
                let sum: f32 = p.chunks_exact(12).map(|row| row[i] * row[j]).sum();
                assert!((sum - f32::from(u8::from(i == j))).abs() < 1e-4, "{i} {j} {sum}");
            }
        }
        assert!(error(&codebook, &rows).is_finite());
    }
}

#[test]
fn the_number_of_threads_does_not_matter() {
    let rows = correlated(5000, 20, 6);
    for rotate in [false, true] {
        let of_threads = |threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| train(&training(5, 24, rotate), &rows, 20))
        };
        let one = of_threads(1);
        assert_eq!(one, of_threads(2));
        assert_eq!(one, of_threads(3));
        let other = Training { seed: 2, ..training(5, 24, rotate) };
        assert_ne!(one, train(&other, &rows, 20));
    }
}

#[test]
fn few_and_equal_rows() {
    for rotate in [false, true] {
        for (dim, parts) in [(1, 1), (4, 1), (4, 2), (4, 4)] {
            for centroids in [1, 2, 7, 256] {
                // As many rows as centroids and fewer are kept as they are.
                for count in [1, 2, centroids] {
                    let rows = correlated(count.min(centroids), dim, 7);
                    let codebook = train(&training(parts, centroids, rotate), &rows, dim);
                    assert_eq!(codebook.values().len(), dim * centroids);
                    // Up to rounding: another centroid may be as near as that.
                    assert!(error(&codebook, &rows) < 1e-7 * count as f64);
                }
                for value in [0.0, 0.3, -1e6] {
                    let rows = vec![value; dim * 300];
                    let codebook = train(&training(parts, centroids, rotate), &rows, dim);
                    let allowed = 300.0 * 1e-12 * f64::from(value).powi(2);
                    assert!(error(&codebook, &rows) <= allowed, "{value}");
                }
                // Two kinds of rows, which two centroids are enough for.
                let rows: Vec<f32> =
                    (0..300).flat_map(|i| vec![f32::from(u8::from(i % 3 == 0)); dim]).collect();
                let codebook = train(&training(parts, centroids, rotate), &rows, dim);
                assert!(centroids == 1 || error(&codebook, &rows) < 1e-8, "{dim} {centroids}");
            }
        }
    }
}

#[test]
fn what_cannot_be_learnt_from() {
    let fail = |training: Training, rows: &[f32], dim| {
        training.train(rows, dim, &mut |_| ControlFlow::Continue(())).unwrap_err().to_string()
    };
    let mut rows = correlated(300, 4, 8);
    assert!(fail(training(3, 16, false), &rows, 4).contains("3 parts"));
    assert!(fail(training(0, 16, false), &rows, 4).contains("0 parts"));
    assert!(fail(training(1, 16, false), &rows, 0).contains("0 values"));
    assert!(fail(training(2, 0, false), &rows, 4).contains("0 centroids"));
    assert!(fail(training(2, 257, false), &rows, 4).contains("257 centroids"));
    assert!(fail(training(2, 16, false), &rows[1..], 4).contains("not whole"));
    assert!(fail(training(2, 16, false), &[], 4).contains("no rows"));
    for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 1e30] {
        rows[4 * 17 + 2] = bad;
        let found = training(2, 16, true).train(&rows, 4, &mut |_| ControlFlow::Continue(()));
        assert!(matches!(found, Err(TrainingError::Value { row: 17, column: 2, .. })), "{bad}");
    }
}

/// A file may have any numbers for centroids, and rows to encode may be anything.
#[test]
fn nan_and_infinity_do_no_harm() {
    for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, f32::MAX] {
        for projection in [None, Some(vec![0.5, bad, -0.5, 0.5])] {
            let codebook = Codebook::new(2, 1, 2, vec![1.0, bad, 3.0, 4.0], projection).unwrap();
            let (codes, _) = coded(&codebook, &[1.0, 2.0, bad, 4.0, 5.0, -bad]);
            assert!(codes.iter().all(|&code| code < 2));
        }
    }
    let codebook = train(&training(2, 16, false), &correlated(300, 4, 9), 4);
    let mut rows = correlated(40, 4, 9);
    let sound = coded(&codebook, &rows).0;
    rows[4 * 5] = f32::NAN;
    let spoilt = coded(&codebook, &rows).0;
    // Only the part with the bad value is another one.
    let differ: Vec<usize> = (0..80).filter(|&i| sound[i] != spoilt[i]).collect();
    assert!(differ.iter().all(|&i| i == 10), "{differ:?}");
}
