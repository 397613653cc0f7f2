//! Products of rows with packed matrices, both rounded to eight bits, for processors that multiply
//! bytes four at a time.
//!
//! Values have a scale for every [`BLOCK`] of them. The instruction wants the right side without a
//! sign, so weights are stored 128 higher, and sums start with what that adds, subtracted.

use super::PANEL;
use super::lanes::{abs_max_and_sum, round_i8};
use super::walk::{self, Part, Results, TileResults, Tiles};
use weighbridge_codec::parallel::*;
use weighbridge_codec::simd::{ByteKernel, ByteProducts, Level, Prefetcher, Rows};

/// Values that share a scale; those of MCF's q8.
const BLOCK: usize = 32;
/// Lines of four values a column that make up a block.
const LINES: usize = BLOCK / 4;

/// Sixteen values on a cache line of their own.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
struct Line<T>([T; PANEL]);

/// A block of every column of a panel.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
struct Block {
    codes: [Line<[u8; 4]>; LINES],
    scales: Line<f32>,
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
    pub(crate) fn pack(&mut self, level: Level, rows: &[f32], depth: usize) {
        for (column, row) in rows.chunks_exact(depth).enumerate() {
            for (block, values) in self.0.iter_mut().zip(row.chunks(BLOCK)) {
                let scale = weight_scale(level, values);
                block.scales.0[column] = scale;
                let mut codes = [0i8; BLOCK];
                round_i8(level, values, inverse(scale), &mut codes);
                for (line, codes) in block.codes.iter_mut().zip(codes.as_chunks::<4>().0) {
                    line.0[column] = codes.map(|code| code.cast_unsigned() ^ 0x80);
                }
            }
        }
    }
}

/// The scale of a block of weights: if they were rounded before, the same as then, so that nothing
/// is lost a second time.
fn weight_scale(level: Level, values: &[f32]) -> f32 {
    let (largest, _) = abs_max_and_sum(level, values);
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
struct RowBlock {
    scale: f32,
    start: i32,
}

impl ByteRows {
    /// Rounds rows of `depth` values, which lie one behind the other, in place of earlier ones.
    pub(crate) fn round_rows(&mut self, level: Level, rows: &[f32], depth: usize) {
        self.depth = depth.div_ceil(BLOCK);
        let count = rows.len() / depth;
        // The buffers only grow: what earlier rows left in them is overwritten.
        let blocks = self.blocks.len().max(count * self.depth);
        self.codes.resize(blocks * BLOCK, 0);
        self.blocks.resize(blocks, RowBlock::default());
        let unrounded = rows.chunks_exact(depth).flat_map(|row| row.chunks(BLOCK));
        let places = self.codes.chunks_exact_mut(BLOCK).zip(&mut self.blocks);
        for (values, (codes, block)) in unrounded.zip(places) {
            let (largest, sum) = abs_max_and_sum(level, values);
            // Rounding to integers loses NaN, but the sum keeps it.
            block.scale = if sum.is_nan() { f32::NAN } else { largest / 127.0 };
            codes[values.len()..].fill(0);
            block.start = -128 * round_i8(level, values, inverse(block.scale), codes);
        }
    }
}

/// `c = start + a * b` for some rows and panels.
pub(crate) fn multiply(level: Level, a: &ByteRows, b: &Packed, part: Part, results: Results) {
    assert_eq!(a.depth, b.depth, "rows as wide as the matrix is deep");
    level.run_bytes(Product { level, operands: Operands { a, b }, part, results });
}

struct Product<'a> {
    level: Level,
    operands: Operands<'a>,
    part: Part,
    results: Results<'a>,
}

impl ByteKernel for Product<'_> {
    type Output = ();

    #[inline(always)]
    fn run<V: ByteProducts>(self, token: V::Token) {
        let Product { level, operands, part, results } = self;
        walk::multiply::<V>((level, token), &operands, part, operands.b.columns, results);
    }
}

struct Operands<'a> {
    a: &'a ByteRows,
    b: &'a Packed,
}

impl Operands<'_> {
    #[inline(always)]
    fn panel(&self, panel: usize) -> &[Block] {
        &self.b.blocks[panel * self.b.depth..][..self.b.depth]
    }
}

impl<V: ByteProducts> Tiles<V> for Operands<'_> {
    #[inline(always)]
    fn memory(&self, panel: usize) -> Prefetcher<'_> {
        Prefetcher::new(self.panel(panel))
    }

    #[inline(always)]
    fn tile<const N: usize>(
        &self,
        token: V::Token,
        row: usize,
        panel: usize,
        mut out: TileResults,
    ) {
        let depth = self.a.depth;
        let codes: &[[[i8; 4]; LINES]] =
            self.a.codes[row * depth * BLOCK..].as_chunks().0.as_chunks().0;
        let mut results = [V::splat(token, 0.0); N];
        for (r, result) in results.iter_mut().enumerate() {
            *result = out.start(token, r);
        }
        let mut codes = Rows::<_, N>::new(codes, depth, depth);
        let mut rows = Rows::<_, N>::new(&self.a.blocks[row * depth..], depth, depth);
        for block in self.panel(panel) {
            let (Some(codes), Some(rows)) = (codes.take::<1>(), rows.take::<1>()) else { break };
            let mut sums = [V::sums(token, 0); N];
            for (sum, [row]) in sums.iter_mut().zip(rows) {
                *sum = V::sums(token, row.start);
            }
            for (i, line) in block.codes.iter().enumerate() {
                if i % 2 == 0 {
                    out.prefetch.advance();
                }
                for (sum, [codes]) in sums.iter_mut().zip(codes) {
                    *sum = V::add_fours(*sum, &line.0, codes[i]);
                }
            }
            let scales = V::load(token, &block.scales.0);
            for ((result, sum), [row]) in results.iter_mut().zip(sums).zip(rows) {
                let by = scales.mul(V::splat(token, row.scale));
                *result = V::from_sums(sum).mul_add(by, *result);
            }
        }
        for (r, result) in results.into_iter().enumerate() {
            out.store(r, result);
        }
    }
}
