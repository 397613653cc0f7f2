//! Text that fits the terminal. What is not shown on a terminal is as wide as it is, for scripts.

use std::borrow::Cow;
use std::io::IsTerminal;
use std::sync::OnceLock;
use terminal_size::{Width, terminal_size};
use unicode_width::UnicodeWidthStr;

/// Fewer columns than this are taken for this many.
const LEAST: usize = 40;

/// The columns that output has: those of the terminal, or of the variable `COLUMNS`, which is for
/// whoever wants others. None where it is not a terminal.
pub(crate) fn width() -> Option<usize> {
    static WIDTH: OnceLock<Option<usize>> = OnceLock::new();
    *WIDTH.get_or_init(|| columns(std::io::stdout().is_terminal()))
}

/// The same for messages on standard error.
pub(crate) fn message_width() -> Option<usize> {
    static WIDTH: OnceLock<Option<usize>> = OnceLock::new();
    *WIDTH.get_or_init(|| columns(std::io::stderr().is_terminal()))
}

fn columns(is_terminal: bool) -> Option<usize> {
    let asked = std::env::var("COLUMNS").ok().and_then(|text| text.trim().parse().ok());
    let found = || terminal_size().map(|(Width(width), _)| usize::from(width));
    asked.or_else(|| is_terminal.then(found).flatten()).map(|width| width.max(LEAST))
}

/// The columns that a text takes, colours aside; most text is ASCII, where bytes are columns.
pub(crate) fn columns_of(text: &str) -> usize {
    match text.bytes().all(|b| matches!(b, b' '..=b'~')) {
        true => text.len(),
        false => anstream::adapter::strip_str(text).map(UnicodeWidthStr::width).sum(),
    }
}

/// A name in at most so many columns: what is too much is left out of its middle, because the ends
/// tell names apart.
pub(crate) fn shortened(text: &str, most: usize) -> Cow<'_, str> {
    if columns_of(text) <= most {
        return text.into();
    }
    let room = most.saturating_sub(1);
    let first = up_to(text.chars(), room / 2);
    let last: Vec<char> = up_to(text.chars().rev(), room - room / 2);
    first.iter().chain(&['…']).chain(last.iter().rev()).collect::<String>().into()
}

/// As many characters as so many columns have room for.
fn up_to(chars: impl Iterator<Item = char>, columns: usize) -> Vec<char> {
    let mut taken = 0;
    let fits = |c: &char| {
        taken += UnicodeWidthStr::width(c.encode_utf8(&mut [0; 4]) as &str);
        taken <= columns
    };
    chars.take_while(fits).collect()
}

/// Lines that are too long are broken between words; what follows stands a little further right. A
/// word that is longer than a line is left to the terminal, so that it can be copied.
pub(crate) fn wrapped(text: &str, width: Option<usize>) -> Cow<'_, str> {
    let Some(width) = width.filter(|width| text.lines().any(|l| columns_of(l) > *width)) else {
        return text.into();
    };
    let mut out = String::with_capacity(text.len() + text.len() / 16);
    for line in text.split_inclusive('\n') {
        let indent = line.len() - line.trim_start_matches(' ').len();
        let rest = " ".repeat((indent + 4).min(width / 2));
        let mut at = 0;
        for word in line.split_inclusive(' ') {
            let columns = columns_of(word.trim_end());
            if at > rest.len() && at > indent && at + columns > width {
                out.truncate(out.trim_end_matches(' ').len());
                out.push('\n');
                out.push_str(&rest);
                at = rest.len();
            }
            out.push_str(word);
            at += columns_of(word.trim_end_matches('\n'));
        }
    }
    out.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lose_their_middle() {
        assert_eq!(shortened("encoder.layer.0.weight", 22), "encoder.layer.0.weight");
        assert_eq!(shortened("encoder.layer.0.weight", 11), "encod…eight");
        assert_eq!(shortened("東京東京東京", 7), "東…京");
        assert_eq!(columns_of("\u{1b}[1m東京\u{1b}[0m"), 4);
    }

    #[test]
    fn long_lines_are_broken_between_words() {
        let text = "short\n  one two three four\n";
        assert_eq!(wrapped(text, None), text);
        assert_eq!(wrapped(text, Some(20)), text);
        assert_eq!(wrapped(text, Some(14)), "short\n  one two\n      three\n      four\n");
        assert_eq!(wrapped("  a unbreakable-word b", Some(10)), "  a unbreakable-word\n     b");
    }
}
