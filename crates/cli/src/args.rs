//! The command line. Options of formats are not written here: they come from the formats.

mod complete;
mod distill;
mod encoder;
mod global;
mod groups;
mod help;
mod models;
mod named;
mod quantize;
mod search;
mod words;

pub(crate) use distill::Distill;
pub(crate) use encoder::{Compare, Embed, Merge, Rerank, Stored, Tokenize};
pub(crate) use global::{Global, color_of};
pub(crate) use models::{Models, ModelsVerb, Pull};
pub(crate) use quantize::Quantize;
pub(crate) use search::{HitsOutput, Neighbours, Recall, Search, Searched};
pub(crate) use words::{Analogy, Evaluate, Lookup, Metadata, Select, Similar};

use named::Named;

use clap::{
    Arg, ArgAction, ArgMatches, Args, Command, CommandFactory, FromArgMatches, Parser, Subcommand,
};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use weighbridge::source::Access;
use weighbridge::{Edit, FormatInfo, Formats, OptionSpec, Options};

#[derive(Debug, Parser)]
#[command(
    name = "weighbridge",
    version,
    about = "Open, check, convert and shrink files of embeddings and model weights",
    max_term_width = 100
)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub global: Global,
    #[command(subcommand)]
    pub command: Verb,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// Show what is inside a file
    #[command(
        after_help = "On a terminal, what does not fit the screen goes through the pager that PAGER names, else through
less; with PAGER=cat it is printed. Elsewhere all of it is printed, as wide as it is.

Examples:
  weighbridge inspect model.safetensors
  weighbridge inspect minilm
  weighbridge inspect minilm.weights --tensors '*LayerNorm*' --stats
  weighbridge inspect model.oinf --json | jq '.tensors[0]'
  weighbridge inspect broken.weights --bytes"
    )]
    Inspect(Inspect),
    /// Check files against every rule of their format
    #[command(
        after_help = "Exit code: 0 fine (maybe warnings), 1 errors found, 3 not recognisable, 4 can't be read,
5 far more is made of it than it has bytes.

Examples:
  weighbridge verify minilm.weights
  weighbridge verify minilm
  weighbridge verify --quick model.safetensors words.fifu
  weighbridge verify --json model.oinf | jq .findings"
    )]
    Verify(Verify),
    /// Convert a file or a model directory into another format
    #[command(after_help = "Examples:
  weighbridge convert all-MiniLM-L6-v2/ minilm.weights
  weighbridge convert minilm minilm.mcf
  weighbridge convert minilm.weights minilm.safetensors
  weighbridge convert model.safetensors small.oinf --dtype bf16 --dry-run
  weighbridge convert model.safetensors part.oinf --select 'encoder.*'
  weighbridge convert vectors.npy embeddings.i8bin --normalize --allow-loss
  weighbridge convert vectors.npy embeddings.f32bin --records ids.csv")]
    Convert(Convert),
    Quantize(Quantize),
    Distill(Distill),
    /// Make a file out of a description in JSON
    #[command(
        after_help = "The description is an object of sizevars, metadata, tensors, words and records, see docs/new.md.

Examples:
  weighbridge new model.oinf --data model.json
  weighbridge new vectors.npy --data vectors.json
  weighbridge inspect model.oinf --values"
    )]
    New(New),
    Lookup(Lookup),
    Similar(Similar),
    Analogy(Analogy),
    Evaluate(Evaluate),
    Select(Select),
    Metadata(Metadata),
    Pull(Pull),
    Models(Models),
    Embed(Embed),
    Merge(Merge),
    Compare(Compare),
    Rerank(Rerank),
    Tokenize(Tokenize),
    Search(Search),
    Recall(Recall),
    Neighbours(Neighbours),
    /// Compare two files by content, or two models by their vectors
    #[command(after_help = "Exit code: 0 the same within the tolerance, 1 different.

Examples:
  weighbridge diff minilm minilm.mcf --texts default
  weighbridge diff before.oinf after.oinf --tolerance 1e-6
  weighbridge diff model.safetensors model.weights --tensors-only
  weighbridge diff a.npy b.npy --json | jq '.tensors[0].values'")]
    Diff(Diff),
    /// List the formats and what each can hold
    #[command(after_help = "Examples:
  weighbridge formats
  weighbridge formats --json | jq '.[].id'")]
    Formats(ListFormats),
    /// Make a sample of each format and show what can be done with them
    #[command(after_help = "Examples:
  weighbridge quickstart
  weighbridge quickstart /tmp/try-it")]
    Quickstart(Quickstart),
    /// Print a completion script for a shell
    #[command(after_help = "Examples:
  weighbridge completions bash >> ~/.bash_completion
  weighbridge completions zsh > ~/.zfunc/_weighbridge")]
    Completions {
        /// The shell to write for
        shell: clap_complete::Shell,
    },
    /// Print the manual page of the program or a verb, or write all
    #[command(after_help = "Examples:
  weighbridge man | man -l -
  weighbridge man convert | man -l -
  weighbridge man -o ~/.local/share/man/man1")]
    Man(Man),
}

#[derive(Debug, Args)]
pub(crate) struct Inspect {
    /// A file, a Hugging Face model directory, or the name of a model
    #[arg(add = complete::files_and_models())]
    pub file: PathBuf,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
    /// List only tensors whose names match
    #[arg(long, value_name = "GLOB")]
    pub tensors: Option<String>,
    /// Minimum, maximum, mean, median, deviation, NaN, infinity and zero counts, and a histogram
    #[arg(long)]
    pub stats: bool,
    /// The first and last five values of each tensor
    #[arg(long)]
    pub values: bool,
    /// List the vocabulary
    #[arg(long)]
    pub vocab: bool,
    /// The map of the whole file: what every byte is
    #[arg(long)]
    pub bytes: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Verify {
    /// Files, Hugging Face model directories, or names of models
    #[arg(required = true, add = complete::files_and_models())]
    pub files: Vec<PathBuf>,
    /// Print one object per file, in an array if there are several
    #[arg(long)]
    pub json: bool,
    /// Check the structure only, without reading the data
    #[arg(long)]
    pub quick: bool,
    /// List all findings of a file, not the ten most important ones: errors come before warnings
    #[arg(long)]
    pub all: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Convert {
    /// A file, a Hugging Face model directory, or the name of a model
    #[arg(add = complete::files_and_models())]
    pub input: PathBuf,
    #[command(flatten)]
    pub output: Destination,
    /// Target format; by default the output's extension decides
    #[arg(long, value_name = "FORMAT", value_parser = Named::formats())]
    pub to: Option<String>,
    /// Type to store real numbers in
    #[arg(long, value_parser = ["f32", "f16", "bf16"])]
    pub dtype: Option<String>,
    /// Keep only tensors whose names match (repeatable)
    #[arg(long, value_name = "GLOB")]
    pub select: Vec<String>,
    /// Leave out tensors whose names match (repeatable)
    #[arg(long, value_name = "GLOB")]
    pub exclude: Vec<String>,
    /// Rename a tensor, metadata key or size variable (repeatable)
    #[arg(long, value_name = "OLD=NEW", value_parser = pair)]
    pub rename: Vec<(String, String)>,
    #[command(flatten)]
    pub metadata: MetadataEdits,
    /// A file with a word for each row, one per line
    #[arg(long, value_name = "FILE")]
    pub words: Option<PathBuf>,
    #[command(flatten)]
    pub records: RecordsFile,
    /// Give subwords in buckets names and rows of their own; buckets without a word are left out
    #[arg(long)]
    pub explicit: bool,
    /// Measure how many of the ten nearest rows stay the same, after writing
    #[arg(long)]
    pub recall: bool,
    /// Print the plan, the sizes and the losses without writing
    #[arg(long, alias = "report-only")]
    pub dry_run: bool,
    #[command(flatten)]
    pub damage: Damage,
    #[command(flatten)]
    pub growth: Growth,
    /// Proceed even if something can't be kept
    #[arg(long)]
    pub allow_loss: bool,
    /// Replace existing files
    #[arg(long)]
    pub force: bool,
    /// Print the report as JSON
    #[arg(long)]
    pub json: bool,
}

/// Where a verb writes: an argument, or a flag for those who are used to one.
#[derive(Debug, Args)]
pub(crate) struct Destination {
    /// Where to write; its extension decides the format
    #[arg(value_name = "OUT", required_unless_present = "output")]
    out: Option<PathBuf>,
    /// The same as OUT
    #[arg(long, short, value_name = "OUT", alias = "out", conflicts_with = "out")]
    output: Option<PathBuf>,
}

impl Destination {
    /// The one that was given: the command line is only understood with one.
    pub(crate) fn path(&self) -> &Path {
        self.out.as_deref().or(self.output.as_deref()).unwrap_or(Path::new(""))
    }
}

/// What is said of each row.
#[derive(Debug, Args)]
pub(crate) struct RecordsFile {
    /// A file with a record for each row: a table (.csv, .tsv), JSON lines or a JSON array
    #[arg(long, value_name = "FILE")]
    pub records: Option<PathBuf>,
}

/// What is done with a damaged file.
#[derive(Debug, Args)]
pub(crate) struct Damage {
    /// Proceed even if checksums or codes show that the file is damaged
    #[arg(long)]
    pub allow_damage: bool,
}

/// How large a file may become.
#[derive(Debug, Args)]
pub(crate) struct Growth {
    /// Proceed even if the output is more than 16 times as large as the input
    #[arg(long)]
    pub allow_growth: bool,
}

/// What is said otherwise of a file.
#[derive(Debug, Args)]
pub(crate) struct MetadataEdits {
    /// Set a metadata value (repeatable); an existing one keeps its type, a new one is a text;
    /// KEY:TYPE=VALUE names another type
    #[arg(long, value_name = "KEY=VALUE", value_parser = pair)]
    pub set: Vec<(String, String)>,
    /// Set a size variable (repeatable)
    #[arg(long, value_name = "NAME=N", value_parser = size)]
    pub set_size: Vec<(String, u64)>,
    /// Remove a metadata value (repeatable)
    #[arg(long, value_name = "KEY")]
    pub remove: Vec<String>,
}

impl MetadataEdits {
    /// Nothing was asked for.
    pub(crate) fn is_empty(&self) -> bool {
        self.set.is_empty() && self.set_size.is_empty() && self.remove.is_empty()
    }

    /// As changes of a container.
    pub(crate) fn edit(&self) -> Edit {
        let mut edit = Edit::new();
        edit.set.clone_from(&self.set);
        edit.sizes.clone_from(&self.set_size);
        edit.remove.clone_from(&self.remove);
        edit
    }
}

#[derive(Debug, Args)]
pub(crate) struct Diff {
    /// A file, a Hugging Face model directory, or the name of a model
    #[arg(add = complete::files_and_models())]
    pub first: PathBuf,
    /// The one to compare it with
    #[arg(add = complete::files_and_models())]
    pub second: PathBuf,
    /// Compare the tensors only, not the metadata, words, records and files
    #[arg(long, conflicts_with = "texts")]
    pub tensors_only: bool,
    /// Compare two models by the vectors of texts instead: a file with a text on each line, or
    /// "default" for those that come with the program
    #[arg(long, value_name = "FILE")]
    pub texts: Option<PathBuf>,
    #[command(flatten)]
    pub damage: Damage,
    /// Values that differ by no more than this count as the same
    #[arg(long, default_value_t = 0.0, value_name = "T", value_parser = tolerance, allow_hyphen_values = true)]
    pub tolerance: f64,
    /// List all differences, not the ten largest of each kind
    #[arg(long)]
    pub all: bool,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct New {
    #[command(flatten)]
    pub output: Destination,
    /// The description: a file with a JSON object; - is standard input
    #[arg(long, short, value_name = "FILE")]
    pub data: PathBuf,
    /// Target format; by default the output's extension decides
    #[arg(long, value_name = "FORMAT", value_parser = Named::formats())]
    pub to: Option<String>,
    /// Print the plan, the sizes and the losses without writing
    #[arg(long)]
    pub dry_run: bool,
    /// Proceed even if something can't be kept
    #[arg(long)]
    pub allow_loss: bool,
    /// Replace existing files
    #[arg(long)]
    pub force: bool,
    /// Print the report as JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ListFormats {
    /// Print an array of objects
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Quickstart {
    /// Where to put the samples
    #[arg(default_value = "quickstart")]
    folder: PathBuf,
    /// The same as FOLDER
    #[arg(long, short, value_name = "FOLDER", conflicts_with = "folder")]
    output: Option<PathBuf>,
    /// Use only what is in the program: no model is looked for or fetched
    #[arg(long)]
    pub offline: bool,
}

impl Quickstart {
    /// Where to put the samples.
    pub(crate) fn folder(&self) -> &Path {
        self.output.as_deref().unwrap_or(&self.folder)
    }
}

#[derive(Debug, Args)]
pub(crate) struct Man {
    /// The verb to describe; without it, the program
    #[arg(conflicts_with = "output")]
    pub verb: Option<String>,
    /// Write a page for the program and one for each verb into this folder
    #[arg(long, short, value_name = "DIR")]
    pub output: Option<PathBuf>,
}

fn pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((left, right)) if !left.is_empty() => Ok((left.to_owned(), right.to_owned())),
        _ => Err("two names separated by = are needed".to_owned()),
    }
}

fn size(text: &str) -> Result<(String, u64), String> {
    let (name, size) = pair(text)?;
    let size = size.parse().map_err(|_| format!("{size:?} is not a whole number"))?;
    Ok((name, size))
}

/// A largest difference: NaN and negative numbers would let nothing or anything pass.
fn tolerance(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(value) if value >= 0.0 => Ok(value),
        _ => Err("a number of at least 0 is needed".to_owned()),
    }
}

fn at_least_one(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(n) if n > 0 => Ok(n),
        _ => Err("a whole number of at least 1 is needed".to_owned()),
    }
}

/// Every option that some format declares, once.
fn format_options() -> Vec<&'static OptionSpec> {
    let mut list: Vec<&OptionSpec> = Vec::new();
    for option in Formats::builtin().iter().flat_map(|f| f.info().options) {
        if !list.iter().any(|o| o.name == option.name) {
            list.push(option);
        }
    }
    list
}

fn to_arg(option: &'static OptionSpec) -> Arg {
    let arg = Arg::new(option.name)
        .long(option.name)
        .help(option.help)
        .help_heading("Options of formats");
    if option.value.is_empty() {
        arg.action(ArgAction::SetTrue)
    } else if option.choices.is_empty() {
        arg.value_name(option.value)
    } else {
        arg.value_name(option.value).value_parser(option.choices.to_vec())
    }
}

/// The whole command, with the formats' options where they apply.
pub(crate) fn command() -> Command {
    let formats = Formats::builtin();
    let from = || {
        let ids: Vec<_> = formats.iter().filter(|f| f.reads()).map(|f| f.info().id).collect();
        let help = "Read the input as this format, whatever it looks like";
        Arg::new("from").long("from").value_name("FORMAT").value_parser(ids).help(help)
    };
    let mut command = groups::grouped(Cli::command().long_version(crate::version::long()));
    // Which formats a verb writes.
    let none: fn(&FormatInfo) -> bool = |_| false;
    for (verb, writes) in [
        ("inspect", none),
        ("verify", none),
        ("lookup", none),
        ("similar", none),
        ("analogy", none),
        ("evaluate", none),
        ("search", none),
        ("recall", none),
        ("neighbours", none),
        ("metadata", none),
        ("diff", none),
        ("select", |_| true),
        ("convert", |_| true),
        ("new", |_| true),
        ("quantize", |info| info.quantized.is_some()),
    ] {
        let written = |option: &OptionSpec| {
            let mut infos = formats.iter().map(|f| f.info());
            infos.any(|info| writes(info) && info.has_option(option.name))
        };
        command = command.mut_subcommand(verb, |c| {
            let options = format_options().into_iter().filter(|o| o.reading || written(o));
            c.arg(from()).args(options.map(to_arg))
        });
    }
    for verb in ["embed", "compare", "tokenize"] {
        let help = "Read the model as this format, whatever it looks like";
        command = command.mut_subcommand(verb, |c| c.arg(from().help(help)));
    }
    help::unbroken(command)
}

/// A command line that was understood.
#[derive(Debug)]
pub(crate) struct Invocation {
    pub verb: Verb,
    /// The verb as it is typed.
    pub name: String,
    /// Options of formats.
    pub options: Options,
    /// Failures are printed as JSON too.
    pub json: bool,
    /// How files are reached, and how much is said.
    pub global: Global,
}

impl Invocation {
    /// How files are reached.
    pub(crate) fn access(&self) -> Access {
        if self.global.no_mmap { Access::Reads } else { Access::Mapped }
    }
}

/// Parses a command line, the program's name first.
pub(crate) fn parse(arguments: &[OsString]) -> Result<Invocation, clap::Error> {
    let matches = command().try_get_matches_from(arguments)?;
    let cli = Cli::from_arg_matches(&matches)?;
    let verb = matches.subcommand().map(|(_, matches)| matches);
    let options = verb.map(given_options).unwrap_or_default();
    let json = verb.is_some_and(|m| m.try_get_one::<bool>("json").is_ok_and(|v| v == Some(&true)));
    let name = matches.subcommand_name().unwrap_or_default().to_owned();
    Ok(Invocation { verb: cli.command, name, options, json, global: cli.global })
}

fn given_options(matches: &ArgMatches) -> Options {
    let mut options = Options::default();
    for option in format_options() {
        if option.value.is_empty() {
            if matches.try_get_one::<bool>(option.name).is_ok_and(|v| v == Some(&true)) {
                options.set(option.name, "true");
            }
        } else if let Ok(Some(value)) = matches.try_get_one::<String>(option.name) {
            options.set(option.name, value.clone());
        }
    }
    if let Ok(Some(value)) = matches.try_get_one::<String>("from") {
        options.set("from", value.clone());
    }
    options
}

#[cfg(test)]
mod examples;

#[cfg(test)]
mod tests {
    #[test]
    fn the_command_line_is_consistent() {
        super::command().debug_assert();
    }

    #[test]
    fn every_argument_says_what_it_is_for() {
        fn without_help(command: &clap::Command) -> Vec<String> {
            let bare = command.get_arguments().filter(|arg| arg.get_help().is_none());
            let named = bare.map(|arg| format!("{} {}", command.get_name(), arg.get_id()));
            named.chain(command.get_subcommands().flat_map(without_help)).collect()
        }
        assert_eq!(without_help(&super::command()), [""; 0]);
    }
}
