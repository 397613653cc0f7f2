//! The sizes of a model, from its metadata or else from its tensors.

use super::tensors::Tensors;
use crate::kernels::walk::Activation;
use weighbridge_format::{Advice, Container, Error};

/// The largest width of a layer.
const LARGEST_WIDTH: usize = 1 << 16;

/// What of a model's configuration is needed to run it.
#[derive(Clone, Debug)]
pub(crate) struct Config {
    /// Values of a token's vector between the layers.
    pub hidden: usize,
    pub layers: usize,
    pub heads: usize,
    /// Values of a token's vector between the two products of the feed-forward network.
    pub intermediate: usize,
    /// Tokens that have an embedding.
    pub vocabulary_size: usize,
    /// The most tokens of a text.
    pub positions: usize,
    /// Of layer normalization.
    pub epsilon: f32,
    pub activation: Activation,
}

impl Config {
    pub(crate) fn read(container: &Container, tensors: &Tensors) -> Result<Config, Error> {
        let [vocabulary_size, hidden] = tensors.matrix("embeddings.word_embeddings.weight")?;
        let [positions, _] = tensors.matrix("embeddings.position_embeddings.weight")?;
        let [intermediate, _] = tensors.matrix("encoder.layer.0.intermediate.dense.weight")?;
        let layers = (0..)
            .take_while(|i| tensors.has(&format!("encoder.layer.{i}.output.dense.weight")))
            .count();
        let heads = match container.text("num_attention_heads") {
            Some(text) => {
                text.parse().ok().filter(|&n| n > 0 && hidden % n == 0).ok_or_else(|| {
                    let what = format!("{text} attention heads don't divide {hidden} values");
                    Error::refused(what, "metadata num_attention_heads")
                })?
            }
            None => default_heads(hidden)?,
        };
        let epsilon = match container.text("layer_norm_eps") {
            None => 1e-12,
            Some(text) => {
                text.parse().ok().filter(|e: &f32| e.is_finite() && *e >= 0.0).ok_or_else(|| {
                    let what = format!("\"{text}\" is not an epsilon of a normalization");
                    Error::refused(what, "metadata layer_norm_eps")
                })?
            }
        };
        let activation = match container.text("hidden_act").unwrap_or("gelu") {
            "gelu" => Activation::Gelu,
            "gelu_new" | "gelu_pytorch_tanh" | "gelu_fast" => Activation::GeluTanh,
            "relu" => Activation::Relu,
            other => {
                let what = format!("the activation \"{other}\" is not known");
                let name =
                    format!("activation {}", container.text("hidden_act").unwrap_or_default());
                return Err(Error::unsupported(name, what, "gelu, gelu_new and relu are"));
            }
        };
        // A layer that the metadata counts and the file lacks is reported by its name while
        // loading.
        let layers = match container.text("num_layers") {
            None => layers,
            Some(text) => {
                text.parse().ok().filter(|n| (1..=1000).contains(n)).ok_or_else(|| {
                    let what = format!("\"{text}\" is not a number of layers");
                    Error::refused(what, "num_hidden_layers in config.json, or metadata num_layers")
                })?
            }
        };
        // Tensors may share their bytes, so the file's size alone does not bound the weights.
        let each = (4 * hidden as u128 + 2 * intermediate as u128) * hidden as u128;
        let most = 16 * u128::from(container.size) + (1 << 24);
        if hidden > LARGEST_WIDTH || intermediate > LARGEST_WIDTH || layers as u128 * each > most {
            let sizes = format!("{layers} layers of {hidden} and {intermediate} values");
            let what = format!("{sizes} are too much for this file");
            return Err(Error::refused(what, "the sizes of its tensors are wrong"));
        }
        Ok(Config {
            hidden,
            layers,
            heads,
            intermediate,
            vocabulary_size,
            positions,
            epsilon,
            activation,
        })
    }

    /// Values of a query, key or value in one attention head.
    pub(crate) fn head_width(&self) -> usize {
        self.hidden / self.heads
    }
}

/// The number of heads where the metadata does not have it: that of BERT and MiniLM of this size.
fn default_heads(hidden: usize) -> Result<usize, Error> {
    match hidden {
        128 => Ok(2),
        256 => Ok(4),
        312 | 384 | 768 => Ok(12),
        512 => Ok(8),
        1024 => Ok(16),
        _ => Err(Error::refused(
            "the file does not say how many attention heads the model has",
            Advice::set_to("set", "num_attention_heads=N", "adds it"),
        )),
    }
}
