//! Which of many values reach a limit. Nearly none do, so that many are compared at a time.

use crate::simd::{Eight, EightKernel, Level};

/// The first `r` from `from` on for which `products[r] + slope * xs[r]` is not less than the limit;
/// NaN is not. It is rounded once or twice.
///
/// # Panics
///
/// When there are not as many `xs` as products.
pub fn next_to_reach(
    level: Level,
    products: &[f32],
    xs: &[f32],
    (slope, limit): (f32, f32),
    from: usize,
) -> Option<usize> {
    assert_eq!(products.len(), xs.len(), "as many of each");
    level.run_eight(Next { products, xs, slope, limit, from })
}

struct Next<'a> {
    products: &'a [f32],
    xs: &'a [f32],
    slope: f32,
    limit: f32,
    from: usize,
}

impl EightKernel for Next<'_> {
    type Output = Option<usize>;

    #[inline(always)]
    fn run<V: Eight>(self, token: V::Token) -> Option<usize> {
        let Next { products, xs, slope, limit, from } = self;
        let (slopes, limits) = (V::splat(token, slope), V::splat(token, limit));
        let products = products.get(from..)?;
        let xs = &xs[from..];
        let (eights, rest) = products.as_chunks::<8>();
        let (eight_xs, rest_xs) = xs.as_chunks::<8>();
        for (i, (eight, x)) in eights.iter().zip(eight_xs).enumerate() {
            let sums = V::load(token, x).mul_add(slopes, V::load(token, eight));
            if sums.any_reaches(limits) {
                let lanes = sums.to_array();
                #[allow(clippy::neg_cmp_op_on_partial_ord, reason = "NaN reaches every limit")]
                let lane = lanes.iter().position(|sum| !(*sum < limit)).unwrap_or(0);
                return Some(from + 8 * i + lane);
            }
        }
        #[allow(clippy::neg_cmp_op_on_partial_ord, reason = "NaN reaches every limit")]
        let reaches = |(product, x): (&f32, &f32)| !(slope * x + product < limit);
        let rest = rest.iter().zip(rest_xs).position(reaches)?;
        Some(from + 8 * eights.len() + rest)
    }
}
