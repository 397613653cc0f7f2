//! Reading fields one after the other, never beyond the end.

use super::{Rule, Span, Stop, to_len};
use crate::source::Source;

/// A position in a source. Reading past the end gives a finding of the cursor's rule that names the
/// field, its place, and how much is missing.
#[derive(Clone, Debug)]
pub struct Cursor<'a> {
    source: &'a Source,
    /// The bytes around the position: all of them where they are in memory. Those of a mapped file
    /// are copied, because they may change between two looks.
    window: Window<'a>,
    /// Where the window starts in the file.
    base: u64,
    /// The position, counted from there.
    at: usize,
    /// The end of what may be read, in the file.
    end: u64,
    rule: Rule,
    hint: &'static str,
}

#[derive(Clone, Debug)]
enum Window<'a> {
    Borrowed(&'a [u8]),
    Read(Vec<u8>),
}

impl Window<'_> {
    #[inline]
    fn bytes(&self) -> &[u8] {
        match self {
            Window::Borrowed(bytes) => bytes,
            Window::Read(bytes) => bytes,
        }
    }
}

/// Bytes that are read at a time where they are not in memory.
const WINDOW: u64 = 1 << 14;

/// The same of a mapped file, where a few cost little: often what is behind them is skipped.
const MAPPED_WINDOW: u64 = 1 << 8;

/// No word is longer: what goes on beyond is no text that ends.
const LONGEST_TEXT: u64 = 1 << 20;

/// What is usually the reason when bytes are missing.
const CUT_SHORT: &str =
    "the file may be cut short; compare its size with the source it was copied from";

impl<'a> Cursor<'a> {
    /// Reads `span` of a source; a span that leaves it is cut at its end.
    pub fn new(source: &'a Source, span: Span, rule: Rule) -> Self {
        let end = span.end.min(source.len());
        let base = span.start.min(end);
        let window = match source.resident().filter(|_| !source.is_mapped()) {
            Some(all) => Window::Borrowed(all.get(to_len(base)..to_len(end)).unwrap_or_default()),
            None => Window::Read(Vec::new()),
        };
        // A span outside the file is empty where it stands.
        let (base, end) = if base < span.start { (span.start, span.start) } else { (base, end) };
        Cursor { source, window, base, at: 0, end, rule, hint: CUT_SHORT }
    }

    /// With another hint where bytes are missing.
    #[must_use]
    pub fn with_hint(self, hint: &'static str) -> Self {
        Cursor { hint, ..self }
    }

    /// The position in the file.
    #[inline]
    pub fn position(&self) -> u64 {
        self.base + self.at as u64
    }

    /// Bytes up to the end.
    #[inline]
    pub fn remaining(&self) -> u64 {
        self.end - self.position()
    }

    /// The next `n` bytes.
    ///
    /// # Errors
    /// The cursor's rule, if there are fewer; a failure, if they can't be read.
    #[inline]
    pub fn take(&mut self, n: u64, field: &str) -> Result<&[u8], Stop> {
        let start = self.advance(n, field)?;
        Ok(&self.window.bytes()[start..self.at])
    }

    /// The next byte, which stays the next; none at the end.
    ///
    /// # Errors
    /// A failure, if it can't be read.
    pub fn peek(&mut self) -> Result<Option<u8>, Stop> {
        if self.remaining() == 0 {
            return Ok(None);
        }
        let byte = self.u8("")?;
        self.at -= 1;
        Ok(Some(byte))
    }

    /// Goes on behind the next `n` bytes without reading them.
    ///
    /// # Errors
    /// The cursor's rule, if there are fewer.
    pub fn skip(&mut self, n: u64, field: &str) -> Result<(), Stop> {
        if n > self.remaining() {
            return Err(self.short(n, field));
        }
        let within = usize::try_from(n).ok().filter(|n| *n <= self.window.bytes().len() - self.at);
        match within {
            Some(n) => self.at += n,
            None => {
                self.base = self.position() + n;
                (self.at, self.window) = (0, Window::Read(self.take_buffer()));
            }
        }
        Ok(())
    }

    /// The bytes up to one of this value, which is taken too; a mebibyte of them at most.
    ///
    /// # Errors
    /// The cursor's rule, if there is none; a failure, if they can't be read.
    pub fn take_until(&mut self, value: u8, field: &str) -> Result<&[u8], Stop> {
        let limit = self.remaining().min(LONGEST_TEXT + 1);
        let mut looked_at = 0;
        loop {
            let there = &self.window.bytes()[self.at..];
            let there = &there[..there.len().min(to_len(limit))];
            if let Some(i) = there[looked_at..].iter().position(|b| *b == value) {
                let start = self.at;
                self.at += looked_at + i + 1;
                return Ok(&self.window.bytes()[start..self.at - 1]);
            }
            looked_at = there.len();
            if looked_at as u64 >= limit {
                let start = self.position();
                let finding = self.rule.at(start..start + limit).field(field);
                let finding = finding.expected(format!("a byte {value:#04x} behind it"));
                return Err(finding.found(format!("none in {limit} bytes")).hint(self.hint).into());
            }
            // Twice as many each time, so that a long text is not read over and over.
            self.refill((2 * looked_at as u64).max(self.window_size()).min(limit))?;
        }
    }

    /// Puts the next `n` bytes into the window and steps behind them; says where they begin in it.
    #[inline]
    fn advance(&mut self, n: u64, field: &str) -> Result<usize, Stop> {
        let fits =
            |c: &Self| usize::try_from(n).ok().filter(|n| *n <= c.window.bytes().len() - c.at);
        let n = match fits(self) {
            Some(n) => n,
            None if n > self.remaining() => return Err(self.short(n, field)),
            None => {
                self.refill(n.max(self.window_size()).min(self.remaining()))?;
                fits(self).ok_or_else(|| self.short(n, field))?
            }
        };
        self.at += n;
        Ok(self.at - n)
    }

    /// Reads a window of `n` bytes from the position on.
    #[cold]
    fn refill(&mut self, n: u64) -> Result<(), Stop> {
        let start = self.position();
        (self.base, self.at) = (start, 0);
        let buffer = self.take_buffer();
        self.window = Window::Read(self.source.copy(start..start + n, buffer)?);
        Ok(())
    }

    fn window_size(&self) -> u64 {
        if self.source.is_mapped() { MAPPED_WINDOW } else { WINDOW }
    }

    /// The window's memory for another one; until then it has none of the bytes.
    fn take_buffer(&mut self) -> Vec<u8> {
        match std::mem::replace(&mut self.window, Window::Read(Vec::new())) {
            Window::Read(mut buffer) => {
                buffer.clear();
                buffer
            }
            Window::Borrowed(_) => Vec::new(),
        }
    }

    #[cold]
    fn short(&self, n: u64, field: &str) -> Stop {
        let start = self.position();
        self.rule
            .at(start..start.saturating_add(n))
            .field(field)
            .expected(format!("{n} more bytes"))
            .found(format!("{} bytes", self.remaining()))
            .hint(self.hint)
            .into()
    }

    #[inline]
    fn array<const N: usize>(&mut self, field: &str) -> Result<[u8; N], Stop> {
        let mut raw = [0; N];
        raw.copy_from_slice(self.take(N as u64, field)?);
        Ok(raw)
    }

    /// A number of 8 bits.
    ///
    /// # Errors
    /// Those of [`Cursor::take`].
    pub fn u8(&mut self, field: &str) -> Result<u8, Stop> {
        self.array::<1>(field).map(|[b]| b)
    }

    /// A number of 16 bits.
    ///
    /// # Errors
    /// Those of [`Cursor::take`].
    pub fn u16(&mut self, field: &str) -> Result<u16, Stop> {
        self.array(field).map(u16::from_le_bytes)
    }

    /// A number of 32 bits.
    ///
    /// # Errors
    /// Those of [`Cursor::take`].
    pub fn u32(&mut self, field: &str) -> Result<u32, Stop> {
        self.array(field).map(u32::from_le_bytes)
    }

    /// A number of 64 bits.
    ///
    /// # Errors
    /// Those of [`Cursor::take`].
    pub fn u64(&mut self, field: &str) -> Result<u64, Stop> {
        self.array(field).map(u64::from_le_bytes)
    }

    /// `n` numbers of 64 bits; collected only once their bytes are known to be there.
    ///
    /// # Errors
    /// Those of [`Cursor::take`].
    pub fn u64_list(&mut self, n: u32, field: &str) -> Result<Vec<u64>, Stop> {
        let raw = self.take(u64::from(n) * 8, field)?;
        let (words, _) = raw.as_chunks::<8>();
        Ok(words.iter().map(|w| u64::from_le_bytes(*w)).collect())
    }

    /// UTF-8 text of `n` bytes.
    ///
    /// # Errors
    /// Those of [`Cursor::take`]; `rule`, if the bytes are not UTF-8.
    pub fn text(&mut self, n: u64, field: &str, rule: Rule) -> Result<String, Stop> {
        let start = self.position();
        String::from_utf8(self.take(n, field)?.to_vec()).map_err(|e| {
            let good = e.utf8_error().valid_up_to();
            let (bad, byte) = (start + good as u64, e.as_bytes().get(good).copied());
            rule.at(bad..bad + 1)
                .field(field)
                .expected("UTF-8 text")
                .found(format!("byte {:#04x}", byte.unwrap_or_default()))
                .into()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::Severity;
    use super::*;
    use crate::source::ReadRange;

    const RULE: Rule = Rule { id: "T-01", severity: Severity::Error, title: "cut short" };

    /// Hands out so many bytes at most.
    #[derive(Debug)]
    struct Pieces(Vec<u8>, usize);

    impl ReadRange for Pieces {
        fn len(&self) -> u64 {
            self.0.len() as u64
        }

        fn read_at(&self, offset: u64, out: &mut [u8]) -> std::io::Result<usize> {
            let rest = &self.0[to_len(offset)..];
            let n = out.len().min(rest.len()).min(self.1);
            out[..n].copy_from_slice(&rest[..n]);
            Ok(n)
        }
    }

    fn sources(bytes: &[u8]) -> [Source; 3] {
        let pieces = |n| Source::from_ranges("pieces", Pieces(bytes.to_vec(), n));
        [Source::from_vec(bytes.to_vec()), pieces(1), pieces(1000)]
    }

    #[test]
    fn reads_within_and_reports_beyond() {
        for source in sources(&[1, 0, 2, 0, 0, 0, 9]) {
            let mut c = Cursor::new(&source, 0..7, RULE);
            assert_eq!(c.u16("a").unwrap(), 1);
            assert_eq!(c.u32("b").unwrap(), 2);
            let Err(Stop::Broken(f)) = c.u64("header.size") else { panic!("there is no more") };
            assert_eq!((f.start, f.end, f.field.as_str()), (6, 14, "header.size"));
            assert_eq!(f.found, "1 bytes");
            assert!(c.take(u64::MAX, "x").is_err());
            assert!(c.skip(u64::MAX, "x").is_err());
            assert_eq!(c.u8("c").unwrap(), 9);
            assert_eq!(c.remaining(), 0);
            // A span outside the file is empty, not a panic.
            assert!(Cursor::new(&source, 100..200, RULE).u8("d").is_err());
        }
    }

    #[test]
    fn what_is_skipped_is_not_read() {
        let bytes: Vec<u8> = (0..200_000).map(|i| (i % 251 + 1) as u8).chain([0, 7]).collect();
        for source in sources(&bytes) {
            let mut c = Cursor::new(&source, 0..bytes.len() as u64, RULE);
            assert_eq!(c.take(3, "x").unwrap(), &bytes[..3]);
            c.skip(50_000, "x").unwrap();
            assert_eq!((c.position(), c.u8("x").unwrap()), (50_003, bytes[50_003]));
            assert_eq!(c.take(40_000, "x").unwrap(), &bytes[50_004..90_004]);
            // A text that is longer than a window.
            assert_eq!(c.take_until(0, "x").unwrap(), &bytes[90_004..200_000]);
            assert_eq!(c.u8("x").unwrap(), 7);
            assert!(c.take_until(0, "x").is_err());
        }
        // The window ends in a text, and little is left behind it.
        for source in sources(&vec![1; 20_000]) {
            let mut c = Cursor::new(&source, 0..20_000, RULE);
            c.take(9_999, "x").unwrap();
            assert!(c.take_until(0, "x").is_err());
            assert_eq!(c.position(), 9_999);
        }
        // A text without an end is not collected.
        for source in sources(&vec![1; (2 << 20) + 5]) {
            assert!(Cursor::new(&source, 0..source.len(), RULE).take_until(0, "x").is_err());
        }
    }
}
