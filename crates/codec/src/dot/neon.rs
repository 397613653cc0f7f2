//! Dot products with NEON: the eight accumulators of a pair are two registers.

use super::scalar::{LANES, zero_padded};
use std::arch::aarch64::*;

/// Whether the functions here can be used: compilers take NEON for granted but where there is no
/// operating system. Nothing here was tried with big-endian words.
pub(super) const AVAILABLE: bool = cfg!(all(target_feature = "neon", target_endian = "little"));

type F32x8 = [float32x4_t; 2];

/// See [`super::scalar::tile`].
#[target_feature(enable = "neon")]
pub(super) fn tile<const ROWS: usize, const QUERIES: usize, const SQUARES: bool>(
    rows: &[f32],
    queries: &[f32],
    dim: usize,
    stride: usize,
) -> ([[f32; ROWS]; QUERIES], [f32; ROWS]) {
    // What is read below stays within these lengths.
    let (rows, queries) = (&rows[..(ROWS - 1) * stride + dim], &queries[..QUERIES * dim]);
    let mut sums = [[[vdupq_n_f32(0.0); 2]; ROWS]; QUERIES];
    let mut squares = [[vdupq_n_f32(0.0); 2]; ROWS];
    let tail = dim - dim % LANES;
    let mut at = 0;
    while at < tail {
        let mut query = [[vdupq_n_f32(0.0); 2]; QUERIES];
        for (q, query) in query.iter_mut().enumerate() {
            // SAFETY: `at + 8 <= dim`, and there are so many queries of `dim` values.
            *query = unsafe { load(queries.as_ptr().add(q * dim + at)) };
        }
        for r in 0..ROWS {
            // SAFETY: as above, for rows.
            let row = unsafe { load(rows.as_ptr().add(r * stride + at)) };
            for q in 0..QUERIES {
                sums[q][r] = accumulate(sums[q][r], row, query[q]);
            }
            if SQUARES {
                squares[r] = accumulate(squares[r], row, row);
            }
        }
        at += LANES;
    }
    if tail < dim {
        let rest = |all: &[f32], start: usize| {
            let values = zero_padded(&all[start + tail..start + dim]);
            // SAFETY: there are eight values.
            unsafe { load(values.as_ptr()) }
        };
        let query: [F32x8; QUERIES] = std::array::from_fn(|q| rest(queries, q * dim));
        for r in 0..ROWS {
            let row = rest(rows, r * stride);
            for q in 0..QUERIES {
                sums[q][r] = accumulate(sums[q][r], row, query[q]);
            }
            if SQUARES {
                squares[r] = accumulate(squares[r], row, row);
            }
        }
    }
    (sums.map(|sums| totals(sums)), totals(squares))
}

/// Reads eight values, which must be there.
#[inline]
#[target_feature(enable = "neon")]
unsafe fn load(values: *const f32) -> F32x8 {
    // SAFETY: the caller has eight values.
    unsafe { [vld1q_f32(values), vld1q_f32(values.add(4))] }
}

#[inline]
#[target_feature(enable = "neon")]
fn accumulate(sum: F32x8, a: F32x8, b: F32x8) -> F32x8 {
    [vfmaq_f32(sum[0], a[0], b[0]), vfmaq_f32(sum[1], a[1], b[1])]
}

/// The sum of the lanes of each accumulator, in the order of the definition.
#[inline]
#[target_feature(enable = "neon")]
fn totals<const N: usize>(sums: [F32x8; N]) -> [f32; N] {
    sums.map(|sum| {
        let four = vaddq_f32(sum[0], sum[1]);
        let two = vadd_f32(vget_low_f32(four), vget_high_f32(four));
        vget_lane_f32::<0>(two) + vget_lane_f32::<1>(two)
    })
}
