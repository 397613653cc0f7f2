//! Rows of a table out of a stream, each of bounded size, with its number and its place.
//!
//! The parser of the crate `csv` cuts them into fields. It is driven from here, because a quote that
//! is never closed must neither fill the memory nor pass unnoticed.

use csv_core::{ReadRecordResult, Reader, ReaderBuilder};
use std::io::{self, BufRead};
use weighbridge_format::wire::MARK;

/// A longer row is nothing that anybody meant, and would have to be held in memory.
pub(crate) const LONGEST_ROW: usize = 16 << 20;

/// A row with more fields is none of a table.
pub(crate) const MOST_FIELDS: usize = 1 << 16;

/// What is looked at of a stream before its first row is taken.
pub(super) const SAMPLE: usize = 1 << 16;

/// The bytes of a row, and the fields that they are cut into.
#[derive(Debug, Default)]
pub(super) struct RawRow {
    /// The line that it begins on, counted from 1.
    pub line: u64,
    /// Where it begins in the stream.
    pub start: u64,
    /// As they stand in the stream.
    pub raw: Vec<u8>,
    /// One behind the other, without quotes.
    pub fields: Vec<u8>,
    /// Where each field ends in `fields`.
    pub ends: Vec<usize>,
    /// What keeps it from being used; there are no bytes then.
    pub flaw: Option<Flaw>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flaw {
    /// It is longer than [`LONGEST_ROW`].
    TooLong,
    /// It has more than [`MOST_FIELDS`].
    TooManyFields,
    /// The stream ends within quotes.
    Unclosed,
}

impl RawRow {
    fn flawed(&mut self, flaw: Flaw) {
        self.flaw.get_or_insert(flaw);
        (self.raw, self.fields, self.ends) = (Vec::new(), Vec::new(), Vec::new());
    }
}

pub(super) struct Rows<R> {
    input: R,
    /// The beginning of the stream that was looked at, and how much of it was taken since.
    front: Vec<u8>,
    taken: usize,
    ended: bool,
    parser: Reader,
    /// Of the next byte.
    line: u64,
    at: u64,
    next_is_there: bool,
    /// The rest of a row that was too long comes next.
    within: bool,
    /// Where the parser puts a part of a row.
    part: Box<[u8]>,
    part_ends: Box<[usize]>,
}

impl<R: BufRead> Rows<R> {
    pub(super) fn new(input: R) -> Rows<R> {
        Rows {
            input,
            front: Vec::new(),
            taken: 0,
            ended: false,
            parser: parser(b','),
            line: 1,
            at: 0,
            next_is_there: false,
            within: false,
            part: vec![0; 1 << 16].into(),
            part_ends: vec![0; 256].into(),
        }
    }

    /// Bytes read so far.
    pub(super) fn position(&self) -> u64 {
        self.at
    }

    /// Whether the next row can be had without waiting for the stream.
    pub(super) fn is_next_there(&self) -> bool {
        self.next_is_there
    }

    /// The bytes that are there already, at least one if there are any at all.
    pub(super) fn head(&mut self) -> io::Result<&[u8]> {
        fill(&mut self.input, &self.front, self.taken)
    }

    /// Looks at the beginning of the stream, as far as `enough` wants to see it, and at most
    /// [`SAMPLE`] bytes. A mark of the encoding is left out. Also whether that is all there is.
    pub(super) fn look(&mut self, enough: impl Fn(&[u8]) -> bool) -> io::Result<(&[u8], bool)> {
        while !self.ended && self.front.len() < SAMPLE {
            // A mark can only be known as a whole.
            let is_known = self.at > 0 || self.front.len() >= MARK.len();
            if is_known && enough(&self.front[self.taken..]) {
                break;
            }
            let waiting = fill(&mut self.input, &[], 0)?;
            let more = waiting.len().min(SAMPLE - self.front.len());
            self.front.extend_from_slice(&waiting[..more]);
            self.ended = waiting.is_empty();
            self.input.consume(more);
            if self.at == 0 && self.front.starts_with(MARK) {
                (self.taken, self.at) = (MARK.len(), MARK.len() as u64);
            }
        }
        Ok((&self.front[self.taken..], self.ended))
    }

    /// Rows are cut at this byte from now on.
    pub(super) fn cut_at(&mut self, delimiter: u8) {
        self.parser = parser(delimiter);
    }

    /// The next row; `None` at the end. Blank lines are no rows. One that is too long is said to be as
    /// soon as that is known; its rest is read over later, to find the row behind it.
    pub(super) fn next(&mut self) -> io::Result<Option<RawRow>> {
        while std::mem::take(&mut self.within) {
            self.read_row()?;
        }
        if self.skip_line_breaks()? { self.read_row().map(Some) } else { Ok(None) }
    }

    fn read_row(&mut self) -> io::Result<RawRow> {
        let mut row = RawRow { line: self.line, start: self.at, ..RawRow::default() };
        loop {
            let waiting = fill(&mut self.input, &self.front, self.taken)?;
            let is_end = waiting.is_empty();
            // The last row needs no end. Within quotes a line break is none, and that tells.
            let given = if is_end { b"\n" } else { waiting };
            let (result, used, fields, ends) =
                self.parser.read_record(given, &mut self.part, &mut self.part_ends);
            if !is_end && row.raw.len() + used > LONGEST_ROW {
                row.flawed(Flaw::TooLong);
            } else if row.ends.len() + ends > MOST_FIELDS {
                row.flawed(Flaw::TooManyFields);
            }
            if row.flaw.is_none() {
                row.raw.extend_from_slice(if is_end { b"" } else { &given[..used] });
                row.fields.extend_from_slice(&self.part[..fields]);
                row.ends.extend_from_slice(&self.part_ends[..ends]);
            }
            let done = result == ReadRecordResult::Record;
            self.next_is_there = done && !is_end && has_whole_row(&given[used..]);
            if is_end && !done {
                row.flawed(Flaw::Unclosed);
            }
            let breaks = line_breaks(&given[..used]);
            if !is_end {
                self.consume(used, breaks);
            }
            if is_end || done || row.flaw.is_some() {
                self.within = !is_end && !done;
                return Ok(row);
            }
        }
    }

    /// Whether there is anything behind them.
    fn skip_line_breaks(&mut self) -> io::Result<bool> {
        loop {
            let waiting = fill(&mut self.input, &self.front, self.taken)?;
            let breaks = waiting.iter().take_while(|b| matches!(b, b'\r' | b'\n')).count();
            let (is_empty, is_found) = (waiting.is_empty(), breaks < waiting.len());
            let lines = line_breaks(&waiting[..breaks]);
            self.consume(breaks, lines);
            if is_empty || is_found {
                return Ok(is_found);
            }
        }
    }

    /// Takes bytes of what [`fill`] gave, with so many line breaks among them.
    fn consume(&mut self, count: usize, breaks: u64) {
        self.line += breaks;
        self.at += count as u64;
        if self.taken == self.front.len() {
            return self.input.consume(count);
        }
        self.taken += count;
        if self.taken == self.front.len() {
            (self.front, self.taken) = (Vec::new(), 0);
        }
    }
}

fn line_breaks(bytes: &[u8]) -> u64 {
    bytes.iter().filter(|b| **b == b'\n').count() as u64
}

fn parser(delimiter: u8) -> Reader {
    let mut parser = ReaderBuilder::new().delimiter(delimiter).build();
    // A blank line in front, so that it does not look for a mark, which is gone.
    parser.read_record(b"\n", &mut [0], &mut [0]);
    parser
}

/// What comes next: of the front as long as there is any, then of the stream.
fn fill<'a>(input: &'a mut impl BufRead, front: &'a [u8], taken: usize) -> io::Result<&'a [u8]> {
    if taken < front.len() {
        return Ok(&front[taken..]);
    }
    loop {
        match input.fill_buf() {
            Ok(_) => break,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    input.fill_buf()
}

/// Whether bytes that begin with a row have all of it. Stray quotes may hide its end; then it is only
/// read a little later.
fn has_whole_row(bytes: &[u8]) -> bool {
    let breaks = bytes.iter().take_while(|b| matches!(b, b'\r' | b'\n')).count();
    let mut quoted = false;
    bytes[breaks..].iter().any(|b| {
        quoted ^= *b == b'"';
        *b == b'\n' && !quoted
    })
}

/// The first rows of a sample as they are with a delimiter; one that is cut off is left out.
pub(super) fn rows_of(sample: &[u8], is_all: bool, delimiter: u8, most: usize) -> Vec<Vec<String>> {
    let mut rows = Rows::new(sample);
    rows.cut_at(delimiter);
    let mut list = Vec::new();
    while let Ok(Some(row)) = rows.next() {
        let is_whole = is_all || rows.position() < sample.len() as u64 || row.raw.ends_with(b"\n");
        if list.len() == most || row.flaw.is_some() || !(is_whole || list.is_empty()) {
            break;
        }
        let mut start = 0;
        let fields = row.ends.iter().map(|end| {
            let field = row.fields.get(start..*end).unwrap_or_default();
            start = *end;
            String::from_utf8_lossy(field).into_owned()
        });
        list.push(fields.collect());
    }
    list
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(text: &[u8], capacity: usize) -> Vec<(u64, u64, Vec<String>, Option<Flaw>)> {
        let mut rows = Rows::new(io::BufReader::with_capacity(capacity, text));
        rows.look(|_| true).unwrap();
        let mut list = Vec::new();
        while let Some(row) = rows.next().unwrap() {
            let mut start = 0;
            let fields = row.ends.iter().map(|end| {
                let field = String::from_utf8_lossy(&row.fields[start..*end]).into_owned();
                start = *end;
                field
            });
            list.push((row.line, row.start, fields.collect(), row.flaw));
        }
        assert_eq!(rows.position(), text.len() as u64);
        list
    }

    #[test]
    fn rows_are_numbered_and_placed_whatever_the_buffer() {
        let text = b"\xEF\xBB\xBFa,b\r\n\r\n\"x\ny\",\"q\"\"\"\n,\n\"\"\nlast";
        let row = |line, start, fields: &[&str]| {
            (line, start, fields.iter().map(|f| (*f).to_owned()).collect::<Vec<_>>(), None)
        };
        let expected = [
            row(1, 3, &["a", "b"]),
            row(3, 10, &["x\ny", "q\""]),
            row(5, 22, &["", ""]),
            row(6, 24, &[""]),
            row(7, 27, &["last"]),
        ];
        for capacity in [1, 2, 3, 7, 100] {
            assert_eq!(all(text, capacity), expected, "{capacity}");
        }
        assert_eq!(all(b"", 3), []);
        assert_eq!(all(b"\n\r\n", 3), []);
        // Only one mark is a mark.
        let twice = [MARK, MARK, b"a"].concat();
        assert_eq!(all(&twice, 64), [row(1, 3, &["\u{feff}a"])]);
    }

    #[test]
    fn a_quote_without_end_is_noticed() {
        let found = all(b"a,b\n\"x,y\nz,\n", 4);
        assert_eq!(found[1], (2, 4, vec![], Some(Flaw::Unclosed)));
        assert_eq!(all(b"\"", 4)[0].3, Some(Flaw::Unclosed));
        assert_eq!(all(b"\"a\"", 4)[0].3, None);
        assert_eq!(all(b"5\" x", 4)[0].2, ["5\" x"]);
    }

    #[test]
    fn long_rows_are_read_over() {
        let mut text = b"a\n\"".to_vec();
        text.resize(LONGEST_ROW + 10, b'x');
        text.extend(b"\"\nnext\n");
        text.extend(b",".repeat(MOST_FIELDS));
        text.extend(b"\nlast");
        let found = all(&text, 1 << 16);
        let flaws: Vec<_> = found.iter().map(|row| row.3).collect();
        let (long, many) = (Some(Flaw::TooLong), Some(Flaw::TooManyFields));
        assert_eq!(flaws, [None, long, None, many, None]);
        assert_eq!((found[2].0, found[4].2[0].as_str()), (3, "last"));
    }

    #[test]
    fn a_row_is_there_when_its_end_is() {
        for (bytes, expected) in [
            (&b"a,b\n"[..], true),
            (b"\na", false),
            (b"\"a\n", false),
            (b"\"a\nb\"\r\n", true),
            (b"a", false),
        ] {
            assert_eq!(has_whole_row(bytes), expected, "{bytes:?}");
        }
    }
}
