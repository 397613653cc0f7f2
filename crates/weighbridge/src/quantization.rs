//! How the stored numbers of a quantized tensor become values.

use serde::Serialize;
use weighbridge_format::Encoding;
use weighbridge_format::model::Scaling;

/// How stored numbers become values. Its JSON is described in docs/json.md.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
#[non_exhaustive]
pub enum Quantization {
    /// A value is a code divided by something.
    Divisor {
        /// By what.
        divisor: f32,
    },
    /// A value is `scale * (code - zero_point)`.
    Scales {
        /// The axis with a scale for each index; none if there is one scale for all.
        axis: Option<usize>,
        /// How many scales there are.
        count: usize,
        /// The first of them, up to [`Quantization::LISTED`].
        scales: Vec<f32>,
        /// As many zero points, if there are any.
        #[serde(skip_serializing_if = "Option::is_none")]
        zero_points: Option<Vec<f64>>,
    },
    /// Nothing says how: the values are not known.
    Unknown,
    /// Values share scales with their neighbours in a row.
    Blocks {
        /// How many values share them at most.
        values: usize,
    },
    /// Parts of rows are the nearest of some vectors.
    Parts {
        /// Parts of a row.
        parts: u64,
        /// Vectors that each part is chosen from.
        centroids: u64,
        /// Rows were rotated first.
        rotated: bool,
        /// Rows have lengths that are stored apart.
        norms: bool,
    },
}

impl Quantization {
    /// The most scales that are listed.
    pub const LISTED: usize = 4096;

    /// Of an encoding; none of plain values.
    pub fn of(encoding: &Encoding) -> Option<Quantization> {
        Some(match encoding {
            Encoding::Scaled(scaled) => match &scaled.scaling {
                Scaling::Unknown => Quantization::Unknown,
                Scaling::Divisor(divisor) => Quantization::Divisor { divisor: *divisor },
                Scaling::Offset { scale, zero } => Quantization::Scales {
                    axis: None,
                    count: 1,
                    scales: vec![*scale],
                    zero_points: Some(vec![(*zero).into()]),
                },
                Scaling::Affine { axis, scales, zero_points } => Quantization::Scales {
                    axis: *axis,
                    count: scales.len(),
                    scales: scales.iter().copied().take(Self::LISTED).collect(),
                    zero_points: zero_points
                        .as_ref()
                        .map(|z| z.iter().map(|z| f64::from(*z)).take(Self::LISTED).collect()),
                },
            },
            Encoding::Blocks(blocks) => Quantization::Blocks { values: blocks.codec.cut() },
            Encoding::Product(product) => Quantization::Parts {
                parts: product.parts,
                centroids: product.centroids,
                rotated: product.projection.is_some(),
                norms: product.norms.is_some(),
            },
            _ => return None,
        })
    }
}
