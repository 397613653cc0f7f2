//! What quantizing made smaller, and what it cost.

use super::{ErrorFigures, ErrorSums, VectorChange};
use serde::Serialize;
use weighbridge_format::Container;
use weighbridge_format::model::{Encoding, Scaling};
use weighbridge_format::plan::Plan;

/// What quantizing made smaller, and what it cost. Its JSON is described in docs/json.md.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct QuantizeReport {
    /// Bytes of all tensors before, with their scales, and of the planned files after.
    pub bytes_before: u64,
    /// Bytes of the planned files.
    pub bytes_after: u64,
    /// Of all quantized tensors together.
    pub bits_per_weight: f64,
    /// The error of all quantized tensors together.
    #[serde(flatten)]
    pub loss: ErrorFigures,
    /// The quantized tensors, the largest error first.
    pub tensors: Vec<QuantizedTensor>,
    /// The tensors that stay as they are.
    pub kept: Vec<Kept>,
    /// The biases that calibrating changed, so that errors are zero on average.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub adjusted: Vec<String>,
    /// The share of the ten nearest rows that are still among them: of product quantization, and what
    /// was measured of a file that was written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recall_at_10: Option<f64>,
    /// Of a model that the encoder can use: what became of its vectors.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vectors: Option<VectorChange>,
    /// The same, if the model was calibrated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub calibrated: Option<VectorChange>,
}

/// A tensor in its new form.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct QuantizedTensor {
    /// Its name.
    pub name: String,
    /// The method that it got.
    pub method: String,
    /// Its shape.
    pub shape: Vec<u64>,
    /// Its bytes before.
    pub bytes_before: u64,
    /// Codes and scales, with the padding between them.
    pub bytes_after: u64,
    /// The bytes in bits, over the number of values.
    pub bits_per_weight: f64,
    /// Its error.
    #[serde(flatten)]
    pub loss: ErrorFigures,
}

/// A tensor that stays as it is.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Kept {
    /// Its name.
    pub name: String,
    /// Why.
    #[serde(skip)]
    pub reason: KeptReason,
    /// Why, for people.
    pub why: String,
}

/// Why a tensor stays as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum KeptReason {
    /// A pattern excludes it.
    Excluded,
    /// Other tensors were selected.
    NotSelected,
    /// An override keeps it.
    Overridden,
    /// It can't be quantized.
    Unsuitable,
}

impl QuantizeReport {
    /// `done` are the tensors that have a target, with their errors.
    pub(super) fn new(
        container: &Container,
        plan: &Plan,
        done: &[(usize, ErrorSums)],
        kept: Vec<Kept>,
    ) -> QuantizeReport {
        let stored = |encoding: &Encoding, data: u64| {
            data + match encoding {
                // A scale, and a zero point where there is one, each in a region of its own.
                Encoding::Scaled(s) => match &s.scaling {
                    Scaling::Affine { zero_points: None, .. } => 64,
                    _ => 128,
                },
                other => other.side_len(),
            }
        };
        // Where other formats have the scales of whole tensors is theirs to know.
        let before = |t: &weighbridge_format::Tensor| {
            let data = t.stored_len().unwrap_or(0);
            if matches!(t.encoding, Encoding::Scaled(_)) { data } else { stored(&t.encoding, data) }
        };
        let mut tensors = Vec::new();
        for (index, errors) in done {
            let t = &container.tensors[*index];
            let Some(target) = &t.target else { continue };
            let after = stored(&target.encoding, target.encoding.byte_len(&t.shape).unwrap_or(0));
            let method = match &target.encoding {
                Encoding::Scaled(scaled) => format!("int{}", scaled.codes.bits()),
                other => other.name().into_owned(),
            };
            tensors.push(QuantizedTensor {
                name: t.name.clone(),
                method,
                shape: t.shape.clone(),
                bytes_before: before(t),
                bytes_after: after,
                bits_per_weight: bits_per_weight(after, t.count()),
                loss: errors.figures(),
            });
        }
        tensors.sort_by(|a, b| b.loss.relative_rmse.total_cmp(&a.loss.relative_rmse));
        let values = done.iter().map(|(i, _)| container.tensors[*i].count()).sum();
        let all = done.iter().fold(ErrorSums::default(), |sum, (_, errors)| sum.plus(*errors));
        QuantizeReport {
            bytes_before: container.tensors.iter().map(before).sum(),
            bytes_after: plan.size(),
            bits_per_weight: bits_per_weight(tensors.iter().map(|t| t.bytes_after).sum(), values),
            loss: all.figures(),
            tensors,
            kept,
            adjusted: Vec::new(),
            recall_at_10: None,
            vectors: None,
            calibrated: None,
        }
    }
}

#[allow(clippy::cast_precision_loss)]
pub(super) fn bits_per_weight(bytes: u64, values: u64) -> f64 {
    bytes as f64 * 8.0 / values as f64
}
