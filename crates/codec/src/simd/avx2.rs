//! Eight lanes with AVX2, FMA and F16C: one register.

use super::level::Guarded;
use super::{Eight, Numbers, Vector};
use std::arch::x86_64::*;

/// Eight values in a register.
#[derive(Clone, Copy, Debug)]
pub(super) struct F32x8(__m256);

/// There is one only where the processor has AVX2, FMA and F16C; and so there are [`F32x8`] and
/// their sums only there, as they take one to make.
#[derive(Clone, Copy, Debug)]
pub(super) struct Token(());

impl Guarded for F32x8 {
    #[inline(always)]
    unsafe fn token() -> Token {
        Token(())
    }
}

/// Methods that only need registers.
macro_rules! lane_by_lane {
    ($($name:ident($first:ident $(, $more:ident)*) => $result:expr;)*) => {$(
        #[inline(always)]
        fn $name(self $(, $more: Self)*) -> Self {
            let $first = self.0;
            $(let $more = $more.0;)*
            // SAFETY: the processor has the instructions, see the token.
            Self(unsafe { $result })
        }
    )*};
}
pub(super) use lane_by_lane;

impl Vector for F32x8 {
    type Token = Token;
    type Sums = __m256i;
    const LANES: usize = 8;
    const REGISTERS: usize = 1;

    #[inline(always)]
    fn splat(_: Token, value: f32) -> Self {
        // SAFETY: the processor has AVX2, see the token.
        F32x8(unsafe { _mm256_set1_ps(value) })
    }

    #[inline(always)]
    fn load(_: Token, from: &[f32]) -> Self {
        // SAFETY: the processor has AVX2, see the token; there are eight values.
        F32x8(unsafe { _mm256_loadu_ps(from[..8].as_ptr()) })
    }

    #[inline(always)]
    fn store(self, to: &mut [f32]) {
        // SAFETY: the processor has AVX2, see the token; there is room for eight values.
        unsafe { _mm256_storeu_ps(to[..8].as_mut_ptr(), self.0) };
    }

    lane_by_lane! {
        add(a, b) => _mm256_add_ps(a, b);
        mul(a, b) => _mm256_mul_ps(a, b);
        max(a, b) => _mm256_max_ps(a, b);
        mul_add(a, by, plus) => _mm256_fmadd_ps(a, by, plus);
        sub(a, b) => _mm256_sub_ps(a, b);
        div(a, b) => _mm256_div_ps(a, b);
        min(a, b) => _mm256_min_ps(a, b);
        abs(a) => _mm256_andnot_ps(_mm256_set1_ps(-0.0), a);
        mul_power_of_two(a, exponents) => {
            let power = _mm256_slli_epi32::<23>(_mm256_castps_si256(exponents));
            _mm256_castsi256_ps(_mm256_add_epi32(_mm256_castps_si256(a), power))
        };
    }

    #[inline(always)]
    fn select_less(a: Self, b: Self, yes: Self, no: Self) -> Self {
        // SAFETY: the processor has AVX2, see the token.
        F32x8(unsafe {
            let less = _mm256_cmp_ps::<_CMP_LT_OQ>(a.0, b.0);
            _mm256_blendv_ps(no.0, yes.0, less)
        })
    }

    #[inline(always)]
    fn any_reaches(self, limit: Self) -> bool {
        // SAFETY: the processor has AVX2, see the token.
        unsafe { _mm256_movemask_ps(_mm256_cmp_ps::<_CMP_NLT_UQ>(self.0, limit.0)) != 0 }
    }

    #[inline(always)]
    fn sums(_: Token, value: i32) -> __m256i {
        // SAFETY: the processor has AVX2, see the token.
        unsafe { _mm256_set1_epi32(value) }
    }

    #[inline(always)]
    fn add_pairs(sums: __m256i, pair: [i16; 2], line: &[[i16; 2]]) -> __m256i {
        let line = line[..8].as_ptr().cast();
        // SAFETY: the processor has AVX2, see the token; a line is 32 bytes.
        unsafe {
            let pair = _mm256_set1_epi32(word(pair));
            _mm256_add_epi32(sums, _mm256_madd_epi16(pair, _mm256_loadu_si256(line)))
        }
    }

    #[inline(always)]
    fn count_less(counts: __m256i, a: Self, b: Self) -> __m256i {
        // SAFETY: the processor has AVX2, see the token.
        unsafe {
            // All bits, where it holds, are minus one.
            let less = _mm256_cmp_ps::<_CMP_LT_OQ>(a.0, b.0);
            _mm256_sub_epi32(counts, _mm256_castps_si256(less))
        }
    }

    #[inline(always)]
    fn from_sums(sums: __m256i) -> Self {
        // SAFETY: the processor has AVX2, see the token.
        F32x8(unsafe { _mm256_cvtepi32_ps(sums) })
    }

    #[inline(always)]
    fn add_moments(self, sums: &mut [f64], squares: &mut [f64]) {
        let (sums, squares) = (&mut sums[..8], &mut squares[..8]);
        // SAFETY: the processor has AVX2, see the token; there are eight doubles of each.
        unsafe {
            let (low, high) = (_mm256_castps256_ps128(self.0), _mm256_extractf128_ps::<1>(self.0));
            for (half, at) in [(low, 0), (high, 4)] {
                let value = _mm256_cvtps_pd(half);
                let (sum, square) = (sums.as_mut_ptr().add(at), squares.as_mut_ptr().add(at));
                _mm256_storeu_pd(sum, _mm256_add_pd(_mm256_loadu_pd(sum), value));
                // The square is exact, so that rounding once is rounding its sum.
                let more = _mm256_fmadd_pd(value, value, _mm256_loadu_pd(square));
                _mm256_storeu_pd(square, more);
            }
        }
    }
}

/// A pair as it lies in memory.
#[inline(always)]
pub(super) fn word([first, second]: [i16; 2]) -> i32 {
    let ([a, b], [c, d]) = (first.to_ne_bytes(), second.to_ne_bytes());
    i32::from_ne_bytes([a, b, c, d])
}

impl Eight for F32x8 {
    lane_by_lane! {
        with_sign_of(a, b) => _mm256_or_ps(a, _mm256_and_ps(_mm256_set1_ps(-0.0), b));
        fused_mul_add(a, by, plus) => _mm256_fmadd_ps(a, by, plus);
    }

    #[inline(always)]
    fn load_padded(_: Token, from: &[f32]) -> Self {
        // Read rather than made: filling an array would be a call each time.
        const MASKS: [i32; 16] = [-1, -1, -1, -1, -1, -1, -1, -1, 0, 0, 0, 0, 0, 0, 0, 0];
        let mask = &MASKS[8 - from.len()..][..8];
        // SAFETY: the processor has AVX2, see the token; there are eight integers, and of the
        // values only as many are read as there are.
        F32x8(unsafe {
            let mask = _mm256_loadu_si256(mask.as_ptr().cast());
            _mm256_maskload_ps(from.as_ptr(), mask)
        })
    }

    #[inline(always)]
    fn sum(self) -> f32 {
        // SAFETY: the processor has AVX2, see the token.
        unsafe {
            let four = halves_added(self.0);
            let two = _mm_add_ps(four, _mm_movehl_ps(four, four));
            _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)))
        }
    }

    #[inline(always)]
    fn sum_each<const N: usize>(vectors: [Self; N]) -> [f32; N] {
        let mut sums = [0.0; N];
        if let (&[a, b, c, d], Some(sums)) = (&vectors[..], sums.first_chunk_mut::<4>()) {
            // SAFETY: the processor has AVX2, see the token; there is room for four values.
            unsafe {
                // Four sums at once: the lanes of one register each become lanes of all.
                let (a, b) = (halves_added(a.0), halves_added(b.0));
                let (c, d) = (halves_added(c.0), halves_added(d.0));
                let ab = _mm_add_ps(_mm_unpacklo_ps(a, b), _mm_unpackhi_ps(a, b));
                let cd = _mm_add_ps(_mm_unpacklo_ps(c, d), _mm_unpackhi_ps(c, d));
                let all = _mm_add_ps(_mm_movelh_ps(ab, cd), _mm_movehl_ps(cd, ab));
                _mm_storeu_ps(sums.as_mut_ptr(), all);
            }
        } else {
            for (sum, vector) in sums.iter_mut().zip(vectors) {
                *sum = vector.sum();
            }
        }
        sums
    }

    #[inline(always)]
    fn largest(self) -> f32 {
        // SAFETY: the processor has AVX2, see the token.
        unsafe {
            let four =
                _mm_max_ps(_mm256_castps256_ps128(self.0), _mm256_extractf128_ps::<1>(self.0));
            let two = _mm_max_ps(four, _mm_movehl_ps(four, four));
            _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)))
        }
    }

    #[inline(always)]
    fn transpose(rows: [Self; 8]) -> [Self; 8] {
        let [a, b, c, d, e, f, g, h] = rows;
        // SAFETY: the processor has AVX2, see the token.
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
                columns[i] = F32x8(_mm256_permute2f128_ps::<0x20>(top[i], bottom[i]));
                columns[i + 4] = F32x8(_mm256_permute2f128_ps::<0x31>(top[i], bottom[i]));
            }
            columns
        }
    }

    #[inline(always)]
    fn truncate([a, b, c, d]: [Self; 4]) -> [u8; 32] {
        let mut bytes = [0; 32];
        // SAFETY: the processor has AVX2, see the token; there is room for 32 bytes.
        unsafe {
            let low = _mm256_packs_epi32(_mm256_cvttps_epi32(a.0), _mm256_cvttps_epi32(b.0));
            let high = _mm256_packs_epi32(_mm256_cvttps_epi32(c.0), _mm256_cvttps_epi32(d.0));
            // Packing works in halves of 128 bits and leaves groups of four bytes out of order.
            let order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
            let packed = _mm256_permutevar8x32_epi32(_mm256_packs_epi16(low, high), order);
            _mm256_storeu_si256(bytes.as_mut_ptr().cast(), packed);
        }
        bytes
    }

    #[inline(always)]
    fn round(self) -> [i16; 8] {
        let mut rounded = [0; 8];
        // SAFETY: the processor has AVX2, see the token; there is room for sixteen bytes.
        unsafe {
            let integers = _mm256_cvtps_epi32(self.0);
            let (low, high) =
                (_mm256_castsi256_si128(integers), _mm256_extracti128_si256::<1>(integers));
            _mm_storeu_si128(rounded.as_mut_ptr().cast(), _mm_packs_epi32(low, high));
        }
        rounded
    }

    #[inline(always)]
    fn from_f16(_: Token, halves: [u8; 16]) -> Self {
        // SAFETY: the processor has AVX2 and F16C, see the token; there are sixteen bytes.
        F32x8(unsafe { _mm256_cvtph_ps(_mm_loadu_si128(halves.as_ptr().cast())) })
    }

    #[inline(always)]
    fn from_bf16(_: Token, halves: [u8; 16]) -> Self {
        // SAFETY: the processor has AVX2, see the token; there are sixteen bytes.
        F32x8(unsafe {
            let halves = _mm256_cvtepu16_epi32(_mm_loadu_si128(halves.as_ptr().cast()));
            _mm256_castsi256_ps(_mm256_slli_epi32::<16>(halves))
        })
    }

    #[inline(always)]
    fn add_codes(sums: __m256i, codes: &[u8; 16], factors: &[i16; 16]) -> __m256i {
        // SAFETY: the processor has AVX2, see the token; there are sixteen of each.
        unsafe {
            let codes = _mm256_cvtepi8_epi16(_mm_loadu_si128(codes.as_ptr().cast()));
            let factors = _mm256_loadu_si256(factors.as_ptr().cast());
            _mm256_add_epi32(sums, _mm256_madd_epi16(codes, factors))
        }
    }

    #[inline(always)]
    fn add_code_squares(sums: __m256i, codes: &[u8; 16]) -> __m256i {
        // SAFETY: the processor has AVX2, see the token; there are sixteen bytes.
        unsafe {
            let codes = _mm256_cvtepi8_epi16(_mm_loadu_si128(codes.as_ptr().cast()));
            _mm256_add_epi32(sums, _mm256_madd_epi16(codes, codes))
        }
    }

    #[inline(always)]
    fn from_u8(_: Token, bytes: [u8; 8]) -> Self {
        // SAFETY: the processor has AVX2, see the token; there are eight bytes.
        F32x8(unsafe {
            let bytes = _mm_loadl_epi64(bytes.as_ptr().cast());
            _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(bytes))
        })
    }

    #[inline(always)]
    fn from_i8(_: Token, bytes: [u8; 8]) -> Self {
        // SAFETY: the processor has AVX2, see the token; there are eight bytes.
        F32x8(unsafe {
            let bytes = _mm_loadl_epi64(bytes.as_ptr().cast());
            _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(bytes))
        })
    }

    #[inline(always)]
    fn from_fields(_: Token, words: [u32; 2], left: &[u32; 8], right: u32) -> Self {
        let [low, high] = words.map(u32::cast_signed);
        // SAFETY: the processor has AVX2, see the token; there are eight integers.
        F32x8(unsafe {
            let (low, high) = (_mm256_set1_epi32(low), _mm256_set1_epi32(high));
            let words = _mm256_blend_epi32::<0b1111_0000>(low, high);
            let top = _mm256_sllv_epi32(words, _mm256_loadu_si256(left.as_ptr().cast()));
            let right = _mm256_set1_epi32(right.cast_signed());
            _mm256_cvtepi32_ps(_mm256_srav_epi32(top, right))
        })
    }
}

impl Numbers for F32x8 {
    type Halves = __m256i;
    type Quarters = __m256i;

    #[inline(always)]
    fn multiplied(self, by: Self, plus: Self) -> Self {
        self.fused_mul_add(by, plus)
    }

    #[inline(always)]
    fn no_halves(_: Token) -> __m256i {
        // SAFETY: the processor has AVX2, see the token.
        unsafe { _mm256_setzero_si256() }
    }

    #[inline(always)]
    fn no_quarters(token: Token) -> __m256i {
        Self::no_halves(token)
    }

    #[inline(always)]
    fn lower_halves(self, other: Self) -> __m256i {
        // SAFETY: the processor has AVX2, see the token.
        unsafe {
            let (even, odd) = (_mm256_castps_si256(self.0), _mm256_castps_si256(other.0));
            _mm256_blend_epi16::<0b1010_1010>(even, _mm256_slli_epi32::<16>(odd))
        }
    }

    #[inline(always)]
    fn upper_bits<const SHIFT: i32>(a: __m256i, b: __m256i) -> __m256i {
        // SAFETY: the processor has AVX2, see the token.
        unsafe {
            let (a, b) = (_mm256_srli_epi16(a, SHIFT), _mm256_srli_epi16(b, SHIFT));
            _mm256_packus_epi16(a, b)
        }
    }

    #[inline(always)]
    fn add_from(counts: __m256i, table: &[u8; 16], places: __m256i) -> __m256i {
        // SAFETY: the processor has AVX2, see the token; there are sixteen bytes.
        unsafe {
            let table = _mm256_broadcastsi128_si256(_mm_loadu_si128(table.as_ptr().cast()));
            _mm256_add_epi8(counts, _mm256_shuffle_epi8(table, places))
        }
    }

    #[inline(always)]
    fn add_lower(counts: __m256i, a: __m256i, b: __m256i, limit: u16) -> __m256i {
        // SAFETY: the processor has AVX2, see the token.
        unsafe {
            let limit = _mm256_set1_epi16(limit.cast_signed());
            // All bits, where it holds, are minus one.
            let counts = _mm256_sub_epi16(counts, _mm256_cmpgt_epi16(limit, a));
            _mm256_sub_epi16(counts, _mm256_cmpgt_epi16(limit, b))
        }
    }

    #[inline(always)]
    fn are_among<const BITS: i32>(
        numbers: [__m256i; 2],
        lowest: u16,
        (first, span): (u16, u16),
    ) -> u64 {
        // SAFETY: the processor has AVX2, see the token.
        unsafe {
            let (lowest, first) = (lowest.cast_signed(), first.cast_signed());
            let (lowest, first) = (_mm256_set1_epi16(lowest), _mm256_set1_epi16(first));
            let span = _mm256_set1_epi16(span.cast_signed());
            let mask = _mm256_set1_epi16((1 << BITS) - 1);
            let mut found = numbers;
            // Not in a closure, which may be a call, to a function that has no such instructions.
            for found in &mut found {
                // How far above they are, and nothing if they are not.
                let low = _mm256_subs_epu16(_mm256_and_si256(*found, mask), lowest);
                let far = _mm256_subs_epu16(_mm256_sub_epi16(*found, first), span);
                *found = _mm256_cmpeq_epi16(_mm256_min_epu16(low, far), _mm256_setzero_si256());
            }
            // Packing works in halves of 128 bits and leaves quarters out of order.
            let packed = _mm256_packs_epi16(found[0], found[1]);
            let packed = _mm256_permute4x64_epi64::<0b11_01_10_00>(packed);
            _mm256_movemask_epi8(packed).cast_unsigned().into()
        }
    }

    #[inline(always)]
    fn store_halves(halves: __m256i, to: &mut [u16]) {
        // SAFETY: the processor has AVX2, see the token; there is room for 32 bytes.
        unsafe { _mm256_storeu_si256(to[..16].as_mut_ptr().cast(), halves) };
    }

    #[inline(always)]
    fn store_quarters(quarters: __m256i, to: &mut [u8]) {
        // SAFETY: the processor has AVX2, see the token; there is room for 32 bytes.
        unsafe { _mm256_storeu_si256(to[..32].as_mut_ptr().cast(), quarters) };
    }
}

/// The sums of lanes four apart.
///
/// # Safety
///
/// The processor has AVX2.
#[inline(always)]
unsafe fn halves_added(eight: __m256) -> __m128 {
    // SAFETY: the caller's promise.
    unsafe { _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps::<1>(eight)) }
}
