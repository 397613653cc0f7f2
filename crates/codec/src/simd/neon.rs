//! Eight lanes with NEON: two registers.

use super::level::Guarded;
use super::numbers::numbers_in_arrays;
use super::plain::zero_padded;
use super::{Eight, Vector};
use std::arch::aarch64::*;
use std::arch::asm;

/// Eight values in two registers.
#[derive(Clone, Copy, Debug)]
pub(super) struct F32x8([float32x4_t; 2]);

/// There is one only where the processor has NEON; and so there are [`F32x8`] and their sums only
/// there, as they take one to make.
#[derive(Clone, Copy, Debug)]
pub(super) struct Token(());

impl Guarded for F32x8 {
    #[inline(always)]
    unsafe fn token() -> Token {
        Token(())
    }
}

/// Methods that do the same with both registers.
macro_rules! lane_by_lane {
    ($($name:ident($first:ident $(, $more:ident)*) => $result:expr;)*) => {$(
        #[inline(always)]
        fn $name(self $(, $more: Self)*) -> Self {
            let [low, high] = [0, 1].map(|half| {
                let $first = self.0[half];
                $(let $more = $more.0[half];)*
                // SAFETY: the processor has NEON, see the token.
                unsafe { $result }
            });
            F32x8([low, high])
        }
    )*};
}

impl Vector for F32x8 {
    type Token = Token;
    type Sums = [int32x4_t; 2];
    const LANES: usize = 8;
    const REGISTERS: usize = 2;

    #[inline(always)]
    fn splat(_: Token, value: f32) -> Self {
        // SAFETY: the processor has NEON, see the token.
        F32x8([unsafe { vdupq_n_f32(value) }; 2])
    }

    #[inline(always)]
    fn load(_: Token, from: &[f32]) -> Self {
        let from = from[..8].as_ptr();
        // SAFETY: the processor has NEON, see the token; there are eight values.
        F32x8(unsafe { [vld1q_f32(from), vld1q_f32(from.add(4))] })
    }

    #[inline(always)]
    fn store(self, to: &mut [f32]) {
        let to = to[..8].as_mut_ptr();
        // SAFETY: the processor has NEON, see the token; there is room for eight values.
        unsafe {
            vst1q_f32(to, self.0[0]);
            vst1q_f32(to.add(4), self.0[1]);
        }
    }

    lane_by_lane! {
        add(a, b) => vaddq_f32(a, b);
        mul(a, b) => vmulq_f32(a, b);
        // NEON's own maximum hands on NaN from either side.
        max(a, b) => vbslq_f32(vcgtq_f32(a, b), a, b);
        mul_add(a, by, plus) => vfmaq_f32(plus, a, by);
        sub(a, b) => vsubq_f32(a, b);
        div(a, b) => vdivq_f32(a, b);
        min(a, b) => vbslq_f32(vcltq_f32(a, b), a, b);
        abs(a) => vabsq_f32(a);
        mul_power_of_two(a, exponents) => {
            let power = vshlq_n_u32::<23>(vreinterpretq_u32_f32(exponents));
            vreinterpretq_f32_u32(vaddq_u32(vreinterpretq_u32_f32(a), power))
        };
    }

    #[inline(always)]
    fn select_less(a: Self, b: Self, yes: Self, no: Self) -> Self {
        // SAFETY: the processor has NEON, see the token.
        let half = |i: usize| unsafe { vbslq_f32(vcltq_f32(a.0[i], b.0[i]), yes.0[i], no.0[i]) };
        F32x8([half(0), half(1)])
    }

    #[inline(always)]
    fn any_reaches(self, limit: Self) -> bool {
        // SAFETY: the processor has NEON, see the token.
        let less = |i: usize| unsafe { vcltq_f32(self.0[i], limit.0[i]) };
        // SAFETY: the same. Lanes that are less are all ones.
        unsafe { vminvq_u32(vandq_u32(less(0), less(1))) == 0 }
    }

    #[inline(always)]
    fn sums(_: Token, value: i32) -> Self::Sums {
        // SAFETY: the processor has NEON, see the token.
        [unsafe { vdupq_n_s32(value) }; 2]
    }

    #[inline(always)]
    fn add_pairs(sums: Self::Sums, pair: [i16; 2], line: &[[i16; 2]]) -> Self::Sums {
        let line = line[..8].as_flattened().as_ptr();
        // SAFETY: the processor has NEON, see the token; a line is sixteen integers.
        unsafe {
            // The first of the pairs apart from the second.
            let int16x8x2_t(first, second) = vld2q_s16(line);
            let low = vmlal_n_s16(sums[0], vget_low_s16(first), pair[0]);
            let high = vmlal_high_n_s16(sums[1], first, pair[0]);
            [
                vmlal_n_s16(low, vget_low_s16(second), pair[1]),
                vmlal_high_n_s16(high, second, pair[1]),
            ]
        }
    }

    #[inline(always)]
    fn count_less(counts: Self::Sums, a: Self, b: Self) -> Self::Sums {
        // SAFETY: the processor has NEON, see the token.
        unsafe {
            // All bits, where it holds, are minus one.
            let less = |i: usize| vreinterpretq_s32_u32(vcltq_f32(a.0[i], b.0[i]));
            [vsubq_s32(counts[0], less(0)), vsubq_s32(counts[1], less(1))]
        }
    }

    #[inline(always)]
    fn from_sums(sums: Self::Sums) -> Self {
        // SAFETY: the processor has NEON, see the token.
        F32x8(unsafe { [vcvtq_f32_s32(sums[0]), vcvtq_f32_s32(sums[1])] })
    }
}

numbers_in_arrays!(F32x8);

impl Eight for F32x8 {
    lane_by_lane! {
        with_sign_of(a, b) => vbslq_f32(vdupq_n_u32(1 << 31), b, a);
        fused_mul_add(a, by, plus) => vfmaq_f32(plus, a, by);
    }

    #[inline(always)]
    fn load_padded(token: Token, from: &[f32]) -> Self {
        assert!(from.len() <= 8, "at most eight values");
        Self::load(token, &zero_padded(from))
    }

    #[inline(always)]
    fn sum(self) -> f32 {
        // SAFETY: the processor has NEON, see the token.
        unsafe {
            let four = vaddq_f32(self.0[0], self.0[1]);
            let two = vadd_f32(vget_low_f32(four), vget_high_f32(four));
            vget_lane_f32::<0>(two) + vget_lane_f32::<1>(two)
        }
    }

    #[inline(always)]
    fn largest(self) -> f32 {
        // In the order of the definition, which decides between zeros of both signs.
        let [a, b, c, d, e, f, g, h] = self.to_array();
        let larger = |a: f32, b: f32| if a > b { a } else { b };
        let even = larger(larger(a, e), larger(c, g));
        larger(even, larger(larger(b, f), larger(d, h)))
    }

    #[inline(always)]
    fn transpose(rows: [Self; 8]) -> [Self; 8] {
        let [a, b, c, d, e, f, g, h] = rows.map(|row| row.0);
        let [ac, bd, eg, fh] = [
            four_columns([a[0], b[0], c[0], d[0]]),
            four_columns([a[1], b[1], c[1], d[1]]),
            four_columns([e[0], f[0], g[0], h[0]]),
            four_columns([e[1], f[1], g[1], h[1]]),
        ];
        let mut columns = rows;
        for i in 0..4 {
            columns[i] = F32x8([ac[i], eg[i]]);
            columns[i + 4] = F32x8([bd[i], fh[i]]);
        }
        columns
    }

    #[inline(always)]
    fn truncate(values: [Self; 4]) -> [u8; 32] {
        let mut bytes = [0; 32];
        for (part, F32x8(lanes)) in bytes.as_chunks_mut::<8>().0.iter_mut().zip(values) {
            // SAFETY: the processor has NEON, see the token; there is room for eight bytes.
            unsafe {
                let (low, high) = (vcvtq_s32_f32(lanes[0]), vcvtq_s32_f32(lanes[1]));
                let words = vmovn_high_s32(vmovn_s32(low), high);
                vst1_u8(part.as_mut_ptr(), vreinterpret_u8_s8(vmovn_s16(words)));
            }
        }
        bytes
    }

    #[inline(always)]
    fn round(self) -> [i16; 8] {
        let mut rounded = [0; 8];
        // SAFETY: the processor has NEON, see the token; there is room for eight integers.
        unsafe {
            let (low, high) = (vcvtnq_s32_f32(self.0[0]), vcvtnq_s32_f32(self.0[1]));
            vst1q_s16(rounded.as_mut_ptr(), vqmovn_high_s32(vqmovn_s32(low), high));
        }
        rounded
    }

    #[inline(always)]
    fn from_f16(_: Token, halves: [u8; 16]) -> Self {
        let (low, high): (float32x4_t, float32x4_t);
        // SAFETY: the processor has NEON, see the token; there are sixteen bytes. Every processor
        // with NEON has the instructions, which only read and write these registers; their
        // functions came to the standard library later than the oldest compiler that builds this.
        unsafe {
            let halves = vld1q_u8(halves.as_ptr());
            asm!(
                "fcvtl {low:v}.4s, {halves:v}.4h",
                "fcvtl2 {high:v}.4s, {halves:v}.8h",
                low = out(vreg) low,
                high = lateout(vreg) high,
                halves = in(vreg) halves,
                options(pure, nomem, nostack, preserves_flags),
            );
        }
        F32x8([low, high])
    }

    #[inline(always)]
    fn from_bf16(_: Token, halves: [u8; 16]) -> Self {
        // SAFETY: the processor has NEON, see the token; there are sixteen bytes.
        F32x8(unsafe {
            let halves = vreinterpretq_u16_u8(vld1q_u8(halves.as_ptr()));
            let (low, high) = (vmovl_u16(vget_low_u16(halves)), vmovl_high_u16(halves));
            [low, high].map(|half| vreinterpretq_f32_u32(vshlq_n_u32::<16>(half)))
        })
    }

    #[inline(always)]
    fn add_codes(sums: Self::Sums, codes: &[u8; 16], factors: &[i16; 16]) -> Self::Sums {
        // SAFETY: the processor has NEON, see the token; there are eight of each in each half.
        let half = |i: usize| unsafe {
            let codes = vmovl_s8(vreinterpret_s8_u8(vld1_u8(codes[8 * i..][..8].as_ptr())));
            let factors = vld1q_s16(factors[8 * i..][..8].as_ptr());
            let low = vmull_s16(vget_low_s16(codes), vget_low_s16(factors));
            vaddq_s32(sums[i], vpaddq_s32(low, vmull_high_s16(codes, factors)))
        };
        [half(0), half(1)]
    }

    #[inline(always)]
    fn add_code_squares(sums: Self::Sums, codes: &[u8; 16]) -> Self::Sums {
        // SAFETY: the processor has NEON, see the token; there are eight bytes in each half.
        let half = |i: usize| unsafe {
            let codes = vmovl_s8(vreinterpret_s8_u8(vld1_u8(codes[8 * i..][..8].as_ptr())));
            let low = vmull_s16(vget_low_s16(codes), vget_low_s16(codes));
            vaddq_s32(sums[i], vpaddq_s32(low, vmull_high_s16(codes, codes)))
        };
        [half(0), half(1)]
    }

    #[inline(always)]
    fn from_u8(_: Token, bytes: [u8; 8]) -> Self {
        // SAFETY: the processor has NEON, see the token; there are eight bytes.
        F32x8(unsafe {
            let words = vmovl_u8(vld1_u8(bytes.as_ptr()));
            [vcvtq_f32_u32(vmovl_u16(vget_low_u16(words))), vcvtq_f32_u32(vmovl_high_u16(words))]
        })
    }

    #[inline(always)]
    fn from_i8(_: Token, bytes: [u8; 8]) -> Self {
        // SAFETY: the processor has NEON, see the token; there are eight bytes.
        F32x8(unsafe {
            let words = vmovl_s8(vreinterpret_s8_u8(vld1_u8(bytes.as_ptr())));
            [vcvtq_f32_s32(vmovl_s16(vget_low_s16(words))), vcvtq_f32_s32(vmovl_high_s16(words))]
        })
    }

    #[inline(always)]
    fn from_fields(_: Token, words: [u32; 2], left: &[u32; 8], right: u32) -> Self {
        // SAFETY: the processor has NEON, see the token; there are four integers in each half.
        let half = |i: usize| unsafe {
            let left = vreinterpretq_s32_u32(vld1q_u32(left[4 * i..][..4].as_ptr()));
            let top = vshlq_s32(vdupq_n_s32(words[i].cast_signed()), left);
            // To the left by a negative number.
            vcvtq_f32_s32(vshlq_s32(top, vdupq_n_s32(-right.cast_signed())))
        };
        F32x8([half(0), half(1)])
    }
}

/// The columns of four rows of four: first pairs of rows, then pairs of pairs.
#[inline(always)]
fn four_columns([a, b, c, d]: [float32x4_t; 4]) -> [float32x4_t; 4] {
    // SAFETY: the processor has NEON, since there are such rows.
    unsafe {
        let (ab0, ab1) = (vzip1q_f32(a, b), vzip2q_f32(a, b));
        let (cd0, cd1) = (vzip1q_f32(c, d), vzip2q_f32(c, d));
        let low = |ab, cd| vcombine_f32(vget_low_f32(ab), vget_low_f32(cd));
        let high = |ab, cd| vcombine_f32(vget_high_f32(ab), vget_high_f32(cd));
        [low(ab0, cd0), high(ab0, cd0), low(ab1, cd1), high(ab1, cd1)]
    }
}
