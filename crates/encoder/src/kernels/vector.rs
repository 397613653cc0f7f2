//! Eight values of f32 at once, or sixteen: what the functions of `lanes` are written with.
//!
//! The methods are inlined into functions that are compiled for a processor; called from anywhere
//! else they would be slow, and for a processor that lacks them undefined. So only `lanes` has them.

/// Some values side by side.
pub(super) trait Vector: Copy {
    const LANES: usize;
    /// The same value in all lanes.
    fn splat(value: f32) -> Self;
    /// The first values of a slice that has so many.
    fn load(from: &[f32]) -> Self;
    fn store(self, to: &mut [f32]);
    fn add(self, other: Self) -> Self;
    fn mul(self, other: Self) -> Self;
    fn div(self, other: Self) -> Self;
    fn min(self, other: Self) -> Self;
    /// The larger ones; `other` where one of the two is NaN.
    fn max(self, other: Self) -> Self;
    /// `self * by + plus`, rounded once where the processor can.
    fn mul_add(self, by: Self, plus: Self) -> Self;
    /// Multiplies by two to the power of integers, given as the last bits of other values.
    fn mul_power_of_two(self, exponents: Self) -> Self;

    /// Rounds to the nearest integers, which must fit 16 bits.
    fn round_into(self, to: &mut [i16]);
    /// The sum in a fixed order.
    fn sum(self) -> f32;
    fn largest(self) -> f32;
}

/// The nearest integer, ties to even.
#[inline(always)]
#[allow(clippy::cast_possible_truncation)]
pub(super) fn nearest_i16(x: f32) -> i16 {
    x.round_ties_even() as i16
}

/// For every processor.
#[derive(Clone, Copy)]
pub(super) struct Portable([f32; 8]);

impl Portable {
    #[inline(always)]
    fn with(self, other: Self, f: impl Fn(f32, f32) -> f32) -> Self {
        Portable(std::array::from_fn(|i| f(self.0[i], other.0[i])))
    }
}

impl Vector for Portable {
    const LANES: usize = 8;

    #[inline(always)]
    fn splat(value: f32) -> Self {
        Portable([value; 8])
    }

    #[inline(always)]
    fn load(from: &[f32]) -> Self {
        Portable(*from.first_chunk().expect("whole lanes"))
    }

    #[inline(always)]
    fn store(self, to: &mut [f32]) {
        *to.first_chunk_mut().expect("whole lanes") = self.0;
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
    fn div(self, other: Self) -> Self {
        self.with(other, |a, b| a / b)
    }

    #[inline(always)]
    fn min(self, other: Self) -> Self {
        self.with(other, |a, b| if a < b { a } else { b })
    }

    #[inline(always)]
    fn max(self, other: Self) -> Self {
        self.with(other, |a, b| if a > b { a } else { b })
    }

    #[inline(always)]
    fn mul_add(self, by: Self, plus: Self) -> Self {
        Portable(std::array::from_fn(|i| super::mul_add(self.0[i], by.0[i], plus.0[i])))
    }

    #[inline(always)]
    fn mul_power_of_two(self, exponents: Self) -> Self {
        self.with(exponents, |a, b| f32::from_bits(a.to_bits().wrapping_add(b.to_bits() << 23)))
    }

    #[inline(always)]
    fn round_into(self, to: &mut [i16]) {
        *to.first_chunk_mut().expect("whole lanes") = self.0.map(nearest_i16);
    }

    #[inline(always)]
    fn sum(self) -> f32 {
        let [a, b, c, d, e, f, g, h] = self.0;
        ((a + e) + (c + g)) + ((b + f) + (d + h))
    }

    #[inline(always)]
    fn largest(self) -> f32 {
        self.0.into_iter().fold(f32::NEG_INFINITY, |a, b| if b > a { b } else { a })
    }
}

#[cfg(target_arch = "x86_64")]
pub(super) use x86::Avx2;

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::{Portable, Vector};
    use std::arch::x86_64::*;

    /// For AVX2 and FMA.
    #[derive(Clone, Copy)]
    pub(in super::super) struct Avx2(__m256);

    impl Avx2 {
        #[inline(always)]
        fn lanes(self) -> Portable {
            let mut lanes = [0.0; 8];
            self.store(&mut lanes);
            Portable(lanes)
        }
    }

    // SAFETY (of every block here): the functions that this is inlined into are only called where
    // the processor has AVX2 and FMA; loads and stores are of eight values that are there.
    impl Vector for Avx2 {
        const LANES: usize = 8;

        #[inline(always)]
        fn splat(value: f32) -> Self {
            Avx2(unsafe { _mm256_set1_ps(value) })
        }

        #[inline(always)]
        fn load(from: &[f32]) -> Self {
            Avx2(unsafe { _mm256_loadu_ps(from[..8].as_ptr()) })
        }

        #[inline(always)]
        fn store(self, to: &mut [f32]) {
            unsafe { _mm256_storeu_ps(to[..8].as_mut_ptr(), self.0) };
        }

        #[inline(always)]
        fn add(self, other: Self) -> Self {
            Avx2(unsafe { _mm256_add_ps(self.0, other.0) })
        }

        #[inline(always)]
        fn mul(self, other: Self) -> Self {
            Avx2(unsafe { _mm256_mul_ps(self.0, other.0) })
        }

        #[inline(always)]
        fn div(self, other: Self) -> Self {
            Avx2(unsafe { _mm256_div_ps(self.0, other.0) })
        }

        #[inline(always)]
        fn min(self, other: Self) -> Self {
            Avx2(unsafe { _mm256_min_ps(self.0, other.0) })
        }

        #[inline(always)]
        fn max(self, other: Self) -> Self {
            Avx2(unsafe { _mm256_max_ps(self.0, other.0) })
        }

        #[inline(always)]
        fn mul_add(self, by: Self, plus: Self) -> Self {
            Avx2(unsafe { _mm256_fmadd_ps(self.0, by.0, plus.0) })
        }

        #[inline(always)]
        fn mul_power_of_two(self, exponents: Self) -> Self {
            Avx2(unsafe {
                let power = _mm256_slli_epi32::<23>(_mm256_castps_si256(exponents.0));
                _mm256_castsi256_ps(_mm256_add_epi32(_mm256_castps_si256(self.0), power))
            })
        }

        #[inline(always)]
        fn round_into(self, to: &mut [i16]) {
            unsafe {
                let integers = _mm256_cvtps_epi32(self.0);
                let (low, high) =
                    (_mm256_castsi256_si128(integers), _mm256_extracti128_si256::<1>(integers));
                let packed = _mm_packs_epi32(low, high);
                _mm_storeu_si128(to[..8].as_mut_ptr().cast(), packed);
            }
        }

        #[inline(always)]
        fn sum(self) -> f32 {
            self.lanes().sum()
        }

        #[inline(always)]
        fn largest(self) -> f32 {
            self.lanes().largest()
        }
    }
}
