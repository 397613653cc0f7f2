//! Eight blocks side by side, and what storing them with given scales would cost.

use super::{BLOCK, GROUP, Quantizer};
use crate::simd::{Eight, Vector};

/// Adding and subtracting it rounds what is smaller than 2^22 to an integer, ties to even.
const ROUNDER: f32 = 1.5 * (1 << 23) as f32;

/// The least that a column counts, beside the most important one. Columns that don't count at all
/// would leave a block of them without any best scale.
const LEAST_IMPORTANCE: f32 = 1e-6;

/// Eight blocks, each in a lane of its own: whatever is done for one is done for all, and sums need
/// no adding up across lanes. Blocks that a row doesn't have are zero.
///
/// Signs are left out. Codes are symmetric, so they make no difference to scales.
pub(super) struct Group<V: Vector> {
    token: V::Token,
    magnitudes: [V; BLOCK],
    importance: Option<[V; BLOCK]>,
    /// The largest code.
    pub(super) limit: V,
    /// The largest magnitude of each block.
    pub(super) largest: V,
    /// The error of each block if all its codes were zero.
    pub(super) energy: V,
}

impl<V: Eight> Group<V> {
    /// The group at `start` of a row. `most_important` is the largest importance of a column.
    #[inline(always)]
    pub(super) fn new(
        token: V::Token,
        quantizer: &Quantizer<'_>,
        row: &[f32],
        start: usize,
        most_important: f32,
    ) -> Self {
        let end = row.len().min(start + GROUP);
        let bounds =
            (V::splat(token, quantizer.recipe.clip.0), V::splat(token, quantizer.recipe.clip.1));
        let mut magnitudes = block_per_lane(token, &row[start..end]);
        for lanes in &mut magnitudes {
            *lanes = V::clamp(*lanes, bounds).abs();
        }
        let importance = match quantizer.recipe.importance {
            None => None,
            Some(importance) => {
                let mut weights = block_per_lane(token, &importance[start..end]);
                for lanes in &mut weights {
                    *lanes = V::div(*lanes, V::splat(token, most_important));
                    *lanes = lanes.max(V::splat(token, LEAST_IMPORTANCE));
                }
                Some(weights)
            }
        };
        let limit = V::splat(token, f32::from(quantizer.method.largest_code()));
        let zero = V::splat(token, 0.0);
        let mut group = Group { token, magnitudes, importance, limit, largest: zero, energy: zero };
        for (i, lanes) in group.magnitudes.iter().enumerate() {
            group.largest = lanes.max(group.largest);
            group.energy = group.energy.add(group.weigh(i, lanes.mul(*lanes)));
        }
        group
    }

    /// An error in a column, multiplied by the column's importance.
    #[inline(always)]
    fn weigh(&self, column: usize, error: V) -> V {
        match &self.importance {
            None => error,
            Some(importance) => error.mul(importance[column]),
        }
    }

    /// The squared error of each block when it has this scale; NaN where the scale is zero or
    /// infinite.
    #[inline(always)]
    pub(super) fn errors(&self, scales: V) -> V {
        let token = self.token;
        let inverse = V::splat(token, 1.0).div(scales);
        let mut sum = V::splat(token, 0.0);
        // In units of the scale, which saves a multiplication for every value.
        for (i, lanes) in self.magnitudes.iter().enumerate() {
            let quotient = lanes.mul(inverse);
            let error = quotient.sub(nearest_integer(token, quotient).min(self.limit));
            sum = sum.add(self.weigh(i, error.mul(error)));
        }
        sum.mul(scales.mul(scales))
    }

    /// The scales that suit best the codes that these scales give.
    #[inline(always)]
    pub(super) fn refit(&self, scales: V) -> V {
        let token = self.token;
        let inverse = V::splat(token, 1.0).div(scales);
        let mut value_by_code = V::splat(token, 0.0);
        let mut code_by_code = V::splat(token, 0.0);
        for (i, lanes) in self.magnitudes.iter().enumerate() {
            let code = nearest_integer(token, lanes.mul(inverse)).min(self.limit);
            let weighed = self.weigh(i, code);
            value_by_code = value_by_code.add(lanes.mul(weighed));
            code_by_code = code_by_code.add(code.mul(weighed));
        }
        value_by_code.div(code_by_code)
    }
}

#[inline(always)]
pub(super) fn nearest_integer<V: Eight>(token: V::Token, value: V) -> V {
    value.add(V::splat(token, ROUNDER)).sub(V::splat(token, ROUNDER))
}

/// Up to eight blocks, transposed: each block in a lane of its own, padded with zeros.
#[inline(always)]
fn block_per_lane<V: Eight>(token: V::Token, values: &[f32]) -> [V; BLOCK] {
    let mut padded;
    let full: &[f32; GROUP] = match values.try_into() {
        Ok(full) => full,
        Err(_) => {
            padded = [0.0; GROUP];
            padded[..values.len()].copy_from_slice(values);
            &padded
        }
    };
    let (eights, _) = full.as_chunks::<8>();
    let mut columns = [V::splat(token, 0.0); BLOCK];
    for (quarter, columns) in columns.as_chunks_mut::<8>().0.iter_mut().enumerate() {
        for (block, lanes) in columns.iter_mut().enumerate() {
            *lanes = V::load(token, &eights[block * BLOCK / 8 + quarter]);
        }
        *columns = V::transpose(*columns);
    }
    columns
}
