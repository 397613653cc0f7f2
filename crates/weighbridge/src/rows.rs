//! A tensor's rows for searching.

use std::sync::OnceLock;
use weighbridge_codec::DType;
use weighbridge_format::model::{Product, Scaled, Scaling};
use weighbridge_format::wire::to_len;
use weighbridge_format::{Encoding, Error, Tensor};
use weighbridge_search::{Rows, Stored, Unreadable};
use zerocopy::FromBytes;

/// The rows of a matrix in any encoding, for [`search`](crate::search).
///
/// f32, f16, bf16, integers of eight bits with one scale and product-quantized rows are searched as
/// they are stored, without a copy where the file is mapped or in memory. All others are decoded
/// block by block.
#[derive(Debug)]
pub struct TensorRows<'a> {
    tensor: &'a Tensor,
    dim: usize,
    /// The values of codes, where each has one.
    values: OnceLock<Option<Box<[f32; 256]>>>,
}

impl<'a> TensorRows<'a> {
    /// A tensor that is no matrix has no rows.
    pub fn new(tensor: &'a Tensor) -> TensorRows<'a> {
        let dim = match tensor.shape[..] {
            [_, dim] => to_len(dim),
            _ => 0,
        };
        TensorRows { tensor, dim, values: OnceLock::new() }
    }

    fn codes(&self) -> Option<Stored<'_>> {
        let Encoding::Scaled(scaled) = &self.tensor.encoding else { return None };
        let values = self.values.get_or_init(|| values_of_codes(scaled)).as_deref()?;
        Some(Stored::Codes { values })
    }

    /// Product-quantized rows, unless something can't be read: then reading the rows says so.
    fn product(&self, product: &'a Product) -> Option<Stored<'_>> {
        let book = product.book().ok().flatten()?;
        let norms = match &product.norms {
            Some(norms) => Some(norms.resident()?),
            None => None,
        };
        Some(Stored::Product { book, norms })
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

    fn stored(&self) -> Stored<'_> {
        let stored = match &self.tensor.encoding {
            // What is computed row by row is f32 anyway.
            _ if self.tensor.view().is_none() => None,
            Encoding::Plain(DType::F16) => Some(Stored::F16),
            Encoding::Plain(DType::BF16) => Some(Stored::Bf16),
            Encoding::Scaled(_) => self.codes(),
            Encoding::Product(product) => self.product(product),
            _ => None,
        };
        stored.unwrap_or(Stored::Values)
    }

    fn bytes<'a>(
        &'a self,
        start: usize,
        n: usize,
        buffer: &'a mut Vec<u8>,
    ) -> Result<&'a [u8], Unreadable> {
        let bytes = self.tensor.row_bytes(start as u64, n as u64, buffer)?;
        if let Encoding::Product(product) = &self.tensor.encoding {
            product.check_codes(self.tensor, start as u64, bytes)?;
        }
        Ok(bytes)
    }
}

/// The value of each byte, where they are integers of eight bits with one scale or divisor.
fn values_of_codes(scaled: &Scaled) -> Option<Box<[f32; 256]>> {
    let one_scale = match &scaled.scaling {
        Scaling::Divisor(_) => true,
        Scaling::Affine { axis: None, scales, zero_points: None } => scales.len() == 1,
        _ => false,
    };
    (scaled.codes == DType::I8 && one_scale).then(|| {
        let mut values = Box::new([0.0; 256]);
        for (value, code) in values.iter_mut().zip(0..=u8::MAX) {
            *value = scaled.value(i128::from(code.cast_signed()), 0);
        }
        values
    })
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use weighbridge_codec::product::Codebook;
    use weighbridge_format::View;
    use weighbridge_search::{Ask, Exact, Matrix, Metric, Neighbours, Query};

    const COUNT: usize = 300;
    const DIM: usize = 20;

    fn bytes(seed: u64, count: usize) -> Vec<u8> {
        let mut state = seed;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 56) as u8
        };
        (0..count).map(|_| next()).collect()
    }

    fn tensor(encoding: Encoding, bytes: Vec<u8>) -> Tensor {
        Tensor::stored("t", encoding, vec![COUNT as u64, DIM as u64], View::owned(bytes)).unwrap()
    }

    fn product(rotated: bool, norms: bool) -> Encoding {
        let floats = |seed, n: usize| -> Vec<f32> {
            bytes(seed, n).iter().map(|b| f32::from(*b) / 128.0 - 1.0).collect()
        };
        let raw =
            |values: &[f32]| View::owned(values.iter().flat_map(|v| v.to_le_bytes()).collect());
        let centroids = floats(7, DIM * 16);
        // Turned by a right angle in each pair of values.
        let mut turn = vec![0.0; DIM * DIM];
        for i in 0..DIM {
            turn[i * DIM + (i ^ 1)] = if i % 2 == 0 { 1.0 } else { -1.0 };
        }
        assert!(Codebook::new(DIM, 5, 16, centroids.clone(), None).is_some());
        let norms = norms.then(|| raw(&floats(9, COUNT)));
        let sizes = [DIM as u64, 5, 16];
        let turn = rotated.then(|| raw(&turn));
        Encoding::Product(Arc::new(Product::new(sizes, raw(&centroids), turn, norms).unwrap()))
    }

    fn scaled(codes: DType, scaling: Scaling) -> Encoding {
        Encoding::Scaled(Arc::new(Scaled { codes, scaling }))
    }

    /// Rows in every encoding are found as their values are.
    #[test]
    fn rows_are_searched_as_they_are_stored() {
        let f16 = bytes(1, COUNT * DIM * 2).chunks(2).flat_map(|b| [b[0], b[1] & 0xbf]).collect();
        let scale = |zero_points| Scaling::Affine { axis: None, scales: vec![0.3], zero_points };
        let rows = Scaling::Affine {
            axis: Some(0),
            scales: (0..COUNT).map(|i| i as f32).collect(),
            zero_points: None,
        };
        let codes = || bytes(2, COUNT * DIM);
        let parts = || bytes(3, COUNT * 5).iter().map(|b| b % 16).collect::<Vec<u8>>();
        let tensors = [
            (tensor(Encoding::Plain(DType::F16), f16), "F16"),
            (tensor(Encoding::Plain(DType::BF16), bytes(4, COUNT * DIM * 2)), "Bf16"),
            (tensor(scaled(DType::I8, Scaling::Divisor(127.0)), codes()), "Codes"),
            (tensor(scaled(DType::I8, scale(None)), codes()), "Codes"),
            (tensor(scaled(DType::I8, scale(Some(vec![3]))), codes()), "Values"),
            (tensor(scaled(DType::U8, scale(None)), codes()), "Values"),
            (tensor(scaled(DType::I8, rows), codes()), "Values"),
            (tensor(Encoding::Plain(DType::I8), codes()), "Values"),
            (tensor(product(false, false), parts()), "Product"),
            (tensor(product(true, false), parts()), "Product"),
            (tensor(product(false, true), parts()), "Product"),
            (tensor(product(true, true), parts()), "Product"),
        ];
        for (tensor, expected) in &tensors {
            let rows = TensorRows::new(tensor);
            assert!(format!("{:?}", rows.stored()).starts_with(expected), "{expected}");
            let mut values = Vec::new();
            rows.block(0, COUNT, &mut values).unwrap();
            let vectors: Vec<f32> =
                bytes(5, 20 * DIM).iter().map(|b| f32::from(*b) - 128.0).collect();
            let queries: Vec<Query> =
                vectors.chunks(DIM).map(|vector| Query { vector, exclude: &[] }).collect();
            for metric in [Metric::Dot, Metric::Cosine, Metric::L2] {
                let ask = Ask::new(10, metric);
                let matrix = Matrix::new(&values, DIM).unwrap();
                let expected = Exact::new(matrix).search(&queries, &ask).unwrap().hits;
                let found = Exact::new(&rows).search(&queries, &ask).unwrap().hits;
                assert_eq!(found, expected, "{:?} {metric:?}", tensor.encoding.name());
                for (query, expected) in queries.iter().zip(expected) {
                    let alone = Exact::new(&rows).search(&[*query], &ask).unwrap().hits;
                    assert_eq!(alone[0], expected, "{:?} {metric:?}", tensor.encoding.name());
                }
            }
        }
    }

    /// Codes without a centroid are an error, as where rows are decoded.
    #[test]
    fn codes_without_a_centroid_are_refused() {
        let mut codes = vec![0; COUNT * 5];
        codes[777] = 16;
        let tensor = tensor(product(false, false), codes);
        let query = Query { vector: &[1.0; DIM], exclude: &[] };
        let ask = Ask::new(3, Metric::Cosine);
        let error = Exact::new(TensorRows::new(&tensor)).search(&[query], &ask).unwrap_err();
        assert!(search_error(error).to_string().contains("row 155"));
    }
}
