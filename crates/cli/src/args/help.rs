//! Help that is as wide as the terminal.

use clap::Command;

/// Makes a line of each paragraph in the texts below the options, so that they are broken where the
/// terminal ends; they are broken once already in the source.
pub(super) fn unbroken(command: Command) -> Command {
    command.mut_subcommands(|verb| match verb.get_after_help() {
        Some(text) => {
            let text = joined(&text.ansi().to_string());
            verb.after_help(text)
        }
        None => verb,
    })
}

/// Lines that are not indented go on with the next one, if that is not indented either. One that ends
/// in a full stop is the end of a thought.
fn joined(text: &str) -> String {
    let is_prose = |line: &str| !line.is_empty() && !line.starts_with(' ');
    let mut out = String::with_capacity(text.len());
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        out.push_str(line);
        let goes_on = is_prose(line) && !line.ends_with(['.', ':']);
        match lines.peek() {
            Some(next) if goes_on && is_prose(next) => out.push(' '),
            Some(_) => out.push('\n'),
            None => {}
        }
    }
    out
}

#[cfg(test)]
mod tests {
    #[test]
    fn paragraphs_become_lines() {
        let text = "One thing is\nsaid here.\nAnother\n\nExamples:\n  first one\n  second";
        let expected = "One thing is said here.\nAnother\n\nExamples:\n  first one\n  second";
        assert_eq!(super::joined(text), expected);
    }
}
