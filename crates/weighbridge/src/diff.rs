//! Comparing two files by their tensors, whatever their formats are.

use serde::Serialize;
use std::borrow::Cow;
use std::collections::HashMap;
use weighbridge_format::{Container, Error, Tensor};

/// What two containers have in common and what not. Its JSON is described in docs/json.md.
#[derive(Debug, Serialize)]
#[non_exhaustive]
pub struct Difference<'a> {
    /// Nothing is missing, and no value differs by more than the tolerance.
    pub same: bool,
    /// Names that only the first has.
    pub only_first: Vec<&'a str>,
    /// Names that only the second has.
    pub only_second: Vec<&'a str>,
    /// Tensors that both have, the most different first.
    pub tensors: Vec<TensorDifference<'a>>,
}

/// A tensor that both containers have.
#[derive(Debug, Serialize)]
#[non_exhaustive]
pub struct TensorDifference<'a> {
    /// Its name in the first.
    pub name: &'a str,
    /// Its values agree within the tolerance.
    pub same: bool,
    /// The encodings in both.
    pub encodings: (Cow<'static, str>, Cow<'static, str>),
    /// The shapes in both.
    pub shapes: (&'a [u64], &'a [u64]),
    /// Nothing to compare when the shapes differ or a side has no data.
    pub values: Option<ValueDifference>,
}

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

/// Compares by name; two files of one tensor each are compared whatever it is called.
///
/// # Errors
/// If values can't be read.
pub fn diff<'a>(
    first: &'a Container,
    second: &'a Container,
    tolerance: f64,
) -> Result<Difference<'a>, Error> {
    if let ([a], [b]) = (first.tensors.as_slice(), second.tensors.as_slice()) {
        let tensor = compare(a, b, tolerance)?;
        return Ok(Difference {
            same: tensor.same,
            only_first: vec![],
            only_second: vec![],
            tensors: vec![tensor],
        });
    }
    let known: HashMap<_, _> = second.tensors.iter().map(|t| (t.name.as_str(), t)).collect();
    let mut tensors = Vec::new();
    let mut only_first = Vec::new();
    for tensor in &first.tensors {
        match known.get(tensor.name.as_str()) {
            Some(other) => tensors.push(compare(tensor, other, tolerance)?),
            None => only_first.push(tensor.name.as_str()),
        }
    }
    let names: std::collections::HashSet<_> =
        first.tensors.iter().map(|t| t.name.as_str()).collect();
    let others = second.tensors.iter().map(|t| t.name.as_str());
    let only_second: Vec<_> = others.filter(|n| !names.contains(n)).collect();
    let error = |t: &TensorDifference| t.values.map_or(f64::INFINITY, |v| v.relative_rmse);
    tensors.sort_by(|a, b| a.same.cmp(&b.same).then(error(b).total_cmp(&error(a))));
    let same = only_first.is_empty() && only_second.is_empty() && tensors.iter().all(|t| t.same);
    Ok(Difference { same, only_first, only_second, tensors })
}

fn compare<'a>(
    a: &'a Tensor,
    b: &'a Tensor,
    tolerance: f64,
) -> Result<TensorDifference<'a>, Error> {
    let both = a.has_data() && b.has_data() && a.shape == b.shape;
    let values = if both { Some(compare_values(a, b)?) } else { None };
    let same = match values {
        Some(v) => v.max_abs <= tolerance,
        // Two declarations of the same thing.
        None => !a.has_data() && !b.has_data() && a.shape == b.shape && a.encoding == b.encoding,
    };
    let encodings = (a.encoding.name(), b.encoding.name());
    Ok(TensorDifference { name: &a.name, same, encodings, shapes: (&a.shape, &b.shape), values })
}

/// In one walk through both, a block of each at a time.
fn compare_values(a: &Tensor, b: &Tensor) -> Result<ValueDifference, Error> {
    let (mut changed, mut max_abs) = (0, 0f64);
    let (mut squares, mut aa, mut bb, mut ab) = (0.0, 0.0, 0.0, 0.0);
    let (mut left, mut right) = (a.blocks(), b.blocks());
    while let (Some(x), Some(y)) = (left.next()?, right.next()?) {
        for (&x, &y) in x.iter().zip(y) {
            if x == y || (x.is_nan() && y.is_nan()) {
                let finite = if x.is_finite() { x } else { 0.0 };
                aa += finite * finite;
                bb += finite * finite;
                ab += finite * finite;
                continue;
            }
            changed += 1;
            let difference = (x - y).abs();
            max_abs = max_abs.max(if difference.is_nan() { f64::INFINITY } else { difference });
            squares += difference * difference;
            aa += x * x;
            bb += y * y;
            ab += x * y;
        }
    }
    let relative_rmse = if changed == 0 { 0.0 } else { (squares / aa).sqrt() };
    let cosine = if changed == 0 { 1.0 } else { ab / (aa * bb).sqrt() };
    Ok(ValueDifference { changed, max_abs, relative_rmse, cosine })
}

#[cfg(test)]
mod tests {
    use super::*;
    use weighbridge_codec::DType;
    use weighbridge_format::{Encoding, View};

    fn file(values: &[(&str, &[f32])]) -> Container {
        let tensor = |(name, values): &(&str, &[f32])| {
            let bytes = values.iter().flat_map(|v| v.to_le_bytes()).collect();
            let shape = vec![values.len() as u64];
            Tensor::stored(*name, Encoding::Plain(DType::F32), shape, View::owned(bytes)).unwrap()
        };
        Container { tensors: values.iter().map(tensor).collect(), ..Container::default() }
    }

    #[test]
    fn missing_shapes_and_values() {
        let a = file(&[("same", &[1.0, f32::NAN]), ("off", &[3.0, 4.0]), ("gone", &[0.0])]);
        let b = file(&[("same", &[1.0, f32::NAN]), ("off", &[3.0, 4.5]), ("new", &[0.0])]);
        let d = diff(&a, &b, 0.0).unwrap();
        assert_eq!((d.same, d.only_first, d.only_second), (false, vec!["gone"], vec!["new"]));
        let off = &d.tensors[0];
        let v = off.values.unwrap();
        assert_eq!((off.name, off.same, v.changed, v.max_abs), ("off", false, 1, 0.5));
        assert!((v.relative_rmse - 0.1).abs() < 1e-12);
        assert!((v.cosine - 27.0 / (5.0 * 29.25f64.sqrt())).abs() < 1e-12);
        assert!(diff(&a, &b, 0.5).unwrap().tensors.iter().all(|t| t.same));
        assert!(d.tensors[1].same);
        let other = file(&[("x", &[1.0]), ("y", &[1.0, 2.0])]);
        let shapes = file(&[("x", &[1.0, 2.0]), ("y", &[f32::INFINITY, 2.0])]);
        let d = diff(&other, &shapes, 1e30).unwrap();
        assert!(!d.same && d.tensors.iter().all(|t| !t.same));
    }

    #[test]
    fn single_tensors_need_no_common_name() {
        let (a, b) = (file(&[("a", &[1.0])]), file(&[("b", &[1.0])]));
        assert!(diff(&a, &b, 0.0).unwrap().same);
    }
}
