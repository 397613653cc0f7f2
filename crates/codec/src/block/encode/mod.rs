//! From values to scales, sub-scales and signed codes.
//!
//! In a file all scales come before all codes, so a row is visited twice: once to choose its scales,
//! once to make its codes. Nothing has to be kept in between but what the file keeps.
//!
//! The same values give the same bytes on every machine: the algorithms are written once, over
//! vectors of [`Eight`] values, with operations that round the same everywhere. They never fuse a
//! multiplication with an addition.

mod best;
mod group;
mod pack;
mod reference;
#[cfg(test)]
mod tests;

use super::{BLOCK, BLOCKS_PER_SUPER, BlockEncoder, BlockType, Recipe, ScaleTooLarge};
use crate::simd::{Eight, Level, dispatch};
pub use pack::pack;

/// Values of a super block.
const GROUP: usize = BLOCK * BLOCKS_PER_SUPER;

/// One of the methods, with how values are quantized by it.
#[derive(Clone, Copy, Debug)]
pub struct Quantizer<'a> {
    /// The bits of a code, and how scales are stored.
    pub method: BlockType,
    /// How scales and codes are chosen.
    pub recipe: Recipe<'a>,
}

impl Quantizer<'_> {
    /// Chooses the scales of a row (f16, little-endian: one a block, or one a super block) and its
    /// sub-scales (`sub_scales`: one byte a block for `k*`, none for `q*`).
    ///
    /// # Errors
    ///
    /// [`BlockEncoder::Best`] refuses values that need a scale beyond the range of f16;
    /// [`BlockEncoder::Reference`] stores infinity for them.
    ///
    /// # Panics
    ///
    /// When `scales`, `sub_scales` or the importance do not have the length that the row needs.
    pub fn choose_scales(
        &self,
        row: &[f32],
        scales: &mut [u8],
        sub_scales: &mut [u8],
    ) -> Result<(), ScaleTooLarge> {
        self.check_lengths(row, scales, sub_scales);
        choose_scales(Level::best(), self, row, scales, sub_scales)
    }

    /// Makes the packed codes of a row, from the scales and sub-scales that were chosen for it.
    ///
    /// # Panics
    ///
    /// When `scales`, `sub_scales`, `codes` or the importance do not have the length that the row
    /// needs.
    pub fn make_codes(&self, row: &[f32], scales: &[u8], sub_scales: &[u8], codes: &mut [u8]) {
        self.check_lengths(row, scales, sub_scales);
        self.check_codes(row, codes);
        make_codes(Level::best(), self, row, scales, sub_scales, codes);
    }

    /// Chooses the scales of a row and makes its codes, in one step.
    ///
    /// # Errors
    ///
    /// As for [`Quantizer::choose_scales`].
    ///
    /// # Panics
    ///
    /// When `scales`, `sub_scales`, `codes` or the importance do not have the length that the row
    /// needs.
    pub fn encode(
        &self,
        row: &[f32],
        scales: &mut [u8],
        sub_scales: &mut [u8],
        codes: &mut [u8],
    ) -> Result<(), ScaleTooLarge> {
        self.check_lengths(row, scales, sub_scales);
        self.check_codes(row, codes);
        encode(Level::best(), self, row, scales, sub_scales, codes)
    }

    fn check_codes(&self, row: &[f32], codes: &[u8]) {
        let blocks = row.len().div_ceil(BLOCK);
        assert_eq!(codes.len(), blocks * self.method.block_bytes(), "length of the codes");
    }

    fn check_lengths(&self, row: &[f32], scales: &[u8], sub_scales: &[u8]) {
        let blocks = row.len().div_ceil(BLOCK);
        let (scale_count, share_count) = if self.method.has_super_blocks() {
            (blocks.div_ceil(BLOCKS_PER_SUPER), blocks)
        } else {
            (blocks, 0)
        };
        assert_eq!(scales.len(), 2 * scale_count, "length of the scales");
        assert_eq!(sub_scales.len(), share_count, "length of the sub_scales");
        if let Some(importance) = self.recipe.importance {
            assert_eq!(importance.len(), row.len(), "length of the importance");
        }
    }

    /// The values of a block, clamped to the bounds and padded with zeros.
    #[inline(always)]
    fn clamped<V: Eight>(&self, token: V::Token, block: &[f32]) -> [V; BLOCK / 8] {
        let (mut low, mut high) = self.recipe.clip;
        let mut padded;
        let full: &[f32; BLOCK] = match block.try_into() {
            Ok(full) => full,
            Err(_) => {
                padded = [0.0; BLOCK];
                padded[..block.len()].copy_from_slice(block);
                // Where the bounds leave zero out, padding is zero all the same.
                if low > 0.0 || high < 0.0 {
                    padded[..block.len()].iter_mut().for_each(|v| *v = v.min(high).max(low));
                    (low, high) = (f32::NEG_INFINITY, f32::INFINITY);
                }
                &padded
            }
        };
        let bounds = (V::splat(token, low), V::splat(token, high));
        let mut values = [V::splat(token, 0.0); BLOCK / 8];
        for (lanes, eight) in values.iter_mut().zip(full.as_chunks::<8>().0) {
            *lanes = V::load(token, eight).clamp(bounds);
        }
        values
    }
}

dispatch! {
    /// See [`Quantizer::choose_scales`].
    fn choose_scales(
        quantizer: &Quantizer<'_>,
        row: &[f32],
        scales: &mut [u8],
        sub_scales: &mut [u8],
    ) -> Result<(), ScaleTooLarge> = eight choose_scales_with;

    /// See [`Quantizer::make_codes`].
    fn make_codes(
        quantizer: &Quantizer<'_>,
        row: &[f32],
        scales: &[u8],
        sub_scales: &[u8],
        codes: &mut [u8],
    ) = eight make_codes_with;

    /// See [`Quantizer::encode`].
    fn encode(
        quantizer: &Quantizer<'_>,
        row: &[f32],
        scales: &mut [u8],
        sub_scales: &mut [u8],
        codes: &mut [u8],
    ) -> Result<(), ScaleTooLarge> = eight encode_with;
}

#[inline(always)]
fn choose_scales_with<V: Eight>(
    token: V::Token,
    quantizer: &Quantizer<'_>,
    row: &[f32],
    scales: &mut [u8],
    sub_scales: &mut [u8],
) -> Result<(), ScaleTooLarge> {
    match quantizer.recipe.encoder {
        BlockEncoder::Best => best::choose_scales::<V>(token, quantizer, row, scales, sub_scales),
        BlockEncoder::Reference => {
            reference::choose_scales::<V>(token, quantizer, row, scales, sub_scales);
            Ok(())
        }
    }
}

#[inline(always)]
fn make_codes_with<V: Eight>(
    token: V::Token,
    quantizer: &Quantizer<'_>,
    row: &[f32],
    scales: &[u8],
    sub_scales: &[u8],
    codes: &mut [u8],
) {
    match quantizer.recipe.encoder {
        BlockEncoder::Best => {
            best::make_codes::<V>(token, quantizer, row, scales, sub_scales, codes);
        }
        BlockEncoder::Reference => reference::make_codes::<V>(token, quantizer, row, codes),
    }
}

#[inline(always)]
fn encode_with<V: Eight>(
    token: V::Token,
    quantizer: &Quantizer<'_>,
    row: &[f32],
    scales: &mut [u8],
    sub_scales: &mut [u8],
    codes: &mut [u8],
) -> Result<(), ScaleTooLarge> {
    match quantizer.recipe.encoder {
        BlockEncoder::Best => {
            best::choose_scales::<V>(token, quantizer, row, scales, sub_scales)?;
            best::make_codes::<V>(token, quantizer, row, scales, sub_scales, codes);
        }
        BlockEncoder::Reference => {
            reference::encode::<V>(token, quantizer, row, scales, sub_scales, codes);
        }
    }
    Ok(())
}
