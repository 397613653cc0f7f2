//! The tokens of a vocabulary, and the longest of them that a word begins with.

use std::fmt;
use std::hash::{BuildHasher, RandomState};
use weighbridge_format::Error;
use weighbridge_format::spec::tokenizer::TokenList;

/// Tokens by number, one behind the other, and a hash table of them.
///
/// A token is found by its whole text and, if it begins with the prefix of tokens that continue a
/// word (`##`), by what follows the prefix as well. So the rest of a word is looked up without a
/// prefix.
pub(super) struct Pieces {
    text: String,
    /// Where each token ends.
    ends: Vec<u32>,
    slots: Vec<Slot>,
    keys: Keys,
    prefix: usize,
    longest_start: usize,
    longest_continuation: usize,
    /// The first number of a token that is in the vocabulary twice.
    pub(super) repeated: Option<usize>,
}

/// A slot of the hash table; zero where free.
#[derive(Clone, Copy, Default)]
struct Slot {
    tag: u32,
    next_id: u32,
}

/// Where in a word a token is looked up.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    WordStart,
    Continuation,
}

/// The seed of the hashes of each kind, and the factor: others in each process, so that no
/// vocabulary can be made to collide.
#[derive(Clone, Copy)]
struct Keys {
    word_start: u64,
    continuation: u64,
    factor: u64,
}

impl Keys {
    fn new() -> Keys {
        let random = RandomState::new();
        let factor = random.hash_one(2) | 1;
        Keys { word_start: random.hash_one(0), continuation: random.hash_one(1), factor }
    }

    fn seed(&self, kind: Kind) -> u64 {
        match kind {
            Kind::WordStart => self.word_start,
            Kind::Continuation => self.continuation,
        }
    }

    /// The hash with one more byte.
    #[inline]
    fn update(&self, hash: u64, byte: u8) -> u64 {
        let product = u128::from(hash ^ u64::from(byte)) * u128::from(self.factor);
        (product as u64) ^ (product >> 64) as u64
    }

    fn hash(&self, kind: Kind, bytes: &[u8]) -> u64 {
        bytes.iter().fold(self.seed(kind), |hash, byte| self.update(hash, *byte))
    }
}

impl Pieces {
    /// The tokens of a vocabulary. Of several that are the same, the number of the last counts.
    pub(super) fn new(tokens: TokenList, prefix: &str) -> Result<Pieces, Error> {
        let (text, ends) = tokens.into_parts();
        if ends.len() > u32::MAX as usize / 4 {
            return Err(Error::refused("the vocabulary has too many tokens", ""));
        }
        let mut pieces = Pieces {
            text,
            slots: Vec::new(),
            keys: Keys::new(),
            prefix: prefix.len(),
            longest_start: 0,
            longest_continuation: 0,
            repeated: None,
            ends,
        };
        let continuations =
            (0..pieces.len()).filter(|id| pieces.continuation(*id, prefix).is_some()).count();
        // At most half full, so that hardly any lookup meets another token.
        let size = ((pieces.len() + continuations) * 2).next_power_of_two().max(16);
        pieces.slots = vec![Slot::default(); size];
        for id in 0..pieces.len() {
            let length = pieces.bytes(id).len();
            pieces.insert(id, Kind::WordStart);
            pieces.longest_start = pieces.longest_start.max(length);
            if pieces.continuation(id, prefix).is_some() {
                pieces.insert(id, Kind::Continuation);
                pieces.longest_continuation =
                    pieces.longest_continuation.max(length - prefix.len());
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
        self.look_up(
            self.keys.hash(Kind::WordStart, token.as_bytes()),
            Kind::WordStart,
            token.as_bytes(),
        )
    }

    /// Appends a word's pieces: the longest token that it begins with, then the longest one that the
    /// rest begins with, and so on. False, and nothing appended, if there is none for some rest.
    ///
    /// `hashes` is scratch memory.
    pub(super) fn split(&self, word: &[u8], ids: &mut Vec<u32>, hashes: &mut Vec<u64>) -> bool {
        let before = ids.len();
        let mut rest = word;
        while !rest.is_empty() {
            let (kind, longest) = match rest.len() == word.len() {
                true => (Kind::WordStart, self.longest_start),
                false => (Kind::Continuation, self.longest_continuation),
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
        let mut hash = self.keys.seed(kind);
        hashes.extend(part.iter().map(|byte| {
            hash = self.keys.update(hash, *byte);
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
    fn continuation(&self, id: usize, prefix: &str) -> Option<&[u8]> {
        self.bytes(id).strip_prefix(prefix.as_bytes()).filter(|rest| !rest.is_empty())
    }

    fn range(&self, id: usize) -> std::ops::Range<usize> {
        let start = if id == 0 { 0 } else { self.ends[id - 1] };
        start as usize..self.ends[id] as usize
    }

    fn bytes(&self, id: usize) -> &[u8] {
        &self.text.as_bytes()[self.range(id)]
    }

    /// The text that a token is found by.
    fn key(&self, id: usize, kind: Kind) -> &[u8] {
        match kind {
            Kind::WordStart => self.bytes(id),
            Kind::Continuation => &self.bytes(id)[self.prefix..],
        }
    }

    fn insert(&mut self, id: usize, kind: Kind) {
        let key = self.key(id, kind);
        let hash = self.keys.hash(kind, key);
        let tag = tag(hash, kind);
        let mut at = self.home_slot(hash);
        while self.slots[at].next_id != 0 {
            let slot = self.slots[at];
            if slot.tag == tag && self.key(slot.next_id as usize - 1, kind) == key {
                self.repeated = self.repeated.or(Some(slot.next_id as usize - 1));
                break;
            }
            at = self.next_slot(at);
        }
        // Numbers of tokens fit, which `new` has checked.
        self.slots[at] = Slot { tag, next_id: id as u32 + 1 };
    }

    #[inline]
    fn look_up(&self, hash: u64, kind: Kind, key: &[u8]) -> Option<u32> {
        let tag = tag(hash, kind);
        let mut at = self.home_slot(hash);
        loop {
            let slot = self.slots[at];
            let id = slot.next_id.checked_sub(1)?;
            if slot.tag == tag && self.key(id as usize, kind) == key {
                return Some(id);
            }
            at = self.next_slot(at);
        }
    }

    /// The slot where the search for a hash begins.
    fn home_slot(&self, hash: u64) -> usize {
        hash as usize & (self.slots.len() - 1)
    }

    fn next_slot(&self, at: usize) -> usize {
        (at + 1) & (self.slots.len() - 1)
    }
}

/// Bits of a hash that tell tokens apart before they are looked at; those of different kinds never
/// have the same.
fn tag(hash: u64, kind: Kind) -> u32 {
    let bits = (hash >> 32) as u32;
    match kind {
        Kind::WordStart => bits & !1,
        Kind::Continuation => bits | 1,
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
        let mut list = TokenList::default();
        tokens.iter().for_each(|token| list.push(token).unwrap());
        Pieces::new(list, prefix).unwrap()
    }

    fn split(pieces: &Pieces, word: &str) -> Option<Vec<u32>> {
        let (mut ids, mut hashes) = (vec![7], Vec::new());
        let found = pieces.split(word.as_bytes(), &mut ids, &mut hashes);
        assert!(found || ids == [7]);
        found.then(|| ids.split_off(1))
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
