//! Models that compute as BERT does, with other names, other positions, or both.

use super::bert::{NAMES, sizes, tensors};
use super::{Architecture, Names, Product};
use crate::spec::Positions;

/// RoBERTa and XLM-RoBERTa: BERT whose positions begin behind the number of the padding token.
pub static ROBERTA: Architecture = Architecture {
    name: "RoBERTa",
    model_types: &["roberta", "xlm-roberta", "camembert"],
    class_prefix: "Roberta",
    prefixes: &["", "roberta.", "model.", "0.auto_model."],
    names: &[NAMES],
    distances: None,
    positions: Positions::Absolute,
    pads_positions: true,
    norms_first: false,
    gate: None,
    fixed: &[],
    sizes,
    tensors,
    usual_heads: heads_of_64,
    old_name: |_| None,
};

/// DistilBERT: fewer layers, no kinds of texts, and names of its own.
pub static DISTILBERT: Architecture = Architecture {
    name: "DistilBERT",
    model_types: &["distilbert"],
    class_prefix: "DistilBert",
    prefixes: &["", "distilbert.", "model.", "0.auto_model."],
    names: &[Names {
        sign: "transformer.layer.",
        start: "transformer.layer.",
        attention: Product::biased(&["attention.q_lin", "attention.k_lin", "attention.v_lin"]),
        attention_output: Product::biased(&["attention.out_lin"]),
        attention_norm: "sa_layer_norm",
        up: Product::biased(&["ffn.lin1"]),
        down: Product::biased(&["ffn.lin2"]),
        norm: "output_layer_norm",
        ..NAMES
    }],
    distances: None,
    positions: Positions::Absolute,
    pads_positions: false,
    norms_first: false,
    gate: None,
    fixed: &[],
    sizes,
    tensors,
    usual_heads: heads_of_64,
    old_name: |_| None,
};

/// MPNet: positions, and a number for each range of distances that is added to the attention.
pub static MPNET: Architecture = Architecture {
    name: "MPNet",
    model_types: &["mpnet"],
    class_prefix: "MPNet",
    prefixes: &["", "mpnet.", "model.", "0.auto_model."],
    names: &[Names {
        sign: DISTANCES,
        attention: Product::biased(&["attention.attn.q", "attention.attn.k", "attention.attn.v"]),
        attention_output: Product::biased(&["attention.attn.o"]),
        attention_norm: "attention.LayerNorm",
        ..NAMES
    }],
    distances: Some(DISTANCES),
    positions: Positions::RelativeBuckets,
    pads_positions: true,
    norms_first: false,
    gate: None,
    fixed: &[],
    sizes,
    tensors,
    usual_heads: heads_of_64,
    old_name: |_| None,
};

const DISTANCES: &str = "encoder.relative_attention_bias.weight";

/// A head has 64 values in nearly all of them.
pub(super) fn heads_of_64(hidden: u64) -> Option<u64> {
    (hidden >= 64 && hidden.is_multiple_of(64)).then_some(hidden / 64)
}
