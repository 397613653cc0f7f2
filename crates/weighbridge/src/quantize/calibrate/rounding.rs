//! Rounding weights so that what they are multiplied with hides the errors.
//!
//! Of a row of weights, `e` is what its errors are, `H` the Hessian of the inputs and `R` the
//! Cholesky factor of that. The aim is a small `e H eᵀ`, the squared length of `e R`. First the
//! weights are rounded one after the other, each so that it makes up for the errors before it (that is
//! what GPTQ does). Then scales and codes are changed one at a time as long as that helps.

use half::f16;
use std::ops::Range;
use weighbridge_codec::block::{
    BLOCK, BLOCKS_PER_SUPER, BlockEncoder, BlockType, Quantizer, Recipe, ScaleTooLarge, pack,
};
use weighbridge_codec::dot::{F32, dots};
use weighbridge_codec::simd::Level;

/// The sub-scale that stands for the whole super scale.
const SUB_SCALE_ONE: f32 = 32.0;
const LARGEST_SUB_SCALE: f32 = 63.0;

/// Rows that are rounded by the way through the same factor.
pub(super) const ROWS: usize = 8;

/// How often scales and codes are gone through again. The first time brings most.
const PASSES: usize = 3;

/// What rows of one matrix have in common.
#[derive(Debug)]
pub(super) struct Rounding<'a> {
    pub method: BlockType,
    pub width: usize,
    /// `H`, which is symmetric.
    pub hessian: &'a [f32],
    /// `R`, row by row.
    pub factor: &'a [f32],
    /// What the error of a column counts when those behind it make up for it as well as they can: the
    /// squares of the diagonal of `R`.
    pub importance: Vec<f32>,
}

/// A row in the making.
#[derive(Debug)]
pub(super) struct Rounded {
    pub scales: Vec<u8>,
    pub sub_scales: Vec<u8>,
    codes: Vec<i8>,
    /// The step of each block: what one more of a code adds.
    steps: Vec<f32>,
    /// Weight less value, for each column.
    errors: Vec<f32>,
    /// What the errors so far are in each value of `e R`, then `e H`.
    residual: Vec<f32>,
}

impl<'a> Rounding<'a> {
    pub(super) fn new(
        method: BlockType,
        width: usize,
        hessian: &'a [f32],
        factor: &'a [f32],
    ) -> Self {
        let importance = factor.iter().step_by(width + 1).map(|v| v * v).collect();
        Rounding { method, width, hessian, factor, importance }
    }

    /// Up to [`ROWS`] rows, one behind the other.
    pub(super) fn rows(&self, weights: &[f32]) -> Result<Vec<Rounded>, ScaleTooLarge> {
        let mut rows: Vec<_> = weights
            .chunks_exact(self.width)
            .map(|_| Rounded::new(self.method, self.width))
            .collect();
        self.in_order(weights, &mut rows)?;
        let errors: Vec<f32> = rows.iter().flat_map(|r| &r.errors).copied().collect();
        let mut products = vec![0.0; errors.len()];
        dots::<F32>(Level::best(), self.hessian, &errors, self.width, &mut products);
        for (row, products) in rows.iter_mut().zip(products.chunks_exact(self.width)) {
            row.residual.copy_from_slice(products);
            for _ in 0..PASSES {
                self.better_steps(row);
                if self.better_codes(row) == 0 {
                    break;
                }
            }
        }
        Ok(rows)
    }

    /// Rounds column by column, each with the errors of those before it in mind.
    fn in_order(&self, weights: &[f32], rows: &mut [Rounded]) -> Result<(), ScaleTooLarge> {
        let width = self.width;
        let group = if self.method.has_super_blocks() { BLOCK * BLOCKS_PER_SUPER } else { BLOCK };
        for start in (0..width).step_by(group) {
            let columns = start..width.min(start + group);
            for (row, weights) in rows.iter_mut().zip(weights.chunks_exact(width)) {
                self.choose_scales(row, weights, columns.clone())?;
            }
            for k in columns {
                let factor = &self.factor[k * width..][..width];
                for (row, weights) in rows.iter_mut().zip(weights.chunks_exact(width)) {
                    let wanted = weights[k] + row.residual[k] / factor[k];
                    let error = weights[k] - row.round(k, wanted, self.method);
                    row.errors[k] = error;
                    let residual = row.residual[k + 1..].iter_mut().zip(&factor[k + 1..]);
                    residual.for_each(|(c, r)| *c += error * r);
                }
            }
        }
        Ok(())
    }

    /// Chooses the scales of some columns, for the weights that would make up best for the errors
    /// before them if they could be stored as they are.
    fn choose_scales(
        &self,
        row: &mut Rounded,
        weights: &[f32],
        columns: Range<usize>,
    ) -> Result<(), ScaleTooLarge> {
        let start = columns.start;
        let mut wanted = weights[columns.clone()].to_vec();
        let mut residual = row.residual[columns.clone()].to_vec();
        for k in columns.clone() {
            let factor = &self.factor[k * self.width..][..columns.end];
            let change = residual[k - start] / factor[k];
            wanted[k - start] += change;
            let rest = residual[k - start + 1..].iter_mut().zip(&factor[k + 1..]);
            rest.for_each(|(c, r)| *c -= change * r);
        }
        let recipe = Recipe {
            encoder: BlockEncoder::Best,
            clip: (f32::MIN, f32::MAX),
            importance: Some(&self.importance[columns.clone()]),
        };
        let blocks = start / BLOCK..columns.end.div_ceil(BLOCK);
        let (scales, sub_scales) = row.scales_of(blocks.clone(), self.method);
        Quantizer { method: self.method, recipe }.choose_scales(&wanted, scales, sub_scales)?;
        blocks.for_each(|block| row.read_step(block, self.method));
        Ok(())
    }

    /// Gives blocks the sub-scale, or the scale, that suits their codes best.
    fn better_steps(&self, row: &mut Rounded) {
        let width = self.width;
        for block in 0..row.steps.len() {
            let columns = block * BLOCK..width.min((block + 1) * BLOCK);
            let codes: Vec<f32> =
                row.codes[columns.clone()].iter().map(|c| f32::from(*c)).collect();
            let mut square = 0.0;
            for (k, code) in columns.clone().zip(&codes) {
                let hessian = &self.hessian[k * width..][columns.clone()];
                square += code * hessian.iter().zip(&codes).map(|(m, c)| m * c).sum::<f32>();
            }
            let along: f32 =
                row.residual[columns.clone()].iter().zip(&codes).map(|(c, e)| c * e).sum();
            if square.is_nan() || square <= 0.0 {
                continue;
            }
            let before = row.steps[block];
            row.write_step(block, before + along / square, self.method);
            let change = row.steps[block] - before;
            // Rounding may have spoilt it.
            if change == 0.0 || change * (2.0 * along - change * square) <= 0.0 {
                row.write_step(block, before, self.method);
                debug_assert_eq!(row.steps[block], before);
                continue;
            }
            for (k, code) in columns.zip(&codes).filter(|(_, code)| **code != 0.0) {
                self.change(row, k, change * code);
            }
        }
    }

    /// Gives codes the value that suits the others best. How many were changed.
    fn better_codes(&self, row: &mut Rounded) -> usize {
        let mut changed = 0;
        for k in 0..self.width {
            let (step, code) = (row.steps[k / BLOCK], f32::from(row.codes[k]));
            if step == 0.0 {
                continue;
            }
            let best = code * step + row.residual[k] / self.hessian[k * self.width + k];
            let value = row.round(k, best, self.method);
            let change = value - code * step;
            if change != 0.0 {
                changed += 1;
                self.change(row, k, change);
            }
        }
        changed
    }

    /// A value of the row has become so much more.
    fn change(&self, row: &mut Rounded, column: usize, by: f32) {
        row.errors[column] -= by;
        let hessian = &self.hessian[column * self.width..][..self.width];
        row.residual.iter_mut().zip(hessian).for_each(|(c, m)| *c -= by * m);
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
            errors: vec![0.0; width],
            residual: vec![0.0; width],
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

    /// Gives a column the nearest code; the value of that.
    #[allow(clippy::cast_possible_truncation)]
    fn round(&mut self, column: usize, wanted: f32, method: BlockType) -> f32 {
        let step = self.steps[column / BLOCK];
        if step == 0.0 {
            self.codes[column] = 0;
            return 0.0;
        }
        let limit = f32::from(method.largest_code());
        let code = (wanted / step).round_ties_even().clamp(-limit, limit);
        self.codes[column] = code as i8;
        code * step
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
