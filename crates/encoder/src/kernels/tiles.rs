//! Products of rows with packed matrices, both rounded to bf16, for processors that multiply tiles of
//! sixteen rows and columns.

use super::matrix::Left;
use super::pairs::to_bf16;
use super::walk::{Activation, Results, Start};
use super::{Lines, PANEL};
use std::array::from_fn;
use std::ops::Range;
use weighbridge_codec::memory::Arena;
use weighbridge_codec::panel;
use weighbridge_codec::parallel::*;
use weighbridge_codec::simd::tiles::{ColumnTile, RowTile, SIDE, Sums, TileProducts};
use weighbridge_codec::simd::{Bf16Kernel, Bf16Products, Level, SixteenKernel, Vector};

/// Values of a row or column that a tile holds: the depths of products are multiples of it.
pub(crate) use weighbridge_codec::simd::tiles::DEPTH;

/// The right side of a product, in panels of sixteen columns.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Panels<'a> {
    pub tiles: &'a [ColumnTile],
    /// Tiles of a panel.
    pub depth: usize,
    pub columns: usize,
    /// The distance from a panel to the next, in tiles.
    pub panel_stride: usize,
}

impl<'a> Panels<'a> {
    /// Only some of the panels.
    pub(crate) fn part(self, panels: Range<usize>) -> Self {
        let columns = self.columns.min(panels.end * PANEL) - panels.start * PANEL;
        Panels { tiles: &self.tiles[panels.start * self.panel_stride..], columns, ..self }
    }

    fn panel(self, panel: usize) -> &'a [ColumnTile] {
        &self.tiles[panel * self.panel_stride..][..self.depth]
    }
}

/// A matrix of `columns x depth` values, packed.
#[derive(Debug)]
pub(crate) struct Packed {
    lines: Lines<[i16; 2]>,
    /// Tiles of a panel.
    depth: usize,
    columns: usize,
}

impl Packed {
    /// Room for a matrix whose panels are then filled.
    pub(crate) fn new(columns: usize, depth: usize, arena: &Arena) -> Packed {
        let depth = depth.div_ceil(DEPTH);
        let lines = Lines::new_in(arena, columns.div_ceil(PANEL) * depth * (DEPTH / 2));
        Packed { lines, depth, columns }
    }

    /// The panels, each with the number of its first column.
    pub(crate) fn panels_mut(&mut self) -> impl IndexedParallelIterator<Item = (usize, Panel<'_>)> {
        let size = self.depth.max(1) * (DEPTH / 2) * PANEL;
        let panels = self.lines.values_mut().par_chunks_mut(size).enumerate();
        panels.map(|(p, lines)| (p * PANEL, Panel { lines }))
    }

    pub(crate) fn panels(&self) -> Panels<'_> {
        Panels {
            tiles: self.lines.values().as_chunks().0.as_chunks().0,
            depth: self.depth,
            columns: self.columns,
            panel_stride: self.depth,
        }
    }
}

#[derive(Debug)]
pub(crate) struct Panel<'a> {
    lines: &'a mut [[i16; 2]],
}

impl Panel<'_> {
    /// Puts rows (outputs) of a matrix into the panel.
    pub(crate) fn pack(&mut self, level: Level, rows: &[f32], depth: usize, codes: &mut Vec<i16>) {
        let width = depth.next_multiple_of(DEPTH);
        codes.clear();
        codes.resize(rows.len() / depth * width, 0);
        for (row, codes) in rows.chunks_exact(depth).zip(codes.chunks_exact_mut(width)) {
            to_bf16(level, row, codes);
        }
        panel::pack(codes.as_chunks().0, width / 2, self.lines);
    }
}

/// Rows (activations) rounded to bf16, sixteen of them side by side.
#[derive(Debug, Default)]
pub(crate) struct TileRows {
    tiles: Vec<RowTile>,
    /// Tiles of sixteen rows.
    depth: usize,
    rows: usize,
}

impl TileRows {
    /// Rounds rows of `depth` values in place of earlier ones.
    pub(crate) fn round_rows(&mut self, level: Level, rows: Left, depth: usize) {
        self.depth = depth.div_ceil(DEPTH);
        self.rows = rows.rows;
        // The buffer only grows: what earlier rows left in it is overwritten, or multiplied for nobody.
        let count = rows.rows.div_ceil(SIDE) * self.depth;
        self.tiles.resize(self.tiles.len().max(count), RowTile::ZERO);
        level.run_bf16(Rounding { rows, width: depth, to: To::Rows(&mut self.tiles) });
    }
}

/// Puts rows of `depth` values into tiles as columns, into those of sixteen rows one panel after the other.
/// What is behind the last row stays as it is.
pub(crate) fn pack_columns(level: Level, rows: Left, depth: usize, panels: &mut [ColumnTile]) {
    level.run_bf16(Rounding { rows, width: depth, to: To::Columns(panels) });
}

/// Puts rows into tiles as they lie, sixteen of their `columns` in each panel. What is behind the last row
/// stays as it is.
pub(crate) fn pack_rows(level: Level, rows: Left, columns: usize, panels: &mut [ColumnTile]) {
    level.run_bf16(Rounding { rows, width: columns, to: To::Lines(panels) });
}

/// Rounding rows and putting them somewhere.
struct Rounding<'a> {
    rows: Left<'a>,
    /// Values of a row.
    width: usize,
    to: To<'a>,
}

enum To<'a> {
    Rows(&'a mut [RowTile]),
    Columns(&'a mut [ColumnTile]),
    Lines(&'a mut [ColumnTile]),
}

impl Bf16Kernel for Rounding<'_> {
    type Output = ();

    #[inline(always)]
    fn run<V: Bf16Products>(self, token: V::Token) {
        let Rounding { rows, width, to } = self;
        let count = rows.rows;
        let rows = rows.data.chunks(rows.stride).take(count).map(|row| &row[..width]).enumerate();
        let tiles = width.div_ceil(DEPTH);
        match to {
            To::Rows(places) => rows.for_each(|(r, row)| {
                let places = &mut places[r / SIDE * tiles..][..tiles];
                for (values, tile) in row.chunks(DEPTH).zip(places) {
                    tile.0[r % SIDE] = rounded::<V>(token, values);
                }
            }),
            To::Columns(panels) => rows.for_each(|(r, row)| {
                let panel = &mut panels[r / SIDE * tiles..][..tiles];
                for (values, tile) in row.chunks(DEPTH).zip(panel) {
                    let codes = rounded::<V>(token, values);
                    for (line, pair) in tile.iter_mut().zip(codes.as_chunks().0) {
                        line[r % SIDE] = *pair;
                    }
                }
            }),
            To::Lines(panels) => rows.for_each(|(r, row)| {
                let (tiles, place) = (count.div_ceil(DEPTH), r % DEPTH);
                for (p, values) in row.chunks(DEPTH).enumerate() {
                    let codes = rounded::<V>(token, values);
                    let halves = values.chunks(PANEL).zip(codes.as_chunks::<PANEL>().0);
                    for (half, (_, codes)) in halves.enumerate() {
                        let tile = &mut panels[(2 * p + half) * tiles + r / DEPTH];
                        for (pair, code) in tile[place / 2].iter_mut().zip(codes) {
                            pair[place % 2] = *code;
                        }
                    }
                }
            }),
        }
    }
}

/// At most as many values as a tile is deep, rounded, and zeros behind them: an earlier NaN would not be
/// lost by multiplying it by zero.
#[inline(always)]
fn rounded<V: Bf16Products>(token: V::Token, values: &[f32]) -> [i16; DEPTH] {
    let mut codes = [0; DEPTH];
    let (mut padded, mut whole) = ([0.0; DEPTH], values);
    if values.len() < DEPTH {
        padded[..values.len()].copy_from_slice(values);
        whole = &padded;
    }
    for (values, codes) in whole.chunks_exact(PANEL).zip(codes.chunks_exact_mut(PANEL)) {
        V::load(token, values).to_bf16(codes);
    }
    codes
}

/// `c = start + a * b`.
pub(crate) fn multiply(level: Level, a: &TileRows, b: Panels, results: Results) {
    assert_eq!(a.depth, b.depth, "rows as wide as the matrix is deep");
    level.run_sixteen(Product { level, a, b, results });
}

struct Product<'a> {
    level: Level,
    a: &'a TileRows,
    b: Panels<'a>,
    results: Results<'a>,
}

impl SixteenKernel for Product<'_> {
    type Output = ();

    #[inline(always)]
    fn run<V: Vector>(mut self, token: V::Token) {
        let mut products = TileProducts::new(self.level);
        let panels = self.b.columns.div_ceil(PANEL);
        for panel in (0..panels).step_by(2) {
            if panel + 1 < panels {
                self.strip::<V, 2>(token, panel, &mut products);
            } else {
                self.strip::<V, 1>(token, panel, &mut products);
            }
        }
    }
}

impl Product<'_> {
    /// All rows with some panels.
    #[inline(always)]
    fn strip<V: Vector, const P: usize>(
        &mut self,
        token: V::Token,
        panel: usize,
        products: &mut TileProducts,
    ) {
        let Product { a, b, .. } = *self;
        let columns: [_; P] = from_fn(|p| b.panel(panel + p));
        // The next panels, a part of them beside each block of rows.
        let [from, end] = [P, 2 * P].map(|p| ((panel + p) * b.panel_stride).min(b.tiles.len()));
        let soon = &b.tiles[from..end];
        let blocks = a.rows.div_ceil(2 * SIDE);
        let mut sums = [[Sums::ZERO; P]; 2];
        for block in 0..blocks {
            let soon = &soon[soon.len() * block / blocks..soon.len() * (block + 1) / blocks];
            let row = block * 2 * SIDE;
            let rows = &a.tiles[row / SIDE * a.depth..];
            if row + SIDE < a.rows {
                let rows = [&rows[..a.depth], &rows[a.depth..][..a.depth]];
                products.multiply(rows, columns, soon, &mut sums);
            } else {
                let [sums, _] = &mut sums;
                let rows = [&rows[..a.depth]];
                products.multiply(rows, columns, soon, std::array::from_mut(sums));
            }
            for (row, sums) in (row..a.rows).step_by(SIDE).zip(&mut sums) {
                let count = SIDE.min(a.rows - row);
                for (p, sums) in sums.iter_mut().enumerate() {
                    self.store::<V>(token, (row, panel + p), &mut sums.0[..count]);
                }
            }
        }
    }

    /// Puts the sums of some rows with a panel where the results belong.
    #[inline(always)]
    fn store<V: Vector>(
        &mut self,
        token: V::Token,
        (row, panel): (usize, usize),
        sums: &mut [[f32; SIDE]],
    ) {
        let Results { start, activation, ref mut c, stride } = self.results;
        let column = panel * PANEL;
        let c = &mut c[row * stride + column..];
        let width = (self.b.columns - column).min(PANEL);
        let bias = match start {
            Start::Bias(bias) | Start::BiasAndResidual(bias) => V::load(token, &bias[column..]),
            Start::Zero | Start::Residual => V::splat(token, 0.0),
        };
        let accumulates = matches!(start, Start::Residual | Start::BiasAndResidual(_));
        for (sums, c) in sums.iter_mut().zip(c.chunks_mut(stride)) {
            let mut sum = V::load(token, sums).add(bias);
            if accumulates && width == PANEL {
                sum = sum.add(V::load(token, c));
            } else if accumulates {
                // Behind the last column there need not be memory for the rest of the panel.
                let mut before = [0.0; PANEL];
                before[..width].copy_from_slice(&c[..width]);
                sum = sum.add(V::load(token, &before));
            }
            // Without anything behind them, sums need not be stored twice.
            if width == PANEL && activation == Activation::None {
                sum.store(c);
            } else {
                sum.store(sums);
            }
        }
        if width == PANEL && activation == Activation::None {
            return;
        }
        activation.apply(self.level, sums.as_flattened_mut());
        for (sums, c) in sums.iter().zip(c.chunks_mut(stride)) {
            if width == PANEL {
                V::load(token, sums).store(c);
            } else {
                c[..width].copy_from_slice(&sums[..width]);
            }
        }
    }
}
