//! Products of rows with packed matrices.
//!
//! A result is a sum in order of the rows' values, each step fused (one rounding) where the processor
//! can. The order does not depend on how the work was cut, so a row's results do not depend on its
//! neighbours.

use super::ahead::fetch_results;
use super::lanes::{gelu, gelu_tanh, relu};
use super::{LEVEL, Level, Lines, PANEL, by_rows};
use rayon::prelude::*;
use std::ops::Range;

/// The most rows that are computed together: with one register of columns this fills half of those of
/// AVX-512, as many as loads can feed.
pub(crate) const MOST_ROWS: usize = 12;

/// Rows that are computed together on this processor; six with two registers of columns fill those of
/// AVX2.
pub(crate) fn rows_at_once() -> usize {
    if *LEVEL >= Level::Avx512 { MOST_ROWS } else { 6 }
}

/// How much of a panel is taken through all rows before the next: it stays in the first cache.
const DEPTH: usize = 384;

/// The right side of a product: `depth` rows of `columns` values, panels of sixteen columns apart
/// from each other.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Panels<'a> {
    pub data: &'a [f32],
    pub depth: usize,
    pub columns: usize,
    /// From a row of a panel to the next.
    pub row: usize,
    /// From a panel to the next.
    pub panel: usize,
}

impl<'a> Start<'a> {
    /// The bias of the panel at a column.
    #[inline]
    pub(super) fn bias(self, column: usize) -> &'a [f32; PANEL] {
        match self {
            Start::Zero => &[0.0; PANEL],
            Start::Bias(bias) | Start::BiasAndThere(bias) => {
                bias[column..].first_chunk().expect("a bias for every column of the panels")
            }
        }
    }

    pub(super) fn is_there(self) -> bool {
        matches!(self, Start::BiasAndThere(_))
    }
}

impl Panels<'_> {
    /// Only some of the panels.
    pub(crate) fn part(self, panels: Range<usize>) -> Self {
        let columns = self.columns.min(panels.end * PANEL) - panels.start * PANEL;
        Panels { data: &self.data[panels.start * self.panel..], columns, ..self }
    }
}

/// The left side of a product: so many rows, the starts of which are `row` apart.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Left<'a> {
    pub data: &'a [f32],
    pub row: usize,
    pub rows: usize,
}

/// What the products are added to.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Start<'a> {
    Zero,
    /// One value for every column of the panels.
    Bias(&'a [f32]),
    /// The same and what is there already.
    BiasAndThere(&'a [f32]),
}

/// What is done with the sums before they are stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Activation {
    #[default]
    None,
    Gelu,
    GeluTanh,
    Relu,
}

impl Activation {
    /// For whole panels.
    pub(super) fn apply(self, values: &mut [f32]) {
        match self {
            Activation::None => {}
            Activation::Gelu => gelu(values),
            Activation::GeluTanh => gelu_tanh(values),
            Activation::Relu => relu(values),
        }
    }
}

/// A matrix of `columns x depth` values (a row for each output, as in model files), packed.
#[derive(Debug)]
pub(crate) struct Packed {
    lines: Lines<f32>,
    depth: usize,
    columns: usize,
}

impl Packed {
    /// Room for a matrix whose panels are then filled.
    pub(crate) fn new(columns: usize, depth: usize) -> Packed {
        let lines = Lines::new(0.0, columns.div_ceil(PANEL) * depth);
        Packed { lines, depth, columns }
    }

    /// The panels, each with the number of its first column.
    pub(crate) fn panels_mut(
        &mut self,
    ) -> impl IndexedParallelIterator<Item = (usize, &mut [f32])> {
        let panels = self.lines.values_mut().par_chunks_mut(self.depth.max(1) * PANEL).enumerate();
        panels.map(|(p, lines)| (p * PANEL, lines))
    }

    pub(crate) fn panels(&self) -> Panels<'_> {
        Panels {
            data: self.lines.values(),
            depth: self.depth,
            columns: self.columns,
            row: PANEL,
            panel: PANEL * self.depth,
        }
    }
}

/// Puts rows (outputs) of a matrix into a panel.
pub(crate) fn pack(rows: &[f32], depth: usize, panel: &mut [f32]) {
    // Short stretches, so that the lines that are written stay near.
    for (at, lines) in panel.as_chunks_mut::<PANEL>().0.chunks_mut(16).enumerate() {
        for (column, row) in rows.chunks_exact(depth).enumerate() {
            for (line, &value) in lines.iter_mut().zip(&row[at * 16..]) {
                line[column] = value;
            }
        }
    }
}

/// `c = start + a * b`, where `a` has rows of `b.depth` values, and `c` as many rows of `b.columns`
/// values, `c_row` apart.
pub(crate) fn multiply(
    Left { data: a, row: a_row, rows }: Left,
    b: Panels,
    start: Start,
    activation: Activation,
    c: &mut [f32],
    c_row: usize,
) {
    if rows == 0 || b.columns == 0 {
        return;
    }
    // All that the tiles touch lies within these.
    let count = b.columns.div_ceil(PANEL);
    assert!(a.len() >= (rows - 1) * a_row + b.depth, "rows of the left side");
    assert!(c.len() >= (rows - 1) * c_row + b.columns, "rows of the result");
    if b.depth > 0 {
        let last = (count - 1) * b.panel + (b.depth - 1) * b.row;
        assert!(b.data.len() >= last + PANEL, "panels of the right side");
    }
    let most = rows_at_once();
    let mut room = ROOM;
    let mut from = 0;
    while from < b.depth.max(1) {
        let depth = (b.depth - from).min(DEPTH);
        for panel in 0..count {
            let column = panel * PANEL;
            let bias = if from == 0 { start.bias(column) } else { &[0.0; PANEL] };
            let there = from > 0 || start.is_there();
            let finish = if from + depth == b.depth { activation } else { Activation::None };
            let right = &b.data[panel * b.panel + from * b.row..];
            // The next panel is asked for while this one is used, where it lies in one piece.
            let ahead = match panel + 1 < count && b.row == PANEL {
                true => &right[b.panel..][..depth * PANEL],
                false => &[0.0; 0][..],
            };
            let mut shares = Shares::new(super::rounded::bytes(ahead), rows.div_ceil(most));
            let mut row = 0;
            while row < rows {
                let n = most.min(rows - row);
                let a = &a[row * a_row + from..];
                let c = &mut c[row * c_row + column..];
                let ahead = shares.next();
                fetch_results(c, c_row, n);
                let b_row = b.row;
                let tile = Tile { bias, there, a, a_row, b: right, b_row, depth, c_row, ahead };
                let width = b.columns - column;
                if width >= PANEL && finish == Activation::None {
                    tile.run(n, c);
                } else {
                    let tile = Tile { c_row: PANEL, ..tile };
                    in_room(&mut room, c, c_row, n, width.min(PANEL), there, |room| {
                        tile.run(n, room);
                        finish.apply(room);
                    });
                }
                row += n;
            }
        }
        from += DEPTH;
    }
}

/// Room for a tile.
pub(super) const ROOM: [f32; MOST_ROWS * PANEL] = [0.0; MOST_ROWS * PANEL];

/// Where the result ends within the panel, or is looked at again: `fill` gets room of its own for
/// whole panels. It is near, unlike rows that were just written and may have to come from afar.
pub(super) fn in_room(
    room: &mut [f32; MOST_ROWS * PANEL],
    c: &mut [f32],
    c_row: usize,
    rows: usize,
    width: usize,
    there: bool,
    fill: impl FnOnce(&mut [f32]),
) {
    for r in 0..if there { rows } else { 0 } {
        room[r * PANEL..][..width].copy_from_slice(&c[r * c_row..][..width]);
    }
    fill(&mut room[..rows * PANEL]);
    for r in 0..rows {
        c[r * c_row..][..width].copy_from_slice(&room[r * PANEL..][..width]);
    }
}

/// Bytes in as many parts as there are tiles.
pub(super) struct Shares<'a> {
    bytes: &'a [u8],
    share: usize,
}

impl<'a> Shares<'a> {
    pub(super) fn new(bytes: &'a [u8], tiles: usize) -> Shares<'a> {
        Shares { bytes, share: bytes.len().div_ceil(tiles.max(1)).next_multiple_of(128) }
    }

    #[inline]
    pub(super) fn next(&mut self) -> &'a [u8] {
        let (own, rest) = self.bytes.split_at(self.share.min(self.bytes.len()));
        self.bytes = rest;
        own
    }
}

/// Some rows with one panel. All that is named is there: that was checked for all tiles at once.
#[derive(Clone, Copy)]
pub(super) struct Tile<'a> {
    pub bias: &'a [f32; PANEL],
    /// What is in `c` counts.
    pub there: bool,
    pub a: &'a [f32],
    pub a_row: usize,
    pub b: &'a [f32],
    pub b_row: usize,
    pub depth: usize,
    pub c_row: usize,
    /// What is needed soon.
    pub ahead: &'a [u8],
}

impl Tile<'_> {
    fn run(self, rows: usize, c: &mut [f32]) {
        by_rows!(rows, N => self.rows::<N>(c));
    }

    #[inline]
    fn rows<const N: usize>(self, c: &mut [f32]) {
        // SAFETY (of all calls here): the processor has it; what the tile names is there.
        #[cfg(target_arch = "x86_64")]
        match (*LEVEL, self.there) {
            (Level::Avx512 | Level::Avx512Vnni, true) => {
                return unsafe { super::avx512::tile::<N, true>(self, c) };
            }
            (Level::Avx512 | Level::Avx512Vnni, false) => {
                return unsafe { super::avx512::tile::<N, false>(self, c) };
            }
            (Level::Avx2, true) => return unsafe { super::avx2::tile::<N, true>(self, c) },
            (Level::Avx2, false) => return unsafe { super::avx2::tile::<N, false>(self, c) },
            (Level::Plain, _) => {}
        }
        plain::<N>(self, c);
    }
}

/// The definition.
pub(super) fn plain<const N: usize>(tile: Tile, c: &mut [f32]) {
    let mut sums = [*tile.bias; N];
    if tile.there {
        for (r, sums) in sums.iter_mut().enumerate() {
            sums.iter_mut().zip(&c[r * tile.c_row..]).for_each(|(sum, c)| *sum += c);
        }
    }
    for k in 0..tile.depth {
        let b: &[f32; PANEL] = tile.b[k * tile.b_row..].first_chunk().expect("a whole panel");
        for (r, sums) in sums.iter_mut().enumerate() {
            let a = tile.a[r * tile.a_row + k];
            for (sum, b) in sums.iter_mut().zip(b) {
                *sum = super::step(a, *b, *sum);
            }
        }
    }
    for (r, sums) in sums.iter().enumerate() {
        c[r * tile.c_row..][..PANEL].copy_from_slice(sums);
    }
}
