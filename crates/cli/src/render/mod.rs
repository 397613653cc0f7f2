//! Reports as text for people. Nothing from a file reaches the terminal unescaped.

mod declarations;
mod findings;
mod fit;
mod number;
mod table;
mod tensors;

pub(crate) use declarations::declarations;
pub(crate) use findings::{error, failure, usage, verdict};
pub(crate) use fit::{message_width, shortened, width, wrapped};
pub(crate) use number::{general, grouped, size};
pub(crate) use table::{Table, more, short};
pub(crate) use tensors::{bar, overview, region_map};

use anstyle::{AnsiColor, Style};
use weighbridge::source::is_hidden;

pub(crate) const BOLD: Style = Style::new().bold();
pub(crate) const DIM: Style = Style::new().dimmed();
pub(crate) const RED: Style = AnsiColor::Red.on_default().bold();
pub(crate) const YELLOW: Style = AnsiColor::Yellow.on_default().bold();
pub(crate) const GREEN: Style = AnsiColor::Green.on_default().bold();

/// A line on standard error. That it can't be written (`2>/dev/full`) is no reason to fail.
macro_rules! say {
    ($($text:tt)*) => {{
        use std::io::Write;
        let _ = writeln!(anstream::stderr().lock(), $($text)*);
    }};
}
pub(crate) use say;

/// Rows of a long table that are shown unless all are asked for.
pub(crate) const SHOWN: usize = 10;

/// Text in a style, where standard output is a terminal that wants it.
pub(crate) fn styled(style: Style, text: impl std::fmt::Display) -> String {
    static COLOURED: std::sync::OnceLock<bool> = std::sync::OnceLock::new();
    let coloured =
        || anstream::AutoStream::choice(&std::io::stdout()) != anstream::ColorChoice::Never;
    if *COLOURED.get_or_init(coloured) {
        format!("{style}{text}{style:#}")
    } else {
        text.to_string()
    }
}

/// Text in a style for [`say`], which takes it off where standard error does not want it.
pub(crate) fn marked(style: Style, text: impl std::fmt::Display) -> String {
    format!("{style}{text}{style:#}")
}

/// Text from a file, with everything that could move the cursor or hide text made visible.
pub(crate) fn safe(text: &str) -> String {
    // Nearly all text is plain.
    if text.bytes().all(|b| matches!(b, b' '..=b'~')) {
        return text.to_owned();
    }
    text.chars().fold(String::with_capacity(text.len()), |mut out, c| {
        if is_hidden(c) {
            out.extend(c.escape_unicode());
        } else {
            out.push(c);
        }
        out
    })
}

/// A JSON text that says the same, with the same characters made visible. Those of ASCII but for DEL
/// are escaped in every JSON text, and others stand in strings only.
pub(crate) fn safe_json(text: &str) -> String {
    let escaped = |c: char| c != '\n' && is_hidden(c);
    if !text.contains(escaped) {
        return text.to_owned();
    }
    text.chars().fold(String::with_capacity(text.len()), |mut out, c| {
        let mut units = [0; 2];
        match escaped(c) {
            true => c.encode_utf16(&mut units).iter().for_each(|u| out += &format!("\\u{u:04x}")),
            false => out.push(c),
        }
        out
    })
}

#[cfg(test)]
mod tests {
    use super::{safe, safe_json};

    #[test]
    fn json_says_the_same_without_control_characters() {
        let hostile: String =
            (0..=0x2fff).chain([0xfeff, 0xfffb, 0x1f600]).filter_map(char::from_u32).collect();
        let value = serde_json::json!({"key\u{9b}31m": [hostile, "a\u{202e}b\u{7f}\u{61c}"]});
        for text in [value.to_string(), serde_json::to_string_pretty(&value).unwrap()] {
            let shown = safe_json(&text);
            assert_eq!(serde_json::from_str::<serde_json::Value>(&shown).unwrap(), value);
            assert!(!shown.contains(|c| c != '\n' && safe(&String::from(c)) != String::from(c)));
            assert!(shown.contains("a\\u202eb\\u007f\\u061c") && shown.contains("key\\u009b31m"));
        }
        assert_eq!(safe("\u{61c}"), "\\u{61c}");
    }

    #[test]
    fn control_characters_do_not_reach_the_terminal() {
        assert_eq!(safe("a\u{1b}[31mb\u{202e}\n"), "a\\u{1b}[31mb\\u{202e}\\u{a}");
        assert_eq!(safe("東京 é"), "東京 é");
    }
}
