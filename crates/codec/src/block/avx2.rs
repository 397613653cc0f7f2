//! BlockRows with AVX2, FMA and F16C, in chunks of four blocks.

use super::simd::{CHUNK_BLOCKS, CHUNK_VALUES, by_bits, zero_padded};
use super::{BLOCK, BLOCKS_PER_SUPER, BlockRow, scalar};
use std::arch::x86_64::*;
use std::sync::LazyLock;

/// Whether the processor has all that the functions here need; it is asked once.
pub(super) static AVAILABLE: LazyLock<bool> = LazyLock::new(|| {
    is_x86_feature_detected!("avx2")
        && is_x86_feature_detected!("fma")
        && is_x86_feature_detected!("f16c")
});

/// How many values ahead of the one that decoding writes memory is prefetched: 2 KiB. Anything from
/// half to twice of it does as well.
const PREFETCH_DISTANCE: usize = 512;

/// The first `out.len()` values of a row.
#[target_feature(enable = "avx2,fma,f16c")]
pub(super) fn decode(row: &BlockRow, out: &mut [f32]) {
    by_bits!(decode_bits(row, out))
}

/// The row times a vector of its length or shorter.
#[target_feature(enable = "avx2,fma,f16c")]
pub(super) fn dot_f32(row: &BlockRow, x: &[f32]) -> f32 {
    by_bits!(dot_f32_bits(row, x))
}

/// The row times a vector of codes and scales of its length.
#[target_feature(enable = "avx2,fma,f16c")]
pub(super) fn dot_i8(row: &BlockRow, codes: &[i8], scales: &[f32]) -> f32 {
    by_bits!(dot_i8_bits(row, codes, scales))
}

#[target_feature(enable = "avx2,fma,f16c")]
fn decode_bits<const BITS: usize>(row: &BlockRow, out: &mut [f32]) {
    let (chunks, rest) = out.as_chunks_mut::<CHUNK_VALUES>();
    let done = chunks.len();
    for (i, out) in chunks.iter_mut().enumerate() {
        for ((codes, scale), out) in blocks::<BITS>(row, i, CHUNK_BLOCKS).zip(out.as_chunks_mut().0)
        {
            decode_block::<BITS>(codes, scale, out);
        }
    }
    if !rest.is_empty() {
        let blocks =
            blocks::<BITS>(row, done, rest.len().div_ceil(BLOCK)).zip(rest.chunks_mut(BLOCK));
        for ((codes, scale), out) in blocks {
            if let Ok(out) = out.try_into() {
                decode_block::<BITS>(codes, scale, out);
            } else {
                let mut values = [0.0; BLOCK];
                decode_block::<BITS>(codes, scale, &mut values);
                out.copy_from_slice(&values[..out.len()]);
            }
        }
    }
}

#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn decode_block<const BITS: usize>(codes: &[u8], scale: f32, out: &mut [f32; BLOCK]) {
    // Stores to memory that is in no cache wait for it; large outputs are an eighth faster with this.
    for line in [PREFETCH_DISTANCE, PREFETCH_DISTANCE + 16] {
        let address = out.as_ptr().wrapping_add(line);
        // SAFETY: nothing is read or written, whatever the address.
        #[allow(unused_unsafe, reason = "newer compilers know that it is safe")]
        unsafe {
            _mm_prefetch::<_MM_HINT_T0>(address.cast());
        }
    }
    let (scale, codes) = (_mm256_set1_ps(scale), code_floats::<BITS>(codes));
    for (codes, out) in codes.into_iter().zip(out.as_chunks_mut::<8>().0) {
        // SAFETY: eight values fit.
        unsafe { _mm256_storeu_ps(out.as_mut_ptr(), _mm256_mul_ps(scale, codes)) };
    }
}

#[target_feature(enable = "avx2,fma,f16c")]
fn dot_f32_bits<const BITS: usize>(row: &BlockRow, x: &[f32]) -> f32 {
    let mut sums = [_mm256_setzero_ps(); CHUNK_BLOCKS];
    let (chunks, rest) = x.as_chunks::<CHUNK_VALUES>();
    for (i, x) in chunks.iter().enumerate() {
        let blocks = blocks::<BITS>(row, i, CHUNK_BLOCKS).zip(x.as_chunks().0).zip(&mut sums);
        for (((codes, scale), x), sum) in blocks {
            *sum = dot_f32_block::<BITS>(codes, scale, x, *sum);
        }
    }
    if !rest.is_empty() {
        let blocks = blocks::<BITS>(row, chunks.len(), rest.len().div_ceil(BLOCK));
        for ((codes, scale), x) in blocks.zip(rest.chunks(BLOCK)) {
            sums[0] = dot_f32_block::<BITS>(codes, scale, &zero_padded(x), sums[0]);
        }
    }
    total(sums)
}

#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn dot_f32_block<const BITS: usize>(
    codes: &[u8],
    scale: f32,
    x: &[f32; BLOCK],
    sum: __m256,
) -> __m256 {
    let mut products = _mm256_setzero_ps();
    for (codes, x) in code_floats::<BITS>(codes).into_iter().zip(x.as_chunks::<8>().0) {
        // SAFETY: there are eight values.
        let x = unsafe { _mm256_loadu_ps(x.as_ptr()) };
        products = _mm256_fmadd_ps(codes, x, products);
    }
    _mm256_fmadd_ps(_mm256_set1_ps(scale), products, sum)
}

#[target_feature(enable = "avx2,fma,f16c")]
fn dot_i8_bits<const BITS: usize>(row: &BlockRow, codes: &[i8], scales: &[f32]) -> f32 {
    let mut sums = [_mm256_setzero_ps(); CHUNK_BLOCKS];
    let mut most_negative = _mm256_setzero_si256();
    let (chunks, rest) = codes.as_chunks::<CHUNK_VALUES>();
    let (scale_chunks, rest_scales) = scales.as_chunks::<CHUNK_BLOCKS>();
    for (i, (codes, scales)) in chunks.iter().zip(scale_chunks).enumerate() {
        let theirs = codes.as_chunks().0.iter().zip(scales);
        for ((ours, theirs), sum) in blocks::<BITS>(row, i, CHUNK_BLOCKS).zip(theirs).zip(&mut sums)
        {
            *sum = dot_i8_block::<BITS>(ours, theirs, *sum, &mut most_negative);
        }
    }
    if !rest.is_empty() {
        let theirs = rest.as_chunks().0.iter().zip(rest_scales);
        for (ours, theirs) in blocks::<BITS>(row, chunks.len(), rest_scales.len()).zip(theirs) {
            sums[0] = dot_i8_block::<BITS>(ours, theirs, sums[0], &mut most_negative);
        }
    }
    if _mm256_movemask_epi8(most_negative) != 0 {
        return scalar::dot_i8(row, codes, scales);
    }
    total(sums)
}

/// Accumulates onto `sum`, and notes where the row has a code of -128, for which the sum is wrong.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn dot_i8_block<const BITS: usize>(
    (packed, scale): (&[u8], f32),
    (codes, other_scale): (&[i8; BLOCK], &f32),
    sum: __m256,
    most_negative: &mut __m256i,
) -> __m256 {
    // SAFETY: there are 32 codes.
    let codes = unsafe { _mm256_loadu_si256(codes.as_ptr().cast()) };
    // Products of bytes want one side unsigned. They are added in pairs, which must fit 16 bits:
    // 128 * 127 * 2 does, 128 * 128 * 2 does not.
    let pairs = if BITS == 8 {
        assert_eq!(packed.len(), BLOCK);
        // SAFETY: there are 32 codes.
        let ours = unsafe { _mm256_loadu_si256(packed.as_ptr().cast()) };
        let bad = _mm256_cmpeq_epi8(ours, _mm256_set1_epi8(i8::MIN));
        *most_negative = _mm256_or_si256(*most_negative, bad);
        _mm256_maddubs_epi16(_mm256_abs_epi8(codes), _mm256_sign_epi8(ours, codes))
    } else {
        let above = _mm256_maddubs_epi16(unpack_unsigned::<BITS>(packed), codes);
        _mm256_sub_epi16(above, _mm256_maddubs_epi16(offset::<BITS>(), codes))
    };
    let products = _mm256_cvtepi32_ps(_mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
    _mm256_fmadd_ps(_mm256_set1_ps(scale * other_scale), products, sum)
}

/// The packed codes and the scales of `count` blocks of a chunk.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn blocks<'a, const BITS: usize>(
    row: &BlockRow<'a>,
    chunk: usize,
    count: usize,
) -> impl Iterator<Item = (&'a [u8], f32)> {
    let codes = &row.codes[chunk * CHUNK_BLOCKS * 4 * BITS..][..count * 4 * BITS];
    let mut scales = [0.0; CHUNK_BLOCKS];
    // SAFETY: four values fit.
    unsafe { _mm_storeu_ps(scales.as_mut_ptr(), chunk_scales(row, chunk)) };
    codes.chunks_exact(4 * BITS).zip(scales)
}

/// The scales of a chunk; any numbers behind the last block.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn chunk_scales(row: &BlockRow, chunk: usize) -> __m128 {
    if row.method.has_super_blocks() {
        let scale = &row.scales[2 * (CHUNK_BLOCKS * chunk / BLOCKS_PER_SUPER)..];
        let scale = _mm_cvtph_ps(_mm_set1_epi16(i16::from_le_bytes([scale[0], scale[1]])));
        let sub_scales = i32::from_le_bytes(zero_padded(&row.sub_scales[CHUNK_BLOCKS * chunk..]));
        let sub_scales = _mm_cvtepi32_ps(_mm_cvtepu8_epi32(_mm_cvtsi32_si128(sub_scales)));
        _mm_mul_ps(scale, _mm_mul_ps(sub_scales, _mm_set1_ps(1.0 / 32.0)))
    } else {
        let scales = zero_padded(&row.scales[2 * CHUNK_BLOCKS * chunk..]);
        _mm_cvtph_ps(_mm_cvtsi64_si128(i64::from_le_bytes(scales)))
    }
}

/// The codes of a block as floats.
#[inline]
#[target_feature(enable = "avx2")]
fn code_floats<const BITS: usize>(packed: &[u8]) -> [__m256; 4] {
    assert_eq!(packed.len(), 4 * BITS);
    [
        unpack_eight::<BITS, 0>(packed),
        unpack_eight::<BITS, 1>(packed),
        unpack_eight::<BITS, 2>(packed),
        unpack_eight::<BITS, 3>(packed),
    ]
}

/// Eight codes of a block, those of one quarter, as floats. Each is brought to the top of a word of
/// 32 bits and back with its sign.
#[inline]
#[target_feature(enable = "avx2")]
fn unpack_eight<const BITS: usize, const QUARTER: usize>(packed: &[u8]) -> __m256 {
    assert_eq!(packed.len(), 4 * BITS);
    let (packed, start) = (packed.as_ptr(), QUARTER * BITS);
    // SAFETY: as many bytes are there as was asserted, and nothing is read behind them.
    let words = match BITS {
        8 => _mm256_cvtepi8_epi32(unsafe { _mm_loadl_epi64(packed.add(start).cast()) }),
        // Four codes are three bytes, which come to the top of each word of a half; what is below
        // them does not stay.
        6 => {
            let from = if QUARTER < 2 { 0 } else { 8 };
            let bytes =
                _mm256_broadcastsi128_si256(unsafe { _mm_loadu_si128(packed.add(from).cast()) });
            let at = [0, 6, 4, 10][QUARTER];
            let half = _mm256_setr_epi8(
                -1, 0, 1, 2, -1, 0, 1, 2, -1, 0, 1, 2, -1, 0, 1, 2, //
                -1, 3, 4, 5, -1, 3, 4, 5, -1, 3, 4, 5, -1, 3, 4, 5,
            );
            let words = _mm256_shuffle_epi8(bytes, _mm256_add_epi8(half, _mm256_set1_epi8(at)));
            _mm256_sllv_epi32(words, _mm256_setr_epi32(18, 12, 6, 0, 18, 12, 6, 0))
        }
        // All eight are in any word that they begin in, or that ends where the block ends.
        _ => {
            let from = start.min(4 * BITS - 4);
            let word = unsafe { packed.add(from).cast::<i32>().read_unaligned() };
            #[allow(clippy::cast_possible_truncation, reason = "it is below 32")]
            let top = |code: usize| (32 - BITS * (code + 1) - 8 * (start - from)) as i32;
            _mm256_sllv_epi32(
                _mm256_set1_epi32(word),
                _mm256_setr_epi32(top(0), top(1), top(2), top(3), top(4), top(5), top(6), top(7)),
            )
        }
    };
    _mm256_cvtepi32_ps(match BITS {
        8 => words,
        6 => _mm256_srai_epi32::<26>(words),
        4 => _mm256_srai_epi32::<28>(words),
        3 => _mm256_srai_epi32::<29>(words),
        _ => _mm256_srai_epi32::<30>(words),
    })
}

/// What [`unpack_unsigned`] adds to each code.
#[inline]
#[target_feature(enable = "avx2")]
fn offset<const BITS: usize>() -> __m256i {
    _mm256_set1_epi8(1 << (BITS - 1))
}

/// `code + 2^(BITS - 1)` for the codes of a block, one a byte: two's complement with the sign
/// flipped. The codes of each group are first copied to where they are needed, then masked.
#[inline]
#[target_feature(enable = "avx2")]
fn unpack_unsigned<const BITS: usize>(packed: &[u8]) -> __m256i {
    assert_eq!(packed.len(), 4 * BITS);
    let packed = packed.as_ptr();
    let mask = _mm256_set1_epi8((1 << BITS) - 1);
    // SAFETY: as many bytes are there as was asserted, and nothing is read behind them.
    let spread = match BITS {
        // Four codes of a byte to four bytes.
        2 => {
            let word = _mm256_cvtepu8_epi32(unsafe { _mm_loadl_epi64(packed.cast()) });
            let word = _mm256_or_si256(word, _mm256_slli_epi32::<12>(word));
            _mm256_or_si256(word, _mm256_slli_epi32::<6>(word))
        }
        // Four codes of one and a half bytes: bits 0..12 or 4..16 of two.
        3 => {
            let (low, high) =
                unsafe { (_mm_loadl_epi64(packed.cast()), _mm_loadl_epi64(packed.add(4).cast())) };
            let places = _mm256_setr_epi8(
                0, 1, -1, -1, 1, 2, -1, -1, 3, 4, -1, -1, 4, 5, -1, -1, //
                2, 3, -1, -1, 3, 4, -1, -1, 5, 6, -1, -1, 6, 7, -1, -1,
            );
            let word = _mm256_shuffle_epi8(_mm256_set_m128i(high, low), places);
            let word = _mm256_srlv_epi32(word, _mm256_setr_epi32(0, 4, 0, 4, 0, 4, 0, 4));
            let pairs = _mm256_blend_epi16::<0b1010_1010>(word, _mm256_slli_epi32::<10>(word));
            let pairs = _mm256_and_si256(pairs, _mm256_set1_epi16(0x3F));
            _mm256_or_si256(pairs, _mm256_slli_epi16::<5>(pairs))
        }
        // Two codes of a byte to two bytes.
        4 => {
            let pairs = _mm256_cvtepu8_epi16(unsafe { _mm_loadu_si128(packed.cast()) });
            _mm256_or_si256(pairs, _mm256_slli_epi16::<4>(pairs))
        }
        // Four codes of three bytes.
        6 => {
            let (low, high) =
                unsafe { (_mm_loadu_si128(packed.cast()), _mm_loadu_si128(packed.add(8).cast())) };
            let places = _mm256_setr_epi8(
                0, 1, 2, -1, 3, 4, 5, -1, 6, 7, 8, -1, 9, 10, 11, -1, //
                4, 5, 6, -1, 7, 8, 9, -1, 10, 11, 12, -1, 13, 14, 15, -1,
            );
            let word = _mm256_shuffle_epi8(_mm256_set_m128i(high, low), places);
            let pairs = _mm256_blend_epi16::<0b1010_1010>(word, _mm256_slli_epi32::<4>(word));
            let first = _mm256_set1_epi16(0x3F);
            let second = _mm256_slli_epi16::<2>(_mm256_andnot_si256(first, pairs));
            _mm256_or_si256(_mm256_and_si256(pairs, first), second)
        }
        _ => unreachable!("codes of eight bits are not packed"),
    };
    _mm256_xor_si256(_mm256_and_si256(spread, mask), offset::<BITS>())
}

/// The sum of all lanes of the accumulators.
#[target_feature(enable = "avx2")]
fn total([a, b, c, d]: [__m256; CHUNK_BLOCKS]) -> f32 {
    let eight = _mm256_add_ps(_mm256_add_ps(a, b), _mm256_add_ps(c, d));
    let four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps::<1>(eight));
    let two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)))
}
