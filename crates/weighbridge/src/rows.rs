//! A tensor's rows for searching.

use weighbridge_codec::DType;
use weighbridge_format::wire::to_len;
use weighbridge_format::{Encoding, Error, Tensor};
use weighbridge_search::{Rows, Unreadable};
use zerocopy::FromBytes;

/// The rows of a matrix in any encoding: lent where they are f32 and lie so, else decoded.
#[derive(Clone, Copy, Debug)]
pub struct TensorRows<'a> {
    tensor: &'a Tensor,
    dim: usize,
}

impl<'a> TensorRows<'a> {
    /// A tensor that is no matrix has no rows.
    pub fn new(tensor: &'a Tensor) -> TensorRows<'a> {
        TensorRows { tensor, dim: tensor.shape.get(1).copied().map_or(0, to_len) }
    }
}

impl Rows for TensorRows<'_> {
    fn count(&self) -> usize {
        if self.dim == 0 { 0 } else { self.tensor.shape.first().copied().map_or(0, to_len) }
    }

    fn dim(&self) -> usize {
        self.dim
    }

    fn block<'a>(
        &'a self,
        start: usize,
        n: usize,
        buffer: &'a mut Vec<f32>,
    ) -> Result<&'a [f32], Unreadable> {
        if let Some(values) = floats(self.tensor, start, n, self.dim) {
            return Ok(values);
        }
        buffer.resize(n * self.dim, 0.0);
        self.tensor.rows_f32(start as u64, buffer, &mut Vec::new())?;
        Ok(buffer)
    }
}

/// The error of a search. What kept rows from being read stays what it was.
pub(crate) fn search_error(error: weighbridge_search::Error) -> Error {
    match error {
        weighbridge_search::Error::Rows(why) => match why.downcast::<Error>() {
            Ok(error) => *error,
            Err(why) => Error::refused(why.to_string(), ""),
        },
        error => Error::refused(error.to_string(), ""),
    }
}

/// Rows of f32 as they lie in memory, where this machine has numbers as the file has them.
pub(crate) fn floats(tensor: &Tensor, start: usize, n: usize, dim: usize) -> Option<&[f32]> {
    if cfg!(target_endian = "big") || tensor.encoding != Encoding::Plain(DType::F32) {
        return None;
    }
    let bytes = tensor.plain_view()?.resident()?;
    let bytes = bytes.get(start.checked_mul(dim * 4)?..)?.get(..n.checked_mul(dim * 4)?)?;
    <[f32]>::ref_from_bytes(bytes).ok()
}
