//! What the reference tool does.
//!
//! All of it is f32 arithmetic in a fixed order, so that the bytes are the same. The codes come from
//! the scale as it was before it was cut down to f16, which is why the second pass derives it again
//! rather than reading what the first has stored.

use super::lanes::Lanes;
use super::pack::pack;
use super::{BLOCK, BLOCKS_PER_SUPER, GROUP, Recipe};

#[inline(always)]
pub(super) fn choose_scales<L: Lanes>(
    recipe: &Recipe<'_>,
    row: &[f32],
    scales: &mut [u8],
    shares: &mut [u8],
) {
    let (scales, _) = scales.as_chunks_mut::<2>();
    if recipe.method.has_super_blocks() {
        let parts = row.chunks(GROUP).zip(shares.chunks_mut(BLOCKS_PER_SUPER));
        for (scale, (part, part_shares)) in scales.iter_mut().zip(parts) {
            let chosen = SuperBlock::new::<L>(recipe, part);
            *scale = cut_to_f16(chosen.scale).to_le_bytes();
            part_shares.copy_from_slice(&chosen.shares[..part_shares.len()]);
        }
    } else {
        for (scale, block) in scales.iter_mut().zip(row.chunks(BLOCK)) {
            *scale = cut_to_f16(scale_of::<L>(recipe, block)).to_le_bytes();
        }
    }
}

#[inline(always)]
pub(super) fn make_codes<L: Lanes>(recipe: &Recipe<'_>, row: &[f32], codes: &mut [u8]) {
    let block_bytes = recipe.method.block_bytes();
    if recipe.method.has_super_blocks() {
        for (part, codes) in row.chunks(GROUP).zip(codes.chunks_mut(BLOCKS_PER_SUPER * block_bytes))
        {
            let chosen = SuperBlock::new::<L>(recipe, part);
            let blocks = part.chunks(BLOCK).zip(codes.chunks_exact_mut(block_bytes));
            for ((block, codes), share) in blocks.zip(chosen.shares) {
                let scale = chosen.scale * (f32::from(share) / 32.0);
                encode::<L>(recipe, block, scale, codes);
            }
        }
    } else {
        for (block, codes) in row.chunks(BLOCK).zip(codes.chunks_exact_mut(block_bytes)) {
            encode::<L>(recipe, block, scale_of::<L>(recipe, block), codes);
        }
    }
}

struct SuperBlock {
    scale: f32,
    shares: [u8; BLOCKS_PER_SUPER],
}

impl SuperBlock {
    #[inline(always)]
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    fn new<L: Lanes>(recipe: &Recipe<'_>, values: &[f32]) -> SuperBlock {
        let mut block_scales = [0.0; BLOCKS_PER_SUPER];
        let mut scale = 0.0;
        for (block_scale, block) in block_scales.iter_mut().zip(values.chunks(BLOCK)) {
            *block_scale = scale_of::<L>(recipe, block);
            scale = if *block_scale > scale { *block_scale } else { scale };
        }
        let mut shares = [0; BLOCKS_PER_SUPER];
        for (share, block_scale) in shares.iter_mut().zip(block_scales) {
            if block_scale > 0.0 {
                *share = ((block_scale / scale) * 32.0).round().clamp(1.0, 63.0) as u8;
            }
        }
        SuperBlock { scale, shares }
    }
}

/// The largest magnitude gets the largest code.
#[inline(always)]
fn scale_of<L: Lanes>(recipe: &Recipe<'_>, block: &[f32]) -> f32 {
    let mut largest = L::splat(0.0);
    for lanes in recipe.clamped::<L>(block) {
        largest = lanes.abs().max(largest);
    }
    largest.largest() / f32::from(recipe.method.largest_code())
}

#[inline(always)]
fn encode<L: Lanes>(recipe: &Recipe<'_>, block: &[f32], scale: f32, packed: &mut [u8]) {
    let inverse = 1.0 / scale;
    if inverse.is_infinite() {
        // Zero, or so near that zero is what is stored.
        packed.fill(0);
        return;
    }
    let limit = f32::from(recipe.method.largest_code());
    let limits = (L::splat(-limit), L::splat(limit));
    let mut rounded = recipe.clamped::<L>(block);
    for lanes in &mut rounded {
        let quotient = lanes.mul(L::splat(inverse)).clamp(limits);
        // Halves away from zero. Half itself would carry 0.49999997 to 1.
        *lanes = quotient.add(L::splat(0.5f32.next_down()).with_sign_of(quotient));
    }
    pack(recipe.method, &L::truncate(rounded), packed);
}

/// Cuts the mantissa; too small for a normal f16 is zero, too large is infinity.
#[inline(always)]
#[allow(clippy::cast_possible_truncation)]
pub(super) fn cut_to_f16(scale: f32) -> u16 {
    if scale < 2f32.powi(-14) {
        0
    } else if scale >= 65536.0 {
        0x7C00
    } else {
        // The exponents of f32 are biased by 112 more.
        ((scale.to_bits() >> 13) - (112 << 10)) as u16
    }
}
