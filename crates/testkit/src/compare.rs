//! Values to compare.

use weighbridge_format::{Encoding, Tensor, View};

/// A tensor whose bytes are right.
pub fn stored(name: impl Into<String>, encoding: Encoding, shape: Vec<u64>, view: View) -> Tensor {
    Tensor::stored(name, encoding, shape, view).expect("as many bytes as the shape needs")
}

/// All values of a tensor; empty for a declaration.
pub fn values(tensor: &Tensor) -> Vec<f64> {
    let mut all = Vec::new();
    tensor.for_each_block(|block| all.extend_from_slice(block)).expect("values that can be read");
    all
}

/// The same shape and the same values; NaN equals NaN.
pub fn same_values(a: &Tensor, b: &Tensor) -> bool {
    let (x, y) = (values(a), values(b));
    a.shape == b.shape
        && x.len() == y.len()
        && x.iter().zip(&y).all(|(x, y)| x == y || (x.is_nan() && y.is_nan()))
}
