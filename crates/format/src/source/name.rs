//! The one place that decides whether a name from a file may become a path.

/// A name is a plain relative path: no root, no drive, no `..`, no empty parts, no backslashes and no
/// control characters. Names come from files and servers, so they are hostile.
pub fn is_plain_name(name: &str) -> bool {
    let is_refused = |c: char| c.is_control() || c == '\\';
    let has_drive = matches!(name.as_bytes(), [letter, b':', ..] if letter.is_ascii_alphabetic());
    !name.contains(is_refused)
        && !has_drive
        && name.split('/').all(|part| !matches!(part, "" | "." | ".."))
}

#[cfg(test)]
mod tests {
    use super::is_plain_name;

    #[test]
    fn names_that_lead_elsewhere_are_refused() {
        for name in ["a", "a/b.c", "..a", "a b", "é/東京", "ab:c"] {
            assert!(is_plain_name(name), "{name:?}");
        }
        let bad = [
            "",
            "/a",
            "a/",
            "a//b",
            "../a",
            "a/../b",
            "a/../../x",
            "./../x",
            ".",
            "a/.",
            "a\\b",
            "a\0b",
            "a\nb",
            "a\x7fb",
            "C:x",
            "c:/x",
        ];
        for name in bad {
            assert!(!is_plain_name(name), "{name:?}");
        }
    }
}
