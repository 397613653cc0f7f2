//! The one place that decides whether a name from a file may become a path.

use std::collections::HashMap;

/// Dot names that a model directory has. All others are for tools and systems to act on.
const DOT_NAMES: [&str; 2] = [".gitattributes", ".gitignore"];

/// What systems allow, and more than models need.
const MOST_BYTES: usize = 1024;
const MOST_PART: usize = 255;
const MOST_PARTS: usize = 16;

/// A name is a plain relative path: no root, no drive, no `..`, no empty parts, no backslashes and no
/// control characters. Names come from files and servers, so they are hostile.
pub fn stays_inside(name: &str) -> bool {
    let is_refused = |c: char| c.is_control() || c == '\\';
    let has_drive = matches!(name.as_bytes(), [letter, b':', ..] if letter.is_ascii_alphabetic());
    !name.contains(is_refused)
        && !has_drive
        && name.split('/').all(|part| !matches!(part, "" | "." | ".."))
}

/// A name that may become a path on every system: [`name_problem`] has nothing against it.
pub fn is_plain_name(name: &str) -> bool {
    name_problem(name).is_none()
}

/// Why a name from a file may not become a path. It could lead out of the folder; be read by a tool
/// that runs what it finds there, such as `.git/config`; be a device or another file's stream on
/// Windows; or look like another name.
pub fn name_problem(name: &str) -> Option<&'static str> {
    if !stays_inside(name) {
        return Some("its name leads out of the folder, or has a control character");
    }
    if name.len() > MOST_BYTES || name.split('/').count() > MOST_PARTS {
        return Some("its name is longer than systems allow, or leads through too many folders");
    }
    if name.rsplit('/').skip(1).any(|part| part.starts_with('.')) {
        return Some("it is in a folder whose name begins with a dot");
    }
    name.split('/').find_map(part_problem)
}

/// The same of one part of a path.
fn part_problem(part: &str) -> Option<&'static str> {
    if part.contains(is_invisible) {
        Some("its name has a character that can't be seen")
    } else if part.starts_with('.') && !DOT_NAMES.contains(&part) {
        Some("its name begins with a dot, as names do that tools act on")
    } else if is_short_for_git(part) {
        Some("its name stands for .git on Windows")
    } else if part.len() > MOST_PART {
        Some("a part of its name is longer than systems allow")
    } else if part.contains(['*', '?', '"', '<', '>', '|']) {
        Some("its name has a character that Windows has no file names with")
    } else if part.contains(':') {
        Some("its name has a colon, which names a stream of another file on Windows")
    } else if part.ends_with(['.', ' ']) {
        Some("its name ends with a dot or a space, which Windows leaves out")
    } else if is_device(part) {
        Some("its name is that of a device on Windows")
    } else {
        None
    }
}

/// Whether a character moves the cursor, turns the direction of writing round or leaves no mark: text
/// with it may look like other text.
pub fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}')
        || matches!(c, '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}')
}

/// Hidden, or joining its neighbours, which some scripts need in words. Names do without, and file
/// systems that leave them out would take `.g\u{200c}it` for `.git`.
fn is_invisible(c: char) -> bool {
    is_hidden(c)
        || matches!(c, '\u{ad}' | '\u{34f}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}')
        || matches!(c, '\u{180b}'..='\u{180f}' | '\u{200c}' | '\u{200d}' | '\u{2800}' | '\u{3164}')
        || matches!(c, '\u{fe00}'..='\u{fe0f}' | '\u{ffa0}' | '\u{e0000}'..='\u{e0fff}')
}

/// What Windows may call `.git` in names of eight letters: `GIT~1`, or `GI`, a hash and a number.
fn is_short_for_git(part: &str) -> bool {
    let part = part.to_ascii_lowercase();
    let (stem, number) = part.split_once('~').unwrap_or((&part, ""));
    let number = number.trim_end_matches(['.', ' ']);
    let is_number = !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit());
    is_number && (stem == "git" || (stem.len() == 6 && stem.starts_with("gi")))
}

/// Names that Windows opens a device by, whatever the extension.
fn is_device(part: &str) -> bool {
    let stem = part.split('.').next().unwrap_or_default().trim_end().to_ascii_uppercase();
    let is_port = |name: &str| {
        let mut number = stem.strip_prefix(name).unwrap_or_default().chars();
        let first = number.next().is_some_and(|c| c.is_ascii_digit() || "¹²³".contains(c));
        first && number.next().is_none()
    };
    ["CON", "PRN", "AUX", "NUL", "CONIN$", "CONOUT$", "CLOCK$"].contains(&stem.as_str())
        || is_port("COM")
        || is_port("LPT")
}

/// The names that can't be files of one folder with those before them: the same but for upper and
/// lower case, or a file where another's folder is. Each is given by its place, with what it clashes
/// with. Composed and decomposed letters are not compared.
pub fn clashing_names<'a>(names: impl IntoIterator<Item = &'a str>) -> Vec<(usize, &'a str)> {
    let mut files: HashMap<String, &str> = HashMap::new();
    let mut folders: HashMap<String, &str> = HashMap::new();
    let mut clashes = Vec::new();
    for (place, name) in names.into_iter().enumerate() {
        let folded = folded(name);
        let parents = || folded.match_indices('/').map(|(at, _)| &folded[..at]);
        let other = files.get(&folded).or_else(|| folders.get(&folded));
        match other.or_else(|| parents().find_map(|parent| files.get(parent))) {
            Some(other) => clashes.push((place, *other)),
            None => {
                folders.extend(parents().map(|parent| (parent.to_owned(), name)));
                files.insert(folded, name);
            }
        }
    }
    clashes
}

/// A name as file systems compare it that take upper and lower case for the same.
pub(crate) fn folded(name: &str) -> String {
    let once = |name: &str| -> String {
        name.chars().flat_map(char::to_uppercase).flat_map(char::to_lowercase).collect()
    };
    // `ẞ` becomes `ß`, and that `ss`.
    once(&once(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_models_are_plain() {
        for name in [
            "a",
            "a/b.c",
            "a b",
            "é/東京",
            "1_Pooling/config.json",
            "model-00001-of-00002.safetensors",
            ".gitattributes",
            "onnx/.gitignore",
            "git",
            "digit~1",
            "gizmo~1",
            "console.json",
            "com.txt",
            "com10",
            "nullable",
            "~",
        ] {
            assert_eq!(name_problem(name), None, "{name:?}");
        }
    }

    #[test]
    fn names_that_not_every_system_has_are_refused() {
        let long = "a".repeat(256);
        let deep = ["d"; 17].join("/");
        let longer = vec!["a".repeat(200); 6].join("/");
        for name in [
            long.as_str(),
            &deep,
            &longer,
            "a*b",
            "a?b",
            "a|b",
            "a<b",
            "a\"b",
            "CLOCK$",
            ".gitattributes/x",
            "a/.gitignore/b",
            "a\u{3164}b",
            "a\u{fe0f}",
            "\u{2800}",
            "a\u{e0101}b",
        ] {
            assert!(!is_plain_name(name), "{name:?}");
        }
        assert_eq!(clashing_names(["STRAẞE", "strasse"]).len(), 1);
    }

    #[test]
    fn names_that_lead_elsewhere_are_refused() {
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
            "a\u{85}b",
            "C:x",
            "c:/x",
        ];
        for name in bad {
            assert!(!stays_inside(name) && !is_plain_name(name), "{name:?}");
        }
    }

    #[test]
    fn names_that_tools_and_systems_act_on_are_refused() {
        for name in [
            ".git/config",
            ".GIT/config",
            "a/.Git/hooks/post-checkout",
            ".git",
            ".git.",
            ".git /config",
            ".git::$INDEX_ALLOCATION/config",
            "git~1/config",
            "GIT~1",
            "a/git~2 ",
            "GI7EBA~1",
            ".g\u{200c}it/config",
            "g\u{200d}it",
            ".cache/x",
            ".bashrc",
            "..a",
            "...",
            ".GitAttributes",
            ".gitattributes ",
            ".gitmodules",
            "CON",
            "a/nul.txt",
            "Aux.tar.gz",
            "com1",
            "COM¹.txt",
            "lpt9",
            "prn .txt",
            "conout$",
            "config.json.",
            "config.json ",
            "a /b",
            "config.json:stream",
            "ab:c",
            "a\u{202e}b",
            "a\u{2066}b",
            "a\u{61c}b",
            "a\u{200b}b",
            "a\u{feff}b",
            "a\u{ad}b",
        ] {
            assert!(name_problem(name).is_some(), "{name:?}");
        }
    }

    #[test]
    fn names_that_are_one_file_or_file_and_folder_clash() {
        let clashes = |names: &[&str]| clashing_names(names.iter().copied()).len();
        assert_eq!(clashes(&["config.json", "a/config.json", "a/b", "ab", "a.b"]), 0);
        for pair in [
            ["config.json", "config.json"],
            ["config.json", "Config.json"],
            ["É.txt", "é.txt"],
            ["straße", "STRASSE"],
            ["ΣΑΣ", "σας"],
            ["\u{212a}", "k"],
            ["A/x", "a/X"],
            ["a", "a/b"],
            ["a/b/c", "A"],
            ["x/Y/z", "x/y"],
        ] {
            assert_eq!(clashes(&pair), 1, "{pair:?}");
            assert_eq!(clashes(&[pair[1], pair[0]]), 1, "{pair:?}");
        }
        assert_eq!(clashing_names(["a", "b", "A/c"]), [(2, "a")]);
    }
}
