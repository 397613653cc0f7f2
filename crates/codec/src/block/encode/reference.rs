//! What the reference tool does.
//!
//! All of it is f32 arithmetic in a fixed order, so that the bytes are the same. The codes come
//! from the scale as it was before it was truncated to f16, which is why the second pass derives it
//! again rather than reading what the first has stored.

use super::pack::pack;
use super::{BLOCK, BLOCKS_PER_SUPER, GROUP, Quantizer};
use crate::simd::Eight;

#[inline(always)]
pub(super) fn choose_scales<V: Eight>(
    token: V::Token,
    quantizer: &Quantizer<'_>,
    row: &[f32],
    scales: &mut [u8],
    sub_scales: &mut [u8],
) {
    let (scales, _) = scales.as_chunks_mut::<2>();
    if quantizer.method.has_super_blocks() {
        let groups = row.chunks(GROUP).zip(sub_scales.chunks_mut(BLOCKS_PER_SUPER));
        for (scale, (group, sub_scales)) in scales.iter_mut().zip(groups) {
            let chosen = SuperBlock::new(block_scales::<V>(token, quantizer, group));
            *scale = truncate_to_f16(chosen.scale).to_le_bytes();
            sub_scales.copy_from_slice(&chosen.sub_scales[..sub_scales.len()]);
        }
    } else {
        for (scales, group) in scales.chunks_mut(BLOCKS_PER_SUPER).zip(row.chunks(GROUP)) {
            for (scale, chosen) in scales.iter_mut().zip(block_scales::<V>(token, quantizer, group))
            {
                *scale = truncate_to_f16(chosen).to_le_bytes();
            }
        }
    }
}

#[inline(always)]
pub(super) fn make_codes<V: Eight>(
    token: V::Token,
    quantizer: &Quantizer<'_>,
    row: &[f32],
    codes: &mut [u8],
) {
    for (group, codes) in row.chunks(GROUP).zip(codes.chunks_mut(group_bytes(quantizer))) {
        let mut scales = block_scales::<V>(token, quantizer, group);
        if quantizer.method.has_super_blocks() {
            scales = SuperBlock::new(scales).block_scales();
        }
        encode_group::<V>(token, quantizer, group, scales, codes);
    }
}

/// Both at once: the scales need not be found again for the codes.
#[inline(always)]
pub(super) fn encode<V: Eight>(
    token: V::Token,
    quantizer: &Quantizer<'_>,
    row: &[f32],
    scales: &mut [u8],
    sub_scales: &mut [u8],
    codes: &mut [u8],
) {
    let (scales, _) = scales.as_chunks_mut::<2>();
    let groups = row.chunks(GROUP).zip(codes.chunks_mut(group_bytes(quantizer)));
    for (index, (group, codes)) in groups.enumerate() {
        let mut used = block_scales::<V>(token, quantizer, group);
        if quantizer.method.has_super_blocks() {
            let chosen = SuperBlock::new(used);
            let sub_scales = &mut sub_scales[index * BLOCKS_PER_SUPER..];
            let count = sub_scales.len().min(BLOCKS_PER_SUPER);
            sub_scales[..count].copy_from_slice(&chosen.sub_scales[..count]);
            scales[index] = truncate_to_f16(chosen.scale).to_le_bytes();
            used = chosen.block_scales();
        } else {
            let scales = &mut scales[index * BLOCKS_PER_SUPER..];
            scales
                .iter_mut()
                .zip(used)
                .for_each(|(s, used)| *s = truncate_to_f16(used).to_le_bytes());
        }
        encode_group::<V>(token, quantizer, group, used, codes);
    }
}

/// Bytes of the codes of eight blocks.
const fn group_bytes(quantizer: &Quantizer<'_>) -> usize {
    BLOCKS_PER_SUPER * quantizer.method.block_bytes()
}

#[inline(always)]
fn encode_group<V: Eight>(
    token: V::Token,
    quantizer: &Quantizer<'_>,
    group: &[f32],
    scales: [f32; BLOCKS_PER_SUPER],
    codes: &mut [u8],
) {
    let inverses = V::splat(token, 1.0).div(V::load(token, &scales)).to_array();
    let blocks = group.chunks(BLOCK).zip(codes.chunks_exact_mut(quantizer.method.block_bytes()));
    for ((block, codes), inverse) in blocks.zip(inverses) {
        encode_block::<V>(token, quantizer, block, inverse, codes);
    }
}

struct SuperBlock {
    scale: f32,
    sub_scales: [u8; BLOCKS_PER_SUPER],
}

impl SuperBlock {
    #[inline(always)]
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    fn new(block_scales: [f32; BLOCKS_PER_SUPER]) -> SuperBlock {
        let mut scale = 0.0;
        for block_scale in block_scales {
            scale = if block_scale > scale { block_scale } else { scale };
        }
        let mut sub_scales = [0; BLOCKS_PER_SUPER];
        for (sub_scale, block_scale) in sub_scales.iter_mut().zip(block_scales) {
            if block_scale > 0.0 {
                *sub_scale = ((block_scale / scale) * 32.0).round().clamp(1.0, 63.0) as u8;
            }
        }
        SuperBlock { scale, sub_scales }
    }

    #[inline(always)]
    fn block_scales(&self) -> [f32; BLOCKS_PER_SUPER] {
        let mut scales = [0.0; BLOCKS_PER_SUPER];
        for (scale, sub_scale) in scales.iter_mut().zip(self.sub_scales) {
            *scale = self.scale * (f32::from(sub_scale) / 32.0);
        }
        scales
    }
}

/// The scales of up to eight blocks: the largest magnitude gets the largest code.
#[inline(always)]
fn block_scales<V: Eight>(
    token: V::Token,
    quantizer: &Quantizer<'_>,
    values: &[f32],
) -> [f32; BLOCKS_PER_SUPER] {
    let mut largest = [V::splat(token, 0.0); BLOCKS_PER_SUPER];
    for (largest, block) in largest.iter_mut().zip(values.chunks(BLOCK)) {
        for lanes in quantizer.clamped::<V>(token, block) {
            *largest = lanes.abs().max(*largest);
        }
    }
    // With a block in each lane, one operation does for all eight.
    let mut of_blocks = V::splat(token, 0.0);
    for lanes in V::transpose(largest) {
        of_blocks = lanes.max(of_blocks);
    }
    of_blocks.div(V::splat(token, f32::from(quantizer.method.largest_code()))).to_array()
}

#[inline(always)]
fn encode_block<V: Eight>(
    token: V::Token,
    quantizer: &Quantizer<'_>,
    block: &[f32],
    inverse: f32,
    packed: &mut [u8],
) {
    if inverse.is_infinite() {
        // The scale is zero, or so small that zero is what is stored.
        packed.fill(0);
        return;
    }
    let limit = f32::from(quantizer.method.largest_code());
    let limits = (V::splat(token, -limit), V::splat(token, limit));
    let mut rounded = quantizer.clamped::<V>(token, block);
    for lanes in &mut rounded {
        let quotient = lanes.mul(V::splat(token, inverse)).clamp(limits);
        // Ties away from zero. Half itself would take 0.49999997 to 1.
        *lanes = quotient.add(V::splat(token, 0.5f32.next_down()).with_sign_of(quotient));
    }
    pack(quantizer.method, &V::truncate(rounded), packed);
}

/// Truncates the mantissa to that of f16; what would be subnormal is zero, what is too large
/// infinity.
#[inline(always)]
#[allow(clippy::cast_possible_truncation)]
pub(super) fn truncate_to_f16(scale: f32) -> u16 {
    if scale < 2f32.powi(-14) {
        0
    } else if scale >= 65536.0 {
        0x7C00
    } else {
        // The exponents of f32 are biased by 112 more.
        ((scale.to_bits() >> 13) - (112 << 10)) as u16
    }
}
