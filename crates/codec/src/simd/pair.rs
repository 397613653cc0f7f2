//! Two vectors as one.

use super::{Bf16Products, ByteProducts, Vector};

/// A vector of twice as many lanes.
#[derive(Clone, Copy, Debug)]
pub struct Pair<V>(V, V);

impl<V: super::level::Guarded> super::level::Guarded for Pair<V> {
    #[inline(always)]
    unsafe fn token() -> V::Token {
        // SAFETY: the caller has what the halves need.
        unsafe { V::token() }
    }
}

impl<V: Vector> Vector for Pair<V> {
    type Token = V::Token;
    type Sums = (V::Sums, V::Sums);
    const LANES: usize = 2 * V::LANES;
    const REGISTERS: usize = 2 * V::REGISTERS;

    #[inline(always)]
    fn splat(token: V::Token, value: f32) -> Self {
        Pair(V::splat(token, value), V::splat(token, value))
    }

    #[inline(always)]
    fn load(token: V::Token, from: &[f32]) -> Self {
        Pair(V::load(token, from), V::load(token, &from[V::LANES..]))
    }

    #[inline(always)]
    fn store(self, to: &mut [f32]) {
        let (low, high) = to.split_at_mut(V::LANES);
        self.0.store(low);
        self.1.store(high);
    }

    #[inline(always)]
    fn add(self, other: Self) -> Self {
        Pair(self.0.add(other.0), self.1.add(other.1))
    }

    #[inline(always)]
    fn mul(self, other: Self) -> Self {
        Pair(self.0.mul(other.0), self.1.mul(other.1))
    }

    #[inline(always)]
    fn max(self, other: Self) -> Self {
        Pair(self.0.max(other.0), self.1.max(other.1))
    }

    #[inline(always)]
    fn mul_add(self, by: Self, plus: Self) -> Self {
        Pair(self.0.mul_add(by.0, plus.0), self.1.mul_add(by.1, plus.1))
    }

    #[inline(always)]
    fn sub(self, other: Self) -> Self {
        Pair(self.0.sub(other.0), self.1.sub(other.1))
    }

    #[inline(always)]
    fn div(self, other: Self) -> Self {
        Pair(self.0.div(other.0), self.1.div(other.1))
    }

    #[inline(always)]
    fn min(self, other: Self) -> Self {
        Pair(self.0.min(other.0), self.1.min(other.1))
    }

    #[inline(always)]
    fn abs(self) -> Self {
        Pair(self.0.abs(), self.1.abs())
    }

    #[inline(always)]
    fn mul_power_of_two(self, exponents: Self) -> Self {
        Pair(self.0.mul_power_of_two(exponents.0), self.1.mul_power_of_two(exponents.1))
    }

    #[inline(always)]
    fn select_less(a: Self, b: Self, yes: Self, no: Self) -> Self {
        Pair(V::select_less(a.0, b.0, yes.0, no.0), V::select_less(a.1, b.1, yes.1, no.1))
    }

    #[inline(always)]
    fn any_reaches(self, limit: Self) -> bool {
        self.0.any_reaches(limit.0) | self.1.any_reaches(limit.1)
    }

    #[inline(always)]
    fn sums(token: V::Token, value: i32) -> Self::Sums {
        (V::sums(token, value), V::sums(token, value))
    }

    #[inline(always)]
    fn add_pairs(sums: Self::Sums, pair: [i16; 2], line: &[[i16; 2]]) -> Self::Sums {
        (V::add_pairs(sums.0, pair, line), V::add_pairs(sums.1, pair, &line[V::LANES..]))
    }

    #[inline(always)]
    fn count_less(counts: Self::Sums, a: Self, b: Self) -> Self::Sums {
        (V::count_less(counts.0, a.0, b.0), V::count_less(counts.1, a.1, b.1))
    }

    #[inline(always)]
    fn from_sums(sums: Self::Sums) -> Self {
        Pair(V::from_sums(sums.0), V::from_sums(sums.1))
    }

    #[inline(always)]
    fn add_moments(self, sums: &mut [f64], squares: &mut [f64]) {
        self.0.add_moments(sums, squares);
        self.1.add_moments(&mut sums[V::LANES..], &mut squares[V::LANES..]);
    }
}

impl<V: ByteProducts> ByteProducts for Pair<V> {
    #[inline(always)]
    fn add_fours(sums: Self::Sums, line: &[[i8; 4]], four: [u8; 4]) -> Self::Sums {
        (V::add_fours(sums.0, line, four), V::add_fours(sums.1, &line[V::LANES..], four))
    }

    #[inline(always)]
    fn extremes(least: Self, most: Self) -> (f32, f32) {
        V::extremes(least.0.min(least.1), most.0.max(most.1))
    }

    #[inline(always)]
    fn last_bytes([a, b, c, d]: [Self; 4], to: &mut [u8]) {
        V::last_bytes([a.0, a.1, b.0, b.1], to);
        V::last_bytes([c.0, c.1, d.0, d.1], &mut to[4 * V::LANES..]);
    }
}

impl<V: Bf16Products> Bf16Products for Pair<V> {
    #[inline(always)]
    fn add_bf16_pairs(self, pair: [i16; 2], line: &[[i16; 2]]) -> Self {
        Pair(self.0.add_bf16_pairs(pair, line), self.1.add_bf16_pairs(pair, &line[V::LANES..]))
    }

    #[inline(always)]
    fn to_bf16(self, to: &mut [i16]) {
        self.0.to_bf16(to);
        self.1.to_bf16(&mut to[V::LANES..]);
    }
}
