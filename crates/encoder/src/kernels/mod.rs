//! The arithmetic of the encoder.
//!
//! * [`matrix`]: products of rows with packed weights, in f32.
//! * [`pairs`]: the same with rows and weights rounded to 16 bits, integers or bf16.
//! * [`bytes`]: the same with both rounded to eight bits in blocks, for processors made for that.
//! * [`lanes`]: what is around the products: activations, softmax, layer normalization, rounding.
//!
//! Every kernel has a reference implementation in plain Rust. What the processor has beyond that is
//! detected once.

mod avx2;
mod avx512;
pub(crate) mod bytes;
pub(crate) mod lanes;
pub(crate) mod matrix;
pub(crate) mod pairs;
mod prefetch;
mod rounded;
#[cfg(test)]
mod tests;
mod vector;

use std::ops::Range;
use std::sync::LazyLock;

/// Columns that are computed together: a panel. Packed weights lie panel by panel.
pub(crate) const PANEL: usize = 16;

/// What the processor can do, in the order in which it is preferred.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Level {
    /// What every processor can do.
    Plain,
    Avx2,
    Avx512,
    /// With the instructions that multiply bytes and accumulate.
    Avx512Vnni,
}

/// The best of this processor.
pub(crate) static LEVEL: LazyLock<Level> = LazyLock::new(|| {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
        let wide = is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512bw");
        return match wide {
            true if is_x86_feature_detected!("avx512vnni") => Level::Avx512Vnni,
            true => Level::Avx512,
            false => Level::Avx2,
        };
    }
    Level::Plain
});

/// Whether the processor has instructions that multiply bf16.
pub(crate) static BF16: LazyLock<bool> = LazyLock::new(|| {
    #[cfg(target_arch = "x86_64")]
    if *LEVEL >= Level::Avx512 {
        return is_x86_feature_detected!("avx512bf16");
    }
    false
});

/// Makes a call with the number of rows as a constant.
macro_rules! by_rows {
    ($rows:expr, $n:ident => $call:expr) => {
        by_rows!(@ $rows, $n => $call; 1 2 3 4 5 6 7 8 9 10 11 12)
    };
    (@ $rows:expr, $n:ident => $call:expr; $($count:literal)*) => {
        match $rows {
            $($count => { const $n: usize = $count; $call })*
            _ => unreachable!("a tile has at most 12 rows"),
        }
    };
}
use by_rows;

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

/// `a * b + sum`, fused (rounded once) where the target has that. Without an instruction for it,
/// fusing would take fifty times as long.
#[inline(always)]
fn mul_add(a: f32, b: f32, sum: f32) -> f32 {
    if cfg!(any(target_feature = "fma", target_arch = "aarch64")) {
        a.mul_add(b, sum)
    } else {
        a * b + sum
    }
}
