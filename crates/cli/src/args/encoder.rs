//! Verbs that use a model: texts to vectors, to a similarity, to tokens.

use clap::{Args, ValueEnum};
use std::path::{Path, PathBuf};
use weighbridge::embed::{OutputType, Shard};
use weighbridge::encoder::{Pooling, Precision, Settings};
use weighbridge::models;
use weighbridge::table::{TableOptions, parse_delimiter};

/// Turn texts into vectors
#[derive(Debug, Args)]
#[command(
    after_help = "Texts are arguments, lines of --input, or lines of standard input. Files named .jsonl or .ndjson,
and any input with --field, have a JSON object on each line. Files named .csv or .tsv, and any input
with --column, are tables; their other columns are kept with the rows. --lines takes lines as they
are.

Without --output, vectors are printed: as JSON lines, or shortened on a terminal. With it, rows are
first collected in OUT.partial beside it. A run that was interrupted goes on from there with
--resume, and gives the same file. What rounding does to the rows (i8bin) is measured and reported.
Texts that are there twice are embedded once.

--shard 2/8 embeds the second of eight parts of the input: rows 1, 9, 17 and so on, counted from 0.
It writes OUT.manifest.json and OUT.hashes too, by which `weighbridge merge` puts parts together.
Running it again is always safe: it goes on where it ended. --reuse takes the vectors of texts that
are the same from files of earlier runs with a manifest.

Without --model, a small static model that comes with the program is used.

Examples:
  weighbridge embed \"a text\" \"another text\"
  weighbridge embed -m minilm.weights --input texts.txt --output vectors.npy
  weighbridge embed -m minilm -i articles.jsonl --field title -o titles.i8bin
  weighbridge embed -m minilm -i notes.csv --column text -o notes.i8bin
  weighbridge embed -m minilm -i texts.txt -o vectors.npy --resume
  weighbridge embed -m minilm -i texts.txt -o codes.npy --output-type int8
  weighbridge embed -m minilm -i texts.txt -o part3.f32bin --shard 3/8
  weighbridge embed -m minilm -i more.txt -o new.f32bin --reuse old.f32bin
  cut -f 2 table.tsv | weighbridge embed -m minilm --to jsonl | jq -c .vector"
)]
pub(crate) struct Embed {
    #[command(flatten)]
    pub model: Model,
    /// Texts to embed
    #[arg(value_name = "TEXT", conflicts_with = "input")]
    pub texts: Vec<String>,
    /// A file with a text on each line, JSON lines, or a table; - is standard input
    #[arg(long, short, value_name = "FILE")]
    pub input: Option<PathBuf>,
    /// Lines are JSON objects, and this member is the text; the others are kept with the rows
    #[arg(long, value_name = "NAME", conflicts_with = "texts")]
    pub field: Option<String>,
    #[command(flatten)]
    pub table: Table,
    /// Where to write; without it, or with -, vectors are printed
    #[arg(long, short, value_name = "OUT", alias = "out")]
    pub output: Option<PathBuf>,
    /// Target format; by default the output's extension decides
    #[arg(long, value_name = "FORMAT", value_parser = super::Named::formats())]
    pub to: Option<String>,
    /// How many texts are read, embedded and stored together; the model's own batches are made of them
    #[arg(long, value_name = "N", default_value_t = weighbridge::embed::WINDOW, value_parser = super::at_least_one)]
    pub batch: usize,
    /// How the vectors of a text's tokens become one; by default as the model says
    #[arg(long, value_enum)]
    pub pooling: Option<PoolingName>,
    /// Don't bring vectors to unit length
    #[arg(long)]
    pub no_normalize: bool,
    /// What stands in front of every text: one of the model's prompts by name, or any text; '' is
    /// none. By default the model's prompt for documents
    #[arg(long, value_name = "NAME|TEXT")]
    pub prompt: Option<String>,
    /// Keep only this many of a vector's first values
    #[arg(long, value_name = "D", value_parser = super::at_least_one)]
    pub dimensions: Option<usize>,
    #[command(flatten)]
    pub stored: Stored,
    /// Embed one of N parts of the input: every Nth row, from row I-1 on
    #[arg(long, value_name = "I/N", requires = "output", value_parser = shard)]
    pub shard: Option<Shard>,
    /// Take vectors of texts that are the same from these files, which have a manifest
    #[arg(long, value_name = "FILE", num_args = 1.., requires = "output", conflicts_with = "texts")]
    pub reuse: Vec<PathBuf>,
    /// Write OUT.manifest.json and OUT.hashes too, for --reuse
    #[arg(long, requires = "output")]
    pub manifest: bool,
    /// Count the texts and say what would be written, without embedding or writing
    #[arg(long, alias = "report-only", requires = "output")]
    pub dry_run: bool,
    /// Go on with a run that was interrupted
    #[arg(long, requires = "output")]
    pub resume: bool,
    /// Replace bytes that are not UTF-8
    #[arg(long)]
    pub lossy: bool,
    /// Take each line for a text, even of a table or of JSON
    #[arg(long, conflicts_with_all = ["texts", "field"])]
    pub lines: bool,
    /// Leave out lines and rows that can't be used, and texts whose vectors the format can't hold; count
    /// them
    #[arg(long)]
    pub skip_bad: bool,
    /// Replace existing files, and start over after an interrupted run
    #[arg(long)]
    pub force: bool,
    #[command(flatten)]
    pub damage: super::Damage,
    /// Print vectors as JSON lines, or the report as JSON
    #[arg(long)]
    pub json: bool,
}

/// What values of vectors are stored as.
#[derive(Debug, Args)]
pub(crate) struct Stored {
    /// Store values as f32, f16, int8, uint8, binary or ubinary, where the format holds that; by default
    /// as it usually does
    #[arg(long, value_name = "TYPE", value_parser = output_type)]
    pub output_type: Option<OutputType>,
    /// Code int8 and uint8 between these ends: those that a file of vectors stores, else those of its
    /// values; by default those of all rows
    #[arg(long, value_name = "FILE", requires = "output_type")]
    pub ranges: Option<PathBuf>,
}

fn output_type(text: &str) -> Result<OutputType, String> {
    let names = OutputType::ALL.map(OutputType::name).join(", ");
    OutputType::from_name(text).ok_or_else(|| format!("it is one of {names}"))
}

fn shard(text: &str) -> Result<Shard, String> {
    let needed = "the number of a part and how many there are, such as 3/8";
    Shard::parse(text).ok_or_else(|| needed.to_owned())
}

/// Put the shards of an input together, in its order
#[derive(Debug, Args)]
#[command(
    after_help = "Each shard was written by `weighbridge embed --shard`, and has its manifest beside it. They are
checked: all are there, each once, of one input and one model, and as they were written. The file is
the one that embedding the whole input would have given, with its own manifest.

Examples:
  weighbridge merge all.f32bin part1.f32bin part2.f32bin part3.f32bin
  weighbridge merge all.npy part1.f32bin part2.f32bin --output-type int8
  weighbridge merge all.i8bin part1.i8bin part2.i8bin --json"
)]
pub(crate) struct Merge {
    /// Where to write; its extension decides the format
    #[arg(value_name = "OUT")]
    pub output: PathBuf,
    /// The files of all shards, in any order
    #[arg(value_name = "SHARD", required = true)]
    pub shards: Vec<PathBuf>,
    /// Target format; by default the output's extension decides
    #[arg(long, value_name = "FORMAT", value_parser = super::Named::formats())]
    pub to: Option<String>,
    #[command(flatten)]
    pub stored: Stored,
    /// Replace existing files
    #[arg(long)]
    pub force: bool,
    /// Print the report as JSON
    #[arg(long)]
    pub json: bool,
}

/// Texts that are a column of a table.
#[derive(Debug, Args)]
pub(crate) struct Table {
    /// The input is a table, and this column holds the texts; the others are kept with the rows
    #[arg(long, value_name = "NAME", conflicts_with_all = ["texts", "field", "lines"])]
    pub column: Option<String>,
    /// Keep only these columns with the rows, and the one with the texts
    #[arg(long, value_name = "NAMES", value_delimiter = ',', conflicts_with_all = ["texts", "field", "lines"])]
    pub keep: Option<Vec<String>>,
    /// What stands between the columns of a table, or tab; by default the first rows tell
    #[arg(long, value_name = "C", value_parser = delimiter, conflicts_with_all = ["texts", "field", "lines"])]
    pub delimiter: Option<u8>,
    /// The table has no header: its columns go by their numbers, from 1
    #[arg(long, conflicts_with_all = ["texts", "field", "lines"])]
    pub no_header: bool,
}

impl Table {
    /// How the input is read, if its name or a flag says that it is a table.
    pub(crate) fn options(&self, input: Option<&Path>) -> Option<TableOptions> {
        let asked = self.column.is_some()
            || self.keep.is_some()
            || self.delimiter.is_some()
            || self.no_header;
        let by_name = input.and_then(TableOptions::by_name);
        let mut options = by_name.or_else(|| asked.then(TableOptions::new))?;
        options.column.clone_from(&self.column);
        options.keep.clone_from(&self.keep);
        options.delimiter = self.delimiter.or(options.delimiter);
        options.no_header = self.no_header;
        Some(options)
    }
}

fn delimiter(text: &str) -> Result<u8, String> {
    let needed = "one ASCII character is needed, other than a quote, or the word tab";
    parse_delimiter(text).ok_or_else(|| needed.to_owned())
}

/// Say how similar two texts are: the cosine between their vectors
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  weighbridge compare -m minilm \"a cat sits outside\" \"the cat is out there\"
  weighbridge compare -m minilm \"a text\" \"another one\" --json | jq .cosine
  weighbridge compare --model minilm.weights < pairs.tsv")]
pub(crate) struct Compare {
    #[command(flatten)]
    pub model: Model,
    /// A text and the one to compare it with; without them, each line of standard input has two,
    /// separated by a tab
    #[arg(num_args = 2, value_names = ["A", "B"])]
    pub texts: Vec<String>,
    /// How the vectors of a text's tokens become one; by default as the model says
    #[arg(long, value_enum)]
    pub pooling: Option<PoolingName>,
    /// Compare only this many of a vector's first values
    #[arg(long, value_name = "D", value_parser = super::at_least_one)]
    pub dimensions: Option<usize>,
    #[command(flatten)]
    pub damage: super::Damage,
    /// Print one object per pair, each on its own line
    #[arg(long)]
    pub json: bool,
}

/// Order texts by how well they answer a question
#[derive(Debug, Args)]
#[command(
    mut_arg("model", |arg| arg.required(true).default_value(None::<&str>)
        .help("A file or directory with a cross-encoder, or the name of one")),
    after_help = "The model is a cross-encoder, which reads question and text together: slower than
comparing vectors, and better. Scores are what the model's own library gives; higher is better.

Examples:
  weighbridge rerank -m bge-reranker-base \"how heavy?\" \"44 tonnes\" \"in Paris\"
  weighbridge rerank -m bge-reranker-base \"how heavy?\" --input passages.txt -k 3
  weighbridge rerank -m bge-reranker-base \"how heavy?\" --json < passages.txt"
)]
pub(crate) struct Rerank {
    #[command(flatten)]
    pub model: Model,
    /// The question
    pub query: String,
    /// The texts; without them, the lines of --input or of standard input
    #[arg(value_name = "TEXT", conflicts_with = "input")]
    pub texts: Vec<String>,
    /// A file with a text on each line; blank ones count, so that rows are lines
    #[arg(long, short, value_name = "FILE")]
    pub input: Option<PathBuf>,
    /// Show only the best
    #[arg(short, value_name = "N", value_parser = super::at_least_one)]
    pub k: Option<usize>,
    #[command(flatten)]
    pub damage: super::Damage,
    /// Print an object
    #[arg(long)]
    pub json: bool,
}

/// Show the tokens that a model makes of a text
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  weighbridge tokenize --model minilm \"a weighbridge\"
  weighbridge tokenize --model minilm.weights \"a weighbridge\" --json | jq .ids
  weighbridge tokenize --model minilm.weights --json < texts.txt")]
pub(crate) struct Tokenize {
    /// A file or directory with a model, or the name of one; by default the one that comes with the
    /// program
    #[arg(long, short, value_name = "MODEL", default_value = models::built_in(),
        required = models::built_in().is_none(), hide_default_value = true,
        add = super::complete::files_and_models())]
    pub model: String,
    /// The text to split into tokens; without it, the lines of standard input are, one by one
    pub text: Option<String>,
    /// Use at most this many tokens, the special ones included; by default as the model says
    #[arg(long, value_name = "N", value_parser = super::at_least_one)]
    pub max_tokens: Option<usize>,
    /// What stands in front of every text: one of the model's prompts by name, or any text; '' is
    /// none. By default the model's prompt for documents
    #[arg(long, value_name = "NAME|TEXT")]
    pub prompt: Option<String>,
    /// Print one object per text, each on its own line
    #[arg(long)]
    pub json: bool,
}

/// A model and how it computes.
#[derive(Debug, Args)]
pub(crate) struct Model {
    /// A file or directory with a model, or the name of one; by default the small one that comes with
    /// the program
    #[arg(long, short, value_name = "MODEL", default_value = models::built_in(),
        required = models::built_in().is_none(), hide_default_value = true,
        add = super::complete::files_and_models())]
    pub model: String,
    /// Numbers that the model computes with: q8 is faster and less exact, bf16 so on some processors
    #[arg(long, value_enum, default_value_t = PrecisionName::F32)]
    pub precision: PrecisionName,
    /// Use at most this many tokens of a text, the special ones included; by default as the model says
    #[arg(long, value_name = "N", value_parser = super::at_least_one)]
    pub max_tokens: Option<usize>,
    /// Threads to use; by default all cores
    #[arg(long, value_name = "N", value_parser = super::at_least_one)]
    pub threads: Option<usize>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum PrecisionName {
    F32,
    Bf16,
    Q8,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum PoolingName {
    Mean,
    Cls,
    Max,
    #[value(name = "mean_sqrt_len")]
    MeanSqrtLen,
    #[value(name = "weightedmean")]
    WeightedMean,
    #[value(name = "lasttoken")]
    LastToken,
}

impl From<PrecisionName> for Precision {
    fn from(name: PrecisionName) -> Precision {
        match name {
            PrecisionName::F32 => Precision::F32,
            PrecisionName::Bf16 => Precision::Bf16,
            PrecisionName::Q8 => Precision::Q8,
        }
    }
}

impl Model {
    /// What was asked for, without what only some verbs have.
    pub(crate) fn settings(&self, pooling: Option<PoolingName>) -> Settings {
        Settings {
            precision: self.precision.into(),
            pooling: pooling.map(|pooling| match pooling {
                PoolingName::Mean => Pooling::Mean,
                PoolingName::Cls => Pooling::Cls,
                PoolingName::Max => Pooling::Max,
                PoolingName::MeanSqrtLen => Pooling::MeanSqrtLen,
                PoolingName::WeightedMean => Pooling::WeightedMean,
                PoolingName::LastToken => Pooling::LastToken,
            }),
            max_tokens: self.max_tokens,
            threads: self.threads,
            ..Settings::default()
        }
    }
}
