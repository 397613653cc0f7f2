//! Tiles with AVX-512: a panel is one register.
#![cfg(target_arch = "x86_64")]

use super::bytes::{BLOCK, LINES, Tile as ByteTile};
use super::matrix::Tile;
use super::pairs::Tile as PairTile;
use super::prefetch::Prefetcher;
use std::arch::x86_64::*;

/// See `matrix::plain`.
///
/// # Safety
/// The processor has AVX-512F, and the slices are as long as the tile's depth and strides need.
#[target_feature(enable = "avx512f")]
pub(super) unsafe fn tile<const N: usize, const ACCUMULATE: bool>(tile: Tile, c: &mut [f32]) {
    let c = c.as_mut_ptr();
    // SAFETY: a bias is sixteen values, and the caller has `N` rows of as many in `c`.
    let mut acc = unsafe {
        let mut acc = [_mm512_loadu_ps(tile.bias.as_ptr()); N];
        if ACCUMULATE {
            for (r, acc) in acc.iter_mut().enumerate() {
                *acc = _mm512_add_ps(*acc, _mm512_loadu_ps(c.add(r * tile.c_stride)));
            }
        }
        acc
    };
    let mut step = |rows: &[*const f32; N], k: usize, b: *const f32| {
        // SAFETY: the caller has so many rows of the panel and so many values of the rows of `a`.
        unsafe {
            let right = _mm512_loadu_ps(b);
            for (row, acc) in rows.iter().zip(&mut acc) {
                *acc = _mm512_fmadd_ps(_mm512_set1_ps(*row.add(k)), right, *acc);
            }
        }
    };
    let rows: [_; N] = std::array::from_fn(|r| tile.a[r * tile.a_stride..].as_ptr());
    let mut prefetcher = Prefetcher::new(tile.prefetch);
    let (mut b, mut k) = (tile.b.as_ptr(), 0);
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
        unsafe { _mm512_storeu_ps(c.add(r * tile.c_stride), *acc) };
    }
}

/// A tile of pairs: sums begin with `$zero`, `$add` accumulates the products of pairs, and `$float`
/// converts sums to f32.
macro_rules! pair_tile {
    ($(#[$doc:meta])* $name:ident, $features:literal, $zero:expr, $add:expr, $float:expr) => {
        $(#[$doc])*
        ///
        /// # Safety
        /// The processor has what is enabled here, `tile` has `N` rows of as many pairs as there are
        /// lines, and `c` as many rows of a panel's width.
        #[target_feature(enable = $features)]
        pub(super) unsafe fn $name<const N: usize>(tile: PairTile, c: &mut [f32], c_stride: usize) {
            let mut acc = [$zero; N];
            let mut step = |rows: &[*const i32; N], at: usize| {
                // SAFETY: a line is one register, and there is a pair for it in each of the rows.
                unsafe {
                    let line = _mm512_loadu_si512(tile.lines[at].as_ptr().cast());
                    for (row, acc) in rows.iter().zip(&mut acc) {
                        let pair = _mm512_set1_epi32(row.add(at).read_unaligned());
                        *acc = $add(*acc, pair, line);
                    }
                }
            };
            let pairs = tile.lines.len();
            let rows: [_; N] =
                std::array::from_fn(|r| tile.a[r * 2 * pairs..].as_ptr().cast::<i32>());
            let mut prefetcher = Prefetcher::new(tile.options.prefetch);
            let tail = pairs - pairs % 4;
            for at in (0..tail).step_by(4) {
                prefetcher.advance();
                for i in 0..4 {
                    step(&rows, at + i);
                }
            }
            for at in tail..pairs {
                step(&rows, at);
            }
            for (r, acc) in acc.into_iter().enumerate() {
                // SAFETY: scales and bias are sixteen values, as are the rows of `c`.
                unsafe {
                    let place = c.as_mut_ptr().add(r * c_stride);
                    let mut start = _mm512_loadu_ps(tile.options.bias.as_ptr());
                    if tile.options.accumulate {
                        start = _mm512_add_ps(start, _mm512_loadu_ps(place));
                    }
                    let scales = _mm512_loadu_ps(tile.column_scales.as_ptr());
                    let by = _mm512_mul_ps(scales, _mm512_set1_ps(tile.row_scales[r]));
                    _mm512_storeu_ps(place, _mm512_fmadd_ps($float(acc), by, start));
                }
            }
        }
    };
}

pair_tile!(
    /// See `pairs::plain_integers`.
    integer_tile,
    "avx512f,avx512bw",
    _mm512_setzero_si512(),
    |sum, pair, line| _mm512_add_epi32(sum, _mm512_madd_epi16(pair, line)),
    |sum| _mm512_cvtepi32_ps(sum)
);

pair_tile!(
    /// See `pairs::plain_bf16`.
    bf16_tile,
    "avx512f,avx512bf16",
    _mm512_setzero_ps(),
    // SAFETY: sixteen pairs of bf16 are 64 bytes in either type.
    |sum, pair: __m512i, line: __m512i| _mm512_dpbf16_ps(
        sum,
        std::mem::transmute::<__m512i, __m512bh>(pair),
        std::mem::transmute::<__m512i, __m512bh>(line)
    ),
    |sum| sum
);

/// See `bytes::plain`.
///
/// # Safety
/// The processor has AVX-512F, BW and VNNI, `tile` has `N` rows of as many blocks as the panel, and
/// `c` as many rows of a panel's width.
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
pub(super) unsafe fn byte_tile<const N: usize>(tile: ByteTile, c: &mut [f32], c_stride: usize) {
    let depth = tile.blocks.len();
    let c = c.as_mut_ptr();
    // SAFETY: a bias is sixteen values, as are the rows of `c`.
    let mut results = unsafe {
        let mut results = [_mm512_loadu_ps(tile.options.bias.as_ptr()); N];
        if tile.options.accumulate {
            for (r, result) in results.iter_mut().enumerate() {
                *result = _mm512_add_ps(*result, _mm512_loadu_ps(c.add(r * c_stride)));
            }
        }
        results
    };
    let codes: [_; N] =
        std::array::from_fn(|r| tile.codes[r * depth * BLOCK..].as_ptr().cast::<i32>());
    let rows: [_; N] = std::array::from_fn(|r| tile.row_blocks[r * depth..].as_ptr());
    let mut prefetcher = Prefetcher::new(tile.options.prefetch);
    for (at, block) in tile.blocks.iter().enumerate() {
        let mut sums = [_mm512_setzero_si512(); N];
        for (sum, row) in sums.iter_mut().zip(&rows) {
            // SAFETY: every row has a scale and a start for each block.
            *sum = _mm512_set1_epi32(unsafe { (*row.add(at)).start });
        }
        for (i, line) in block.codes.iter().enumerate() {
            if i % 2 == 0 {
                prefetcher.advance();
            }
            // SAFETY: a line is one register, and every row has four codes for it.
            unsafe {
                let line = _mm512_load_si512(line.0.as_ptr().cast());
                for (sum, codes) in sums.iter_mut().zip(&codes) {
                    let four = _mm512_set1_epi32(codes.add(at * LINES + i).read_unaligned());
                    *sum = _mm512_dpbusd_epi32(*sum, line, four);
                }
            }
        }
        // SAFETY: sixteen scales; every row has one for each block.
        unsafe {
            let scales = _mm512_load_ps(block.scales.0.as_ptr());
            for ((result, sum), row) in results.iter_mut().zip(sums).zip(&rows) {
                let by = _mm512_mul_ps(scales, _mm512_set1_ps((*row.add(at)).scale));
                *result = _mm512_fmadd_ps(_mm512_cvtepi32_ps(sum), by, *result);
            }
        }
    }
    for (r, result) in results.into_iter().enumerate() {
        // SAFETY: `N` rows of sixteen values.
        unsafe { _mm512_storeu_ps(c.add(r * c_stride), result) };
    }
}
