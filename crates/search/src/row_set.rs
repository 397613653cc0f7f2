//! Sets of rows.

use std::ops::Range;

/// Some of the rows of a matrix, a bit for each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowSet {
    words: Vec<u64>,
    /// Rows that may be in it: those below.
    count: usize,
}

impl RowSet {
    /// An empty set for a matrix of so many rows.
    pub fn new(count: usize) -> RowSet {
        RowSet { words: vec![0; count.div_ceil(64)], count }
    }

    /// The rows of such a matrix for which `wanted` is true.
    pub fn from_fn(count: usize, wanted: impl Fn(usize) -> bool) -> RowSet {
        let mut set = RowSet::new(count);
        (0..count).filter(|row| wanted(*row)).for_each(|row| set.insert(row));
        set
    }

    /// Adds a row. One that the matrix does not have is left out.
    pub fn insert(&mut self, row: usize) {
        if row < self.count {
            self.words[row / 64] |= 1 << (row % 64);
        }
    }

    /// Whether a row is in it.
    pub fn contains(&self, row: usize) -> bool {
        self.words.get(row / 64).is_some_and(|word| word >> (row % 64) & 1 == 1)
    }

    /// How many rows are in it.
    pub fn len(&self) -> usize {
        self.words.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.words.iter().all(|word| *word == 0)
    }

    /// How many of a range are in it.
    pub(crate) fn count_in(&self, range: Range<usize>) -> usize {
        let first = range.start / 64;
        let words = self.words.get(first..).unwrap_or_default();
        let bits = words.iter().zip(first..).take_while(|(_, i)| i * 64 < range.end);
        let each = bits.map(|(word, i)| {
            let from = range.start.saturating_sub(i * 64).min(64);
            let to = (range.end - i * 64).min(64);
            let below = |n: usize| if n == 64 { u64::MAX } else { (1 << n) - 1 };
            (word & below(to) & !below(from)).count_ones() as usize
        });
        each.sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_counted_in_any_range() {
        for count in [0, 1, 63, 64, 65, 200] {
            let set = RowSet::from_fn(count, |row| row % 3 == 1);
            assert_eq!(set.len(), (0..count).filter(|row| row % 3 == 1).count());
            assert_eq!(set.is_empty(), count < 2);
            for start in 0..210 {
                for end in start..210 {
                    let expected = (start..end).filter(|row| set.contains(*row)).count();
                    assert_eq!(set.count_in(start..end), expected, "{count} {start} {end}");
                }
            }
            assert!(!set.contains(count + 1) && !set.contains(usize::MAX));
        }
    }
}
