//! How words are taken apart into n-grams, and which row each n-gram has.

mod hash;
mod ngrams;

pub use ngrams::{BadNgram, Ngrams};

use std::sync::Arc;

/// How a word is made of parts: n-grams of `min_n..=max_n` characters of the bracketed word, each
/// with a row behind the words' rows.
#[derive(Clone, Debug, PartialEq)]
pub struct Subwords {
    /// Characters of the shortest n-grams.
    pub min_n: u32,
    /// Characters of the longest n-grams.
    pub max_n: u32,
    /// How an n-gram finds its row.
    pub kind: SubwordKind,
    /// How the vector of an unknown word comes out of its parts.
    pub vectors: SubwordVectors,
}

/// How the vector of an unknown word comes out of the rows of its n-grams.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum SubwordVectors {
    /// Their mean, brought to unit length: what finalfusion does.
    #[default]
    Unit,
    /// Their mean: what fastText and floret do. Single brackets are then not n-grams.
    Mean,
}

/// How an n-gram finds its row.
#[derive(Clone, Debug, PartialEq)]
pub enum SubwordKind {
    /// 2^exponent buckets and finalfusion's hash: 64-bit FNV-1a over the count of characters and
    /// then the characters.
    Buckets {
        /// The buckets are two to this power.
        exponent: u32,
    },
    /// fastText's own hash modulo the count: 32-bit FNV over the signed bytes.
    FastText {
        /// How many buckets there are.
        buckets: u32,
    },
    /// N-grams by name, each with the index of its row.
    Explicit(Arc<Ngrams>),
    /// The first `hashes` words of murmur3 modulo the buckets. The whole bracketed word counts too,
    /// and the brackets are the model's own.
    Floret {
        /// How many buckets there are.
        buckets: u64,
        /// Rows that an n-gram has, one to four.
        hashes: u32,
        /// The seed of the hash.
        seed: u32,
        /// What stands in front of a word.
        bow: String,
        /// What stands behind a word.
        eow: String,
    },
}

/// The word that fastText puts at line ends. It has no n-grams there.
const FASTTEXT_EOS: &str = "</s>";

/// The longest n-grams that are taken. Real ones have some six characters; without a bound, a
/// damaged or hostile file could make a single word take hours.
const LONGEST: u32 = 64;

impl Subwords {
    /// N-grams of `min_n` to `max_n` characters.
    pub fn new(min_n: u32, max_n: u32, kind: SubwordKind) -> Subwords {
        Subwords { min_n, max_n, kind, vectors: SubwordVectors::default() }
    }

    /// Rows that the subwords take.
    pub fn rows(&self) -> u64 {
        match &self.kind {
            SubwordKind::Buckets { exponent } => 1u64.checked_shl(*exponent).unwrap_or(u64::MAX),
            SubwordKind::FastText { buckets } => u64::from(*buckets),
            SubwordKind::Explicit(ngrams) => ngrams.rows(),
            SubwordKind::Floret { buckets, .. } => *buckets,
        }
    }

    /// What is put in front of a word and behind it.
    pub fn brackets(&self) -> (&str, &str) {
        match &self.kind {
            SubwordKind::Floret { bow, eow, .. } => (bow, eow),
            _ => ("<", ">"),
        }
    }

    /// What makes these subwords impossible, if something does.
    pub fn fault(&self) -> Option<String> {
        let Subwords { min_n, max_n, .. } = *self;
        // floret may be told to hash whole words only, and takes 0 for 1 otherwise.
        let floret = matches!(self.kind, SubwordKind::Floret { .. });
        if (min_n == 0 && !floret) || min_n > max_n {
            return Some(format!("n-grams of {min_n} to {max_n} characters"));
        }
        if max_n > LONGEST {
            return Some(format!("n-grams of {max_n} characters, more than {LONGEST}"));
        }
        match &self.kind {
            // Above this, the count of rows leaves 64 bits.
            SubwordKind::Buckets { exponent: exponent @ 64.. } => {
                Some(format!("2^{exponent} buckets"))
            }
            SubwordKind::FastText { buckets: 0 } | SubwordKind::Floret { buckets: 0, .. } => {
                Some("no buckets".to_owned())
            }
            SubwordKind::Explicit(ngrams) if !ngrams.is_dense() => {
                Some(format!("{} rows with gaps between their indices", ngrams.rows()))
            }
            SubwordKind::Floret { hashes, .. } if !(1..=4).contains(hashes) => {
                Some(format!("{hashes} hashes, of 1 to 4"))
            }
            _ => None,
        }
    }

    /// The same n-grams on the same rows, wherever they lie.
    pub fn same_as(&self, other: &Subwords) -> bool {
        let lengths = self.min_n == other.min_n && self.max_n == other.max_n;
        lengths
            && match (&self.kind, &other.kind) {
                (SubwordKind::Buckets { exponent: a }, SubwordKind::Buckets { exponent: b }) => {
                    a == b
                }
                (SubwordKind::FastText { buckets: a }, SubwordKind::FastText { buckets: b }) => {
                    a == b
                }
                (SubwordKind::Explicit(a), SubwordKind::Explicit(b)) => {
                    a.len() == b.len() && a.iter().eq(b.iter())
                }
                (
                    SubwordKind::Floret { buckets: a, hashes: c, seed: e, bow: g, eow: i },
                    SubwordKind::Floret { buckets: b, hashes: d, seed: f, bow: h, eow: j },
                ) => (a, c, e, g, i) == (b, d, f, h, j),
                _ => false,
            }
    }

    /// Calls `each` with the row (counted from the first subword row) of every n-gram of a word,
    /// in the peers' order, as often as it occurs. Explicit n-grams that are absent are skipped.
    ///
    /// This is how finalfusion makes the vector of an unknown word: single characters at the word's
    /// ends (the brackets) are n-grams like any other when `min_n` is 1, for fastText's buckets
    /// too. fastText itself skips them, see [`Subwords::for_each_fasttext_row`].
    pub fn for_each_row(&self, word: &str, each: &mut dyn FnMut(u64)) {
        let bracketed = self.bracketed(word);
        if let SubwordKind::Floret { .. } = self.kind {
            // The whole word first, and again as an n-gram if its length is in range.
            self.rows_of(bracketed.as_bytes(), bracketed.chars().count(), each);
        }
        self.walk(&bracketed, &mut |ngram, chars| self.rows_of(ngram.as_bytes(), chars, each));
    }

    /// Calls `each` with every n-gram of a word and its row; `None` if an explicit n-gram is
    /// absent. Floret gives an n-gram up to four rows: here it appears with its first.
    pub fn for_each_ngram(&self, word: &str, each: &mut dyn FnMut(&str, Option<u64>)) {
        let bracketed = self.bracketed(word);
        self.walk(&bracketed, &mut |ngram, chars| each(ngram, self.row(ngram, chars)));
    }

    /// Calls `each` with the rows that fastText adds to a word's own row: short n-grams before long
    /// ones, without the brackets as n-grams of one character, and none for `</s>`. The order
    /// decides how the sum is rounded. floret, which grew out of fastText, walks in the same way; its
    /// words have no rows of their own, and are hashed whole first.
    ///
    /// Words are the bytes that fastText saw. A character begins with any byte that does not
    /// continue one in UTF-8, whatever the encoding is.
    pub fn for_each_fasttext_row(&self, word: impl AsRef<[u8]>, each: &mut dyn FnMut(u64)) {
        let word = word.as_ref();
        if word == FASTTEXT_EOS.as_bytes() {
            return;
        }
        let (bow, eow) = self.brackets();
        let bracketed = [bow.as_bytes(), word, eow.as_bytes()].concat();
        let begins = |at: &usize| bracketed.get(*at).is_none_or(|b| b & 0xC0 != 0x80);
        let starts: Vec<usize> = (0..=bracketed.len()).filter(begins).collect();
        let count = starts.len() - 1;
        if let SubwordKind::Floret { .. } = self.kind {
            self.rows_of(&bracketed, count, each);
        }
        let (min, max) = self.lengths(count);
        for first in 0..count {
            for n in min..=max.min(count - first) {
                let last = first + n == count;
                if n == 1 && (first == 0 || last) {
                    continue;
                }
                self.rows_of(&bracketed[starts[first]..starts[first + n]], n, each);
            }
        }
    }

    /// Calls `each` with the rows of one n-gram: up to four in floret, else one at most.
    fn rows_of(&self, ngram: &[u8], chars: usize, each: &mut dyn FnMut(u64)) {
        match (&self.kind, std::str::from_utf8(ngram)) {
            (SubwordKind::Floret { buckets, hashes, seed, .. }, _) => {
                hash::floret_rows(ngram, *seed, *hashes, *buckets, each);
            }
            (SubwordKind::FastText { buckets }, _) => {
                hash::fasttext(ngram)
                    .checked_rem(*buckets)
                    .map(u64::from)
                    .into_iter()
                    .for_each(each);
            }
            (_, Ok(text)) => self.row(text, chars).into_iter().for_each(each),
            // Other kinds have n-grams of text only.
            (_, Err(_)) => {}
        }
    }

    fn bracketed(&self, word: &str) -> String {
        let (bow, eow) = self.brackets();
        [bow, word, eow].concat()
    }

    /// The row of one n-gram of so many characters.
    fn row(&self, ngram: &str, chars: usize) -> Option<u64> {
        match &self.kind {
            SubwordKind::Buckets { exponent } => Some(hash::finalfusion(ngram, chars, *exponent)),
            SubwordKind::FastText { buckets } => {
                hash::fasttext(ngram.as_bytes()).checked_rem(*buckets).map(u64::from)
            }
            SubwordKind::Explicit(ngrams) => ngrams.get(ngram),
            SubwordKind::Floret { buckets, seed, .. } => {
                let mut row = None;
                hash::floret_rows(ngram.as_bytes(), *seed, 1, *buckets, &mut |r| row = Some(r));
                row
            }
        }
    }

    /// The n-grams in the order of finalfusion's crate and of its Python package: by their first
    /// character, long ones before short ones. Those longer than the word are left out.
    fn walk(&self, bracketed: &str, each: &mut dyn FnMut(&str, usize)) {
        let starts = char_starts(bracketed);
        let count = starts.len() - 1;
        let (min, max) = self.lengths(count);
        for first in 0..count {
            for n in (min..=max.min(count - first)).rev() {
                each(&bracketed[starts[first]..starts[first + n]], n);
            }
        }
    }

    /// The n-grams' lengths, none longer than the word.
    fn lengths(&self, chars: usize) -> (usize, usize) {
        let bounded = |n: u32| usize::try_from(n).unwrap_or(usize::MAX);
        (bounded(self.min_n).max(1), bounded(self.max_n).min(chars))
    }
}

/// Where each character begins, and at the end where the last one ends.
fn char_starts(text: &str) -> Vec<usize> {
    text.char_indices().map(|(at, _)| at).chain([text.len()]).collect()
}

#[cfg(test)]
mod tests;
