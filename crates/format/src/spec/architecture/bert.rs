//! BERT: embeddings of words, positions and kinds of texts, then layers of self-attention and a
//! feed-forward network, each with a normalization behind it.

use super::{Architecture, LayerNames, ModelTensors, TensorSizes, TensorSpec};
use crate::model::WORD_TABLE;
use crate::spec::Positions;

/// BERT, and whatever has its tensors.
pub static BERT: Architecture = Architecture {
    name: "BERT",
    model_types: &["bert"],
    class_prefix: "Bert",
    // Models with a head on top have their encoder under a name of its own.
    prefixes: &["", "bert.", "model.", "0.auto_model."],
    word_embeddings: WORD_TABLE,
    layer: LAYER,
    distances: None,
    positions: Positions::Absolute,
    pads_positions: false,
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

pub(super) const LAYER: LayerNames = LayerNames {
    start: "encoder.layer.",
    attention: ["attention.self.query", "attention.self.key", "attention.self.value"],
    attention_output: "attention.output.dense",
    attention_norm: "attention.output.LayerNorm",
    up: "intermediate.dense",
    down: "output.dense",
    norm: "output.LayerNorm",
};

const POSITIONS: &str = "embeddings.position_embeddings.weight";
const TOKEN_TYPES: &str = "embeddings.token_type_embeddings.weight";

pub(super) fn sizes(tensors: &ModelTensors) -> TensorSizes {
    let layer = &tensors.architecture.layer;
    TensorSizes {
        vocabulary: tensors.dimension(WORD_TABLE, 0),
        rows: None,
        hidden: tensors.dimension(WORD_TABLE, 1),
        positions: tensors.dimension(POSITIONS, 0),
        token_types: tensors.dimension(TOKEN_TYPES, 0),
        distances: tensors.architecture.distances.and_then(|table| tensors.dimension(table, 0)),
        heads: tensors.architecture.distances.and_then(|table| tensors.dimension(table, 1)),
        layers: tensors.layers(),
        intermediate: tensors.dimension(&format!("{}.weight", layer.of(0, layer.up)), 0),
    }
}

pub(super) fn tensors(architecture: &Architecture, sizes: &TensorSizes) -> Vec<TensorSpec> {
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
    if let Some(table) = architecture.distances {
        let shape = sizes.distances.zip(sizes.heads).map(|(rows, heads)| vec![rows, heads]);
        add(table.to_owned(), shape.unwrap_or_default(), true);
    }
    for name in ["weight", "bias"] {
        add(format!("embeddings.LayerNorm.{name}"), vec![hidden], true);
    }
    let layer = &architecture.layer;
    let [query, key, value] = layer.attention;
    for number in 0..sizes.layers.unwrap_or(0) {
        let inner = sizes.intermediate;
        for (name, rows, columns) in [
            (query, Some(hidden), Some(hidden)),
            (key, Some(hidden), Some(hidden)),
            (value, Some(hidden), Some(hidden)),
            (layer.attention_output, Some(hidden), Some(hidden)),
            (layer.up, inner, Some(hidden)),
            (layer.down, Some(hidden), inner),
        ] {
            let weight = rows.zip(columns).map(|(rows, columns)| vec![rows, columns]);
            let bias = rows.map(|rows| vec![rows]);
            let name = layer.of(number, name);
            add(format!("{name}.weight"), weight.unwrap_or_default(), true);
            add(format!("{name}.bias"), bias.unwrap_or_default(), true);
        }
        for name in [layer.attention_norm, layer.norm] {
            for part in ["weight", "bias"] {
                add(format!("{}.{part}", layer.of(number, name)), vec![hidden], true);
            }
        }
    }
    list
}
