//! Access to a tensor's values in bounded blocks. Every call can fail, because bytes may yet have to
//! be read.

use super::{Arrangement, Data, Encoding, Tensor};
use crate::Error;
use crate::wire::to_len;
use weighbridge_codec::parallel::*;
use weighbridge_codec::{DType, Scalar, element};

/// Elements handled at a time: bounds the memory of everything that walks through a tensor. A
/// multiple of eight, so that blocks of packed types begin on a byte.
pub const BLOCK: usize = 64 * 1024;

/// Fewer bytes are collected sooner than other threads wake up.
const WORTH_SHARING: usize = 64 * 1024;

impl Tensor {
    /// The stored bytes of some rows of a matrix, borrowed from the file where they lie in it, else
    /// collected in `buffer`. Not for codes in blocks whose scales stand elsewhere.
    ///
    /// # Errors
    /// If they can't be read, or there are no such rows.
    pub fn row_bytes<'a>(
        &'a self,
        row: u64,
        n: u64,
        buffer: &'a mut Vec<u8>,
    ) -> Result<&'a [u8], Error> {
        let place = self.place_of_rows(row, n);
        let (start, end, width) = place.ok_or_else(|| self.no_rows(row, n))?;
        match &self.data {
            Data::Declared => Err(self.no_rows(row, n)),
            Data::Stored(view, arrangement) if *arrangement == Arrangement::default() => {
                view.read(start..end, buffer)
            }
            Data::Stored(..) => {
                let cols = self.shape[1];
                self.canonical(row * cols, to_len(n * cols), buffer)
            }
            Data::Rows(source) => {
                buffer.clear();
                buffer.resize(to_len(end - start), 0);
                let width = to_len(width).max(1);
                if buffer.len() < WORTH_SHARING {
                    let mut each = buffer.chunks_exact_mut(width).zip(row..);
                    each.try_for_each(|(out, row)| source.read(row, out))?;
                } else {
                    let read = |(i, out): (usize, &mut [u8])| source.read(row + i as u64, out);
                    buffer.par_chunks_exact_mut(width).enumerate().try_for_each(read)?;
                }
                Ok(buffer)
            }
        }
    }

    /// Where rows begin and end in the stored bytes, and the bytes of one.
    fn place_of_rows(&self, row: u64, n: u64) -> Option<(u64, u64, u64)> {
        let [rows, cols] = *self.shape.as_slice() else { return None };
        let width = self.encoding.byte_len(&[1, cols])?;
        let end = row.checked_add(n).filter(|end| *end <= rows)?;
        Some((row.checked_mul(width)?, end.checked_mul(width)?, width))
    }

    pub(super) fn no_rows(&self, row: u64, n: u64) -> Error {
        let end = row.saturating_add(n);
        Error::refused(format!("tensor {:?} has no rows {row}..{end}", self.name), "")
    }

    /// Bytes `start..start + n` elements take in row-major little-endian order. Borrowed from the
    /// file where it has them so, else read or rearranged into `buffer`. `start` is a multiple of
    /// eight. Codes in blocks and of parts have no such order: there is nothing to give.
    ///
    /// # Errors
    /// If they can't be read.
    pub fn canonical<'a>(
        &'a self,
        start: u64,
        n: usize,
        buffer: &'a mut Vec<u8>,
    ) -> Result<&'a [u8], Error> {
        if self.encoding.is_coded() {
            return Ok(&[]);
        }
        let (view, arrangement) = match &self.data {
            Data::Declared => return Ok(&[]),
            Data::Rows(_) => return self.canonical_rows(start, n, buffer),
            Data::Stored(view, arrangement) => (view, *arrangement),
        };
        let dtype = self.encoding.stored();
        let bits = dtype.bits();
        let first = start * bits / 8;
        let end = first + (n as u64 * bits).div_ceil(8);
        if arrangement == Arrangement::default() {
            return view.read(first..end, buffer);
        }
        // Only whole-byte types come rearranged.
        let size = to_len(bits / 8);
        let mut raw = Vec::new();
        // Elements that stand column by column are all over the array.
        let (bytes, base) = match arrangement.column_major {
            true => (view.read(0..view.len(), &mut raw)?, 0),
            false => (view.read(first..end, &mut raw)?, start),
        };
        buffer.clear();
        for i in start..start + n as u64 {
            let at = match arrangement.column_major {
                true => column_major_index(i, &self.shape),
                false => i - base,
            };
            let raw = &bytes[to_len(at) * size..][..size];
            if arrangement.big_endian {
                // Complex numbers are two values of half the size.
                let part = if dtype == DType::C64 { size / 2 } else { size };
                raw.chunks(part).for_each(|p| buffer.extend(p.iter().rev()));
            } else {
                buffer.extend_from_slice(raw);
            }
        }
        Ok(buffer)
    }

    /// The same, of rows that are read one by one: the whole rows around the elements, without what
    /// stands before and behind them. Elements of whole bytes.
    fn canonical_rows<'a>(
        &'a self,
        start: u64,
        n: usize,
        buffer: &'a mut Vec<u8>,
    ) -> Result<&'a [u8], Error> {
        let cols = self.shape.last().copied().unwrap_or(0).max(1);
        let size = to_len(self.encoding.stored().bits() / 8);
        let first = start / cols;
        let rows = (start + n as u64).div_ceil(cols) - first;
        let before = to_len(start % cols) * size;
        if let Data::Rows(source) = &self.data
            && rows == 1
            && (n as u64) < cols
        {
            self.place_of_rows(first, 1).ok_or_else(|| self.no_rows(first, 1))?;
            buffer.clear();
            buffer.resize(n * size, 0);
            source.read_part(first, to_len(cols) * size, before, buffer)?;
            return Ok(buffer);
        }
        let bytes = self.row_bytes(first, rows, buffer)?;
        Ok(bytes.get(before..before + n * size).unwrap_or_default())
    }

    /// Fills `out` with the values from element `start` on, a multiple of eight. `buffer` is for
    /// data that must be read or rearranged first.
    ///
    /// # Errors
    /// If they can't be read.
    pub fn decode(&self, start: u64, out: &mut [f32], buffer: &mut Vec<u8>) -> Result<(), Error> {
        self.check_values()?;
        match (&self.encoding, &self.data) {
            (Encoding::Product(product), _) => product.decode(self, start, out, buffer),
            (_, Data::Declared) => {
                out.fill(0.0);
                Ok(())
            }
            (Encoding::Blocks(blocks), _) => blocks.decode(self, start, out, buffer),
            (encoding, _) => {
                let bytes = self.canonical(start, out.len(), buffer)?;
                encoding.decode(bytes, start, &self.shape, out);
                Ok(())
            }
        }
    }

    /// Whether the values can be told.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for codes without a scale.
    pub fn check_values(&self) -> Result<(), Error> {
        if self.encoding.has_values() {
            return Ok(());
        }
        let (name, codes) = (&self.name, self.encoding.stored());
        let what = format!(
            "the values of tensor {name:?} are not known: it has {codes} codes and no scale"
        );
        Err(Error::unsupported(
            name,
            what,
            "whoever wrote the file has to say which scale they have",
        ))
    }

    /// Calls `each` with blocks of values, in order.
    ///
    /// # Errors
    /// If they can't be read.
    pub fn for_each_block(&self, mut each: impl FnMut(&[f64])) -> Result<(), Error> {
        let mut blocks = self.blocks();
        while let Some(values) = blocks.next()? {
            each(values);
        }
        Ok(())
    }

    /// The values in bounded blocks, in order; none for a declaration.
    pub fn blocks(&self) -> Blocks<'_> {
        let end = if self.has_data() { self.count() } else { 0 };
        Blocks { tensor: self, at: 0, end, raw: vec![], floats: vec![], values: vec![] }
    }

    /// `n` values from element `start` on, as f32.
    ///
    /// # Errors
    /// If they can't be read.
    pub fn values_f32(&self, start: u64, n: usize) -> Result<Vec<f32>, Error> {
        // Packed types are read from a whole byte on.
        let lead = to_len(start % 8);
        let (mut raw, mut out) = (Vec::new(), vec![0.0; n + lead]);
        if self.has_data() {
            self.decode(start - lead as u64, &mut out, &mut raw)?;
        }
        Ok(out.split_off(lead))
    }

    /// One value; none of a declaration.
    ///
    /// # Errors
    /// If it can't be read.
    pub fn scalar(&self, index: u64) -> Result<Option<Scalar>, Error> {
        if !self.has_data() {
            return Ok(None);
        }
        if self.encoding.is_quantized() {
            let value = self.values_f32(index, 1)?.first().copied();
            return Ok(value.map(|v| Scalar::Float(f64::from(v))));
        }
        let lead = to_len(index % 8);
        let mut raw = Vec::new();
        let bytes = self.canonical(index - lead as u64, lead + 1, &mut raw)?;
        Ok(Some(element::read(self.encoding.stored(), bytes, lead)))
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
    ///
    /// # Errors
    /// If they can't be read.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> Result<Option<&[f64]>, Error> {
        let n = to_len(self.end - self.at).min(BLOCK);
        if n == 0 {
            return Ok(None);
        }
        let (tensor, start) = (self.tensor, self.at);
        self.at += n as u64;
        self.values.clear();
        match &tensor.encoding {
            // What f32 can't hold exactly goes value by value.
            Encoding::Plain(dtype)
                if *dtype != DType::F32 && !dtype.wider().contains(&DType::F32) =>
            {
                let bytes = tensor.canonical(start, n, &mut self.raw)?;
                self.values.extend((0..n).map(|i| element::read(*dtype, bytes, i).to_f64()));
            }
            _ => {
                self.floats.resize(n, 0f32);
                tensor.decode(start, &mut self.floats, &mut self.raw)?;
                self.values.extend(self.floats.iter().map(|&v| f64::from(v)));
            }
        }
        Ok(Some(&self.values))
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
    use super::super::RowSource;
    use super::*;
    use crate::View;
    use std::sync::Arc;

    #[test]
    fn column_major_and_big_endian_are_put_right() {
        // [[0, 1, 2], [3, 4, 5]] stored column by column, big-endian.
        let stored: Vec<u8> = [0u16, 3, 1, 4, 2, 5].iter().flat_map(|v| v.to_be_bytes()).collect();
        let arrangement = Arrangement { big_endian: true, column_major: true };
        let data = Data::Stored(View::owned(stored), arrangement);
        let tensor = Tensor::with_data("x", Encoding::Plain(DType::U16), vec![2, 3], data);
        let mut values = Vec::new();
        tensor.for_each_block(|b| values.extend_from_slice(b)).unwrap();
        assert_eq!(values, [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
        assert_eq!(tensor.scalar(4).unwrap().unwrap().to_f64(), 4.0);
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
            assert_eq!(tensor.values_f32(start, 5).unwrap(), expected);
            assert_eq!(tensor.scalar(start).unwrap().unwrap().to_f64(), (start % 4) as f64);
        }
    }

    #[test]
    fn rows_that_are_made_when_they_are_asked_for() {
        #[derive(Debug)]
        struct Numbers;
        impl RowSource for Numbers {
            fn read(&self, row: u64, out: &mut [u8]) -> Result<(), Error> {
                out.fill(u8::try_from(row).unwrap());
                Ok(())
            }
        }
        let from =
            |dtype, shape| Tensor::from_rows("x", Encoding::Plain(dtype), shape, Arc::new(Numbers));
        let tensor = from(DType::U8, [3, 2]).unwrap();
        assert_eq!(tensor.values_f32(0, 6).unwrap(), [0.0, 0.0, 1.0, 1.0, 2.0, 2.0]);
        // Three values of two bits end within a byte, where the next row would begin.
        assert!(matches!(from(DType::U2, [3, 3]), Err(Error::Refused(_))));
        assert!(matches!(from(DType::F32, [u64::MAX, 2]), Err(Error::Refused(_))));
    }
}
