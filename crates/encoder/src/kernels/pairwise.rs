//! Values with others beside them: gates, and queries and keys that are turned.

use weighbridge_codec::simd::{Eight, dispatch};

dispatch! {
    /// Multiplies values by others.
    pub(crate) fn multiply(values: &mut [f32], by: &[f32]) = eight multiply_with;
    /// Turns vectors of `2 * cos.len()` values, one behind the other: each value of the first half and the
    /// one in its place in the second are a point in the plane, which is turned by its own angle.
    pub(crate) fn turn(vectors: &mut [f32], cos: &[f32], sin: &[f32]) = eight turn_with;
}

#[inline(always)]
fn multiply_with<V: Eight>(token: V::Token, values: &mut [f32], by: &[f32]) {
    let (lanes, rest) = values.as_chunks_mut::<8>();
    let (by_lanes, by_rest) = by.as_chunks::<8>();
    for (lanes, by) in lanes.iter_mut().zip(by_lanes) {
        V::load(token, lanes).mul(V::load(token, by)).store(lanes);
    }
    for (value, by) in rest.iter_mut().zip(by_rest) {
        *value *= by;
    }
}

#[inline(always)]
fn turn_with<V: Eight>(token: V::Token, vectors: &mut [f32], cos: &[f32], sin: &[f32]) {
    let half = cos.len();
    let (cos_lanes, cos_rest) = cos.as_chunks::<8>();
    let (sin_lanes, sin_rest) = sin.as_chunks::<8>();
    for vector in vectors.chunks_exact_mut((2 * half).max(1)) {
        let (first, second) = vector.split_at_mut(half);
        let (first, first_rest) = first.as_chunks_mut::<8>();
        let (second, second_rest) = second.as_chunks_mut::<8>();
        let angles = cos_lanes.iter().zip(sin_lanes);
        for ((x, y), (cos, sin)) in first.iter_mut().zip(second).zip(angles) {
            let (cos, sin) = (V::load(token, cos), V::load(token, sin));
            let (from_x, from_y) = (V::load(token, x), V::load(token, y));
            from_x.mul(cos).sub(from_y.mul(sin)).store(x);
            from_y.mul(cos).add(from_x.mul(sin)).store(y);
        }
        let angles = cos_rest.iter().zip(sin_rest);
        for ((x, y), (cos, sin)) in first_rest.iter_mut().zip(second_rest).zip(angles) {
            (*x, *y) = (*x * cos - *y * sin, *y * cos + *x * sin);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::noise;
    use super::*;
    use weighbridge_codec::simd::Level;

    /// For all widths, at every level.
    #[test]
    fn every_level_follows_the_definition() {
        for level in Level::available() {
            for half in (1..=20).chain([32, 48]) {
                let (x, cos, sin) = (noise(6 * half, 3), noise(half, 4), noise(half, 5));
                let mut turned = x.clone();
                turn(level, &mut turned, &cos, &sin);
                for (from, to) in x.chunks_exact(2 * half).zip(turned.chunks_exact(2 * half)) {
                    for i in 0..half {
                        let (a, b) = (from[i], from[half + i]);
                        assert_eq!(to[i], a * cos[i] - b * sin[i], "{level} {half}");
                        assert_eq!(to[half + i], b * cos[i] + a * sin[i], "{level} {half}");
                    }
                }
                let mut product = cos.clone();
                multiply(level, &mut product, &sin);
                let expected: Vec<f32> = cos.iter().zip(&sin).map(|(a, b)| a * b).collect();
                assert_eq!(product, expected, "{level} {half}");
            }
        }
    }
}
