//! The header, and how such a file is told from others.

use super::super::wordlist::numbers_at_end;
use crate::wire::without_mark;

/// The first line: how many rows of how many values follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) struct Header {
    pub rows: u64,
    pub dim: u64,
    /// Bytes of the line with its end.
    pub length: usize,
}

/// Two numbers of twenty digits, a space, and a Windows line break; anything longer is no header.
const LONGEST: usize = 64;

impl Header {
    /// Of a text, which may begin with a byte order mark.
    pub(in super::super) fn parse_text(bytes: &[u8]) -> Option<Header> {
        let text = without_mark(bytes);
        let header = Header::parse(text)?;
        Some(Header { length: header.length + bytes.len() - text.len(), ..header })
    }

    pub(in super::super) fn parse(bytes: &[u8]) -> Option<Header> {
        let end = bytes.iter().take(LONGEST).position(|b| *b == b'\n')?;
        let line = std::str::from_utf8(&bytes[..end]).ok()?;
        let mut fields = line.split([' ', '\t', '\r']).filter(|field| !field.is_empty());
        let (rows, dim) = (digits(fields.next()?)?, digits(fields.next()?)?);
        fields.next().is_none().then_some(Header { rows, dim, length: end + 1 })
    }
}

/// Digits only: `parse` would take a sign as well.
fn digits(field: &str) -> Option<u64> {
    field.bytes().all(|b| b.is_ascii_digit()).then(|| field.parse().ok()).flatten()
}

/// Bytes that are looked at to tell text from values.
const LOOK: usize = 1 << 16;

/// The line behind a header ends with numbers in digits. Of a line that goes on beyond what is
/// looked at, its last field may be cut and is not asked.
pub(in super::super) fn is_text(bytes: &[u8], header: Header) -> bool {
    let body = &bytes[header.length..bytes.len().min(header.length + LOOK)];
    let line = body.split(|b| *b == b'\n').next().unwrap_or_default();
    let found = if line.len() == LOOK {
        let at = line.iter().rposition(|b| matches!(b, b' ' | b'\t')).unwrap_or(0);
        numbers_at_end(&line[..at])
    } else {
        numbers_at_end(line)
    };
    found as u64 >= header.dim.clamp(1, 4)
}

/// A header, rows that can be as many as it says, and a first row that is no text.
pub(super) fn looks_like(head: &[u8], size: u64) -> bool {
    let Some(header) = Header::parse(head) else { return false };
    let room = size - header.length as u64;
    let row = header.dim.checked_mul(4).and_then(|n| n.checked_add(1));
    let all = row.and_then(|row| row.checked_mul(header.rows));
    let fits = header.rows > 0 && header.dim > 0 && all.is_some_and(|all| all <= room);
    fits && !is_text(head, header) && {
        let word = &head[header.length..head.len().min(header.length + LOOK)];
        word.iter().position(|b| *b == b' ').is_some_and(|n| n as u64 + 4 * header.dim < room)
            || room > LOOK as u64
    }
}
