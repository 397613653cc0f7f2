//! The two kernels of product quantization: rows times a matrix, and the nearest of some centroids.
//!
//! Rows are worked on in blocks of [`LANES`] with a row a lane: the values of a block stand as
//! `[value][lane]`. A value of a matrix or a centroid is then the same for all lanes, and what is
//! found for a row stays in its lane, so that nothing is ever summed up across a register.

#[cfg(target_arch = "x86_64")]
use super::avx2;
#[cfg(target_arch = "aarch64")]
use super::neon;
use super::scalar;

/// Rows in a block: two registers of AVX2 or four of NEON.
pub(super) const LANES: usize = 16;

/// Rows of a matrix that are multiplied at a time. The sums then take twelve registers of the
/// sixteen of AVX2, or 24 of the 32 of NEON, and enough are left for what is multiplied.
pub(super) const TILE: usize = 6;

/// One value of each row of a block.
pub(super) type Lanes = [f32; LANES];

/// Calls the fastest version that the processor has.
macro_rules! fastest {
    ($function:ident($($argument:expr),*)) => {{
        #[cfg(target_arch = "x86_64")]
        if *avx2::AVAILABLE {
            // SAFETY: the processor has what the function needs.
            return unsafe { avx2::$function($($argument),*) };
        }
        #[cfg(target_arch = "aarch64")]
        if neon::AVAILABLE {
            // SAFETY: the processor has what the function needs.
            return unsafe { neon::$function($($argument),*) };
        }
        scalar::$function($($argument),*)
    }};
}

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
        products(block, &self.values, out);
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
        nearest(block, &self.tiles.values, &self.minus_half_norms)
    }
}

fn products(block: &[Lanes], matrix: &[[f32; TILE]], out: &mut [Lanes]) {
    fastest!(products(block, matrix, out))
}

fn nearest(
    block: &[Lanes],
    centroids: &[[f32; TILE]],
    minus_half_norms: &[[f32; TILE]],
) -> [u8; LANES] {
    fastest!(nearest(block, centroids, minus_half_norms))
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

    /// Small integers, for which every order of adding gives the same: the versions must agree to
    /// the bit. So few different ones that there are many ties.
    fn small_integers(random: &mut Random, count: usize) -> Vec<f32> {
        (0..count).map(|_| random.below(5) as f32 - 2.0).collect()
    }

    #[test]
    fn the_vector_versions_agree_with_the_plain_one() {
        let mut random = Random::new(1);
        for width in (1..=20).chain([31, 100, 300]) {
            let rows = small_integers(&mut random, LANES * width);
            let mut block = vec![[0.0; LANES]; width];
            pack(&rows, &vec![0.0; width], &mut block);
            for count in (1..=20).chain([127, 254, 255, 256]) {
                let matrix = small_integers(&mut random, count * width);
                let (mut plain, mut fast) = (vec![[0.0; LANES]; count], vec![[7.0; LANES]; count]);
                let tiles = Tiles::new(&matrix, width);
                scalar::products(&block, &tiles.values, &mut plain);
                tiles.products(&block, &mut fast);
                assert_eq!(plain, fast, "{width} {count}");
                let exact = rows.iter().zip(&matrix[..width]).take(width).map(|(a, b)| a * b);
                assert_eq!(fast[0][0], exact.sum::<f32>());

                let centroids = Centroids::new(&matrix, width);
                let fast = centroids.nearest(&block);
                let plain =
                    scalar::nearest(&block, &centroids.tiles.values, &centroids.minus_half_norms);
                assert_eq!(plain, fast, "{width} {count}");
                for (row, &code) in rows.chunks_exact(width).zip(&fast) {
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
                let fast = centroids.nearest(&block);
                let plain =
                    scalar::nearest(&block, &centroids.tiles.values, &centroids.minus_half_norms);
                assert_eq!(plain, fast);
                assert!(usize::from(fast[5]) < count);
                assert!(!bad.is_nan() || fast[5] == 0);
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
