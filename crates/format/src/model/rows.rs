//! Matrices made of others: some of the rows, rows with other lengths.

use super::unit::divide;
use super::{Arrangement, Data, Encoding, Product, RowSource, Scaling, Tensor};
use crate::Error;
use crate::source::View;
use crate::wire::to_len;
use std::sync::{Arc, Mutex, PoisonError};
use weighbridge_codec::DType;
use weighbridge_codec::simd::Level;

impl Tensor {
    /// Rows `row..` of a matrix as f32, as many as `out` has room for. `raw` is for data that must
    /// be collected first.
    ///
    /// # Errors
    /// If they can't be read, or there are not so many.
    pub fn rows_f32(&self, row: u64, out: &mut [f32], raw: &mut Vec<u8>) -> Result<(), Error> {
        self.check_values()?;
        let cols = self.shape.last().copied().unwrap_or(0).max(1);
        let n = out.len() as u64 / cols;
        if self.shape.first().is_none_or(|rows| row.checked_add(n).is_none_or(|end| end > *rows)) {
            return Err(self.no_rows(row, n));
        }
        let start = row * cols;
        let whole_bytes = self.encoding.stored().bits().is_multiple_of(8);
        match &self.encoding {
            Encoding::Plain(_) | Encoding::Scaled(_) if whole_bytes => {
                let bytes = self.row_bytes(row, n, raw)?;
                self.encoding.decode(bytes, start, &self.shape, out);
            }
            encoding if encoding.is_coded() => self.decode(start, out, raw)?,
            _ => out.copy_from_slice(&self.values_f32(start, out.len())?),
        }
        Ok(())
    }

    /// The matrix of its first `n` rows.
    ///
    /// # Errors
    /// If what belongs to the rows can't be read.
    pub fn first_rows(&self, n: u64) -> Result<Tensor, Error> {
        let [_, cols] = *self.shape.as_slice() else { return Ok(self.clone()) };
        let plain = self.plain_view().filter(|_| self.has_own_rows());
        let width = self.encoding.byte_len(&[1, cols]);
        let part = width.and_then(|width| plain?.part(0..n.checked_mul(width)?));
        match part {
            Some(part) => {
                let data = Data::Stored(part, Arrangement::default());
                self.with_rows(n, data, |norms| Ok(norms.part(0..n * 4)))
            }
            None => self.pick_rows((0..n).collect()),
        }
    }

    /// Each row is so many whole bytes that mean the same wherever they stand.
    pub(super) fn has_own_rows(&self) -> bool {
        let whole_bytes = self.encoding.stored().bits().is_multiple_of(8);
        match &self.encoding {
            Encoding::Plain(_) => whole_bytes,
            Encoding::Scaled(scaled) => {
                let by_row = matches!(scaled.scaling, Scaling::Affine { axis: Some(0), .. });
                whole_bytes && !by_row
            }
            Encoding::Product(_) => true,
            Encoding::Blocks(blocks) => blocks.has_own_rows(),
        }
    }

    /// The matrix of these rows, which must be there. As values, where rows have no bytes of their
    /// own.
    ///
    /// # Errors
    /// If what belongs to the rows can't be read.
    pub fn pick_rows(&self, rows: Vec<u64>) -> Result<Tensor, Error> {
        let count = rows.len() as u64;
        if !self.has_own_rows() {
            let mut picked = self.computed(Computed { from: self.clone(), rule: Rule::Pick(rows) });
            picked.shape[0] = count;
            return Ok(picked);
        }
        let norms = |norms: &View| {
            let norms = norms.in_place()?;
            let norm = |row: &u64| norms.get(to_len(*row) * 4..to_len(*row) * 4 + 4);
            let picked = rows.iter().flat_map(|r| norm(r).unwrap_or(&[0; 4]));
            Ok(Some(View::owned(picked.copied().collect())))
        };
        let mut picked = self.with_rows(count, Data::Declared, norms)?;
        picked.data = Data::Rows(Arc::new(Picked { from: self.clone(), rows }));
        Ok(picked)
    }

    /// The same matrix with another number of rows.
    fn with_rows(
        &self,
        n: u64,
        data: Data,
        norms: impl Fn(&View) -> Result<Option<View>, Error>,
    ) -> Result<Tensor, Error> {
        let mut tensor = Tensor { data, origin: None, target: None, ..self.clone() };
        if let Some(rows) = tensor.shape.first_mut() {
            *rows = n;
        }
        if let Encoding::Product(product) = &self.encoding
            && let Some(old) = &product.norms
        {
            let sizes = [product.dim, product.parts, product.centroids];
            let (values, projection) = (product.values.clone(), product.projection.clone());
            let checked = product.checked.clone();
            if let Some(mut product) = Product::new(sizes, values, projection, norms(old)?) {
                product.checked = checked;
                tensor.encoding = Encoding::Product(Arc::new(product));
            }
        }
        Ok(tensor)
    }

    /// The matrix with every row multiplied by its factor; rows behind the last factor stay.
    ///
    /// # Errors
    /// If the factors can't be read.
    pub fn scale_rows(&self, factors: &Tensor) -> Result<Tensor, Error> {
        let factors = factors.values_f32(0, to_len(factors.count()))?;
        Ok(self.computed(Computed { from: self.clone(), rule: Rule::Multiply(factors) }))
    }

    pub(super) fn computed(&self, rows: Computed) -> Tensor {
        let (encoding, shape) = (Encoding::Plain(DType::F32), self.shape.clone());
        Tensor::with_data(self.name.clone(), encoding, shape, Data::Rows(LastRow::of(rows)))
    }
}

/// Keeps the row that was made last. Whoever walks through a wide matrix asks for parts of a row, and
/// making all of it for each would take the square of its width.
#[derive(Debug)]
pub(crate) struct LastRow<R> {
    rows: R,
    last: Mutex<(Option<u64>, Vec<u8>)>,
}

impl<R: RowSource> LastRow<R> {
    pub(crate) fn of(rows: R) -> Arc<LastRow<R>> {
        Arc::new(LastRow { rows, last: Mutex::new((None, Vec::new())) })
    }
}

impl<R: RowSource> RowSource for LastRow<R> {
    fn read(&self, row: u64, out: &mut [u8]) -> Result<(), Error> {
        self.rows.read(row, out)
    }

    fn read_part(&self, row: u64, width: usize, skip: usize, out: &mut [u8]) -> Result<(), Error> {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let (number, bytes) = &mut *last;
        if *number != Some(row) || bytes.len() != width {
            *number = None;
            bytes.resize(width, 0);
            self.rows.read(row, bytes)?;
            *number = Some(row);
        }
        out.copy_from_slice(&bytes[skip..skip + out.len()]);
        Ok(())
    }

    fn computed_from(&self) -> Option<&'static str> {
        self.rows.computed_from()
    }
}

/// The length of a vector.
pub fn norm(vector: &[f32]) -> f64 {
    vector.iter().map(|v| f64::from(*v).powi(2)).sum::<f64>().sqrt()
}

fn computed_from(tensor: &Tensor) -> Option<&'static str> {
    match &tensor.data {
        Data::Rows(rows) => rows.computed_from(),
        _ => None,
    }
}

/// Some rows of another matrix.
#[derive(Debug)]
struct Picked {
    from: Tensor,
    rows: Vec<u64>,
}

impl RowSource for Picked {
    fn read(&self, row: u64, out: &mut [u8]) -> Result<(), Error> {
        let mut buffer = Vec::new();
        let row = self.rows.get(to_len(row)).copied().unwrap_or(u64::MAX);
        let bytes = self.from.row_bytes(row, 1, &mut buffer)?;
        let n = out.len().min(bytes.len());
        out[..n].copy_from_slice(&bytes[..n]);
        Ok(())
    }

    fn computed_from(&self) -> Option<&'static str> {
        computed_from(&self.from)
    }
}

/// Rows of another matrix, changed in length.
#[derive(Debug)]
pub(super) struct Computed {
    pub from: Tensor,
    pub rule: Rule,
}

#[derive(Debug)]
pub(super) enum Rule {
    Pick(Vec<u64>),
    Multiply(Vec<f32>),
    Divide(Vec<f64>),
}

impl RowSource for Computed {
    fn read(&self, row: u64, out: &mut [u8]) -> Result<(), Error> {
        let (mut values, mut raw) = (vec![0.0; out.len() / 4], Vec::new());
        let at = to_len(row);
        let from = match &self.rule {
            Rule::Pick(rows) => rows.get(at).copied().unwrap_or(0),
            _ => row,
        };
        self.from.rows_f32(from, &mut values, &mut raw)?;
        match &self.rule {
            Rule::Pick(_) => {}
            Rule::Multiply(factors) => {
                let factor = factors.get(at).copied().unwrap_or(1.0);
                values.iter_mut().for_each(|v| *v *= factor);
            }
            Rule::Divide(lengths) => {
                let length = lengths.get(at).copied().unwrap_or(1.0);
                divide(Level::best(), &mut values, length);
            }
        }
        out.chunks_exact_mut(4).zip(values).for_each(|(o, v)| o.copy_from_slice(&v.to_le_bytes()));
        Ok(())
    }

    fn computed_from(&self) -> Option<&'static str> {
        match self.rule {
            Rule::Pick(_) => computed_from(&self.from),
            Rule::Multiply(_) => Some(UNIT_AND_NORMS),
            Rule::Divide(_) => Some("rows of any length"),
        }
    }
}

/// How rows are stored whose lengths stand apart from them.
pub const UNIT_AND_NORMS: &str = "f32, unit length and norms";

#[cfg(test)]
mod tests {
    use super::*;

    fn matrix() -> Tensor {
        let values = [3f32, 4.0, 0.0, 0.0, 1.0, 0.0, -6.0, 8.0];
        let bytes = values.iter().flat_map(|v| v.to_le_bytes()).collect();
        Tensor::unchecked("m", Encoding::Plain(DType::F32), vec![4, 2], View::owned(bytes))
    }

    #[test]
    fn rows_are_chosen_and_put_in_order() {
        let picked = matrix().pick_rows(vec![3, 0]).unwrap();
        assert_eq!(picked.values_f32(0, 4).unwrap(), [-6.0, 8.0, 3.0, 4.0]);
        assert_eq!(picked.values_f32(1, 2).unwrap(), [8.0, 3.0]);
        for row in [2, 3, u64::MAX / 2, u64::MAX] {
            assert!(picked.rows_f32(row, &mut [0.0; 2], &mut Vec::new()).is_err());
        }
        assert_eq!(picked.pick_rows(vec![1]).unwrap().values_f32(0, 2).unwrap(), [3.0, 4.0]);
        assert_eq!(matrix().first_rows(1).unwrap().values_f32(0, 2).unwrap(), [3.0, 4.0]);
    }

    /// Whatever the encoding, a picked row has the values that it had.
    #[test]
    fn rows_of_every_encoding_are_picked() {
        use super::super::{BlockCoded, Scaled};
        use weighbridge_codec::block::{Layout, codec_named};
        let scaled = |codes: DType, axis: Option<usize>| {
            let count = axis.map_or(1, |a| [5, 6][a]);
            let scales = (0..count).map(|i| 0.5 + i as f32).collect();
            let scaling = Scaling::Affine { axis, scales, zero_points: None };
            Encoding::Scaled(Arc::new(Scaled { codes, scaling }))
        };
        let layout = Layout::new(codec_named("q8").unwrap(), 5, 6).unwrap();
        let scales = View::owned([0, 60].repeat(to_len(layout.codes.start) / 2));
        let blocks = BlockCoded::new(layout.codec, scales);
        for encoding in [
            Encoding::Plain(DType::F16),
            Encoding::Plain(DType::U4),
            scaled(DType::I8, None),
            scaled(DType::I8, Some(0)),
            scaled(DType::I8, Some(1)),
            scaled(DType::I4, None),
            Encoding::Blocks(Arc::new(blocks)),
        ] {
            let bytes = encoding.byte_len(&[5, 6]).unwrap();
            let bytes = (0..bytes).map(|i| u8::try_from(i % 50).unwrap()).collect();
            let tensor = Tensor::unchecked("m", encoding, vec![5, 6], View::owned(bytes));
            let all = tensor.values_f32(0, 30).unwrap();
            let picked = tensor.pick_rows(vec![4, 0, 2]).unwrap().values_f32(0, 18).unwrap();
            let name = tensor.encoding.name();
            assert_eq!(picked, [&all[24..], &all[..6], &all[12..18]].concat(), "{name}");
            assert_eq!(
                tensor.first_rows(3).unwrap().values_f32(0, 18).unwrap(),
                all[..18],
                "{name}"
            );
            assert!(all[24..].iter().any(|v| *v != 0.0));
        }
    }
}
