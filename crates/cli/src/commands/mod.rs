//! One file a verb.

mod analogy;
mod compare;
mod completions;
mod convert;
mod diff;
mod embed;
mod evaluate;
mod formats;
mod inspect;
mod lookup;
mod metadata;
mod output;
mod pull;
mod quantize;
mod questions;
mod quickstart;
mod select;
mod similar;
mod tokenize;
mod verify;

use crate::args::{Invocation, Verb};
use std::path::Path;
use std::process::ExitCode;
use weighbridge::{Embeddings, Error, Formats, Input, Options};

pub(crate) fn run(command: Invocation) -> Result<ExitCode, Error> {
    let options = command.options;
    match command.verb {
        Verb::Inspect(args) => inspect::run(&args, &options),
        Verb::Verify(args) => verify::run(&args, &options),
        Verb::Convert(args) => convert::run(&args, &options),
        Verb::Quantize(args) => quantize::run(&args, options),
        Verb::Lookup(args) => lookup::run(&args, &options),
        Verb::Similar(args) => similar::run(&args, &options),
        Verb::Analogy(args) => analogy::run(&args, &options),
        Verb::Evaluate(args) => evaluate::run(&args, &options),
        Verb::Select(args) => select::run(&args, &options),
        Verb::Metadata(args) => metadata::run(&args, &options),
        Verb::Pull(args) => pull::run(&args),
        Verb::Embed(args) => embed::run(&args),
        Verb::Compare(args) => compare::run(&args),
        Verb::Tokenize(args) => tokenize::run(&args),
        Verb::Diff(args) => diff::run(&args),
        Verb::Formats(args) => formats::run(&args),
        Verb::Quickstart(args) => quickstart::run(&args),
        Verb::Completions { shell } => completions::run(shell),
    }
}

/// The word embeddings of a file.
fn open_words(file: &Path, options: &Options) -> Result<Embeddings, Error> {
    Embeddings::new(&Formats::builtin().open(&Input::open(file)?, options)?)
}

/// Prints to standard output; a reader that went away (`| head`) is no error.
fn print(text: &str) -> Result<ExitCode, Error> {
    use std::io::Write;
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(e) if e.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(Error::io(std::path::Path::new("standard output"), e))
        }
        _ => Ok(ExitCode::SUCCESS),
    }
}

fn print_json(value: &impl serde::Serialize) -> Result<ExitCode, Error> {
    let text = serde_json::to_string_pretty(value).unwrap_or_default();
    print(&(text + "\n"))
}

/// Prints an object in one line.
pub(crate) fn print_line(value: &impl serde::Serialize) -> Result<ExitCode, Error> {
    print(&json_line(value))
}

/// An object in one line.
fn json_line(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default() + "\n"
}
