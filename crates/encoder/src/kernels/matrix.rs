//! Products of rows with packed matrices.
//!
//! A result is accumulated in the order of the rows' values, by fused multiply-add (one rounding)
//! where the processor has it. The order does not depend on how the work was cut, so a row's
//! results do not depend on its neighbours.

use super::lanes::{gelu, gelu_tanh, relu};
use super::prefetch::prefetch_results;
use super::{LEVEL, Level, Lines, PANEL, by_rows};
use std::ops::Range;
use weighbridge_codec::parallel::*;

/// The most rows of a tile, which are computed together: with one register of columns this fills
/// half of those of AVX-512, as many as loads can feed.
pub(crate) const MAX_TILE_ROWS: usize = 12;

/// Rows of a tile on this processor; six with two registers of columns fill those of AVX2.
pub(crate) fn tile_rows() -> usize {
    if *LEVEL >= Level::Avx512 { MAX_TILE_ROWS } else { 6 }
}

/// How much of a panel is multiplied with all rows before the next: it stays in the L1 cache.
const CACHED_DEPTH: usize = 384;

/// The right side of a product: `depth` rows of `columns` values, panels of sixteen columns apart
/// from each other.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Panels<'a> {
    pub data: &'a [f32],
    pub depth: usize,
    pub columns: usize,
    /// The distance from a row of a panel to the next.
    pub row_stride: usize,
    /// The distance from a panel to the next.
    pub panel_stride: usize,
}

impl<'a> Start<'a> {
    /// The bias of the panel at a column.
    #[inline]
    pub(super) fn bias(self, column: usize) -> &'a [f32; PANEL] {
        match self {
            Start::Zero => &[0.0; PANEL],
            Start::Bias(bias) | Start::BiasAndResidual(bias) => {
                bias[column..].first_chunk().expect("a bias for every column of the panels")
            }
        }
    }

    /// Whether products are added to what the result holds.
    pub(super) fn accumulates(self) -> bool {
        matches!(self, Start::BiasAndResidual(_))
    }
}

impl Panels<'_> {
    /// Only some of the panels.
    pub(crate) fn part(self, panels: Range<usize>) -> Self {
        let columns = self.columns.min(panels.end * PANEL) - panels.start * PANEL;
        Panels { data: &self.data[panels.start * self.panel_stride..], columns, ..self }
    }
}

/// The left side of a product: `rows` rows, the starts of which are `stride` apart.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Left<'a> {
    pub data: &'a [f32],
    pub stride: usize,
    pub rows: usize,
}

/// What the products are added to.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Start<'a> {
    Zero,
    /// One value for every column of the panels.
    Bias(&'a [f32]),
    /// The bias and what the result holds already, as in a residual connection.
    BiasAndResidual(&'a [f32]),
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
    /// Applies it to whole panels.
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
            row_stride: PANEL,
            panel_stride: PANEL * self.depth,
        }
    }
}

/// Puts rows (outputs) of a matrix into a panel.
pub(crate) fn pack(rows: &[f32], depth: usize, panel: &mut [f32]) {
    // Short stretches, so that the lines that are written stay in the cache.
    for (at, lines) in panel.as_chunks_mut::<PANEL>().0.chunks_mut(16).enumerate() {
        for (column, row) in rows.chunks_exact(depth).enumerate() {
            for (line, &value) in lines.iter_mut().zip(&row[at * 16..]) {
                line[column] = value;
            }
        }
    }
}

/// `c = start + a * b`, where `a` has rows of `b.depth` values, and `c` as many rows of `b.columns`
/// values, `c_stride` apart.
pub(crate) fn multiply(
    Left { data: a, stride: a_stride, rows }: Left,
    b: Panels,
    start: Start,
    activation: Activation,
    c: &mut [f32],
    c_stride: usize,
) {
    if rows == 0 || b.columns == 0 {
        return;
    }
    // All that the tiles touch lies within these.
    let count = b.columns.div_ceil(PANEL);
    assert!(a.len() >= (rows - 1) * a_stride + b.depth, "rows of the left side");
    assert!(c.len() >= (rows - 1) * c_stride + b.columns, "rows of the result");
    if b.depth > 0 {
        let last = (count - 1) * b.panel_stride + (b.depth - 1) * b.row_stride;
        assert!(b.data.len() >= last + PANEL, "panels of the right side");
    }
    let tile_rows = tile_rows();
    let mut buffer = TILE_BUFFER;
    let mut from = 0;
    while from < b.depth.max(1) {
        let depth = (b.depth - from).min(CACHED_DEPTH);
        for panel in 0..count {
            let column = panel * PANEL;
            let bias = if from == 0 { start.bias(column) } else { &[0.0; PANEL] };
            let accumulate = from > 0 || start.accumulates();
            let finish = if from + depth == b.depth { activation } else { Activation::None };
            let right = &b.data[panel * b.panel_stride + from * b.row_stride..];
            // The next panel is prefetched while this one is used, where it lies in one piece.
            let next_panel = match panel + 1 < count && b.row_stride == PANEL {
                true => &right[b.panel_stride..][..depth * PANEL],
                false => &[0.0; 0][..],
            };
            let next_panel = super::rounded::bytes(next_panel);
            let mut prefetch_shares = PrefetchShares::new(next_panel, rows.div_ceil(tile_rows));
            let mut row = 0;
            while row < rows {
                let n = tile_rows.min(rows - row);
                let a = &a[row * a_stride + from..];
                let c = &mut c[row * c_stride + column..];
                let prefetch = prefetch_shares.next_share();
                prefetch_results(c, c_stride, n);
                let b_stride = b.row_stride;
                let tile = Tile {
                    bias,
                    accumulate,
                    a,
                    a_stride,
                    b: right,
                    b_stride,
                    depth,
                    c_stride,
                    prefetch,
                };
                let width = b.columns - column;
                if width >= PANEL && finish == Activation::None {
                    tile.run(n, c);
                } else {
                    let tile = Tile { c_stride: PANEL, ..tile };
                    in_buffer(
                        &mut buffer,
                        c,
                        c_stride,
                        n,
                        width.min(PANEL),
                        accumulate,
                        |buffer| {
                            tile.run(n, buffer);
                            finish.apply(buffer);
                        },
                    );
                }
                row += n;
            }
        }
        from += CACHED_DEPTH;
    }
}

/// A buffer for the results of a tile.
pub(super) const TILE_BUFFER: [f32; MAX_TILE_ROWS * PANEL] = [0.0; MAX_TILE_ROWS * PANEL];

/// Computes a tile in a buffer with whole panels, then copies `width` columns of it to `c`: for
/// results that end within the panel, or that an activation follows. The buffer is in the L1 cache,
/// where rows that were just written need not be.
pub(super) fn in_buffer(
    buffer: &mut [f32; MAX_TILE_ROWS * PANEL],
    c: &mut [f32],
    c_stride: usize,
    rows: usize,
    width: usize,
    accumulate: bool,
    fill: impl FnOnce(&mut [f32]),
) {
    for r in 0..if accumulate { rows } else { 0 } {
        buffer[r * PANEL..][..width].copy_from_slice(&c[r * c_stride..][..width]);
    }
    fill(&mut buffer[..rows * PANEL]);
    for r in 0..rows {
        c[r * c_stride..][..width].copy_from_slice(&buffer[r * PANEL..][..width]);
    }
}

/// Memory to prefetch, divided into a share for each tile.
pub(super) struct PrefetchShares<'a> {
    bytes: &'a [u8],
    share: usize,
}

impl<'a> PrefetchShares<'a> {
    pub(super) fn new(bytes: &'a [u8], tiles: usize) -> PrefetchShares<'a> {
        PrefetchShares { bytes, share: bytes.len().div_ceil(tiles.max(1)).next_multiple_of(128) }
    }

    #[inline]
    pub(super) fn next_share(&mut self) -> &'a [u8] {
        let (own, rest) = self.bytes.split_at(self.share.min(self.bytes.len()));
        self.bytes = rest;
        own
    }
}

/// Some rows times one panel. The slices have the lengths that depth and strides need, which was
/// checked for all tiles at once.
#[derive(Clone, Copy)]
pub(super) struct Tile<'a> {
    pub bias: &'a [f32; PANEL],
    /// Whether products are added to what `c` holds.
    pub accumulate: bool,
    pub a: &'a [f32],
    pub a_stride: usize,
    pub b: &'a [f32],
    pub b_stride: usize,
    pub depth: usize,
    pub c_stride: usize,
    /// Memory that is needed soon.
    pub prefetch: &'a [u8],
}

impl Tile<'_> {
    fn run(self, rows: usize, c: &mut [f32]) {
        by_rows!(rows, N => self.rows::<N>(c));
    }

    #[inline]
    fn rows<const N: usize>(self, c: &mut [f32]) {
        // SAFETY (of all calls here): the processor has it; the slices are as long as the tile
        // needs.
        #[cfg(target_arch = "x86_64")]
        match (*LEVEL, self.accumulate) {
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

/// The reference implementation.
pub(super) fn plain<const N: usize>(tile: Tile, c: &mut [f32]) {
    let mut sums = [*tile.bias; N];
    if tile.accumulate {
        for (r, sums) in sums.iter_mut().enumerate() {
            sums.iter_mut().zip(&c[r * tile.c_stride..]).for_each(|(sum, c)| *sum += c);
        }
    }
    for k in 0..tile.depth {
        let b: &[f32; PANEL] = tile.b[k * tile.b_stride..].first_chunk().expect("a whole panel");
        for (r, sums) in sums.iter_mut().enumerate() {
            let a = tile.a[r * tile.a_stride + k];
            for (sum, b) in sums.iter_mut().zip(b) {
                *sum = super::mul_add(a, *b, *sum);
            }
        }
    }
    for (r, sums) in sums.iter().enumerate() {
        c[r * tile.c_stride..][..PANEL].copy_from_slice(sums);
    }
}
