//! Finding a token's number.

use rayon::prelude::*;
use std::hash::{BuildHasher, RandomState};

/// A hash table of token numbers. The tokens stay where they are; a slot has some bits of a token's
/// hash, so that hardly any token is looked at in vain.
#[derive(Debug)]
pub(super) struct Index {
    /// Keyed anew in each process, so that no file can be made to collide.
    hasher: RandomState,
    slots: Vec<Slot>,
    used: usize,
    /// The first token that stands twice, with its earlier number.
    pub(super) duplicate: Option<(usize, usize)>,
}

/// The upper half of a hash and a number above zero; all zero when free.
type Slot = (u32, u32);

impl Index {
    /// Of so many tokens. Past 2^32 - 2 of them the rest is not found.
    pub(super) fn new<'a>(count: usize, token: impl Fn(usize) -> &'a [u8] + Sync) -> Index {
        let hasher = RandomState::new();
        let count = count.min(u32::MAX as usize - 1);
        let mut index = Index { hasher, slots: vec![(0, 0); 16], used: 0, duplicate: None };
        // Hashing is most of the work and goes on all cores, some tokens at a time. The table grows
        // with the tokens that differ: a file of many equal ones needs none for them.
        const TOGETHER: usize = 1 << 16;
        for start in (0..count).step_by(TOGETHER) {
            let some = start..(start + TOGETHER).min(count);
            let hash = |id: usize| index.hasher.hash_one(token(id));
            // Fewer are done sooner than other threads wake up.
            let hashes: Vec<u64> = if some.len() < 4096 {
                some.clone().map(hash).collect()
            } else {
                some.clone().into_par_iter().with_min_len(4096).map(hash).collect()
            };
            let needed = 2 * (index.used + some.len());
            if index.slots.len() < needed {
                index.grow(needed, &token);
            }
            for (id, hash) in some.zip(hashes) {
                index.insert(id, hash, &token);
            }
        }
        index
    }

    fn grow<'a>(&mut self, needed: usize, token: &impl Fn(usize) -> &'a [u8]) {
        let size = needed.next_power_of_two();
        let old = std::mem::replace(&mut self.slots, vec![(0, 0); size]);
        self.used = 0;
        for (_, id) in old.into_iter().filter(|slot| slot.1 != 0) {
            let id = id as usize - 1;
            self.insert(id, self.hasher.hash_one(token(id)), token);
        }
    }

    fn insert<'a>(&mut self, id: usize, hash: u64, token: &impl Fn(usize) -> &'a [u8]) {
        let (mut at, tag) = self.start(hash);
        loop {
            match self.slots[at] {
                (_, 0) => {
                    self.slots[at] = (tag, u32::try_from(id + 1).unwrap_or(0));
                    self.used += 1;
                    return;
                }
                (other, there) if other == tag && token(there as usize - 1) == token(id) => {
                    self.duplicate = self.duplicate.or(Some((id, there as usize - 1)));
                    return;
                }
                _ => at = (at + 1) & (self.slots.len() - 1),
            }
        }
    }

    pub(super) fn find<'a>(
        &self,
        wanted: &[u8],
        token: impl Fn(usize) -> &'a [u8],
    ) -> Option<usize> {
        let (mut at, tag) = self.start(self.hasher.hash_one(wanted));
        loop {
            match self.slots[at] {
                (_, 0) => return None,
                (other, id) if other == tag && token(id as usize - 1) == wanted => {
                    return Some(id as usize - 1);
                }
                _ => at = (at + 1) & (self.slots.len() - 1),
            }
        }
    }

    /// The first slot to look at, and what it must have.
    #[allow(clippy::cast_possible_truncation)]
    fn start(&self, hash: u64) -> (usize, u32) {
        (hash as usize & (self.slots.len() - 1), (hash >> 32) as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_token_is_found_and_no_other() {
        for count in [0, 1, 7, 8, 9, 70_000] {
            let tokens: Vec<_> = (0..count).map(|i| format!("w{i}").into_bytes()).collect();
            let token = |i: usize| tokens[i].as_slice();
            let index = Index::new(count, token);
            assert!((0..count).all(|i| index.find(token(i), token) == Some(i)));
            assert_eq!(index.find(b"x", token), None);
            assert_eq!(index.duplicate, None);
        }
    }

    #[test]
    fn the_first_of_equal_tokens_counts() {
        let tokens = ["a", "b", "", "b", "a", ""];
        let token = |i: usize| tokens[i].as_bytes();
        let index = Index::new(tokens.len(), token);
        assert_eq!(index.duplicate, Some((3, 1)));
        assert_eq!(index.find(b"", token), Some(2));
    }
}
