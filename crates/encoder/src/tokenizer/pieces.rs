//! The tokens of a vocabulary, and the longest of them that a word begins with.

use std::fmt;
use std::hash::{BuildHasher, RandomState};
use weighbridge_format::Error;

/// Tokens by number, one behind the other, and a hash table of them.
///
/// A token is found as a whole and, if it begins with the prefix of pieces inside words (`##`),
/// by what follows it as well. So a word's rest is looked up as it stands.
pub(super) struct Pieces {
    text: String,
    /// Where each token ends.
    ends: Vec<u32>,
    slots: Vec<Slot>,
    keys: Keys,
    prefix: usize,
    longest_whole: usize,
    longest_inner: usize,
    /// A token that stands there twice: its first number.
    pub(super) repeated: Option<usize>,
}

/// Zero where free.
#[derive(Clone, Copy, Default)]
struct Slot {
    tag: u32,
    next_id: u32,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Whole,
    Inner,
}

/// Where a hash begins for each kind, and what it is multiplied with: other ones in each process,
/// so that no vocabulary can be made to collide.
#[derive(Clone, Copy)]
struct Keys {
    whole: u64,
    inner: u64,
    factor: u64,
}

impl Keys {
    fn new() -> Keys {
        let random = RandomState::new();
        let factor = random.hash_one(2) | 1;
        Keys { whole: random.hash_one(0), inner: random.hash_one(1), factor }
    }

    fn start(&self, kind: Kind) -> u64 {
        match kind {
            Kind::Whole => self.whole,
            Kind::Inner => self.inner,
        }
    }

    /// The hash with one more byte.
    #[inline]
    fn step(&self, hash: u64, byte: u8) -> u64 {
        let product = u128::from(hash ^ u64::from(byte)) * u128::from(self.factor);
        (product as u64) ^ (product >> 64) as u64
    }

    fn hash(&self, kind: Kind, bytes: &[u8]) -> u64 {
        bytes.iter().fold(self.start(kind), |hash, byte| self.step(hash, *byte))
    }
}

impl Pieces {
    /// Of tokens that stand one behind the other, and where each ends. Of several that are the same the last one's number
    /// counts.
    pub(super) fn new(text: String, ends: Vec<u32>, prefix: &str) -> Result<Pieces, Error> {
        if ends.len() > u32::MAX as usize / 4 {
            return Err(Error::refused("the vocabulary has too many tokens", ""));
        }
        let mut pieces = Pieces {
            text,
            slots: Vec::new(),
            keys: Keys::new(),
            prefix: prefix.len(),
            longest_whole: 0,
            longest_inner: 0,
            repeated: None,
            ends,
        };
        let inner = (0..pieces.len()).filter(|id| pieces.inner(*id, prefix).is_some()).count();
        // At most half full, so that hardly any lookup meets another token.
        let size = ((pieces.len() + inner) * 2).next_power_of_two().max(16);
        pieces.slots = vec![Slot::default(); size];
        for id in 0..pieces.len() {
            let whole = pieces.bytes(id).len();
            pieces.insert(id, Kind::Whole);
            pieces.longest_whole = pieces.longest_whole.max(whole);
            if pieces.inner(id, prefix).is_some() {
                pieces.insert(id, Kind::Inner);
                pieces.longest_inner = pieces.longest_inner.max(whole - prefix.len());
            }
        }
        Ok(pieces)
    }

    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(super) fn token(&self, id: usize) -> Option<&str> {
        (id < self.len()).then(|| &self.text[self.range(id)])
    }

    pub(super) fn find(&self, token: &str) -> Option<u32> {
        self.look_up(self.keys.hash(Kind::Whole, token.as_bytes()), Kind::Whole, token.as_bytes())
    }

    /// Appends a word's pieces: the longest token that it begins with, then the longest one that the
    /// rest begins with, and so on. False, and nothing appended, if there is none for some rest.
    ///
    /// `hashes` is room to work in.
    pub(super) fn split(&self, word: &[u8], ids: &mut Vec<u32>, hashes: &mut Vec<u64>) -> bool {
        let before = ids.len();
        let mut rest = word;
        while !rest.is_empty() {
            let (kind, longest) = match rest.len() == word.len() {
                true => (Kind::Whole, self.longest_whole),
                false => (Kind::Inner, self.longest_inner),
            };
            match self.longest(&rest[..rest.len().min(longest)], rest, kind, hashes) {
                Some((id, length)) => {
                    ids.push(id);
                    rest = &rest[length..];
                }
                None => {
                    ids.truncate(before);
                    return false;
                }
            }
        }
        true
    }

    /// The longest token that `part` begins with, and its length. What follows `part` is seen in
    /// `rest`.
    fn longest(
        &self,
        part: &[u8],
        rest: &[u8],
        kind: Kind,
        hashes: &mut Vec<u64>,
    ) -> Option<(u32, usize)> {
        hashes.clear();
        let mut hash = self.keys.start(kind);
        hashes.extend(part.iter().map(|byte| {
            hash = self.keys.step(hash, *byte);
            hash
        }));
        // No token ends inside a character.
        let ends_character = |length: usize| rest.get(length).is_none_or(|b| b & 0xc0 != 0x80);
        hashes.iter().enumerate().rev().find_map(|(last, hash)| {
            let length = last + 1;
            if !ends_character(length) {
                return None;
            }
            Some((self.look_up(*hash, kind, &part[..length])?, length))
        })
    }

    /// What follows the prefix, if something does.
    fn inner(&self, id: usize, prefix: &str) -> Option<&[u8]> {
        self.bytes(id).strip_prefix(prefix.as_bytes()).filter(|rest| !rest.is_empty())
    }

    fn range(&self, id: usize) -> std::ops::Range<usize> {
        let start = if id == 0 { 0 } else { self.ends[id - 1] };
        start as usize..self.ends[id] as usize
    }

    fn bytes(&self, id: usize) -> &[u8] {
        &self.text.as_bytes()[self.range(id)]
    }

    /// What a token is found by.
    fn key(&self, id: usize, kind: Kind) -> &[u8] {
        match kind {
            Kind::Whole => self.bytes(id),
            Kind::Inner => &self.bytes(id)[self.prefix..],
        }
    }

    fn insert(&mut self, id: usize, kind: Kind) {
        let key = self.key(id, kind);
        let hash = self.keys.hash(kind, key);
        let tag = tag(hash, kind);
        let mut at = self.first(hash);
        while self.slots[at].next_id != 0 {
            let slot = self.slots[at];
            if slot.tag == tag && self.key(slot.next_id as usize - 1, kind) == key {
                self.repeated = self.repeated.or(Some(slot.next_id as usize - 1));
                break;
            }
            at = self.after(at);
        }
        // Numbers of tokens fit, which was asked first.
        self.slots[at] = Slot { tag, next_id: id as u32 + 1 };
    }

    #[inline]
    fn look_up(&self, hash: u64, kind: Kind, key: &[u8]) -> Option<u32> {
        let tag = tag(hash, kind);
        let mut at = self.first(hash);
        loop {
            let slot = self.slots[at];
            let id = slot.next_id.checked_sub(1)?;
            if slot.tag == tag && self.key(id as usize, kind) == key {
                return Some(id);
            }
            at = self.after(at);
        }
    }

    fn first(&self, hash: u64) -> usize {
        hash as usize & (self.slots.len() - 1)
    }

    fn after(&self, at: usize) -> usize {
        (at + 1) & (self.slots.len() - 1)
    }
}

/// Bits of a hash that tell tokens apart before they are looked at; those of different kinds never
/// have the same.
fn tag(hash: u64, kind: Kind) -> u32 {
    let bits = (hash >> 32) as u32;
    match kind {
        Kind::Whole => bits & !1,
        Kind::Inner => bits | 1,
    }
}

impl fmt::Debug for Pieces {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pieces").field("tokens", &self.len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pieces(tokens: &[&str], prefix: &str) -> Pieces {
        let mut ends = Vec::new();
        let mut text = String::new();
        for token in tokens {
            text.push_str(token);
            ends.push(text.len() as u32);
        }
        Pieces::new(text, ends, prefix).unwrap()
    }

    fn split(pieces: &Pieces, word: &str) -> Option<Vec<u32>> {
        let (mut ids, mut hashes) = (vec![7], Vec::new());
        let whole = pieces.split(word.as_bytes(), &mut ids, &mut hashes);
        assert!(whole || ids == [7]);
        whole.then(|| ids.split_off(1))
    }

    #[test]
    fn the_longest_piece_comes_first() {
        let p = pieces(&["a", "ab", "##b", "##bc", "##c", "é", "##", ""], "##");
        assert_eq!(split(&p, "abc"), Some(vec![1, 4]));
        assert_eq!(split(&p, "abbcé"), None);
        assert_eq!(split(&p, "éc"), Some(vec![5, 4]));
        assert_eq!(split(&p, "c"), None);
        assert_eq!(split(&p, "##b"), Some(vec![2]));
        assert_eq!((p.find("##"), p.find("b"), p.token(8)), (Some(6), None, None));
    }

    #[test]
    fn the_prefix_may_be_empty_and_the_last_of_equal_tokens_counts() {
        let p = pieces(&["a", "b", "a"], "");
        assert_eq!(split(&p, "aba"), Some(vec![2, 1, 2]));
    }
}
