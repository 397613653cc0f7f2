//! The classifier of a cross-encoder: the first token's vector to scores.

use super::{Squash, apply};
use crate::layers::{Linear, Packing};
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
        // It stands beside the encoder, or inside it.
        let find = |name: &str| {
            let found = container.tensor(name).filter(|t| t.has_data());
            found.or_else(|| container.tensor(&format!("{prefix}{name}")).filter(|t| t.has_data()))
        };
        let both = |(first, second, between): &(&str, &str, Squash)| {
            let dense = find(&format!("{first}.weight"))?;
            Some((dense, find(&format!("{first}.bias"))?, second.to_string(), *between))
        };
        let has_out = |(.., second, _): &(&Tensor, &Tensor, String, Squash)| {
            find(&format!("{second}.weight")).is_some_and(|t| t.shape.len() == 2)
        };
        let Some((dense, dense_bias, second, between)) =
            NAMES.iter().filter_map(both).find(has_out)
        else {
            let what = "the model has no classifier that scores pairs of texts";
            let hint = "cross-encoders have one; models that embed texts have none";
            return Err(Error::unsupported("classifier", what, hint));
        };
        let dense = linear(dense, Some(dense_bias), hidden, hidden)?;
        let lacks = || Error::refused(format!("the model lacks the tensor {second}.weight"), "");
        let out = find(&format!("{second}.weight")).ok_or_else(lacks)?;
        let labels = out.shape.first().map_or(0, |n| to_len(*n));
        if labels == 0 || labels > MOST_LABELS {
            let what = format!("tensor {second}.weight has the shape {:?}", out.shape);
            return Err(Error::refused(what, format!("from 1 to {MOST_LABELS} rows")));
        }
        let out = linear(out, find(&format!("{second}.bias")), hidden, labels)?;
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
    Linear::new(&[(weight, bias)], depth, Packing::F32)
}
