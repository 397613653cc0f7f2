//! BlockRows with NEON, in chunks of four blocks.

use super::simd::{CHUNK_BLOCKS, CHUNK_VALUES, by_bits, zero_padded};
use super::{BLOCK, BLOCKS_PER_SUPER, BlockRow};
use std::arch::aarch64::*;
use std::arch::asm;
use std::slice::ChunksExact;

/// Whether the functions here can be used: compilers take NEON for granted but where there is no
/// operating system. Nothing here was tried with big-endian words.
pub(super) const AVAILABLE: bool = cfg!(all(target_feature = "neon", target_endian = "little"));

/// The first `out.len()` values of a row.
#[target_feature(enable = "neon")]
pub(super) fn decode(row: &BlockRow, out: &mut [f32]) {
    by_bits!(decode_bits(row, out))
}

/// The row times a vector of its length or shorter.
#[target_feature(enable = "neon")]
pub(super) fn dot_f32(row: &BlockRow, x: &[f32]) -> f32 {
    by_bits!(dot_f32_bits(row, x))
}

/// The row times a vector of codes and scales of its length.
#[target_feature(enable = "neon")]
pub(super) fn dot_i8(row: &BlockRow, codes: &[i8], scales: &[f32]) -> f32 {
    by_bits!(dot_i8_bits(row, codes, scales))
}

#[target_feature(enable = "neon")]
fn decode_bits<const BITS: usize>(row: &BlockRow, out: &mut [f32]) {
    for (chunk, out) in out.chunks_mut(CHUNK_VALUES).enumerate() {
        let (blocks, scales) = blocks::<BITS>(row, chunk, out.len().div_ceil(BLOCK));
        for ((codes, &scale), out) in blocks.zip(&scales).zip(out.chunks_mut(BLOCK)) {
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
#[target_feature(enable = "neon")]
fn decode_block<const BITS: usize>(codes: &[u8], scale: f32, out: &mut [f32; BLOCK]) {
    for (codes, out) in code_floats::<BITS>(codes).into_iter().zip(out.as_chunks_mut::<4>().0) {
        // SAFETY: four values fit.
        unsafe { vst1q_f32(out.as_mut_ptr(), vmulq_n_f32(codes, scale)) };
    }
}

#[target_feature(enable = "neon")]
fn dot_f32_bits<const BITS: usize>(row: &BlockRow, x: &[f32]) -> f32 {
    let mut sums = [vdupq_n_f32(0.0); CHUNK_BLOCKS];
    let (chunks, rest) = x.as_chunks::<CHUNK_VALUES>();
    for (i, x) in chunks.iter().enumerate() {
        let (blocks, scales) = blocks::<BITS>(row, i, CHUNK_BLOCKS);
        for (((codes, &scale), x), sum) in blocks.zip(&scales).zip(x.as_chunks().0).zip(&mut sums) {
            *sum = dot_f32_block::<BITS>(codes, scale, x, *sum);
        }
    }
    if !rest.is_empty() {
        let (blocks, scales) = blocks::<BITS>(row, chunks.len(), rest.len().div_ceil(BLOCK));
        for ((codes, &scale), x) in blocks.zip(&scales).zip(rest.chunks(BLOCK)) {
            sums[0] = dot_f32_block::<BITS>(codes, scale, &zero_padded(x), sums[0]);
        }
    }
    total(sums)
}

#[inline]
#[target_feature(enable = "neon")]
fn dot_f32_block<const BITS: usize>(
    codes: &[u8],
    scale: f32,
    x: &[f32; BLOCK],
    sum: float32x4_t,
) -> float32x4_t {
    // Two sums, so that not every addition has to wait for the one before it.
    let mut products = [vdupq_n_f32(0.0); 2];
    let values = code_floats::<BITS>(codes).into_iter().zip(x.as_chunks::<4>().0);
    for (i, (codes, x)) in values.enumerate() {
        // SAFETY: there are four values.
        let x = unsafe { vld1q_f32(x.as_ptr()) };
        products[i % 2] = vfmaq_f32(products[i % 2], codes, x);
    }
    vfmaq_n_f32(sum, vaddq_f32(products[0], products[1]), scale)
}

#[target_feature(enable = "neon")]
fn dot_i8_bits<const BITS: usize>(row: &BlockRow, codes: &[i8], scales: &[f32]) -> f32 {
    let mut sums = [vdupq_n_f32(0.0); CHUNK_BLOCKS];
    let (chunks, rest) = codes.as_chunks::<CHUNK_VALUES>();
    let (scale_chunks, rest_scales) = scales.as_chunks::<CHUNK_BLOCKS>();
    for (i, (codes, scales)) in chunks.iter().zip(scale_chunks).enumerate() {
        let (blocks, our_scales) = blocks::<BITS>(row, i, CHUNK_BLOCKS);
        let theirs = codes.as_chunks().0.iter().zip(scales);
        for ((ours, theirs), sum) in blocks.zip(&our_scales).zip(theirs).zip(&mut sums) {
            *sum = dot_i8_block::<BITS>(ours, theirs, *sum);
        }
    }
    if !rest.is_empty() {
        let (blocks, our_scales) = blocks::<BITS>(row, chunks.len(), rest_scales.len());
        let theirs = rest.as_chunks().0.iter().zip(rest_scales);
        for (ours, theirs) in blocks.zip(&our_scales).zip(theirs) {
            sums[0] = dot_i8_block::<BITS>(ours, theirs, sums[0]);
        }
    }
    total(sums)
}

#[inline]
#[target_feature(enable = "neon")]
fn dot_i8_block<const BITS: usize>(
    (packed, scale): (&[u8], &f32),
    (codes, other_scale): (&[i8; BLOCK], &f32),
    sum: float32x4_t,
) -> float32x4_t {
    let [a, b] = unpack::<BITS>(packed);
    // SAFETY: there are 32 codes.
    let (c, d) = unsafe { (vld1q_s8(codes.as_ptr()), vld1q_s8(codes.as_ptr().add(16))) };
    let low = |a, c| vmull_s8(vget_low_s8(a), vget_low_s8(c));
    let products = if BITS == 8 {
        // 128 * 128 fits 16 bits, but no sum of two of them does.
        let sums = vpadalq_s16(vpaddlq_s16(low(a, c)), vmull_high_s8(a, c));
        vpadalq_s16(vpadalq_s16(sums, low(b, d)), vmull_high_s8(b, d))
    } else {
        // 32 * 128 fits four times.
        let sums = vmlal_high_s8(vmlal_high_s8(low(a, c), a, c), b, d);
        vpaddlq_s16(vaddq_s16(sums, low(b, d)))
    };
    vfmaq_n_f32(sum, vcvtq_f32_s32(products), scale * other_scale)
}

/// The packed codes of `count` blocks of a chunk, and the scales of four; any numbers behind the
/// last.
///
/// It is inlined always, as a call would make the loops spill all their registers. So it can't
/// enable NEON itself; all callers do.
#[inline(always)]
fn blocks<'a, const BITS: usize>(
    row: &BlockRow<'a>,
    chunk: usize,
    count: usize,
) -> (ChunksExact<'a, u8>, [f32; CHUNK_BLOCKS]) {
    let codes = &row.codes[chunk * CHUNK_BLOCKS * 4 * BITS..][..count * 4 * BITS];
    let mut scales = [0.0; CHUNK_BLOCKS];
    if row.method.has_super_blocks() {
        let scale = &row.scales[2 * (CHUNK_BLOCKS * chunk / BLOCKS_PER_SUPER)..];
        let scale = u16::from_le_bytes([scale[0], scale[1]]);
        let sub_scales = u32::from_le_bytes(zero_padded(&row.sub_scales[CHUNK_BLOCKS * chunk..]));
        // SAFETY: the processor has NEON; four values fit.
        unsafe {
            let sub_scales = vmovl_u16(vget_low_u16(vmovl_u8(vcreate_u8(u64::from(sub_scales)))));
            // As fixed-point numbers with five bits behind the point: a sub-scale is in units of
            // 1/32.
            let factors = vcvtq_n_f32_u32::<5>(sub_scales);
            vst1q_f32(scales.as_mut_ptr(), vmulq_f32(from_f16(vdup_n_u16(scale)), factors));
        }
    } else {
        let halves = u64::from_le_bytes(zero_padded(&row.scales[2 * CHUNK_BLOCKS * chunk..]));
        // SAFETY: the processor has NEON; four values fit.
        unsafe { vst1q_f32(scales.as_mut_ptr(), from_f16(vcreate_u16(halves))) };
    }
    (codes.chunks_exact(4 * BITS), scales)
}

/// Every processor with NEON has the instruction; its function came to the standard library later
/// than the oldest compiler that builds this.
#[inline]
#[target_feature(enable = "neon")]
fn from_f16(halves: uint16x4_t) -> float32x4_t {
    let floats: float32x4_t;
    // SAFETY: it only reads and writes these two registers.
    unsafe {
        asm!(
            "fcvtl {floats:v}.4s, {halves:v}.4h",
            floats = lateout(vreg) floats,
            halves = in(vreg) halves,
            options(pure, nomem, nostack, preserves_flags),
        );
    }
    floats
}

/// The codes of a block as floats.
#[inline]
#[target_feature(enable = "neon")]
fn code_floats<const BITS: usize>(packed: &[u8]) -> [float32x4_t; 8] {
    let [low, high] = unpack::<BITS>(packed);
    let eights = [
        vmovl_s8(vget_low_s8(low)),
        vmovl_high_s8(low),
        vmovl_s8(vget_low_s8(high)),
        vmovl_high_s8(high),
    ];
    let mut floats = [vdupq_n_f32(0.0); 8];
    for (floats, eight) in floats.as_chunks_mut::<2>().0.iter_mut().zip(eights) {
        let (low, high) = (vmovl_s16(vget_low_s16(eight)), vmovl_high_s16(eight));
        *floats = [vcvtq_f32_s32(low), vcvtq_f32_s32(high)];
    }
    floats
}

/// The codes of a block, one a byte.
#[inline]
#[target_feature(enable = "neon")]
fn unpack<const BITS: usize>(packed: &[u8]) -> [int8x16_t; 2] {
    assert_eq!(packed.len(), 4 * BITS);
    let packed = packed.as_ptr();
    // SAFETY: as many bytes are there as was asserted, and nothing is read behind them.
    unsafe {
        match BITS {
            8 => [vld1q_s8(packed.cast()), vld1q_s8(packed.add(16).cast())],
            6 => [
                unpack_sixteen::<6, 0>(vld1q_u8(packed)),
                unpack_sixteen::<6, 4>(vld1q_u8(packed.add(8))),
            ],
            4 => {
                let bytes = vld1q_u8(packed);
                [unpack_sixteen::<4, 0>(bytes), unpack_sixteen::<4, 8>(bytes)]
            }
            3 => {
                let bytes = vcombine_u8(vld1_u8(packed), vld1_u8(packed.add(4)));
                [unpack_sixteen::<3, 0>(bytes), unpack_sixteen::<3, 10>(bytes)]
            }
            _ => {
                let bytes = vcombine_u8(vld1_u8(packed), vdup_n_u8(0));
                [unpack_sixteen::<2, 0>(bytes), unpack_sixteen::<2, 4>(bytes)]
            }
        }
    }
}

/// Sixteen codes, the first of which begins with the byte at `FIRST`. Each is brought to the top of
/// a byte, from the one or two bytes that it is in, and back with its sign; what is below it in the
/// first of them does not stay.
#[inline]
#[target_feature(enable = "neon")]
fn unpack_sixteen<const BITS: usize, const FIRST: usize>(bytes: uint8x16_t) -> int8x16_t {
    let tables = const { &UnpackTables::new(BITS, FIRST) };
    let part = |index: &[u8; 16], shift: &[i8; 16]| {
        // SAFETY: there are sixteen of both.
        let (index, shift) = unsafe { (vld1q_u8(index.as_ptr()), vld1q_s8(shift.as_ptr())) };
        vshlq_u8(vqtbl1q_u8(bytes, index), shift)
    };
    let mut top = part(&tables.begin, &tables.begin_shift);
    if !8usize.is_multiple_of(BITS) {
        top = vorrq_u8(top, part(&tables.end, &tables.end_shift));
    }
    vshlq_s8(vreinterpretq_s8_u8(top), vdupq_n_s8(tables.back))
}

/// Where codes are among packed ones: the byte that each begins in, the one behind it, and how far
/// to the left they are shifted (to the right if negative) so that the code ends at the top.
struct UnpackTables {
    begin: [u8; 16],
    begin_shift: [i8; 16],
    end: [u8; 16],
    end_shift: [i8; 16],
    /// The shift from there to the bottom.
    back: i8,
}

impl UnpackTables {
    #[allow(clippy::cast_possible_truncation, reason = "all are below 128")]
    const fn new(bits: usize, first: usize) -> UnpackTables {
        let (bytes, shifts, back) = ([0; 16], [0; 16], bits as i8 - 8);
        let mut tables =
            UnpackTables { begin: bytes, begin_shift: shifts, end: bytes, end_shift: shifts, back };
        let mut i = 0;
        while i < 16 {
            let (byte, bit) = (first + bits * i / 8, bits * i % 8);
            tables.begin[i] = byte as u8;
            tables.begin_shift[i] = -back - bit as i8;
            tables.end[i] = byte as u8 + 1;
            // Eight and more leave nothing of a byte that has no part of the code.
            tables.end_shift[i] = tables.begin_shift[i] + 8;
            i += 1;
        }
        tables
    }
}

/// The sum of all lanes of the accumulators.
#[target_feature(enable = "neon")]
fn total([a, b, c, d]: [float32x4_t; CHUNK_BLOCKS]) -> f32 {
    vaddvq_f32(vaddq_f32(vaddq_f32(a, b), vaddq_f32(c, d)))
}
