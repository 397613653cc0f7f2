//! Flags that every verb has.

use clap::{ArgAction, Args};
use std::ffi::OsString;

const HEADING: &str = "Options of every verb";

/// How files are reached, and how much is said.
#[derive(Debug, Args)]
pub(crate) struct Global {
    /// Read files piece by piece instead of mapping them into memory: slower, but a file that is
    /// cut short or rewritten in the meantime is reported as an error
    #[arg(long, global = true, help_heading = HEADING)]
    pub no_mmap: bool,
    /// Colours: on terminals that want them (NO_COLOR and CLICOLOR are respected), or as said here
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto", alias = "colour", help_heading = HEADING)]
    pub color: clap::ColorChoice,
    /// Say only what was asked for and errors: no notes, no progress, no report of success
    #[arg(long, short, global = true, help_heading = HEADING)]
    pub quiet: bool,
    /// Say also which files were opened, as what, with which instructions a model computes, and how
    /// long it took
    #[arg(long, short, global = true, action = ArgAction::SetTrue, conflicts_with = "quiet", help_heading = HEADING)]
    pub verbose: bool,
}

/// What `--color` says in a command line that may be wrong: then the message has it too.
pub(crate) fn color_of(arguments: &[OsString]) -> clap::ColorChoice {
    let mut words = arguments.iter().map(|word| word.to_string_lossy());
    let mut chosen = clap::ColorChoice::Auto;
    while let Some(word) = words.next().filter(|word| word != "--") {
        let value = match word.split_once('=') {
            Some(("--color" | "--colour", value)) => Some(value.to_owned()),
            None if word == "--color" || word == "--colour" => words.next().map(Into::into),
            _ => None,
        };
        let value = value.and_then(|value| clap::ValueEnum::from_str(&value, true).ok());
        chosen = value.unwrap_or(chosen);
    }
    chosen
}
