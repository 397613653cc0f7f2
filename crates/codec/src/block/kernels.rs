//! Using quantized rows: decoding them, and multiplying them with vectors.

use super::{Row, scalar};

impl Row<'_> {
    /// All values of the row. Panics unless `out` has the row's length.
    pub fn decode(&self, out: &mut [f32]) {
        assert_eq!(out.len(), self.cols, "a row has as many values as columns");
        scalar::decode(self, out);
    }
}
