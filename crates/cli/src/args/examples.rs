//! Every example of every help can be typed into any shell as it stands.

use std::process::Command;
use weighbridge_testkit::data::skip_on_this_machine;

/// The lines below `Examples:`, of all verbs.
fn examples() -> Vec<String> {
    fn of(command: &clap::Command, list: &mut Vec<String>) {
        let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        if let Some((_, examples)) = help.split_once("Examples:\n") {
            list.extend(examples.lines().map(|line| line.trim().to_owned()));
        }
        command.get_subcommands().for_each(|below| of(below, list));
    }
    let mut list = Vec::new();
    of(&super::command(), &mut list);
    list
}

/// A character outside of quotes that a shell would take for a pattern, a history or a name.
fn unquoted(line: &str) -> Option<char> {
    let (mut quote, mut before) = (None, ' ');
    for c in line.chars() {
        match quote {
            Some(open) if c == open => quote = None,
            Some(_) => {}
            None if c == '\'' || c == '"' => quote = Some(c),
            None if "[]*?{}()!#^$`\\".contains(c) => return Some(c),
            // zsh looks for a program of that name.
            None if c == '=' && before == ' ' => return Some(c),
            // In front of a path it is the home, elsewhere it may be a pattern.
            None if c == '~' && before != ' ' => return Some(c),
            None => {}
        }
        before = c;
    }
    quote
}

#[test]
fn examples_are_quoted() {
    assert_eq!(unquoted("a '*x*=q8' \"[b]\" k=v ~/c"), None);
    for (line, found) in
        [("jq .a[0]", '['), ("*.npy", '*'), ("a =b", '='), ("a~", '~'), ("a 'b", '\'')]
    {
        assert_eq!(unquoted(line), Some(found), "{line}");
    }
    let list = examples();
    assert!(list.len() > 50, "{}", list.len());
    for line in list {
        assert_eq!(unquoted(&line), None, "{line}");
    }
}

/// A line that is broken can't be copied.
#[test]
fn examples_fit_a_terminal() {
    for line in examples() {
        assert!(line.len() <= 78, "{line}");
    }
}

#[test]
fn zsh_understands_the_examples() {
    if Command::new("zsh").arg("--version").output().is_err() {
        return skip_on_this_machine("no zsh");
    }
    let checked = Command::new("zsh").args(["-f", "-n", "-c", &examples().join("\n")]).output();
    let checked = checked.expect("zsh starts");
    assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stderr));
}
