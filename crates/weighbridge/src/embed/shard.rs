//! A part of an input, for one of several workers, and which input it was.

use super::{IntoTextRow, TextRow};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::fmt;
use weighbridge_format::Error;

/// One of several parts of an input: every so many rows, one of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Shard {
    /// Which of them, counted from 1. Row `r` belongs to the shard `r mod of + 1`.
    pub number: u64,
    /// How many there are.
    pub of: u64,
}

impl Shard {
    /// None if there is no such part.
    pub fn new(number: u64, of: u64) -> Option<Shard> {
        (1..=of).contains(&number).then_some(Shard { number, of })
    }

    /// Out of `3/8`.
    pub fn parse(text: &str) -> Option<Shard> {
        let (number, of) = text.split_once('/')?;
        Shard::new(number.trim().parse().ok()?, of.trim().parse().ok()?)
    }

    /// Whether a row of the input belongs to it.
    pub fn has(&self, row: u64) -> bool {
        row % self.of.max(1) == self.number.saturating_sub(1)
    }

    /// How many of so many rows belong to it.
    pub fn share(&self, rows: u64) -> u64 {
        let before = self.number.saturating_sub(1);
        rows.saturating_sub(before).div_ceil(self.of.max(1))
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.number, self.of)
    }
}

/// Which input it was: inputs with the same rows have the same.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct InputId {
    /// How many rows all of it has.
    pub rows: u64,
    /// SHA-256 of the records of all rows, each with a line break behind it.
    pub sha256: String,
}

/// The rows of a shard among all rows of an input, which it counts and hashes on the way.
pub struct InputRows<I> {
    rows: I,
    shard: Option<Shard>,
    count: u64,
    hash: Sha256,
}

impl<I> fmt::Debug for InputRows<I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let InputRows { shard, count, .. } = self;
        f.debug_struct("InputRows").field("shard", shard).field("count", count).finish()
    }
}

impl<I> InputRows<I> {
    /// All rows, or those of one shard.
    pub fn new(rows: I, shard: Option<Shard>) -> InputRows<I> {
        InputRows { rows, shard, count: 0, hash: Sha256::new() }
    }

    /// Which input it is, once the last row was read.
    pub fn id(&self) -> InputId {
        InputId { rows: self.count, sha256: hex(&self.hash.clone().finalize()) }
    }

    /// What the rows are read from.
    pub fn get_ref(&self) -> &I {
        &self.rows
    }
}

impl<T: IntoTextRow, I: Iterator<Item = T>> Iterator for InputRows<I> {
    type Item = Result<TextRow, Error>;

    fn next(&mut self) -> Option<Result<TextRow, Error>> {
        loop {
            let row = match self.rows.next()?.into_text_row() {
                Ok(row) => row,
                Err(error) => return Some(Err(error)),
            };
            self.hash.update(row.record.as_bytes());
            self.hash.update(b"\n");
            self.count += 1;
            if self.shard.is_none_or(|shard| shard.has(self.count - 1)) {
                return Some(Ok(row));
            }
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let (_, most) = self.rows.size_hint();
        match self.shard {
            None => (0, most),
            Some(_) => (0, None),
        }
    }
}

/// Hexadecimal digits.
pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_belongs_to_one_shard() {
        for (rows, of) in [(0u64, 1), (1, 3), (7, 3), (8, 8), (5, 8), (100, 7)] {
            let shards: Vec<Shard> = (1..=of).filter_map(|n| Shard::new(n, of)).collect();
            for row in 0..rows {
                assert_eq!(shards.iter().filter(|shard| shard.has(row)).count(), 1);
                assert!(shards[(row % of) as usize].has(row));
            }
            for shard in &shards {
                let count = (0..rows).filter(|row| shard.has(*row)).count() as u64;
                assert_eq!(shard.share(rows), count, "{shard} of {rows}");
            }
        }
        assert_eq!(Shard::parse("3/8"), Shard::new(3, 8));
        for wrong in ["0/8", "9/8", "3", "3/", "/8", "-1/8", "a/b", "3/0", ""] {
            assert_eq!(Shard::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn an_input_is_the_same_for_each_of_its_shards() {
        let texts = ["one", "two", "three", "four", "five"];
        let read = |shard: Option<Shard>| {
            let mut rows = InputRows::new(texts.into_iter(), shard);
            let texts: Vec<_> = rows.by_ref().map(|row| row.unwrap().text).collect();
            (texts, rows.id())
        };
        let (all, id) = read(None);
        assert_eq!((all.len(), id.rows), (5, 5));
        let (second, same) = read(Shard::new(2, 2));
        assert_eq!(second, ["two", "four"]);
        assert_eq!(same, id);
        let other = InputRows::new(["one"].into_iter(), None);
        assert_ne!(other.id(), id);
    }
}
