//! The classifier of a cross-encoder: the first token's vector to scores.

use super::{Squash, apply};
use crate::layers::{Linear, Packing};
use weighbridge_codec::memory::Arena;
use weighbridge_format::spec::ModelSpec;
use weighbridge_format::wire::to_len;
use weighbridge_format::{Container, Error, Tensor};

/// The most scores that a pair may have.
const MOST_LABELS: usize = 1 << 12;

/// How the architectures name the two products of a classifier, and what is between them.
const NAMES: [(&str, &str, Squash); 3] = [
    ("classifier.dense", "classifier.out_proj", Squash::Tanh),
    ("pre_classifier", "classifier", Squash::Relu),
    ("pooler.dense", "classifier", Squash::Tanh),
];

/// Two products, and what is done to their results.
#[derive(Debug)]
pub(crate) struct Classifier {
    dense: Linear,
    between: Squash,
    out: Linear,
    last: Squash,
}

/// The tensors of a classifier.
pub(crate) struct Found<'a> {
    dense: &'a Tensor,
    dense_bias: &'a Tensor,
    out: &'a Tensor,
    out_bias: Option<&'a Tensor>,
    between: Squash,
}

impl<'a> Found<'a> {
    /// Those of a model whose tensors have this prefix. They stand beside the encoder, or inside it.
    pub(crate) fn of(container: &'a Container, prefix: &str) -> Option<Found<'a>> {
        let find = |name: String| {
            let found = container.tensor(&name).filter(|t| t.has_data());
            found.or_else(|| container.tensor(&format!("{prefix}{name}")).filter(|t| t.has_data()))
        };
        NAMES.iter().find_map(|(first, second, between)| {
            Some(Found {
                dense: find(format!("{first}.weight"))?,
                dense_bias: find(format!("{first}.bias"))?,
                out: find(format!("{second}.weight")).filter(|t| t.shape.len() == 2)?,
                out_bias: find(format!("{second}.bias")),
                between: *between,
            })
        })
    }

    /// How many scores a pair of texts has.
    pub(crate) fn labels(&self) -> u64 {
        self.out.shape.first().copied().unwrap_or(0)
    }
}

impl Classifier {
    /// Loads the classifier of a model whose tensors have this prefix.
    ///
    /// # Errors
    /// If there is none, or it is not what it should be.
    pub(crate) fn load(
        spec: &ModelSpec,
        container: &Container,
        prefix: &str,
        hidden: usize,
    ) -> Result<Classifier, Error> {
        let Some(Found { dense, dense_bias, out, out_bias, between }) =
            Found::of(container, prefix)
        else {
            let what = "the model has no classifier that scores pairs of texts";
            let hint = "cross-encoders have one; models that embed texts have none";
            return Err(Error::unsupported("classifier", what, hint));
        };
        let dense = linear(dense, Some(dense_bias), hidden, hidden)?;
        let labels = out.shape.first().map_or(0, |n| to_len(*n));
        if labels == 0 || labels > MOST_LABELS {
            let what = format!("tensor {} has the shape {:?}", out.name, out.shape);
            return Err(Error::refused(what, format!("from 1 to {MOST_LABELS} rows")));
        }
        let out = linear(out, out_bias, hidden, labels)?;
        let last = match &spec.score_activation {
            Some(said) => Squash::from_class(&said.value, "the scores")?,
            None if labels == 1 => Squash::Sigmoid,
            None => Squash::Identity,
        };
        Ok(Classifier { dense, between, out, last })
    }

    pub(crate) fn labels(&self) -> usize {
        self.out.columns
    }

    /// Makes scores of the vectors of a pair's tokens.
    pub(crate) fn score(&self, rows: &[f32], scores: &mut [f32]) {
        let first = &rows[..self.dense.depth.min(rows.len())];
        if first.len() < self.dense.depth {
            return;
        }
        let made = apply(&self.dense, self.between, first);
        scores.copy_from_slice(&apply(&self.out, self.last, &made));
    }
}

fn linear(
    weight: &Tensor,
    bias: Option<&Tensor>,
    depth: usize,
    columns: usize,
) -> Result<Linear, Error> {
    let shaped = |tensor: &Tensor, shape: &[usize]| {
        if tensor.shape.iter().map(|n| to_len(*n)).eq(shape.iter().copied()) {
            return tensor.check_values();
        }
        let what = format!("tensor {} has the shape {:?}", tensor.name, tensor.shape);
        Err(Error::refused(what, format!("{shape:?} was expected")))
    };
    shaped(weight, &[columns, depth])?;
    let bias = match bias {
        None => vec![0.0; columns],
        Some(bias) => {
            shaped(bias, &[columns])?;
            bias.values_f32(0, columns)?
        }
    };
    Linear::new(&[(weight, bias)], depth, Packing::F32, &Arena::default())
}
