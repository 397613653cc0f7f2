//! The verbs in the help, by what they are for.

use clap::Command;

/// Every verb once; `help` is clap's own.
pub(super) const GROUPS: [(&str, &[&str]); 6] = [
    ("Files", &["inspect", "verify", "convert", "quantize", "new", "diff", "metadata", "formats"]),
    ("Words", &["lookup", "similar", "analogy", "evaluate", "select"]),
    ("Texts", &["embed", "merge", "compare", "rerank", "tokenize"]),
    ("Rows", &["search", "neighbours", "recall"]),
    ("Models", &["pull", "models", "distill"]),
    ("The program", &["quickstart", "completions", "man", "help"]),
];

/// The command with a help that lists its verbs in groups, which clap can't do by itself.
pub(super) fn grouped(command: Command) -> Command {
    let header = *command.get_styles().get_header();
    let literal = *command.get_styles().get_literal();
    let mut list = String::new();
    for (title, verbs) in GROUPS {
        list.push_str(&format!("\n{header}{title}:{header:#}\n"));
        for verb in verbs {
            let found = command.find_subcommand(verb).and_then(Command::get_about);
            let about = found.map_or(HELP.to_owned(), ToString::to_string);
            list.push_str(&format!("  {literal}{verb:<11}{literal:#} {about}\n"));
        }
    }
    command.help_template(format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n{list}\n{header}Options:{header:#}\n{{options}}{{after-help}}"
    ))
}

/// What clap's own verb does.
const HELP: &str = "Print this, or the help of a verb";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_verb_is_in_one_group() {
        let mut command = super::super::command();
        command.build();
        let listed = || GROUPS.iter().flat_map(|(_, verbs)| verbs.iter().copied());
        for verb in command.get_subcommands().filter(|c| !c.is_hide_set()) {
            let times = listed().filter(|v| *v == verb.get_name()).count();
            assert_eq!(times, 1, "{}", verb.get_name());
        }
        for verb in listed() {
            assert!(command.find_subcommand(verb).is_some(), "{verb}");
        }
    }

    #[test]
    fn the_help_fits_a_small_terminal() {
        let help = super::super::command().term_width(80).render_help().to_string();
        let wide = help.lines().filter(|line| line.chars().count() > 80);
        assert_eq!(wide.collect::<Vec<_>>(), [""; 0]);
        let groups: Vec<_> = GROUPS.iter().map(|(title, _)| help.find(title).unwrap()).collect();
        assert!(groups.is_sorted(), "{help}");
        assert!(help.contains("\nOptions:\n") && help.contains("--color"), "{help}");
    }
}
