//! Verbs for word embeddings, and for metadata.

use super::{Destination, MetadataEdits, Named, at_least_one};
use clap::Args;
use std::path::PathBuf;

/// Print the vectors of words; unknown ones are built from subwords
#[derive(Debug, Args)]
#[command(
    after_help = "Without words on the command line, they are read from standard input, one per line.
Exit code: 1 if a word has no vector.

Examples:
  weighbridge lookup words.fifu truck lorry
  weighbridge lookup words.fifu --json < words.txt | jq '.vector[0]'"
)]
pub(crate) struct Lookup {
    /// A file of any format with words and vectors
    pub file: PathBuf,
    /// Words; without any, they are read from standard input
    #[arg(value_name = "WORD")]
    pub words: Vec<String>,
    /// Print one object per word, each on its own line
    #[arg(long)]
    pub json: bool,
}

/// Find the words nearest to a word, or the rows nearest to a row
#[derive(Debug, Args)]
#[command(
    after_help = "Nearness is the cosine of the angle between vectors. Rows without words go by their numbers, and
by what their records say: field=value.
Without words on the command line, they are read from standard input, one per line, and each is
answered at once.
Exit code: 1 if a word has no vector.

Examples:
  weighbridge similar words.fifu truck
  weighbridge similar words.fifu truck \"new york\" -k 3
  weighbridge similar notes.i8bin 17
  weighbridge similar cards.i8bin name=Counterspell
  weighbridge similar words.fifu --json < words.txt | jq -r '.hits[0].word'"
)]
pub(crate) struct Similar {
    /// A file of any format with words and vectors
    pub file: PathBuf,
    /// Words; without any, they are read from standard input
    #[arg(value_name = "WORD")]
    pub words: Vec<String>,
    /// How many words to find
    #[arg(short, value_name = "N", default_value_t = 10, value_parser = at_least_one)]
    pub k: usize,
    /// Print one object per word, each on its own line
    #[arg(long)]
    pub json: bool,
}

/// Answer: A is to B as C is to what?
#[derive(Debug, Args)]
#[command(after_help = "The three words themselves are never given as answers.
Without words on the command line, questions are read from standard input: each line has three
words, separated by tabs, or by spaces if there are no tabs. Each is answered at once.
Exit code: 1 if a word has no vector.

Examples:
  weighbridge analogy words.fifu man king woman
  weighbridge analogy words.fifu --json -k 1 < asked.txt | jq '.hits[0].word'")]
pub(crate) struct Analogy {
    /// A file of any format with words and vectors
    pub file: PathBuf,
    /// A is to B as C is to what?
    #[arg(num_args = 3, value_names = ["A", "B", "C"])]
    pub words: Vec<String>,
    /// How many words to find
    #[arg(short, value_name = "N", default_value_t = 10, value_parser = at_least_one)]
    pub k: usize,
    /// Print one object per question, each on its own line
    #[arg(long)]
    pub json: bool,
}

/// Count how many analogy questions are answered correctly
#[derive(Debug, Args)]
#[command(
    after_help = "The questions are a text file like that of word2vec: `: name` begins a section, and every other
line has four words. The fourth is the right answer.

Examples:
  weighbridge evaluate words.fifu questions-words.txt
  weighbridge evaluate words.fifu questions.txt --json | jq .total.accuracy"
)]
pub(crate) struct Evaluate {
    /// A file of any format with words and vectors
    pub file: PathBuf,
    /// A file of questions, four words per line
    pub questions: PathBuf,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Keep some words of a file, with the subwords that they need
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  weighbridge select words.fifu wanted.txt few.fifu
  weighbridge select words.fifu wanted.txt few.fifu --ignore-unknown
  cut -f 1 counts.tsv | weighbridge select words.fifu - few.safetensors")]
pub(crate) struct Select {
    /// A file of any format with words and vectors
    pub file: PathBuf,
    /// A text file with one word per line; - is standard input
    pub words: PathBuf,
    #[command(flatten)]
    pub output: Destination,
    /// Target format; by default the output's extension decides
    #[arg(long, value_name = "FORMAT", value_parser = Named::formats())]
    pub to: Option<String>,
    /// Type to store real numbers in
    #[arg(long, value_parser = ["f32", "f16", "bf16"])]
    pub dtype: Option<String>,
    /// Proceed even if some of the words are not in the file
    #[arg(long)]
    pub ignore_unknown: bool,
    /// Print the plan, the sizes and the losses without writing
    #[arg(long, alias = "report-only")]
    pub dry_run: bool,
    /// Proceed even if something can't be kept
    #[arg(long)]
    pub allow_loss: bool,
    /// Replace existing files
    #[arg(long)]
    pub force: bool,
    #[command(flatten)]
    pub damage: super::Damage,
    #[command(flatten)]
    pub growth: super::Growth,
    /// Print the report as JSON
    #[arg(long)]
    pub json: bool,
}

/// Show the metadata of a file, or change it
#[derive(Debug, Args)]
#[command(
    after_help = "Changes replace the file in one step, or are written to --output; all else in it stays as it is.
Types: str, bool, and those of numbers, such as f32, f64, i32, i64, u32 and u64.

Examples:
  weighbridge metadata words.fifu
  weighbridge metadata words.fifu --json | jq .description
  weighbridge metadata words.fifu --set license=CC0 --remove draft
  weighbridge metadata model.oinf --set rate=0.5 --set steps:i64=100
  weighbridge metadata model.oinf --set-size B=8
  weighbridge metadata minilm.weights --set model_version=2 -o new.weights"
)]
pub(crate) struct Metadata {
    /// A file of any format, a Hugging Face model directory, or the name of a model
    #[arg(add = super::complete::files_and_models())]
    pub file: PathBuf,
    #[command(flatten)]
    pub edits: MetadataEdits,
    /// Write to this file and leave the other as it is
    #[arg(long, short, value_name = "OUT", alias = "out")]
    pub output: Option<PathBuf>,
    /// Print the plan, the sizes and the losses without writing
    #[arg(long, alias = "report-only")]
    pub dry_run: bool,
    /// Proceed even if something can't be kept
    #[arg(long)]
    pub allow_loss: bool,
    /// Replace an existing --output
    #[arg(long)]
    pub force: bool,
    #[command(flatten)]
    pub damage: super::Damage,
    #[command(flatten)]
    pub growth: super::Growth,
    /// Print the metadata, or the report of a change, as JSON
    #[arg(long)]
    pub json: bool,
}
