//! A named array. Its values are read in `values.rs`.

use super::{Dialect, Encoding, Produce};
use crate::Error;
use crate::source::View;
use crate::wire::numel;
use std::fmt::Debug;
use std::sync::Arc;

/// A named array. Cloning is cheap: the data is shared.
#[derive(Clone, Debug)]
pub struct Tensor {
    /// Its name.
    pub name: String,
    /// Its dimensions, the outermost first; none for a single value.
    pub shape: Vec<u64>,
    /// How its values are stored.
    pub encoding: Encoding,
    /// Its bytes, or where they come from.
    pub data: Data,
    /// The encoding it had before it was widened to travel; the values fit it exactly.
    pub origin: Option<Encoding>,
    /// How it shall be stored from now on, if that was decided.
    pub target: Option<Target>,
    /// Facts about it that mean something to its format only.
    pub dialect: Dialect,
}

/// An encoding that was chosen for a tensor, and what makes the data in it out of the tensor's own.
#[derive(Clone, Debug)]
pub struct Target {
    /// The encoding.
    pub encoding: Encoding,
    /// What makes the data.
    pub data: Arc<dyn Produce>,
    /// The bounds that values were clamped to.
    pub bounds: (f32, f32),
}

/// The bytes of a tensor.
#[derive(Clone, Debug)]
pub enum Data {
    /// Type and shape only ("uninitialized" in OINF).
    Declared,
    /// Bytes that lie together.
    Stored(View, Arrangement),
    /// Rows of a matrix that do not lie one behind the other.
    Rows(Arc<dyn RowSource>),
}

/// Gives the rows of a matrix, each when it is asked for: rows with words between them, a choice of
/// another matrix's rows, or rows that are computed.
pub trait RowSource: Debug + Send + Sync {
    /// Fills `out` with the stored bytes of a row, little-endian. The row is one of the shape's.
    ///
    /// # Errors
    /// If what they are made of can't be read.
    fn read(&self, row: u64, out: &mut [u8]) -> Result<(), Error>;

    /// Fills `out` with a part of a row of `width` bytes, from byte `skip` on.
    ///
    /// # Errors
    /// If what it is made of can't be read.
    fn read_part(&self, row: u64, width: usize, skip: usize, out: &mut [u8]) -> Result<(), Error> {
        let mut whole = vec![0; width];
        self.read(row, &mut whole)?;
        out.copy_from_slice(&whole[skip..skip + out.len()]);
        Ok(())
    }

    /// What the rows are computed from, where they are not in the file as they are.
    fn computed_from(&self) -> Option<&'static str> {
        None
    }
}

/// How elements are laid out, where that differs from row-major little-endian.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Arrangement {
    /// The most significant byte first.
    pub big_endian: bool,
    /// First index fastest.
    pub column_major: bool,
}

impl Tensor {
    /// A row-major little-endian tensor over the bytes of a view.
    ///
    /// # Errors
    /// [`Error::Refused`] if the view does not have the size that encoding and shape need, or there
    /// is not a scale for every channel.
    pub fn stored(
        name: impl Into<String>,
        encoding: Encoding,
        shape: Vec<u64>,
        view: View,
    ) -> Result<Tensor, Error> {
        let name = name.into();
        let needed = encoding.byte_len(&shape).filter(|_| encoding.fits(&shape));
        if needed != Some(view.len()) {
            let needed = needed.map_or("impossible".to_owned(), |n| format!("{n} bytes"));
            let message = format!(
                "tensor {name:?} has {} bytes, and {} of shape {shape:?} is {needed}",
                view.len(),
                encoding.name()
            );
            return Err(Error::refused(message, ""));
        }
        Ok(Tensor::unchecked(name, encoding, shape, view))
    }

    /// A tensor with a type and a shape, and no values.
    pub fn declared(name: impl Into<String>, encoding: Encoding, shape: Vec<u64>) -> Tensor {
        Tensor::with_data(name, encoding, shape, Data::Declared)
    }

    /// A matrix whose rows are made when they are asked for.
    ///
    /// # Errors
    /// [`Error::Refused`] if the shape is not that of a matrix, or rows do not have bytes of their
    /// own in the encoding.
    pub fn from_rows(
        name: impl Into<String>,
        encoding: Encoding,
        shape: [u64; 2],
        rows: Arc<dyn RowSource>,
    ) -> Result<Tensor, Error> {
        let tensor = Tensor::with_data(name, encoding, shape.to_vec(), Data::Rows(rows));
        if tensor.encoding.byte_len(&tensor.shape).is_none() || !tensor.has_own_rows() {
            let message = format!("{} of {shape:?} has no rows of bytes", tensor.encoding.name());
            return Err(Error::refused(message, ""));
        }
        Ok(tensor)
    }

    /// The same as [`Tensor::stored`], of sizes that a reader has checked.
    pub(crate) fn unchecked(
        name: impl Into<String>,
        encoding: Encoding,
        shape: Vec<u64>,
        view: View,
    ) -> Tensor {
        Tensor::with_data(name, encoding, shape, Data::Stored(view, Arrangement::default()))
    }

    /// A tensor with data of any kind, whose sizes were checked.
    pub(crate) fn with_data(
        name: impl Into<String>,
        encoding: Encoding,
        shape: Vec<u64>,
        data: Data,
    ) -> Tensor {
        let (origin, target, dialect) = (None, None, Dialect::new());
        Tensor { name: name.into(), shape, encoding, data, origin, target, dialect }
    }

    /// Number of elements. Readers check shapes, so that it can't overflow here.
    pub fn count(&self) -> u64 {
        numel(&self.shape).unwrap_or(0)
    }

    /// The stored bytes, if there are any and they lie together.
    pub fn view(&self) -> Option<&View> {
        match &self.data {
            Data::Declared | Data::Rows(_) => None,
            Data::Stored(view, _) => Some(view),
        }
    }

    /// The stored bytes, if they lie together in row-major little-endian order.
    pub fn plain_view(&self) -> Option<&View> {
        match &self.data {
            Data::Stored(view, arrangement) if *arrangement == Arrangement::default() => Some(view),
            _ => None,
        }
    }

    /// There are values, not only a type and a shape.
    pub fn has_data(&self) -> bool {
        !matches!(self.data, Data::Declared)
    }

    /// The codes come back from the values, so that storing the values loses nothing.
    ///
    /// # Errors
    /// If the codes can't be read.
    pub fn is_recoverable(&self) -> Result<bool, Error> {
        self.encoding.is_recoverable(self)
    }

    /// Bytes of the stored data; none for a declaration.
    pub fn stored_len(&self) -> Option<u64> {
        match &self.data {
            Data::Declared => None,
            Data::Stored(view, _) => Some(view.len()),
            Data::Rows(_) => self.encoding.byte_len(&self.shape),
        }
    }
}
