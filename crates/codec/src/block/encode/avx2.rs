//! The encoders for processors with AVX2.

use std::arch::x86_64::*;

use super::lanes::Lanes;
use super::{Recipe, ScaleTooLarge};

#[target_feature(enable = "avx2")]
pub(super) fn choose_scales(
    recipe: &Recipe<'_>,
    row: &[f32],
    scales: &mut [u8],
    sub_scales: &mut [u8],
) -> Result<(), ScaleTooLarge> {
    recipe.choose_scales_with::<Avx2>(row, scales, sub_scales)
}

#[target_feature(enable = "avx2")]
pub(super) fn encode(
    recipe: &Recipe<'_>,
    row: &[f32],
    scales: &mut [u8],
    sub_scales: &mut [u8],
    codes: &mut [u8],
) -> Result<(), ScaleTooLarge> {
    recipe.encode_with::<Avx2>(row, scales, sub_scales, codes)
}

#[target_feature(enable = "avx2")]
pub(super) fn make_codes(
    recipe: &Recipe<'_>,
    row: &[f32],
    scales: &[u8],
    sub_scales: &[u8],
    codes: &mut [u8],
) {
    recipe.make_codes_with::<Avx2>(row, scales, sub_scales, codes);
}

/// Lanes in a vector register. They are used by the functions above only, below which everything is
/// inlined; so the processor has AVX2 wherever one of their methods is called.
#[derive(Clone, Copy)]
pub(super) struct Avx2(__m256);

impl Lanes for Avx2 {
    #[inline(always)]
    fn splat(value: f32) -> Self {
        // SAFETY: the processor has AVX2, see the type.
        Avx2(unsafe { _mm256_set1_ps(value) })
    }

    #[inline(always)]
    fn load(values: &[f32; 8]) -> Self {
        // SAFETY: the processor has AVX2, see the type; eight values can be read.
        Avx2(unsafe { _mm256_loadu_ps(values.as_ptr()) })
    }

    #[inline(always)]
    fn to_array(self) -> [f32; 8] {
        let mut values = [0.0; 8];
        // SAFETY: the processor has AVX2, see the type; there is room for eight values.
        unsafe { _mm256_storeu_ps(values.as_mut_ptr(), self.0) };
        values
    }

    #[inline(always)]
    fn add(self, other: Self) -> Self {
        // SAFETY: the processor has AVX2, see the type.
        Avx2(unsafe { _mm256_add_ps(self.0, other.0) })
    }

    #[inline(always)]
    fn sub(self, other: Self) -> Self {
        // SAFETY: the processor has AVX2, see the type.
        Avx2(unsafe { _mm256_sub_ps(self.0, other.0) })
    }

    #[inline(always)]
    fn mul(self, other: Self) -> Self {
        // SAFETY: the processor has AVX2, see the type.
        Avx2(unsafe { _mm256_mul_ps(self.0, other.0) })
    }

    #[inline(always)]
    fn div(self, other: Self) -> Self {
        // SAFETY: the processor has AVX2, see the type.
        Avx2(unsafe { _mm256_div_ps(self.0, other.0) })
    }

    #[inline(always)]
    fn abs(self) -> Self {
        // SAFETY: the processor has AVX2, see the type.
        Avx2(unsafe { _mm256_andnot_ps(_mm256_set1_ps(-0.0), self.0) })
    }

    #[inline(always)]
    fn min(self, other: Self) -> Self {
        // SAFETY: the processor has AVX2, see the type.
        Avx2(unsafe { _mm256_min_ps(self.0, other.0) })
    }

    #[inline(always)]
    fn max(self, other: Self) -> Self {
        // SAFETY: the processor has AVX2, see the type.
        Avx2(unsafe { _mm256_max_ps(self.0, other.0) })
    }

    #[inline(always)]
    fn with_sign_of(self, other: Self) -> Self {
        // SAFETY: the processor has AVX2, see the type.
        Avx2(unsafe { _mm256_or_ps(self.0, _mm256_and_ps(_mm256_set1_ps(-0.0), other.0)) })
    }

    #[inline(always)]
    fn select_less(a: Self, b: Self, yes: Self, no: Self) -> Self {
        // SAFETY: the processor has AVX2, see the type.
        unsafe {
            let less = _mm256_cmp_ps::<_CMP_LT_OQ>(a.0, b.0);
            Avx2(_mm256_blendv_ps(no.0, yes.0, less))
        }
    }

    #[inline(always)]
    fn transpose(rows: [Self; 8]) -> [Self; 8] {
        let [a, b, c, d, e, f, g, h] = rows;
        // SAFETY: the processor has AVX2, see the type.
        unsafe {
            // Pairs of rows, then fours, within halves of four columns; last the halves.
            let (ab0, ab1) = (_mm256_unpacklo_ps(a.0, b.0), _mm256_unpackhi_ps(a.0, b.0));
            let (cd0, cd1) = (_mm256_unpacklo_ps(c.0, d.0), _mm256_unpackhi_ps(c.0, d.0));
            let (ef0, ef1) = (_mm256_unpacklo_ps(e.0, f.0), _mm256_unpackhi_ps(e.0, f.0));
            let (gh0, gh1) = (_mm256_unpacklo_ps(g.0, h.0), _mm256_unpackhi_ps(g.0, h.0));
            const LOW: i32 = 0b01_00_01_00;
            const HIGH: i32 = 0b11_10_11_10;
            let top = [
                _mm256_shuffle_ps::<LOW>(ab0, cd0),
                _mm256_shuffle_ps::<HIGH>(ab0, cd0),
                _mm256_shuffle_ps::<LOW>(ab1, cd1),
                _mm256_shuffle_ps::<HIGH>(ab1, cd1),
            ];
            let bottom = [
                _mm256_shuffle_ps::<LOW>(ef0, gh0),
                _mm256_shuffle_ps::<HIGH>(ef0, gh0),
                _mm256_shuffle_ps::<LOW>(ef1, gh1),
                _mm256_shuffle_ps::<HIGH>(ef1, gh1),
            ];
            let mut columns = rows;
            for i in 0..4 {
                columns[i] = Avx2(_mm256_permute2f128_ps::<0x20>(top[i], bottom[i]));
                columns[i + 4] = Avx2(_mm256_permute2f128_ps::<0x31>(top[i], bottom[i]));
            }
            columns
        }
    }

    #[inline(always)]
    fn largest(self) -> f32 {
        // SAFETY: the processor has AVX2, see the type.
        unsafe {
            let four =
                _mm_max_ps(_mm256_castps256_ps128(self.0), _mm256_extractf128_ps::<1>(self.0));
            let two = _mm_max_ps(four, _mm_movehl_ps(four, four));
            _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)))
        }
    }

    #[inline(always)]
    fn truncate(values: [Self; 4]) -> [u8; 32] {
        let mut bytes = [0; 32];
        // SAFETY: the processor has AVX2, see the type; there is room for 32 bytes.
        unsafe {
            let [a, b, c, d] = values;
            let low = _mm256_packs_epi32(_mm256_cvttps_epi32(a.0), _mm256_cvttps_epi32(b.0));
            let high = _mm256_packs_epi32(_mm256_cvttps_epi32(c.0), _mm256_cvttps_epi32(d.0));
            // Packing works in halves of 128 bits and leaves groups of four bytes out of order.
            let order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
            let packed = _mm256_permutevar8x32_epi32(_mm256_packs_epi16(low, high), order);
            _mm256_storeu_si256(bytes.as_mut_ptr().cast(), packed);
        }
        bytes
    }
}
