//! Tokens that are found in a text before it is taken apart, such as `[MASK]`.

use super::model::Model;
use super::normalize::{Casing, Normalizer};
use std::collections::HashMap;
use std::fmt;
use std::ops::{ControlFlow, Range};
use weighbridge_format::Error;
use weighbridge_format::spec::tokenizer::AddedToken;

/// All added tokens, by where they are looked for.
#[derive(Debug)]
pub(super) struct Added {
    /// Those that are not in the vocabulary, and have the numbers behind it.
    extra: Vec<String>,
    pub(super) in_text: Patterns,
    pub(super) in_normalized: Patterns,
}

impl Added {
    /// A token has the number that the vocabulary gives it, whatever the file says; those that are
    /// not in the vocabulary get the numbers behind it, in their order.
    pub(super) fn new(
        listed: Vec<AddedToken>,
        model: &Model,
        casing: Casing,
    ) -> Result<Added, Error> {
        let mut extra = Vec::new();
        let mut tokens: Vec<(u32, AddedToken)> = Vec::new();
        let mut places = HashMap::new();
        for token in listed.into_iter().filter(|token| !token.content.is_empty()) {
            // Of a token that is listed twice the later entry counts.
            if let Some(&place) = places.get(&token.content) {
                let old: &mut (u32, AddedToken) = &mut tokens[place];
                old.1 = token;
                continue;
            }
            let id = match model.find(&token.content) {
                Some(id) => id,
                None => {
                    extra.push(token.content.clone());
                    u32::try_from(model.len() + extra.len() - 1).unwrap_or(u32::MAX)
                }
            };
            places.insert(token.content.clone(), tokens.len());
            tokens.push((id, token));
        }
        let mut added =
            Added { extra, in_text: Patterns::default(), in_normalized: Patterns::default() };
        for (id, token) in tokens {
            if !token.normalized {
                added.in_text.add(token.content.clone(), id, &token);
                continue;
            }
            let mut form = String::new();
            Normalizer::new(casing).normalize(&token.content, &mut |c| form.push(c));
            if form.is_empty() {
                let what = format!(
                    "nothing is left of the added token {:?} once it is normalized",
                    token.content
                );
                return Err(Error::refused(what, "it could be found everywhere"));
            }
            added.in_normalized.add(form, id, &token);
        }
        Ok(added)
    }

    /// Those that are not in the vocabulary, in the order of their numbers.
    pub(super) fn extra(&self) -> &[String] {
        &self.extra
    }
}

/// A segment of a text: an added token, or what is between them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Segment {
    Token(u32),
    Text(Range<usize>),
}

/// Texts to be found, of several at one place the longest.
#[derive(Default)]
pub(super) struct Patterns {
    known: HashMap<String, Pattern>,
    /// The lengths that there are, the longest first.
    lengths: Vec<usize>,
    /// The bytes that they begin with.
    first_bytes: Vec<u8>,
    /// The same by byte, once there are several.
    begins: Option<Box<[bool; 256]>>,
}

#[derive(Clone, Copy, Debug)]
struct Pattern {
    id: u32,
    single_word: bool,
    lstrip: bool,
    rstrip: bool,
}

impl Patterns {
    fn add(&mut self, text: String, id: u32, token: &AddedToken) {
        let &AddedToken { single_word, lstrip, rstrip, .. } = token;
        if let Err(place) = self.lengths.binary_search_by(|length| text.len().cmp(length)) {
            self.lengths.insert(place, text.len());
        }
        let first = text.as_bytes()[0];
        if !self.first_bytes.contains(&first) {
            self.first_bytes.push(first);
        }
        if self.first_bytes.len() > 1 {
            let begins = self.begins.get_or_insert_with(|| Box::new([false; 256]));
            self.first_bytes.iter().for_each(|byte| begins[usize::from(*byte)] = true);
        }
        let pattern = Pattern { id, single_word, lstrip, rstrip };
        self.known.entry(text).or_insert(pattern);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    /// Hands over the tokens in a text and what stands between them.
    pub(super) fn split(
        &self,
        text: &str,
        mut emit: impl FnMut(Segment) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let mut done = 0;
        let mut from = 0;
        let mut blank_until = 0;
        while let Some((Range { mut start, mut end }, pattern)) = self.next(text, from) {
            // A token inside this one is not looked for, even if this one does not count.
            from = end;
            if pattern.single_word && (ends_in_word(&text[..start]) || begins_word(&text[end..])) {
                continue;
            }
            if pattern.lstrip {
                // What an earlier one took is not taken again.
                let between = text.get(done..start).unwrap_or_default();
                start = done + between.trim_end().len();
            }
            if pattern.rstrip {
                // Inside white space that was gone through before, its end is known.
                if blank_until <= end {
                    blank_until = text.len() - text[end..].trim_start().len();
                }
                end = blank_until;
            }
            if done < start {
                emit(Segment::Text(done..start))?;
            }
            // All of it may be white space that an earlier one took: then it is not there.
            if start < end {
                emit(Segment::Token(pattern.id))?;
            }
            done = end;
        }
        if done < text.len() {
            emit(Segment::Text(done..text.len()))?;
        }
        ControlFlow::Continue(())
    }

    /// The first one from a place on.
    fn next(&self, text: &str, from: usize) -> Option<(Range<usize>, Pattern)> {
        let mut from = from;
        loop {
            let start = from + self.candidate(&text.as_bytes()[from..])?;
            let found = self.lengths.iter().find_map(|length| {
                let end = start.checked_add(*length)?;
                Some((start..end, *self.known.get(text.get(start..end)?)?))
            });
            if found.is_some() {
                return found;
            }
            from = start + 1;
        }
    }

    /// Where one could begin.
    fn candidate(&self, bytes: &[u8]) -> Option<usize> {
        match &self.begins {
            Some(begins) => bytes.iter().position(|byte| begins[usize::from(*byte)]),
            // Nearly always: all begin with a bracket.
            None => find_byte(bytes, *self.first_bytes.first()?),
        }
    }
}

/// The position of a byte, found by comparing many at a time.
fn find_byte(bytes: &[u8], wanted: u8) -> Option<usize> {
    let mut blocks = bytes.chunks_exact(32);
    let mut at = 0;
    for block in &mut blocks {
        // Written so that all of a block are compared at once.
        if block.iter().fold(false, |found, byte| found | (*byte == wanted)) {
            break;
        }
        at += block.len();
    }
    bytes[at..].iter().position(|byte| *byte == wanted).map(|place| at + place)
}

fn ends_in_word(text: &str) -> bool {
    text.chars().next_back().is_some_and(regex_syntax::is_word_character)
}

fn begins_word(text: &str) -> bool {
    text.chars().next().is_some_and(regex_syntax::is_word_character)
}

impl fmt::Debug for Patterns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.known.keys()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segments(patterns: &Patterns, text: &str) -> Vec<(Option<u32>, String)> {
        let mut all = Vec::new();
        let _ = patterns.split(text, |segment| {
            all.push(match segment {
                Segment::Token(id) => (Some(id), String::new()),
                Segment::Text(range) => (None, text[range].to_owned()),
            });
            ControlFlow::Continue(())
        });
        all
    }

    #[test]
    fn the_longest_is_found_and_words_are_respected() {
        let mut patterns = Patterns::default();
        let single = AddedToken { single_word: true, ..AddedToken::plain("") };
        let strips = AddedToken { lstrip: true, rstrip: true, ..AddedToken::plain("") };
        patterns.add("[A]".into(), 1, &AddedToken::plain(""));
        patterns.add("[A][B]".into(), 2, &AddedToken::plain(""));
        patterns.add("day".into(), 3, &single);
        patterns.add("<s>".into(), 4, &strips);
        let text = |s: &str| (None, s.to_owned());
        let token = |id| (Some(id), String::new());
        assert_eq!(segments(&patterns, "x[A][B]"), [text("x"), token(2)]);
        assert_eq!(segments(&patterns, "[A][A [A]"), [token(1), text("[A "), token(1)]);
        assert_eq!(segments(&patterns, "a day, days"), [text("a "), token(3), text(", days")]);
        assert_eq!(segments(&patterns, "a <s>\n<s> b"), [text("a"), token(4), token(4), text("b")]);
        assert_eq!(segments(&patterns, ""), []);
    }

    #[test]
    fn a_byte_is_found_wherever_it_is() {
        for length in [0, 1, 31, 32, 33, 64, 100] {
            let mut bytes = vec![b'x'; length];
            assert_eq!(find_byte(&bytes, b'['), None);
            for at in 0..length {
                bytes[at] = b'[';
                assert_eq!(find_byte(&bytes, b'['), Some(at));
                bytes[at] = b'x';
            }
        }
    }
}
