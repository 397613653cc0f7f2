//! BERT's normalizer and pre-tokenizer in one pass: characters stream through both to the words that
//! the model gets, without a text in between.

use super::model::{Model, Scratch};
use super::normalize::{Casing, Normalizer};
use super::unicode::{self, CONTROL, PUNCTUATION, SPACE};
use std::ops::ControlFlow;

/// The class of a byte of a text, so that most of a text need not be decoded to characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ByteClass {
    /// Part of a word.
    Word,
    /// Ends a word.
    Space,
    /// A word of its own.
    Punctuation,
    /// Taken out.
    Removed,
    /// Part of a character outside of ASCII.
    NonAscii,
}

/// Takes texts apart into words: white space and punctuation separate them.
#[derive(Debug)]
pub(super) struct WordSplitter {
    pub(super) casing: Casing,
    /// The class of each byte with these settings.
    byte_classes: Box<[ByteClass; 256]>,
}

impl WordSplitter {
    pub(super) fn new(casing: Casing) -> WordSplitter {
        WordSplitter { casing, byte_classes: byte_classes(casing) }
    }
}

fn byte_classes(casing: Casing) -> Box<[ByteClass; 256]> {
    let mut classes = Box::new([ByteClass::NonAscii; 256]);
    for code in 0..0x80u8 {
        let kinds = unicode::kinds(char::from(code));
        classes[usize::from(code)] = if casing.clean && kinds & CONTROL != 0 {
            ByteClass::Removed
        } else if kinds & SPACE != 0 {
            ByteClass::Space
        } else if kinds & PUNCTUATION != 0 {
            ByteClass::Punctuation
        } else {
            ByteClass::Word
        };
    }
    classes
}

/// Takes the characters of a text and appends the tokens of each word that ends.
#[derive(Debug)]
pub(super) struct Words<'a> {
    splitter: &'a WordSplitter,
    model: &'a Model,
    ids: &'a mut Vec<u32>,
    /// How many tokens there may be in `ids`.
    limit: usize,
    /// The word so far; no longer kept once it has too many characters.
    word: Vec<u8>,
    characters: usize,
    scratch: Scratch,
}

impl<'a> Words<'a> {
    pub(super) fn new(
        splitter: &'a WordSplitter,
        model: &'a Model,
        ids: &'a mut Vec<u32>,
        limit: usize,
    ) -> Words<'a> {
        let (word, scratch) = (Vec::with_capacity(128), Scratch::new());
        Words { splitter, model, ids, limit, word, characters: 0, scratch }
    }

    /// Appends a token. Breaks off when there are enough.
    pub(super) fn push_token(&mut self, id: u32) -> ControlFlow<()> {
        self.ids.push(id);
        self.continue_unless_full()
    }

    /// Takes a text that is not normalized yet. Breaks off when there are enough tokens.
    pub(super) fn push_text(&mut self, text: &str) -> ControlFlow<()> {
        let bytes = text.as_bytes();
        let mut normalizer = Normalizer::new(self.splitter.casing);
        let mut at = 0;
        while let Some(&byte) = bytes.get(at) {
            let class = self.class(byte);
            if class == ByteClass::NonAscii {
                let Some(c) = text[at..].chars().next() else { break };
                normalizer.push(c, &mut |c| self.push(c));
                at += c.len_utf8();
                self.continue_unless_full()?;
                continue;
            }
            if class == ByteClass::Removed {
                at += 1;
                continue;
            }
            normalizer.finish(&mut |c| self.push(c));
            match class {
                ByteClass::Word => {
                    let run = bytes[at..]
                        .iter()
                        .take_while(|b| self.class(**b) == ByteClass::Word)
                        .count();
                    self.extend(&bytes[at..at + run]);
                    at += run;
                }
                ByteClass::Punctuation => {
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
            self.continue_unless_full()?;
        }
        normalizer.finish(&mut |c| self.push(c));
        self.end_word();
        self.continue_unless_full()
    }

    /// Takes a text that was normalized before. Breaks off when there are enough tokens.
    pub(super) fn push_normalized(&mut self, text: &str) -> ControlFlow<()> {
        for c in text.chars() {
            self.push(c);
            self.continue_unless_full()?;
        }
        self.end_word();
        self.continue_unless_full()
    }

    fn class(&self, byte: u8) -> ByteClass {
        self.splitter.byte_classes[usize::from(byte)]
    }

    fn continue_unless_full(&self) -> ControlFlow<()> {
        match self.ids.len() < self.limit {
            true => ControlFlow::Continue(()),
            false => ControlFlow::Break(()),
        }
    }

    /// Takes a character of a normalized text.
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
        if self.characters <= self.model.max_word_characters() {
            self.word.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
        }
    }

    /// Appends to the word, in ASCII and not normalized yet.
    fn extend(&mut self, run: &[u8]) {
        self.characters += run.len();
        if self.characters > self.model.max_word_characters() {
            return;
        }
        match self.splitter.casing.lower_case {
            true => self.word.extend(run.iter().map(u8::to_ascii_lowercase)),
            false => self.word.extend_from_slice(run),
        }
    }

    /// Appends the tokens of the word, if there is one, and begins a new one.
    fn end_word(&mut self) {
        if self.characters == 0 {
            return;
        }
        self.model.append(&self.word, self.characters, self.ids, &mut self.scratch);
        self.word.clear();
        self.characters = 0;
    }
}
