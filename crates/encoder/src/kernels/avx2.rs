//! Tiles with AVX2 and FMA: two registers of columns.
#![cfg(target_arch = "x86_64")]

use super::matrix::Tile;
use super::pairs::{Pairs, Tile as PairTile};
use super::prefetch::Prefetcher;
use std::arch::x86_64::*;

/// See `matrix::plain`.
///
/// # Safety
/// The processor has AVX2 and FMA, and the slices are as long as the tile's depth and strides need.
#[target_feature(enable = "avx2,fma")]
pub(super) unsafe fn tile<const N: usize, const ACCUMULATE: bool>(tile: Tile, c: &mut [f32]) {
    let c = c.as_mut_ptr();
    let bias = tile.bias.as_ptr();
    // SAFETY: a bias is sixteen values, and the caller has `N` rows of as many in `c`.
    let mut acc = unsafe {
        let mut acc = [[_mm256_loadu_ps(bias), _mm256_loadu_ps(bias.add(8))]; N];
        if ACCUMULATE {
            for (r, acc) in acc.iter_mut().enumerate() {
                let existing = c.add(r * tile.c_stride);
                acc[0] = _mm256_add_ps(acc[0], _mm256_loadu_ps(existing));
                acc[1] = _mm256_add_ps(acc[1], _mm256_loadu_ps(existing.add(8)));
            }
        }
        acc
    };
    let mut step = |rows: &[*const f32; N], k: usize, b: *const f32| {
        // SAFETY: the caller has so many rows of the panel and so many values of the rows of `a`.
        unsafe {
            let (left, right) = (_mm256_loadu_ps(b), _mm256_loadu_ps(b.add(8)));
            for (row, acc) in rows.iter().zip(&mut acc) {
                let value = _mm256_broadcast_ss(&*row.add(k));
                acc[0] = _mm256_fmadd_ps(value, left, acc[0]);
                acc[1] = _mm256_fmadd_ps(value, right, acc[1]);
            }
        }
    };
    let rows: [_; N] = std::array::from_fn(|r| tile.a[r * tile.a_stride..].as_ptr());
    let (mut b, mut k) = (tile.b.as_ptr(), 0);
    let mut prefetcher = Prefetcher::new(tile.prefetch);
    while k + 4 <= tile.depth {
        prefetcher.advance();
        for i in 0..4 {
            step(&rows, k + i, b.wrapping_add(i * tile.b_stride));
        }
        b = b.wrapping_add(4 * tile.b_stride);
        k += 4;
    }
    while k < tile.depth {
        step(&rows, k, b);
        b = b.wrapping_add(tile.b_stride);
        k += 1;
    }
    for (r, acc) in acc.iter().enumerate() {
        // SAFETY: the caller has `N` rows of sixteen values.
        unsafe {
            _mm256_storeu_ps(c.add(r * tile.c_stride), acc[0]);
            _mm256_storeu_ps(c.add(r * tile.c_stride + 8), acc[1]);
        }
    }
}

/// See `pairs::plain_integers`.
///
/// # Safety
/// The processor has AVX2 and FMA, `tile` has `N` rows of as many pairs as there are lines, and `c`
/// as many rows of a panel's width.
#[target_feature(enable = "avx2,fma")]
pub(super) unsafe fn integer_tile<const N: usize>(tile: PairTile, c: &mut [f32], c_stride: usize) {
    let mut acc = [[_mm256_setzero_si256(); 2]; N];
    let pairs = tile.lines.len();
    let rows: [_; N] = std::array::from_fn(|r| tile.a[r * 2 * pairs..].as_ptr().cast::<i32>());
    let mut step = |line: &Pairs, at: usize| {
        let line = line.as_ptr().cast::<__m256i>();
        // SAFETY: a line is two registers, and there is a pair for it in each of the rows.
        unsafe {
            let (left, right) = (_mm256_loadu_si256(line), _mm256_loadu_si256(line.add(1)));
            for (row, acc) in rows.iter().zip(&mut acc) {
                let pair = _mm256_set1_epi32(row.add(at).read_unaligned());
                acc[0] = _mm256_add_epi32(acc[0], _mm256_madd_epi16(pair, left));
                acc[1] = _mm256_add_epi32(acc[1], _mm256_madd_epi16(pair, right));
            }
        }
    };
    let mut prefetcher = Prefetcher::new(tile.options.prefetch);
    // With more than two steps a turn the compiler mixes them, and runs out of registers.
    let (twos, last) = tile.lines.as_chunks::<2>();
    for (i, [first, second]) in twos.iter().enumerate() {
        prefetcher.advance();
        step(first, 2 * i);
        step(second, 2 * i + 1);
    }
    if let [line] = last {
        step(line, pairs - 1);
    }
    for (r, acc) in acc.into_iter().enumerate() {
        let scale = _mm256_set1_ps(tile.row_scales[r]);
        for (half, acc) in acc.into_iter().enumerate() {
            let at = half * 8;
            // SAFETY: scales and bias are sixteen values, as are the rows of `c`.
            unsafe {
                let place = c.as_mut_ptr().add(r * c_stride + at);
                let mut start = _mm256_loadu_ps(tile.options.bias.as_ptr().add(at));
                if tile.options.accumulate {
                    start = _mm256_add_ps(start, _mm256_loadu_ps(place));
                }
                let by = _mm256_mul_ps(_mm256_loadu_ps(tile.column_scales.as_ptr().add(at)), scale);
                _mm256_storeu_ps(place, _mm256_fmadd_ps(_mm256_cvtepi32_ps(acc), by, start));
            }
        }
    }
}
