//! Matrices, wherever their values are.

use crate::{Error, Unreadable};

/// A matrix of rows, lent or decoded block by block.
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
