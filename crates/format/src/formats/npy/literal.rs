//! The few Python literals that a header is made of: a dict of strings, booleans, and a tuple of
//! whole numbers. Strict: what Python would not read as exactly that is refused.

use super::rules::{HEADER, SHAPE};
use crate::wire::Finding;

/// Most dimensions an array can have (NumPy 2; before, 32).
const MOST_DIMENSIONS: usize = 64;

/// A position in the header's text.
pub(super) struct Literals<'a> {
    text: &'a [u8],
    at: usize,
    /// Where the text begins in the file.
    base: u64,
}

impl<'a> Literals<'a> {
    pub(super) fn new(text: &'a [u8], base: u64) -> Self {
        Literals { text, at: 0, base }
    }

    /// The position in the file.
    pub(super) fn position(&self) -> u64 {
        self.base + self.at as u64
    }

    /// What comes next, as a message quotes it.
    pub(super) fn rest(&self) -> String {
        quote(self.text.get(self.at..).unwrap_or_default()).trim_end().to_owned()
    }

    /// The next byte that is not white space, without passing it.
    pub(super) fn peek(&mut self) -> Option<u8> {
        while let Some(b' ' | b'\t' | b'\n' | b'\r' | 0x0C) = self.text.get(self.at) {
            self.at += 1;
        }
        self.text.get(self.at).copied()
    }

    /// Passes a byte if it is the next one.
    pub(super) fn eat(&mut self, byte: u8) -> bool {
        let there = self.peek() == Some(byte);
        self.at += usize::from(there);
        there
    }

    pub(super) fn expect(&mut self, byte: u8, what: &str) -> Result<(), Box<Finding>> {
        if self.eat(byte) { Ok(()) } else { Err(self.wrong(what)) }
    }

    /// The end of the text, but for white space.
    pub(super) fn end(&mut self) -> Result<(), Box<Finding>> {
        if self.peek().is_none() { Ok(()) } else { Err(self.wrong("nothing after the dict")) }
    }

    /// A string in either kind of quotes. No name and no type needs an escape, so there are none.
    pub(super) fn string(&mut self, what: &str) -> Result<&'a [u8], Box<Finding>> {
        let quote = match self.peek() {
            Some(quote @ (b'\'' | b'"')) => quote,
            _ => return Err(self.wrong(what)),
        };
        let rest = self.text.get(self.at + 1..).unwrap_or_default();
        let end = rest.iter().position(|&b| b == quote || matches!(b, b'\\' | b'\n' | b'\r'));
        match end.and_then(|end| Some((rest.get(..end)?, *rest.get(end)?))) {
            Some((string, closing)) if closing == quote => {
                self.at += string.len() + 2;
                Ok(string)
            }
            _ => Err(self.wrong(what)),
        }
    }

    pub(super) fn boolean(&mut self) -> Result<bool, Box<Finding>> {
        self.peek();
        let rest = self.text.get(self.at..).unwrap_or_default();
        for (word, value) in [("True", true), ("False", false)] {
            let behind = rest.get(word.len());
            if rest.starts_with(word.as_bytes()) && !behind.is_some_and(u8::is_ascii_alphanumeric) {
                self.at += word.len();
                return Ok(value);
            }
        }
        Err(self.wrong("True or False"))
    }

    /// A tuple of whole numbers: `()`, `(3,)`, `(3, 4)`. `(3)` is no tuple in Python.
    pub(super) fn tuple(&mut self) -> Result<Vec<u64>, Box<Finding>> {
        let what = "a tuple of whole numbers";
        let start = self.position();
        self.expect(b'(', what)?;
        let mut numbers = Vec::new();
        while !self.eat(b')') {
            if numbers.len() == MOST_DIMENSIONS {
                let finding = SHAPE.at(start..self.position()).field("header \"shape\"");
                let most = format!("at most {MOST_DIMENSIONS} dimensions");
                return Err(Box::new(finding.expected(most).found("more")));
            }
            numbers.push(self.number()?);
            if !self.eat(b',') {
                self.expect(b')', what)?;
                if numbers.len() == 1 {
                    return Err(self.wrong_since(start, "a tuple, which with one number is (3,)"));
                }
                break;
            }
        }
        Ok(numbers)
    }

    fn number(&mut self) -> Result<u64, Box<Finding>> {
        self.peek();
        let start = self.at;
        let rest = self.text.get(start..).unwrap_or_default();
        let length = rest.iter().take_while(|b| b.is_ascii_digit()).count();
        let digits = rest.get(..length).unwrap_or_default();
        // Python refuses 01.
        let leading_zero = digits.len() > 1 && digits.first() == Some(&b'0');
        if digits.is_empty() || leading_zero {
            return Err(self.wrong("a whole number"));
        }
        let number = digits
            .iter()
            .try_fold(0u64, |n, d| n.checked_mul(10)?.checked_add(u64::from(d - b'0')));
        self.at += length;
        // Python 2 on Windows wrote `10L`; NumPy still reads that.
        if self.text.get(self.at) == Some(&b'L') {
            self.at += 1;
        }
        number.ok_or_else(|| {
            let span = self.base + start as u64..self.position();
            let finding = SHAPE.at(span).field("header \"shape\"");
            Box::new(finding.expected("a number below 2^64").found(quote(digits)))
        })
    }

    fn wrong(&self, expected: &str) -> Box<Finding> {
        self.wrong_since(self.position(), expected)
    }

    fn wrong_since(&self, start: u64, expected: &str) -> Box<Finding> {
        let found = match self.rest() {
            rest if rest.is_empty() => "the end of the header".to_owned(),
            rest => rest,
        };
        let span = start..self.position() + 1;
        Box::new(HEADER.at(span).field("header").expected(expected).found(found))
    }
}

/// The beginning of a text for a message. The text may be of any length and of any bytes.
pub(super) fn quote(text: &[u8]) -> String {
    String::from_utf8_lossy(text.get(..60).unwrap_or(text)).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tuple(text: &str) -> Result<Vec<u64>, Box<Finding>> {
        Literals::new(text.as_bytes(), 10).tuple()
    }

    #[test]
    fn tuples() {
        assert!(tuple("()").unwrap().is_empty());
        assert_eq!(tuple(" ( 3 , ) ").unwrap(), [3]);
        assert_eq!(tuple("(3, 4)").unwrap(), [3, 4]);
        assert_eq!(tuple("(3,4,\n)").unwrap(), [3, 4]);
        assert_eq!(tuple("(3L, 0L)").unwrap(), [3, 0]);
        assert_eq!(tuple("(18446744073709551615,)").unwrap(), [u64::MAX]);
        for bad in ["(3)", "(,)", "(3 4)", "(-1,)", "(1.0,)", "(3,", "[3]", "(03,)", "(0x3,)", ""] {
            assert_eq!(tuple(bad).unwrap_err().rule, "NPY-03", "{bad}");
        }
        assert_eq!(tuple("(18446744073709551616,)").unwrap_err().rule, "NPY-06");
        assert_eq!(tuple(&format!("({})", "1,".repeat(64))).unwrap().len(), 64);
        assert_eq!(tuple(&format!("({})", "1,".repeat(65))).unwrap_err().rule, "NPY-06");
    }

    #[test]
    fn strings_and_booleans() {
        let string = |text: &'static str| Literals::new(text.as_bytes(), 0).string("x");
        assert_eq!(string("'a b'").unwrap(), b"a b");
        assert_eq!(string(" \"it's\"").unwrap(), b"it's");
        for bad in ["'a", "'a\"", "'a\\'b'", "a", "", "'", "'a\nb'"] {
            assert!(string(bad).is_err(), "{bad}");
        }
        let boolean = |text: &'static str| Literals::new(text.as_bytes(), 0).boolean();
        assert!(boolean(" True,").unwrap());
        assert!(!boolean("False").unwrap());
        for bad in ["true", "1", "Truer", "", "'True'"] {
            assert!(boolean(bad).is_err(), "{bad}");
        }
    }
}
