//! Verbs that look for near rows.

use super::encoder::PrecisionName;
use super::{Named, RecordsFile, at_least_one};
use clap::{Args, ValueEnum};
use std::path::PathBuf;
use weighbridge::index::{Filter, parse_filter};
use weighbridge::search::Metric;

/// Find the rows nearest to a text, a word or a vector
#[derive(Debug, Args)]
#[command(
    after_help = "What is asked with is a text where the file says which model its rows are of (files that `embed`
wrote do) or --model names one; else a word of the file. Without any, lines of standard input are
answered one by one. Every row is looked at, so what is found is exact. Scores are cosines, unless
--metric says otherwise; with l2 they are negative distances, so that higher is always nearer.

Exit code: 1 if a word has no vector.

Examples:
  weighbridge search notes.i8bin \"trains running late\"
  weighbridge search words.fifu truck -k 3
  weighbridge search notes.i8bin --like 17 --show id,title
  weighbridge search cards.i8bin \"a dragon\" -m minilm --filter set=LEA --json
  weighbridge search vectors.npy --queries asked.npy -o found.safetensors
  weighbridge search small.fifu --rescore words.fifu truck"
)]
pub(crate) struct Search {
    /// A file of any format with a matrix of rows
    pub index: PathBuf,
    /// Texts, or words of the file
    #[arg(value_name = "QUERY", conflicts_with_all = ["queries", "like"])]
    pub texts: Vec<String>,
    /// How many rows to find; by default 10, or all where there are fewer
    #[arg(short, value_name = "N", value_parser = at_least_one)]
    pub k: Option<usize>,
    /// The model that makes vectors of texts: a file, a directory, or a name; by default the one
    /// that the rows are of
    #[arg(long, short, value_name = "MODEL", add = super::complete::files_and_models())]
    pub model: Option<String>,
    /// What stands in front of every text: one of the model's prompts by name, or any text; '' is
    /// none. By default the model's prompt for queries
    #[arg(long, value_name = "NAME|TEXT")]
    pub prompt: Option<String>,
    /// Numbers that the model computes with; by default those that the rows were made with
    #[arg(long, value_enum)]
    pub precision: Option<PrecisionName>,
    /// Ask with the rows of this file, of any format
    #[arg(long, value_name = "FILE", conflicts_with = "like")]
    pub queries: Option<PathBuf>,
    /// Ask with a row of the index, by its number or by its record (repeatable)
    #[arg(long, value_name = "ROW|FIELD=VALUE")]
    pub like: Vec<String>,
    /// What makes a row near
    #[arg(long, value_enum, default_value_t = MetricName::Cosine)]
    pub metric: MetricName,
    /// Look only among rows whose record has this value (repeatable; all must hold)
    #[arg(long, value_name = "FIELD=VALUE", value_parser = filter)]
    pub filter: Vec<Filter>,
    /// Find candidates in the index, and order them by the rows of this file: the same vectors, more
    /// precise
    #[arg(long, value_name = "FILE")]
    pub rescore: Option<PathBuf>,
    /// Order what is found for a text by this model, a cross-encoder, which reads question and text
    /// together: the 50 nearest rows, or k if that is more
    #[arg(long, value_name = "MODEL", conflicts_with_all = ["queries", "like"],
        add = super::complete::files_and_models())]
    pub rerank: Option<String>,
    #[command(flatten)]
    pub rows: Searched,
    #[command(flatten)]
    pub output: HitsOutput,
    /// Print one object per query, each on its own line
    #[arg(long)]
    pub json: bool,
}

/// The rows that are searched, what is shown of them, and with how many threads.
#[derive(Debug, Args)]
pub(crate) struct Searched {
    /// The tensor to search, where there are several
    #[arg(long, value_name = "NAME")]
    pub tensor: Option<String>,
    #[command(flatten)]
    pub records: RecordsFile,
    /// Show only these fields of the records
    #[arg(long, value_name = "FIELD,...", value_delimiter = ',')]
    pub show: Vec<String>,
    /// Threads to use; by default all cores
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    pub threads: Option<usize>,
}

/// Where hits go that are not printed.
#[derive(Debug, Args)]
pub(crate) struct HitsOutput {
    /// Write what is found to this file, as JSON lines or as safetensors with rows and scores
    #[arg(long, short, value_name = "OUT", alias = "out")]
    pub output: Option<PathBuf>,
    /// Target format; by default the output's extension decides
    #[arg(long, value_name = "FORMAT", value_parser = Named::formats(), requires = "output")]
    pub to: Option<String>,
    /// Replace an existing --output
    #[arg(long)]
    pub force: bool,
}

/// Say how many neighbours stay the same between two files
#[derive(Debug, Args)]
#[command(
    after_help = "Both files hold the same vectors, the second usually rounded. Without --queries, rows of the first
are asked with: all, or a sample of --sample.

Examples:
  weighbridge recall vectors.npy vectors.i8bin
  weighbridge recall words.fifu small.fifu -k 100 --json | jq .recall
  weighbridge recall vectors.npy vectors.i8bin --queries asked.npy"
)]
pub(crate) struct Recall {
    /// A file of any format with a matrix of rows
    pub first: PathBuf,
    /// The same vectors in another form
    pub second: PathBuf,
    /// Ask with the rows of this file
    #[arg(long, value_name = "FILE", conflicts_with_all = ["sample", "seed"])]
    pub queries: Option<PathBuf>,
    /// Neighbours of each query
    #[arg(short, value_name = "N", default_value_t = 10, value_parser = at_least_one)]
    pub k: usize,
    /// What makes a row near
    #[arg(long, value_enum, default_value_t = MetricName::Cosine)]
    pub metric: MetricName,
    /// How many rows are asked with at most
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = at_least_one)]
    pub sample: usize,
    /// Other seeds choose other rows
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// The tensor to compare, where there are several
    #[arg(long, value_name = "NAME")]
    pub tensor: Option<String>,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Find every row's nearest others, or groups of near-duplicates
#[derive(Debug, Args)]
#[command(
    after_help = "With --threshold, rows that are at least as near as that are put into groups; each row of a group
is near to some other of it. Every pair of rows is looked at, which takes a while for millions.

Examples:
  weighbridge neighbours notes.i8bin -o near.jsonl
  weighbridge neighbours vectors.npy -k 5 -o near.safetensors
  weighbridge neighbours notes.i8bin --threshold 0.95"
)]
pub(crate) struct Neighbours {
    /// A file of any format with a matrix of rows
    pub file: PathBuf,
    /// Neighbours of each row; by default 15, or all where there are fewer
    #[arg(short, value_name = "N", value_parser = at_least_one)]
    pub k: Option<usize>,
    /// Put rows into groups that are at least this near
    #[arg(long, value_name = "SCORE", allow_hyphen_values = true, value_parser = score, conflicts_with = "k")]
    pub threshold: Option<f32>,
    /// What makes a row near
    #[arg(long, value_enum, default_value_t = MetricName::Cosine)]
    pub metric: MetricName,
    #[command(flatten)]
    pub rows: Searched,
    #[command(flatten)]
    pub output: HitsOutput,
    /// Print one object per row or group, each on its own line
    #[arg(long)]
    pub json: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum MetricName {
    Cosine,
    Dot,
    L2,
}

impl MetricName {
    pub(crate) fn metric(self) -> Metric {
        match self {
            MetricName::Cosine => Metric::Cosine,
            MetricName::Dot => Metric::Dot,
            MetricName::L2 => Metric::L2,
        }
    }
}

fn filter(text: &str) -> Result<Filter, String> {
    parse_filter(text).ok_or_else(|| "a field and a value separated by = are needed".to_owned())
}

/// Nothing is near to NaN.
fn score(text: &str) -> Result<f32, String> {
    match text.parse::<f32>() {
        Ok(score) if !score.is_nan() => Ok(score),
        _ => Err("a number is needed".to_owned()),
    }
}
