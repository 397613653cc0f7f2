//! Static models: a table of the tokens' vectors and nothing else. The vector of a text is their mean.

use super::bert::NAMES;
use super::{Architecture, ModelTensors, Names, Product, TensorSizes, TensorSpec};
use crate::model::MATRIX;
use crate::spec::Positions;

/// Model2Vec and potion. Tokens may share rows, and have weights.
pub static MODEL2VEC: Architecture = Architecture {
    name: "Model2Vec",
    model_types: &["model2vec"],
    class_prefix: "StaticModel",
    prefixes: &[""],
    names: &[Names { words: MATRIX, ..NO_LAYERS }],
    distances: None,
    positions: Positions::Nowhere,
    pads_positions: false,
    norms_first: false,
    gate: None,
    fixed: &[],
    sizes,
    tensors,
    usual_heads: |_| None,
    old_name: |_| None,
};

/// The module `StaticEmbedding` of sentence-transformers.
pub static STATIC_EMBEDDING: Architecture = Architecture {
    name: "StaticEmbedding",
    model_types: &["static-embedding"],
    class_prefix: "StaticEmbedding",
    prefixes: &[""],
    names: &[Names { words: "embedding.weight", ..NO_LAYERS }],
    distances: None,
    positions: Positions::Nowhere,
    pads_positions: false,
    norms_first: false,
    gate: None,
    fixed: &[],
    sizes,
    tensors,
    usual_heads: |_| None,
    // It loads what Model2Vec has saved, too.
    old_name: |name| (name == "embedding.weight").then(|| MATRIX.to_owned()),
};

/// The rows that tokens have, where several share one.
const MAPPING: &str = "mapping";
/// What rows are multiplied by, a number a token.
const WEIGHTS: &str = "weights";

const NO_LAYERS: Names = Names {
    start: "",
    attention: Product::unbiased(&[]),
    attention_output: Product::unbiased(&[]),
    up: Product::unbiased(&[]),
    down: Product::unbiased(&[]),
    ..NAMES
};

fn sizes(tensors: &ModelTensors) -> TensorSizes {
    let table = tensors.names.words;
    let rows = tensors.dimension(table, 0);
    TensorSizes {
        vocabulary: tensors.dimension(MAPPING, 0).or(rows),
        rows,
        hidden: tensors.dimension(table, 1),
        ..TensorSizes::default()
    }
}

fn tensors(_: &Architecture, names: &Names, sizes: &TensorSizes) -> Vec<TensorSpec> {
    let (Some(tokens), Some(hidden)) = (sizes.vocabulary, sizes.hidden) else { return Vec::new() };
    let tensor = |name: &str, shape: Vec<u64>, required: bool| TensorSpec {
        name: name.to_owned(),
        shape,
        required,
    };
    vec![
        tensor(names.words, vec![sizes.rows.unwrap_or(tokens), hidden], true),
        tensor(MAPPING, vec![tokens], false),
        tensor(WEIGHTS, vec![tokens], false),
    ]
}
