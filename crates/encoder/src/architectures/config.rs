//! The sizes of a model, from its metadata or else from its tensors.

use crate::kernels::walk::Activation;
use crate::layers::Heads;
use crate::tensors::Tensors;
use weighbridge_format::spec::{Activation as Named, ModelSpec};
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
    pub activation: Activation,
}

impl Config {
    pub(crate) fn new(spec: &ModelSpec, tensors: &Tensors) -> Result<Config, Error> {
        let [vocabulary_size, hidden] = tensors.matrix("embeddings.word_embeddings.weight")?;
        let [table, _] = tensors.matrix("embeddings.position_embeddings.weight")?;
        let first_position = to_len(spec.first_position.value);
        let positions = table.checked_sub(first_position).filter(|n| *n > 0).ok_or_else(|| {
            let what = format!("texts begin at position {first_position} of {table}");
            Error::refused(what, "pad_token_id in config.json says so")
        })?;
        let names = &tensors.architecture().layer;
        let [intermediate, _] = tensors.matrix(&format!("{}.weight", names.of(0, names.up)))?;
        let layers = (0..)
            .take_while(|i| tensors.has(&format!("{}.weight", names.of(i, names.down))))
            .count();
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
            other => {
                let (what, name) = (other.name(), format!("activation {}", other.name()));
                let what = format!("the activation \"{what}\" is not known");
                return Err(Error::unsupported(name, what, "gelu, gelu_new and relu are"));
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
        let each = (4 * hidden as u128 + 2 * intermediate as u128) * hidden as u128;
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
        })
    }
}
