//! The verb that stores weights in fewer bits.

use super::Named;
use clap::Args;
use std::path::{Path, PathBuf};
use weighbridge::quantize::Method;

/// Store the weights of a model in fewer bits, and say what that cost
#[derive(Debug, Args)]
#[command(
    after_help = "Methods, with bits per weight: q8 8.5, q4 4.5, k6 6.3, k4 4.3, k3 3.3, k2 2.3 (a scale for every
32 values; MCF), int8 8, int4 4 (one scale for a whole tensor; MCF), i8 8 (rows of unit length;
i8bin), pq and opq 0.8 (parts of ten values, plain or rotated; finalfusion).

What most people mean by int8 is q8: int8 and int4 have a single scale for a whole tensor, so that a
few large weights spoil all others. They are for readers that want plain integers.

Examples:
  weighbridge quantize minilm minilm.mcf
  weighbridge quantize all-MiniLM-L6-v2/ minilm.mcf --method k4
  weighbridge quantize minilm small.mcf --method k4 --override '*embeddings*=q8'
  weighbridge quantize minilm small.mcf --method k4 --calibrate-with texts.txt
  weighbridge quantize minilm --method k3 --dry-run --json | jq .relative_rmse
  weighbridge quantize vectors.npy embeddings.i8bin --method i8 --normalize
  weighbridge quantize words.fifu small.fifu --method opq --subquantizers 30"
)]
pub(crate) struct Quantize {
    /// A file, a Hugging Face model directory, or the name of a model
    #[arg(add = super::complete::files_and_models())]
    pub input: PathBuf,
    /// What to write: an .mcf file, .i8bin with the method i8, .fifu with pq and opq
    #[arg(value_name = "OUT", required_unless_present_any = ["output", "dry_run"])]
    out: Option<PathBuf>,
    /// The same as OUT
    #[arg(long, short, value_name = "OUT", alias = "out", conflicts_with = "out")]
    output: Option<PathBuf>,
    /// How to store the values
    #[arg(long, default_value = Method::USUAL, value_parser = Named::methods())]
    pub method: String,
    /// Quantize only tensors whose names match (repeatable); the others are kept
    #[arg(long, value_name = "GLOB")]
    pub select: Vec<String>,
    /// Keep tensors whose names match as they are (repeatable)
    #[arg(long, value_name = "GLOB")]
    pub exclude: Vec<String>,
    /// Another method, or keep, for tensors whose names match (repeatable; the last match counts)
    #[arg(long = "override", value_name = "GLOB=METHOD", value_parser = method_override)]
    pub overrides: Vec<(String, Method)>,
    /// Keep tensors of fewer bytes as they are
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub min_bytes: u64,
    /// Clamp values to these bounds first; by default to the largest magnitude of each tensor
    #[arg(long, value_name = "MIN,MAX", value_parser = bounds, allow_hyphen_values = true)]
    pub clip: Option<(f32, f32)>,
    /// best looks for the smallest error; reference does what the reference tool does
    #[arg(long, value_parser = ["best", "reference"], default_value = "best")]
    pub encoder: String,
    /// For int8 and int4: weights lie around zero, activations anywhere
    #[arg(long, value_parser = ["weights", "activations"], default_value = "weights")]
    pub domain: String,
    /// A file with a number for each column of a tensor: how much its error counts
    #[arg(long, value_name = "FILE")]
    pub importance: Option<PathBuf>,
    /// Calibrate with the lines of a text file, instead of the English sentences that
    /// are built in
    #[arg(long, value_name = "FILE")]
    pub calibrate_with: Option<PathBuf>,
    /// Round weights by themselves; else those of models that `embed` can use are rounded so that the
    /// vectors of texts stay close
    #[arg(long, conflicts_with = "calibrate_with")]
    pub no_calibrate: bool,
    /// For pq and opq: parts of a row, one byte each; by default parts of about ten values
    #[arg(long, value_name = "M")]
    pub subquantizers: Option<u64>,
    /// For pq and opq: bits of a code, 1 to 8
    #[arg(long, value_name = "N", default_value_t = 8)]
    pub bits: u32,
    /// For pq and opq: other seeds give other codebooks, about as good
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    #[command(flatten)]
    pub records: super::RecordsFile,
    /// List all tensors, not the ten with the largest errors
    #[arg(long)]
    pub all: bool,
    /// Print the report without writing
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

impl Quantize {
    /// Where to write, if that was said.
    pub(crate) fn output(&self) -> Option<&Path> {
        self.out.as_deref().or(self.output.as_deref())
    }
}

fn method_override(text: &str) -> Result<(String, Method), String> {
    // Names may have an = in them, methods have none.
    let (glob, name) =
        text.rsplit_once('=').ok_or("a pattern and a method separated by = are needed")?;
    let method = Method::from_name(name).map_or_else(|| Method::named(name), Ok);
    let method = method.map_err(|error| crate::hints::sentence(&error))?;
    Ok((glob.to_owned(), method))
}

fn bounds(text: &str) -> Result<(f32, f32), String> {
    let number = |t: &str| t.trim().parse::<f32>().map_err(|e| format!("{t:?}: {e}"));
    match text.split_once(',') {
        Some((low, high)) => Ok((number(low)?, number(high)?)),
        None => Err("two numbers separated by a comma are needed".to_owned()),
    }
}
