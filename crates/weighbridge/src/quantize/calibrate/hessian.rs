//! The Hessian of a layer: how the inputs of a product go together.

use weighbridge_codec::dot::{F32, dots};
use weighbridge_codec::parallel::*;
use weighbridge_codec::simd::Level;

/// Rows of the matrix of sums that one task makes.
const ROWS: usize = 32;

/// Added to every square, in proportion to their mean. Texts are never enough to tell all directions
/// of the inputs; without it, errors would be pushed into those that the texts happen to lack.
const DAMPING: f64 = 0.03;

/// `H`, the sum of `x xᵀ` over all inputs seen. The squared error of a row of weights that is off by
/// `e` is `e H eᵀ`, over all these inputs.
#[derive(Debug, Default)]
pub(super) struct Hessian {
    pub width: usize,
    pub sums: Vec<f32>,
}

impl Hessian {
    pub(super) fn new(width: usize) -> Hessian {
        Hessian { width, sums: vec![0.0; width * width] }
    }

    /// Rows of inputs, one behind the other.
    pub(super) fn add(&mut self, rows: &[f32]) {
        let (width, count) = (self.width, rows.len() / self.width.max(1));
        // Products whose weights are kept have no width.
        if width == 0 || count == 0 {
            return;
        }
        // One input of all rows side by side, so that a sum is the product of two vectors.
        let mut columns = vec![0.0; rows.len()];
        columns.par_chunks_exact_mut(count).enumerate().for_each(|(i, column)| {
            column.iter_mut().zip(rows.iter().skip(i).step_by(width)).for_each(|(c, x)| *c = *x);
        });
        let tasks = self.sums.par_chunks_mut(ROWS * width).zip(columns.par_chunks(ROWS * count));
        tasks.enumerate().for_each(|(i, (sums, some))| {
            // What stands left of these is the same as what stands above the diagonal.
            let (first, asked) = (i * ROWS, some.len() / count);
            let mut products = vec![0.0; (width - first) * asked];
            dots::<F32>(Level::best(), &columns[first * count..], some, count, &mut products);
            let rows = sums.chunks_exact_mut(width).zip(products.chunks_exact(width - first));
            for (sums, products) in rows {
                sums[first..].iter_mut().zip(products).for_each(|(sum, product)| *sum += product);
            }
        });
    }

    /// Both halves of the sums, with what was seen made a little less certain.
    #[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation)]
    pub(super) fn finish(&mut self) {
        for i in 1..self.width {
            for j in 0..i {
                self.sums[i * self.width + j] = self.sums[j * self.width + i];
            }
        }
        let squares = self.sums.iter().step_by(self.width + 1);
        let mean = squares.map(|v| f64::from(*v)).sum::<f64>() / self.width as f64;
        // Inputs that are always zero leave weights of any value; one is as good as any.
        let more = if mean > 0.0 { DAMPING * mean } else { 1.0 };
        self.sums.iter_mut().step_by(self.width + 1).for_each(|v| *v += more as f32);
    }
}
