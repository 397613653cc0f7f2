//! Looking for the rotation with which rows lose least when they are cut and quantized.
//!
//! The start is the principal axes of the rows' covariance, assigned so that all parts have about
//! the same product of variances, which is the best for Gaussian rows (Ge, He, Ke and Sun,
//! "Optimized Product Quantization", 2013). Then, in turns, rows are given the nearest centroids,
//! and with these codes kept, the best centroids for the rotation and the best rotation for the
//! centroids are found.
//!
//! With the codes kept, all that is needed of the rows is the sum of those with the same code, in
//! each part: the rotation is found without going over them again.

use super::kernels::{self, LANES, Lanes, Tiles};
use super::linear::{eigen, identity, polar, transposed};
use super::lloyd::{self, Blocks, Shape};
use super::random::Random;
use crate::parallel::*;
use std::ops::ControlFlow;

/// Rows for each centroid that the rotation is found with.
const ROWS_PER_CENTROID: usize = 128;
/// The most rows that the covariance is computed of.
const COVARIANCE_ROWS: usize = 16384;
/// Rounds of k-means before the rotation is looked at for the first time.
const FIRST_ROUNDS: usize = 8;
/// How often centroids and rotation are fitted to each other before rows get new codes.
const FITS: usize = 2;

/// A rotation and centroids for rotated rows.
#[derive(Debug)]
pub(super) struct Rotation {
    pub(super) columns: Vec<f32>,
    pub(super) centroids: Vec<f32>,
}

/// The rotation for rows around zero.
pub(super) fn find(
    blocks: &Blocks,
    shape: Shape,
    rounds: usize,
    random: &Random,
    progress: &mut dyn FnMut(f64) -> ControlFlow<()>,
) -> ControlFlow<(), Rotation> {
    let dim = shape.dim;
    let sample = blocks.first(shape.centroids * ROWS_PER_CENTROID).to_blocks(dim);
    let rows = sample.to_rows();
    let start = principal_axes(&rows, shape).unwrap_or_else(|| identity(dim));
    let mut rotation: Vec<f64> = transposed(&start, dim).into_iter().map(f64::from).collect();
    let mut found = Rotation { columns: start, centroids: Vec::new() };
    for round in 0..=rounds {
        let mut rotated = sample.clone();
        rotated.rotate(&found.columns);
        let view = rotated.first(usize::MAX);
        if round == 0 {
            found.centroids = lloyd::initial_centroids(view, shape, random);
            for number in 0..FIRST_ROUNDS {
                lloyd::iterate(view, shape, &mut found.centroids, &random.fork(number), false);
            }
        }
        let codes = lloyd::assign(view, shape, &found.centroids);
        let sums = Sums::of(&rows, &codes, shape);
        for _ in 0..if round < rounds { FITS } else { 0 } {
            sums.fit_centroids(&rotation, &mut found.centroids, shape);
            let Some(better) = sums.fit_rotation(&rotation, &found.centroids, shape) else { break };
            rotation = better;
        }
        sums.fit_centroids(&rotation, &mut found.centroids, shape);
        sums.fill_empty(&mut found.centroids, shape, &random.fork(round));
        found.columns = transposed(&to_f32(&rotation), dim);
        progress((round + 1) as f64 / (rounds + 1) as f64)?;
    }
    ControlFlow::Continue(found)
}

/// Sums of the rows of each part and code, before any rotation.
struct Sums {
    /// For each part, `[code][value of the whole row]`.
    rows: Vec<Vec<f32>>,
    counts: Vec<Vec<u32>>,
}

impl Sums {
    fn of(rows: &[f32], codes: &[[u8; LANES]], shape: Shape) -> Sums {
        let (rows, counts) = (0..shape.parts)
            .into_par_iter()
            .map(|part| {
                let mut sums = vec![0.0; shape.centroids * shape.dim];
                let mut counts = vec![0; shape.centroids];
                let codes = codes[part..].iter().step_by(shape.parts).flatten();
                for (row, &code) in rows.chunks_exact(shape.dim).zip(codes) {
                    let code = usize::from(code);
                    counts[code] += 1;
                    let sum = &mut sums[code * shape.dim..][..shape.dim];
                    sum.iter_mut().zip(row).for_each(|(sum, value)| *sum += value);
                }
                (sums, counts)
            })
            .unzip();
        Sums { rows, counts }
    }

    /// The centroids are the means of their rotated rows: the rotated means.
    #[allow(clippy::cast_possible_truncation)]
    fn fit_centroids(&self, rotation: &[f64], centroids: &mut [f32], shape: Shape) {
        let width = shape.width();
        let parts = centroids.par_chunks_exact_mut(shape.table_len()).enumerate();
        parts.for_each(|(part, centroids)| {
            let of_each = centroids.chunks_exact_mut(width).zip(&self.counts[part]);
            let of_each = of_each.zip(self.rows[part].chunks_exact(shape.dim));
            for ((centroid, &count), sum) in of_each.filter(|((_, count), _)| **count > 0) {
                let mut rotated = vec![0.0; width];
                for (&sum, row) in sum.iter().zip(rotation.chunks_exact(shape.dim)) {
                    let row = &row[part * width..][..width];
                    rotated.iter_mut().zip(row).for_each(|(to, row)| *to += f64::from(sum) * row);
                }
                for (value, sum) in centroid.iter_mut().zip(rotated) {
                    *value = (sum / f64::from(count)) as f32;
                }
            }
        });
    }

    /// The rotation that brings the rows nearest to their centroids: the polar factor of the sum of
    /// the products of rows and centroids (the Procrustes problem).
    fn fit_rotation(&self, rotation: &[f64], centroids: &[f32], shape: Shape) -> Option<Vec<f64>> {
        let (dim, width) = (shape.dim, shape.width());
        let strips: Vec<Vec<f64>> = (0..shape.parts)
            .into_par_iter()
            .map(|part| {
                let mut strip = vec![0.0; dim * width];
                let centroids = &centroids[part * shape.table_len()..][..shape.table_len()];
                for (sum, centroid) in
                    self.rows[part].chunks_exact(dim).zip(centroids.chunks_exact(width))
                {
                    for (&sum, strip) in sum.iter().zip(strip.chunks_exact_mut(width)) {
                        for (to, &value) in strip.iter_mut().zip(centroid) {
                            *to += f64::from(sum) * f64::from(value);
                        }
                    }
                }
                strip
            })
            .collect();
        let mut matrix = Vec::with_capacity(dim * dim);
        for i in 0..dim {
            strips.iter().for_each(|strip| matrix.extend_from_slice(&strip[i * width..][..width]));
        }
        // Where rows do not span all dimensions, the matrix is singular and says nothing about the
        // others. Adding a little of the present rotation (a ridge) leaves these as they are.
        let ridge = 1e-7 * matrix.iter().fold(0.0f64, |most, value| most.max(value.abs()));
        matrix.iter_mut().zip(rotation).for_each(|(to, old)| *to += ridge * old);
        polar(&matrix, dim)
    }

    fn fill_empty(&self, centroids: &mut [f32], shape: Shape, random: &Random) {
        let parts = centroids.chunks_exact_mut(shape.table_len()).zip(&self.counts).enumerate();
        for (part, (centroids, counts)) in parts {
            let random = Some(random.fork(part));
            lloyd::fill_empty(centroids, &mut counts.clone(), shape.width(), random);
        }
    }
}

/// The principal axes of the rows, as the columns of a rotation.
#[allow(clippy::cast_possible_truncation)]
fn principal_axes(rows: &[f32], shape: Shape) -> Option<Vec<f32>> {
    let dim = shape.dim;
    let rows = &rows[..rows.len().min(COVARIANCE_ROWS * dim)];
    let (values, vectors) = eigen(&covariance(rows, dim), dim)?;
    let order = balance_variances(&values, shape.parts);
    let axes = order.into_iter().flat_map(|i| &vectors[i * dim..][..dim]);
    Some(axes.map(|&value| value as f32).collect())
}

/// Assigns the axes, largest variance first, to the part with the least product of variances so
/// far.
fn balance_variances(variances: &[f64], parts: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..variances.len()).collect();
    order.sort_by(|&i, &j| variances[j].total_cmp(&variances[i]).then(i.cmp(&j)));
    let largest = variances.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
    // Logarithms of what is at least one, so that the more axes the larger.
    let weight = |i: usize| (variances[i] / largest * 1e10).max(1.0).ln();
    let mut assigned = vec![(0.0f64, Vec::new()); parts];
    for i in order {
        let open = assigned.iter_mut().filter(|(_, axes)| axes.len() < variances.len() / parts);
        if let Some((sum, axes)) = open.min_by(|a, b| a.0.total_cmp(&b.0)) {
            *sum += weight(i);
            axes.push(i);
        }
    }
    assigned.into_iter().flat_map(|(_, axes)| axes).collect()
}

/// The covariance of the columns of centered rows: products of all columns with all, by the kernel
/// for rows.
fn covariance(rows: &[f32], dim: usize) -> Vec<f64> {
    let count = rows.len() / dim;
    let mut columns = vec![0.0; rows.len()];
    columns.par_chunks_exact_mut(count).enumerate().for_each(|(j, column)| {
        column.iter_mut().zip(rows[j..].iter().step_by(dim)).for_each(|(to, &value)| *to = value);
    });
    let tiles = Tiles::new(&columns, count);
    let zeros = vec![0.0; count];
    let strips: Vec<Vec<Lanes>> = columns
        .par_chunks(LANES * count)
        .map(|columns| {
            let mut block = vec![[0.0; LANES]; count];
            kernels::pack(columns, &zeros, &mut block);
            let mut products = vec![[0.0; LANES]; dim];
            tiles.products(&block, &mut products);
            products
        })
        .collect();
    let at = |i: usize, j: usize| f64::from(strips[j / LANES][i][j % LANES]);
    let pairs = (0..dim).flat_map(|i| (0..dim).map(move |j| (i, j)));
    // The same sum on both sides of the diagonal, whatever the kernel does.
    pairs.map(|(i, j)| at(i.min(j), i.max(j)) / count as f64).collect()
}

#[allow(clippy::cast_possible_truncation)]
fn to_f32(matrix: &[f64]) -> Vec<f32> {
    matrix.iter().map(|&value| value as f32).collect()
}
