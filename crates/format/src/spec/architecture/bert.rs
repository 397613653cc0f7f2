//! BERT: embeddings of words, positions and kinds of texts, then layers of self-attention and a
//! feed-forward network, each with a normalization behind it.

use super::{Architecture, ModelTensors, Names, Product, TensorSizes, TensorSpec};
use crate::model::WORD_TABLE;
use crate::spec::Positions;

/// BERT, and whatever has its tensors.
pub static BERT: Architecture = Architecture {
    name: "BERT",
    model_types: &["bert"],
    class_prefix: "Bert",
    // Models with a head on top have their encoder under a name of its own.
    prefixes: &["", "bert.", "model.", "0.auto_model."],
    names: &[NAMES],
    distances: None,
    positions: Positions::Absolute,
    pads_positions: false,
    norms_first: false,
    gate: None,
    fixed: &[],
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

pub(super) const NAMES: Names = Names {
    words: WORD_TABLE,
    embedding_norm: "embeddings.LayerNorm",
    final_norm: None,
    norm_bias: true,
    // What its relatives have more is looked for before.
    sign: "encoder.layer.",
    start: "encoder.layer.",
    attention: Product::biased(&[
        "attention.self.query",
        "attention.self.key",
        "attention.self.value",
    ]),
    attention_output: Product::biased(&["attention.output.dense"]),
    attention_norm: "attention.output.LayerNorm",
    up: Product::biased(&["intermediate.dense"]),
    down: Product::biased(&["output.dense"]),
    norm: "output.LayerNorm",
};

const POSITIONS: &str = "embeddings.position_embeddings.weight";
const TOKEN_TYPES: &str = "embeddings.token_type_embeddings.weight";

pub(super) fn sizes(tensors: &ModelTensors) -> TensorSizes {
    let (architecture, names) = (tensors.architecture, tensors.names);
    let distances = |axis| architecture.distances.and_then(|table| tensors.dimension(table, axis));
    let down = names.down.weights.first();
    let down = down.map(|name| format!("{}.weight", names.of(0, name)));
    TensorSizes {
        vocabulary: tensors.dimension(names.words, 0),
        rows: None,
        hidden: tensors.dimension(names.words, 1),
        positions: tensors.dimension(POSITIONS, 0),
        token_types: tensors.dimension(TOKEN_TYPES, 0),
        distances: distances(0),
        heads: distances(1),
        layers: tensors.layers(),
        intermediate: down.and_then(|name| tensors.dimension(&name, 1)),
    }
}

pub(super) fn tensors(
    architecture: &Architecture,
    names: &Names,
    sizes: &TensorSizes,
) -> Vec<TensorSpec> {
    let Some(hidden) = sizes.hidden else { return Vec::new() };
    let mut list = Vec::new();
    let mut add = |name: String, shape: Option<Vec<u64>>, required: bool| {
        // Without a size there is no tensor to take it from: any would do.
        list.push(TensorSpec { name, shape: shape.unwrap_or_default(), required });
    };
    let has_positions = architecture.positions != Positions::Rotary;
    for (name, rows, required) in [
        (names.words, sizes.vocabulary, true),
        (POSITIONS, sizes.positions, has_positions),
        // Some are stored without: all texts are of one kind then.
        (TOKEN_TYPES, sizes.token_types, false),
    ] {
        add(name.to_owned(), rows.map(|rows| vec![rows, hidden]), required);
    }
    if let Some(table) = architecture.distances {
        let shape = sizes.distances.zip(sizes.heads).map(|(rows, heads)| vec![rows, heads]);
        add(table.to_owned(), shape, true);
    }
    for norm in [Some(names.embedding_norm), names.final_norm].into_iter().flatten() {
        add(format!("{norm}.weight"), Some(vec![hidden]), true);
        add(format!("{norm}.bias"), Some(vec![hidden]), names.norm_bias);
    }
    let inner = sizes.intermediate;
    let wide = inner.map(|n| if architecture.gate.is_some() { n.saturating_mul(2) } else { n });
    let three = hidden.saturating_mul(3);
    for number in 0..sizes.layers.unwrap_or(0) {
        for (product, rows, columns) in [
            (&names.attention, Some(three), Some(hidden)),
            (&names.attention_output, Some(hidden), Some(hidden)),
            (&names.up, wide, Some(hidden)),
            (&names.down, Some(hidden), inner),
        ] {
            for name in product.weights {
                let rows = rows.map(|rows| rows / product.weights.len() as u64);
                let weight = rows.zip(columns).map(|(rows, columns)| vec![rows, columns]);
                let name = names.of(number, name);
                add(format!("{name}.weight"), weight, true);
                add(format!("{name}.bias"), rows.map(|rows| vec![rows]), product.bias);
            }
        }
        for (place, norm) in [names.attention_norm, names.norm].into_iter().enumerate() {
            // What comes before the first layer is normalized already.
            let required = !(architecture.norms_first && number == 0 && place == 0);
            let norm = names.of(number, norm);
            add(format!("{norm}.weight"), Some(vec![hidden]), required);
            add(format!("{norm}.bias"), Some(vec![hidden]), required && names.norm_bias);
        }
    }
    list
}
