//! Reading fields one after the other, never beyond the end.

use super::{Finding, Rule, Span};

/// A position in a byte slice. Reading past the end gives a finding of the cursor's rule that names
/// the field, its place, and how much is missing.
#[derive(Clone, Debug)]
pub struct Cursor<'a> {
    bytes: &'a [u8],
    /// Where `bytes` starts in the file.
    base: u64,
    at: usize,
    rule: Rule,
    hint: &'static str,
}

/// What is usually the reason when bytes are missing.
const CUT_SHORT: &str =
    "the file may be cut short; compare its size with the source it was copied from";

impl<'a> Cursor<'a> {
    /// Reads `span` of a file; a span that leaves the file is cut at the file's end.
    pub fn new(file: &'a [u8], span: Span, rule: Rule) -> Self {
        let clamp = |v: u64| usize::try_from(v).unwrap_or(usize::MAX).min(file.len());
        let (start, end) = (clamp(span.start), clamp(span.end));
        Cursor {
            bytes: &file[start..end.max(start)],
            base: span.start,
            at: 0,
            rule,
            hint: CUT_SHORT,
        }
    }

    /// With another hint where bytes are missing.
    #[must_use]
    pub fn with_hint(self, hint: &'static str) -> Self {
        Cursor { hint, ..self }
    }

    /// The position in the file.
    pub fn position(&self) -> u64 {
        self.base + self.at as u64
    }

    /// Bytes up to the end.
    pub fn remaining(&self) -> usize {
        self.bytes.len() - self.at
    }

    /// The next `n` bytes.
    ///
    /// # Errors
    /// The cursor's rule, if there are fewer.
    pub fn take(&mut self, n: u64, field: &str) -> Result<&'a [u8], Box<Finding>> {
        match usize::try_from(n).ok().filter(|&n| n <= self.remaining()) {
            Some(n) => {
                let taken = &self.bytes[self.at..self.at + n];
                self.at += n;
                Ok(taken)
            }
            None => Err(self.short(n, field)),
        }
    }

    #[cold]
    fn short(&self, n: u64, field: &str) -> Box<Finding> {
        let start = self.position();
        Box::new(
            self.rule
                .at(start..start.saturating_add(n))
                .field(field)
                .expected(format!("{n} more bytes"))
                .found(format!("{} bytes", self.remaining()))
                .hint(self.hint),
        )
    }

    fn array<const N: usize>(&mut self, field: &str) -> Result<[u8; N], Box<Finding>> {
        let mut raw = [0; N];
        raw.copy_from_slice(self.take(N as u64, field)?);
        Ok(raw)
    }

    /// A number of 8 bits.
    ///
    /// # Errors
    /// The cursor's rule, if there are fewer.
    pub fn u8(&mut self, field: &str) -> Result<u8, Box<Finding>> {
        self.array::<1>(field).map(|[b]| b)
    }

    /// A number of 16 bits.
    ///
    /// # Errors
    /// The cursor's rule, if there are fewer.
    pub fn u16(&mut self, field: &str) -> Result<u16, Box<Finding>> {
        self.array(field).map(u16::from_le_bytes)
    }

    /// A number of 32 bits.
    ///
    /// # Errors
    /// The cursor's rule, if there are fewer.
    pub fn u32(&mut self, field: &str) -> Result<u32, Box<Finding>> {
        self.array(field).map(u32::from_le_bytes)
    }

    /// A number of 64 bits.
    ///
    /// # Errors
    /// The cursor's rule, if there are fewer.
    pub fn u64(&mut self, field: &str) -> Result<u64, Box<Finding>> {
        self.array(field).map(u64::from_le_bytes)
    }

    /// `n` numbers of 64 bits; collected only once their bytes are known to be there.
    ///
    /// # Errors
    /// The cursor's rule, if there are fewer.
    pub fn u64_list(&mut self, n: u32, field: &str) -> Result<Vec<u64>, Box<Finding>> {
        let raw = self.take(u64::from(n) * 8, field)?;
        let (words, _) = raw.as_chunks::<8>();
        Ok(words.iter().map(|w| u64::from_le_bytes(*w)).collect())
    }

    /// UTF-8 text of `n` bytes.
    ///
    /// # Errors
    /// The cursor's rule, if there are fewer; `rule`, if they are not UTF-8.
    pub fn text(&mut self, n: u64, field: &str, rule: Rule) -> Result<&'a str, Box<Finding>> {
        let start = self.position();
        let raw = self.take(n, field)?;
        std::str::from_utf8(raw).map_err(|e| {
            let bad = start + e.valid_up_to() as u64;
            Box::new(
                rule.at(bad..bad + 1)
                    .field(field)
                    .expected("UTF-8 text")
                    .found(format!("byte {:#04x}", raw[e.valid_up_to()])),
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::Severity;
    use super::*;

    const RULE: Rule = Rule { id: "T-01", severity: Severity::Error, title: "cut short" };

    #[test]
    fn reads_within_and_reports_beyond() {
        let file = [1, 0, 2, 0, 0, 0, 9];
        let mut c = Cursor::new(&file, 0..7, RULE);
        assert_eq!(c.u16("a").unwrap(), 1);
        assert_eq!(c.u32("b").unwrap(), 2);
        let f = c.u64("header.size").unwrap_err();
        assert_eq!((f.start, f.end, f.field.as_str()), (6, 14, "header.size"));
        assert_eq!(f.found, "1 bytes");
        assert!(c.take(u64::MAX, "x").is_err());
        assert_eq!(c.u8("c").unwrap(), 9);
        // A span outside the file is empty, not a panic.
        assert!(Cursor::new(&file, 100..200, RULE).u8("d").is_err());
    }
}
