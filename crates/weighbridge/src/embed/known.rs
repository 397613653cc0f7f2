//! Which texts have a vector already, by the hashes of the texts.

use super::reuse::Earlier;
use super::{TextRow, Wanted};
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use weighbridge_codec::parallel::*;
use weighbridge_format::Error;

/// The first 16 bytes of the SHA-256 of a text: no two texts have the same.
pub(super) type TextHash = [u8; HASH_BYTES];
pub(super) const HASH_BYTES: usize = 16;

pub(super) fn hash_of(text: &str) -> TextHash {
    let hash = Sha256::digest(text.as_bytes());
    std::array::from_fn(|i| hash[i])
}

/// Where the vector of a row comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    /// It is computed: the number among those that are.
    New(usize),
    /// From an earlier file: the number of its row.
    Earlier(u64),
    /// It is that of a row of this run.
    Row(u64),
    /// It is that of a row of the same window.
    Window(usize),
}

/// The texts of earlier files and of this run. Their hashes are in files, and memory has a number of
/// eight bytes for each.
#[derive(Debug, Default)]
pub(super) struct Known {
    pub(super) earlier: Earlier,
    table: Table,
}

impl Known {
    /// Those of earlier files.
    pub(super) fn new(earlier: Earlier) -> Result<Known, Error> {
        let mut known = Known { earlier, table: Table::default() };
        let (earlier, table) = (&known.earlier, &mut known.table);
        earlier.for_each_hash(|row, hash| {
            let same = table.find(hash, |other| Ok(earlier.hash(other)? == *hash))?;
            if same.is_none() {
                table.insert(hash, row);
            }
            Ok(())
        })?;
        Ok(known)
    }

    /// Takes note of rows of this run from row `first` on. `hash` gives the hash of a row before.
    pub(super) fn add(
        &mut self,
        first: u64,
        hashes: &[TextHash],
        hash: impl Fn(u64) -> Result<TextHash, Error>,
    ) -> Result<(), Error> {
        let before = self.earlier.rows();
        for (row, own) in (first..).zip(hashes) {
            // Of a row of the same window the hash is not in the file yet.
            let of = |number: u64| match number.checked_sub(before) {
                None => self.earlier.hash(number),
                Some(row) if row >= first => Ok(hashes[(row - first) as usize]),
                Some(row) => hash(row),
            };
            if self.table.find(own, |number| Ok(of(number)? == *own))?.is_none() {
                self.table.insert(own, before + row);
            }
        }
        Ok(())
    }

    /// Where the vectors of some texts come from. `hash` gives the hash of a row of this run.
    pub(super) fn origins(
        &self,
        hashes: &[TextHash],
        hash: impl Fn(u64) -> Result<TextHash, Error>,
    ) -> Result<(Vec<Origin>, Wanted), Error> {
        let before = self.earlier.rows();
        let of = |number: u64| match number.checked_sub(before) {
            None => self.earlier.hash(number),
            Some(row) => hash(row),
        };
        let mut wanted = Wanted::default();
        let mut in_window: HashMap<&TextHash, usize> = HashMap::new();
        let mut origins = Vec::with_capacity(hashes.len());
        for (place, own) in hashes.iter().enumerate() {
            let found = self.table.find(own, |number| Ok(of(number)? == *own))?;
            let origin = match (found, in_window.get(own)) {
                (Some(number), _) if number < before => Origin::Earlier(number),
                (Some(number), _) => Origin::Row(number - before),
                (None, Some(first)) => Origin::Window(*first),
                (None, None) => {
                    in_window.insert(own, place);
                    wanted.rows.push(place);
                    Origin::New(wanted.rows.len() - 1)
                }
            };
            match origin {
                Origin::Earlier(_) => wanted.reused += 1,
                Origin::Row(_) | Origin::Window(_) => wanted.repeated.push(place),
                Origin::New(_) => {}
            }
            origins.push(origin);
        }
        Ok((origins, wanted))
    }
}

/// The hashes of texts.
pub(super) fn hashes_of(rows: &[TextRow]) -> Vec<TextHash> {
    rows.par_iter().map(|row| hash_of(&row.text)).collect()
}

/// Numbers by hashes: open addressing in many parts, so that growing takes little memory at a time.
/// Of a hash only some bits are kept; whoever asks compares the rest.
#[derive(Debug)]
struct Table {
    parts: Vec<Part>,
}

#[derive(Clone, Debug, Default)]
struct Part {
    /// The bits of a hash above a number that is counted from 1; 0 where there is nothing.
    slots: Vec<u64>,
    used: usize,
}

/// Bits of a number. Rows behind that are not noted, and may be computed twice.
const NUMBER: u32 = 36;
/// Parts, chosen by the first byte of a hash.
const PARTS: usize = 64;

impl Default for Table {
    fn default() -> Table {
        Table { parts: vec![Part::default(); PARTS] }
    }
}

impl Table {
    /// The number of a hash, if `is` says of one that has the same bits that it is that.
    fn find(
        &self,
        hash: &TextHash,
        mut is: impl FnMut(u64) -> Result<bool, Error>,
    ) -> Result<Option<u64>, Error> {
        let (part, bits) = (&self.parts[part_of(hash)], bits_of(hash));
        for slot in part.from(bits) {
            match slot {
                0 => break,
                slot if slot >> NUMBER == bits => {
                    let number = (slot & number_mask()) - 1;
                    if is(number)? {
                        return Ok(Some(number));
                    }
                }
                _ => {}
            }
        }
        Ok(None)
    }

    fn insert(&mut self, hash: &TextHash, number: u64) {
        if number < number_mask() {
            self.parts[part_of(hash)].insert(bits_of(hash) << NUMBER | (number + 1));
        }
    }
}

impl Part {
    /// The slots in which something with these bits may be, in order.
    fn from(&self, bits: u64) -> impl Iterator<Item = u64> {
        let at = self.place(bits);
        self.slots[at..].iter().chain(&self.slots[..at]).copied()
    }

    /// Where something with these bits belongs.
    fn place(&self, bits: u64) -> usize {
        // Of 28 bits and a length of a vector: it is less than the length.
        ((u128::from(bits) * self.slots.len() as u128) >> (64 - NUMBER)) as usize
    }

    fn insert(&mut self, entry: u64) {
        if self.used >= self.slots.len() / 4 * 3 {
            let larger = (self.slots.len() / 2 * 3).max(16);
            let old = std::mem::replace(&mut self.slots, vec![0; larger]);
            old.into_iter().filter(|slot| *slot != 0).for_each(|slot| self.put(slot));
        }
        self.put(entry);
        self.used += 1;
    }

    fn put(&mut self, entry: u64) {
        let at = self.place(entry >> NUMBER);
        let (before, behind) = self.slots.split_at_mut(at);
        let mut slots = behind.iter_mut().chain(before);
        if let Some(free) = slots.find(|slot| **slot == 0) {
            *free = entry;
        }
    }
}

fn part_of(hash: &TextHash) -> usize {
    usize::from(hash[0]) % PARTS
}

fn bits_of(hash: &TextHash) -> u64 {
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&hash[8..]);
    u64::from_le_bytes(bytes) >> NUMBER
}

const fn number_mask() -> u64 {
    (1 << NUMBER) - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_those_of_the_texts() {
        // The beginnings of what `sha256sum` says.
        assert_eq!(super::super::shard::hex(&hash_of("")), "e3b0c44298fc1c149afbf4c8996fb924");
        assert_eq!(super::super::shard::hex(&hash_of("abc")), "ba7816bf8f01cfea414140de5dae2223");
    }

    #[test]
    fn numbers_are_found_by_their_hashes() {
        let mut table = Table::default();
        let hashes: Vec<_> = (0..50_000).map(|i| hash_of(&i.to_string())).collect();
        for (number, hash) in (0..).zip(&hashes) {
            assert_eq!(table.find(hash, |n| Ok(hashes[n as usize] == *hash)).unwrap(), None);
            table.insert(hash, number);
        }
        for (number, hash) in (0..).zip(&hashes) {
            let found = table.find(hash, |n| Ok(hashes[n as usize] == *hash)).unwrap();
            assert_eq!(found, Some(number));
        }
        let bytes: usize = table.parts.iter().map(|part| part.slots.len() * 8).sum();
        assert!(bytes < 17 * hashes.len(), "{bytes}");
        let other = hash_of("other");
        assert_eq!(table.find(&other, |_| Ok(false)).unwrap(), None);
    }

    /// Texts with the same bits are told apart by who knows the whole hashes.
    #[test]
    fn hashes_that_are_nearly_the_same_are_told_apart() {
        let mut table = Table::default();
        let near = |i: u8| {
            let mut hash = [7; HASH_BYTES];
            hash[3] = i;
            hash
        };
        (0..100).for_each(|i| table.insert(&near(i), u64::from(i)));
        for i in 0..100 {
            let found = table.find(&near(i), |n| Ok(n == u64::from(i))).unwrap();
            assert_eq!(found, Some(u64::from(i)));
        }
    }

    #[test]
    fn texts_of_a_window_and_of_rows_before_are_found() {
        let mut known = Known::default();
        let hashes = |texts: &[&str]| texts.iter().map(|t| hash_of(t)).collect::<Vec<_>>();
        let first = hashes(&["a", "b", "a", "c"]);
        let none = |_| -> Result<TextHash, Error> { unreachable!() };
        let (origins, wanted) = known.origins(&first, none).unwrap();
        let expected = [Origin::New(0), Origin::New(1), Origin::Window(0), Origin::New(2)];
        assert_eq!(origins, expected);
        assert_eq!((wanted.rows, wanted.repeated, wanted.reused), (vec![0, 1, 3], vec![2], 0));
        known.add(0, &first, none).unwrap();
        let second = hashes(&["d", "b", "a"]);
        let (origins, wanted) = known.origins(&second, |row| Ok(first[row as usize])).unwrap();
        assert_eq!(origins, [Origin::New(0), Origin::Row(1), Origin::Row(0)]);
        assert_eq!((wanted.rows, wanted.repeated), (vec![0], vec![1, 2]));
    }
}
