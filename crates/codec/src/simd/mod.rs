//! Vectors of numbers: what the kernels of this workspace are written with.
//!
//! A kernel is written once, as a function over any [`Vector`], and [`dispatch!`](crate::dispatch)
//! (or, for kernels with constants of their own, an implementation of one of the kernel traits)
//! compiles it for each kind of processor. Which of them runs is a value, a [`Level`]: programs take
//! [`Level::best`], tests take each of [`Level::available`] and compare.
//!
//! * [`Vector`]: eight or sixteen f32 side by side, and as many sums of integers.
//! * [`Eight`]: what only vectors of eight can do. Eight lanes with a fixed order of sums are what
//!   results are defined by, so that they have the same bits everywhere.
//! * [`Numbers`]: values that are given numbers of 16 bits, which are counted.
//! * [`Pair`]: two vectors as one, where a register has no sixteen lanes.
//! * [`tiles`]: products of sixteen rows with sixteen columns at once.
//! * [`Rows`], [`Lines`]: values that lie apart. [`Prefetcher`]: memory that is needed soon.
//!
//! # Safety
//!
//! The intrinsics of a processor may only run where it has them. So vectors are made with a
//! *token*, tokens are handed to kernels by a [`Level`], and levels exist for what the processor has,
//! since nobody can make one by hand. Whoever holds a vector or a token knows that its instructions
//! are there: all functions outside this module are safe, and `unsafe` stands nowhere else in the
//! crates that compute with it.
//!
//! # Which bits agree
//!
//! All operations give the same bits at every level, but for three: [`Vector::mul_add`] rounds once
//! or twice, which [`Level::definition`] accounts for; [`Bf16Products`] flushes subnormal numbers to
//! zero where the processor has an instruction for it; and NaN may be any NaN.
//!
//! Everything that a kernel calls must be inlined into it (`#[inline(always)]`): what is not, is
//! compiled without the processor's instructions, and slow. Closures can't say that they must be: those
//! of `array::map` and `from_fn` are calls in some builds, so vectors are made in loops. `.ci/kernels`
//! looks for what was left alone.

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod amx;
#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod level;
#[cfg(all(target_arch = "aarch64", target_feature = "neon", target_endian = "little"))]
mod neon;
mod numbers;
mod pair;
mod plain;
mod prefetch;
#[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
mod simd128;
mod strided;
#[cfg(test)]
mod tests;
pub mod tiles;

pub use crate::dispatch;
pub use level::{Bf16Kernel, ByteKernel, EightKernel, Level, NumbersKernel, SixteenKernel};
pub use numbers::Numbers;
pub use pair::Pair;
pub use prefetch::{Prefetcher, prefetch_line};
pub use strided::{Lines, Rows};

/// Values of f32 side by side, each in a lane.
pub trait Vector: Copy {
    /// What proves that the processor has the instructions.
    type Token: Copy;
    /// Sums of integers, an i32 for each lane. They wrap around.
    type Sums: Copy;
    /// How many values there are.
    const LANES: usize;
    /// How many registers they take.
    const REGISTERS: usize;

    /// The same value in all lanes.
    fn splat(token: Self::Token, value: f32) -> Self;
    /// The first values of a slice.
    ///
    /// # Panics
    ///
    /// When there are fewer than lanes.
    fn load(token: Self::Token, from: &[f32]) -> Self;
    /// Puts the values at the beginning of a slice.
    ///
    /// # Panics
    ///
    /// When there are fewer places than lanes.
    fn store(self, to: &mut [f32]);
    /// `self + other`.
    fn add(self, other: Self) -> Self;
    /// `self - other`.
    fn sub(self, other: Self) -> Self;
    /// `self * other`.
    fn mul(self, other: Self) -> Self;
    /// `self / other`.
    fn div(self, other: Self) -> Self;
    /// The larger ones; `other` where one of the two is NaN, or both are zero.
    fn max(self, other: Self) -> Self;
    /// The smaller ones; `other` where one of the two is NaN, or both are zero.
    fn min(self, other: Self) -> Self;
    /// `self * by + plus`, rounded once where the processor can, else twice.
    fn mul_add(self, by: Self, plus: Self) -> Self;
    /// The values without their signs.
    fn abs(self) -> Self;
    /// Multiplies by two to the power of integers, which are the last bits of other values. Neither
    /// `self` nor the result may be zero, subnormal or not finite.
    fn mul_power_of_two(self, exponents: Self) -> Self;
    /// `yes` where `a` is less than `b`, else `no`.
    fn select_less(a: Self, b: Self, yes: Self, no: Self) -> Self;
    /// Whether any lane is not less than the limit of its lane: those with NaN are not.
    fn any_reaches(self, limit: Self) -> bool;

    /// The same sum in all lanes.
    fn sums(token: Self::Token, value: i32) -> Self::Sums;
    /// Adds `pair[0] * line[i][0] + pair[1] * line[i][1]` to sum `i`.
    ///
    /// # Panics
    ///
    /// When there are fewer pairs on the line than lanes.
    fn add_pairs(sums: Self::Sums, pair: [i16; 2], line: &[[i16; 2]]) -> Self::Sums;
    /// Adds one to sum `i` where lane `i` of `a` is less than that of `b`.
    fn count_less(counts: Self::Sums, a: Self, b: Self) -> Self::Sums;
    /// Sums as floats, rounded to nearest.
    fn from_sums(sums: Self::Sums) -> Self;

    /// Adds lane `i` to sum `i`, and its square, in doubles, which hold squares of f32 exactly.
    ///
    /// # Panics
    ///
    /// When there are fewer sums than lanes.
    #[inline(always)]
    fn add_moments(self, sums: &mut [f64], squares: &mut [f64]) {
        let mut values = [0.0; MOST_LANES];
        self.store(&mut values);
        for (i, value) in values[..Self::LANES].iter().enumerate() {
            let value = f64::from(*value);
            sums[i] += value;
            squares[i] += value * value;
        }
    }
}

/// Lanes of the widest vectors.
const MOST_LANES: usize = 16;

/// What vectors of eight lanes can do beyond that.
pub trait Eight: Vector {
    /// At most eight values, and zeros behind them.
    ///
    /// # Panics
    ///
    /// When there are more.
    fn load_padded(token: Self::Token, from: &[f32]) -> Self;
    /// The magnitudes of `self`, which must not be negative, with the signs of `other`.
    fn with_sign_of(self, other: Self) -> Self;
    /// `self * by + plus`, always rounded once. Without an instruction for it this is slow.
    fn fused_mul_add(self, by: Self, plus: Self) -> Self;
    /// The sum of all lanes, in the order `((0+4)+(2+6)) + ((1+5)+(3+7))`.
    fn sum(self) -> f32;
    /// The largest value, none of which may be NaN.
    fn largest(self) -> f32;
    /// Rows to columns.
    fn transpose(rows: [Self; 8]) -> [Self; 8];
    /// Whole parts of 32 values, which must lie within -128 and 127, as bytes.
    fn truncate(values: [Self; 4]) -> [u8; 32];
    /// The nearest integers, ties to even; the values must fit 16 bits.
    fn round(self) -> [i16; 8];
    /// Eight f16, little-endian.
    fn from_f16(token: Self::Token, halves: [u8; 16]) -> Self;
    /// Eight bf16, little-endian.
    fn from_bf16(token: Self::Token, halves: [u8; 16]) -> Self;
    /// Bytes as numbers from 0 to 255.
    fn from_u8(token: Self::Token, bytes: [u8; 8]) -> Self;
    /// Bytes as numbers from -128 to 127.
    fn from_i8(token: Self::Token, bytes: [u8; 8]) -> Self;
    /// Adds `codes[2 * i] * factors[2 * i] + codes[2 * i + 1] * factors[2 * i + 1]` to sum `i`, where
    /// codes are numbers from -128 to 127.
    fn add_codes(sums: Self::Sums, codes: &[u8; 16], factors: &[i16; 16]) -> Self::Sums;
    /// Adds the squares of codes `2 * i` and `2 * i + 1` to sum `i`.
    fn add_code_squares(sums: Self::Sums, codes: &[u8; 16]) -> Self::Sums;
    /// Bit fields as signed integers. Lane `i` takes `words[i / 4]`, of which the field is brought to
    /// the top, `left[i]` bits to the left, and back with its sign, `right` bits to the right. Both
    /// are less than 32.
    fn from_fields(token: Self::Token, words: [u32; 2], left: &[u32; 8], right: u32) -> Self;

    /// The sums of the lanes of each, like [`Eight::sum`].
    #[inline(always)]
    fn sum_each<const N: usize>(vectors: [Self; N]) -> [f32; N] {
        let mut sums = [0.0; N];
        for (sum, vector) in sums.iter_mut().zip(vectors) {
            *sum = vector.sum();
        }
        sums
    }

    /// Within the bounds; a NaN becomes the upper one.
    #[inline(always)]
    fn clamp(self, (low, high): (Self, Self)) -> Self {
        self.min(high).max(low)
    }

    /// The values of all lanes.
    #[inline(always)]
    fn to_array(self) -> [f32; 8] {
        let mut values = [0.0; 8];
        self.store(&mut values);
        values
    }
}

/// Vectors of processors that multiply bytes.
pub trait ByteProducts: Vector {
    /// Adds the sum of `line[i][j] * four[j]` over `j` to sum `i`.
    ///
    /// # Panics
    ///
    /// When there are fewer fours on the line than lanes.
    fn add_fours(sums: Self::Sums, line: &[[i8; 4]], four: [u8; 4]) -> Self::Sums;
    /// The smallest value of one vector and the largest of another, none of which may be NaN.
    fn extremes(least: Self, most: Self) -> (f32, f32);
    /// Puts the last bytes of the bits of all lanes of four vectors at the beginning of a slice.
    ///
    /// # Panics
    ///
    /// When there are fewer places than lanes.
    fn last_bytes(four: [Self; 4], to: &mut [u8]);
}

/// Vectors of processors that multiply bf16.
pub trait Bf16Products: Vector {
    /// Adds `pair[1] * line[i][1]`, then `pair[0] * line[i][0]`, to lane `i`, rounding after each. The
    /// integers are the bits of bf16.
    ///
    /// # Panics
    ///
    /// When there are fewer pairs on the line than lanes.
    fn add_bf16_pairs(self, pair: [i16; 2], line: &[[i16; 2]]) -> Self;
    /// Puts the bits of the nearest bf16, ties to even, at the beginning of a slice. Subnormal numbers
    /// become zeros.
    ///
    /// # Panics
    ///
    /// When there are fewer places than lanes.
    fn to_bf16(self, to: &mut [i16]);
}

/// Defines functions whose first argument is a [`Level`], by generic ones: for `eight`, over
/// [`Eight`], for `sixteen`, over vectors of sixteen lanes, and for `numbers`, over [`Numbers`], as wide as
/// there are registers. Those take a token first.
///
/// ```
/// use weighbridge_codec::simd::{Eight, Level, Vector, dispatch};
///
/// dispatch! {
///     /// The sum of squares, for whole eights.
///     fn squares(values: &[f32]) -> f32 = eight squares_with;
/// }
///
/// #[inline(always)]
/// fn squares_with<V: Eight>(token: V::Token, values: &[f32]) -> f32 {
///     let mut sums = V::splat(token, 0.0);
///     for eight in values.chunks_exact(8) {
///         let x = V::load(token, eight);
///         sums = x.fused_mul_add(x, sums);
///     }
///     sums.sum()
/// }
///
/// for level in Level::available() {
///     assert_eq!(squares(level, &[2.0; 16]), 64.0);
/// }
/// ```
#[macro_export]
macro_rules! dispatch {
    ($(
        $(#[$meta:meta])*
        $visibility:vis fn $name:ident($($argument:ident: $kind:ty),* $(,)?) $(-> $result:ty)?
            = $lanes:ident $body:ident;
    )*) => {$(
        $(#[$meta])*
        $visibility fn $name(level: $crate::simd::Level, $($argument: $kind),*) $(-> $result)? {
            struct Call<Arguments>(Arguments);
            $crate::dispatch!(@ $lanes $body, ($($argument: $kind,)*), ($($result)?));
            $crate::dispatch!(@run $lanes level, Call(($($argument,)*)))
        }
    )*};
    (@ eight $body:ident, ($($argument:ident: $kind:ty,)*), $result:tt) => {
        impl $crate::simd::EightKernel for Call<($($kind,)*)> {
            type Output = $crate::dispatch!(@result $result);

            #[inline(always)]
            fn run<V: $crate::simd::Eight>(self, token: V::Token) -> Self::Output {
                let ($($argument,)*) = self.0;
                $body::<V>(token, $($argument),*)
            }
        }
    };
    (@ sixteen $body:ident, ($($argument:ident: $kind:ty,)*), $result:tt) => {
        impl $crate::simd::SixteenKernel for Call<($($kind,)*)> {
            type Output = $crate::dispatch!(@result $result);

            #[inline(always)]
            fn run<V: $crate::simd::Vector>(self, token: V::Token) -> Self::Output {
                let ($($argument,)*) = self.0;
                $body::<V>(token, $($argument),*)
            }
        }
    };
    (@ numbers $body:ident, ($($argument:ident: $kind:ty,)*), $result:tt) => {
        impl $crate::simd::NumbersKernel for Call<($($kind,)*)> {
            type Output = $crate::dispatch!(@result $result);

            #[inline(always)]
            fn run<V: $crate::simd::Numbers>(self, token: V::Token) -> Self::Output {
                let ($($argument,)*) = self.0;
                $body::<V>(token, $($argument),*)
            }
        }
    };
    (@run eight $level:ident, $call:expr) => { $level.run_eight($call) };
    (@run sixteen $level:ident, $call:expr) => { $level.run_sixteen($call) };
    (@run numbers $level:ident, $call:expr) => { $level.run_numbers($call) };
    (@result ()) => { () };
    (@result ($result:ty)) => { $result };
}
