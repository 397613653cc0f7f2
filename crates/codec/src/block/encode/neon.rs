//! Lanes for processors with NEON.

use std::arch::aarch64::*;

use super::lanes::Lanes;
pub(super) use crate::block::neon::AVAILABLE;

/// Lanes in two vector registers. They are used only where they are [`AVAILABLE`]; so the processor
/// has NEON wherever one of their methods is called.
#[derive(Clone, Copy)]
pub(super) struct Neon(float32x4_t, float32x4_t);

impl Lanes for Neon {
    #[inline(always)]
    fn splat(value: f32) -> Self {
        // SAFETY: the processor has NEON, see the type.
        let four = unsafe { vdupq_n_f32(value) };
        Neon(four, four)
    }

    #[inline(always)]
    fn load(values: &[f32; 8]) -> Self {
        let start = values.as_ptr();
        // SAFETY: the processor has NEON, see the type; eight values can be read.
        unsafe { Neon(vld1q_f32(start), vld1q_f32(start.add(4))) }
    }

    #[inline(always)]
    fn to_array(self) -> [f32; 8] {
        let mut values = [0.0; 8];
        let start = values.as_mut_ptr();
        // SAFETY: the processor has NEON, see the type; there is room for eight values.
        unsafe {
            vst1q_f32(start, self.0);
            vst1q_f32(start.add(4), self.1);
        }
        values
    }

    #[inline(always)]
    fn add(self, other: Self) -> Self {
        // SAFETY: the processor has NEON, see the type.
        unsafe { Neon(vaddq_f32(self.0, other.0), vaddq_f32(self.1, other.1)) }
    }

    #[inline(always)]
    fn sub(self, other: Self) -> Self {
        // SAFETY: the processor has NEON, see the type.
        unsafe { Neon(vsubq_f32(self.0, other.0), vsubq_f32(self.1, other.1)) }
    }

    #[inline(always)]
    fn mul(self, other: Self) -> Self {
        // SAFETY: the processor has NEON, see the type.
        unsafe { Neon(vmulq_f32(self.0, other.0), vmulq_f32(self.1, other.1)) }
    }

    #[inline(always)]
    fn div(self, other: Self) -> Self {
        // SAFETY: the processor has NEON, see the type.
        unsafe { Neon(vdivq_f32(self.0, other.0), vdivq_f32(self.1, other.1)) }
    }

    #[inline(always)]
    fn abs(self) -> Self {
        // SAFETY: the processor has NEON, see the type.
        unsafe { Neon(vabsq_f32(self.0), vabsq_f32(self.1)) }
    }

    // NEON's own minimum and maximum hand on NaN from either side.
    #[inline(always)]
    fn min(self, other: Self) -> Self {
        Self::select_less(self, other, self, other)
    }

    #[inline(always)]
    fn max(self, other: Self) -> Self {
        Self::select_less(other, self, self, other)
    }

    #[inline(always)]
    fn with_sign_of(self, other: Self) -> Self {
        // SAFETY: the processor has NEON, see the type.
        unsafe {
            let sign = vdupq_n_u32(1 << 31);
            Neon(vbslq_f32(sign, other.0, self.0), vbslq_f32(sign, other.1, self.1))
        }
    }

    #[inline(always)]
    fn select_less(a: Self, b: Self, yes: Self, no: Self) -> Self {
        // SAFETY: the processor has NEON, see the type.
        unsafe {
            Neon(
                vbslq_f32(vcltq_f32(a.0, b.0), yes.0, no.0),
                vbslq_f32(vcltq_f32(a.1, b.1), yes.1, no.1),
            )
        }
    }

    #[inline(always)]
    fn transpose(rows: [Self; 8]) -> [Self; 8] {
        let [a, b, c, d, e, f, g, h] = rows;
        let [ac, bd, eg, fh] = [
            four_columns([a.0, b.0, c.0, d.0]),
            four_columns([a.1, b.1, c.1, d.1]),
            four_columns([e.0, f.0, g.0, h.0]),
            four_columns([e.1, f.1, g.1, h.1]),
        ];
        let mut columns = rows;
        for i in 0..4 {
            columns[i] = Neon(ac[i], eg[i]);
            columns[i + 4] = Neon(bd[i], fh[i]);
        }
        columns
    }

    #[inline(always)]
    fn largest(self) -> f32 {
        // SAFETY: the processor has NEON, see the type.
        unsafe { vmaxvq_f32(vmaxq_f32(self.0, self.1)) }
    }

    #[inline(always)]
    fn truncate(values: [Self; 4]) -> [u8; 32] {
        let mut bytes = [0; 32];
        for (part, lanes) in bytes.as_chunks_mut::<8>().0.iter_mut().zip(values) {
            // SAFETY: the processor has NEON, see the type; there is room for eight bytes.
            unsafe {
                let (low, high) = (vcvtq_s32_f32(lanes.0), vcvtq_s32_f32(lanes.1));
                let words = vmovn_high_s32(vmovn_s32(low), high);
                vst1_u8(part.as_mut_ptr(), vreinterpret_u8_s8(vmovn_s16(words)));
            }
        }
        bytes
    }
}

/// The columns of four rows of four: first pairs of rows, then pairs of pairs.
#[inline(always)]
fn four_columns([a, b, c, d]: [float32x4_t; 4]) -> [float32x4_t; 4] {
    // SAFETY: the processor has NEON, see the type.
    unsafe {
        let (ab0, ab1) = (vzip1q_f32(a, b), vzip2q_f32(a, b));
        let (cd0, cd1) = (vzip1q_f32(c, d), vzip2q_f32(c, d));
        let low = |ab, cd| vcombine_f32(vget_low_f32(ab), vget_low_f32(cd));
        let high = |ab, cd| vcombine_f32(vget_high_f32(ab), vget_high_f32(cd));
        [low(ab0, cd0), high(ab0, cd0), low(ab1, cd1), high(ab1, cd1)]
    }
}
