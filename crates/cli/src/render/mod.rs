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

pub(crate) const BOLD: Style = Style::new().bold();
pub(crate) const DIM: Style = Style::new().dimmed();
pub(crate) const RED: Style = AnsiColor::Red.on_default().bold();
pub(crate) const YELLOW: Style = AnsiColor::Yellow.on_default().bold();
pub(crate) const GREEN: Style = AnsiColor::Green.on_default().bold();

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

/// Text from a file, with everything that could move the cursor or hide text made visible.
pub(crate) fn safe(text: &str) -> String {
    let hidden = |c: char| {
        c.is_control()
            || matches!(c, '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
    };
    // Nearly all text is plain.
    if text.bytes().all(|b| matches!(b, b' '..=b'~')) {
        return text.to_owned();
    }
    text.chars().fold(String::with_capacity(text.len()), |mut out, c| {
        if hidden(c) {
            out.extend(c.escape_unicode());
        } else {
            out.push(c);
        }
        out
    })
}

#[cfg(test)]
mod tests {
    use super::safe;

    #[test]
    fn control_characters_do_not_reach_the_terminal() {
        assert_eq!(safe("a\u{1b}[31mb\u{202e}\n"), "a\\u{1b}[31mb\\u{202e}\\u{a}");
        assert_eq!(safe("東京 é"), "東京 é");
    }
}
