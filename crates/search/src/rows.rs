//! Matrices, wherever their values are.

use crate::{Error, Unreadable};
use weighbridge_codec::product::Codebook;

/// A matrix of rows, lent or decoded block by block.
///
/// [`block`](Rows::block) is what the rows are: their values as f32. A matrix that is stored in
/// fewer bits can also lend its bytes as they are: it says what they are
/// ([`stored`](Rows::stored)), and a search multiplies them without decoding more than a few rows.
pub trait Rows: Sync {
    /// How many rows there are.
    fn count(&self) -> usize;

    /// How many values a row has.
    fn dim(&self) -> usize;

    /// Rows `start..start + n`, one behind the other: borrowed where they lie so, else decoded into
    /// `buffer`, which may have anything in it. It is asked for rows that are there, from several
    /// threads at once, and must always give the same; a search panics when it gets a wrong number
    /// of values.
    ///
    /// # Errors
    /// If they can't be read; the search ends with that.
    fn block<'a>(
        &'a self,
        start: usize,
        n: usize,
        buffer: &'a mut Vec<f32>,
    ) -> Result<&'a [f32], Unreadable>;

    /// What [`bytes`](Rows::bytes) lends. It is asked for once in a search.
    fn stored(&self) -> Stored<'_> {
        Stored::Values
    }

    /// The bytes of rows `start..start + n`, one behind the other: borrowed, or read into `buffer`.
    /// It is only called where [`stored`](Rows::stored) says what they are, and they must decode to
    /// what [`block`](Rows::block) gives.
    ///
    /// # Errors
    /// If they can't be read; the search ends with that.
    fn bytes<'a>(
        &'a self,
        start: usize,
        n: usize,
        buffer: &'a mut Vec<u8>,
    ) -> Result<&'a [u8], Unreadable> {
        let _ = (start, n, buffer);
        Err("these rows have no bytes to lend".into())
    }
}

/// How the rows of a matrix are stored.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Stored<'a> {
    /// As f32, or in any way that only the matrix knows.
    Values,
    /// As f16, little-endian.
    F16,
    /// As bf16, little-endian.
    Bf16,
    /// A byte for each value, which has the same value wherever it stands.
    Codes {
        /// The value of each byte.
        values: &'a [f32; 256],
    },
    /// A byte for each part of a row: product quantization.
    Product {
        /// What the bytes are decoded with.
        book: &'a Codebook,
        /// A factor for each row of the matrix, f32 little-endian.
        norms: Option<&'a [u8]>,
    },
}

impl<R: Rows + ?Sized> Rows for &R {
    fn count(&self) -> usize {
        (**self).count()
    }

    fn dim(&self) -> usize {
        (**self).dim()
    }

    fn block<'a>(
        &'a self,
        start: usize,
        n: usize,
        buffer: &'a mut Vec<f32>,
    ) -> Result<&'a [f32], Unreadable> {
        (**self).block(start, n, buffer)
    }

    fn stored(&self) -> Stored<'_> {
        (**self).stored()
    }

    fn bytes<'a>(
        &'a self,
        start: usize,
        n: usize,
        buffer: &'a mut Vec<u8>,
    ) -> Result<&'a [u8], Unreadable> {
        (**self).bytes(start, n, buffer)
    }
}

/// A matrix of values in memory, or in a mapped file.
#[derive(Clone, Copy, Debug)]
pub struct Matrix<'a> {
    values: &'a [f32],
    dim: usize,
}

impl<'a> Matrix<'a> {
    /// A matrix of rows of `dim` values, one behind the other.
    ///
    /// # Errors
    ///
    /// When the values are not whole rows, or `dim` is 0.
    pub fn new(values: &'a [f32], dim: usize) -> Result<Matrix<'a>, Error> {
        if dim == 0 || !values.len().is_multiple_of(dim) {
            return Err(Error::Shape { values: values.len(), dim });
        }
        Ok(Matrix { values, dim })
    }
}

impl Rows for Matrix<'_> {
    fn count(&self) -> usize {
        self.values.len() / self.dim
    }

    fn dim(&self) -> usize {
        self.dim
    }

    fn block<'a>(
        &'a self,
        start: usize,
        n: usize,
        _: &'a mut Vec<f32>,
    ) -> Result<&'a [f32], Unreadable> {
        Ok(&self.values[start * self.dim..][..n * self.dim])
    }
}
