//! The definition of the kernels, and what processors without vector versions use.

use super::kernels::{LANES, Lane, TILE};

pub(super) fn products(block: &[Lane], matrix: &[[f32; TILE]], out: &mut [Lane]) {
    for (rows, out) in matrix.chunks_exact(block.len()).zip(out.chunks_mut(TILE)) {
        out.copy_from_slice(&tile(block, rows, &[0.0; TILE])[..out.len()]);
    }
}

pub(super) fn nearest(
    block: &[Lane],
    centroids: &[[f32; TILE]],
    lows: &[[f32; TILE]],
) -> [u8; LANES] {
    let mut best = [f32::NEG_INFINITY; LANES];
    let mut codes = [0; LANES];
    let mut next = 0..=u8::MAX;
    for (centroids, lows) in centroids.chunks_exact(block.len()).zip(lows) {
        for (scores, code) in tile(block, centroids, lows).iter().zip(&mut next) {
            for ((score, best), to) in scores.iter().zip(&mut best).zip(&mut codes) {
                if *score > *best {
                    (*best, *to) = (*score, code);
                }
            }
        }
    }
    codes
}

/// The rows of the block times those of a tile, added to a start for each of these.
fn tile(block: &[Lane], rows: &[[f32; TILE]], start: &[f32; TILE]) -> [Lane; TILE] {
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
