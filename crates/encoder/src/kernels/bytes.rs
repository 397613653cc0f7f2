//! Products of rows with packed matrices, both rounded to eight bits, for processors that multiply
//! bytes four at a time.
//!
//! Values have a scale for every [`BLOCK`] of them. The instruction wants the right side without a
//! sign, so weights are stored 128 higher, and sums start with what that adds, subtracted.

use super::lanes::{abs_max_and_sum, round_i8};
use super::matrix::{Activation, MAX_TILE_ROWS, Start};
use super::rounded::{self, TileOptions, Tiles};
use super::{LEVEL, Level, PANEL, by_rows};
use std::ops::Range;
use weighbridge_codec::parallel::*;

/// Values that share a scale; those of MCF's q8.
pub(super) const BLOCK: usize = 32;
/// Lines of four values a column that make up a block.
pub(super) const LINES: usize = BLOCK / 4;

/// Sixteen values on a cache line of their own.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub(super) struct Line<T>(pub [T; PANEL]);

/// A block of every column of a panel.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(super) struct Block {
    pub codes: [Line<[u8; 4]>; LINES],
    pub scales: Line<f32>,
}

/// A matrix of `columns x depth` values, packed.
#[derive(Debug)]
pub(crate) struct Packed {
    blocks: Vec<Block>,
    /// Blocks of a column.
    depth: usize,
    columns: usize,
}

impl Packed {
    /// Room for a matrix whose panels are then filled.
    pub(crate) fn new(columns: usize, depth: usize) -> Packed {
        let (panels, depth) = (columns.div_ceil(PANEL), depth.div_ceil(BLOCK));
        let zero = Block { codes: [Line([[128; 4]; PANEL]); LINES], scales: Line([0.0; PANEL]) };
        Packed { blocks: vec![zero; panels * depth], depth, columns }
    }

    /// The panels, each with the number of its first column.
    pub(crate) fn panels_mut(&mut self) -> impl IndexedParallelIterator<Item = (usize, Panel<'_>)> {
        let panels = self.blocks.par_chunks_mut(self.depth.max(1)).enumerate();
        panels.map(|(p, blocks)| (p * PANEL, Panel(blocks)))
    }
}

#[derive(Debug)]
pub(crate) struct Panel<'a>(&'a mut [Block]);

impl Panel<'_> {
    /// Puts rows (outputs) of a matrix into the panel.
    pub(crate) fn pack(&mut self, rows: &[f32], depth: usize) {
        for (column, row) in rows.chunks_exact(depth).enumerate() {
            for (block, values) in self.0.iter_mut().zip(row.chunks(BLOCK)) {
                let scale = weight_scale(values);
                block.scales.0[column] = scale;
                let mut codes = [0i8; BLOCK];
                round_i8(values, inverse(scale), &mut codes);
                for (line, codes) in block.codes.iter_mut().zip(codes.as_chunks::<4>().0) {
                    line.0[column] = codes.map(|code| code.cast_unsigned() ^ 0x80);
                }
            }
        }
    }
}

/// The scale of a block of weights: if they were rounded before, the same as then, so that nothing
/// is lost a second time.
fn weight_scale(values: &[f32]) -> f32 {
    let (largest, _) = abs_max_and_sum(values);
    let is_integer = |x: f32| (x - x.round_ties_even()).abs() < 1e-3;
    let steps = (100..=127u8).rev().map(f32::from);
    let exact =
        steps.map(|n| largest / n).find(|scale| values.iter().all(|v| is_integer(v / scale)));
    exact.unwrap_or(largest / 127.0)
}

/// One over a scale; 0 where that would be too large for f32.
fn inverse(scale: f32) -> f32 {
    if scale < 1e-30 { 0.0 } else { 1.0 / scale }
}

/// Rows (activations) rounded to eight bits in blocks.
#[derive(Debug, Default)]
pub(crate) struct ByteRows {
    codes: Vec<i8>,
    /// The scale of every block, and what its sums start with: -128 times the sum of its codes.
    blocks: Vec<RowBlock>,
    /// Blocks of a row.
    depth: usize,
}

#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(super) struct RowBlock {
    pub scale: f32,
    pub start: i32,
}

impl ByteRows {
    /// Rounds rows of `depth` values, which lie one behind the other, in place of earlier ones.
    pub(crate) fn round_rows(&mut self, rows: &[f32], depth: usize) {
        self.depth = depth.div_ceil(BLOCK);
        let count = rows.len() / depth;
        // The buffers only grow: what earlier rows left in them is overwritten.
        let blocks = self.blocks.len().max(count * self.depth);
        self.codes.resize(blocks * BLOCK, 0);
        self.blocks.resize(blocks, RowBlock::default());
        let unrounded = rows.chunks_exact(depth).flat_map(|row| row.chunks(BLOCK));
        let places = self.codes.chunks_exact_mut(BLOCK).zip(&mut self.blocks);
        for (values, (codes, block)) in unrounded.zip(places) {
            let (largest, sum) = abs_max_and_sum(values);
            // Rounding to integers loses NaN, but the sum keeps it.
            block.scale = if sum.is_nan() { f32::NAN } else { largest / 127.0 };
            codes[values.len()..].fill(0);
            block.start = -128 * round_i8(values, inverse(block.scale), codes);
        }
    }
}

/// `c = start + a * b` for some rows and panels; `c` begins with the first of them.
pub(crate) fn multiply(
    a: &ByteRows,
    b: &Packed,
    part: (Range<usize>, Range<usize>),
    start: Start,
    activation: Activation,
    c: &mut [f32],
    c_stride: usize,
) {
    assert_eq!(a.depth, b.depth, "rows as wide as the matrix is deep");
    rounded::multiply(&Operands { a, b }, part, b.columns, start, activation, c, c_stride);
}

struct Operands<'a> {
    a: &'a ByteRows,
    b: &'a Packed,
}

impl Tiles for Operands<'_> {
    fn memory(&self, panel: usize) -> &[u8] {
        rounded::bytes(&self.b.blocks[panel * self.b.depth..][..self.b.depth])
    }

    fn tile(
        &self,
        rows: Range<usize>,
        panel: usize,
        options: TileOptions,
        c: &mut [f32],
        c_stride: usize,
    ) {
        let (n, depth) = (rows.len(), self.a.depth);
        assert!((1..=MAX_TILE_ROWS).contains(&n), "rows that a tile can have");
        let tile = Tile {
            codes: &self.a.codes[rows.start * depth * BLOCK..][..n * depth * BLOCK],
            row_blocks: &self.a.blocks[rows.start * depth..][..n * depth],
            blocks: &self.b.blocks[panel * depth..][..depth],
            options,
        };
        by_rows!(n, N => tile.rows::<N>(c, c_stride));
    }
}

/// Some rows times one panel.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tile<'a> {
    pub codes: &'a [i8],
    pub row_blocks: &'a [RowBlock],
    pub blocks: &'a [Block],
    pub options: TileOptions<'a>,
}

impl Tile<'_> {
    #[inline]
    fn rows<const N: usize>(self, c: &mut [f32], c_stride: usize) {
        #[cfg(target_arch = "x86_64")]
        if *LEVEL == Level::Avx512Vnni {
            // SAFETY: the processor has it, and there are `N` rows of as many blocks.
            return unsafe { super::avx512::byte_tile::<N>(self, c, c_stride) };
        }
        plain(self, c, c_stride);
    }
}

/// The reference implementation.
pub(super) fn plain(tile: Tile, c: &mut [f32], c_stride: usize) {
    let depth = tile.blocks.len();
    let rows = tile.codes.chunks_exact(depth * BLOCK).zip(tile.row_blocks.chunks_exact(depth));
    for (r, (codes, row_blocks)) in rows.enumerate() {
        let mut results = *tile.options.bias;
        let c = &mut c[r * c_stride..][..PANEL];
        if tile.options.accumulate {
            results.iter_mut().zip(&*c).for_each(|(sum, existing)| *sum += existing);
        }
        let codes = codes.as_chunks::<4>().0.as_chunks::<LINES>().0;
        for ((codes, row), block) in codes.iter().zip(row_blocks).zip(tile.blocks) {
            let mut sums = [row.start; PANEL];
            for (a, line) in codes.iter().zip(&block.codes) {
                for (sum, b) in sums.iter_mut().zip(&line.0) {
                    *sum += (0..4).map(|i| i32::from(a[i]) * i32::from(b[i])).sum::<i32>();
                }
            }
            for i in 0..PANEL {
                #[allow(clippy::cast_precision_loss)]
                let sum = sums[i] as f32;
                results[i] = super::mul_add(sum, block.scales.0[i] * row.scale, results[i]);
            }
        }
        c.copy_from_slice(&results);
    }
}
