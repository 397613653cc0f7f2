//! How the inputs of a product go together: the sums of the products of each two of them.

use rayon::prelude::*;
use weighbridge_codec::dot::dots;

/// Rows of the matrix of sums that one task makes.
const ROWS: usize = 32;

/// Added to every square, in proportion to their mean. Texts are never enough to tell all directions
/// of the inputs; without it, errors would be pushed into those that the texts happen to lack.
const DAMPING: f64 = 0.01;

/// `H`, the sum of `x xᵀ` over all inputs seen. The squared error of a row of weights that is off by
/// `e` is `e H eᵀ`, over all these inputs.
#[derive(Debug, Default)]
pub(super) struct Moments {
    pub width: usize,
    pub sums: Vec<f32>,
}

impl Moments {
    pub(super) fn new(width: usize) -> Moments {
        Moments { width, sums: vec![0.0; width * width] }
    }

    /// Rows of inputs, one behind the other.
    pub(super) fn add(&mut self, rows: &[f32]) {
        let (width, count) = (self.width, rows.len() / self.width.max(1));
        if count == 0 {
            return;
        }
        // One input of all rows side by side, so that a sum is the product of two vectors.
        let mut columns = vec![0.0; rows.len()];
        columns.par_chunks_exact_mut(count).enumerate().for_each(|(i, column)| {
            column.iter_mut().zip(rows.iter().skip(i).step_by(width)).for_each(|(c, x)| *c = *x);
        });
        let tasks = self.sums.par_chunks_mut(ROWS * width).zip(columns.par_chunks(ROWS * count));
        tasks.for_each(|(sums, some)| {
            let mut products = vec![0.0; sums.len()];
            dots(&columns, some, count, &mut products);
            sums.iter_mut().zip(products).for_each(|(sum, product)| *sum += product);
        });
    }

    /// Makes what was seen a little less certain.
    #[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation)]
    pub(super) fn damp(&mut self) {
        let squares = self.sums.iter().step_by(self.width + 1);
        let mean = squares.map(|v| f64::from(*v)).sum::<f64>() / self.width as f64;
        // Inputs that are always zero leave weights of any value; one is as good as any.
        let more = if mean > 0.0 { super::knob("DAMP", DAMPING) * mean } else { 1.0 };
        self.sums.iter_mut().step_by(self.width + 1).for_each(|v| *v += more as f32);
    }
}
