//! N-grams by name, as a finalfusion file has them.

use crate::source::Bytes;
use crate::wire::to_len;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::sync::OnceLock;

/// Bytes of an entry beside its text: a 32-bit length in front and a 64-bit index behind.
const LENGTH: usize = 4;
const INDEX: usize = 8;

/// N-grams, each with the index of its row, as they lie in the file. The table that finds one by
/// its text is made on first use, so that opening a file does not pay for it.
#[derive(Clone, Debug)]
pub struct Ngrams {
    entries: Bytes,
    count: usize,
    rows: u64,
    dense: bool,
    ordered: bool,
    /// What texts are taken from.
    settled: OnceLock<Bytes>,
    index: OnceLock<Index>,
}

/// By the n-grams and their indices, in the order of the file.
impl PartialEq for Ngrams {
    fn eq(&self, other: &Ngrams) -> bool {
        self.entries == other.entries
    }
}

/// Why entries are no n-grams: the entry's number, and where (counted from the first entry).
#[derive(Debug, PartialEq, Eq)]
pub enum BadNgram {
    /// It ends before its last byte.
    CutShort {
        /// Its number.
        ngram: usize,
        /// Where it begins.
        at: usize,
    },
    /// It is not UTF-8.
    NotUtf8 {
        /// Its number.
        ngram: usize,
        /// The first bad byte.
        at: usize,
    },
}

impl Ngrams {
    /// Entries of a u32 length, the text and a u64 index. Returns the n-grams and how many bytes
    /// their entries take.
    ///
    /// # Errors
    /// Where an entry is cut short or not UTF-8.
    pub fn parse(view: &Bytes, count: usize) -> Result<(Ngrams, usize), BadNgram> {
        let bytes: &[u8] = view;
        let mut at = 0;
        let mut order = Order::default();
        for ngram in 0..count {
            let (text, index, next) = entry(bytes, at).ok_or(BadNgram::CutShort { ngram, at })?;
            if let Err(e) = std::str::from_utf8(text) {
                return Err(BadNgram::NotUtf8 { ngram, at: at + LENGTH + e.valid_up_to() });
            }
            order.add(index);
            at = next;
        }
        let entries = view.part(0..at).unwrap_or_else(|| Bytes::owned(Vec::new()));
        Ok((Self::new(entries, count, &order), at))
    }

    /// From n-grams in memory.
    pub fn from_pairs<'a>(pairs: impl IntoIterator<Item = (&'a str, u64)>) -> Ngrams {
        let mut bytes = Vec::new();
        let mut count = 0;
        let mut order = Order::default();
        for (text, index) in pairs {
            let length = u32::try_from(text.len()).unwrap_or(u32::MAX);
            bytes.extend_from_slice(&length.to_le_bytes());
            bytes.extend_from_slice(text.as_bytes());
            bytes.extend_from_slice(&index.to_le_bytes());
            order.add(index);
            count += 1;
        }
        Self::new(Bytes::owned(bytes), count, &order)
    }

    fn new(entries: Bytes, count: usize, order: &Order) -> Ngrams {
        let rows = match order.broken {
            false => order.next,
            true => distinct(&entries, count, order.most),
        };
        Ngrams {
            entries,
            count,
            rows,
            dense: count == 0 || order.most.checked_add(1) == Some(rows),
            ordered: !order.broken,
            settled: OnceLock::new(),
            index: OnceLock::new(),
        }
    }

    fn settled(&self) -> &[u8] {
        self.settled.get_or_init(|| self.entries.settled())
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Distinct indices, which is how many rows the n-grams have.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Whether the indices are all of `0..rows`.
    pub fn is_dense(&self) -> bool {
        self.dense
    }

    /// Whether the indices first appear as 0, 1, 2, … Only then do both peers, of which one
    /// numbers them anew by first appearance, find the same rows.
    pub fn is_ordered(&self) -> bool {
        self.ordered
    }

    /// The entries as they lie in the file.
    pub fn entries(&self) -> &Bytes {
        &self.entries
    }

    /// All n-grams in order, with their indices.
    pub fn iter(&self) -> impl Iterator<Item = (&str, u64)> {
        let mut at = 0;
        std::iter::from_fn(move || {
            let (text, index, next) = entry(self.settled(), at)?;
            at = next;
            // Checked when the entries were parsed, unless the file was rewritten since.
            Some((std::str::from_utf8(text).unwrap_or_default(), index))
        })
    }

    /// The index of an n-gram; of the first one if it is there twice.
    pub fn get(&self, ngram: &str) -> Option<u64> {
        let at = self.index().find(self.settled(), ngram.as_bytes()).ok()?;
        entry(self.settled(), at).map(|(_, index, _)| index)
    }

    /// The number of the first n-gram that was there before.
    pub fn duplicate(&self) -> Option<usize> {
        self.index().duplicate
    }

    fn index(&self) -> &Index {
        self.index.get_or_init(|| Index::new(self.settled(), self.count))
    }
}

/// The entry at `at`: its text, its index and where the next begins.
fn entry(bytes: &[u8], at: usize) -> Option<(&[u8], u64, usize)> {
    let (length, rest) = bytes.get(at..)?.split_first_chunk::<LENGTH>()?;
    let length = usize::try_from(u32::from_le_bytes(*length)).ok()?;
    let (text, rest) = rest.split_at_checked(length)?;
    let (index, _) = rest.split_first_chunk::<INDEX>()?;
    Some((text, u64::from_le_bytes(*index), at + LENGTH + length + INDEX))
}

/// What is known of the indices after one walk.
#[derive(Default)]
struct Order {
    /// The index that would be new, as long as they appear in order.
    next: u64,
    most: u64,
    broken: bool,
}

impl Order {
    fn add(&mut self, index: u64) {
        self.most = self.most.max(index);
        self.broken |= index > self.next;
        self.next += u64::from(index == self.next && !self.broken);
    }
}

/// Distinct indices. What it allocates is less than the entries take.
fn distinct(bytes: &[u8], count: usize, most: u64) -> u64 {
    let mut at = 0;
    let mut indices = std::iter::from_fn(|| {
        let (_, index, next) = entry(bytes, at)?;
        at = next;
        Some(index)
    });
    match usize::try_from(most) {
        Ok(most) if most < count => {
            let mut seen = vec![0u8; most / 8 + 1];
            // A mapped file may have been rewritten since the largest was found.
            for (byte, bit) in indices.map(|index| (index / 8, index % 8)) {
                if let Some(seen) = seen.get_mut(to_len(byte)) {
                    *seen |= 1 << bit;
                }
            }
            seen.iter().map(|byte| u64::from(byte.count_ones())).sum()
        }
        _ => {
            let mut all: Vec<u64> = indices.by_ref().collect();
            all.sort_unstable();
            all.dedup();
            all.len() as u64
        }
    }
}

/// Entries by their text: a table of where they begin, probed one slot after the other. The hash
/// has a random key, so that a file can't be made to collide.
#[derive(Clone, Debug)]
struct Index {
    /// One more than where an entry begins; 0 is free. At least half the slots are.
    slots: Vec<usize>,
    hasher: RandomState,
    duplicate: Option<usize>,
}

impl Index {
    fn new(bytes: &[u8], count: usize) -> Index {
        let size = count.saturating_mul(2).next_power_of_two().max(2);
        let mut index = Index { slots: vec![0; size], hasher: RandomState::new(), duplicate: None };
        let mut at = 0;
        for number in 0..count {
            let Some((text, _, next)) = entry(bytes, at) else { break };
            match index.find(bytes, text) {
                Ok(_) => index.duplicate = index.duplicate.or(Some(number)),
                Err(slot) => index.slots[slot] = at + 1,
            }
            at = next;
        }
        index
    }

    /// Where the entry with this text begins, or the free slot where it would be noted.
    fn find(&self, bytes: &[u8], text: &[u8]) -> Result<usize, usize> {
        let mask = self.slots.len() - 1;
        let mut slot = to_len(self.hasher.hash_one(text) & mask as u64);
        loop {
            match self.slots[slot].checked_sub(1) {
                None => return Err(slot),
                Some(at) if entry(bytes, at).is_some_and(|(t, ..)| t == text) => return Ok(at),
                Some(_) => slot = (slot + 1) & mask,
            }
        }
    }
}
