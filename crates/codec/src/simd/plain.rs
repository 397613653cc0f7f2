//! The definition of all operations, in plain Rust.

use super::numbers::numbers_in_arrays;
use super::{Bf16Products, ByteProducts, Eight, Vector};
use half::f16;

/// Eight lanes for every processor. Multiply-adds round once if `FUSED`, else twice.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plain<const FUSED: bool>([f32; 8]);

/// It proves nothing: nothing is needed.
#[derive(Clone, Copy, Debug)]
pub(super) struct PlainToken;

impl<const FUSED: bool> Plain<FUSED> {
    #[inline(always)]
    fn with(self, other: Self, operation: impl Fn(f32, f32) -> f32) -> Self {
        let mut result = self.0;
        for (a, b) in result.iter_mut().zip(other.0) {
            *a = operation(*a, b);
        }
        Plain(result)
    }

    #[inline(always)]
    fn with_two(self, by: Self, plus: Self, operation: impl Fn(f32, f32, f32) -> f32) -> Self {
        let mut result = self.0;
        for (i, a) in result.iter_mut().enumerate() {
            *a = operation(*a, by.0[i], plus.0[i]);
        }
        Plain(result)
    }
}

impl<const FUSED: bool> Vector for Plain<FUSED> {
    type Token = PlainToken;
    type Sums = [i32; 8];
    const LANES: usize = 8;
    const REGISTERS: usize = 2;

    #[inline(always)]
    fn splat(_: PlainToken, value: f32) -> Self {
        Plain([value; 8])
    }

    #[inline(always)]
    fn load(_: PlainToken, from: &[f32]) -> Self {
        Plain(*from.first_chunk().expect("eight values"))
    }

    #[inline(always)]
    fn store(self, to: &mut [f32]) {
        *to.first_chunk_mut().expect("places for eight") = self.0;
    }

    #[inline(always)]
    fn add(self, other: Self) -> Self {
        self.with(other, |a, b| a + b)
    }

    #[inline(always)]
    fn mul(self, other: Self) -> Self {
        self.with(other, |a, b| a * b)
    }

    #[inline(always)]
    fn max(self, other: Self) -> Self {
        self.with(other, larger)
    }

    #[inline(always)]
    fn mul_add(self, by: Self, plus: Self) -> Self {
        self.with_two(by, plus, if FUSED { fused } else { |a, b, c| a * b + c })
    }

    #[inline(always)]
    fn sub(self, other: Self) -> Self {
        self.with(other, |a, b| a - b)
    }

    #[inline(always)]
    fn div(self, other: Self) -> Self {
        self.with(other, |a, b| a / b)
    }

    #[inline(always)]
    fn min(self, other: Self) -> Self {
        self.with(other, |a, b| if a < b { a } else { b })
    }

    #[inline(always)]
    fn mul_power_of_two(self, exponents: Self) -> Self {
        self.with(exponents, |a, b| f32::from_bits(a.to_bits().wrapping_add(b.to_bits() << 23)))
    }

    #[inline(always)]
    fn select_less(a: Self, b: Self, yes: Self, no: Self) -> Self {
        let mut selected = no.0;
        for (i, slot) in selected.iter_mut().enumerate() {
            *slot = if a.0[i] < b.0[i] { yes.0[i] } else { *slot };
        }
        Plain(selected)
    }

    #[inline(always)]
    fn any_reaches(self, limit: Self) -> bool {
        #[allow(clippy::neg_cmp_op_on_partial_ord, reason = "NaN on either side is not less")]
        self.0.iter().zip(&limit.0).fold(false, |any, (value, limit)| any | !(value < limit))
    }

    #[inline(always)]
    fn sums(_: PlainToken, value: i32) -> [i32; 8] {
        [value; 8]
    }

    #[inline(always)]
    fn add_pairs(mut sums: [i32; 8], pair: [i16; 2], line: &[[i16; 2]]) -> [i32; 8] {
        let [x, y] = pair.map(i32::from);
        for (sum, [left, right]) in sums.iter_mut().zip(&line[..8]) {
            let products = (x * i32::from(*left)).wrapping_add(y * i32::from(*right));
            *sum = sum.wrapping_add(products);
        }
        sums
    }

    #[inline(always)]
    fn abs(self) -> Self {
        Plain(self.0.map(f32::abs))
    }

    #[inline(always)]
    fn count_less(counts: [i32; 8], a: Self, b: Self) -> [i32; 8] {
        std::array::from_fn(|i| counts[i].wrapping_add(i32::from(a.0[i] < b.0[i])))
    }

    #[inline(always)]
    #[allow(clippy::cast_precision_loss, reason = "rounding is what it is for")]
    fn from_sums(sums: [i32; 8]) -> Self {
        Plain(sums.map(|sum| sum as f32))
    }
}

numbers_in_arrays!(Plain<FUSED>, const FUSED: bool);

impl<const FUSED: bool> Eight for Plain<FUSED> {
    #[inline(always)]
    fn load_padded(_: PlainToken, from: &[f32]) -> Self {
        assert!(from.len() <= 8, "at most eight values");
        Plain(zero_padded(from))
    }

    #[inline(always)]
    fn with_sign_of(self, other: Self) -> Self {
        self.with(other, f32::copysign)
    }

    #[inline(always)]
    fn fused_mul_add(self, by: Self, plus: Self) -> Self {
        self.with_two(by, plus, fused)
    }

    #[inline(always)]
    fn sum(self) -> f32 {
        let [a, b, c, d, e, f, g, h] = self.0;
        ((a + e) + (c + g)) + ((b + f) + (d + h))
    }

    #[inline(always)]
    fn largest(self) -> f32 {
        let [a, b, c, d, e, f, g, h] = self.0;
        let even = larger(larger(a, e), larger(c, g));
        larger(even, larger(larger(b, f), larger(d, h)))
    }

    #[inline(always)]
    fn transpose(rows: [Self; 8]) -> [Self; 8] {
        let mut columns = rows;
        for (i, column) in columns.iter_mut().enumerate() {
            for (j, row) in rows.iter().enumerate() {
                column.0[j] = row.0[i];
            }
        }
        columns
    }

    #[inline(always)]
    #[allow(clippy::cast_possible_truncation, reason = "the values fit")]
    fn truncate(values: [Self; 4]) -> [u8; 32] {
        let mut bytes = [0; 32];
        for (part, lanes) in bytes.chunks_exact_mut(8).zip(values) {
            for (byte, value) in part.iter_mut().zip(lanes.0) {
                *byte = (value as i32 as i8).cast_unsigned();
            }
        }
        bytes
    }

    #[inline(always)]
    #[allow(clippy::cast_possible_truncation, reason = "the values fit")]
    fn round(self) -> [i16; 8] {
        self.0.map(|value| value.round_ties_even() as i16)
    }

    #[inline(always)]
    fn from_f16(_: PlainToken, halves: [u8; 16]) -> Self {
        Plain(floats_of_halves(halves))
    }

    #[inline(always)]
    fn from_bf16(_: PlainToken, halves: [u8; 16]) -> Self {
        let mut floats = [0.0; 8];
        for (float, half) in floats.iter_mut().zip(halves.as_chunks::<2>().0) {
            *float = f32::from_bits(u32::from(u16::from_le_bytes(*half)) << 16);
        }
        Plain(floats)
    }

    #[inline(always)]
    fn add_codes(mut sums: [i32; 8], codes: &[u8; 16], factors: &[i16; 16]) -> [i32; 8] {
        let pairs = codes.as_chunks::<2>().0.iter().zip(factors.as_chunks::<2>().0);
        for (sum, (codes, factors)) in sums.iter_mut().zip(pairs) {
            let product = |i: usize| i32::from(codes[i].cast_signed()) * i32::from(factors[i]);
            *sum = sum.wrapping_add(product(0) + product(1));
        }
        sums
    }

    #[inline(always)]
    fn add_code_squares(sums: [i32; 8], codes: &[u8; 16]) -> [i32; 8] {
        Self::add_codes(sums, codes, &codes.map(|code| i16::from(code.cast_signed())))
    }

    #[inline(always)]
    fn from_u8(_: PlainToken, bytes: [u8; 8]) -> Self {
        Plain(bytes.map(f32::from))
    }

    #[inline(always)]
    fn from_i8(_: PlainToken, bytes: [u8; 8]) -> Self {
        Plain(bytes.map(|byte| f32::from(byte.cast_signed())))
    }

    #[inline(always)]
    #[allow(clippy::cast_precision_loss, reason = "fields of up to eight bits are exact")]
    fn from_fields(_: PlainToken, words: [u32; 2], left: &[u32; 8], right: u32) -> Self {
        let mut values = [0.0; 8];
        for (i, value) in values.iter_mut().enumerate() {
            *value = ((words[i / 4] << left[i]).cast_signed() >> right) as f32;
        }
        Plain(values)
    }
}

impl<const FUSED: bool> ByteProducts for Plain<FUSED> {
    #[inline(always)]
    fn add_fours(mut sums: [i32; 8], line: &[[i8; 4]], four: [u8; 4]) -> [i32; 8] {
        for (sum, bytes) in sums.iter_mut().zip(&line[..8]) {
            let products = (0..4).map(|i| i32::from(bytes[i]) * i32::from(four[i]));
            *sum = sum.wrapping_add(products.sum::<i32>());
        }
        sums
    }

    #[inline(always)]
    fn extremes(least: Self, most: Self) -> (f32, f32) {
        (least.0.into_iter().fold(f32::INFINITY, f32::min), most.largest())
    }

    #[inline(always)]
    fn last_bytes(four: [Self; 4], to: &mut [u8]) {
        for (to, value) in to[..32].iter_mut().zip(four.iter().flat_map(|values| values.0)) {
            *to = value.to_bits().to_le_bytes()[0];
        }
    }
}

impl<const FUSED: bool> Bf16Products for Plain<FUSED> {
    #[inline(always)]
    fn add_bf16_pairs(self, pair: [i16; 2], line: &[[i16; 2]]) -> Self {
        let wide = |code: i16| f32::from_bits(u32::from(code.cast_unsigned()) << 16);
        let [x, y] = pair.map(|code| Plain([wide(code); 8]));
        let (mut left, mut right) = ([0.0; 8], [0.0; 8]);
        for (i, codes) in line[..8].iter().enumerate() {
            [left[i], right[i]] = codes.map(wide);
        }
        x.mul_add(Plain(left), y.mul_add(Plain(right), self))
    }

    #[inline(always)]
    fn to_bf16(self, to: &mut [i16]) {
        for (to, value) in to[..8].iter_mut().zip(self.0) {
            let bits = value.to_bits();
            let bits = match value {
                // The first bit of what is behind the point makes it quiet, and no infinity.
                _ if value.is_nan() => bits | 1 << 22,
                _ if value.is_subnormal() => bits & 1 << 31,
                _ => bits + 0x7fff + (bits >> 16 & 1),
            };
            *to = ((bits >> 16) as u16).cast_signed();
        }
    }
}

#[inline(always)]
fn larger(a: f32, b: f32) -> f32 {
    if a > b { a } else { b }
}

/// At most eight values, and zeros behind them. So few are faster one by one than by a call that
/// copies memory.
#[inline(always)]
pub(super) fn zero_padded(values: &[f32]) -> [f32; 8] {
    std::array::from_fn(|i| values.get(i).copied().unwrap_or(0.0))
}

/// Eight f16, little-endian, as f32.
#[inline(always)]
pub(super) fn floats_of_halves(halves: [u8; 16]) -> [f32; 8] {
    let mut floats = [0.0; 8];
    for (float, half) in floats.iter_mut().zip(halves.as_chunks::<2>().0) {
        *float = f16::from_le_bytes(*half).to_f32_const();
    }
    floats
}

/// `a * b + c`, rounded once.
#[inline(always)]
pub(super) fn fused(a: f32, b: f32, c: f32) -> f32 {
    if cfg!(any(target_feature = "fma", target_arch = "aarch64")) {
        a.mul_add(b, c)
    } else {
        fused_by_f64(a, b, c)
    }
}

/// The same without an instruction for it, and several times as fast as the system's function.
///
/// The product is exact in f64, but the sum may be rounded there, and rounding it once more to f32
/// could go wrong where the first rounding made a tie. So the sum is rounded to odd: a sum that is
/// not exact gets a last bit of one, and then is no tie.
#[inline(always)]
#[allow(clippy::cast_possible_truncation, reason = "rounding is what it is for")]
fn fused_by_f64(a: f32, b: f32, c: f32) -> f32 {
    let (product, c) = (f64::from(a) * f64::from(b), f64::from(c));
    let sum = product + c;
    // What rounding took away, exactly; NaN where the sum is infinite or NaN.
    let part = sum - product;
    let error = (product - (sum - part)) + (c - part);
    let bits = sum.to_bits();
    // Towards the exact sum: the odd one of the two between which it lies.
    let outwards = (error > 0.0) == (sum > 0.0);
    let odd = if outwards { bits + 1 } else { bits.wrapping_sub(1) };
    let inexact = error != 0.0 && !error.is_nan();
    f64::from_bits(if inexact && bits & 1 == 0 { odd } else { bits }) as f32
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All kinds of values with each other, and many where the sum is near a tie of f32.
    #[test]
    fn fused_has_the_bits_of_the_standard_library() {
        let sizes = [0.0, 1e-45, 1e-38, 1.2e-38, 3e-20, 0.3, 1.0, 1.5, 127.0, 3e9, 1e20, f32::MAX];
        let special = [f32::INFINITY, f32::NAN];
        let values: Vec<f32> = sizes.into_iter().chain(special).flat_map(|v| [v, -v]).collect();
        let check = |a: f32, b: f32, c: f32| {
            let (found, expected) = (fused_by_f64(a, b, c), a.mul_add(b, c));
            let same = found.to_bits() == expected.to_bits();
            assert!(same || found.is_nan() && expected.is_nan(), "{a:e} {b:e} {c:e}: {found:e}");
        };
        for a in &values {
            for b in &values {
                values.iter().for_each(|c| check(*a, *b, *c));
            }
        }
        let mut state = 1u64;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 32) as u32
        };
        for i in 0..2_000_000u32 {
            let (a, b) = (f32::from_bits(next()), f32::from_bits(next()));
            // Far below, near and far above the product; few bits make ties likely.
            let mask = u32::MAX << (next() % 24);
            let few_bits = |x: f32| f32::from_bits(x.to_bits() & mask);
            let c = f32::from_bits(next() & 0x807F_FFFF | ((a * b).to_bits() & 0x7F80_0000));
            let c = c * 2f32.powi((i % 61).cast_signed() - 30);
            check(a, b, c);
            check(few_bits(a), few_bits(b), few_bits(c));
        }
    }
}
