//! The arithmetic of the encoder.
//!
//! * [`matrix`]: products of rows with packed weights, in f32.
//! * [`pairs`]: the same with rows and weights rounded to 16 bits, integers or bf16.
//! * [`bytes`]: the same with both rounded to eight bits in blocks, for processors made for that.
//! * [`tiles`]: the same with both rounded to bf16, for processors with tiles.
//! * [`lanes`]: what is around the products: activations, softmax, layer normalization, rounding.
//! * [`pairwise`]: values with others beside them: gates, turned queries and keys.
//!
//! * [`walk`]: what all products have in common, the walk over panels and rows.
//!
//! They are written once, over the vectors of `codec::simd`, and have the same bits at every level
//! that rounds multiply-adds alike.

pub(crate) mod bytes;
pub(crate) mod lanes;
pub(crate) mod matrix;
pub(crate) mod pairs;
pub(crate) mod pairwise;
#[cfg(test)]
pub(crate) mod tests;
pub(crate) mod tiles;
pub(crate) mod walk;

pub(crate) use weighbridge_codec::panel::{Lines, PANEL};

/// One over a scale. It is 0 where that would be too large for f32: values that are that small, or zeros,
/// become zeros.
fn inverse(scale: f32) -> f32 {
    if scale < 1e-30 { 0.0 } else { 1.0 / scale }
}
