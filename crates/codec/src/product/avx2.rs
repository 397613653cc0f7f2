//! The kernels with AVX2 and FMA.

use super::kernels::{LANES, Lanes, TILE};
use std::arch::x86_64::*;
use std::sync::LazyLock;

/// Whether the processor has all that the functions here need; it is asked once.
pub(super) static AVAILABLE: LazyLock<bool> =
    LazyLock::new(|| is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma"));

/// Registers of [`Lanes`].
const REGISTERS: usize = LANES / 8;

#[target_feature(enable = "avx2,fma")]
pub(super) fn products(block: &[Lanes], matrix: &[[f32; TILE]], out: &mut [Lanes]) {
    for (rows, out) in matrix.chunks_exact(block.len()).zip(out.chunks_mut(TILE)) {
        for (sums, out) in tile(block, rows, &[0.0; TILE]).iter().zip(out) {
            store(*sums, out);
        }
    }
}

#[target_feature(enable = "avx2,fma")]
pub(super) fn nearest(
    block: &[Lanes],
    centroids: &[[f32; TILE]],
    minus_half_norms: &[[f32; TILE]],
) -> [u8; LANES] {
    let mut best = [_mm256_set1_ps(f32::NEG_INFINITY); REGISTERS];
    // Codes are kept as floats, and so are counted beside the products.
    let mut codes = [_mm256_set1_ps(0.0); REGISTERS];
    let mut next = _mm256_set1_ps(0.0);
    for (centroids, minus_half_norms) in centroids.chunks_exact(block.len()).zip(minus_half_norms) {
        for scores in tile(block, centroids, minus_half_norms) {
            for i in 0..REGISTERS {
                let better = _mm256_cmp_ps::<_CMP_GT_OQ>(scores[i], best[i]);
                codes[i] = _mm256_blendv_ps(codes[i], next, better);
                // Of two that can't be compared this takes the second: NaN is never kept.
                best[i] = _mm256_max_ps(scores[i], best[i]);
            }
            next = _mm256_add_ps(next, _mm256_set1_ps(1.0));
        }
    }
    let mut found = [0.0; LANES];
    store(codes, &mut found);
    #[allow(clippy::cast_possible_truncation)]
    // Whole numbers up to 255.
    found.map(|code| code as u8)
}

/// The products of the block's rows with those of a tile, each added to the start of the latter.
#[target_feature(enable = "avx2,fma")]
#[inline]
fn tile(block: &[Lanes], rows: &[[f32; TILE]], start: &[f32; TILE]) -> [[__m256; REGISTERS]; TILE] {
    let mut sums = [[_mm256_set1_ps(0.0); REGISTERS]; TILE];
    for (sums, start) in sums.iter_mut().zip(start) {
        *sums = [_mm256_set1_ps(*start); REGISTERS];
    }
    for (values, factors) in block.iter().zip(rows) {
        let values = load(values);
        for (sums, factor) in sums.iter_mut().zip(factors) {
            let factor = _mm256_set1_ps(*factor);
            for (sum, value) in sums.iter_mut().zip(values) {
                *sum = _mm256_fmadd_ps(value, factor, *sum);
            }
        }
    }
    sums
}

#[target_feature(enable = "avx2,fma")]
#[inline]
fn load(values: &Lanes) -> [__m256; REGISTERS] {
    let mut registers = [_mm256_set1_ps(0.0); REGISTERS];
    for (register, values) in registers.iter_mut().zip(values.as_chunks::<8>().0) {
        // SAFETY: there are as many values as the register takes.
        *register = unsafe { _mm256_loadu_ps(values.as_ptr()) };
    }
    registers
}

#[target_feature(enable = "avx2,fma")]
#[inline]
fn store(registers: [__m256; REGISTERS], out: &mut Lanes) {
    for (register, out) in registers.into_iter().zip(out.as_chunks_mut::<8>().0) {
        // SAFETY: there is room for as many values as the register has.
        unsafe { _mm256_storeu_ps(out.as_mut_ptr(), register) };
    }
}
