//! Values of a tensor as programs hold arrays: one behind the other, in a type of whole bytes.

use std::ops::Range;
use weighbridge_codec::{Class, DType};
use weighbridge_format::source::Bytes;
use weighbridge_format::wire::to_len;
use weighbridge_format::{Encoding, Error, Tensor};

/// Some rows of a tensor, row by row, little-endian.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Array {
    /// The type of the values. Where the file has whole bytes for a value it is the file's; integers
    /// that share bytes become `i8` or `u8`, and everything else that is decoded `f32`.
    pub dtype: DType,
    /// The tensor's shape, with as many rows as were asked for.
    pub shape: Vec<u64>,
    /// The values: where they lie in the mapped file, or decoded.
    pub bytes: Bytes,
}

impl Array {
    /// All values.
    ///
    /// # Errors
    /// [`Error::Unsupported`] if the tensor has none, or nothing says what its codes stand for; else if
    /// they can't be read.
    pub fn of(tensor: &Tensor) -> Result<Array, Error> {
        Array::of_rows(tensor, 0..tensor.shape.first().copied().unwrap_or(1))
    }

    /// The values of some rows: indices of the first dimension. A single value is one row.
    ///
    /// # Errors
    /// Those of [`Array::of`], and [`Error::Refused`] if there are no such rows.
    pub fn of_rows(tensor: &Tensor, rows: Range<u64>) -> Result<Array, Error> {
        if !tensor.has_data() {
            let message = format!("tensor {:?} has a type and a shape, but no values", tensor.name);
            return Err(Error::unsupported("values", message, ""));
        }
        tensor.check_values()?;
        let all = tensor.shape.first().copied().unwrap_or(1);
        if rows.start > rows.end || rows.end > all {
            let what = format!("tensor {:?} has no rows {}..{}", tensor.name, rows.start, rows.end);
            return Err(Error::refused(what, format!("it has {all}")));
        }
        let mut shape = tensor.shape.clone();
        if let Some(first) = shape.first_mut() {
            *first = rows.end - rows.start;
        }
        let width = tensor.count().checked_div(all).unwrap_or(0);
        let values = rows.start * width..rows.end * width;
        let (dtype, bytes) = match tensor.encoding {
            Encoding::Plain(dtype) if dtype.bits().is_multiple_of(8) => {
                (dtype, plain(tensor, dtype, values)?)
            }
            Encoding::Plain(dtype) if dtype.is_integer() => {
                let is_signed = dtype.class() != Class::Unsigned;
                (if is_signed { DType::I8 } else { DType::U8 }, packed(tensor, values)?)
            }
            _ => (DType::F32, decoded(tensor, values, rows.start, width)?),
        };
        Ok(Array { dtype, shape, bytes })
    }
}

/// Whole bytes of the file, in place where they are there as they should be.
fn plain(tensor: &Tensor, dtype: DType, values: Range<u64>) -> Result<Bytes, Error> {
    let size = dtype.bits() / 8;
    if let Some(view) = tensor.plain_view()
        && let Some(part) = view.part(values.start * size..values.end * size)
    {
        return part.in_place();
    }
    // What is rearranged is read from a multiple of eight on.
    let start = values.start / 8 * 8;
    let mut buffer = Vec::new();
    let bytes = tensor.canonical(start, to_len(values.end - start), &mut buffer)?;
    Ok(Bytes::owned(bytes[to_len((values.start - start) * size)..].to_vec()))
}

/// Integers that share bytes, a byte each.
fn packed(tensor: &Tensor, values: Range<u64>) -> Result<Bytes, Error> {
    let mut bytes = Vec::with_capacity(to_len(values.end - values.start));
    for index in values {
        let value = tensor.scalar(index)?.and_then(|v| v.to_i128()).unwrap_or(0);
        bytes.push(value.to_le_bytes()[0]);
    }
    Ok(Bytes::owned(bytes))
}

/// Values that are made of codes.
fn decoded(tensor: &Tensor, values: Range<u64>, row: u64, width: u64) -> Result<Bytes, Error> {
    const TOGETHER: usize = 1 << 16;
    let mut out = vec![0.0f32; to_len(values.end - values.start)];
    let mut buffer = Vec::new();
    if tensor.shape.len() == 2 && width > 0 {
        let rows = (TOGETHER / to_len(width)).max(1);
        for (part, out) in out.chunks_mut(rows * to_len(width)).enumerate() {
            tensor.rows_f32(row + (part * rows) as u64, out, &mut buffer)?;
        }
    } else {
        // From a multiple of eight on.
        let start = values.start / 8 * 8;
        let mut all = vec![0.0; to_len(values.end - start)];
        for (part, out) in all.chunks_mut(TOGETHER).enumerate() {
            tensor.decode(start + (part * TOGETHER) as u64, out, &mut buffer)?;
        }
        out.copy_from_slice(&all[to_len(values.start - start)..]);
    }
    Ok(Bytes::owned(out.iter().flat_map(|value| value.to_le_bytes()).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use weighbridge_format::View;
    use weighbridge_format::model::{Scaled, Scaling};

    fn tensor(encoding: Encoding, shape: &[u64], bytes: Vec<u8>) -> Tensor {
        Tensor::stored("x", encoding, shape.to_vec(), View::owned(bytes)).unwrap()
    }

    #[test]
    fn rows_are_those_of_the_tensor() {
        let bytes: Vec<u8> = (0..24).collect();
        let plain = tensor(Encoding::Plain(DType::U16), &[4, 3], bytes.clone());
        let some = Array::of_rows(&plain, 1..3).unwrap();
        assert_eq!(
            (some.dtype, &some.shape[..], &*some.bytes),
            (DType::U16, &[2, 3][..], &bytes[6..18])
        );
        assert_eq!(&*Array::of(&plain).unwrap().bytes, bytes);
        assert!(Array::of_rows(&plain, 3..5).is_err());
        let single = tensor(Encoding::Plain(DType::U8), &[], vec![7]);
        assert_eq!(&*Array::of(&single).unwrap().bytes, [7]);
    }

    #[test]
    fn integers_that_share_bytes_have_one_each() {
        let four = tensor(Encoding::Plain(DType::I4), &[2, 3], vec![0x21, 0xF3, 0x8E]);
        let array = Array::of(&four).unwrap();
        assert_eq!(array.dtype, DType::I8);
        let signed: Vec<i8> = array.bytes.iter().map(|b| b.cast_signed()).collect();
        assert_eq!(signed, [1, 2, 3, -1, -2, -8]);
        assert_eq!(Array::of_rows(&four, 1..2).unwrap().bytes[0], 255);
    }

    #[test]
    fn codes_are_decoded() {
        let scaled = Scaled { codes: DType::I8, scaling: Scaling::Divisor(2.0) };
        for shape in [&[2u64, 2][..], &[4], &[2, 2, 1]] {
            let codes = tensor(Encoding::Scaled(scaled.clone().into()), shape, vec![2, 4, 6, 255]);
            let array = Array::of(&codes).unwrap();
            assert_eq!(array.dtype, DType::F32);
            let (values, _) = array.bytes.as_chunks();
            let values: Vec<f32> = values.iter().map(|b| f32::from_le_bytes(*b)).collect();
            assert_eq!(values, [1.0, 2.0, 3.0, -0.5]);
        }
    }

    #[test]
    fn declarations_have_no_values() {
        let declared = Tensor::declared("x", Encoding::Plain(DType::F32), vec![2]);
        assert!(matches!(Array::of(&declared), Err(Error::Unsupported(_))));
    }
}
