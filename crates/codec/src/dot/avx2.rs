//! Products with AVX2 and FMA: the eight sums of a pair are one register.

use super::scalar::{LANES, filled};
use std::arch::x86_64::*;
use std::sync::LazyLock;

/// Whether the processor has all that the functions here need; it is asked once.
pub(super) static AVAILABLE: LazyLock<bool> =
    LazyLock::new(|| is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma"));

/// How many values further memory is asked for in a sweep with few queries, which waits for memory
/// more than it computes. The processor's own reading ahead stops at the end of each page.
const AHEAD: usize = 1024;

/// See [`super::scalar::tile`].
#[target_feature(enable = "avx2,fma")]
pub(super) fn tile<const ROWS: usize, const QUERIES: usize, const SQUARES: bool>(
    rows: &[f32],
    queries: &[f32],
    dim: usize,
) -> ([[f32; ROWS]; QUERIES], [f32; ROWS]) {
    // What is read below stays within these lengths.
    let (rows, queries) = (&rows[..ROWS * dim], &queries[..QUERIES * dim]);
    let mut sums = [[_mm256_setzero_ps(); ROWS]; QUERIES];
    let mut squares = [_mm256_setzero_ps(); ROWS];
    let whole = dim - dim % LANES;
    let mut at = 0;
    while at < whole {
        let mut query = [_mm256_setzero_ps(); QUERIES];
        for (q, query) in query.iter_mut().enumerate() {
            // SAFETY: `at + 8 <= dim`, and there are so many queries of `dim` values.
            *query = unsafe { _mm256_loadu_ps(queries.as_ptr().add(q * dim + at)) };
        }
        for r in 0..ROWS {
            // SAFETY: as above, for rows.
            let row = unsafe { _mm256_loadu_ps(rows.as_ptr().add(r * dim + at)) };
            if QUERIES < 2 && at % (2 * LANES) == 0 {
                let ahead = rows.as_ptr().wrapping_add(r * dim + at + AHEAD);
                // SAFETY: nothing is read or written, whatever the address.
                #[allow(unused_unsafe, reason = "newer compilers know that it is safe")]
                unsafe {
                    _mm_prefetch::<_MM_HINT_T0>(ahead.cast());
                }
            }
            for q in 0..QUERIES {
                sums[q][r] = _mm256_fmadd_ps(row, query[q], sums[q][r]);
            }
            if SQUARES {
                squares[r] = _mm256_fmadd_ps(row, row, squares[r]);
            }
        }
        at += LANES;
    }
    if whole < dim {
        let rest = |all: &[f32], i: usize| load(&filled(&all[i * dim + whole..(i + 1) * dim]));
        let query: [__m256; QUERIES] = std::array::from_fn(|q| rest(queries, q));
        for r in 0..ROWS {
            let row = rest(rows, r);
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

#[inline]
#[target_feature(enable = "avx2,fma")]
fn load(values: &[f32; LANES]) -> __m256 {
    // SAFETY: there are eight values.
    unsafe { _mm256_loadu_ps(values.as_ptr()) }
}

#[inline]
#[target_feature(enable = "avx2,fma")]
fn totals<const N: usize>(sums: [__m256; N]) -> [f32; N] {
    sums.map(|sum| {
        let four = _mm_add_ps(_mm256_castps256_ps128(sum), _mm256_extractf128_ps::<1>(sum));
        let two = _mm_add_ps(four, _mm_movehl_ps(four, four));
        _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)))
    })
}
