//! The smallest squared error that a short search finds.
//!
//! The error is a jagged function of the scale, so scales are tried out. Since the codes are made
//! from what is stored, only stored scales count: whatever is chosen was tried as it will be read.

use super::group::{Group, nearest_integer};
use super::lanes::Lanes;
use super::pack::pack;
use super::reference::cut_to_f16;
use super::{BLOCK, BLOCKS_PER_SUPER, GROUP, Method, Recipe, ScaleTooLarge};
use half::f16;

const LARGEST_SHARE: f32 = 63.0;
/// A share is so many parts of a super scale.
const PARTS: f32 = 32.0;
const SMALLEST_F16: f32 = 1.0 / (1 << 24) as f32;
const LARGEST_F16: f32 = f16::MAX.to_f32_const();

#[inline(always)]
pub(super) fn choose_scales<L: Lanes>(
    recipe: &Recipe<'_>,
    row: &[f32],
    scales: &mut [u8],
    shares: &mut [u8],
) -> Result<(), ScaleTooLarge> {
    let mut most_important = 0.0;
    for &importance in recipe.importance.unwrap_or_default() {
        most_important = if importance > most_important { importance } else { most_important };
    }
    let (scales, _) = scales.as_chunks_mut::<2>();
    if recipe.method.has_super_blocks() {
        let parts = scales.iter_mut().zip(shares.chunks_mut(BLOCKS_PER_SUPER));
        for (index, (scale, shares)) in parts.enumerate() {
            let group = Group::<L>::new(recipe, row, index * GROUP, most_important);
            let needed = group.largest.div(group.limit).largest() * (PARTS / LARGEST_SHARE);
            check(index, needed)?;
            let choice = choose_for_super_block(recipe.method, &group);
            *scale = f16::from_f32(choice.scale).to_le_bytes();
            copy_shares(choice.shares, shares);
        }
    } else {
        for (index, scales) in scales.chunks_mut(BLOCKS_PER_SUPER).enumerate() {
            let group = Group::<L>::new(recipe, row, index * GROUP, most_important);
            let needed = group.largest.div(group.limit).to_array();
            for (block, needed) in needed.into_iter().enumerate() {
                check(index * BLOCKS_PER_SUPER + block, needed)?;
            }
            let chosen = choose_for_blocks(recipe.method, &group);
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
fn copy_shares<L: Lanes>(chosen: L, shares: &mut [u8]) {
    for (share, chosen) in shares.iter_mut().zip(chosen.to_array()) {
        *share = chosen as u8;
    }
}

/// The best so far, of each block.
struct Best<L> {
    /// A scale or a share; zero is where every search begins.
    found: L,
    error: L,
}

impl<L: Lanes> Best<L> {
    #[inline(always)]
    fn none(group: &Group<L>) -> Self {
        Best { found: L::splat(0.0), error: group.energy }
    }

    #[inline(always)]
    fn consider(&mut self, candidate: L, error: L) {
        self.found = L::select_less(error, self.error, candidate, self.found);
        self.error = error.min(self.error);
    }
}

/// The scales that are tried: those with which the largest magnitude is so many times the scale.
///
/// Less than the largest code wastes codes and more cuts off the largest magnitudes. How far either
/// pays was measured on weights of a language model; with few codes cutting off pays more.
struct Reach {
    from: f32,
    step: f32,
    count: u8,
}

impl Reach {
    const fn of(method: Method) -> Reach {
        let (from, step, count) = match method {
            Method::Q8 => (119.5, 0.5, 17),
            Method::Q4 => (6.0, 0.2, 16),
            Method::K6 => (29.0, 0.5, 9),
            Method::K4 => (6.0, 0.25, 13),
            Method::K3 => (2.5, 0.25, 11),
            Method::K2 => (1.0, 0.2, 11),
        };
        Reach { from, step, count }
    }
}

/// A scale for each of eight blocks: f16 where each is stored, any where only shares are.
#[inline(always)]
fn choose_for_blocks<L: Lanes>(method: Method, group: &Group<L>) -> L {
    let stored_as_f16 = !method.has_super_blocks();
    let reach = Reach::of(method);
    let mut best = Best::none(group);
    for i in 0..=reach.count {
        let mut scales = if i < reach.count {
            group.largest.div(L::splat(reach.from + reach.step * f32::from(i)))
        } else {
            group.refit(best.found)
        };
        if stored_as_f16 {
            scales = round_to_f16(scales);
        }
        best.consider(scales, group.errors(scales));
    }
    best.found
}

/// The nearest f16 but zero and infinity, of what is not negative.
#[inline(always)]
fn round_to_f16<L: Lanes>(value: L) -> L {
    // In this order NaN, the refit of nothing, stays NaN and is never chosen.
    let value = L::splat(LARGEST_F16).min(value);
    // The bits below the eleven of an f16 cancel.
    let shifted = value.mul(L::splat((1 << 13) as f32 + 1.0));
    let normal = shifted.sub(shifted.sub(value));
    // The f32 from a half to one are as far apart as the f16 that have no leading one.
    let small = value.add(L::splat(0.5)).sub(L::splat(0.5)).max(L::splat(SMALLEST_F16));
    L::select_less(value, L::splat(f16::MIN_POSITIVE.to_f32_const()), small, normal)
}

/// A super scale and the shares that eight blocks have in it.
struct Choice<L> {
    scale: f32,
    shares: L,
    error: f32,
}

impl<L: Lanes> Choice<L> {
    #[inline(always)]
    fn new(scale: f32, shares: &Best<L>) -> Self {
        let mut error = 0.0;
        for part in shares.error.to_array() {
            error += part;
        }
        Choice { scale, shares: shares.found, error }
    }
}

#[inline(always)]
fn choose_for_super_block<L: Lanes>(method: Method, group: &Group<L>) -> Choice<L> {
    let ideal = choose_for_blocks(method, group);
    // The largest share for the largest of them: so shares are as fine as can be.
    let scale = up_to_f16(ideal.largest() * (PARTS / LARGEST_SHARE));
    let center = nearest_integer(ideal.div(L::splat(scale / PARTS)));
    let fine = Choice::new(scale, &near(group, scale, center, &[-1.0, 0.0, 1.0]));

    // What the reference tool stores: so it is never better.
    let scales = group.largest.div(group.limit);
    let largest = scales.largest();
    let scale = f16::from_bits(cut_to_f16(largest)).to_f32();
    let mut shares = scales.div(L::splat(largest)).to_array();
    for share in &mut shares {
        *share = (*share * PARTS).round();
    }
    let plain = Choice::new(scale, &near(group, scale, L::load(&shares), &[0.0]));
    if plain.error < fine.error { plain } else { fine }
}

/// The best shares that are so far from the center.
#[inline(always)]
fn near<L: Lanes>(group: &Group<L>, scale: f32, center: L, distances: &[f32]) -> Best<L> {
    let mut best = Best::none(group);
    for &distance in distances {
        let shares = center.add(L::splat(distance));
        let shares = shares.clamp((L::splat(1.0), L::splat(LARGEST_SHARE)));
        // As it is decoded: the division is exact.
        let scales = L::splat(scale).mul(shares.div(L::splat(PARTS)));
        best.consider(shares, group.errors(scales));
    }
    best
}

/// The next f16 that is not less, but not infinity.
#[inline(always)]
fn up_to_f16(value: f32) -> f32 {
    let value = value.min(LARGEST_F16);
    let nearest = f16::from_f32(value);
    let below = nearest.to_f32() < value;
    f16::from_bits(nearest.to_bits() + u16::from(below)).to_f32()
}

#[inline(always)]
pub(super) fn make_codes<L: Lanes>(
    recipe: &Recipe<'_>,
    row: &[f32],
    scales: &[u8],
    shares: &[u8],
    codes: &mut [u8],
) {
    let limit = f32::from(recipe.method.largest_code());
    let limits = (L::splat(-limit), L::splat(limit));
    let (scales, _) = scales.as_chunks::<2>();
    let blocks = row.chunks(BLOCK).zip(codes.chunks_exact_mut(recipe.method.block_bytes()));
    for (index, (block, codes)) in blocks.enumerate() {
        let scale = if recipe.method.has_super_blocks() {
            let scale = f16::from_le_bytes(scales[index / BLOCKS_PER_SUPER]).to_f32();
            scale * (f32::from(shares[index]) / PARTS)
        } else {
            f16::from_le_bytes(scales[index]).to_f32()
        };
        let inverse = L::splat(if scale > 0.0 { 1.0 / scale } else { 0.0 });
        let mut rounded = recipe.clamped::<L>(block);
        for lanes in &mut rounded {
            *lanes = nearest_integer(lanes.mul(inverse).clamp(limits));
        }
        pack(recipe.method, &L::truncate(rounded), codes);
    }
}

#[cfg(test)]
mod tests {
    use super::super::lanes::Plain;
    use super::*;

    /// Every positive f16, what is halfway to the next, and what is beside that.
    #[test]
    fn rounding_gives_the_nearest_f16() {
        for bits in 1..f16::MAX.to_bits() {
            let (below, above) = (f16::from_bits(bits).to_f32(), f16::from_bits(bits + 1).to_f32());
            let half = below + (above - below) / 2.0;
            let rounded = |value| round_to_f16(Plain::splat(value)).to_array()[0];
            assert_eq!(rounded(below), below);
            assert_eq!(rounded(half.next_down()), below);
            assert_eq!(rounded(half.next_up()), above);
            assert!([below, above].contains(&rounded(half)));
            assert_eq!(up_to_f16(below), below);
            assert_eq!(up_to_f16(below.next_up()), above);
        }
        let rounded = [1e-12, 65_520.0, 1e30].map(|v| round_to_f16(Plain::splat(v)).to_array()[0]);
        assert_eq!(rounded, [SMALLEST_F16, LARGEST_F16, LARGEST_F16]);
        assert_eq!([65_505.0, 1e30].map(up_to_f16), [LARGEST_F16; 2]);
    }
}
