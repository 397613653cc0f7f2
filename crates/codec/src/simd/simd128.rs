//! Eight lanes with simd128 of WebAssembly: two registers. A module is compiled with it or without,
//! so its functions are safe but for loads and stores.

use super::level::Guarded;
use super::numbers::numbers_in_arrays;
use super::plain::{floats_of_halves, fused, zero_padded};
use super::{Eight, Vector};
use std::arch::wasm32::*;

/// Eight values in two registers.
#[derive(Clone, Copy, Debug)]
pub(super) struct F32x8([v128; 2]);

/// There is one only in modules that were compiled with simd128.
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
                $result
            });
            F32x8([low, high])
        }
    )*};
}

impl Vector for F32x8 {
    type Token = Token;
    type Sums = [v128; 2];
    const LANES: usize = 8;
    const REGISTERS: usize = 2;

    #[inline(always)]
    fn splat(_: Token, value: f32) -> Self {
        F32x8([f32x4_splat(value); 2])
    }

    #[inline(always)]
    fn load(_: Token, from: &[f32]) -> Self {
        let from = from[..8].as_ptr().cast::<v128>();
        // SAFETY: there are eight values, 32 bytes.
        F32x8(unsafe { [v128_load(from), v128_load(from.add(1))] })
    }

    #[inline(always)]
    fn store(self, to: &mut [f32]) {
        let to = to[..8].as_mut_ptr().cast::<v128>();
        // SAFETY: there is room for eight values, 32 bytes.
        unsafe {
            v128_store(to, self.0[0]);
            v128_store(to.add(1), self.0[1]);
        }
    }

    lane_by_lane! {
        add(a, b) => f32x4_add(a, b);
        mul(a, b) => f32x4_mul(a, b);
        // As in plain Rust: `b < a ? a : b`.
        max(a, b) => f32x4_pmax(b, a);
        mul_add(a, by, plus) => f32x4_add(f32x4_mul(a, by), plus);
        sub(a, b) => f32x4_sub(a, b);
        div(a, b) => f32x4_div(a, b);
        min(a, b) => f32x4_pmin(b, a);
        abs(a) => f32x4_abs(a);
        mul_power_of_two(a, exponents) => i32x4_add(a, i32x4_shl(exponents, 23));
    }

    #[inline(always)]
    fn select_less(a: Self, b: Self, yes: Self, no: Self) -> Self {
        let half = |i: usize| v128_bitselect(yes.0[i], no.0[i], f32x4_lt(a.0[i], b.0[i]));
        F32x8([half(0), half(1)])
    }

    #[inline(always)]
    fn any_reaches(self, limit: Self) -> bool {
        let less = |i: usize| f32x4_lt(self.0[i], limit.0[i]);
        !u32x4_all_true(v128_and(less(0), less(1)))
    }

    #[inline(always)]
    fn sums(_: Token, value: i32) -> Self::Sums {
        [i32x4_splat(value); 2]
    }

    #[inline(always)]
    fn add_pairs(sums: Self::Sums, pair: [i16; 2], line: &[[i16; 2]]) -> Self::Sums {
        let line = line[..8].as_ptr().cast::<v128>();
        let pair = i32x4_splat(i32::from(pair[1]) << 16 | i32::from(pair[0].cast_unsigned()));
        // SAFETY: a line is eight pairs, 32 bytes.
        let (low, high) = unsafe { (v128_load(line), v128_load(line.add(1))) };
        [
            i32x4_add(sums[0], i32x4_dot_i16x8(pair, low)),
            i32x4_add(sums[1], i32x4_dot_i16x8(pair, high)),
        ]
    }

    #[inline(always)]
    fn count_less(counts: Self::Sums, a: Self, b: Self) -> Self::Sums {
        // All bits, where it holds, are minus one.
        let less = |i: usize| f32x4_lt(a.0[i], b.0[i]);
        [i32x4_sub(counts[0], less(0)), i32x4_sub(counts[1], less(1))]
    }

    #[inline(always)]
    fn from_sums(sums: Self::Sums) -> Self {
        F32x8(sums.map(|sums| f32x4_convert_i32x4(sums)))
    }
}

numbers_in_arrays!(F32x8);

impl Eight for F32x8 {
    lane_by_lane! {
        // As in plain Rust: `a < b ? a : b`.
        with_sign_of(a, b) => v128_bitselect(b, a, i32x4_splat(i32::MIN));
    }

    #[inline(always)]
    fn load_padded(token: Token, from: &[f32]) -> Self {
        assert!(from.len() <= 8, "at most eight values");
        Self::load(token, &zero_padded(from))
    }

    #[inline(always)]
    fn fused_mul_add(self, by: Self, plus: Self) -> Self {
        let (mut values, by, plus) = (self.to_array(), by.to_array(), plus.to_array());
        for (i, value) in values.iter_mut().enumerate() {
            *value = fused(*value, by[i], plus[i]);
        }
        Self::load(Token(()), &values)
    }

    #[inline(always)]
    fn sum(self) -> f32 {
        let four = f32x4_add(self.0[0], self.0[1]);
        let two = f32x4_add(four, i32x4_shuffle::<2, 3, 2, 3>(four, four));
        f32x4_extract_lane::<0>(two) + f32x4_extract_lane::<1>(two)
    }

    #[inline(always)]
    fn largest(self) -> f32 {
        let four = f32x4_pmax(self.0[1], self.0[0]);
        let two = f32x4_pmax(i32x4_shuffle::<2, 3, 2, 3>(four, four), four);
        let one = f32x4_pmax(i32x4_shuffle::<1, 1, 1, 1>(two, two), two);
        f32x4_extract_lane::<0>(one)
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
        let integers = values.map(|F32x8([low, high])| {
            i16x8_narrow_i32x4(i32x4_trunc_sat_f32x4(low), i32x4_trunc_sat_f32x4(high))
        });
        let [a, b, c, d] = integers;
        let mut bytes = [0; 32];
        let to = bytes.as_mut_ptr().cast::<v128>();
        // SAFETY: there is room for 32 bytes.
        unsafe {
            v128_store(to, i8x16_narrow_i16x8(a, b));
            v128_store(to.add(1), i8x16_narrow_i16x8(c, d));
        }
        bytes
    }

    #[inline(always)]
    fn round(self) -> [i16; 8] {
        let [low, high] = self.0.map(|half| i32x4_trunc_sat_f32x4(f32x4_nearest(half)));
        let mut rounded = [0; 8];
        // SAFETY: there is room for eight integers, sixteen bytes.
        unsafe { v128_store(rounded.as_mut_ptr().cast(), i16x8_narrow_i32x4(low, high)) };
        rounded
    }

    #[inline(always)]
    fn from_f16(token: Token, halves: [u8; 16]) -> Self {
        Self::load(token, &floats_of_halves(halves))
    }

    #[inline(always)]
    fn from_bf16(_: Token, halves: [u8; 16]) -> Self {
        // SAFETY: there are sixteen bytes.
        let halves = unsafe { v128_load(halves.as_ptr().cast()) };
        let (low, high) = (u32x4_extend_low_u16x8(halves), u32x4_extend_high_u16x8(halves));
        F32x8([u32x4_shl(low, 16), u32x4_shl(high, 16)])
    }

    #[inline(always)]
    fn add_codes(sums: Self::Sums, codes: &[u8; 16], factors: &[i16; 16]) -> Self::Sums {
        let factors = factors.as_ptr().cast::<v128>();
        // SAFETY: there are sixteen bytes, and sixteen integers in 32 bytes.
        let (codes, low, high) = unsafe {
            (v128_load(codes.as_ptr().cast()), v128_load(factors), v128_load(factors.add(1)))
        };
        [
            i32x4_add(sums[0], i32x4_dot_i16x8(i16x8_extend_low_i8x16(codes), low)),
            i32x4_add(sums[1], i32x4_dot_i16x8(i16x8_extend_high_i8x16(codes), high)),
        ]
    }

    #[inline(always)]
    fn add_code_squares(sums: Self::Sums, codes: &[u8; 16]) -> Self::Sums {
        // SAFETY: there are sixteen bytes.
        let codes = unsafe { v128_load(codes.as_ptr().cast()) };
        let (low, high) = (i16x8_extend_low_i8x16(codes), i16x8_extend_high_i8x16(codes));
        [
            i32x4_add(sums[0], i32x4_dot_i16x8(low, low)),
            i32x4_add(sums[1], i32x4_dot_i16x8(high, high)),
        ]
    }

    #[inline(always)]
    fn from_u8(_: Token, bytes: [u8; 8]) -> Self {
        let words = u16x8_extend_low_u8x16(u64x2_splat(u64::from_le_bytes(bytes)));
        let (low, high) = (u32x4_extend_low_u16x8(words), u32x4_extend_high_u16x8(words));
        F32x8([f32x4_convert_i32x4(low), f32x4_convert_i32x4(high)])
    }

    #[inline(always)]
    fn from_i8(_: Token, bytes: [u8; 8]) -> Self {
        let words = i16x8_extend_low_i8x16(u64x2_splat(u64::from_le_bytes(bytes)));
        let (low, high) = (i32x4_extend_low_i16x8(words), i32x4_extend_high_i16x8(words));
        F32x8([f32x4_convert_i32x4(low), f32x4_convert_i32x4(high)])
    }

    #[inline(always)]
    fn from_fields(_: Token, words: [u32; 2], left: &[u32; 8], right: u32) -> Self {
        // Shifts by a number for each lane are products with powers of two.
        let power = |i: usize| 1 << left[i];
        let half = |i: usize| {
            let [a, b, c, d] = [0, 1, 2, 3].map(|lane| power(4 * i + lane));
            let top = i32x4_mul(u32x4_splat(words[i]), u32x4(a, b, c, d));
            f32x4_convert_i32x4(i32x4_shr(top, right))
        };
        F32x8([half(0), half(1)])
    }
}

/// The columns of four rows of four: first pairs of rows, then pairs of pairs.
#[inline(always)]
fn four_columns([a, b, c, d]: [v128; 4]) -> [v128; 4] {
    let (ab0, ab1) = (i32x4_shuffle::<0, 4, 1, 5>(a, b), i32x4_shuffle::<2, 6, 3, 7>(a, b));
    let (cd0, cd1) = (i32x4_shuffle::<0, 4, 1, 5>(c, d), i32x4_shuffle::<2, 6, 3, 7>(c, d));
    let low = |ab, cd| i64x2_shuffle::<0, 2>(ab, cd);
    let high = |ab, cd| i64x2_shuffle::<1, 3>(ab, cd);
    [low(ab0, cd0), high(ab0, cd0), low(ab1, cd1), high(ab1, cd1)]
}
