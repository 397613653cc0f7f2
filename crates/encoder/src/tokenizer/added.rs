//! Tokens that are found in a text before it is taken apart, such as `[MASK]`.

use super::model::Model;
use super::normalize::{Casing, Normalizer};
use std::collections::HashMap;
use std::fmt;
use std::ops::{ControlFlow, Range};
use weighbridge_format::Error;
use weighbridge_format::spec::tokenizer::AddedToken;

/// Bytes of an added token, at most: a text that is like the beginning of one is looked at as far as
/// they agree, at every place.
const LONGEST: usize = 1_000;

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
            if token.content.len() > LONGEST {
                return Err(Error::limit("bytes of an added token", LONGEST as u64));
            }
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
        let (mut in_text, mut in_normalized) = (Vec::new(), Vec::new());
        for (id, token) in tokens {
            if !token.normalized {
                in_text.push((token.content.clone(), id, token));
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
            in_normalized.push((form, id, token));
        }
        let (in_text, in_normalized) = (Patterns::new(in_text), Patterns::new(in_normalized));
        Ok(Added { extra, in_text, in_normalized })
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
    /// Sorted by their bytes, so that those which begin alike stand together.
    known: Vec<(String, Pattern)>,
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
    /// Of texts that are the same the first counts.
    fn new(list: Vec<(String, u32, AddedToken)>) -> Patterns {
        let pattern = |(text, id, token): (String, u32, AddedToken)| {
            let AddedToken { single_word, lstrip, rstrip, .. } = token;
            (text, Pattern { id, single_word, lstrip, rstrip })
        };
        let mut known: Vec<_> = list.into_iter().map(pattern).collect();
        known.sort_by(|a, b| a.0.cmp(&b.0));
        known.dedup_by(|later, first| later.0 == first.0);
        let mut first_bytes: Vec<u8> =
            known.iter().filter_map(|(text, _)| text.bytes().next()).collect();
        first_bytes.dedup();
        let begins = (first_bytes.len() > 1).then(|| {
            let mut begins = Box::new([false; 256]);
            first_bytes.iter().for_each(|byte| begins[usize::from(*byte)] = true);
            begins
        });
        Patterns { known, first_bytes, begins }
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
            let found = self.longest(&text.as_bytes()[start..]);
            let found = found.map(|(length, pattern)| (start..start + length, pattern));
            if found.is_some() {
                return found;
            }
            from = start + 1;
        }
    }

    /// The longest that a text begins with: those that begin alike are narrowed down byte by byte, so
    /// that it takes no longer than the text and the longest of them agree.
    fn longest(&self, text: &[u8]) -> Option<(usize, Pattern)> {
        let mut alike = self.known.as_slice();
        let mut found = None;
        let mut length = 0;
        while let [(first, pattern), others @ ..] = alike {
            let first = first.as_bytes();
            if first.len() == length {
                found = Some((length, *pattern));
                alike = others;
            } else if others.is_empty() {
                return if text.starts_with(first) { Some((first.len(), *pattern)) } else { found };
            } else {
                let Some(next) = text.get(length) else { break };
                let byte = |(text, _): &(String, Pattern)| text.as_bytes()[length];
                let from = alike.partition_point(|known| byte(known) < *next);
                let to = alike.partition_point(|known| byte(known) <= *next);
                alike = &alike[from..to];
                length += 1;
            }
        }
        found
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
        f.debug_list().entries(self.known.iter().map(|(text, _)| text)).finish()
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
        let plain = AddedToken::plain("");
        let single = AddedToken { single_word: true, ..plain.clone() };
        let strips = AddedToken { lstrip: true, rstrip: true, ..plain.clone() };
        let patterns = Patterns::new(vec![
            ("[A]".into(), 1, plain.clone()),
            ("[A][B]".into(), 2, plain),
            ("day".into(), 3, single),
            ("<s>".into(), 4, strips),
        ]);
        let text = |s: &str| (None, s.to_owned());
        let token = |id| (Some(id), String::new());
        assert_eq!(segments(&patterns, "x[A][B]"), [text("x"), token(2)]);
        assert_eq!(segments(&patterns, "[A][A [A]"), [token(1), text("[A "), token(1)]);
        assert_eq!(segments(&patterns, "a day, days"), [text("a "), token(3), text(", days")]);
        assert_eq!(segments(&patterns, "a <s>\n<s> b"), [text("a"), token(4), token(4), text("b")]);
        assert_eq!(segments(&patterns, ""), []);
    }

    /// The definition: every length that there is, the longest first.
    #[test]
    fn the_longest_is_that_of_trying_all() {
        let texts = ["a", "aa", "aab", "aaaa", "ab", "abc", "b", "ba", "aaaab", "bab", "é", "éa"];
        let token = |(id, text): (u32, &&str)| ((*text).to_owned(), id, AddedToken::plain(text));
        let patterns = Patterns::new((0..).zip(&texts).map(token).collect());
        for n in 0..3u32.pow(7) {
            let text: String =
                (0..7).map(|i| ["a", "b", "é"][(n / 3u32.pow(i) % 3) as usize]).collect();
            let all = texts.iter().filter(|known| text.starts_with(**known));
            let expected = all.map(|known| known.len()).max();
            let found = patterns.longest(text.as_bytes()).map(|(length, _)| length);
            assert_eq!(found, expected, "{text}");
        }
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
