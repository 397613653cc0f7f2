//! Sums of products of columns, over many rows: how the values of rows go together.
//!
//! Such sums are estimates by nature, so values are rounded to 2,047 steps to each side of zero, by a
//! scale for each column. Two rows are then multiplied and added by one instruction, and sums over 128
//! pairs are exact, in whatever order they are made.

use crate::panel::{Lines, PANEL};
use crate::parallel::*;
use crate::simd::{Eight, Level, Vector, dispatch};

/// The largest value of a column, in steps.
const LARGEST: f32 = 2047.0;

/// Pairs of rows whose products are summed as integers, which they must not leave: twice the square of
/// [`LARGEST`] for each.
const PAIRS_TOGETHER: usize = 128;

/// Panels of sums that one task makes.
const PANELS: usize = 2;

/// Values of a panel's columns in two rows.
type Pairs = [[i16; 2]; PANEL];

/// The sums of one panel's columns with those of another.
type Tile = [[f32; PANEL]; PANEL];

/// The columns of some rows, less their means.
#[derive(Debug)]
pub struct Columns {
    lines: Lines<[i16; 2]>,
    /// Pairs of rows.
    pairs: usize,
    /// One for every column of the panels.
    scales: Vec<f32>,
    means: Vec<f32>,
    width: usize,
}

impl Columns {
    /// Columns of rows of `width` values, one row behind the other. If they are not `centred`, their
    /// means are taken for zero.
    ///
    /// # Panics
    ///
    /// When `width` is 0.
    pub fn new(rows: &[f32], width: usize, centred: bool) -> Columns {
        let (panels, pairs) = (width.div_ceil(PANEL), (rows.len() / width).div_ceil(2));
        let mut lines = Lines::new([0; 2], panels * pairs);
        let (mut scales, mut means) = (vec![0.0; panels * PANEL], vec![0.0; panels * PANEL]);
        let facts = scales.par_chunks_exact_mut(PANEL).zip(means.par_chunks_exact_mut(PANEL));
        let packed = lines.values_mut().par_chunks_exact_mut(pairs.max(1) * PANEL);
        facts.zip(packed).enumerate().for_each(|(p, ((scales, means), lines))| {
            let first = p * PANEL;
            if first + PANEL <= width {
                pack(Level::best(), &rows[first..], width, centred, scales, means, lines);
            } else {
                // The last columns, filled up.
                let part = |row: &[f32]| {
                    let mut full = [0.0; PANEL];
                    full[..width - first].copy_from_slice(&row[first..]);
                    full
                };
                let full: Vec<f32> = rows.chunks_exact(width).flat_map(part).collect();
                pack(Level::best(), &full, PANEL, centred, scales, means, lines);
            }
        });
        means.truncate(width);
        Columns { lines, pairs, scales, means, width }
    }

    /// What was taken from each column: its mean, or zero.
    pub fn means(&self) -> &[f32] {
        &self.means
    }

    /// How many columns there are.
    pub fn width(&self) -> usize {
        self.width
    }

    /// The sum of products of each column with each, row by row. Only those at the diagonal and to the
    /// right of it are sure to be there.
    pub fn squares(&self) -> Vec<f32> {
        self.sums(self, true)
    }

    /// The sum of products of each column with each of another's, row by row.
    ///
    /// # Panics
    ///
    /// When these come of another number of rows.
    pub fn products(&self, others: &Columns) -> Vec<f32> {
        self.sums(others, false)
    }

    fn sums(&self, others: &Columns, right_half: bool) -> Vec<f32> {
        assert_eq!(self.pairs, others.pairs, "columns of the same rows");
        let (level, width) = (Level::best(), others.width);
        let mut sums = vec![0.0; self.width * width];
        let tasks = sums.par_chunks_mut(PANELS * PANEL * width.max(1)).enumerate();
        tasks.for_each(|(task, rows)| {
            let first = if right_half { task * PANELS } else { 0 };
            for other in first..width.div_ceil(PANEL) {
                let line = other * PANEL;
                let columns = line..width.min(line + PANEL);
                for (p, rows) in rows.chunks_mut(PANEL * width).enumerate() {
                    let panel = task * PANELS + p;
                    let mut tile = [[0.0; PANEL]; PANEL];
                    let [a, b] = [self.panel(panel), others.panel(other)];
                    for (a, b) in a.chunks(PAIRS_TOGETHER).zip(b.chunks(PAIRS_TOGETHER)) {
                        add_pairs(level, a, b, &mut tile);
                    }
                    let scales = &self.scales[panel * PANEL..];
                    for ((row, tile), scale) in rows.chunks_mut(width).zip(&tile).zip(scales) {
                        let by = others.scales[line..].iter().map(|other| scale * other);
                        let places = row[columns.clone()].iter_mut().zip(tile).zip(by);
                        places.for_each(|((place, sum), by)| *place = sum * by);
                    }
                }
            }
        });
        sums
    }

    fn panel(&self, panel: usize) -> &[Pairs] {
        &self.lines.values().as_chunks().0[panel * self.pairs..][..self.pairs]
    }
}

dispatch! {
    /// Packs sixteen columns of rows that are `stride` apart.
    fn pack(
        rows: &[f32],
        stride: usize,
        centred: bool,
        scales: &mut [f32],
        means: &mut [f32],
        lines: &mut [[i16; 2]],
    ) = eight pack_with;

    /// Adds the products of all columns of two panels to a tile, for a few pairs of rows.
    fn add_pairs(a: &[Pairs], b: &[Pairs], tile: &mut Tile) = sixteen add_pairs_with;

    /// Adds the products of all columns of two panels to a tile, in f32 as they are.
    pub fn add_products(
        a: &[[f32; PANEL]],
        b: &[[f32; PANEL]],
        tile: &mut [[f32; PANEL]; PANEL],
    ) = sixteen add_products_with;
}

#[inline(always)]
fn pack_with<V: Eight>(
    token: V::Token,
    rows: &[f32],
    stride: usize,
    centred: bool,
    scales: &mut [f32],
    means: &mut [f32],
    lines: &mut [[i16; 2]],
) {
    let load = |row: &[f32], half: usize| V::load(token, &row[8 * half..]);
    let count = rows.chunks(stride).filter(|row| row.len() >= PANEL).count();
    let rows = || rows.chunks(stride).take(count);
    for half in 0..2 {
        let mut sum = V::splat(token, 0.0);
        if centred {
            rows().for_each(|row| sum = sum.add(load(row, half)));
        }
        #[allow(clippy::cast_precision_loss)]
        let mean = sum.mul(V::splat(token, 1.0 / count.max(1) as f32));
        let mut largest = V::splat(token, 0.0);
        rows().for_each(|row| largest = load(row, half).sub(mean).abs().max(largest));
        // Where all are zero, or so small that the inverse is infinite, any scale does.
        let scale = largest.mul(V::splat(token, 1.0 / LARGEST)).max(V::splat(token, 1e-30));
        let by = V::splat(token, 1.0).div(scale);
        scale.store(&mut scales[8 * half..]);
        mean.store(&mut means[8 * half..]);
        let mut rows = rows();
        for line in lines.chunks_exact_mut(PANEL) {
            let mut next = || match rows.next() {
                Some(row) => load(row, half).sub(mean).mul(by).round(),
                None => [0; 8],
            };
            let (one, two) = (next(), next());
            for (place, pair) in line[8 * half..].iter_mut().zip(one.into_iter().zip(two)) {
                *place = pair.into();
            }
        }
    }
}

#[inline(always)]
fn add_pairs_with<V: Vector>(token: V::Token, a: &[Pairs], b: &[Pairs], tile: &mut Tile) {
    let zero = V::sums(token, 0);
    let add =
        |sum, line: &Pairs, column: usize, other: &Pairs| V::add_pairs(sum, line[column], other);
    let done = |sum| V::from_sums(sum);
    add_all::<V, _, _>(token, zero, (a, b), tile, add, done);
}

#[inline(always)]
fn add_products_with<V: Vector>(
    token: V::Token,
    a: &[[f32; PANEL]],
    b: &[[f32; PANEL]],
    tile: &mut Tile,
) {
    let zero = V::splat(token, 0.0);
    let add = |sum: V, line: &[f32; PANEL], column: usize, other: &[f32; PANEL]| {
        V::splat(token, line[column]).mul_add(V::load(token, other), sum)
    };
    let done = |sum| sum;
    add_all::<V, _, _>(token, zero, (a, b), tile, add, done);
}

/// All columns with a whole panel, as many at a time as registers can hold the sums of.
#[inline(always)]
fn add_all<V: Vector, Line, Sum: Copy>(
    token: V::Token,
    zero: Sum,
    lines: (&[Line], &[Line]),
    tile: &mut Tile,
    add: impl Fn(Sum, &Line, usize, &Line) -> Sum + Copy,
    done: impl Fn(Sum) -> V + Copy,
) {
    if V::REGISTERS == 1 {
        add_some::<V, _, _, 0, PANEL>(token, zero, lines, tile, add, done);
    } else {
        add_some::<V, _, _, 0, 4>(token, zero, lines, tile, add, done);
        add_some::<V, _, _, 4, 4>(token, zero, lines, tile, add, done);
        add_some::<V, _, _, 8, 4>(token, zero, lines, tile, add, done);
        add_some::<V, _, _, 12, 4>(token, zero, lines, tile, add, done);
    }
}

/// `N` columns from one on with a whole panel.
#[inline(always)]
fn add_some<V: Vector, Line, Sum: Copy, const FIRST: usize, const N: usize>(
    token: V::Token,
    zero: Sum,
    (a, b): (&[Line], &[Line]),
    tile: &mut Tile,
    add: impl Fn(Sum, &Line, usize, &Line) -> Sum,
    done: impl Fn(Sum) -> V,
) {
    let mut sums = [zero; N];
    for (line, other) in a.iter().zip(b) {
        for (i, sum) in sums.iter_mut().enumerate() {
            *sum = add(*sum, line, FIRST + i, other);
        }
    }
    for (place, sum) in tile[FIRST..].iter_mut().zip(sums) {
        V::load(token, place).add(done(sum)).store(place);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noise(count: usize, seed: usize) -> Vec<f32> {
        (0..count).map(|i| ((i * 7919 + seed * 31 + 13) % 1009) as f32 / 1009.0 - 0.25).collect()
    }

    #[test]
    fn sums_are_those_of_the_definition() {
        for (rows, width, other) in [(1, 1, 3), (7, 16, 5), (300, 40, 33), (513, 50, 16)] {
            for centred in [false, true] {
                let values = [noise(rows * width, 1), noise(rows * other, 2)];
                let columns = |values: &[f32], width: usize| Columns::new(values, width, centred);
                let (a, b) = (columns(&values[0], width), columns(&values[1], other));
                let value = |(columns, values): (&Columns, &[f32]), row: usize, column: usize| {
                    f64::from(values[row * columns.width() + column] - columns.means()[column])
                };
                let exact = |b: (&Columns, &[f32]), i: usize, j: usize| -> f64 {
                    (0..rows).map(|r| value((&a, &values[0]), r, i) * value(b, r, j)).sum()
                };
                let bound = 1e-3 * rows as f64;
                let (squares, products) = (a.squares(), a.products(&b));
                for i in 0..width {
                    for j in i..width {
                        let exact = exact((&a, &values[0]), i, j);
                        assert!((f64::from(squares[i * width + j]) - exact).abs() <= bound);
                    }
                    for j in 0..other {
                        let exact = exact((&b, &values[1]), i, j);
                        assert!((f64::from(products[i * other + j]) - exact).abs() <= bound);
                    }
                }
                let mean = |j: usize| {
                    let column = values[0].iter().skip(j).step_by(width);
                    column.map(|v| f64::from(*v)).sum::<f64>() / rows as f64
                };
                let found = |j: usize| f64::from(a.means()[j]);
                let expected = |j: usize| if centred { mean(j) } else { 0.0 };
                assert!((0..width).all(|j| (found(j) - expected(j)).abs() < 1e-5));
            }
        }
    }

    #[test]
    fn every_level_has_the_bits_of_the_definition() {
        let values = noise(21 * PANEL, 3);
        for level in Level::available() {
            let all = |level: Level| {
                let (mut scales, mut means) = ([0.0; PANEL], [0.0; PANEL]);
                let mut lines = vec![[0; 2]; 11 * PANEL];
                pack(level, &values, PANEL, true, &mut scales, &mut means, &mut lines);
                let mut tile = [[0.5; PANEL]; PANEL];
                let pairs = lines.as_chunks().0;
                add_pairs(level, pairs, &pairs[1..], &mut tile);
                let values = values.as_chunks().0;
                add_products(level, values, &values[2..], &mut tile);
                (scales, means, lines, tile)
            };
            assert_eq!(all(level), all(level.definition()), "{level}");
        }
    }

    /// Sums of the largest values stay within 32 bits.
    #[test]
    fn the_largest_sums_fit() {
        let rows = 4 * PAIRS_TOGETHER + 1;
        let squares = Columns::new(&vec![3.0; rows], 1, false).squares();
        assert!((squares[0] / (9.0 * rows as f32) - 1.0).abs() < 1e-3);
        assert!(2.0 * LARGEST * LARGEST * PAIRS_TOGETHER as f32 <= i32::MAX as f32);
    }
}
