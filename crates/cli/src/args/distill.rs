//! The verb that makes a static model.

use super::Named;
use clap::{Args, ValueEnum};
use std::path::PathBuf;
use weighbridge::distill::RowType;

/// Make a static model out of a sentence model
#[derive(Debug, Args)]
#[command(
    after_help = "A static model has a vector for each token, and a text's vector is their mean: hundreds of times
faster than the model that it is made of, and less good. How far both agree is measured and said.
It is made as Model2Vec does it, which reads the folder that is written where OUT has no extension
or with --to hf; other formats hold the same model in one file.

Examples:
  weighbridge distill --model minilm -o static.safetensors
  weighbridge distill --model minilm -o static-model --dimensions 128
  weighbridge distill --model minilm -o small.safetensors --dtype int8
  weighbridge distill --model minilm --vocab words.txt -o static.mcf --json"
)]
pub(crate) struct Distill {
    /// A file or directory with a sentence model, or the name of one
    #[arg(long, short, value_name = "MODEL", add = super::complete::files_and_models())]
    pub model: String,
    /// Where to write; its extension decides the format, and without one it is a folder
    #[arg(long, short, value_name = "OUT", alias = "out")]
    pub output: PathBuf,
    /// Target format; by default the output's extension decides
    #[arg(long, value_name = "FORMAT", value_parser = Named::formats())]
    pub to: Option<String>,
    /// A file with words that get a vector of their own, one per line, beside the model's tokens
    #[arg(long, value_name = "FILE")]
    pub vocab: Option<PathBuf>,
    /// Values of a vector; all where the model has no more
    #[arg(long, value_name = "D", default_value_t = 256, value_parser = super::at_least_one)]
    pub dimensions: usize,
    /// Keep only this many of the model's tokens: the first, which are the most frequent
    #[arg(long, value_name = "N", value_parser = super::at_least_one)]
    pub max_vocab: Option<usize>,
    /// How little frequent tokens count, above 0 and below 1: the smaller, the less; 0 counts all alike
    #[arg(long, value_name = "A", default_value_t = 1e-4)]
    pub sif: f64,
    /// How values are stored; int8 has a weight for each row
    #[arg(long, value_enum, default_value_t = RowTypeName::F16)]
    pub dtype: RowTypeName,
    /// Threads to use; by default all cores
    #[arg(long, value_name = "N", value_parser = super::at_least_one)]
    pub threads: Option<usize>,
    #[command(flatten)]
    pub damage: super::Damage,
    /// Replace existing files
    #[arg(long)]
    pub force: bool,
    /// Print the report as JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum RowTypeName {
    F32,
    F16,
    Int8,
}

impl From<RowTypeName> for RowType {
    fn from(name: RowTypeName) -> RowType {
        match name {
            RowTypeName::F32 => RowType::F32,
            RowTypeName::F16 => RowType::F16,
            RowTypeName::Int8 => RowType::I8,
        }
    }
}
