//! A named array and access to its values in bounded blocks.

use super::{Dialect, Encoding, Produce};
use crate::Error;
use crate::source::View;
use crate::wire::{numel, to_len};
use rayon::prelude::*;
use std::fmt::Debug;
use std::sync::Arc;
use weighbridge_codec::{DType, Scalar, element};

/// Elements handled at a time: bounds the memory of everything that walks through a tensor. A
/// multiple of eight, so that blocks of packed types begin on a byte.
pub const BLOCK: usize = 64 * 1024;

/// Fewer bytes are collected sooner than other threads wake up.
const WORTH_SHARING: usize = 64 * 1024;

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
    fn read(&self, row: u64, out: &mut [u8]);
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
        if needed != Some(view.len() as u64) {
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

    /// Bytes of the stored data; none for a declaration.
    pub fn stored_len(&self) -> Option<u64> {
        match &self.data {
            Data::Declared => None,
            Data::Stored(view, _) => Some(view.len() as u64),
            Data::Rows(_) => self.encoding.byte_len(&self.shape),
        }
    }

    /// The stored bytes of some rows of a matrix, borrowed from the file where they lie in it, else
    /// collected in `buffer`. Not for codes in blocks. None when there are no such rows.
    pub fn row_bytes<'a>(&'a self, row: u64, n: u64, buffer: &'a mut Vec<u8>) -> Option<&'a [u8]> {
        let [rows, cols] = *self.shape.as_slice() else { return None };
        let width = self.encoding.byte_len(&[1, cols])?;
        if row.checked_add(n)? > rows {
            return None;
        }
        match &self.data {
            Data::Declared => None,
            Data::Stored(view, arrangement) if *arrangement == Arrangement::default() => {
                let start = to_len(row.checked_mul(width)?);
                view.get(start..start.checked_add(to_len(n.checked_mul(width)?))?)
            }
            Data::Stored(..) => {
                Some(self.canonical(row.checked_mul(cols)?, to_len(n * cols), buffer))
            }
            Data::Rows(source) => {
                buffer.clear();
                buffer.resize(to_len(n.checked_mul(width)?), 0);
                let width = to_len(width).max(1);
                if buffer.len() < WORTH_SHARING {
                    let each = buffer.chunks_exact_mut(width).zip(row..);
                    each.for_each(|(out, row)| source.read(row, out));
                } else {
                    let each = buffer.par_chunks_exact_mut(width).enumerate();
                    each.for_each(|(i, out)| source.read(row + i as u64, out));
                }
                Some(buffer)
            }
        }
    }

    /// Bytes `start..start + n` elements take in row-major little-endian order. Borrowed from the
    /// file where it has them so, else rearranged into `buffer`. `start` is a multiple of eight.
    /// Codes in blocks and of parts have no such order: all bytes are given.
    pub fn canonical<'a>(&'a self, start: u64, n: usize, buffer: &'a mut Vec<u8>) -> &'a [u8] {
        let (view, arrangement) = match &self.data {
            Data::Declared => return &[],
            Data::Rows(_) if matches!(self.encoding, Encoding::Product(_)) => return &[],
            Data::Rows(_) => return self.canonical_rows(start, n, buffer),
            Data::Stored(view, arrangement) => (view, arrangement),
        };
        if let Encoding::Blockwise(_) | Encoding::Product(_) = self.encoding {
            return view;
        }
        let dtype = self.encoding.stored();
        let bits = to_len(dtype.bits());
        if *arrangement == Arrangement::default() {
            let first = to_len(start) * bits / 8;
            return &view[first..first + (n * bits).div_ceil(8)];
        }
        // Only whole-byte types come rearranged.
        let size = bits / 8;
        buffer.clear();
        for i in start..start + n as u64 {
            let at = if arrangement.column_major { column_major_index(i, &self.shape) } else { i };
            let raw = &view[to_len(at) * size..][..size];
            if arrangement.big_endian {
                // Complex numbers are two values of half the size.
                let part = if dtype == DType::C64 { size / 2 } else { size };
                raw.chunks(part).for_each(|p| buffer.extend(p.iter().rev()));
            } else {
                buffer.extend_from_slice(raw);
            }
        }
        buffer
    }

    /// The same, of rows that are read one by one: the whole rows around the elements, without what
    /// stands before and behind them. Elements of whole bytes.
    fn canonical_rows<'a>(&'a self, start: u64, n: usize, buffer: &'a mut Vec<u8>) -> &'a [u8] {
        let cols = self.shape.last().copied().unwrap_or(0).max(1);
        let size = to_len(self.encoding.stored().bits()) / 8;
        let first = start / cols;
        let rows = (start + n as u64).div_ceil(cols) - first;
        let before = to_len(start % cols) * size;
        let bytes = self.row_bytes(first, rows, buffer).unwrap_or_default();
        bytes.get(before..before + n * size).unwrap_or_default()
    }

    /// Fills `out` with the values from element `start` on, a multiple of eight. `buffer` is for
    /// data that must be rearranged first.
    pub fn decode(&self, start: u64, out: &mut [f32], buffer: &mut Vec<u8>) {
        if let Encoding::Product(product) = &self.encoding {
            return product.decode(self, start, out, buffer);
        }
        let bytes = self.canonical(start, out.len(), buffer);
        self.encoding.decode(bytes, start, &self.shape, out);
    }

    /// Calls `each` with blocks of values, in order.
    pub fn for_each_block(&self, mut each: impl FnMut(&[f64])) {
        let mut blocks = self.blocks();
        while let Some(values) = blocks.next() {
            each(values);
        }
    }

    /// The values in bounded blocks, in order; none for a declaration.
    pub fn blocks(&self) -> Blocks<'_> {
        let end = if self.has_data() { self.count() } else { 0 };
        Blocks { tensor: self, at: 0, end, raw: vec![], floats: vec![], values: vec![] }
    }

    /// `n` values from element `start` on, as f32.
    pub fn values_f32(&self, start: u64, n: usize) -> Vec<f32> {
        // Packed types are read from a whole byte on.
        let lead = to_len(start % 8);
        let (mut raw, mut out) = (Vec::new(), vec![0.0; n + lead]);
        if self.has_data() {
            self.decode(start - lead as u64, &mut out, &mut raw);
        }
        out.split_off(lead)
    }

    /// One value.
    pub fn scalar(&self, index: u64) -> Option<Scalar> {
        if !self.has_data() {
            return None;
        }
        if !matches!(self.encoding, Encoding::Plain(_)) {
            return self.values_f32(index, 1).first().map(|&v| Scalar::Float(f64::from(v)));
        }
        let lead = to_len(index % 8);
        let mut raw = Vec::new();
        let bytes = self.canonical(index - lead as u64, lead + 1, &mut raw);
        Some(element::read(self.encoding.stored(), bytes, lead))
    }
}

/// Walks through a tensor's values, a block at a time, in the same buffers.
#[derive(Debug)]
pub struct Blocks<'a> {
    tensor: &'a Tensor,
    at: u64,
    end: u64,
    raw: Vec<u8>,
    floats: Vec<f32>,
    values: Vec<f64>,
}

impl Blocks<'_> {
    /// The next values; not an `Iterator`, because they are lent.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> Option<&[f64]> {
        let n = to_len(self.end - self.at).min(BLOCK);
        if n == 0 {
            return None;
        }
        let (tensor, start) = (self.tensor, self.at);
        self.at += n as u64;
        self.values.clear();
        match &tensor.encoding {
            // What f32 can't hold exactly goes value by value.
            Encoding::Plain(dtype)
                if *dtype != DType::F32 && !dtype.wider().contains(&DType::F32) =>
            {
                let bytes = tensor.canonical(start, n, &mut self.raw);
                self.values.extend((0..n).map(|i| element::read(*dtype, bytes, i).to_f64()));
            }
            _ => {
                self.floats.resize(n, 0f32);
                tensor.decode(start, &mut self.floats, &mut self.raw);
                self.values.extend(self.floats.iter().map(|&v| f64::from(v)));
            }
        }
        Some(&self.values)
    }
}

/// Where element `i` of the row-major order stands in the column-major one.
fn column_major_index(mut i: u64, shape: &[u64]) -> u64 {
    let mut stride: u64 = shape.iter().product();
    let mut at = 0;
    for &d in shape.iter().rev() {
        stride /= d.max(1);
        at += i % d.max(1) * stride;
        i /= d.max(1);
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn column_major_and_big_endian_are_put_right() {
        // [[0, 1, 2], [3, 4, 5]] stored column by column, big-endian.
        let stored: Vec<u8> = [0u16, 3, 1, 4, 2, 5].iter().flat_map(|v| v.to_be_bytes()).collect();
        let arrangement = Arrangement { big_endian: true, column_major: true };
        let data = Data::Stored(View::owned(stored), arrangement);
        let tensor = Tensor::with_data("x", Encoding::Plain(DType::U16), vec![2, 3], data);
        let mut values = Vec::new();
        tensor.for_each_block(|b| values.extend_from_slice(b));
        assert_eq!(values, [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
        assert_eq!(tensor.scalar(4).unwrap().to_f64(), 4.0);
    }

    #[test]
    fn column_major_in_three_dimensions() {
        let shape = [2, 3, 4];
        for (i, j, k) in [(0, 0, 0), (1, 2, 3), (1, 0, 2), (0, 2, 1)] {
            assert_eq!(column_major_index(i * 12 + j * 4 + k, &shape), i + j * 2 + k * 6);
        }
    }

    #[test]
    fn packed_values_from_any_place() {
        let bytes = View::owned(vec![0b1110_0100; 8]);
        let tensor = Tensor::unchecked("x", Encoding::Plain(DType::U2), vec![32], bytes);
        for start in 0..20 {
            let expected: Vec<f32> = (start..start + 5).map(|i| (i % 4) as f32).collect();
            assert_eq!(tensor.values_f32(start, 5), expected);
            assert_eq!(tensor.scalar(start).unwrap().to_f64(), (start % 4) as f64);
        }
    }

    #[test]
    fn rows_that_are_made_when_they_are_asked_for() {
        #[derive(Debug)]
        struct Numbers;
        impl RowSource for Numbers {
            fn read(&self, row: u64, out: &mut [u8]) {
                out.fill(u8::try_from(row).unwrap());
            }
        }
        let from =
            |dtype, shape| Tensor::from_rows("x", Encoding::Plain(dtype), shape, Arc::new(Numbers));
        let tensor = from(DType::U8, [3, 2]).unwrap();
        assert_eq!(tensor.values_f32(0, 6), [0.0, 0.0, 1.0, 1.0, 2.0, 2.0]);
        // Three values of two bits end within a byte, where the next row would begin.
        assert!(matches!(from(DType::U2, [3, 3]), Err(Error::Refused(_))));
        assert!(matches!(from(DType::F32, [u64::MAX, 2]), Err(Error::Refused(_))));
    }
}
