//! Eight floats that are worked on at once.

/// Eight f32, with operations that give the same bits on every machine.
///
/// An implementation for a vector unit uses single correctly rounded operations, and never fuses a
/// multiplication with an addition.
pub(super) trait Lanes: Copy {
    /// The same value in all lanes.
    fn splat(value: f32) -> Self;
    fn load(values: &[f32; 8]) -> Self;
    fn to_array(self) -> [f32; 8];
    fn add(self, other: Self) -> Self;
    fn sub(self, other: Self) -> Self;
    fn mul(self, other: Self) -> Self;
    fn div(self, other: Self) -> Self;
    fn abs(self) -> Self;
    /// The smaller ones; `other` where one of the two is NaN.
    fn min(self, other: Self) -> Self;
    /// The larger ones; `other` where one of the two is NaN.
    fn max(self, other: Self) -> Self;
    /// The magnitudes of `self`, which must not be negative, with the signs of `other`.
    fn with_sign_of(self, other: Self) -> Self;
    /// `yes` where `a` is less than `b`, else `no`.
    fn select_less(a: Self, b: Self, yes: Self, no: Self) -> Self;
    /// BlockRows to columns.
    fn transpose(rows: [Self; 8]) -> [Self; 8];
    /// The largest of the eight, none of which may be NaN.
    fn largest(self) -> f32;
    /// Whole parts of 32 values, which must lie within -128 and 127, as bytes.
    fn truncate(values: [Self; 4]) -> [u8; 32];

    /// Within the bounds; a NaN becomes the upper one.
    #[inline(always)]
    fn clamp(self, (low, high): (Self, Self)) -> Self {
        self.min(high).max(low)
    }
}

/// The reference implementation in plain Rust, which the vector versions are tested against.
#[derive(Clone, Copy)]
pub(super) struct Plain([f32; 8]);

impl Plain {
    #[inline(always)]
    fn with(self, other: Plain, operation: impl Fn(f32, f32) -> f32) -> Plain {
        let mut result = self.0;
        for (a, b) in result.iter_mut().zip(other.0) {
            *a = operation(*a, b);
        }
        Plain(result)
    }
}

impl Lanes for Plain {
    #[inline(always)]
    fn splat(value: f32) -> Self {
        Plain([value; 8])
    }

    #[inline(always)]
    fn load(values: &[f32; 8]) -> Self {
        Plain(*values)
    }

    #[inline(always)]
    fn to_array(self) -> [f32; 8] {
        self.0
    }

    #[inline(always)]
    fn add(self, other: Self) -> Self {
        self.with(other, |a, b| a + b)
    }

    #[inline(always)]
    fn sub(self, other: Self) -> Self {
        self.with(other, |a, b| a - b)
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
    fn abs(self) -> Self {
        Plain(self.0.map(f32::abs))
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
    fn with_sign_of(self, other: Self) -> Self {
        self.with(other, f32::copysign)
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
    fn largest(self) -> f32 {
        self.0.into_iter().reduce(|a, b| if a > b { a } else { b }).unwrap_or(0.0)
    }

    #[inline(always)]
    #[allow(clippy::cast_possible_truncation)]
    fn truncate(values: [Self; 4]) -> [u8; 32] {
        let mut bytes = [0; 32];
        for (part, lanes) in bytes.chunks_exact_mut(8).zip(values) {
            for (byte, value) in part.iter_mut().zip(lanes.0) {
                *byte = (value as i32 as i8).cast_unsigned();
            }
        }
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_vector_version_agrees_with_the_definition() {
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx2") {
            agrees::<super::super::avx2::Avx2>();
        }
        #[cfg(target_arch = "aarch64")]
        if super::super::neon::AVAILABLE {
            agrees::<super::super::neon::Neon>();
        }
    }

    /// Numbers of all kinds, each paired with each.
    fn agrees<L: Lanes>() {
        let sizes = [0.0, 1e-45, 1e-38, 0.3, 1.0, 1.5, 127.0, 3e9, f32::MAX, f32::INFINITY];
        let values: Vec<f32> = sizes.into_iter().flat_map(|v| [v, -v]).chain([f32::NAN]).collect();
        let pairs: Vec<(f32, f32)> =
            values.iter().flat_map(|&a| values.iter().map(move |&b| (a, b))).collect();
        for pairs in pairs.windows(8) {
            let (a, b): (Vec<f32>, Vec<f32>) = pairs.iter().copied().unzip();
            let (a, b): ([f32; 8], [f32; 8]) = (a.try_into().unwrap(), b.try_into().unwrap());
            for (found, expected) in results::<L>(a, b).into_iter().zip(results::<Plain>(a, b)) {
                for (found, expected) in found.into_iter().zip(expected) {
                    let same = found.to_bits() == expected.to_bits();
                    assert!(same || found.is_nan() && expected.is_nan(), "{a:?} {b:?}");
                }
            }
            if !a.iter().any(|a| a.is_nan()) {
                assert_eq!(L::load(&a).largest(), Plain(a).largest(), "{a:?}");
            }
        }
        for from in -128..=0 {
            let values: [[f32; 8]; 4] = std::array::from_fn(|i| {
                std::array::from_fn(|j| (from + 8 * i as i32 + j as i32) as f32 * 0.99)
            });
            let found = L::truncate(values.map(|v| L::load(&v)));
            assert_eq!(found, Plain::truncate(values.map(Plain)), "{values:?}");
        }
    }

    /// What every operation gives that works lane by lane, and the columns of rows that all differ.
    fn results<L: Lanes>(a: [f32; 8], b: [f32; 8]) -> Vec<[f32; 8]> {
        let rows: [L; 8] = std::array::from_fn(|i| L::load(&a).mul(L::splat(i as f32)));
        let (a, b) = (L::load(&a), L::load(&b));
        let mut results = vec![
            a.add(b),
            a.sub(b),
            a.mul(b),
            a.div(b),
            a.abs(),
            a.min(b),
            a.max(b),
            a.abs().with_sign_of(b),
            L::select_less(a, b, L::splat(1.0), L::splat(2.0)),
            a.clamp((L::splat(-1.0), b)),
        ];
        results.extend(L::transpose(rows));
        results.into_iter().map(L::to_array).collect()
    }
}
