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
mod models;
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
use weighbridge::encoder::Settings;
use weighbridge::source::Access;
use weighbridge::{Container, Embeddings, Encoder, Error, Formats, Input, Options};

pub(crate) fn run(command: Invocation) -> Result<ExitCode, Error> {
    let (options, files) = (command.options, Files(command.access));
    match command.verb {
        Verb::Inspect(args) => inspect::run(&args, &options, files),
        Verb::Verify(args) => verify::run(&args, &options, files),
        Verb::Convert(args) => convert::run(&args, &options, files),
        Verb::Quantize(args) => quantize::run(&args, options, files),
        Verb::Lookup(args) => lookup::run(&args, &options, files),
        Verb::Similar(args) => similar::run(&args, &options, files),
        Verb::Analogy(args) => analogy::run(&args, &options, files),
        Verb::Evaluate(args) => evaluate::run(&args, &options, files),
        Verb::Select(args) => select::run(&args, &options, files),
        Verb::Metadata(args) => metadata::run(&args, &options, files),
        Verb::Pull(args) => pull::run(&args),
        Verb::Models(args) => models::run(&args),
        Verb::Embed(args) => embed::run(&args, files),
        Verb::Compare(args) => compare::run(&args, files),
        Verb::Tokenize(args) => tokenize::run(&args, files),
        Verb::Diff(args) => diff::run(&args, files),
        Verb::Formats(args) => formats::run(&args),
        Verb::Quickstart(args) => quickstart::run(&args),
        Verb::Completions { shell } => completions::run(shell),
    }
}

/// How the files of a command are reached.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Files(pub Access);

impl Files {
    /// What was given by a path or by the name of a model.
    fn input(self, given: &Path) -> Result<Input, Error> {
        Input::open_with(&weighbridge::models::locate(given)?, self.0)
    }

    fn open(self, path: &Path, options: &Options) -> Result<Container, Error> {
        Formats::builtin().open(&self.input(path)?, options)
    }

    /// The word embeddings of a file.
    fn words(self, path: &Path, options: &Options) -> Result<Embeddings, Error> {
        Embeddings::new(&self.open(path, options)?)
    }

    /// The model of a file or a directory.
    fn encoder(self, path: &Path, settings: &Settings) -> Result<Encoder, Error> {
        Encoder::new(&self.open(path, &Options::default())?, settings)
    }
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
