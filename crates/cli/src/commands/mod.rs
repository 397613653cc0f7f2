//! One file a verb.

mod analogy;
mod compare;
mod completions;
mod convert;
mod diff;
mod distill;
mod embed;
mod embed_input;
mod evaluate;
mod formats;
mod hits;
mod inspect;
mod lookup;
mod man;
mod merge;
mod metadata;
mod models;
mod neighbours;
mod new;
mod output;
mod prompts;
mod pull;
mod quantize;
mod questions;
mod quickstart;
mod recall;
mod rerank;
mod search;
mod select;
mod similar;
mod text_input;
mod tokenize;
mod verify;

use crate::ExitCode;
use crate::args::{Damage, Growth, Invocation, RecordsFile, Stored, Verb};
use crate::render::{DIM, YELLOW, grouped, marked, message_width, safe, safe_json, width, wrapped};
use std::path::{Path, PathBuf};
use weighbridge::codec::simd::Level;
use weighbridge::embed::Ranges;
use weighbridge::encoder::{Precision, Settings, has_bf16};
use weighbridge::source::Access;
use weighbridge::{Container, Embeddings, Encoder, Error, Formats, Input, Options, records};

pub(crate) use completions::complete;

pub(crate) fn run(command: Invocation) -> Result<ExitCode, Error> {
    let files = Files { access: command.access(), accept_damage: false, may_grow: false };
    let options = command.options;
    match command.verb {
        Verb::Inspect(args) => inspect::run(&args, &options, files),
        Verb::Verify(args) => verify::run(&args, &options, files),
        Verb::Convert(args) => convert::run(&args, &options, files),
        Verb::Quantize(args) => quantize::run(&args, options, files),
        Verb::Distill(args) => distill::run(&args, &options, files),
        Verb::New(args) => new::run(&args, &options),
        Verb::Lookup(args) => lookup::run(&args, &options, files),
        Verb::Similar(args) => similar::run(&args, &options, files),
        Verb::Analogy(args) => analogy::run(&args, &options, files),
        Verb::Evaluate(args) => evaluate::run(&args, &options, files),
        Verb::Select(args) => select::run(&args, &options, files),
        Verb::Metadata(args) => metadata::run(&args, &options, files),
        Verb::Pull(args) => pull::run(&args),
        Verb::Models(args) => models::run(&args),
        Verb::Embed(args) => embed::run(&args, &options, files),
        Verb::Merge(args) => merge::run(&args, &options, files),
        Verb::Compare(args) => compare::run(&args, &options, files),
        Verb::Rerank(args) => rerank::run(&args, &options, files),
        Verb::Search(args) => search::run(&args, &options, files),
        Verb::Recall(args) => recall::run(&args, &options, files),
        Verb::Neighbours(args) => neighbours::run(&args, &options, files),
        Verb::Tokenize(args) => tokenize::run(&args, &options, files),
        Verb::Diff(args) => diff::run(&args, &options, files),
        Verb::Formats(args) => formats::run(&args),
        Verb::Quickstart(args) => quickstart::run(&args),
        Verb::Completions { shell } => completions::run(shell),
        Verb::Man(args) => man::run(&args),
    }
}

/// How the files of a command are reached.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Files {
    access: Access,
    /// Damaged ones are used all the same.
    accept_damage: bool,
    /// What is written of them may be far larger.
    may_grow: bool,
}

impl Files {
    fn accepting(self, damage: &Damage) -> Files {
        Files { accept_damage: damage.allow_damage, ..self }
    }

    fn growing(self, growth: &Growth) -> Files {
        Files { may_grow: growth.allow_growth, ..self }
    }

    /// What was given by a path or by the name of a model.
    fn input(self, given: &Path) -> Result<Input, Error> {
        let mut input = weighbridge::models::input(given, self.access)?;
        // Messages and findings call it what it was called.
        input.path = given.display().to_string();
        Ok(input)
    }

    fn open(self, path: &Path, options: &Options) -> Result<Container, Error> {
        let container = Formats::builtin().open(&self.input(path)?, options)?;
        say_detail(|| {
            let how = if self.access == Access::Mapped { "mapped" } else { "read in pieces" };
            let size = crate::render::size(container.size);
            let tensors = match container.tensors.len() {
                1 => "1 tensor".to_owned(),
                n => format!("{} tensors", grouped(n as u64)),
            };
            format!("{}: {}, {tensors}, {size}, {how}", path.display(), container.format)
        });
        Ok(container.accept_damage(self.accept_damage).accept_growth(self.may_grow))
    }

    /// The ranges of the file that was named for them.
    fn ranges(self, stored: &Stored, options: &Options) -> Result<Option<Ranges>, Error> {
        let open = |path: &PathBuf| Ranges::of(&self.open(path, options)?);
        stored.ranges.as_ref().map(open).transpose()
    }

    /// The word embeddings of a file.
    fn words(self, path: &Path, options: &Options) -> Result<Embeddings, Error> {
        Embeddings::new(&self.open(path, options)?)
    }

    /// The model of a file or a directory. What it does not say of itself is said here.
    fn encoder(
        self,
        path: &Path,
        options: &Options,
        settings: &Settings,
    ) -> Result<Encoder, Error> {
        if settings.precision == Precision::Bf16 && !has_bf16() {
            say_note("this processor does not multiply bf16; f32 is used, which is closer");
        }
        let encoder = Encoder::new(&self.open(path, options)?, settings)?;
        say_detail(|| {
            let (values, tokens) = (encoder.dimensions(), encoder.max_tokens());
            let (level, precision) = (Level::best(), settings.precision);
            format!("vectors of {values} values, up to {tokens} tokens, {precision:?}, {level}")
        });
        let assumed = encoder.assumed();
        if !assumed.is_empty() {
            let list: Vec<_> = assumed.iter().map(ToString::to_string).collect();
            let (list, path) = (list.join(", "), path.display());
            say_note(&format!("assumed: {list}; {path} does not say it"));
        }
        Ok(encoder)
    }
}

/// Gives a container the records of a file, if one was named.
fn attach_records(container: &mut Container, file: &RecordsFile) -> Result<(), Error> {
    match &file.records {
        Some(path) => records::attach(container, records::read(path)?, &path.display().to_string()),
        None => Ok(()),
    }
}

/// Says something on standard error that is no failure.
fn say_note(note: &str) {
    if !crate::talk::is_quiet() {
        let line = format!("{}: {}", marked(YELLOW, "note"), safe(note));
        crate::render::say!("{}", wrapped(&line, message_width()));
    }
}

/// Says of the model that comes with the program what it is, and what would be better.
fn say_built_in(model: &Path, json: bool) {
    if weighbridge::models::is_built_in(model) && !json {
        say_note(
            "the model is minilm-static, which comes with the program: quick and small. A sentence \
             model finds more: of the ten nearest texts by all-MiniLM-L6-v2, this one has 36 of 100; \
             `weighbridge pull minilm` fetches that, and -m minilm uses it",
        );
    }
}

/// Says what is done, to who wants to know it.
pub(crate) fn say_detail(detail: impl FnOnce() -> String) {
    if crate::talk::is_verbose() {
        crate::render::say!("{}", marked(DIM, safe(&detail())));
    }
}

/// Says of texts that are names of files that their names were taken, and what would read them.
fn say_files<'a>(texts: impl IntoIterator<Item = &'a String>, reads: impl Fn(&str) -> String) {
    for name in texts.into_iter().filter(|text| Path::new(text.as_str()).is_file()) {
        let reads = reads(name);
        let reads = if reads.is_empty() { reads } else { format!("; {reads}") };
        say_note(&format!(
            "{name} is a file; its name was used as the text, not its content{reads}"
        ));
    }
}

/// Says how many texts were longer than a model takes.
fn say_cut(texts: u64, tokens: usize) {
    let texts = match texts {
        0 => return,
        1 => "1 text has".to_owned(),
        n => format!("{} texts have", grouped(n)),
    };
    say_note(&format!("{texts} more than {tokens} tokens; the rest was ignored"));
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

/// Prints a report for people, with its lines no longer than the terminal's.
fn print_text(text: &str) -> Result<ExitCode, Error> {
    print(&wrapped(text, width()))
}

/// Prints what was done and went well, unless nobody wants to know.
fn report(text: &str) -> Result<ExitCode, Error> {
    if crate::talk::is_quiet() { Ok(ExitCode::SUCCESS) } else { print_text(text) }
}

fn print_json(value: &impl serde::Serialize) -> Result<ExitCode, Error> {
    let text = serde_json::to_string_pretty(value).unwrap_or_default();
    print(&(safe_json(&text) + "\n"))
}

/// Prints an object in one line.
pub(crate) fn print_line(value: &impl serde::Serialize) -> Result<ExitCode, Error> {
    print(&json_line(value))
}

/// An object in one line.
fn json_line(value: &impl serde::Serialize) -> String {
    safe_json(&serde_json::to_string(value).unwrap_or_default()) + "\n"
}
