//! Models whose queries and keys are turned by an angle that grows with the position, and whose
//! feed-forward network has a gate.

use super::bert::{NAMES, sizes, tensors};
use super::relatives::heads_of_64;
use super::{Architecture, Gate, Names, Product};
use crate::spec::Positions;

/// The models of nomic-embed-text: BERT with rotary positions and a gate, without biases.
pub static NOMIC: Architecture = Architecture {
    name: "NomicBERT",
    model_types: &["nomic_bert"],
    class_prefix: "NomicBert",
    prefixes: &["", "bert.", "model.", "0.auto_model."],
    names: &[
        // As they are published.
        Names {
            embedding_norm: "emb_ln",
            sign: "encoder.layers.0.attn.Wqkv.",
            start: "encoder.layers.",
            attention: Product::unbiased(&["attn.Wqkv"]),
            attention_output: Product::unbiased(&["attn.out_proj"]),
            attention_norm: "norm1",
            up: Product::unbiased(&["mlp.fc11", "mlp.fc12"]),
            down: Product::unbiased(&["mlp.fc2"]),
            norm: "norm2",
            ..NAMES
        },
        // As transformers writes them.
        Names {
            sign: "layers.0.self_attn.q_proj.",
            start: "layers.",
            attention: Product::unbiased(&[
                "self_attn.q_proj",
                "self_attn.k_proj",
                "self_attn.v_proj",
            ]),
            attention_output: Product::unbiased(&["self_attn.o_proj"]),
            attention_norm: "post_attention_layernorm",
            up: Product::unbiased(&["mlp.up_proj", "mlp.gate_proj"]),
            down: Product::unbiased(&["mlp.down_proj"]),
            norm: "post_mlp_layernorm",
            ..NAMES
        },
    ],
    distances: None,
    positions: Positions::Rotary,
    pads_positions: false,
    norms_first: false,
    gate: Some(Gate::Second),
    fixed: &[
        ("prenorm", "false"),
        ("parallel_block", "false"),
        ("use_rms_norm", "false"),
        ("causal", "false"),
        ("rotary_emb_fraction", "1.0"),
        ("rotary_emb_interleaved", "false"),
        ("scale_attn_weights", "true"),
        ("scale_attn_by_inverse_layer_idx", "false"),
        ("moe_every_n_layers", "0"),
    ],
    sizes,
    tensors,
    usual_heads: heads_of_64,
    old_name: |_| None,
};

/// ModernBERT: normalizations first, and most layers attend to the neighbours alone.
pub static MODERNBERT: Architecture = Architecture {
    name: "ModernBERT",
    model_types: &["modernbert"],
    class_prefix: "ModernBert",
    prefixes: &["", "model.", "0.auto_model."],
    names: &[Names {
        words: "embeddings.tok_embeddings.weight",
        embedding_norm: "embeddings.norm",
        final_norm: Some("final_norm"),
        norm_bias: false,
        sign: "layers.",
        start: "layers.",
        attention: Product::unbiased(&["attn.Wqkv"]),
        attention_output: Product::unbiased(&["attn.Wo"]),
        attention_norm: "attn_norm",
        up: Product::unbiased(&["mlp.Wi"]),
        down: Product::unbiased(&["mlp.Wo"]),
        norm: "mlp_norm",
    }],
    distances: None,
    positions: Positions::Rotary,
    pads_positions: false,
    norms_first: true,
    gate: Some(Gate::First),
    fixed: &[],
    sizes,
    tensors,
    usual_heads: heads_of_64,
    old_name: |_| None,
};

/// The second generation of gte: rotary positions and a gate.
pub static GTE: Architecture = Architecture {
    name: "GTE",
    model_types: &["new", "gte"],
    class_prefix: "NewModel",
    prefixes: &["", "new.", "model.", "0.auto_model."],
    names: &[Names {
        sign: "encoder.layer.0.attention.qkv_proj.",
        attention: Product::biased(&["attention.qkv_proj"]),
        attention_output: Product::biased(&["attention.o_proj"]),
        attention_norm: "attn_ln",
        up: Product::unbiased(&["mlp.up_gate_proj"]),
        down: Product::biased(&["mlp.down_proj"]),
        norm: "mlp_ln",
        ..NAMES
    }],
    distances: None,
    positions: Positions::Rotary,
    pads_positions: false,
    norms_first: false,
    gate: Some(Gate::Second),
    fixed: &[
        ("layer_norm_type", "\"layer_norm\""),
        ("logn_attention_scale", "false"),
        ("logn_attention_clip1", "false"),
    ],
    sizes,
    tensors,
    usual_heads: heads_of_64,
    old_name: |_| None,
};
