//! Numbers for choosing at random, the same for a seed everywhere: SplitMix64.

#[derive(Clone, Debug)]
pub(super) struct Random(u64);

impl Random {
    pub(super) fn new(seed: u64) -> Random {
        Random(seed)
    }

    /// Another sequence for each number, such as that of a part: work done in any order then sees
    /// the same numbers.
    pub(super) fn fork(&self, number: usize) -> Random {
        let mut random = Random(self.0 ^ (number as u64).wrapping_mul(0xD1B5_4A32_D192_ED03));
        random.next();
        Random(random.next())
    }

    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// From 0 to just below 1.
    pub(super) fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// From 0 to just below `count`, which is not 0.
    #[allow(clippy::cast_possible_truncation)]
    pub(super) fn below(&mut self, count: usize) -> usize {
        // The upper half of the product is below `count`, so it fits.
        ((u128::from(self.next()) * count as u128) >> 64) as usize
    }

    /// All numbers below `count`, shuffled.
    pub(super) fn permutation(&mut self, count: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..count).collect();
        for i in (1..count).rev() {
            order.swap(i, self.below(i + 1));
        }
        order
    }
}
