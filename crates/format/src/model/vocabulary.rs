//! A vocabulary: tokens by number, and the special ones by name.

use crate::source::Bytes;
use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};

mod index;

use index::Index;

/// The special tokens of a WordPiece vocabulary, in the order in which EMBD stores them, with the
/// text each has in a vocabulary.
pub const SPECIAL_TOKENS: [(&str, &str); 5] =
    [("pad", "[PAD]"), ("unk", "[UNK]"), ("cls", "[CLS]"), ("sep", "[SEP]"), ("mask", "[MASK]")];

/// Tokens in order of their numbers, as they lie in the file: each behind its length. Those of a mapped
/// file are copied, and where each begins, and which number a token has, is found out on first use, so that opening a file does not
/// pay for it.
#[derive(Clone, Debug)]
pub struct Vocabulary {
    entries: Bytes,
    prefix: Prefix,
    count: usize,
    /// What tokens are taken from.
    settled: Arc<OnceLock<Bytes>>,
    starts: Arc<OnceLock<Starts>>,
    index: Arc<OnceLock<Index>>,
    /// How many tokens were looked for before there was an index.
    asked: Arc<AtomicU32>,
    /// Special tokens by name (`pad`, `unk`, `cls`, `sep`, `mask`).
    pub special: Vec<(String, u32)>,
}

/// So many tokens are looked for one after the other: that takes a fraction of what making an index does, and
/// many ask for no more.
const FEW: u32 = 3;

/// Where tokens begin, in half the memory where they are not too many bytes for that.
#[derive(Debug)]
enum Starts {
    Near(Vec<u32>),
    Far(Vec<usize>),
}

impl Starts {
    /// That of a token; one that is not there begins nowhere.
    fn get(&self, id: usize) -> usize {
        match self {
            Starts::Near(starts) => starts.get(id).map_or(usize::MAX, |start| *start as usize),
            Starts::Far(starts) => starts.get(id).copied().unwrap_or(usize::MAX),
        }
    }
}

/// Width of the length in front of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Prefix {
    U16,
    U32,
}

impl Prefix {
    fn width(self) -> usize {
        match self {
            Prefix::U16 => 2,
            Prefix::U32 => 4,
        }
    }

    /// Where the token behind the length at `at` is. None where the bytes end before that: a file that
    /// is mapped may have been rewritten since its entries were checked.
    fn token(self, bytes: &[u8], at: usize) -> Option<std::ops::Range<usize>> {
        let rest = bytes.get(at..)?;
        let length = match self {
            Prefix::U16 => usize::from(u16::from_le_bytes(*rest.first_chunk()?)),
            Prefix::U32 => usize::try_from(u32::from_le_bytes(*rest.first_chunk()?)).ok()?,
        };
        let start = at + self.width();
        let end = start.checked_add(length).filter(|end| *end <= bytes.len())?;
        Some(start..end)
    }
}

/// Why entries are no vocabulary, and where (counted from the first entry).
#[derive(Debug, PartialEq, Eq)]
pub enum BadEntry {
    /// It ends before its last byte.
    CutShort {
        /// Its number.
        token: usize,
        /// Where it begins.
        at: usize,
    },
    /// It is not UTF-8.
    NotUtf8 {
        /// Its number.
        token: usize,
        /// The first bad byte.
        at: usize,
    },
}

impl Vocabulary {
    /// Entries with 16-bit lengths. Returns the vocabulary and how many bytes its entries take.
    ///
    /// # Errors
    /// Where an entry is cut short or not UTF-8.
    pub fn with_u16_lengths(view: &Bytes, count: usize) -> Result<(Vocabulary, usize), BadEntry> {
        Self::walk(view, Prefix::U16, count)
    }

    /// Entries with 32-bit lengths.
    ///
    /// # Errors
    /// Where an entry is cut short or not UTF-8.
    pub fn with_u32_lengths(view: &Bytes, count: usize) -> Result<(Vocabulary, usize), BadEntry> {
        Self::walk(view, Prefix::U32, count)
    }

    /// From tokens in memory.
    pub fn from_tokens<'a>(tokens: impl IntoIterator<Item = &'a str>) -> Vocabulary {
        let mut bytes = Vec::new();
        let mut count = 0;
        for token in tokens {
            let length = u32::try_from(token.len()).unwrap_or(u32::MAX);
            bytes.extend_from_slice(&length.to_le_bytes());
            bytes.extend_from_slice(token.as_bytes());
            count += 1;
        }
        Vocabulary::new(Bytes::owned(bytes), Prefix::U32, count)
    }

    fn new(entries: Bytes, prefix: Prefix, count: usize) -> Vocabulary {
        let (settled, starts, index, asked) = Default::default();
        Vocabulary { entries, prefix, count, settled, starts, index, asked, special: Vec::new() }
    }

    fn walk(view: &Bytes, prefix: Prefix, count: usize) -> Result<(Vocabulary, usize), BadEntry> {
        let bytes: &[u8] = view;
        let (at, long) = match prefix {
            Prefix::U16 => ends::<2>(bytes, count, |raw| usize::from(u16::from_le_bytes(raw))),
            Prefix::U32 => ends::<4>(bytes, count, |raw| {
                usize::try_from(u32::from_le_bytes(raw)).unwrap_or(usize::MAX)
            }),
        }?;
        // Lengths below 128 are ASCII bytes between the tokens: then the whole is valid UTF-8
        // exactly when every token is, and one fast pass tells.
        let whole = &bytes[..at];
        if long || std::str::from_utf8(whole).is_err() {
            check_each(whole, prefix, count)?;
        }
        let entries = view.part(0..at).unwrap_or_else(|| Bytes::owned(Vec::new()));
        Ok((Vocabulary::new(entries, prefix, count), at))
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.count
    }

    /// The same tokens and special tokens, wherever they lie.
    pub fn same_as(&self, other: &Vocabulary) -> bool {
        self.count == other.count
            && self.special == other.special
            && self.tokens().eq(other.tokens())
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Where the entries stand in their file.
    pub fn span(&self) -> std::ops::Range<u64> {
        self.entries.span()
    }

    /// The entries as they lie in the file, if each is behind a length of 32 bits.
    pub fn u32_entries(&self) -> Option<&Bytes> {
        (self.prefix == Prefix::U32).then_some(&self.entries)
    }

    /// The token with this number.
    pub fn token(&self, id: usize) -> Option<Cow<'_, str>> {
        (id < self.count).then(|| String::from_utf8_lossy(self.at(id)))
    }

    /// The bytes of a token that is there.
    fn at(&self, id: usize) -> &[u8] {
        self.raw(self.starts().get(id)).0
    }

    fn starts(&self) -> &Starts {
        self.starts.get_or_init(|| {
            let mut at = 0;
            let each = (0..self.count).map(|_| {
                let next = self.raw(at).1;
                std::mem::replace(&mut at, next)
            });
            match u32::try_from(self.entries.len()) {
                Ok(_) => {
                    Starts::Near(each.map(|at| u32::try_from(at).unwrap_or(u32::MAX)).collect())
                }
                Err(_) => Starts::Far(each.collect()),
            }
        })
    }

    /// The number of a token; of several that are the same, the first one's.
    pub fn find(&self, token: &str) -> Option<usize> {
        if self.index.get().is_none() && self.asked.fetch_add(1, Ordering::Relaxed) < FEW {
            return self.walk_to(token.as_bytes());
        }
        self.index().find(token.as_bytes(), |id| self.at(id))
    }

    /// The number of a token, by comparing one after the other.
    fn walk_to(&self, wanted: &[u8]) -> Option<usize> {
        let mut at = 0;
        (0..self.count).find(|_| {
            let (token, next) = self.raw(at);
            at = next;
            token == wanted
        })
    }

    /// The first token that was there before: its number, and the earlier one's.
    pub fn duplicate(&self) -> Option<(usize, usize)> {
        self.index().duplicate
    }

    /// The first of each token, and their numbers; `None` where every token is there once. Special
    /// tokens are not looked for.
    pub fn without_repeats(&self) -> Option<(Vocabulary, Vec<u64>)> {
        self.duplicate()?;
        let mut seen = HashSet::new();
        let (mut kept, mut once) = (Vec::new(), Vec::new());
        for (row, token) in (0..).zip(self.tokens()) {
            if seen.insert(token.clone()) {
                kept.push(row);
                once.push(token);
            }
        }
        Some((Vocabulary::from_tokens(once.iter().map(AsRef::as_ref)), kept))
    }

    fn index(&self) -> &Index {
        self.index.get_or_init(|| Index::new(self.count, |id| self.at(id)))
    }

    /// All tokens in order.
    pub fn tokens(&self) -> impl Iterator<Item = Cow<'_, str>> {
        let mut at = 0;
        (0..self.count).map(move |_| {
            let (token, next) = self.raw(at);
            at = next;
            String::from_utf8_lossy(token)
        })
    }

    /// The token whose entry begins at `at`, and where the next begins. In a file that was rewritten
    /// there may be none, and then none follows; whoever uses the file finds that it has changed.
    fn raw(&self, at: usize) -> (&[u8], usize) {
        let bytes: &[u8] = self.settled.get_or_init(|| self.entries.settled());
        let token = self.prefix.token(bytes, at).unwrap_or(bytes.len()..bytes.len());
        (bytes.get(token.clone()).unwrap_or_default(), token.end)
    }

    /// The number of a special token, by its name.
    pub fn special(&self, name: &str) -> Option<u32> {
        self.special.iter().find(|(n, _)| n == name).map(|(_, id)| *id)
    }

    /// Finds the special tokens by their usual texts.
    pub fn find_special(&mut self) {
        let mut found = [None; SPECIAL_TOKENS.len()];
        for (id, token) in self.tokens().enumerate() {
            for (slot, (_, text)) in found.iter_mut().zip(SPECIAL_TOKENS) {
                if token == text {
                    *slot = slot.or(u32::try_from(id).ok());
                }
            }
        }
        let names = SPECIAL_TOKENS.iter().map(|(name, _)| (*name).to_owned());
        self.special = names.zip(found).filter_map(|(n, id)| Some((n, id?))).collect();
    }
}

/// Where the last of `count` entries ends, and whether one has 128 bytes or more. Each step waits
/// for the length that the one before it found, so that the loop must do nothing else.
fn ends<const WIDTH: usize>(
    bytes: &[u8],
    count: usize,
    length: impl Fn([u8; WIDTH]) -> usize,
) -> Result<(usize, bool), BadEntry> {
    let mut rest = bytes;
    let mut most = 0;
    for token in 0..count {
        let entry = rest.split_first_chunk::<WIDTH>().and_then(|(raw, behind)| {
            let n = length(*raw);
            most = most.max(n);
            behind.get(n..)
        });
        match entry {
            Some(behind) => rest = behind,
            None => return Err(BadEntry::CutShort { token, at: bytes.len() - rest.len() }),
        }
    }
    Ok((bytes.len() - rest.len(), most >= 128))
}

fn check_each(bytes: &[u8], prefix: Prefix, count: usize) -> Result<(), BadEntry> {
    let mut at = 0;
    for token in 0..count {
        let text = prefix.token(bytes, at).ok_or(BadEntry::CutShort { token, at })?;
        at = text.end;
        if let Err(e) = std::str::from_utf8(bytes.get(text.clone()).unwrap_or_default()) {
            return Err(BadEntry::NotUtf8 { token, at: text.start + e.valid_up_to() });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn u16_entries(tokens: &[&[u8]]) -> Bytes {
        let entry = |t: &&[u8]| [&(t.len() as u16).to_le_bytes()[..], t].concat();
        Bytes::owned(tokens.iter().flat_map(entry).collect())
    }

    #[test]
    fn tokens_come_out_in_order() {
        let long = "é".repeat(200);
        for tokens in [vec!["[PAD]", "é", "", "東京"], vec!["a", &long, "[CLS]"]] {
            let view = u16_entries(&tokens.iter().map(|t| t.as_bytes()).collect::<Vec<_>>());
            let (v, used) = Vocabulary::with_u16_lengths(&view, tokens.len()).unwrap();
            assert_eq!(used, view.len());
            assert_eq!(v.tokens().collect::<Vec<_>>(), tokens);
            assert_eq!(v.token(1).unwrap(), tokens[1]);
            assert_eq!(v.token(tokens.len()), None);
            let again = Vocabulary::from_tokens(tokens.iter().copied());
            assert_eq!(again.tokens().collect::<Vec<_>>(), tokens);
        }
    }

    /// Whether they are looked for one after the other, as the first few are, or in the index.
    #[test]
    fn tokens_are_found_before_there_is_an_index() {
        let tokens = ["a", "b", "", "b", "東京", "a", ""];
        for (token, number) in
            [("a", Some(0)), ("b", Some(1)), ("", Some(2)), ("東京", Some(4)), ("x", None)]
        {
            let vocabulary = Vocabulary::from_tokens(tokens);
            for _ in 0..FEW {
                assert_eq!(vocabulary.find(token), number);
                assert!(vocabulary.index.get().is_none());
            }
            assert_eq!(vocabulary.find(token), number);
            assert!(vocabulary.index.get().is_some());
        }
    }

    #[test]
    fn bad_entries_are_placed() {
        // Cut in the middle of a character, so that the next length follows it.
        let view = u16_entries(&[b"ok", b"\xE6\x9D", b"x"]);
        let bad = Vocabulary::with_u16_lengths(&view, 3).unwrap_err();
        assert_eq!(bad, BadEntry::NotUtf8 { token: 1, at: 6 });
        let bad = Vocabulary::with_u16_lengths(&view, 4).unwrap_err();
        assert_eq!(bad, BadEntry::CutShort { token: 3, at: 11 });
    }
}
