//! The kernels with NEON.

use super::kernels::{LANES, Lanes, TILE};
use std::arch::aarch64::*;

/// Whether the functions here can be used: compilers take NEON for granted but where there is no
/// operating system.
pub(super) const AVAILABLE: bool = cfg!(all(target_feature = "neon", target_endian = "little"));

/// Registers of [`Lanes`].
const REGISTERS: usize = LANES / 4;

#[target_feature(enable = "neon")]
pub(super) fn products(block: &[Lanes], matrix: &[[f32; TILE]], out: &mut [Lanes]) {
    for (rows, out) in matrix.chunks_exact(block.len()).zip(out.chunks_mut(TILE)) {
        for (sums, out) in tile(block, rows, &[0.0; TILE]).iter().zip(out) {
            store(*sums, out);
        }
    }
}

#[target_feature(enable = "neon")]
pub(super) fn nearest(
    block: &[Lanes],
    centroids: &[[f32; TILE]],
    minus_half_norms: &[[f32; TILE]],
) -> [u8; LANES] {
    let mut best = [vdupq_n_f32(f32::NEG_INFINITY); REGISTERS];
    // Codes are kept as floats, and so are counted beside the products.
    let mut codes = [vdupq_n_f32(0.0); REGISTERS];
    let mut next = vdupq_n_f32(0.0);
    for (centroids, minus_half_norms) in centroids.chunks_exact(block.len()).zip(minus_half_norms) {
        for scores in tile(block, centroids, minus_half_norms) {
            for i in 0..REGISTERS {
                // Not so for NaN, which is never kept.
                let better = vcgtq_f32(scores[i], best[i]);
                codes[i] = vbslq_f32(better, next, codes[i]);
                best[i] = vbslq_f32(better, scores[i], best[i]);
            }
            next = vaddq_f32(next, vdupq_n_f32(1.0));
        }
    }
    let mut found = [0.0; LANES];
    store(codes, &mut found);
    #[allow(clippy::cast_possible_truncation)]
    // Whole numbers up to 255.
    found.map(|code| code as u8)
}

/// The products of the block's rows with those of a tile, each added to the start of the latter.
#[target_feature(enable = "neon")]
#[inline]
fn tile(
    block: &[Lanes],
    rows: &[[f32; TILE]],
    start: &[f32; TILE],
) -> [[float32x4_t; REGISTERS]; TILE] {
    let mut sums = [[vdupq_n_f32(0.0); REGISTERS]; TILE];
    for (sums, start) in sums.iter_mut().zip(start) {
        *sums = [vdupq_n_f32(*start); REGISTERS];
    }
    for (values, factors) in block.iter().zip(rows) {
        let values = load(values);
        for (sums, factor) in sums.iter_mut().zip(factors) {
            let factor = vdupq_n_f32(*factor);
            for (sum, value) in sums.iter_mut().zip(values) {
                *sum = vfmaq_f32(*sum, value, factor);
            }
        }
    }
    sums
}

#[target_feature(enable = "neon")]
#[inline]
fn load(values: &Lanes) -> [float32x4_t; REGISTERS] {
    let mut registers = [vdupq_n_f32(0.0); REGISTERS];
    for (register, values) in registers.iter_mut().zip(values.as_chunks::<4>().0) {
        // SAFETY: there are as many values as the register takes.
        *register = unsafe { vld1q_f32(values.as_ptr()) };
    }
    registers
}

#[target_feature(enable = "neon")]
#[inline]
fn store(registers: [float32x4_t; REGISTERS], out: &mut Lanes) {
    for (register, out) in registers.into_iter().zip(out.as_chunks_mut::<4>().0) {
        // SAFETY: there is room for as many values as the register has.
        unsafe { vst1q_f32(out.as_mut_ptr(), register) };
    }
}
