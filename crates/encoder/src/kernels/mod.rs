//! The arithmetic of the encoder.
//!
//! * [`matrix`]: products of rows with packed weights, in f32.
//! * [`pairs`]: the same with rows and weights rounded to 16 bits, integers or bf16.
//! * [`bytes`]: the same with both rounded to eight bits in blocks, for processors made for that.
//! * [`lanes`]: what is around the products: activations, softmax, layer normalization, rounding.
//!
//! * [`walk`]: what all products have in common, the walk over panels and rows.
//!
//! They are written once, over the vectors of `codec::simd`, and have the same bits at every level
//! that rounds multiply-adds alike.

pub(crate) mod bytes;
pub(crate) mod lanes;
pub(crate) mod matrix;
pub(crate) mod pairs;
#[cfg(test)]
mod tests;
pub(crate) mod walk;

use std::ops::Range;

/// Columns that are computed together: a panel. Packed weights lie panel by panel.
pub(crate) const PANEL: usize = 16;

/// Lines of sixteen values that begin with cache lines, so that no load of the kernels touches two.
/// The memory comes zeroed from the system and is first touched by the thread that fills it.
#[derive(Debug)]
pub(crate) struct Lines<T> {
    memory: Vec<T>,
    values: Range<usize>,
}

impl<T: Clone> Lines<T> {
    pub(crate) fn new(zero: T, count: usize) -> Lines<T> {
        let memory = vec![zero; (count + 1) * PANEL];
        let start = memory.as_ptr().align_offset(64).min(PANEL);
        Lines { memory, values: start..start + count * PANEL }
    }

    /// The values of all lines, one behind the other.
    pub(crate) fn values(&self) -> &[T] {
        &self.memory[self.values.clone()]
    }

    pub(crate) fn values_mut(&mut self) -> &mut [T] {
        &mut self.memory[self.values.clone()]
    }
}
