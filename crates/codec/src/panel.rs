//! Panels: vectors packed side by side, sixteen of them, so that a kernel reads one value of each as
//! one line and multiplies all with the same value of a row. Products then need no sums across a
//! register.

use crate::memory::{Arena, Number, Numbers};
use std::ops::Range;

/// Vectors (columns) that are computed together.
pub const PANEL: usize = 16;

/// Lines of sixteen values that begin with cache lines, so that no load of the kernels touches two.
/// The memory comes zeroed from the system and is first touched by the thread that fills it.
#[derive(Debug)]
pub struct Lines<T> {
    memory: Numbers<T>,
    values: Range<usize>,
}

impl<T: Number> Lines<T> {
    /// So many lines of zeros, which are kept with others.
    pub fn new_in(arena: &Arena, count: usize) -> Lines<T> {
        Lines::within(arena.zeros((count + 1) * PANEL), count)
    }
}

impl<T: Clone> Lines<T> {
    /// So many lines of zeros.
    pub fn new(zero: T, count: usize) -> Lines<T> {
        Lines::within(vec![zero; (count + 1) * PANEL].into(), count)
    }
}

impl<T> Lines<T> {
    fn within(memory: Numbers<T>, count: usize) -> Lines<T> {
        let start = memory.as_ptr().align_offset(64).min(PANEL);
        Lines { memory, values: start..start + count * PANEL }
    }

    /// The values of all lines, one behind the other.
    pub fn values(&self) -> &[T] {
        &self.memory[self.values.clone()]
    }

    /// The same, to be changed.
    pub fn values_mut(&mut self) -> &mut [T] {
        &mut self.memory[self.values.clone()]
    }
}

/// A stretch of a panel of codes, and the factors of these codes: what is read together lies together.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub struct Stretch<const FOURS: usize, const FACTORS: usize> {
    /// Four codes of each column on a line.
    pub fours: [[[i8; 4]; PANEL]; FOURS],
    /// A factor of each column on a line.
    pub factors: [[f32; PANEL]; FACTORS],
}

/// Puts vectors of `depth` values, at most sixteen, into the lines of a panel.
///
/// # Panics
///
/// When there are more vectors, or `depth` is 0.
pub fn pack<T: Copy>(vectors: &[T], depth: usize, panel: &mut [T]) {
    // Short stretches, so that the lines that are written stay in the cache.
    for (at, lines) in panel.as_chunks_mut::<PANEL>().0.chunks_mut(16).enumerate() {
        for (column, vector) in vectors.chunks_exact(depth).enumerate() {
            for (line, &value) in lines.iter_mut().zip(&vector[at * 16..]) {
                line[column] = value;
            }
        }
    }
}
