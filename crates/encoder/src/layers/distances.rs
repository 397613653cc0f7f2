//! What the distance of two tokens adds to the attention, as MPNet has it.

use super::Heads;
use crate::tensors::{Tensors, not_finite};
use weighbridge_codec::scan::all_finite;
use weighbridge_format::Error;

/// Tokens that are farther apart are as far as the farthest.
const FARTHEST: f32 = 128.0;

/// For each head what each distance adds, in the order of distances from the lowest.
#[derive(Debug)]
pub(crate) struct Distances {
    values: Vec<f32>,
    /// The most tokens of a text.
    positions: usize,
}

impl Distances {
    /// Reads the table that has a row for each range of distances, and a column for each head.
    pub(crate) fn load(
        tensors: &Tensors,
        table: &str,
        heads: Heads,
        positions: usize,
    ) -> Result<Distances, Error> {
        let [ranges, _] = tensors.matrix(table)?;
        let stored = tensors.shaped(table, &[ranges, heads.count])?;
        let stored = stored.values_f32(0, ranges * heads.count)?;
        if !all_finite(&stored) {
            return Err(not_finite(table));
        }
        // Scores are divided by this later, together with what is added here.
        #[allow(clippy::cast_precision_loss)]
        let scale = (heads.width as f32).sqrt();
        let mut values = Vec::with_capacity(heads.count * (2 * positions - 1));
        for head in 0..heads.count {
            let value = |of: usize| stored[of * heads.count + head] * scale;
            values.extend((0..2 * positions - 1).map(|i| value(range(i, positions - 1, ranges))));
        }
        Ok(Distances { values, positions })
    }

    /// Some of no meaning.
    #[cfg(test)]
    pub(crate) fn noise(heads: usize, positions: usize) -> Distances {
        let values = crate::kernels::tests::noise(heads * (2 * positions - 1), 9);
        Distances { values, positions }
    }

    /// Adds to the scores that the keys of a text, from one on, have for one of its queries.
    pub(crate) fn add(&self, head: usize, query: usize, key: usize, scores: &mut [f32]) {
        let of_head = &self.values[head * (2 * self.positions - 1)..];
        let values = &of_head[self.positions - 1 + key - query..];
        scores.iter_mut().zip(values).for_each(|(score, value)| *score += value);
    }
}

/// The range that the distance from a query at one place to a key at another belongs to. Half of them are for keys
/// behind the query. Of each half the first half has one distance each, and the others grow
/// exponentially.
#[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn range(key: usize, query: usize, ranges: usize) -> usize {
    let half = ranges / 2;
    let first = if key > query { half } else { 0 };
    let apart = key.abs_diff(query);
    let exact = half / 2;
    if apart < exact || exact == 0 {
        return first + apart.min(half.saturating_sub(1));
    }
    let share = (apart as f32 / exact as f32).ln() / (FARTHEST / exact as f32).ln();
    let grown = exact + (share * (half - exact) as f32) as usize;
    first + grown.min(half - 1)
}

#[cfg(test)]
mod tests {
    use super::range;

    /// As the reference library numbers them: 32 ranges.
    #[test]
    fn distances_have_their_ranges() {
        let behind: Vec<_> = [0, 1, 7, 8, 9, 11, 12, 15, 16, 31, 32, 63, 64, 90, 91, 128, 500]
            .map(|apart| range(500 - apart, 500, 32))
            .to_vec();
        assert_eq!(behind, [0, 1, 7, 8, 8, 8, 9, 9, 10, 11, 12, 13, 14, 14, 15, 15, 15]);
        assert_eq!([1, 7, 8, 64].map(|apart| range(500 + apart, 500, 32)), [17, 23, 24, 30]);
        // Tables that no model has must not lead beyond them.
        for ranges in 1..9 {
            for key in 0..300 {
                assert!(range(key, 150, ranges) < ranges, "{ranges} {key}");
            }
        }
    }
}
