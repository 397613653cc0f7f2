//! The parts that models are made of: linear layers, attention, normalization, positions.

pub(crate) mod attention;
mod distances;
pub(crate) mod linear;
mod rotary;
mod widening;

pub(crate) use attention::{Heads, Reach, attend};
pub(crate) use distances::Distances;
pub(crate) use linear::{Linear, Output, Packing};
pub(crate) use rotary::Rotary;
pub(crate) use widening::Widening;

use crate::kernels::lanes::layer_norm;
use crate::tensors::Tensors;
use linear::RoundedRows;
use weighbridge_codec::simd::Level;
use weighbridge_format::Error;

/// Memory of one thread that is used again for every batch.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    /// A vector for each token.
    pub hidden: Vec<f32>,
    pub qkv: Vec<f32>,
    pub attention: Vec<f32>,
    pub intermediate: Vec<f32>,
    /// What of `intermediate` goes through a gate.
    pub gate: Vec<f32>,
    /// Rows that are normalized before something is done with them.
    pub normalized: Vec<f32>,
    pub rounded: RoundedRows,
    pub raw: Vec<u8>,
}

/// A layer normalization.
#[derive(Debug)]
pub(crate) struct Norm {
    gains: Vec<f32>,
    shifts: Vec<f32>,
    epsilon: f32,
}

impl Norm {
    /// The normalization whose weight and bias have this name.
    pub(crate) fn load(
        tensors: &Tensors,
        name: &str,
        width: usize,
        epsilon: f32,
    ) -> Result<Norm, Error> {
        let gains = tensors.vector(&format!("{name}.weight"), width)?;
        let shifts = tensors.bias(name, width, tensors.names().norm_bias)?;
        Ok(Norm { gains, shifts, epsilon })
    }

    pub(crate) fn apply(&self, rows: &mut [f32]) {
        for row in rows.chunks_exact_mut(self.gains.len()) {
            layer_norm(Level::best(), row, &self.gains, &self.shifts, self.epsilon);
        }
    }
}
