//! Which character stands between the fields of a table.

use super::rows::{SAMPLE, rows_of};

/// What is looked for, in this order.
const USUAL: [u8; 4] = [b',', b';', b'\t', b'|'];

/// Rows that are looked at.
const ROWS: usize = 16;

/// The delimiter that a text names: one ASCII character, or `tab`.
///
/// ```
/// assert_eq!(weighbridge::table::parse_delimiter(";"), Some(b';'));
/// assert_eq!(weighbridge::table::parse_delimiter("tab"), Some(b'\t'));
/// assert_eq!(weighbridge::table::parse_delimiter("\""), None);
/// ```
pub fn parse_delimiter(text: &str) -> Option<u8> {
    match text.as_bytes() {
        b"tab" | b"\\t" => Some(b'\t'),
        [byte] if byte.is_ascii() && !b"\"\r\n\0".contains(byte) => Some(*byte),
        _ => None,
    }
}

/// The delimiter that the names of columns stand between, if there is only one such. The first line is
/// enough to tell, so that nobody waits for more of a stream.
pub(super) fn by_names(sample: &[u8], is_all: bool, wanted: &[&str]) -> Option<u8> {
    let fits = |delimiter: &u8| {
        let rows = rows_of(sample, is_all, *delimiter, 1);
        let is_there = |name: &&str| rows.first().is_some_and(|row| row.iter().any(|c| c == name));
        !wanted.is_empty() && wanted.iter().all(is_there)
    };
    let mut fitting = USUAL.into_iter().filter(fits);
    let first = fitting.next()?;
    // Of a table with one column every delimiter is right; only its rows tell what is none.
    fitting.next().is_none().then_some(first)
}

/// The delimiter that cuts the most rows into as many fields as the first one. If none cuts the first
/// row, there is one column, and the delimiter is one that does not stand in it.
pub(super) fn by_rows(sample: &[u8], is_all: bool) -> u8 {
    let mut best = (b',', (0, 0));
    for delimiter in USUAL {
        let rows = rows_of(sample, is_all, delimiter, ROWS);
        let columns = rows.first().map_or(0, Vec::len);
        let alike = rows.iter().filter(|row| row.len() == columns).count();
        if columns > 1 && (alike, columns) > best.1 {
            best = (delimiter, (alike, columns));
        }
    }
    let is_alone =
        |delimiter: &u8| rows_of(sample, is_all, *delimiter, ROWS).iter().all(|row| row.len() == 1);
    match best {
        (_, (0, _)) => USUAL.into_iter().find(is_alone).unwrap_or(b','),
        (delimiter, _) => delimiter,
    }
}

/// Whether a sample has as many lines as [`by_rows`] looks at.
pub(super) fn is_enough(sample: &[u8]) -> bool {
    sample.len() >= SAMPLE || sample.iter().filter(|b| **b == b'\n').count() > ROWS
}

/// The delimiter that the ending of a name tells, and none where it tells only that this is a table.
pub(super) fn by_extension(extension: &str) -> Option<Option<u8>> {
    match extension.to_ascii_lowercase().as_str() {
        "csv" => Some(None),
        "tsv" | "tab" => Some(Some(b'\t')),
        "psv" => Some(Some(b'|')),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_tell_the_delimiter() {
        for (text, expected) in [
            ("id,text\n1,a\n", b','),
            ("id;text\n1;a, b\n2;c, d, e\n", b';'),
            ("id\ttext\n1\ta, b; c\n", b'\t'),
            ("id|text\n1|a\n", b'|'),
            ("1;Hello, world, again\n2;Bye\n", b';'),
            ("id;\"name, full\"\n1;x\n", b';'),
            ("a,b,c\n1,2\n3,4,5\n", b','),
            // A line break within quotes is none.
            ("a;b\n\"x\ny, z\";2\n", b';'),
            // One column, with commas in it that nobody put into quotes.
            ("text\nHello, world\nBye\n", b';'),
            ("text\n\"Hello, world\"\n", b','),
            ("text\n", b','),
            ("", b','),
        ] {
            assert_eq!(by_rows(text.as_bytes(), true) as char, expected as char, "{text:?}");
        }
        // The last row may be cut off.
        assert_eq!(by_rows(b"a;b;c\n1;2;3\n4;5, 6, 7, 8", false), b';');
    }

    #[test]
    fn names_of_columns_tell_it_from_the_first_line() {
        for (text, wanted, expected) in [
            (&b"id;text, long;n\n"[..], &["text, long"][..], Some(b';')),
            (b"id,text\n", &["text", "id"], Some(b',')),
            (b"id|text", &["text"], Some(b'|')),
            (b"text\n", &["text"], None),
            (b"id,text\n", &["body"], None),
            (b"id,text\n", &[], None),
            (b"", &["text"], None),
        ] {
            assert_eq!(by_names(text, true, wanted), expected, "{text:?}");
        }
    }
}
