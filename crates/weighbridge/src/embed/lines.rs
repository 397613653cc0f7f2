//! Lines of bounded length out of a stream, each with its number and its place.

use std::io::{self, BufRead};
use weighbridge_format::wire::MARK;

/// A longer line is no text that anybody meant, and would have to be held in memory.
pub const LONGEST_LINE: usize = 16 << 20;

/// A line without its end.
#[derive(Debug)]
pub(crate) struct Line {
    /// Counted from 1.
    pub number: u64,
    /// Where it begins in the stream.
    pub start: u64,
    pub bytes: Vec<u8>,
    /// It is longer than [`LONGEST_LINE`]: only its beginning is here.
    pub cut: bool,
}

pub(crate) struct Lines<R> {
    input: R,
    number: u64,
    at: u64,
    /// A whole line is left of what was read from the stream.
    next_is_there: bool,
}

impl<R: BufRead> Lines<R> {
    pub(crate) fn new(input: R) -> Lines<R> {
        Lines { input, number: 0, at: 0, next_is_there: false }
    }

    /// Bytes read so far.
    pub(crate) fn position(&self) -> u64 {
        self.at
    }

    /// Whether the next line can be had without waiting for the stream.
    pub(crate) fn is_next_there(&self) -> bool {
        self.next_is_there
    }

    /// The bytes that are there already of what comes next, without taking them.
    pub(crate) fn head(&mut self) -> io::Result<&[u8]> {
        loop {
            match self.input.fill_buf() {
                Ok(_) => break,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        self.input.fill_buf()
    }

    /// The next line; `None` at the end. A last line needs no end.
    pub(crate) fn next(&mut self) -> io::Result<Option<Line>> {
        let start = self.at;
        let mut line = Line { number: self.number + 1, start, bytes: Vec::new(), cut: false };
        loop {
            let waiting = match self.input.fill_buf() {
                Ok(bytes) => bytes,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                Err(e) => return Err(e),
            };
            if waiting.is_empty() && self.at == start {
                return Ok(None);
            }
            let end = waiting.iter().position(|b| *b == b'\n');
            let part = &waiting[..end.unwrap_or(waiting.len())];
            // What is too much is read over, so that the line behind it can be found.
            let room = LONGEST_LINE - line.bytes.len();
            line.cut |= part.len() > room;
            line.bytes.extend_from_slice(&part[..part.len().min(room)]);
            let used = end.map_or(waiting.len(), |end| end + 1);
            let is_last = waiting.is_empty();
            self.next_is_there = waiting[used..].contains(&b'\n');
            self.input.consume(used);
            self.at += used as u64;
            if end.is_some() || is_last {
                break;
            }
        }
        self.number += 1;
        line.bytes.pop_if(|last| *last == b'\r' && !line.cut);
        if start == 0 && line.bytes.starts_with(MARK) {
            line.bytes.drain(..MARK.len());
            line.start = MARK.len() as u64;
        }
        Ok(Some(line))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &[u8]) -> Vec<(u64, u64, Vec<u8>)> {
        // A small buffer, so that lines lie in several.
        let mut lines = Lines::new(io::BufReader::with_capacity(3, text));
        let mut list = Vec::new();
        while let Some(line) = lines.next().unwrap() {
            assert!(!line.cut);
            list.push((line.number, line.start, line.bytes));
        }
        assert_eq!(lines.position(), text.len() as u64);
        list
    }

    #[test]
    fn lines_are_numbered_and_placed() {
        let expected = [(1, 0, b"one".to_vec()), (2, 5, vec![]), (3, 6, b"three".to_vec())];
        assert_eq!(lines(b"one\r\n\nthree\n"), expected);
        assert_eq!(lines(b"one\r\n\nthree"), expected);
        assert_eq!(lines(b""), []);
        assert_eq!(lines(b"\n"), [(1, 0, vec![])]);
        assert_eq!(lines(b"\xEF\xBB\xBFa\nb"), [(1, 3, b"a".to_vec()), (2, 5, b"b".to_vec())]);
    }

    #[test]
    fn a_long_line_is_cut_and_the_next_one_is_found() {
        let mut text = vec![b'x'; LONGEST_LINE + 5];
        text.extend(b"\nnext");
        let mut lines = Lines::new(&text[..]);
        let long = lines.next().unwrap().unwrap();
        assert!(long.cut && long.bytes.len() == LONGEST_LINE);
        assert_eq!(lines.next().unwrap().unwrap().bytes, b"next");
        text.truncate(LONGEST_LINE);
        assert!(!Lines::new(&text[..]).next().unwrap().unwrap().cut);
    }
}
