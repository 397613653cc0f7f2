//! Words as a file has them: bytes that should be UTF-8, maybe with escapes, maybe twice.

use crate::model::{Note, NoteKind, Subject};
use crate::source::Bytes;
use crate::{Options, Vocabulary};
use std::borrow::Cow;

/// How the bytes of a word become text and back.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Decode {
    escape: bool,
    lossy: bool,
}

/// A word that is not UTF-8, and from which of its bytes on.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct BadWord {
    pub at: usize,
}

/// What stands for a character that would end a word, behind a backslash. An empty word is `\e`.
const ESCAPES: [(char, char); 8] = [
    ('\\', '\\'),
    (' ', 's'),
    ('\n', 'n'),
    ('\r', 'r'),
    ('\t', 't'),
    ('\x0b', 'v'),
    ('\x0c', 'f'),
    ('\0', '0'),
];
const EMPTY: &str = "\\e";

impl Decode {
    pub(crate) fn new(options: &Options) -> Decode {
        Decode { escape: options.flag("escape"), lossy: options.flag("lossy") }
    }

    /// The text of a word.
    pub(crate) fn word<'a>(&self, bytes: &'a [u8]) -> Result<Cow<'a, str>, BadWord> {
        let text = match std::str::from_utf8(bytes) {
            Ok(text) => Cow::Borrowed(text),
            Err(_) if self.lossy => String::from_utf8_lossy(bytes),
            Err(e) => return Err(BadWord { at: e.valid_up_to() }),
        };
        Ok(if self.escape && text.contains('\\') { unescape(&text).into() } else { text })
    }

    /// What is written for a word; `None` if it would end before its end.
    pub(crate) fn written<'a>(&self, word: &'a str) -> Option<Cow<'a, str>> {
        let ends = |c: char| c != '\\' && ESCAPES.iter().any(|(e, _)| *e == c);
        if self.escape {
            return Some(escape(word));
        }
        (!word.is_empty() && !word.contains(ends)).then_some(Cow::Borrowed(word))
    }
}

fn escape(word: &str) -> Cow<'_, str> {
    let escape = |c: char| ESCAPES.iter().find(|(e, _)| *e == c).map(|(_, by)| *by);
    if word.is_empty() {
        return EMPTY.into();
    }
    if !word.chars().any(|c| escape(c).is_some()) {
        return word.into();
    }
    let mut out = String::with_capacity(2 * word.len());
    for c in word.chars() {
        out.extend(escape(c).map(|_| '\\'));
        out.push(escape(c).unwrap_or(c));
    }
    out.into()
}

/// A backslash in front of anything else is a backslash.
fn unescape(text: &str) -> String {
    if text == EMPTY {
        return String::new();
    }
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        let known = chars.peek().and_then(|next| ESCAPES.iter().find(|(_, by)| by == next));
        match known.filter(|_| c == '\\') {
            Some((stands_for, _)) => {
                out.push(*stands_for);
                chars.next();
            }
            None => out.push(c),
        }
    }
    out
}

/// The words of a file, each once.
#[derive(Debug)]
pub(crate) struct Words {
    pub vocabulary: Vocabulary,
    /// The rows of the words that stay, if not all do.
    pub kept: Option<Vec<u64>>,
    /// The first row that was left out, and how many were.
    pub repeats: Option<(u64, u64)>,
}

impl Words {
    /// What whoever converts the file should know.
    pub(crate) fn note(&self) -> Option<Note> {
        let (row, dropped) = self.repeats?;
        let all = self.vocabulary.len() as u64 + dropped;
        let note = Note::new(NoteKind::Lost, left_out_text(row)).counting(dropped, all);
        Some(note.about(Subject::RepeatedWords(dropped)))
    }
}

/// Why rows of words that were there before are lost, of which this is the first.
pub(crate) fn left_out_text(row: u64) -> String {
    format!("a word is kept where it stands first; row {row} is the first that is left out")
}

/// Keeps the first of each word. The entries are texts behind their lengths of 32 bits.
pub(crate) fn without_repeats(entries: Vec<u8>, count: usize) -> Option<Words> {
    let (vocabulary, _) = Vocabulary::with_u32_lengths(&Bytes::owned(entries), count).ok()?;
    let (Some((first, _)), Some((once, kept))) =
        (vocabulary.duplicate(), vocabulary.without_repeats())
    else {
        return Some(Words { vocabulary, kept: None, repeats: None });
    };
    let dropped = (count - kept.len()) as u64;
    Some(Words { vocabulary: once, kept: Some(kept), repeats: Some((first as u64, dropped)) })
}

/// One more word behind its length.
pub(crate) fn put_word(entries: &mut Vec<u8>, word: &str) {
    let length = u32::try_from(word.len()).unwrap_or(u32::MAX);
    entries.extend_from_slice(&length.to_le_bytes());
    entries.extend_from_slice(word.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(name: &str) -> Decode {
        Decode::new(&Options::default().with(name, "true"))
    }

    #[test]
    fn what_is_escaped_comes_back() {
        let words =
            ["", "New York", "a\\sb", "\\", "\\\\e", "\\e", "line\nbreak\r\t\x0b\x0c\0", "é 東"];
        for word in words {
            let written = with("escape").written(word).unwrap().into_owned();
            assert!(!written.is_empty() && !written.contains(|c: char| c.is_ascii_whitespace()));
            assert_eq!(with("escape").word(written.as_bytes()).unwrap(), word, "{written}");
        }
        assert_eq!(with("escape").word(b"C:\\q \\").unwrap(), "C:\\q \\");
    }

    #[test]
    fn without_escapes_words_end_at_spaces() {
        let plain = Decode::new(&Options::default());
        for word in ["", "New York", "a\nb", "a\tb"] {
            assert_eq!(plain.written(word), None);
        }
        for word in ["a\\b", "é", "no\u{a0}break"] {
            assert_eq!(plain.written(word).unwrap(), word);
        }
        assert_eq!(plain.word(b"a\\sb").unwrap(), "a\\sb");
    }

    #[test]
    fn broken_text_is_placed_or_replaced() {
        let plain = Decode::new(&Options::default());
        assert_eq!(plain.word(b"ab\xE6\x9D"), Err(BadWord { at: 2 }));
        assert_eq!(with("lossy").word(b"ab\xE6\x9Dc").unwrap(), "ab\u{fffd}c");
    }

    #[test]
    fn the_first_of_equal_words_stays() {
        let mut entries = Vec::new();
        ["a", "b", "a", "c", "b", "a"].iter().for_each(|w| put_word(&mut entries, w));
        let words = without_repeats(entries, 6).unwrap();
        assert_eq!(words.vocabulary.tokens().collect::<Vec<_>>(), ["a", "b", "c"]);
        assert_eq!(words.kept, Some(vec![0, 1, 3]));
        assert_eq!(words.repeats, Some((2, 3)));
    }
}
