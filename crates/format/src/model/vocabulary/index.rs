//! Finding a token's number.

use std::hash::{BuildHasher, RandomState};
use weighbridge_codec::parallel::*;

/// A hash table of token numbers. The tokens stay where they are; a slot has some bits of a token's
/// hash, so that hardly any token is looked at in vain.
#[derive(Debug)]
pub(super) struct Index {
    keys: Keys,
    /// Tokens stand where the upper bits of their hashes say, or behind that.
    slots: Vec<Slot>,
    /// The first token that stands twice, with its earlier number.
    pub(super) duplicate: Option<(usize, usize)>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    tag: u32,
    /// The token's number and one; zero when free.
    next_id: u32,
}

/// Fewer tokens are done sooner than other threads wake up.
const WORTH_SHARING: usize = 4096;

impl Index {
    /// Of so many tokens. Past 2^32 - 2 of them the rest is not found.
    pub(super) fn new<'a>(count: usize, text: impl Fn(usize) -> &'a [u8] + Sync) -> Index {
        let count = count.min(u32::MAX as usize - 1);
        let keys = Keys::new();
        let tags: Vec<u32> = if count < WORTH_SHARING {
            (0..count).map(|id| keys.tag(text(id))).collect()
        } else {
            let each = (0..count).into_par_iter().with_min_len(WORTH_SHARING);
            each.map(|id| keys.tag(text(id))).collect()
        };
        let slots = vec![Slot::default(); (count + count / 2).max(16)];
        let mut index = Index { keys, slots, duplicate: None };
        index.fill(&tags, &text);
        index
    }

    /// Each thread has a part of the table, and puts in the tokens that belong there. What finds no
    /// place up to the part's end is put in afterwards. Equal tokens belong to the same place, and
    /// come in the order of their numbers either way.
    fn fill<'a>(&mut self, tags: &[u32], text: &(impl Fn(usize) -> &'a [u8] + Sync)) {
        let parts = if tags.len() < WORTH_SHARING { 1 } else { current_num_threads() };
        let (size, length) = (self.slots.len(), self.slots.len().div_ceil(parts));
        let fill = |(number, part): (usize, &mut [Slot])| {
            let range = number * length..number * length + part.len();
            let (mut over, mut duplicate) = (Vec::new(), None);
            for (id, tag) in tags.iter().enumerate() {
                let first = place(*tag, size);
                if range.contains(&first) {
                    match insert(&mut part[first - range.start..], id, *tag, text) {
                        Inserted::Yes => {}
                        Inserted::NoRoom => over.push(id),
                        Inserted::Duplicate(pair) => duplicate = earlier(duplicate, pair),
                    }
                }
            }
            (over, duplicate)
        };
        let found: Vec<_> = self.slots.par_chunks_mut(length).enumerate().map(fill).collect();
        for (over, duplicate) in found {
            self.duplicate = duplicate.map_or(self.duplicate, |pair| earlier(self.duplicate, pair));
            for id in over {
                let first = place(tags[id], size);
                let mut put = insert(&mut self.slots[first..], id, tags[id], text);
                if matches!(put, Inserted::NoRoom) {
                    put = insert(&mut self.slots, id, tags[id], text);
                }
                if let Inserted::Duplicate(pair) = put {
                    self.duplicate = earlier(self.duplicate, pair);
                }
            }
        }
    }

    pub(super) fn find<'a>(
        &self,
        wanted: &[u8],
        text: impl Fn(usize) -> &'a [u8],
    ) -> Option<usize> {
        let tag = self.keys.tag(wanted);
        let mut at = place(tag, self.slots.len());
        loop {
            let slot = self.slots[at];
            let id = slot.next_id.checked_sub(1)? as usize;
            if slot.tag == tag && text(id) == wanted {
                return Some(id);
            }
            at = if at + 1 == self.slots.len() { 0 } else { at + 1 };
        }
    }
}

enum Inserted {
    Yes,
    NoRoom,
    /// The number, and that of the same token before it.
    Duplicate((usize, usize)),
}

/// Puts a token into the first free slot, unless it is there.
fn insert<'a>(
    slots: &mut [Slot],
    id: usize,
    tag: u32,
    text: &impl Fn(usize) -> &'a [u8],
) -> Inserted {
    for slot in slots {
        if slot.next_id == 0 {
            *slot = Slot { tag, next_id: u32::try_from(id + 1).unwrap_or(0) };
            return Inserted::Yes;
        }
        let other = slot.next_id as usize - 1;
        if slot.tag == tag && text(other) == text(id) {
            return Inserted::Duplicate((id, other));
        }
    }
    Inserted::NoRoom
}

fn earlier(known: Option<(usize, usize)>, pair: (usize, usize)) -> Option<(usize, usize)> {
    Some(known.map_or(pair, |known| known.min(pair)))
}

/// The first slot to look at.
#[allow(clippy::cast_possible_truncation)]
fn place(tag: u32, slots: usize) -> usize {
    ((u128::from(tag) * slots as u128) >> 32) as usize
}

/// What hashes depend on: made anew in each process, so that no file can be made to collide.
#[derive(Debug)]
struct Keys([u64; 2]);

impl Keys {
    fn new() -> Keys {
        let random = RandomState::new();
        Keys([random.hash_one(0) | 1, random.hash_one(1) | 1])
    }

    /// Tokens are short: eight bytes at a time are multiplied with a key, and both halves of the
    /// product folded. The last eight may overlap those before them, which the length makes up for.
    #[inline]
    fn tag(&self, token: &[u8]) -> u32 {
        let [start, key] = self.0;
        let mut state = start;
        let last = match (token.last_chunk::<8>(), token.first_chunk::<4>(), token) {
            (Some(last), ..) => {
                for eight in token[..token.len() - 1].as_chunks::<8>().0 {
                    state = fold(state ^ u64::from_le_bytes(*eight), key);
                }
                u64::from_le_bytes(*last)
            }
            (_, Some(first), [.., a, b, c, d]) => {
                let [first, last] = [*first, [*a, *b, *c, *d]].map(u32::from_le_bytes);
                u64::from(first) << 32 | u64::from(last)
            }
            (.., [first, .., last]) => {
                let middle = token[token.len() / 2];
                u64::from_le_bytes([*first, middle, *last, 0, 0, 0, 0, 0])
            }
            (.., [only]) => u64::from(*only),
            _ => 0,
        };
        // Not before the bytes were multiplied: nobody can choose bytes that make up for it then.
        (fold(fold(state ^ last, key) ^ token.len() as u64, start) >> 32) as u32
    }
}

/// Both halves of a product.
#[inline]
#[allow(clippy::cast_possible_truncation)]
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
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
        let index = Index::new(6, token);
        assert_eq!(index.duplicate, Some((3, 1)));
        assert_eq!(index.find(b"", token), Some(2));
    }

    /// Among so many, some belong to the end of a part, or of the table.
    #[test]
    fn many_equal_tokens_take_one_place() {
        let tokens: Vec<_> = (0..30_000).map(|i| format!("w{}", i % 10_000)).collect();
        let token = |i: usize| tokens[i].as_bytes();
        let index = Index::new(tokens.len(), token);
        assert_eq!(index.duplicate, Some((10_000, 0)));
        assert!((0..tokens.len()).all(|i| index.find(token(i), token) == Some(i % 10_000)));
        assert_eq!(index.slots.iter().filter(|slot| slot.next_id != 0).count(), 10_000);
    }

    /// A full part gives what has no room in it to the next ones.
    #[test]
    fn tokens_beyond_the_end_of_a_part_are_found() {
        let tokens: Vec<_> = (0..8192).map(|i: u32| i.to_string()).collect();
        let token = |i: usize| tokens[i].as_bytes();
        let mut index = Index::new(tokens.len(), token);
        // All belong to the last slots of the table, of which there are too few.
        index.slots.fill(Slot::default());
        let tags = vec![u32::MAX - 1; tokens.len()];
        index.fill(&tags, &token);
        assert_eq!(index.slots.iter().filter(|slot| slot.next_id != 0).count(), tokens.len());
        assert_eq!(index.duplicate, None);
    }

    /// Lengths of every kind, with one byte changed at every place.
    #[test]
    fn hashes_depend_on_every_byte() {
        let keys = Keys([0x9E37_79B9_7F4A_7C15, 0xD1B5_4A32_D192_ED03]);
        let mut seen = std::collections::HashSet::new();
        for length in 0..40 {
            let token = vec![b'a'; length];
            assert!(seen.insert(keys.tag(&token)), "{length}");
            for at in 0..length {
                let mut other = token.clone();
                other[at] = b'b';
                assert!(seen.insert(keys.tag(&other)), "{length} {at}");
            }
        }
    }
}
