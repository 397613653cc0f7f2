//! Dot products with AVX2 and FMA: the eight accumulators of a pair are one register.

use super::scalar::LANES;
use std::arch::x86_64::*;
use std::sync::LazyLock;

/// Whether the processor has all that the functions here need; it is asked once.
pub(super) static AVAILABLE: LazyLock<bool> =
    LazyLock::new(|| is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma"));

/// See [`super::scalar::tile`].
#[target_feature(enable = "avx2,fma")]
pub(super) fn tile<const ROWS: usize, const QUERIES: usize, const SQUARES: bool>(
    rows: &[f32],
    queries: &[f32],
    dim: usize,
    stride: usize,
) -> ([[f32; ROWS]; QUERIES], [f32; ROWS]) {
    // What is read below stays within these lengths.
    let (rows, queries) = (&rows[..(ROWS - 1) * stride + dim], &queries[..QUERIES * dim]);
    let mut sums = [[_mm256_setzero_ps(); ROWS]; QUERIES];
    let mut squares = [_mm256_setzero_ps(); ROWS];
    let tail = dim - dim % LANES;
    let mut at = 0;
    while at < tail {
        let mut query = [_mm256_setzero_ps(); QUERIES];
        for (q, query) in query.iter_mut().enumerate() {
            // SAFETY: `at + 8 <= dim`, and there are so many queries of `dim` values.
            *query = unsafe { _mm256_loadu_ps(queries.as_ptr().add(q * dim + at)) };
        }
        for r in 0..ROWS {
            // SAFETY: as above, for rows.
            let row = unsafe { _mm256_loadu_ps(rows.as_ptr().add(r * stride + at)) };
            for q in 0..QUERIES {
                sums[q][r] = _mm256_fmadd_ps(row, query[q], sums[q][r]);
            }
            if SQUARES {
                squares[r] = _mm256_fmadd_ps(row, row, squares[r]);
            }
        }
        at += LANES;
    }
    if tail < dim {
        let mask = first_lanes(dim - tail);
        let mut query = [_mm256_setzero_ps(); QUERIES];
        for (q, query) in query.iter_mut().enumerate() {
            // SAFETY: only lanes of the mask are read, the last values of a query.
            *query = unsafe { _mm256_maskload_ps(queries.as_ptr().add(q * dim + tail), mask) };
        }
        for r in 0..ROWS {
            // SAFETY: as above, for rows.
            let row = unsafe { _mm256_maskload_ps(rows.as_ptr().add(r * stride + tail), mask) };
            for q in 0..QUERIES {
                sums[q][r] = _mm256_fmadd_ps(row, query[q], sums[q][r]);
            }
            if SQUARES {
                squares[r] = _mm256_fmadd_ps(row, row, squares[r]);
            }
        }
    }
    (sums.map(|sums| totals(sums)), totals(squares))
}

/// A mask of the first `n` lanes.
#[inline]
#[target_feature(enable = "avx2,fma")]
fn first_lanes(n: usize) -> __m256i {
    // Read rather than made: filling an array would be a call for every tile.
    const MASKS: [i32; 2 * LANES] = [-1, -1, -1, -1, -1, -1, -1, -1, 0, 0, 0, 0, 0, 0, 0, 0];
    let mask = &MASKS[LANES - n..][..LANES];
    // SAFETY: there are eight integers.
    unsafe { _mm256_loadu_si256(mask.as_ptr().cast()) }
}

/// The sum of the lanes of each accumulator, in the order of the definition.
#[inline]
#[target_feature(enable = "avx2,fma")]
fn totals<const N: usize>(sums: [__m256; N]) -> [f32; N] {
    let four = |sum| _mm_add_ps(_mm256_castps256_ps128(sum), _mm256_extractf128_ps::<1>(sum));
    let mut totals = [0.0; N];
    if N == 4 {
        // Four totals at once: the lanes of one register each become lanes of all.
        let (a, b, c, d) = (four(sums[0]), four(sums[1]), four(sums[2]), four(sums[3]));
        let ab = _mm_add_ps(_mm_unpacklo_ps(a, b), _mm_unpackhi_ps(a, b));
        let cd = _mm_add_ps(_mm_unpacklo_ps(c, d), _mm_unpackhi_ps(c, d));
        let all = _mm_add_ps(_mm_movelh_ps(ab, cd), _mm_movehl_ps(cd, ab));
        // SAFETY: there is room for four values.
        unsafe { _mm_storeu_ps(totals.as_mut_ptr(), all) };
        return totals;
    }
    for (total, sum) in totals.iter_mut().zip(sums) {
        let four = four(sum);
        let two = _mm_add_ps(four, _mm_movehl_ps(four, four));
        *total = _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
    }
    totals
}
