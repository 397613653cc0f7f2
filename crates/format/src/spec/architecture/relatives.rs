//! Models that compute as BERT does, with other names, other positions, or both.

use super::bert::{LAYER, sizes, tensors};
use super::{Architecture, LayerNames};
use crate::model::WORD_TABLE;
use crate::spec::Positions;

/// RoBERTa and XLM-RoBERTa: BERT whose positions begin behind the number of the padding token.
pub static ROBERTA: Architecture = Architecture {
    name: "RoBERTa",
    model_types: &["roberta", "xlm-roberta", "camembert"],
    class_prefix: "Roberta",
    prefixes: &["", "roberta.", "model.", "0.auto_model."],
    word_embeddings: WORD_TABLE,
    layer: LAYER,
    distances: None,
    positions: Positions::Absolute,
    pads_positions: true,
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
    word_embeddings: WORD_TABLE,
    layer: LayerNames {
        start: "transformer.layer.",
        attention: ["attention.q_lin", "attention.k_lin", "attention.v_lin"],
        attention_output: "attention.out_lin",
        attention_norm: "sa_layer_norm",
        up: "ffn.lin1",
        down: "ffn.lin2",
        norm: "output_layer_norm",
    },
    distances: None,
    positions: Positions::Absolute,
    pads_positions: false,
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
    word_embeddings: WORD_TABLE,
    layer: LayerNames {
        start: "encoder.layer.",
        attention: ["attention.attn.q", "attention.attn.k", "attention.attn.v"],
        attention_output: "attention.attn.o",
        attention_norm: "attention.LayerNorm",
        up: "intermediate.dense",
        down: "output.dense",
        norm: "output.LayerNorm",
    },
    distances: Some("encoder.relative_attention_bias.weight"),
    positions: Positions::RelativeBuckets,
    pads_positions: true,
    sizes,
    tensors,
    usual_heads: heads_of_64,
    old_name: |_| None,
};

/// A head has 64 values in nearly all of them.
fn heads_of_64(hidden: u64) -> Option<u64> {
    (hidden >= 64 && hidden.is_multiple_of(64)).then_some(hidden / 64)
}
