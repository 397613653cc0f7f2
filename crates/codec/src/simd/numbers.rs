//! Values that are given numbers of 16 bits, which are counted: what histograms are made with.

use super::Vector;

/// Vectors whose lanes can be taken as numbers.
pub trait Numbers: Vector {
    /// Numbers of 16 bits, two for each lane.
    type Halves: Copy;
    /// Bytes, four for each lane.
    type Quarters: Copy;

    /// `self * by + plus`, always rounded once.
    fn multiplied(self, by: Self, plus: Self) -> Self;
    /// Zeros.
    fn no_halves(token: Self::Token) -> Self::Halves;
    /// Zeros.
    fn no_quarters(token: Self::Token) -> Self::Quarters;
    /// The lower halves of the bits of all lanes: lane `i` of `self` at `2 * i`, and that of `other` behind it.
    fn lower_halves(self, other: Self) -> Self::Halves;
    /// What is left of numbers without their lowest bits, which must fit a byte; in any order.
    fn upper_bits<const SHIFT: i32>(a: Self::Halves, b: Self::Halves) -> Self::Quarters;
    /// Adds what a table has at each place, all of which are below sixteen, to a count. They wrap around.
    fn add_from(counts: Self::Quarters, table: &[u8; 16], places: Self::Quarters)
    -> Self::Quarters;
    /// Adds to each count how many of its two numbers are below a limit, as signed ones.
    fn add_lower(
        counts: Self::Halves,
        a: Self::Halves,
        b: Self::Halves,
        limit: u16,
    ) -> Self::Halves;
    /// A bit for each of the numbers, those of the second behind those of the first: whether its lowest bits are
    /// not above `lowest`, or it is one of a range, which wraps around.
    fn are_among<const BITS: i32>(
        numbers: [Self::Halves; 2],
        lowest: u16,
        range: (u16, u16),
    ) -> u64;
    /// Puts numbers at the beginning of a slice.
    ///
    /// # Panics
    ///
    /// When there are fewer places.
    fn store_halves(halves: Self::Halves, to: &mut [u16]);
    /// Puts bytes at the beginning of a slice.
    ///
    /// # Panics
    ///
    /// When there are fewer places.
    fn store_quarters(quarters: Self::Quarters, to: &mut [u8]);
}

/// The definition, for vectors of eight lanes that have no instructions for it.
macro_rules! numbers_in_arrays {
    ($vector:ty $(, const $name:ident: $kind:ty)*) => {
        impl<$(const $name: $kind),*> $crate::simd::Numbers for $vector {
            type Halves = [u16; 16];
            type Quarters = [u8; 32];

            #[inline(always)]
            fn multiplied(self, by: Self, plus: Self) -> Self {
                self.fused_mul_add(by, plus)
            }

            #[inline(always)]
            fn no_halves(_: Self::Token) -> [u16; 16] {
                [0; 16]
            }

            #[inline(always)]
            fn no_quarters(_: Self::Token) -> [u8; 32] {
                [0; 32]
            }

            #[inline(always)]
            #[allow(clippy::cast_possible_truncation, reason = "the upper halves are dropped")]
            fn lower_halves(self, other: Self) -> [u16; 16] {
                let (a, b) = (self.to_array(), other.to_array());
                let mut halves = [0; 16];
                for (two, (a, b)) in halves.chunks_exact_mut(2).zip(a.iter().zip(&b)) {
                    (two[0], two[1]) = (a.to_bits() as u16, b.to_bits() as u16);
                }
                halves
            }

            #[inline(always)]
            #[allow(clippy::cast_possible_truncation, reason = "it fits")]
            fn upper_bits<const SHIFT: i32>(a: [u16; 16], b: [u16; 16]) -> [u8; 32] {
                let mut bits = [0; 32];
                for (bits, number) in bits.iter_mut().zip(a.iter().chain(&b)) {
                    *bits = (number >> SHIFT) as u8;
                }
                bits
            }

            #[inline(always)]
            fn add_from(counts: [u8; 32], table: &[u8; 16], places: [u8; 32]) -> [u8; 32] {
                let mut sums = counts;
                for (sum, place) in sums.iter_mut().zip(places) {
                    *sum = sum.wrapping_add(table[usize::from(place % 16)]);
                }
                sums
            }

            #[inline(always)]
            fn add_lower(counts: [u16; 16], a: [u16; 16], b: [u16; 16], limit: u16) -> [u16; 16] {
                let mut sums = counts;
                for (sum, (a, b)) in sums.iter_mut().zip(a.iter().zip(&b)) {
                    for number in [a, b] {
                        *sum += u16::from(number.cast_signed() < limit.cast_signed());
                    }
                }
                sums
            }

            #[inline(always)]
            fn are_among<const BITS: i32>(
                numbers: [[u16; 16]; 2],
                lowest: u16,
                (first, span): (u16, u16),
            ) -> u64 {
                let mut found = 0;
                for (bit, number) in numbers.as_flattened().iter().enumerate() {
                    let is_low = number & ((1 << BITS) - 1) <= lowest;
                    found |= u64::from(is_low | (number.wrapping_sub(first) <= span)) << bit;
                }
                found
            }

            #[inline(always)]
            fn store_halves(halves: [u16; 16], to: &mut [u16]) {
                to[..16].copy_from_slice(&halves);
            }

            #[inline(always)]
            fn store_quarters(quarters: [u8; 32], to: &mut [u8]) {
                to[..32].copy_from_slice(&quarters);
            }
        }
    };
}
pub(super) use numbers_in_arrays;
