//! Sixteen lanes with AVX-512: one register.

use super::avx2::{lane_by_lane, word};
use super::level::Guarded;
use super::{Bf16Products, ByteProducts, Numbers, Vector};
use std::arch::x86_64::*;

/// What a vector needs beyond AVX-512F and BW: the products of bytes, and sums of pairs in one step.
pub(super) const VNNI: u8 = 1;
/// What a vector needs beyond AVX-512F and BW: the products of bf16.
pub(super) const BF16: u8 = 2;

/// Sixteen values in a register.
#[derive(Clone, Copy, Debug)]
pub(super) struct F32x16<const EXTENSION: u8 = 0>(__m512);

/// There is one only where the processor has AVX-512F, BW and the extension; and so there are
/// [`F32x16`] and their sums only there, as they take one to make.
#[derive(Clone, Copy, Debug)]
pub(super) struct Token<const EXTENSION: u8>(());

impl<const EXTENSION: u8> Guarded for F32x16<EXTENSION> {
    #[inline(always)]
    unsafe fn token() -> Token<EXTENSION> {
        Token(())
    }
}

impl<const EXTENSION: u8> Vector for F32x16<EXTENSION> {
    type Token = Token<EXTENSION>;
    type Sums = __m512i;
    const LANES: usize = 16;
    const REGISTERS: usize = 1;

    #[inline(always)]
    fn splat(_: Self::Token, value: f32) -> Self {
        // SAFETY: the processor has AVX-512, see the token.
        F32x16(unsafe { _mm512_set1_ps(value) })
    }

    #[inline(always)]
    fn load(_: Self::Token, from: &[f32]) -> Self {
        // SAFETY: the processor has AVX-512, see the token; there are sixteen values.
        F32x16(unsafe { _mm512_loadu_ps(from[..16].as_ptr()) })
    }

    #[inline(always)]
    fn store(self, to: &mut [f32]) {
        // SAFETY: the processor has AVX-512, see the token; there is room for sixteen values.
        unsafe { _mm512_storeu_ps(to[..16].as_mut_ptr(), self.0) };
    }

    lane_by_lane! {
        add(a, b) => _mm512_add_ps(a, b);
        mul(a, b) => _mm512_mul_ps(a, b);
        max(a, b) => _mm512_max_ps(a, b);
        mul_add(a, by, plus) => _mm512_fmadd_ps(a, by, plus);
        sub(a, b) => _mm512_sub_ps(a, b);
        div(a, b) => _mm512_div_ps(a, b);
        min(a, b) => _mm512_min_ps(a, b);
        abs(a) => _mm512_abs_ps(a);
        mul_power_of_two(a, exponents) => {
            let power = _mm512_slli_epi32::<23>(_mm512_castps_si512(exponents));
            _mm512_castsi512_ps(_mm512_add_epi32(_mm512_castps_si512(a), power))
        };
    }

    #[inline(always)]
    fn select_less(a: Self, b: Self, yes: Self, no: Self) -> Self {
        // SAFETY: the processor has AVX-512, see the token.
        F32x16(unsafe {
            let less = _mm512_cmp_ps_mask::<_CMP_LT_OQ>(a.0, b.0);
            _mm512_mask_blend_ps(less, no.0, yes.0)
        })
    }

    #[inline(always)]
    fn any_reaches(self, limit: Self) -> bool {
        // SAFETY: the processor has AVX-512, see the token.
        unsafe { _mm512_cmp_ps_mask::<_CMP_NLT_UQ>(self.0, limit.0) != 0 }
    }

    #[inline(always)]
    fn sums(_: Self::Token, value: i32) -> __m512i {
        // SAFETY: the processor has AVX-512, see the token.
        unsafe { _mm512_set1_epi32(value) }
    }

    #[inline(always)]
    fn add_pairs(sums: __m512i, pair: [i16; 2], line: &[[i16; 2]]) -> __m512i {
        let line = line[..16].as_ptr().cast();
        // SAFETY: the processor has AVX-512 and the extension, see the token; a line is 64 bytes.
        unsafe {
            let (pair, line) = (_mm512_set1_epi32(word(pair)), _mm512_loadu_si512(line));
            match EXTENSION {
                VNNI => _mm512_dpwssd_epi32(sums, pair, line),
                _ => _mm512_add_epi32(sums, _mm512_madd_epi16(pair, line)),
            }
        }
    }

    #[inline(always)]
    fn count_less(counts: __m512i, a: Self, b: Self) -> __m512i {
        // SAFETY: the processor has AVX-512, see the token.
        unsafe {
            let less = _mm512_cmp_ps_mask::<_CMP_LT_OQ>(a.0, b.0);
            _mm512_mask_add_epi32(counts, less, counts, _mm512_set1_epi32(1))
        }
    }

    #[inline(always)]
    fn from_sums(sums: __m512i) -> Self {
        // SAFETY: the processor has AVX-512, see the token.
        F32x16(unsafe { _mm512_cvtepi32_ps(sums) })
    }

    #[inline(always)]
    fn add_moments(self, sums: &mut [f64], squares: &mut [f64]) {
        let (sums, squares) = (&mut sums[..16], &mut squares[..16]);
        // SAFETY: the processor has AVX-512, see the token; there are sixteen doubles of each.
        unsafe {
            let low = _mm512_castps512_ps256(self.0);
            let high = _mm512_extractf64x4_pd::<1>(_mm512_castps_pd(self.0));
            for (half, at) in [(low, 0), (_mm256_castpd_ps(high), 8)] {
                let value = _mm512_cvtps_pd(half);
                let (sum, square) = (sums.as_mut_ptr().add(at), squares.as_mut_ptr().add(at));
                _mm512_storeu_pd(sum, _mm512_add_pd(_mm512_loadu_pd(sum), value));
                // The square is exact, so that rounding once is rounding its sum.
                let more = _mm512_fmadd_pd(value, value, _mm512_loadu_pd(square));
                _mm512_storeu_pd(square, more);
            }
        }
    }
}

impl Numbers for F32x16 {
    type Halves = __m512i;
    type Quarters = __m512i;

    #[inline(always)]
    fn multiplied(self, by: Self, plus: Self) -> Self {
        self.mul_add(by, plus)
    }

    #[inline(always)]
    fn no_halves(_: Self::Token) -> __m512i {
        // SAFETY: the processor has AVX-512, see the token.
        unsafe { _mm512_setzero_si512() }
    }

    #[inline(always)]
    fn no_quarters(token: Self::Token) -> __m512i {
        Self::no_halves(token)
    }

    #[inline(always)]
    fn lower_halves(self, other: Self) -> __m512i {
        // SAFETY: the processor has AVX-512, see the token.
        unsafe {
            let (even, odd) = (_mm512_castps_si512(self.0), _mm512_castps_si512(other.0));
            _mm512_mask_blend_epi16(0xAAAA_AAAA, even, _mm512_slli_epi32::<16>(odd))
        }
    }

    #[inline(always)]
    fn upper_bits<const SHIFT: i32>(a: __m512i, b: __m512i) -> __m512i {
        // SAFETY: the processor has AVX-512, see the token.
        unsafe {
            let by = _mm_cvtsi32_si128(SHIFT);
            _mm512_packus_epi16(_mm512_srl_epi16(a, by), _mm512_srl_epi16(b, by))
        }
    }

    #[inline(always)]
    fn add_from(counts: __m512i, table: &[u8; 16], places: __m512i) -> __m512i {
        // SAFETY: the processor has AVX-512, see the token; there are sixteen bytes.
        unsafe {
            let table = _mm512_broadcast_i32x4(_mm_loadu_si128(table.as_ptr().cast()));
            _mm512_add_epi8(counts, _mm512_shuffle_epi8(table, places))
        }
    }

    #[inline(always)]
    fn add_lower(counts: __m512i, a: __m512i, b: __m512i, limit: u16) -> __m512i {
        // SAFETY: the processor has AVX-512, see the token.
        unsafe {
            let (limit, one) = (_mm512_set1_epi16(limit.cast_signed()), _mm512_set1_epi16(1));
            let (a, b) = (_mm512_cmpgt_epi16_mask(limit, a), _mm512_cmpgt_epi16_mask(limit, b));
            let counts = _mm512_mask_add_epi16(counts, a, counts, one);
            _mm512_mask_add_epi16(counts, b, counts, one)
        }
    }

    #[inline(always)]
    fn are_among<const BITS: i32>(
        numbers: [__m512i; 2],
        lowest: u16,
        (first, span): (u16, u16),
    ) -> u64 {
        // SAFETY: the processor has AVX-512, see the token.
        unsafe {
            let (lowest, first) = (lowest.cast_signed(), first.cast_signed());
            let (lowest, first) = (_mm512_set1_epi16(lowest), _mm512_set1_epi16(first));
            let span = _mm512_set1_epi16(span.cast_signed());
            let mask = _mm512_set1_epi16((1 << BITS) - 1);
            let mut found = 0;
            for (half, numbers) in numbers.into_iter().enumerate() {
                // How far above they are, and nothing if they are not.
                let low = _mm512_subs_epu16(_mm512_and_si512(numbers, mask), lowest);
                let far = _mm512_subs_epu16(_mm512_sub_epi16(numbers, first), span);
                let least = _mm512_min_epu16(low, far);
                found |= u64::from(_mm512_testn_epi16_mask(least, least)) << (32 * half);
            }
            found
        }
    }

    #[inline(always)]
    fn store_halves(halves: __m512i, to: &mut [u16]) {
        // SAFETY: the processor has AVX-512, see the token; there is room for 64 bytes.
        unsafe { _mm512_storeu_si512(to[..32].as_mut_ptr().cast(), halves) };
    }

    #[inline(always)]
    fn store_quarters(quarters: __m512i, to: &mut [u8]) {
        // SAFETY: the processor has AVX-512, see the token; there is room for 64 bytes.
        unsafe { _mm512_storeu_si512(to[..64].as_mut_ptr().cast(), quarters) };
    }
}

impl ByteProducts for F32x16<VNNI> {
    #[inline(always)]
    fn add_fours(sums: __m512i, line: &[[i8; 4]], four: [u8; 4]) -> __m512i {
        let line = line[..16].as_ptr().cast();
        let four = i32::from_ne_bytes(four);
        // SAFETY: the processor has AVX-512 and VNNI, see the token; a line is 64 bytes.
        unsafe { _mm512_dpbusd_epi32(sums, _mm512_set1_epi32(four), _mm512_loadu_si512(line)) }
    }

    #[inline(always)]
    fn extremes(least: Self, most: Self) -> (f32, f32) {
        // SAFETY: the processor has AVX-512, see the token.
        unsafe { (_mm512_reduce_min_ps(least.0), _mm512_reduce_max_ps(most.0)) }
    }

    #[inline(always)]
    fn last_bytes(four: [Self; 4], to: &mut [u8]) {
        // SAFETY: the processor has AVX-512, see the token; there is room for 64 bytes.
        unsafe {
            let byte = _mm512_set1_epi32(0xFF);
            let mut last = [byte; 4];
            // Not in a closure: see `are_among` of eight lanes.
            for (last, lanes) in last.iter_mut().zip(four) {
                *last = _mm512_and_si512(_mm512_castps_si512(lanes.0), byte);
            }
            // Four of each in each quarter.
            let low = _mm512_packus_epi32(last[0], last[1]);
            let bytes = _mm512_packus_epi16(low, _mm512_packus_epi32(last[2], last[3]));
            let order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
            let bytes = _mm512_permutexvar_epi32(order, bytes);
            _mm512_storeu_si512(to[..64].as_mut_ptr().cast(), bytes);
        }
    }
}

impl Bf16Products for F32x16<BF16> {
    #[inline(always)]
    fn add_bf16_pairs(self, pair: [i16; 2], line: &[[i16; 2]]) -> Self {
        let line = line[..16].as_ptr().cast();
        let pair = word(pair);
        // SAFETY: the processor has AVX-512 and BF16, see the token; a line is 64 bytes, and
        // sixteen pairs of bf16 are as many in either type.
        F32x16(unsafe {
            let bf16 = |pairs| std::mem::transmute::<__m512i, __m512bh>(pairs);
            let (line, pair) = (_mm512_loadu_si512(line), _mm512_set1_epi32(pair));
            _mm512_dpbf16_ps(self.0, bf16(pair), bf16(line))
        })
    }

    #[inline(always)]
    fn to_bf16(self, to: &mut [i16]) {
        // SAFETY: the processor has AVX-512 and BF16, see the token; sixteen bf16 are 32 bytes, for which
        // there is room.
        unsafe {
            let rounded = std::mem::transmute::<__m256bh, __m256i>(_mm512_cvtneps_pbh(self.0));
            _mm256_storeu_si256(to[..16].as_mut_ptr().cast(), rounded);
        }
    }
}
