//! Lists that are kept beside the tests, so that they can't shrink without anybody noticing.

use std::collections::BTreeSet;
use std::path::Path;

/// Compares lines with those of `tests/snapshots/NAME.txt` in a crate's folder. The order counts.
/// With `WEIGHBRIDGE_UPDATE=1` the file is written instead, for a change that is meant.
///
/// # Panics
/// Where they differ.
pub fn assert_snapshot<T: ToString>(
    crate_folder: &str,
    name: &str,
    lines: impl IntoIterator<Item = T>,
) {
    let found: String = lines.into_iter().map(|line| line.to_string() + "\n").collect();
    let file = Path::new(crate_folder).join("tests/snapshots").join(name).with_extension("txt");
    if std::env::var_os("WEIGHBRIDGE_UPDATE").is_some_and(|value| value == "1") {
        std::fs::create_dir_all(file.parent().expect("a file in a folder")).unwrap();
        return std::fs::write(&file, found).unwrap();
    }
    let expected = std::fs::read_to_string(&file).unwrap_or_default();
    if let Some(difference) = difference(&expected, &found) {
        panic!(
            "{} lists something else (- there, + found now):\n{difference}\
             If that is meant, WEIGHBRIDGE_UPDATE=1 writes the file anew.",
            file.display()
        );
    }
}

/// The lines that only one side has.
fn difference(expected: &str, found: &str) -> Option<String> {
    if expected == found {
        return None;
    }
    let lines = |text: &'_ str| text.lines().map(str::to_owned).collect::<BTreeSet<_>>();
    let (there, now) = (lines(expected), lines(found));
    let gone = there.difference(&now).map(|line| format!("- {line}\n"));
    let new = now.difference(&there).map(|line| format!("+ {line}\n"));
    let all: String = gone.chain(new).collect();
    Some(if all.is_empty() {
        "the same lines, in another order or number\n".to_owned()
    } else {
        all
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_gone_and_what_is_new_is_named() {
        assert_eq!(difference("a\nb\n", "a\nb\n"), None);
        assert_eq!(difference("a\nb\n", "a\nc\n").unwrap(), "- b\n+ c\n");
        assert!(difference("a\nb\n", "b\na\n").unwrap().contains("another order"));
        assert!(difference("a\na\n", "a\n").is_some());
    }

    #[test]
    #[should_panic(expected = "+ something")]
    fn a_file_that_is_not_there_lists_nothing() {
        assert_snapshot("/no such folder", "nothing", ["something"]);
    }
}
