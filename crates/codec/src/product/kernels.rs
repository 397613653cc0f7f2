//! The two kernels of product quantization: rows times a matrix, and the nearest of some centroids.
//!
//! Rows are worked on in blocks of [`LANES`] with a row a lane: the values of a block stand as
//! `[value][lane]`. A value of a matrix or a centroid is then the same for all lanes, and what is
//! found for a row stays in its lane, so that nothing is ever summed up across a register.

use crate::simd::{Level, Vector, dispatch};

/// Rows in a block: the lanes of a register of AVX-512, two of AVX2 or four of NEON.
pub(super) const LANES: usize = 16;

/// Rows of a matrix that are multiplied at a time. The sums then take twelve registers of the
/// sixteen of AVX2, or 24 of the 32 of NEON, and enough are left for what is multiplied.
pub(super) const TILE: usize = 6;

/// One value of each row of a block.
pub(super) type Lanes = [f32; LANES];

/// The rows of a matrix as the kernels want them: [`TILE`] of them interleaved, value by value,
/// with rows of zeros behind the last.
#[derive(Clone, Debug)]
pub(super) struct Tiles {
    rows: usize,
    width: usize,
    values: Vec<[f32; TILE]>,
}

impl Tiles {
    pub(super) fn new(matrix: &[f32], width: usize) -> Tiles {
        let mut values = vec![[0.0; TILE]; (matrix.len() / width).div_ceil(TILE) * width];
        for (tile, rows) in values.chunks_exact_mut(width).zip(matrix.chunks(TILE * width)) {
            for (n, row) in rows.chunks_exact(width).enumerate() {
                tile.iter_mut().zip(row).for_each(|(values, &value)| values[n] = value);
            }
        }
        Tiles { rows: matrix.len() / width, width, values }
    }

    pub(super) fn rows(&self) -> usize {
        self.rows
    }

    /// Products of the rows of a block with all rows of the matrix.
    pub(super) fn products(&self, block: &[Lanes], out: &mut [Lanes]) {
        assert!(block.len() == self.width && out.len() == self.rows);
        products(Level::best(), block, &self.values, out);
    }
}

/// At most 256 centroids, ready for finding the nearest.
#[derive(Clone, Debug)]
pub(super) struct Centroids {
    tiles: Tiles,
    /// `-|c|²/2` of each. Those that fill up the last tile have negative infinity: none is farther.
    minus_half_norms: Vec<[f32; TILE]>,
}

impl Centroids {
    pub(super) fn new(values: &[f32], width: usize) -> Centroids {
        let tiles = Tiles::new(values, width);
        let minus_half_norm = |c: &[f32]| -0.5 * c.iter().map(|v| v * v).sum::<f32>();
        let mut minus_half_norms = vec![[f32::NEG_INFINITY; TILE]; tiles.rows.div_ceil(TILE)];
        let each = minus_half_norms.as_flattened_mut().iter_mut();
        each.zip(values.chunks_exact(width))
            .for_each(|(to, centroid)| *to = minus_half_norm(centroid));
        Centroids { tiles, minus_half_norms }
    }

    /// The nearest centroid of each row of a block: the one with the largest `x·c - |c|²/2`, and
    /// the first of several. It is the first centroid when all scores are NaN, as in a row with
    /// NaN.
    pub(super) fn nearest(&self, block: &[Lanes]) -> [u8; LANES] {
        assert!(block.len() == self.tiles.width && self.tiles.rows <= 256);
        nearest(Level::best(), block, &self.tiles.values, &self.minus_half_norms)
    }
}

dispatch! {
    /// The products of a block's rows with those of a matrix.
    fn products(block: &[Lanes], matrix: &[[f32; TILE]], out: &mut [Lanes]) = sixteen products_with;

    /// See [`Centroids::nearest`].
    fn nearest(
        block: &[Lanes],
        centroids: &[[f32; TILE]],
        minus_half_norms: &[[f32; TILE]],
    ) -> [u8; LANES] = sixteen nearest_with;
}

#[inline(always)]
fn products_with<V: Vector>(
    token: V::Token,
    block: &[Lanes],
    matrix: &[[f32; TILE]],
    out: &mut [Lanes],
) {
    for (rows, out) in matrix.chunks_exact(block.len()).zip(out.chunks_mut(TILE)) {
        let sums = tile_products::<V>(token, block, rows, &[0.0; TILE]);
        for (sums, out) in sums.into_iter().zip(out) {
            sums.store(out);
        }
    }
}

#[inline(always)]
fn nearest_with<V: Vector>(
    token: V::Token,
    block: &[Lanes],
    centroids: &[[f32; TILE]],
    minus_half_norms: &[[f32; TILE]],
) -> [u8; LANES] {
    let mut best = V::splat(token, f32::NEG_INFINITY);
    // Codes are kept as floats, and so are counted beside the products.
    let (mut codes, mut next) = (V::splat(token, 0.0), V::splat(token, 0.0));
    for (centroids, minus_half_norms) in centroids.chunks_exact(block.len()).zip(minus_half_norms) {
        for score in tile_products::<V>(token, block, centroids, minus_half_norms) {
            codes = V::select_less(best, score, next, codes);
            // Of two that can't be compared this takes the second: NaN is never kept.
            best = score.max(best);
            next = next.add(V::splat(token, 1.0));
        }
    }
    let mut found = [0.0; LANES];
    codes.store(&mut found);
    #[allow(clippy::cast_possible_truncation, reason = "whole numbers up to 255")]
    found.map(|code| code as u8)
}

/// The products of the block's rows with those of a tile, each added to the start of the latter, by
/// fused multiply-adds where the processor has them.
#[inline(always)]
fn tile_products<V: Vector>(
    token: V::Token,
    block: &[Lanes],
    rows: &[[f32; TILE]],
    start: &[f32; TILE],
) -> [V; TILE] {
    let mut sums = [V::splat(token, 0.0); TILE];
    for (sum, start) in sums.iter_mut().zip(start) {
        *sum = V::splat(token, *start);
    }
    for (values, factors) in block.iter().zip(rows) {
        let values = V::load(token, values);
        for (sum, factor) in sums.iter_mut().zip(factors) {
            *sum = values.mul_add(V::splat(token, *factor), *sum);
        }
    }
    sums
}

/// Rows, at most [`LANES`], into a block, less an offset. The lanes behind the last are zero.
pub(super) fn pack(rows: &[f32], offset: &[f32], block: &mut [Lanes]) {
    if rows.len() < LANES * block.len() {
        block.fill([0.0; LANES]);
    }
    for (lane, row) in rows.chunks_exact(block.len()).enumerate() {
        for ((values, &value), &offset) in block.iter_mut().zip(row).zip(offset) {
            values[lane] = value - offset;
        }
    }
}

/// The rows of a block.
pub(super) fn unpack(block: &[Lanes], rows: &mut [f32]) {
    for (lane, row) in rows.chunks_exact_mut(block.len()).enumerate() {
        for (value, values) in row.iter_mut().zip(block) {
            *value = values[lane];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::product::random::Random;

    /// Small integers, for which every order of adding gives the same. So few different ones that
    /// there are many ties.
    fn small_integers(random: &mut Random, count: usize) -> Vec<f32> {
        (0..count).map(|_| random.below(5) as f32 - 2.0).collect()
    }

    /// Values whose products and sums are all rounded.
    fn floats(random: &mut Random, count: usize) -> Vec<f32> {
        (0..count).map(|_| random.below(1 << 24) as f32 / 9_999_991.0 - 0.8).collect()
    }

    #[test]
    fn every_level_has_the_bits_of_the_definition() {
        let mut random = Random::new(1);
        for width in (1..=20).chain([31, 100, 300]) {
            for count in (1..=20).chain([127, 254, 255, 256]) {
                for values in [small_integers, floats] {
                    let rows = values(&mut random, LANES * width);
                    let mut block = vec![[0.0; LANES]; width];
                    pack(&rows, &vec![0.0; width], &mut block);
                    let matrix = values(&mut random, count * width);
                    let centroids = Centroids::new(&matrix, width);
                    let (tiles, norms) = (&centroids.tiles.values, &centroids.minus_half_norms);
                    let at = |level: Level| {
                        let mut out = vec![[7.0; LANES]; count];
                        products(level, &block, tiles, &mut out);
                        (out, nearest(level, &block, tiles, norms))
                    };
                    for level in Level::available() {
                        assert!(at(level) == at(level.definition()), "{level} {width} {count}");
                    }
                }
            }
        }
    }

    #[test]
    fn the_nearest_is_the_first_with_the_least_distance() {
        let mut random = Random::new(1);
        for width in (1..=20).chain([31, 100, 300]) {
            let rows = small_integers(&mut random, LANES * width);
            let mut block = vec![[0.0; LANES]; width];
            pack(&rows, &vec![0.0; width], &mut block);
            for count in (1..=20).chain([127, 254, 255, 256]) {
                let matrix = small_integers(&mut random, count * width);
                let mut found = vec![[7.0; LANES]; count];
                Tiles::new(&matrix, width).products(&block, &mut found);
                let exact = rows.iter().zip(&matrix[..width]).take(width).map(|(a, b)| a * b);
                assert_eq!(found[0][0], exact.sum::<f32>());

                let found = Centroids::new(&matrix, width).nearest(&block);
                for (row, &code) in rows.chunks_exact(width).zip(&found) {
                    let distance =
                        |c: &[f32]| row.iter().zip(c).map(|(a, b)| (a - b) * (a - b)).sum::<f32>();
                    let distances: Vec<_> = matrix.chunks_exact(width).map(distance).collect();
                    let least = distances.iter().copied().fold(f32::INFINITY, f32::min);
                    let first = distances.iter().position(|&d| d == least).unwrap();
                    assert_eq!(first, usize::from(code), "{width} {count}");
                }
            }
        }
    }

    #[test]
    fn rows_with_nan_or_infinity_have_some_centroid() {
        for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            for count in [1, 4, 7, 256] {
                let matrix: Vec<f32> = (0..count * 2).map(|i| (i % 7) as f32 - 3.0).collect();
                let mut block = [[1.0; LANES]; 2];
                block[0][5] = bad;
                block[1][5] = -bad;
                let centroids = Centroids::new(&matrix, 2);
                let (tiles, norms) = (&centroids.tiles.values, &centroids.minus_half_norms);
                let plain = nearest(Level::PLAIN, &block, tiles, norms);
                for level in Level::available() {
                    let found = nearest(level, &block, tiles, norms);
                    assert_eq!(plain, found, "{level}");
                    assert!(usize::from(found[5]) < count);
                    assert!(!bad.is_nan() || found[5] == 0);
                }
            }
        }
    }

    #[test]
    fn packing_and_back() {
        for count in [1, 5, LANES - 1, LANES] {
            let rows: Vec<f32> = (0..count * 3).map(|i| i as f32).collect();
            let mut block = [[9.0; LANES]; 3];
            pack(&rows, &[1.0, 2.0, 3.0], &mut block);
            assert!(count == LANES || block[0][count] == 0.0);
            let mut back = vec![0.0; rows.len()];
            unpack(&block, &mut back);
            for (i, (&a, &b)) in rows.iter().zip(&back).enumerate() {
                assert_eq!(a - (1 + i % 3) as f32, b);
            }
        }
    }
}
