//! How far the values of two tensors are apart, in the arithmetic of their types.

use serde::Serialize;
use weighbridge_codec::{DType, Scalar, element};
use weighbridge_format::model::BLOCK;
use weighbridge_format::wire::to_len;
use weighbridge_format::{Encoding, Error, Tensor};

/// How far values are apart.
#[derive(Clone, Copy, Debug, Serialize)]
#[non_exhaustive]
pub struct ValueDifference {
    /// Values that are not the same.
    pub changed: u64,
    /// The largest absolute difference; infinite where only one side is a number.
    pub max_abs: f64,
    /// Root of the summed squares of the differences over that of the first's values.
    pub relative_rmse: f64,
    /// Of the angle between the values of both.
    pub cosine: f64,
}

/// In one walk through both, a block of each at a time.
pub(super) fn compare(a: &Tensor, b: &Tensor) -> Result<ValueDifference, Error> {
    let mut sums = Sums::default();
    if fits_doubles(&a.encoding) && fits_doubles(&b.encoding) {
        let (mut left, mut right) = (a.blocks(), b.blocks());
        while let (Some(x), Some(y)) = (left.next()?, right.next()?) {
            x.iter().zip(y).for_each(|(&x, &y)| sums.add(x, y));
        }
        return Ok(sums.finish());
    }
    let (mut left, mut right, mut raw) = (Vec::new(), Vec::new(), Vec::new());
    for start in (0..a.count()).step_by(BLOCK) {
        let n = to_len(a.count() - start).min(BLOCK);
        scalars(a, start, n, &mut raw, &mut left)?;
        scalars(b, start, n, &mut raw, &mut right)?;
        left.iter().zip(&right).for_each(|(&x, &y)| sums.add_exactly(x, y));
    }
    Ok(sums.finish())
}

/// A double holds every value; not of 64-bit integers, and not a complex number.
fn fits_doubles(encoding: &Encoding) -> bool {
    !matches!(encoding, Encoding::Plain(DType::I64 | DType::U64 | DType::C64))
}

fn scalars(
    tensor: &Tensor,
    start: u64,
    n: usize,
    raw: &mut Vec<u8>,
    out: &mut Vec<Scalar>,
) -> Result<(), Error> {
    out.clear();
    if let Encoding::Plain(dtype) = tensor.encoding {
        let bytes = tensor.canonical(start, n, raw)?;
        out.extend((0..n).map(|i| element::read(dtype, bytes, i)));
    } else {
        let values = tensor.values_f32(start, n)?;
        out.extend(values.into_iter().map(|v| Scalar::Float(f64::from(v))));
    }
    Ok(())
}

#[derive(Default)]
struct Sums {
    changed: u64,
    max_abs: f64,
    squares: f64,
    aa: f64,
    bb: f64,
    ab: f64,
}

impl Sums {
    fn add(&mut self, x: f64, y: f64) {
        if x == y || (x.is_nan() && y.is_nan()) {
            let finite = if x.is_finite() { x } else { 0.0 };
            self.aa += finite * finite;
            self.bb += finite * finite;
            self.ab += finite * finite;
        } else {
            self.add_changed((x - y).abs(), [x, 0.0], [y, 0.0]);
        }
    }

    /// Whole numbers are subtracted as such, complex ones by both parts.
    #[allow(clippy::cast_precision_loss)]
    fn add_exactly(&mut self, x: Scalar, y: Scalar) {
        let parts = |v: Scalar| match v {
            Scalar::Complex(re, im) => [f64::from(re), f64::from(im)],
            real => [real.to_f64(), 0.0],
        };
        let (p, q) = (parts(x), parts(y));
        // Larger floats are all whole, and their distance is a float too.
        let whole = |v: Scalar| v.to_i128().filter(|_| parts(v)[0].abs() < 2f64.powi(100));
        let difference = match (whole(x), whole(y)) {
            (Some(x), Some(y)) => x.abs_diff(y) as f64,
            _ if same_part(p[0], q[0]) && same_part(p[1], q[1]) => 0.0,
            _ => (p[0] - q[0]).hypot(p[1] - q[1]),
        };
        if difference == 0.0 {
            self.add(p[0], p[0]);
            self.add(p[1], p[1]);
        } else {
            self.add_changed(difference, p, q);
        }
    }

    fn add_changed(&mut self, difference: f64, x: [f64; 2], y: [f64; 2]) {
        self.changed += 1;
        let difference = if difference.is_nan() { f64::INFINITY } else { difference };
        self.max_abs = self.max_abs.max(difference);
        self.squares += difference * difference;
        for (x, y) in x.into_iter().zip(y) {
            self.aa += x * x;
            self.bb += y * y;
            self.ab += x * y;
        }
    }

    fn finish(self) -> ValueDifference {
        let Sums { changed, max_abs, squares, aa, bb, ab } = self;
        let relative_rmse = if changed == 0 { 0.0 } else { (squares / aa).sqrt() };
        let cosine = if changed == 0 { 1.0 } else { ab / (aa * bb).sqrt() };
        ValueDifference { changed, max_abs, relative_rmse, cosine }
    }
}

fn same_part(a: f64, b: f64) -> bool {
    a == b || (a.is_nan() && b.is_nan())
}

#[cfg(test)]
mod tests {
    use super::*;
    use weighbridge_format::View;

    fn tensor(dtype: DType, bytes: Vec<u8>) -> Tensor {
        let count = bytes.len() as u64 * 8 / dtype.bits();
        Tensor::stored("x", Encoding::Plain(dtype), vec![count], View::owned(bytes)).unwrap()
    }

    fn whole(values: &[i64]) -> Tensor {
        tensor(DType::I64, values.iter().flat_map(|v| v.to_le_bytes()).collect())
    }

    #[test]
    fn whole_numbers_beyond_doubles() {
        let (a, b) = (whole(&[1 << 60, 5]), whole(&[(1 << 60) + 1, 5]));
        let d = compare(&a, &b).unwrap();
        assert_eq!((d.changed, d.max_abs), (1, 1.0));
        assert_eq!(compare(&a, &a).unwrap().changed, 0);
        let unsigned = |v: u64| tensor(DType::U64, v.to_le_bytes().to_vec());
        assert_eq!(compare(&unsigned(u64::MAX), &unsigned(u64::MAX - 1)).unwrap().max_abs, 1.0);
        // The same number in another type, and one that only looks like it.
        let float = tensor(DType::F64, 2f64.powi(60).to_le_bytes().to_vec());
        assert_eq!(compare(&whole(&[1 << 60]), &float).unwrap().changed, 0);
        assert_eq!(compare(&whole(&[(1 << 60) + 1]), &float).unwrap().max_abs, 1.0);
        // The bits of -1 are those of the largest unsigned number.
        assert_eq!(compare(&whole(&[-1]), &unsigned(u64::MAX)).unwrap().max_abs, 2f64.powi(64));
    }

    #[test]
    fn both_parts_of_complex_numbers() {
        let complex = |parts: &[f32]| {
            tensor(DType::C64, parts.iter().flat_map(|v| v.to_le_bytes()).collect())
        };
        let (a, b) = (complex(&[1.0, 2.0, 0.0, 1.0]), complex(&[1.0, 2.5, 0.0, 1.0]));
        let d = compare(&a, &b).unwrap();
        assert_eq!((d.changed, d.max_abs), (1, 0.5));
        let cosine = (1.0 + 5.0 + 1.0) / (6f64 * 8.25).sqrt();
        assert!((d.cosine - cosine).abs() < 1e-12, "{d:?}");
        let nan = complex(&[1.0, f32::NAN]);
        assert_eq!(compare(&nan, &nan).unwrap().changed, 0);
        assert_eq!(compare(&nan, &complex(&[1.0, 0.0])).unwrap().max_abs, f64::INFINITY);
    }
}
