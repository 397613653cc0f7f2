//! Rounding weights so that what they are multiplied with hides the errors.
//!
//! Of a row of weights, `e` is what its errors are, `H` tells how the inputs go together and `R` is the
//! Cholesky factor of that. The aim is a small `e H eᵀ`, the squared length of `e R`. The weights are
//! rounded one after the other, each so that it makes up for the errors before it (that is what GPTQ
//! does). Where other results are wanted than the old weights give, they are treated as errors that
//! were made before the first.
//!
//! Then each block gets the step that suits its codes, and each code the value that suits the others, as
//! far as that makes the error smaller.
//!
//! Sixteen rows are rounded side by side, a lane for each: see `lanes`.

use super::cholesky::Factor;
use super::lanes::{Group, advance, along, improve, solve, to_gradient, to_lanes};
use half::f16;
use std::ops::Range;
use weighbridge_codec::block::{
    BLOCK, BLOCKS_PER_SUPER, BlockEncoder, BlockType, Quantizer, Recipe, ScaleTooLarge, pack,
};
use weighbridge_codec::panel::PANEL;
use weighbridge_codec::simd::Level;

/// The sub-scale that stands for the whole super scale.
const SUB_SCALE_ONE: f32 = 32.0;
const LARGEST_SUB_SCALE: f32 = 63.0;

/// Rows that are rounded together.
pub(super) const ROWS: usize = PANEL;

/// Columns that share their way through the rest of the factor.
const TOGETHER: usize = BLOCK;

/// What rows of one matrix have in common.
#[derive(Debug)]
pub(super) struct Rounding<'a> {
    pub method: BlockType,
    pub factor: &'a Factor,
    /// `H`, of which the right half is read.
    squares: &'a [f32],
    importance: Vec<f32>,
}

/// A row that was rounded.
#[derive(Debug)]
pub(super) struct Rounded {
    pub scales: Vec<u8>,
    pub sub_scales: Vec<u8>,
    codes: Vec<i8>,
    /// The step of each block: what one more of a code adds.
    steps: Vec<f32>,
}

impl<'a> Rounding<'a> {
    pub(super) fn new(method: BlockType, factor: &'a Factor, squares: &'a [f32]) -> Self {
        Rounding { method, factor, squares, importance: factor.importance() }
    }

    /// Up to [`ROWS`] rows, one behind the other. With right sides, the weights that solve these
    /// equations are rounded in place of those given.
    pub(super) fn rows(
        &self,
        weights: &[f32],
        right_sides: Option<&[f32]>,
    ) -> Result<Vec<Rounded>, ScaleTooLarge> {
        let (level, width) = (Level::best(), self.factor.width);
        let mut group = Group::new(width);
        match right_sides {
            None => to_lanes(weights, width, &mut group.weights),
            // All that the wanted weights have to give is then missing so far.
            Some(right) => {
                to_lanes(right, width, &mut group.residual);
                for start in (0..width).step_by(TOGETHER).rev() {
                    solve(level, self.factor, start..width.min(start + TOGETHER), &mut group);
                }
            }
        }
        let count = weights.len() / width;
        let mut rows: Vec<_> = (0..count).map(|_| Rounded::new(self.method, width)).collect();
        let together =
            if self.method.has_super_blocks() { BLOCK * BLOCKS_PER_SUPER } else { BLOCK };
        for start in (0..width).step_by(together) {
            let columns = start..width.min(start + together);
            self.choose_scales(&mut group, &mut rows, columns.clone())?;
            for start in columns.step_by(BLOCK) {
                let columns = start..width.min(start + BLOCK);
                for (step, row) in group.steps.iter_mut().zip(&rows) {
                    *step = row.steps[start / BLOCK];
                }
                let largest = Some(self.method.largest_code());
                advance(level, self.factor, columns, width, largest, &mut group);
            }
        }
        to_gradient(level, self.factor, &mut group);
        for start in (0..width).step_by(BLOCK) {
            self.refine(&mut group, &mut rows, start..width.min(start + BLOCK));
        }
        for (i, row) in rows.iter_mut().enumerate() {
            #[allow(clippy::cast_possible_truncation)]
            row.codes.iter_mut().zip(&group.codes).for_each(|(to, code)| *to = code[i] as i8);
        }
        Ok(rows)
    }

    /// Goes through the step and the codes of a block again.
    fn refine(&self, group: &mut Group, rows: &mut [Rounded], columns: Range<usize>) {
        let (level, width, block) = (Level::best(), self.factor.width, columns.start / BLOCK);
        let (along, squares) = along(level, self.squares, width, columns.clone(), group);
        let mut changes = [0.0; ROWS];
        for (i, row) in rows.iter_mut().enumerate() {
            let before = row.steps[block];
            group.steps[i] = before;
            if squares[i].is_nan() || squares[i] <= 0.0 {
                continue;
            }
            row.write_step(block, before + along[i] / squares[i], self.method);
            let change = row.steps[block] - before;
            // Rounding may have spoilt it.
            if change * (2.0 * along[i] - change * squares[i]) > 0.0 {
                (group.steps[i], changes[i]) = (row.steps[block], change);
            } else {
                row.write_step(block, before, self.method);
            }
        }
        let largest = self.method.largest_code();
        improve(level, self.squares, width, columns, &changes, largest, group);
    }

    /// Chooses the scales of some columns, for the weights that would make up best for the errors
    /// before them if they could be stored as they are.
    fn choose_scales(
        &self,
        group: &mut Group,
        rows: &mut [Rounded],
        columns: Range<usize>,
    ) -> Result<(), ScaleTooLarge> {
        let before = group.residual[columns.clone()].to_vec();
        for start in columns.clone().step_by(TOGETHER) {
            let some = start..columns.end.min(start + TOGETHER);
            advance(Level::best(), self.factor, some, columns.end, None, group);
        }
        group.residual[columns.clone()].copy_from_slice(&before);
        let recipe = Recipe {
            encoder: BlockEncoder::Best,
            clip: (f32::MIN, f32::MAX),
            importance: Some(&self.importance[columns.clone()]),
        };
        let quantizer = Quantizer { method: self.method, recipe };
        let blocks = columns.start / BLOCK..columns.end.div_ceil(BLOCK);
        for (i, row) in rows.iter_mut().enumerate() {
            let value = |k: usize| group.weights[k][i] - group.errors[k][i];
            let wanted: Vec<f32> = columns.clone().map(value).collect();
            let (scales, sub_scales) = row.scales_of(blocks.clone(), self.method);
            quantizer.choose_scales(&wanted, scales, sub_scales)?;
            blocks.clone().for_each(|block| row.read_step(block, self.method));
        }
        Ok(())
    }
}

impl Rounded {
    fn new(method: BlockType, width: usize) -> Rounded {
        let blocks = width.div_ceil(BLOCK);
        let (scales, sub_scales) = match method.has_super_blocks() {
            true => (blocks.div_ceil(BLOCKS_PER_SUPER), blocks),
            false => (blocks, 0),
        };
        Rounded {
            scales: vec![0; 2 * scales],
            sub_scales: vec![0; sub_scales],
            codes: vec![0; width],
            steps: vec![0.0; blocks],
        }
    }

    /// The scales and sub-scales of whole groups of blocks.
    fn scales_of(&mut self, blocks: Range<usize>, method: BlockType) -> (&mut [u8], &mut [u8]) {
        if method.has_super_blocks() {
            let groups = blocks.start / BLOCKS_PER_SUPER..blocks.end.div_ceil(BLOCKS_PER_SUPER);
            (&mut self.scales[2 * groups.start..2 * groups.end], &mut self.sub_scales[blocks])
        } else {
            (&mut self.scales[2 * blocks.start..2 * blocks.end], &mut [])
        }
    }

    fn scale(&self, index: usize) -> f32 {
        f16::from_le_bytes([self.scales[2 * index], self.scales[2 * index + 1]]).to_f32()
    }

    fn read_step(&mut self, block: usize, method: BlockType) {
        self.steps[block] = if method.has_super_blocks() {
            self.scale(block / BLOCKS_PER_SUPER)
                * (f32::from(self.sub_scales[block]) / SUB_SCALE_ONE)
        } else {
            self.scale(block)
        };
    }

    /// Stores the nearest step that can be had without touching other blocks.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    fn write_step(&mut self, block: usize, step: f32, method: BlockType) {
        if method.has_super_blocks() {
            let scale = self.scale(block / BLOCKS_PER_SUPER);
            let sub_scale = (step / (scale / SUB_SCALE_ONE)).round();
            self.sub_scales[block] =
                if sub_scale.is_nan() { 0 } else { sub_scale.clamp(0.0, LARGEST_SUB_SCALE) as u8 };
        } else {
            let stored = f16::from_f32(step.clamp(0.0, f16::MAX.to_f32()));
            self.scales[2 * block..][..2].copy_from_slice(&stored.to_le_bytes());
        }
        self.read_step(block, method);
    }

    /// What the codes stand for.
    pub(super) fn values(&self) -> impl Iterator<Item = f32> {
        let value = |(k, code): (usize, &i8)| f32::from(*code) * self.steps[k / BLOCK];
        self.codes.iter().enumerate().map(value)
    }

    /// The codes as a file has them.
    pub(super) fn packed(&self, method: BlockType) -> Vec<u8> {
        let mut packed = vec![0; self.steps.len() * method.block_bytes()];
        let blocks = self.codes.chunks(BLOCK).zip(packed.chunks_exact_mut(method.block_bytes()));
        for (codes, packed) in blocks {
            let mut whole = [0; BLOCK];
            whole.iter_mut().zip(codes).for_each(|(to, code)| *to = code.cast_unsigned());
            pack(method, &whole, packed);
        }
        packed
    }
}
