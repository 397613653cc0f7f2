//! Finding a token's number.

use std::hash::{BuildHasher, RandomState};
use weighbridge_codec::parallel::*;

/// A hash table of token numbers. The tokens stay where they are; a slot has some bits of a token's
/// hash, so that hardly any token is looked at in vain, and where the token is, so that nothing
/// else has to be asked for it.
#[derive(Debug)]
pub(super) struct Index {
    /// Keyed anew in each process, so that no file can be made to collide.
    hasher: RandomState,
    slots: Vec<Slot>,
    used: usize,
    /// The first token that stands twice, with its earlier number.
    pub(super) duplicate: Option<(usize, usize)>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    /// Of the hash. Slots are in the order of their tags, but for those that had to move on.
    tag: u32,
    /// The token's number and one; zero when free.
    next_id: u32,
    start: usize,
}

/// Tokens that are put in together.
const TOGETHER: usize = 1 << 16;
/// They go in by the upper bits of their hashes: one part of the table after the other.
const PARTS: usize = 1 << 8;

impl Index {
    /// Of tokens that start at these places, in so many bytes. Past 2^32 - 2 of them the rest is not found.
    pub(super) fn new<'a>(
        starts: &[usize],
        bytes: usize,
        text: impl Fn(usize) -> &'a [u8] + Sync,
    ) -> Index {
        let hasher = RandomState::new();
        let starts = &starts[..starts.len().min(u32::MAX as usize - 1)];
        let mut index = Index { hasher, slots: Vec::new(), used: 0, duplicate: None };
        // Room for all at once, up to twice the memory of the tokens. From there the table grows
        // with those that differ: a file of many equal ones needs none for them.
        index.grow((starts.len() + starts.len() / 2).min(bytes / 8).max(16));
        // Hashing goes on all cores, some tokens at a time.
        let mut sorted = vec![Slot::default(); starts.len().min(TOGETHER)];
        for (batch, some) in starts.chunks(TOGETHER).enumerate() {
            let hash = |start: &usize| tag(index.hasher.hash_one(text(*start)));
            // Fewer are done sooner than other threads wake up.
            let tags: Vec<u32> = if some.len() < 4096 {
                some.iter().map(hash).collect()
            } else {
                some.par_iter().with_min_len(4096).map(hash).collect()
            };
            let needed = index.used + some.len();
            if index.slots.len() < needed + needed / 2 {
                index.grow(needed + needed / 2);
            }
            let sorted = &mut sorted[..some.len()];
            sort(&tags, some, batch * TOGETHER, sorted);
            for slot in sorted {
                index.insert(*slot, &text);
            }
        }
        index
    }

    /// At least twice the size, so that growing is seldom. The order stays, so that both tables are
    /// gone through from front to back.
    fn grow(&mut self, needed: usize) {
        let size = needed.max(self.slots.len().saturating_mul(2));
        let old = std::mem::replace(&mut self.slots, vec![Slot::default(); size]);
        for slot in old.into_iter().filter(|slot| slot.next_id != 0) {
            let mut at = self.first(slot.tag);
            while self.slots[at].next_id != 0 {
                at = self.after(at);
            }
            self.slots[at] = slot;
        }
    }

    fn insert<'a>(&mut self, new: Slot, text: &impl Fn(usize) -> &'a [u8]) {
        let mut at = self.first(new.tag);
        loop {
            let slot = self.slots[at];
            if slot.next_id == 0 {
                self.slots[at] = new;
                self.used += 1;
                return;
            }
            if slot.tag == new.tag && text(slot.start) == text(new.start) {
                let pair = (new.next_id as usize - 1, slot.next_id as usize - 1);
                self.duplicate = Some(self.duplicate.map_or(pair, |first| first.min(pair)));
                return;
            }
            at = self.after(at);
        }
    }

    pub(super) fn find<'a>(
        &self,
        wanted: &[u8],
        text: impl Fn(usize) -> &'a [u8],
    ) -> Option<usize> {
        let tag = tag(self.hasher.hash_one(wanted));
        let mut at = self.first(tag);
        loop {
            let slot = self.slots[at];
            if slot.next_id == 0 {
                return None;
            }
            if slot.tag == tag && text(slot.start) == wanted {
                return Some(slot.next_id as usize - 1);
            }
            at = self.after(at);
        }
    }

    /// The first slot to look at.
    #[allow(clippy::cast_possible_truncation)]
    fn first(&self, tag: u32) -> usize {
        ((u128::from(tag) * self.slots.len() as u128) >> 32) as usize
    }

    fn after(&self, at: usize) -> usize {
        if at + 1 == self.slots.len() { 0 } else { at + 1 }
    }
}

fn tag(hash: u64) -> u32 {
    (hash >> 32) as u32
}

/// Puts tokens in the order of the upper bits of their tags; those where they are the same stay in
/// the order of their numbers.
fn sort(tags: &[u32], starts: &[usize], first_id: usize, sorted: &mut [Slot]) {
    let part = |tag: u32| tag as usize >> (32 - PARTS.ilog2());
    let mut places = [0; PARTS];
    tags.iter().for_each(|tag| places[part(*tag)] += 1);
    let mut sum = 0;
    for place in &mut places {
        sum += std::mem::replace(place, sum);
    }
    for (id, (&tag, &start)) in tags.iter().zip(starts).enumerate() {
        let place = &mut places[part(tag)];
        let next_id = u32::try_from(first_id + id + 1).unwrap_or(0);
        sorted[*place] = Slot { tag, next_id, start };
        *place += 1;
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
            let index = Index::new(&(0..count).collect::<Vec<_>>(), 8 * count, token);
            assert!((0..count).all(|i| index.find(token(i), token) == Some(i)));
            assert_eq!(index.find(b"x", token), None);
            assert_eq!(index.duplicate, None);
        }
    }

    #[test]
    fn the_first_of_equal_tokens_counts() {
        let tokens = ["a", "b", "", "b", "a", ""];
        let token = |i: usize| tokens[i].as_bytes();
        let index = Index::new(&[0, 1, 2, 3, 4, 5], 0, token);
        assert_eq!(index.duplicate, Some((3, 1)));
        assert_eq!(index.find(b"", token), Some(2));
    }
}
