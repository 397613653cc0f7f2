//! Words of a text, and their tokens.

use super::Tokenizer;
use super::normalize::{Casing, Normalizer};
use super::unicode::{self, CONTROL, PUNCTUATION, SPACE};
use std::ops::ControlFlow;

/// What a byte of a text does, so that most of a text needs no look at characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Byte {
    /// Is part of a word.
    Part,
    /// Ends a word.
    Space,
    /// Is a word.
    Alone,
    /// Is taken out.
    Gone,
    /// Belongs to a character outside of ASCII.
    Further,
}

/// What each byte does with these settings.
pub(super) fn bytes_with(casing: Casing) -> Box<[Byte; 256]> {
    let mut bytes = Box::new([Byte::Further; 256]);
    for code in 0..0x80u8 {
        let kinds = unicode::kinds(char::from(code));
        bytes[usize::from(code)] = if casing.clean && kinds & CONTROL != 0 {
            Byte::Gone
        } else if kinds & SPACE != 0 {
            Byte::Space
        } else if kinds & PUNCTUATION != 0 {
            Byte::Alone
        } else {
            Byte::Part
        };
    }
    bytes
}

/// Takes the characters of a text and appends the tokens of each word that ends.
#[derive(Debug)]
pub(super) struct Words<'a> {
    tokenizer: &'a Tokenizer,
    ids: &'a mut Vec<u32>,
    /// How many there may be in `ids`.
    full: usize,
    /// The word so far; no longer kept once it has too many characters.
    word: Vec<u8>,
    characters: usize,
    hashes: Vec<u64>,
}

impl<'a> Words<'a> {
    pub(super) fn new(tokenizer: &'a Tokenizer, ids: &'a mut Vec<u32>, full: usize) -> Words<'a> {
        let (word, hashes) = (Vec::with_capacity(128), Vec::with_capacity(128));
        Words { tokenizer, ids, full, word, characters: 0, hashes }
    }

    /// Breaks off when there are enough tokens.
    pub(super) fn push_token(&mut self, id: u32) -> ControlFlow<()> {
        self.ids.push(id);
        self.go_on()
    }

    /// A text as it is.
    pub(super) fn push_text(&mut self, text: &str) -> ControlFlow<()> {
        let bytes = text.as_bytes();
        let mut normalizer = Normalizer::new(self.tokenizer.casing);
        let mut at = 0;
        while let Some(&byte) = bytes.get(at) {
            let kind = self.kind(byte);
            if kind == Byte::Further {
                let Some(c) = text[at..].chars().next() else { break };
                normalizer.push(c, &mut |c| self.push(c));
                at += c.len_utf8();
                self.go_on()?;
                continue;
            }
            if kind == Byte::Gone {
                at += 1;
                continue;
            }
            normalizer.finish(&mut |c| self.push(c));
            match kind {
                Byte::Part => {
                    let run =
                        bytes[at..].iter().take_while(|b| self.kind(**b) == Byte::Part).count();
                    self.extend(&bytes[at..at + run]);
                    at += run;
                }
                Byte::Alone => {
                    self.end_word();
                    self.extend(&bytes[at..at + 1]);
                    self.end_word();
                    at += 1;
                }
                _ => {
                    self.end_word();
                    at += 1;
                }
            }
            self.go_on()?;
        }
        normalizer.finish(&mut |c| self.push(c));
        self.end_word();
        self.go_on()
    }

    /// A text that was normalized before.
    pub(super) fn push_normalized(&mut self, text: &str) -> ControlFlow<()> {
        for c in text.chars() {
            self.push(c);
            self.go_on()?;
        }
        self.end_word();
        self.go_on()
    }

    fn kind(&self, byte: u8) -> Byte {
        self.tokenizer.bytes[usize::from(byte)]
    }

    fn go_on(&self) -> ControlFlow<()> {
        match self.ids.len() < self.full {
            true => ControlFlow::Continue(()),
            false => ControlFlow::Break(()),
        }
    }

    /// A character of a normalized text.
    fn push(&mut self, c: char) {
        let kinds = unicode::kinds(c);
        if kinds & SPACE != 0 {
            self.end_word();
        } else if kinds & PUNCTUATION != 0 {
            self.end_word();
            self.append(c);
            self.end_word();
        } else {
            self.append(c);
        }
    }

    fn append(&mut self, c: char) {
        self.characters += 1;
        if self.characters <= self.tokenizer.max_word_characters {
            self.word.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
        }
    }

    /// Parts of a word, in ASCII and not normalized yet.
    fn extend(&mut self, run: &[u8]) {
        self.characters += run.len();
        if self.characters > self.tokenizer.max_word_characters {
            return;
        }
        match self.tokenizer.casing.lower_case {
            true => self.word.extend(run.iter().map(u8::to_ascii_lowercase)),
            false => self.word.extend_from_slice(run),
        }
    }

    fn end_word(&mut self) {
        if self.characters == 0 {
            return;
        }
        let known = self.characters <= self.tokenizer.max_word_characters
            && self.tokenizer.pieces.split(&self.word, self.ids, &mut self.hashes);
        if !known {
            self.ids.push(self.tokenizer.unknown);
        }
        self.word.clear();
        self.characters = 0;
    }
}
