//! Products of rows with packed matrices, both rounded to eight bits, for processors that multiply
//! bytes four at a time.
//!
//! Blocks of values are rounded by themselves. Every [`BLOCK`] of weights has a scale. Rows have one for
//! [`ROW_BLOCK`] of their values, which spares a third of what is done besides multiplying bytes, and a
//! lowest value, so that a value that sticks out to one side costs the others half as much; what that
//! adds to a sum is the lowest value times the sum of those weights, which is known beforehand.

use super::walk::{self, Part, Results, TileResults, Tiles, each_panel};
use super::{PANEL, inverse};
use weighbridge_codec::memory::{Arena, Numbers};
use weighbridge_codec::panel;
use weighbridge_codec::parallel::*;
use weighbridge_codec::simd::{
    ByteKernel, ByteProducts, Eight, Level, Prefetcher, Rows, Vector, dispatch,
};

/// Weights that are rounded together; those of MCF's q8.
const BLOCK: usize = 32;
/// Fours of a block.
const FOURS: usize = BLOCK / 4;
/// Values of a row that are rounded together. Of twice as many, vectors would be off by too much.
const ROW_BLOCK: usize = 2 * BLOCK;
/// Lines of factors for as many weights: a scale for each of both blocks, and the sum of all.
const FACTORS: usize = 3;

/// A block of rows' width of a panel.
type Stretch = panel::Stretch<{ 2 * FOURS }, FACTORS>;

/// A matrix of `columns x depth` values, packed.
#[derive(Debug)]
pub(crate) struct Packed {
    stretches: Numbers<Stretch>,
    /// Those of a panel.
    depth: usize,
    columns: usize,
}

impl Packed {
    /// Room for a matrix whose panels are then filled.
    pub(crate) fn new(columns: usize, depth: usize, arena: &Arena) -> Packed {
        let depth = depth.div_ceil(ROW_BLOCK);
        Packed { stretches: arena.zeros(columns.div_ceil(PANEL) * depth), depth, columns }
    }

    /// The panels, each with the number of its first column.
    pub(crate) fn panels_mut(&mut self) -> impl IndexedParallelIterator<Item = (usize, Panel<'_>)> {
        let panels = self.stretches.par_chunks_mut(self.depth.max(1)).enumerate();
        panels.map(|(p, stretches)| (p * PANEL, Panel(stretches)))
    }
}

#[derive(Debug)]
pub(crate) struct Panel<'a>(&'a mut [Stretch]);

impl Panel<'_> {
    /// Puts rows (outputs) of a matrix into the panel. If they were rounded before, in blocks, it is to
    /// the same scales, so that nothing is lost a second time.
    pub(crate) fn pack(
        &mut self,
        level: Level,
        rows: &[f32],
        depth: usize,
        were_rounded: bool,
        rounded: &mut Vec<RoundedBlock>,
    ) {
        rounded.resize(self.0.len(), RoundedBlock::default());
        for (column, row) in rows.chunks_exact(depth).enumerate() {
            round_column(level, row, were_rounded, rounded);
            for (stretch, rounded) in self.0.iter_mut().zip(&*rounded) {
                let fours = stretch.fours.iter_mut().zip(rounded.codes.as_flattened());
                fours.for_each(|(line, four)| line[column] = *four);
                let factors = stretch.factors.iter_mut().zip(rounded.factors);
                factors.for_each(|(line, factor)| line[column] = factor);
            }
        }
    }
}

/// Both blocks of a column that one of a row is as wide as.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RoundedBlock {
    codes: [[[i8; 4]; FOURS]; 2],
    factors: [f32; FACTORS],
}

dispatch! {
    /// Rounds a column of weights: the scales of its blocks, and the sums of what codes stand for.
    fn round_column(column: &[f32], were_rounded: bool, to: &mut [RoundedBlock])
        = eight round_column_with;
}

/// The values of a block; where it ends early, its first one again.
#[inline(always)]
fn block_of<V: Vector, const VECTORS: usize>(token: V::Token, values: &[f32]) -> [V; VECTORS] {
    let mut whole;
    let values = if values.len() == VECTORS * V::LANES {
        values
    } else {
        whole = [values[0]; ROW_BLOCK];
        whole[..values.len()].copy_from_slice(values);
        &whole
    };
    let mut lanes = [V::splat(token, 0.0); VECTORS];
    for (lanes, values) in lanes.iter_mut().zip(values.chunks_exact(V::LANES)) {
        *lanes = V::load(token, values);
    }
    lanes
}

/// Where f32 are whole numbers, of either sign, and the last bits are their own.
const WHOLE: f32 = 12_582_912.0;

/// The nearest integers of values whose magnitude is far below 2^22.
#[inline(always)]
fn nearest<V: Eight>(token: V::Token, x: V) -> V {
    let whole = V::splat(token, WHOLE);
    x.add(whole).sub(whole)
}

/// Values times a factor, rounded to bytes.
#[inline(always)]
fn to_bytes<V: Eight>(token: V::Token, mut block: [V; BLOCK / 8], by: f32) -> [u8; BLOCK] {
    for x in &mut block {
        *x = nearest(token, x.mul(V::splat(token, by)));
    }
    V::truncate(block)
}

/// Whether all values are multiples of a scale. Of most scales the first few are not.
#[inline(always)]
fn are_multiples<V: Eight>(token: V::Token, block: [V; BLOCK / 8], scale: f32) -> bool {
    let (by, near) = (V::splat(token, inverse(scale)), V::splat(token, 1e-3));
    for x in block {
        let x = x.mul(by);
        if x.sub(nearest(token, x)).abs().any_reaches(near) {
            return false;
        }
    }
    true
}

#[inline(always)]
fn round_column_with<V: Eight>(
    token: V::Token,
    column: &[f32],
    were_rounded: bool,
    to: &mut [RoundedBlock],
) {
    to.fill(RoundedBlock::default());
    for (i, values) in column.chunks(BLOCK).enumerate() {
        let RoundedBlock { codes, factors } = &mut to[i / 2];
        let block = block_of::<V, _>(token, values);
        let [a, b, c, d] = block;
        let largest = a.abs().max(b.abs()).max(c.abs().max(d.abs())).largest();
        let mut scale = largest / 127.0;
        if were_rounded {
            // The largest need not have the largest code.
            for steps in (100..=127u8).rev() {
                let exact = largest / f32::from(steps);
                if are_multiples::<V>(token, block, exact) {
                    scale = exact;
                    break;
                }
            }
        }
        let mut bytes = to_bytes::<V>(token, block, inverse(scale));
        bytes[values.len()..].fill(0);
        let mut sum = 0;
        for (four, bytes) in codes[i % 2].iter_mut().zip(bytes.as_chunks::<4>().0) {
            for (code, byte) in four.iter_mut().zip(bytes) {
                *code = byte.cast_signed();
                sum += i16::from(*code);
            }
        }
        factors[i % 2] = scale;
        factors[2] += scale * f32::from(sum);
    }
}

/// Rows (activations) rounded to eight bits in blocks.
#[derive(Debug, Default)]
pub(crate) struct ByteRows {
    blocks: Vec<RowBlock>,
    /// Blocks of a row.
    depth: usize,
}

/// What codes of a block are, and what they stand for: `lowest + scale * code`.
#[derive(Clone, Copy, Debug)]
struct RowBlock {
    codes: [u8; ROW_BLOCK],
    scale: f32,
    lowest: f32,
}

impl ByteRows {
    /// Rounds rows of `depth` values, which lie one behind the other, in place of earlier ones.
    pub(crate) fn round_rows(&mut self, level: Level, rows: &[f32], depth: usize) {
        self.depth = depth.div_ceil(ROW_BLOCK);
        // The buffer only grows: what earlier rows left in it is overwritten.
        let blocks = self.blocks.len().max(rows.len() / depth * self.depth);
        let nothing = RowBlock { codes: [0; ROW_BLOCK], scale: 0.0, lowest: 0.0 };
        self.blocks.resize(blocks, nothing);
        level.run_bytes(Rounding { rows, depth, to: self });
    }
}

/// Rounding rows of `depth` values.
struct Rounding<'a> {
    rows: &'a [f32],
    depth: usize,
    to: &'a mut ByteRows,
}

impl ByteKernel for Rounding<'_> {
    type Output = ();

    #[inline(always)]
    fn run<V: ByteProducts>(self, token: V::Token) {
        let Rounding { rows, depth, to } = self;
        let places = to.blocks.chunks_exact_mut(to.depth);
        for (row, blocks) in rows.chunks_exact(depth).zip(places) {
            // One after the other: what a block waits for, others do meanwhile.
            for (values, block) in row.chunks(ROW_BLOCK).zip(&mut *blocks) {
                measure_block::<V>(token, values, block);
            }
            for (values, block) in row.chunks(ROW_BLOCK).zip(blocks) {
                round_block::<V>(token, values, block);
            }
        }
    }
}

/// The scale of at most as many values as a block has, and as the lowest one that in the middle for now.
#[inline(always)]
fn measure_block<V: ByteProducts>(token: V::Token, values: &[f32], to: &mut RowBlock) {
    let block: [V; ROW_BLOCK / 16] = block_of(token, values);
    let nothing = V::splat(token, 0.0);
    let [mut most, mut least] = [block[0]; 2];
    // Zero, but for what is infinite or NaN.
    let mut zeros = block[0].mul(nothing);
    for x in &block[1..] {
        (most, least, zeros) = (most.max(*x), least.min(*x), x.mul_add(nothing, zeros));
    }
    let (least, most) = V::extremes(least, most);
    // Of parts and halves, so that the difference of large values is not infinite.
    let scale = most * (1.0 / 254.0) - least * (1.0 / 254.0);
    // Rounding to integers loses NaN, but these keep it.
    let is_nan = zeros.any_reaches(V::splat(token, 1.0));
    to.scale = if is_nan { f32::NAN } else { scale };
    to.lowest = most * 0.5 + least * 0.5;
}

/// Rounds values of a block that was measured. The codes behind them are multiplied by zeros.
#[inline(always)]
fn round_block<V: ByteProducts>(token: V::Token, values: &[f32], to: &mut RowBlock) {
    let mut block: [V; ROW_BLOCK / 16] = block_of(token, values);
    let (by, middles) = (V::splat(token, inverse(to.scale)), V::splat(token, to.lowest));
    // The code of the middle. That is rounded, so where values hardly differ, codes might not fit a byte.
    let whole = V::splat(token, WHOLE + 128.0);
    let (first, last) = (V::splat(token, WHOLE), V::splat(token, WHOLE + 255.0));
    for x in &mut block {
        *x = x.sub(middles).mul_add(by, whole).max(first).min(last);
    }
    V::last_bytes(block, &mut to.codes);
    to.lowest -= 128.0 * to.scale;
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

impl<V: ByteProducts> Tiles<V> for Operands<'_> {
    /// Fewer than others: there are registers for the sums of a block and for those of all.
    const ROWS: usize = 6;

    #[inline(always)]
    fn memory(&self, panel: usize) -> Prefetcher<'_> {
        Prefetcher::new(&self.b.stretches[panel * self.b.depth..][..self.b.depth])
    }

    #[inline(always)]
    fn tile<const N: usize, const P: usize>(
        &self,
        token: V::Token,
        (row, panel): (usize, usize),
        mut out: TileResults,
    ) {
        let Operands { a, b } = self;
        let depth = a.depth;
        let mut results: [[V; P]; N] = out.starts(token);
        let mut rows = Rows::<_, N>::new(&a.blocks[row * depth..], depth, depth);
        let stretches = &b.stretches[panel * depth..];
        let mut stretches = Rows::<_, P>::new(stretches, depth, depth);
        while let (Some(rows), Some(stretches)) = (rows.take::<1>(), stretches.take::<1>()) {
            let (rows, stretches) = (rows.map(|[row]| row), stretches.map(|[stretch]| stretch));
            (0..5 * P).for_each(|_| out.prefetch.advance());
            let mut scaled = [[V::splat(token, 0.0); P]; N];
            let scales: [V; P] = each_panel!(P, p => V::load(token, &stretches[p].factors[0]));
            let sums = block_sums::<V, N, P, 0>(token, rows, stretches);
            for (scaled, sums) in scaled.iter_mut().zip(sums) {
                *scaled = each_panel!(P, p => V::from_sums(sums[p]).mul(scales[p]));
            }
            let scales: [V; P] = each_panel!(P, p => V::load(token, &stretches[p].factors[1]));
            let sums = block_sums::<V, N, P, 1>(token, rows, stretches);
            for (scaled, sums) in scaled.iter_mut().zip(sums) {
                *scaled = each_panel!(P, p => V::from_sums(sums[p]).mul_add(scales[p], scaled[p]));
            }
            let totals: [V; P] = each_panel!(P, p => V::load(token, &stretches[p].factors[2]));
            for ((results, scaled), row) in results.iter_mut().zip(scaled).zip(rows) {
                let (by, lowest) = (V::splat(token, row.scale), V::splat(token, row.lowest));
                *results = each_panel!(P, p => {
                    totals[p].mul_add(lowest, scaled[p].mul_add(by, results[p]))
                });
            }
        }
        out.store(results);
    }
}

/// The sums of the products of codes, of those of a row's block that belong to one block of weights.
#[inline(always)]
fn block_sums<V: ByteProducts, const N: usize, const P: usize, const HALF: usize>(
    token: V::Token,
    rows: [&RowBlock; N],
    stretches: [&Stretch; P],
) -> [[V::Sums; P]; N] {
    let mut sums = [[V::sums(token, 0); P]; N];
    for i in HALF * FOURS..(HALF + 1) * FOURS {
        for (sums, row) in sums.iter_mut().zip(rows) {
            let four = row.codes.as_chunks().0[i];
            *sums = each_panel!(P, p => V::add_fours(sums[p], &stretches[p].fours[i], four));
        }
    }
    sums
}
