//! The sizes of a model, from its metadata or else from its tensors.

use crate::kernels::walk::Activation;
use crate::layers::Heads;
use crate::tensors::Tensors;
use weighbridge_format::spec::{Activation as Named, Gate, ModelSpec, Positions};
use weighbridge_format::wire::to_len;
use weighbridge_format::{Advice, Error};

/// The largest width of a layer.
const LARGEST_WIDTH: usize = 1 << 16;

/// What of a model's configuration is needed to run it.
#[derive(Clone, Debug)]
pub(crate) struct Config {
    /// Values of a token's vector between the layers.
    pub hidden: usize,
    pub layers: usize,
    pub heads: Heads,
    /// Values of a token's vector between the two products of the feed-forward network.
    pub intermediate: usize,
    /// Tokens that have an embedding.
    pub vocabulary_size: usize,
    /// The position of a text's first token.
    pub first_position: usize,
    /// The most tokens of a text.
    pub positions: usize,
    /// Of layer normalization.
    pub epsilon: f32,
    /// That of the feed-forward network, and the half of it that is a gate.
    pub activation: Activation,
    pub gate: Option<Gate>,
    /// Whether normalizations stand before what they belong to.
    pub norms_first: bool,
}

impl Config {
    pub(crate) fn new(spec: &ModelSpec, tensors: &Tensors) -> Result<Config, Error> {
        let (known, names) = (tensors.architecture(), tensors.names());
        let [vocabulary_size, hidden] = tensors.matrix(names.words)?;
        let (first_position, positions) = match known.positions {
            Positions::Rotary => (0, said_positions(spec)?),
            _ => table_of_positions(spec, tensors)?,
        };
        let down = |layer: usize| {
            let name = names.down.weights.first().copied().unwrap_or_default();
            format!("{}.weight", names.of(layer, name))
        };
        let [_, intermediate] = tensors.matrix(&down(0))?;
        let layers = (0..).take_while(|i| tensors.has(&down(*i))).count();
        let Some(heads) = &spec.heads else {
            return Err(Error::refused(
                "the file does not say how many attention heads the model has",
                Advice::set_to("set", "num_attention_heads=N", "adds it"),
            ));
        };
        let heads = match to_len(heads.value) {
            heads if heads > 0 && hidden % heads == 0 => heads,
            heads => {
                let what = format!("{heads} attention heads don't divide {hidden} values");
                return Err(Error::refused(what, "metadata num_attention_heads"));
            }
        };
        #[allow(clippy::cast_possible_truncation)]
        let epsilon = spec.epsilon.value as f32;
        if !epsilon.is_finite() || epsilon < 0.0 {
            let what = format!("\"{}\" is not an epsilon of a normalization", spec.epsilon.value);
            return Err(Error::refused(what, "metadata layer_norm_eps"));
        }
        let activation = match &spec.activation.value {
            Named::Gelu => Activation::Gelu,
            Named::GeluNew | Named::GeluFast | Named::GeluPytorchTanh => Activation::GeluTanh,
            Named::Relu => Activation::Relu,
            Named::Silu => Activation::Silu,
            other => {
                let (what, name) = (other.name(), format!("activation {}", other.name()));
                let what = format!("the activation \"{what}\" is not known");
                return Err(Error::unsupported(name, what, "gelu, gelu_new, relu and silu are"));
            }
        };
        // A layer that the metadata counts and the file lacks is reported by its name while
        // loading.
        let layers = match spec.layers.as_ref().map_or(layers, |fact| to_len(fact.value)) {
            layers @ 1..=1000 => layers,
            layers => {
                let what = format!("\"{layers}\" is not a number of layers");
                let where_ = "num_hidden_layers in config.json, or metadata num_layers";
                return Err(Error::refused(what, where_));
            }
        };
        // Tensors may share their bytes, so the file's size alone does not bound the weights.
        let wide = if known.gate.is_some() { 3 } else { 2 };
        let each = (4 * hidden as u128 + wide * intermediate as u128) * hidden as u128;
        let most = 16 * u128::from(tensors.file_size()) + (1 << 24);
        if hidden > LARGEST_WIDTH || intermediate > LARGEST_WIDTH || layers as u128 * each > most {
            let sizes = format!("{layers} layers of {hidden} and {intermediate} values");
            let what = format!("{sizes} are too much for this file");
            return Err(Error::refused(what, "the sizes of its tensors are wrong"));
        }
        Ok(Config {
            hidden,
            layers,
            heads: Heads { count: heads, width: hidden / heads },
            intermediate,
            vocabulary_size,
            first_position,
            positions,
            epsilon,
            activation,
            gate: known.gate,
            norms_first: known.norms_first,
        })
    }
}

/// The position of a text's first token in the table of positions, and how many there are from it on.
fn table_of_positions(spec: &ModelSpec, tensors: &Tensors) -> Result<(usize, usize), Error> {
    let [table, _] = tensors.matrix("embeddings.position_embeddings.weight")?;
    let first = to_len(spec.first_position.value);
    let positions = table.checked_sub(first).filter(|n| *n > 0).ok_or_else(|| {
        let what = format!("texts begin at position {first} of {table}");
        Error::refused(what, "pad_token_id in config.json says so")
    })?;
    Ok((first, positions))
}

/// Where no table has them, the model must say how many positions it knows.
fn said_positions(spec: &ModelSpec) -> Result<usize, Error> {
    let said = spec.positions.as_ref().filter(|fact| fact.value > 0);
    said.map(|fact| to_len(fact.value)).ok_or_else(|| {
        let what = "the file does not say how many positions the model knows";
        Error::refused(what, Advice::set_to("set", "max_position_emb=N", "adds it"))
    })
}
