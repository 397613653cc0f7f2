//! k-means (Lloyd's algorithm) for all parts at once.

use super::kernels::{self, Centroids, LANES, Lanes, Tiles};
use super::random::Random;
use crate::parallel::*;

/// Into how many tasks the rows are cut. It does not depend on the processors, so neither do the
/// sums that are added up task by task; it bounds the memory that these take.
const TASKS: usize = 32;

/// How many blocks a task looks at for one part after the other: they stay in the cache.
const GROUP: usize = 8;

/// How many rows for each centroid the initial centroids are chosen among.
const INITIAL_ROWS: usize = 8;

/// How far centroids are moved beyond the mean of their rows, as a fraction of the way there. As
/// the means move on in the same direction, it takes about half the rounds; with 1, centroids whose
/// rows stay would oscillate.
const OVERSHOOT: f64 = 0.8;

/// How rows are cut.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    pub(super) dim: usize,
    pub(super) parts: usize,
    pub(super) centroids: usize,
}

impl Shape {
    /// Values of a part.
    pub(super) fn width(&self) -> usize {
        self.dim / self.parts
    }

    /// Values of the table of a part: of all its centroids.
    pub(super) fn table_len(&self) -> usize {
        self.centroids * self.width()
    }

    /// The centroids of each part, ready for finding the nearest.
    pub(super) fn tables(&self, centroids: &[f32]) -> Vec<Centroids> {
        let parts = centroids.par_chunks_exact(self.table_len());
        parts.map(|values| Centroids::new(values, self.width())).collect()
    }
}

/// Rows packed into blocks of [`LANES`].
#[derive(Clone, Debug)]
pub(super) struct Blocks {
    dim: usize,
    rows: usize,
    values: Vec<Lanes>,
}

impl Blocks {
    /// The rows with these indices, less an offset.
    pub(super) fn gather(rows: &[f32], dim: usize, order: &[usize], offset: &[f32]) -> Blocks {
        let mut values = vec![[0.0; LANES]; order.len().div_ceil(LANES) * dim];
        values.par_chunks_mut(dim).zip(order.par_chunks(LANES)).for_each(|(block, order)| {
            let mut gathered = Vec::with_capacity(LANES * dim);
            order.iter().for_each(|row| gathered.extend_from_slice(&rows[row * dim..][..dim]));
            kernels::pack(&gathered, offset, block);
        });
        Blocks { dim, rows: order.len(), values }
    }

    pub(super) fn rows(&self) -> usize {
        self.rows
    }

    /// At most that many of the first rows.
    pub(super) fn first(&self, rows: usize) -> View<'_> {
        let rows = rows.min(self.rows);
        let values = &self.values[..rows.div_ceil(LANES) * self.dim];
        View { rows, values }
    }

    /// The rows one after the other, as they were before packing.
    pub(super) fn to_rows(&self) -> Vec<f32> {
        let mut rows = vec![0.0; self.rows * self.dim];
        let blocks = self.values.par_chunks(self.dim);
        rows.par_chunks_mut(LANES * self.dim).zip(blocks).for_each(|(rows, block)| {
            kernels::unpack(block, rows);
        });
        rows
    }

    /// Multiplies every row with a matrix, of which `columns` are the columns.
    pub(super) fn rotate(&mut self, columns: &[f32]) {
        let columns = Tiles::new(columns, self.dim);
        self.values.par_chunks_mut(self.dim).for_each_init(
            || vec![[0.0; LANES]; columns.rows()],
            |rotated, block| {
                columns.products(block, rotated);
                block.copy_from_slice(rotated);
            },
        );
    }
}

/// Some of the first rows of blocks.
#[derive(Clone, Copy, Debug)]
pub(super) struct View<'a> {
    rows: usize,
    values: &'a [Lanes],
}

impl View<'_> {
    pub(super) fn to_blocks(self, dim: usize) -> Blocks {
        Blocks { dim, rows: self.rows, values: self.values.to_vec() }
    }

    /// How many rows the block with this index has.
    fn rows_of(&self, block: usize) -> usize {
        (self.rows - block * LANES).min(LANES)
    }
}

/// The initial centroids: rows, each chosen with a probability by its squared distance from those
/// before it (k-means++).
pub(super) fn initial_centroids(view: View, shape: Shape, random: &Random) -> Vec<f32> {
    let width = shape.width();
    let rows = view.rows.min(shape.centroids * INITIAL_ROWS);
    let mut centroids = vec![0.0; shape.parts * shape.table_len()];
    centroids.par_chunks_exact_mut(shape.table_len()).enumerate().for_each(|(part, centroids)| {
        let mut random = random.fork(part);
        let blocks = view.values.chunks_exact(shape.dim).take(rows.div_ceil(LANES));
        let blocks: Vec<&[Lanes]> = blocks.map(|block| &block[part * width..][..width]).collect();
        let mut distances = vec![[f32::INFINITY; LANES]; blocks.len()];
        let mut chosen = random.below(rows);
        for centroid in centroids.chunks_exact_mut(width) {
            for (value, values) in centroid.iter_mut().zip(blocks[chosen / LANES]) {
                *value = values[chosen % LANES];
            }
            let mut sums = Vec::with_capacity(blocks.len());
            for (block, distances) in blocks.iter().zip(&mut distances) {
                lower_distances(block, centroid, distances);
                sums.push(distances.iter().sum::<f32>());
            }
            chosen = sample_row(&mut random, &sums, &distances, rows);
        }
    });
    centroids
}

/// Lowers the squared distances of a block's rows to those from a centroid.
fn lower_distances(block: &[Lanes], centroid: &[f32], distances: &mut Lanes) {
    let mut sums = [0.0; LANES];
    for (values, c) in block.iter().zip(centroid) {
        for (sum, value) in sums.iter_mut().zip(values) {
            *sum += (value - c) * (value - c);
        }
    }
    for (distance, sum) in distances.iter_mut().zip(sums) {
        *distance = if sum < *distance { sum } else { *distance };
    }
}

/// A row at random, weighted by the distances, whose sums of each block are given; any row when all
/// are zero.
fn sample_row(random: &mut Random, sums: &[f32], distances: &[Lanes], rows: usize) -> usize {
    let total: f64 = sums.iter().map(|&sum| f64::from(sum)).sum();
    let mut left = random.unit() * total;
    for (block, &sum) in sums.iter().enumerate() {
        if left < f64::from(sum) {
            for (lane, &distance) in distances[block].iter().enumerate() {
                left -= f64::from(distance);
                if left < 0.0 && block * LANES + lane < rows {
                    return block * LANES + lane;
                }
            }
        }
        left -= f64::from(sum);
    }
    random.below(rows)
}

/// One round of k-means over some rows. False when nothing changed. The last round leaves no
/// centroid in a provisional place that another round would have to move.
pub(super) fn iterate(
    view: View,
    shape: Shape,
    centroids: &mut [f32],
    random: &Random,
    last: bool,
) -> bool {
    let width = shape.width();
    let tables = shape.tables(centroids);
    let blocks = view.values.len() / shape.dim;
    let task = blocks.div_ceil(TASKS).next_multiple_of(GROUP.min(blocks.div_ceil(TASKS)));
    let sums: Vec<(Vec<f32>, Vec<u32>)> = view
        .values
        .par_chunks(task * shape.dim)
        .enumerate()
        .map(|(number, values)| {
            let mut sums = vec![0.0; centroids.len()];
            let mut counts = vec![0; shape.parts * shape.centroids];
            for (group, values) in values.chunks(GROUP * shape.dim).enumerate() {
                let first = number * task + group * GROUP;
                for (part, table) in tables.iter().enumerate() {
                    let sums = &mut sums[part * shape.table_len()..][..shape.table_len()];
                    let counts = &mut counts[part * shape.centroids..][..shape.centroids];
                    for (i, block) in values.chunks_exact(shape.dim).enumerate() {
                        let block = &block[part * width..][..width];
                        let codes = table.nearest(block);
                        accumulate(block, &codes[..view.rows_of(first + i)], sums, counts);
                    }
                }
            }
            (sums, counts)
        })
        .collect();
    let changed: Vec<bool> = centroids
        .par_chunks_exact_mut(shape.table_len())
        .enumerate()
        .map(|(part, centroids)| {
            let mut total = vec![0.0f64; shape.table_len()];
            let mut counts = vec![0u32; shape.centroids];
            for (sum, count) in &sums {
                let sum = &sum[part * shape.table_len()..][..shape.table_len()];
                total.iter_mut().zip(sum).for_each(|(total, &sum)| *total += f64::from(sum));
                let count = &count[part * shape.centroids..][..shape.centroids];
                counts.iter_mut().zip(count).for_each(|(total, count)| *total += count);
            }
            let overshoot = if last { 0.0 } else { OVERSHOOT };
            let moved = move_to_means(centroids, &total, &counts, width, overshoot);
            let random = (!last).then(|| random.fork(part));
            moved | fill_empty(centroids, &mut counts, width, random)
        })
        .collect();
    changed.contains(&true)
}

/// Adds the rows of a block to the sums of their centroids.
fn accumulate(block: &[Lanes], codes: &[u8], sums: &mut [f32], counts: &mut [u32]) {
    for (lane, &code) in codes.iter().enumerate() {
        let code = usize::from(code);
        counts[code] += 1;
        for (sum, values) in sums[code * block.len()..][..block.len()].iter_mut().zip(block) {
            *sum += values[lane];
        }
    }
}

/// Moves centroids to the mean of their rows, and somewhat beyond. True when one has moved.
#[allow(clippy::cast_possible_truncation)]
fn move_to_means(
    centroids: &mut [f32],
    sums: &[f64],
    counts: &[u32],
    width: usize,
    overshoot: f64,
) -> bool {
    let mut moved = false;
    let of_each = centroids.chunks_exact_mut(width).zip(sums.chunks_exact(width));
    for ((centroid, sum), &count) in of_each.zip(counts).filter(|(_, count)| **count > 0) {
        for (value, sum) in centroid.iter_mut().zip(sum) {
            let mean = sum / f64::from(count);
            let new = (mean + overshoot * (mean - f64::from(*value))) as f32;
            moved |= new != *value;
            *value = new;
        }
    }
    moved
}

/// Gives a centroid without rows half of those of the one with most: it is put beside it at random,
/// or without that on the very place, where it does no harm. True when there was one.
#[allow(clippy::cast_possible_truncation)]
pub(super) fn fill_empty(
    centroids: &mut [f32],
    counts: &mut [u32],
    width: usize,
    mut random: Option<Random>,
) -> bool {
    let mut filled = false;
    let largest = centroids.iter().fold(0.0f32, |largest, value| largest.max(value.abs()));
    for empty in 0..counts.len() {
        let most = (0..counts.len()).max_by_key(|&i| (counts[i], usize::MAX - i));
        let Some(most) = most.filter(|&most| counts[empty] == 0 && counts[most] > 0) else {
            continue;
        };
        for i in 0..width {
            let shift = random.as_mut().map_or(0.0, |random| random.unit() as f32 - 0.5);
            centroids[empty * width + i] = centroids[most * width + i] + shift * largest / 256.0;
        }
        // At least one is left, so that there is always one with most.
        counts[empty] = counts[most] / 2;
        counts[most] -= counts[empty];
        filled = true;
    }
    filled
}

/// The nearest centroids of some rows, as `[block][part][lane]`.
pub(super) fn assign(view: View, shape: Shape, centroids: &[f32]) -> Vec<[u8; LANES]> {
    let width = shape.width();
    let tables = shape.tables(centroids);
    let mut codes = vec![[0; LANES]; view.values.len() / width];
    let group = GROUP * shape.parts;
    codes.par_chunks_mut(group).zip(view.values.par_chunks(GROUP * shape.dim)).for_each(
        |(codes, values)| {
            for (part, table) in tables.iter().enumerate() {
                for (block, codes) in
                    values.chunks_exact(shape.dim).zip(codes.chunks_exact_mut(shape.parts))
                {
                    codes[part] = table.nearest(&block[part * width..][..width]);
                }
            }
        },
    );
    codes
}
