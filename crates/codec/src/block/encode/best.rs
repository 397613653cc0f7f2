//! The smallest squared error that a short search finds.
//!
//! The error is a jagged function of the scale, so scales are tried out. Since the codes are made
//! from what is stored, only stored scales count: whatever is chosen was tried as it will be read.

use super::group::{Group, nearest_integer};
use super::pack::pack;
use super::reference::truncate_to_f16;
use super::{BLOCK, BLOCKS_PER_SUPER, BlockType, GROUP, Quantizer, ScaleTooLarge};
use crate::simd::Eight;
use half::f16;

const LARGEST_SUB_SCALE: f32 = 63.0;
/// The sub-scale that leaves a super block's scale as it is.
const SUB_SCALE_ONE: f32 = 32.0;
const SMALLEST_F16: f32 = 1.0 / (1 << 24) as f32;
const LARGEST_F16: f32 = f16::MAX.to_f32_const();

#[inline(always)]
pub(super) fn choose_scales<V: Eight>(
    token: V::Token,
    quantizer: &Quantizer<'_>,
    row: &[f32],
    scales: &mut [u8],
    sub_scales: &mut [u8],
) -> Result<(), ScaleTooLarge> {
    let mut most_important = 0.0;
    for &importance in quantizer.recipe.importance.unwrap_or_default() {
        most_important = if importance > most_important { importance } else { most_important };
    }
    let (scales, _) = scales.as_chunks_mut::<2>();
    if quantizer.method.has_super_blocks() {
        let super_blocks = scales.iter_mut().zip(sub_scales.chunks_mut(BLOCKS_PER_SUPER));
        for (index, (scale, sub_scales)) in super_blocks.enumerate() {
            let group = Group::<V>::new(token, quantizer, row, index * GROUP, most_important);
            let needed =
                group.largest.div(group.limit).largest() * (SUB_SCALE_ONE / LARGEST_SUB_SCALE);
            check(index, needed)?;
            let choice = choose_for_super_block(token, quantizer.method, &group);
            *scale = f16::from_f32(choice.scale).to_le_bytes();
            store_sub_scales(choice.sub_scales, sub_scales);
        }
    } else {
        for (index, scales) in scales.chunks_mut(BLOCKS_PER_SUPER).enumerate() {
            let group = Group::<V>::new(token, quantizer, row, index * GROUP, most_important);
            let needed = group.largest.div(group.limit).to_array();
            for (block, needed) in needed.into_iter().enumerate() {
                check(index * BLOCKS_PER_SUPER + block, needed)?;
            }
            let chosen = choose_for_blocks(token, quantizer.method, &group);
            for (scale, chosen) in scales.iter_mut().zip(chosen.to_array()) {
                *scale = f16::from_f32(chosen).to_le_bytes();
            }
        }
    }
    Ok(())
}

#[inline(always)]
fn check(index: usize, scale: f32) -> Result<(), ScaleTooLarge> {
    if scale <= LARGEST_F16 { Ok(()) } else { Err(ScaleTooLarge { index, scale }) }
}

#[inline(always)]
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn store_sub_scales<V: Eight>(chosen: V, stored: &mut [u8]) {
    for (sub_scale, chosen) in stored.iter_mut().zip(chosen.to_array()) {
        *sub_scale = chosen as u8;
    }
}

/// The best candidate so far, of each block.
struct Best<V> {
    /// A scale or a sub-scale; zero is where every search begins.
    found: V,
    error: V,
}

impl<V: Eight> Best<V> {
    #[inline(always)]
    fn none(token: V::Token, group: &Group<V>) -> Self {
        Best { found: V::splat(token, 0.0), error: group.energy }
    }

    #[inline(always)]
    fn consider(&mut self, candidate: V, error: V) {
        self.found = V::select_less(error, self.error, candidate, self.found);
        self.error = error.min(self.error);
    }
}

/// The scales that are tried, as the quotient of the largest magnitude and the scale.
///
/// A quotient below the largest code wastes codes, and one above it clips the largest magnitudes.
/// How far either pays was measured on weights of a language model; with few codes clipping pays
/// more.
struct ScaleCandidates {
    from: f32,
    step: f32,
    count: u8,
}

impl ScaleCandidates {
    const fn of(method: BlockType) -> ScaleCandidates {
        let (from, step, count) = match method {
            BlockType::Q8 => (119.5, 0.5, 17),
            BlockType::Q4 => (6.0, 0.2, 16),
            BlockType::K6 => (29.0, 0.5, 9),
            BlockType::K4 => (6.0, 0.25, 13),
            BlockType::K3 => (2.5, 0.25, 11),
            BlockType::K2 => (1.0, 0.2, 11),
        };
        ScaleCandidates { from, step, count }
    }
}

/// A scale for each of eight blocks: f16 where each is stored, any where only sub-scales are.
#[inline(always)]
fn choose_for_blocks<V: Eight>(token: V::Token, method: BlockType, group: &Group<V>) -> V {
    let stored_as_f16 = !method.has_super_blocks();
    let candidates = ScaleCandidates::of(method);
    let mut best = Best::none(token, group);
    for i in 0..=candidates.count {
        let mut scales = if i < candidates.count {
            group.largest.div(V::splat(token, candidates.from + candidates.step * f32::from(i)))
        } else {
            group.refit(best.found)
        };
        if stored_as_f16 {
            scales = round_to_f16(token, scales);
        }
        best.consider(scales, group.errors(scales));
    }
    best.found
}

/// The nearest f16 but zero and infinity, of what is not negative.
#[inline(always)]
fn round_to_f16<V: Eight>(token: V::Token, value: V) -> V {
    // In this order NaN, the refit of nothing, stays NaN and is never chosen.
    let value = V::splat(token, LARGEST_F16).min(value);
    // The bits below the eleven of an f16 cancel.
    let shifted = value.mul(V::splat(token, (1 << 13) as f32 + 1.0));
    let normal = shifted.sub(shifted.sub(value));
    // The f32 from a half to one are as far apart as the subnormal f16.
    let small = value
        .add(V::splat(token, 0.5))
        .sub(V::splat(token, 0.5))
        .max(V::splat(token, SMALLEST_F16));
    V::select_less(value, V::splat(token, f16::MIN_POSITIVE.to_f32_const()), small, normal)
}

/// The scale of a super block and the sub-scales of its eight blocks.
struct Choice<V> {
    scale: f32,
    sub_scales: V,
    error: f32,
}

impl<V: Eight> Choice<V> {
    #[inline(always)]
    fn new(scale: f32, sub_scales: &Best<V>) -> Self {
        let mut error = 0.0;
        for block_error in sub_scales.error.to_array() {
            error += block_error;
        }
        Choice { scale, sub_scales: sub_scales.found, error }
    }
}

#[inline(always)]
fn choose_for_super_block<V: Eight>(
    token: V::Token,
    method: BlockType,
    group: &Group<V>,
) -> Choice<V> {
    let ideal = choose_for_blocks(token, method, group);
    // The largest sub-scale for the largest of them: so sub-scales are as fine as can be.
    let scale = round_up_to_f16(ideal.largest() * (SUB_SCALE_ONE / LARGEST_SUB_SCALE));
    let center = nearest_integer(token, ideal.div(V::splat(token, scale / SUB_SCALE_ONE)));
    let fine =
        Choice::new(scale, &best_sub_scales_near(token, group, scale, center, &[-1.0, 0.0, 1.0]));

    // What the reference tool stores, so that the result is never worse than that.
    let scales = group.largest.div(group.limit);
    let largest = scales.largest();
    let scale = f16::from_bits(truncate_to_f16(largest)).to_f32();
    let mut sub_scales = scales.div(V::splat(token, largest)).to_array();
    for sub_scale in &mut sub_scales {
        *sub_scale = (*sub_scale * SUB_SCALE_ONE).round();
    }
    let sub_scales = best_sub_scales_near(token, group, scale, V::load(token, &sub_scales), &[0.0]);
    let reference = Choice::new(scale, &sub_scales);
    if reference.error < fine.error { reference } else { fine }
}

/// The best sub-scales among those at these distances from the center.
#[inline(always)]
fn best_sub_scales_near<V: Eight>(
    token: V::Token,
    group: &Group<V>,
    scale: f32,
    center: V,
    distances: &[f32],
) -> Best<V> {
    let mut best = Best::none(token, group);
    for &distance in distances {
        let sub_scales = center.add(V::splat(token, distance));
        let sub_scales =
            sub_scales.clamp((V::splat(token, 1.0), V::splat(token, LARGEST_SUB_SCALE)));
        // As it is decoded: the division is exact.
        let scales = V::splat(token, scale).mul(sub_scales.div(V::splat(token, SUB_SCALE_ONE)));
        best.consider(sub_scales, group.errors(scales));
    }
    best
}

/// Rounds up to f16, at most to the largest finite one.
#[inline(always)]
fn round_up_to_f16(value: f32) -> f32 {
    let value = value.min(LARGEST_F16);
    let nearest = f16::from_f32(value);
    let below = nearest.to_f32() < value;
    f16::from_bits(nearest.to_bits() + u16::from(below)).to_f32()
}

#[inline(always)]
pub(super) fn make_codes<V: Eight>(
    token: V::Token,
    quantizer: &Quantizer<'_>,
    row: &[f32],
    scales: &[u8],
    sub_scales: &[u8],
    codes: &mut [u8],
) {
    let limit = f32::from(quantizer.method.largest_code());
    let limits = (V::splat(token, -limit), V::splat(token, limit));
    let (scales, _) = scales.as_chunks::<2>();
    let blocks = row.chunks(BLOCK).zip(codes.chunks_exact_mut(quantizer.method.block_bytes()));
    for (index, (block, codes)) in blocks.enumerate() {
        let scale = if quantizer.method.has_super_blocks() {
            let scale = f16::from_le_bytes(scales[index / BLOCKS_PER_SUPER]).to_f32();
            scale * (f32::from(sub_scales[index]) / SUB_SCALE_ONE)
        } else {
            f16::from_le_bytes(scales[index]).to_f32()
        };
        let inverse = V::splat(token, if scale > 0.0 { 1.0 / scale } else { 0.0 });
        let mut rounded = quantizer.clamped::<V>(token, block);
        for lanes in &mut rounded {
            *lanes = nearest_integer(token, lanes.mul(inverse).clamp(limits));
        }
        pack(quantizer.method, &V::truncate(rounded), codes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simd::{Level, dispatch};

    dispatch! {
        fn rounded(value: f32) -> f32 = eight rounded_with;
    }

    fn rounded_with<V: Eight>(token: V::Token, value: f32) -> f32 {
        round_to_f16(token, V::splat(token, value)).to_array()[0]
    }

    /// Every positive f16, what is halfway to the next, and what is beside that.
    #[test]
    fn rounding_gives_the_nearest_f16() {
        for level in Level::available() {
            let rounded = |value| rounded(level, value);
            for bits in 1..f16::MAX.to_bits() {
                let (below, above) =
                    (f16::from_bits(bits).to_f32(), f16::from_bits(bits + 1).to_f32());
                let half = below + (above - below) / 2.0;
                assert_eq!(rounded(below), below);
                assert_eq!(rounded(half.next_down()), below);
                assert_eq!(rounded(half.next_up()), above);
                assert!([below, above].contains(&rounded(half)));
                assert_eq!(round_up_to_f16(below), below);
                assert_eq!(round_up_to_f16(below.next_up()), above);
            }
            let ends = [1e-12, 65_520.0, 1e30].map(rounded);
            assert_eq!(ends, [SMALLEST_F16, LARGEST_F16, LARGEST_F16]);
        }
        assert_eq!([65_505.0, 1e30].map(round_up_to_f16), [LARGEST_F16; 2]);
    }
}
