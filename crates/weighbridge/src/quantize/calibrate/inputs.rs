//! The inputs of a product: how they go together, and what is wanted of the product.

use super::cholesky::Factor;
use weighbridge_codec::gram::Columns;
use weighbridge_encoder::{Aim, Rehearsed};

/// Added to every square, in proportion to their mean. Texts are never enough to tell all directions
/// of the inputs; without it, errors would be pushed into those that the texts happen to lack. It is
/// also what a change of a weight costs by itself.
const DAMPING: f64 = 0.6;

/// What there is to know of a product's inputs `x` to choose its weights.
///
/// The squared error of a row of weights that is off by `e` is `e H eᵀ` over all inputs, where `H` is
/// the sum of `x xᵀ`. Where results are wanted that the old weights do not give, it is
/// off from the weights that come nearest to these.
#[derive(Debug)]
pub(super) struct Inputs {
    /// `H`, of which the right half is there.
    pub squares: Vec<f32>,
    pub factor: Factor,
    /// The mean of the inputs; zero if biases are not to be changed.
    pub means: Vec<f32>,
    /// What was added to `H`.
    damping: f32,
    wanted: Wanted,
}

#[derive(Debug)]
enum Wanted {
    /// What the old weights give for inputs of this mean.
    AsBefore(Vec<f32>),
    /// The sums of products of results and inputs, a row for each result, and the mean results.
    Results { products: Vec<f32>, means: Vec<f32> },
}

impl Inputs {
    /// `biases` are those of all rows of weights, and can be changed if `free`. None when values are
    /// beyond the range of f32.
    pub(super) fn new(
        rehearsed: &Rehearsed,
        width: usize,
        biases: &[f32],
        free: bool,
    ) -> Option<Inputs> {
        let columns = Columns::new(rehearsed.inputs, width, free);
        let mut squares = columns.squares();
        let damping = damp(&mut squares, width);
        let wanted = match rehearsed.aim {
            Aim::AsBefore(inputs) => {
                Wanted::AsBefore(if free { means(inputs, width) } else { vec![0.0; width] })
            }
            Aim::Results(rows) => {
                let mut rows = rows.to_vec();
                // What stays is not for the weights to bring about.
                if !free {
                    for row in rows.chunks_exact_mut(biases.len()) {
                        row.iter_mut().zip(biases).for_each(|(x, bias)| *x -= bias);
                    }
                }
                let results = Columns::new(&rows, biases.len(), free);
                let products = results.products(&columns);
                Wanted::Results { products, means: results.means().to_vec() }
            }
        };
        let factor = Factor::new(&squares, width)?;
        Some(Inputs { squares, factor, means: columns.means().to_vec(), damping, wanted })
    }

    /// For rows of weights from one on: the right side of the equations that the best weights solve
    /// exactly; none where the old weights do.
    pub(super) fn right_sides(&self, first: usize, weights: &[f32]) -> Option<Vec<f32>> {
        let Wanted::Results { products, .. } = &self.wanted else { return None };
        let products = &products[first * self.factor.width..][..weights.len()];
        Some(products.iter().zip(weights).map(|(p, w)| p + self.damping * w).collect())
    }

    /// The bias with which the mean error is zero, of a row of weights that has become others.
    #[allow(clippy::cast_possible_truncation)]
    pub(super) fn bias(&self, row: usize, bias: f32, old: &[f32], new: &[f32]) -> f32 {
        let dot = |a: &[f32], b: &[f32]| {
            a.iter().zip(b).map(|(x, y)| f64::from(*x) * f64::from(*y)).sum::<f64>()
        };
        let wanted = match &self.wanted {
            Wanted::AsBefore(means) => f64::from(bias) + dot(means, old),
            Wanted::Results { means, .. } => f64::from(means[row]),
        };
        (wanted - dot(&self.means, new)) as f32
    }
}

/// Makes what was seen a little less certain.
#[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation)]
fn damp(squares: &mut [f32], width: usize) -> f32 {
    let diagonal = squares.iter().step_by(width + 1);
    let mean = diagonal.map(|v| f64::from(*v)).sum::<f64>() / width as f64;
    // Inputs that are always the same leave weights of any value; one is as good as any.
    let damping = if mean > 0.0 { DAMPING * mean } else { 1.0 } as f32;
    squares.iter_mut().step_by(width + 1).for_each(|v| *v += damping);
    damping
}

#[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation)]
fn means(rows: &[f32], width: usize) -> Vec<f32> {
    let mut sums = vec![0.0; width];
    for row in rows.chunks_exact(width) {
        sums.iter_mut().zip(row).for_each(|(sum, x)| *sum += f64::from(*x));
    }
    let count = (rows.len() / width).max(1) as f64;
    sums.iter().map(|sum| (sum / count) as f32).collect()
}
