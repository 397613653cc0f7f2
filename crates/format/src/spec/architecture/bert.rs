//! BERT: embeddings of words, positions and kinds of texts, then layers of self-attention and a
//! feed-forward network, each with a normalization behind it.

use super::{Architecture, ModelTensors, TensorSizes, TensorSpec};
use crate::model::WORD_TABLE;

/// BERT, and whatever has its tensors.
pub static BERT: Architecture = Architecture {
    name: "BERT",
    model_types: &["bert"],
    class_prefix: "Bert",
    // Models with a head on top have their encoder under a name of its own.
    prefixes: &["", "bert.", "model.", "0.auto_model."],
    word_embeddings: WORD_TABLE,
    layers: "encoder.layer.",
    sizes,
    tensors,
    usual_heads: |hidden| match hidden {
        128 => Some(2),
        256 => Some(4),
        312 | 384 | 768 => Some(12),
        512 => Some(8),
        1024 => Some(16),
        _ => None,
    },
    // As the first conversions from TensorFlow named them.
    old_name: |name| {
        let old = name.replace("LayerNorm.weight", "LayerNorm.gamma");
        let old = old.replace("LayerNorm.bias", "LayerNorm.beta");
        (old != name).then_some(old)
    },
};

const POSITIONS: &str = "embeddings.position_embeddings.weight";
const TOKEN_TYPES: &str = "embeddings.token_type_embeddings.weight";

fn sizes(tensors: &ModelTensors) -> TensorSizes {
    TensorSizes {
        vocabulary: tensors.dimension(WORD_TABLE, 0),
        hidden: tensors.dimension(WORD_TABLE, 1),
        positions: tensors.dimension(POSITIONS, 0),
        token_types: tensors.dimension(TOKEN_TYPES, 0),
        layers: tensors.layers(),
        intermediate: tensors.dimension("encoder.layer.0.intermediate.dense.weight", 0),
    }
}

fn tensors(sizes: &TensorSizes) -> Vec<TensorSpec> {
    let Some(hidden) = sizes.hidden else { return Vec::new() };
    let mut list = Vec::new();
    let mut add = |name: String, shape: Vec<u64>, required: bool| {
        list.push(TensorSpec { name, shape, required });
    };
    for (name, rows, required) in [
        (WORD_TABLE, sizes.vocabulary, true),
        (POSITIONS, sizes.positions, true),
        // Some are stored without: all texts are of one kind then.
        (TOKEN_TYPES, sizes.token_types, false),
    ] {
        // Without a size there is no tensor to take it from: any would do.
        add(name.to_owned(), rows.map(|rows| vec![rows, hidden]).unwrap_or_default(), required);
    }
    for name in ["weight", "bias"] {
        add(format!("embeddings.LayerNorm.{name}"), vec![hidden], true);
    }
    for layer in 0..sizes.layers.unwrap_or(0) {
        let inner = sizes.intermediate;
        for (name, rows, columns) in [
            ("attention.self.query", Some(hidden), Some(hidden)),
            ("attention.self.key", Some(hidden), Some(hidden)),
            ("attention.self.value", Some(hidden), Some(hidden)),
            ("attention.output.dense", Some(hidden), Some(hidden)),
            ("intermediate.dense", inner, Some(hidden)),
            ("output.dense", Some(hidden), inner),
        ] {
            let weight = rows.zip(columns).map(|(rows, columns)| vec![rows, columns]);
            let bias = rows.map(|rows| vec![rows]);
            let name = format!("encoder.layer.{layer}.{name}");
            add(format!("{name}.weight"), weight.unwrap_or_default(), true);
            add(format!("{name}.bias"), bias.unwrap_or_default(), true);
        }
        for name in ["attention.output.LayerNorm", "output.LayerNorm"] {
            for part in ["weight", "bias"] {
                add(format!("encoder.layer.{layer}.{name}.{part}"), vec![hidden], true);
            }
        }
    }
    list
}
