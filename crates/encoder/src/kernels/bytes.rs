//! Products of rows with packed matrices, both rounded to eight bits, for processors that multiply
//! bytes four at a time.
//!
//! Every [`BLOCK`] of values is rounded by itself. Weights have a scale. Rows have a scale and a lowest
//! value, so that a value that sticks out to one side costs the others half as much; what that adds
//! to a sum is the lowest value times the sum of the block's weights, which is known beforehand.

use super::walk::{self, Part, Results, TileResults, Tiles, each_panel};
use super::{Lines, PANEL, inverse};
use weighbridge_codec::memory::Arena;
use weighbridge_codec::panel;
use weighbridge_codec::parallel::*;
use weighbridge_codec::simd::{ByteKernel, ByteProducts, Eight, Level, Prefetcher, Rows, dispatch};

/// Values that are rounded together; those of MCF's q8.
const BLOCK: usize = 32;
/// Fours of a block.
const FOURS: usize = BLOCK / 4;

/// Four codes of each column.
type Codes = [[i8; 4]; PANEL];

/// A matrix of `columns x depth` values, packed.
#[derive(Debug)]
pub(crate) struct Packed {
    codes: Lines<[i8; 4]>,
    /// Two lines a block: the scales of its columns, and their scales times the sums of their codes.
    factors: Lines<f32>,
    /// Blocks of a column.
    depth: usize,
    columns: usize,
}

impl Packed {
    /// Room for a matrix whose panels are then filled.
    pub(crate) fn new(columns: usize, depth: usize, arena: &Arena) -> Packed {
        let (panels, depth) = (columns.div_ceil(PANEL), depth.div_ceil(BLOCK));
        let codes = Lines::new_in(arena, panels * depth * FOURS);
        let factors = Lines::new_in(arena, panels * depth * 2);
        Packed { codes, factors, depth, columns }
    }

    /// The panels, each with the number of its first column.
    pub(crate) fn panels_mut(&mut self) -> impl IndexedParallelIterator<Item = (usize, Panel<'_>)> {
        let depth = self.depth.max(1);
        let codes = self.codes.values_mut().par_chunks_mut(depth * FOURS * PANEL);
        let factors = self.factors.values_mut().par_chunks_mut(depth * 2 * PANEL);
        let panels = codes.zip(factors).enumerate();
        panels.map(|(p, (codes, factors))| {
            (p * PANEL, Panel { codes, factors: factors.as_chunks_mut().0 })
        })
    }
}

#[derive(Debug)]
pub(crate) struct Panel<'a> {
    codes: &'a mut [[i8; 4]],
    factors: &'a mut [[f32; PANEL]],
}

impl Panel<'_> {
    /// Puts rows (outputs) of a matrix into the panel. If they were rounded before, in blocks, it is to
    /// the same scales, so that nothing is lost a second time.
    pub(crate) fn pack(
        &mut self,
        level: Level,
        rows: &[f32],
        depth: usize,
        were_rounded: bool,
        codes: &mut Vec<[i8; 4]>,
    ) {
        let width = depth.div_ceil(BLOCK) * FOURS;
        codes.clear();
        codes.resize(rows.len() / depth * width, [0; 4]);
        let mut factors = vec![[0.0; 2]; depth.div_ceil(BLOCK)];
        let places = rows.chunks_exact(depth).zip(codes.chunks_exact_mut(width));
        for (column, (row, codes)) in places.enumerate() {
            round_column(level, row, were_rounded, codes.as_chunks_mut().0, &mut factors);
            for (lines, factors) in self.factors.as_chunks_mut::<2>().0.iter_mut().zip(&factors) {
                lines.iter_mut().zip(factors).for_each(|(line, factor)| line[column] = *factor);
            }
        }
        panel::pack(codes, width, self.codes);
    }
}

dispatch! {
    /// Rounds a column of weights; each block gets its scale, and that times the sum of its codes.
    fn round_column(column: &[f32], were_rounded: bool, codes: &mut [[[i8; 4]; FOURS]], factors: &mut [[f32; 2]])
        = eight round_column_with;
    /// Rounds a row.
    fn round_row(row: &[f32], codes: &mut [[u8; BLOCK]], blocks: &mut [RowBlock]) = eight round_row_with;
}

/// The values of a block; where it ends early, its first one again.
#[inline(always)]
fn block_of<V: Eight>(token: V::Token, values: &[f32]) -> [V; BLOCK / 8] {
    let mut whole = [values[0]; BLOCK];
    let values = if values.len() == BLOCK {
        values
    } else {
        whole[..values.len()].copy_from_slice(values);
        &whole
    };
    let mut lanes = [V::splat(token, 0.0); BLOCK / 8];
    for (lanes, values) in lanes.iter_mut().zip(values.chunks_exact(8)) {
        *lanes = V::load(token, values);
    }
    lanes
}

/// The nearest integers of values whose magnitude is far below 2^22.
#[inline(always)]
fn nearest<V: Eight>(token: V::Token, x: V) -> V {
    // Where f32 are whole numbers and of either sign.
    let magic = V::splat(token, 12_582_912.0);
    x.add(magic).sub(magic)
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
    codes: &mut [[[i8; 4]; FOURS]],
    factors: &mut [[f32; 2]],
) {
    let places = codes.iter_mut().zip(factors);
    for (values, (codes, factors)) in column.chunks(BLOCK).zip(places) {
        let block = block_of::<V>(token, values);
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
        for (four, bytes) in codes.iter_mut().zip(bytes.as_chunks::<4>().0) {
            for (code, byte) in four.iter_mut().zip(bytes) {
                *code = byte.cast_signed();
                sum += i16::from(*code);
            }
        }
        *factors = [scale, scale * f32::from(sum)];
    }
}

#[inline(always)]
fn round_row_with<V: Eight>(
    token: V::Token,
    row: &[f32],
    codes: &mut [[u8; BLOCK]],
    blocks: &mut [RowBlock],
) {
    let places = codes.iter_mut().zip(blocks);
    for (values, (codes, place)) in row.chunks(BLOCK).zip(places) {
        let mut block = block_of::<V>(token, values);
        let [a, b, c, d] = block;
        let most = a.max(b).max(c.max(d)).largest();
        let least = a.min(b).min(c.min(d));
        let least = -V::splat(token, 0.0).sub(least).largest();
        // Of parts and halves, so that the difference of large values is not infinite.
        let scale = most * (1.0 / 254.0) - least * (1.0 / 254.0);
        let middle = most * 0.5 + least * 0.5;
        for x in &mut block {
            *x = x.sub(V::splat(token, middle));
        }
        *codes = to_bytes::<V>(token, block, inverse(scale));
        for code in codes {
            *code ^= 0x80;
        }
        // Rounding to integers loses NaN, but the sum keeps it.
        let sum = a.add(b).add(c.add(d));
        let is_nan = sum.sub(sum).any_reaches(V::splat(token, 1.0));
        let scale = if is_nan { f32::NAN } else { scale };
        *place = RowBlock { scale, lowest: middle - 128.0 * scale };
    }
}

/// Rows (activations) rounded to eight bits in blocks.
#[derive(Debug, Default)]
pub(crate) struct ByteRows {
    codes: Vec<[u8; BLOCK]>,
    blocks: Vec<RowBlock>,
    /// Blocks of a row.
    depth: usize,
}

/// What codes of a block stand for: `lowest + scale * code`.
#[derive(Clone, Copy, Debug, Default)]
struct RowBlock {
    scale: f32,
    lowest: f32,
}

impl ByteRows {
    /// Rounds rows of `depth` values, which lie one behind the other, in place of earlier ones.
    pub(crate) fn round_rows(&mut self, level: Level, rows: &[f32], depth: usize) {
        self.depth = depth.div_ceil(BLOCK);
        // The buffers only grow: what earlier rows left in them is overwritten.
        let blocks = self.blocks.len().max(rows.len() / depth * self.depth);
        self.codes.resize(blocks, [0; BLOCK]);
        self.blocks.resize(blocks, RowBlock::default());
        let codes = self.codes.chunks_exact_mut(self.depth);
        let places = codes.zip(self.blocks.chunks_exact_mut(self.depth));
        for (row, (codes, blocks)) in rows.chunks_exact(depth).zip(places) {
            round_row(level, row, codes, blocks);
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

impl<V: ByteProducts> Tiles<V> for Operands<'_> {
    /// Fewer than others: there are registers for the sums of a block and for those of all.
    const ROWS: usize = 8;

    #[inline(always)]
    fn memory(&self, panel: usize) -> Prefetcher<'_> {
        let width = self.b.depth * FOURS * PANEL;
        Prefetcher::new(&self.b.codes.values()[panel * width..][..width])
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
        let mut codes = Rows::<_, N>::new(&a.codes[row * depth..], depth, depth);
        let mut blocks = Rows::<_, N>::new(&a.blocks[row * depth..], depth, depth);
        let lines: &[Codes] = b.codes.values().as_chunks().0;
        let width = depth * FOURS;
        let mut lines = Rows::<_, P>::new(&lines[panel * width..], width, width);
        let factors: &[[f32; PANEL]] = b.factors.values().as_chunks().0;
        let mut factors = Rows::<_, P>::new(&factors[panel * depth * 2..], depth * 2, depth * 2);
        while let (Some(codes), Some(blocks), Some(lines), Some(factors)) =
            (codes.take::<1>(), blocks.take::<1>(), lines.take::<FOURS>(), factors.take::<2>())
        {
            (0..2 * P).for_each(|_| out.prefetch.advance());
            let mut sums = [[V::sums(token, 0); P]; N];
            #[allow(clippy::needless_range_loop, reason = "it is a place in several arrays")]
            for i in 0..FOURS {
                for (sums, [codes]) in sums.iter_mut().zip(codes) {
                    let four = codes.as_chunks().0[i];
                    *sums = each_panel!(P, p => V::add_fours(sums[p], &lines[p][i], four));
                }
            }
            let scales: [V; P] = each_panel!(P, p => V::load(token, &factors[p][0]));
            let totals: [V; P] = each_panel!(P, p => V::load(token, &factors[p][1]));
            for ((results, sums), [block]) in results.iter_mut().zip(sums).zip(blocks) {
                let (by, lowest) = (V::splat(token, block.scale), V::splat(token, block.lowest));
                *results = each_panel!(P, p => {
                    let scaled = V::from_sums(sums[p]).mul(scales[p]);
                    totals[p].mul_add(lowest, scaled.mul_add(by, results[p]))
                });
            }
        }
        out.store(results);
    }
}
