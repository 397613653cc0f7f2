//! The model of a tokenizer: words to tokens, with the vocabulary that they are of.

use super::pieces::Pieces;

/// How words become tokens. One more kind is a variant, and its lines below.
#[derive(Debug)]
pub(super) enum Model {
    WordPiece(WordPiece),
}

/// Memory that a model uses again for each word.
#[derive(Debug)]
pub(super) struct Scratch {
    hashes: Vec<u64>,
}

impl Scratch {
    pub(super) fn new() -> Scratch {
        Scratch { hashes: Vec::with_capacity(128) }
    }
}

impl Model {
    /// How many tokens its vocabulary has.
    pub(super) fn len(&self) -> usize {
        match self {
            Model::WordPiece(model) => model.pieces.len(),
        }
    }

    /// The text of a token.
    pub(super) fn token(&self, id: usize) -> Option<&str> {
        match self {
            Model::WordPiece(model) => model.pieces.token(id),
        }
    }

    /// The number of a token.
    pub(super) fn find(&self, token: &str) -> Option<u32> {
        match self {
            Model::WordPiece(model) => model.pieces.find(token),
        }
    }

    /// The token of what can't be said otherwise.
    pub(super) fn unknown(&self) -> u32 {
        match self {
            Model::WordPiece(model) => model.unknown,
        }
    }

    /// The most characters of a word that are looked at. Of a longer one nothing but the number of
    /// its characters needs to be kept.
    #[inline]
    pub(super) fn max_word_characters(&self) -> usize {
        match self {
            Model::WordPiece(model) => model.max_word_characters,
        }
    }

    /// Appends the tokens of a word of so many characters.
    #[inline]
    pub(super) fn append(
        &self,
        word: &[u8],
        characters: usize,
        ids: &mut Vec<u32>,
        scratch: &mut Scratch,
    ) {
        match self {
            Model::WordPiece(model) => model.append(word, characters, ids, scratch),
        }
    }
}

/// Each word becomes the longest pieces of the vocabulary that it consists of.
#[derive(Debug)]
pub(super) struct WordPiece {
    pub(super) pieces: Pieces,
    /// The token of words that are too long, or consist of no pieces.
    pub(super) unknown: u32,
    pub(super) max_word_characters: usize,
}

impl WordPiece {
    #[inline]
    fn append(&self, word: &[u8], characters: usize, ids: &mut Vec<u32>, scratch: &mut Scratch) {
        let is_known = characters <= self.max_word_characters
            && self.pieces.split(word, ids, &mut scratch.hashes);
        if !is_known {
            ids.push(self.unknown);
        }
    }
}
