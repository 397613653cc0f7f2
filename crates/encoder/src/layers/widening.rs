//! The first product of a feed-forward network, which widens, with or without a gate.

use super::linear::RoundedRows;
use super::{Linear, Output, Packing};
use crate::kernels::PANEL;
use crate::kernels::pairwise::multiply;
use crate::kernels::walk::Activation;
use std::ops::Range;
use weighbridge_codec::memory::Arena;
use weighbridge_codec::simd::Level;
use weighbridge_format::spec::Gate;
use weighbridge_format::{Error, Tensor};

/// Panels of a gate that are computed before they are used: their results stay in the cache.
const GATE_PANELS: usize = 16;

/// A product with an activation behind it. With a gate there are two: the results of one go through the
/// activation, and are multiplied with those of the other.
#[derive(Debug)]
pub(crate) struct Widening {
    gate: Option<Linear>,
    up: Linear,
    activation: Activation,
}

impl Widening {
    /// Packs matrices as [`Linear::new`] does; a gate is one half of their rows.
    pub(crate) fn new(
        matrices: &[(&Tensor, Vec<f32>)],
        depth: usize,
        packing: Packing,
        arena: &Arena,
        (gate, activation): (Option<Gate>, Activation),
    ) -> Result<Widening, Error> {
        let rows = matrices.iter().map(|(_, bias)| bias.len()).sum::<usize>();
        let part = |rows: Range<usize>| Linear::of_rows(matrices, rows, depth, packing, arena);
        let (gate, up) = match gate {
            None => (None, part(0..rows)?),
            Some(Gate::First) => (Some(part(0..rows / 2)?), part(rows / 2..rows)?),
            Some(Gate::Second) => (Some(part(rows / 2..rows)?), part(0..rows / 2)?),
        };
        Ok(Widening { gate, up, activation })
    }

    /// Fills the columns of some panels. `room` is memory for the gate.
    pub(crate) fn apply(
        &self,
        x: &[f32],
        panels: Range<usize>,
        wide: &mut [f32],
        room: &mut Vec<f32>,
        rounded: &mut RoundedRows,
    ) {
        let (up, write) = (&self.up, Output::Overwrite);
        let Some(gate) = &self.gate else {
            return up.apply(x, panels, wide, write, self.activation, rounded);
        };
        let rows = x.len() / up.depth;
        up.round(x, rounded);
        room.resize(rows * GATE_PANELS * PANEL, 0.0);
        let level = Level::best();
        for first in panels.clone().step_by(GATE_PANELS) {
            let some = first..(first + GATE_PANELS).min(panels.end);
            let columns = first * PANEL..(some.end * PANEL).min(up.columns);
            gate.apply_apart(x, some.clone(), room, columns.len(), self.activation, rounded);
            up.apply_rounded(x, some, wide, write, Activation::None, rounded);
            let gates = room.chunks_exact(columns.len());
            for (row, gates) in wide.chunks_exact_mut(up.columns).zip(gates).take(rows) {
                multiply(level, &mut row[columns.clone()], gates);
            }
        }
    }

    /// How many panels the columns are.
    pub(crate) fn panels(&self) -> usize {
        self.up.panels()
    }
}
