//! The definition of the kernels, and what processors without vector versions use.

use super::kernels::{LANES, Lanes, TILE};

pub(super) fn products(block: &[Lanes], matrix: &[[f32; TILE]], out: &mut [Lanes]) {
    for (rows, out) in matrix.chunks_exact(block.len()).zip(out.chunks_mut(TILE)) {
        out.copy_from_slice(&tile(block, rows, &[0.0; TILE])[..out.len()]);
    }
}

pub(super) fn nearest(
    block: &[Lanes],
    centroids: &[[f32; TILE]],
    minus_half_norms: &[[f32; TILE]],
) -> [u8; LANES] {
    let mut best = [f32::NEG_INFINITY; LANES];
    let mut codes = [0; LANES];
    let mut next = 0..=u8::MAX;
    for (centroids, minus_half_norms) in centroids.chunks_exact(block.len()).zip(minus_half_norms) {
        for (scores, code) in tile(block, centroids, minus_half_norms).iter().zip(&mut next) {
            for ((score, best), to) in scores.iter().zip(&mut best).zip(&mut codes) {
                if *score > *best {
                    (*best, *to) = (*score, code);
                }
            }
        }
    }
    codes
}

/// The products of the block's rows with those of a tile, each added to the start of the latter.
fn tile(block: &[Lanes], rows: &[[f32; TILE]], start: &[f32; TILE]) -> [Lanes; TILE] {
    let mut sums = start.map(|start| [start; LANES]);
    for (values, factors) in block.iter().zip(rows) {
        for (sums, factor) in sums.iter_mut().zip(factors) {
            for (sum, value) in sums.iter_mut().zip(values) {
                *sum += value * factor;
            }
        }
    }
    sums
}
