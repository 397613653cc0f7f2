//! Comparing two files by all that they hold, whatever their formats are, and two models by the
//! vectors that they give.

mod contents;
mod values;
mod vectors;

pub use contents::{Compared, ContentDifference};
pub use values::ValueDifference;
pub use vectors::{VectorDifference, default_texts, diff_vectors};

use serde::Serialize;
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use weighbridge_format::model::Once;
use weighbridge_format::{Container, Encoding, Error, Tensor};

/// What is compared, and what counts as the same.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct DiffSettings {
    /// The largest difference of values that count as the same.
    pub tolerance: f64,
    /// Only the tensors are compared.
    pub tensors_only: bool,
}

impl DiffSettings {
    /// Everything is compared, exactly.
    pub fn new() -> DiffSettings {
        DiffSettings::default()
    }

    /// Values count as the same up to this difference.
    #[must_use]
    pub fn tolerance(mut self, tolerance: f64) -> DiffSettings {
        self.tolerance = tolerance;
        self
    }

    /// Only the tensors are compared, if `yes`.
    #[must_use]
    pub fn tensors_only(mut self, yes: bool) -> DiffSettings {
        self.tensors_only = yes;
        self
    }
}

/// What two containers have in common and what not. Its JSON is described in docs/json.md.
#[derive(Debug, Serialize)]
#[non_exhaustive]
pub struct Difference<'a> {
    /// Nothing that was compared is missing or differs by more than the tolerance.
    pub same: bool,
    /// How much was compared.
    pub compared: Compared,
    /// Tensors that only the first has, by name.
    pub only_first: Vec<&'a str>,
    /// Tensors that only the second has, by name.
    pub only_second: Vec<&'a str>,
    /// Tensors that both have, the most different first.
    pub tensors: Vec<TensorDifference<'a>>,
    /// What else differs: metadata, words, files.
    pub contents: Vec<ContentDifference>,
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
    /// Nothing to compare when the shapes differ, a side has no data, or its values are not known.
    pub values: Option<ValueDifference>,
}

/// Compares tensors by name; two files of one tensor each are compared whatever it is called.
///
/// # Errors
/// If the files are damaged, or values can't be read.
pub fn diff<'a>(
    first: &'a Container,
    second: &'a Container,
    settings: &DiffSettings,
) -> Result<Difference<'a>, Error> {
    [first, second].iter().for_each(|c| c.start_damage_check());
    let mut difference = diff_tensors(first, second, settings.tolerance)?;
    difference.compared.tensors = difference.tensors.len() as u64;
    if !settings.tensors_only {
        difference.contents = contents::compare(first, second, &mut difference.compared)?;
    }
    difference.same = difference.only_first.is_empty()
        && difference.only_second.is_empty()
        && difference.contents.is_empty()
        && difference.tensors.iter().all(|t| t.same);
    [first, second].iter().try_for_each(|c| c.check_damage())?;
    Ok(difference)
}

fn diff_tensors<'a>(
    first: &'a Container,
    second: &'a Container,
    tolerance: f64,
) -> Result<Difference<'a>, Error> {
    let compared = Compared::default();
    let (mut tensors, mut only_first, contents) = (Vec::new(), Vec::new(), Vec::new());
    let mut once = Once::new([first, second]);
    if let ([a], [b]) = (first.tensors.as_slice(), second.tensors.as_slice()) {
        tensors.push(compare(a, b, tolerance, &mut once)?);
        let only_second = Vec::new();
        return Ok(Difference { same: true, compared, only_first, only_second, tensors, contents });
    }
    let known: HashMap<_, _> = second.tensors.iter().map(|t| (t.name.as_str(), t)).collect();
    for tensor in &first.tensors {
        match known.get(tensor.name.as_str()) {
            Some(other) => tensors.push(compare(tensor, other, tolerance, &mut once)?),
            None => only_first.push(tensor.name.as_str()),
        }
    }
    let names: HashSet<_> = first.tensors.iter().map(|t| t.name.as_str()).collect();
    let others = second.tensors.iter().map(|t| t.name.as_str());
    let only_second: Vec<_> = others.filter(|n| !names.contains(n)).collect();
    let error = |t: &TensorDifference| t.values.map_or(f64::INFINITY, |v| v.relative_rmse);
    tensors.sort_by(|a, b| a.same.cmp(&b.same).then(error(b).total_cmp(&error(a))));
    Ok(Difference { same: true, compared, only_first, only_second, tensors, contents })
}

fn compare<'a>(
    a: &'a Tensor,
    b: &'a Tensor,
    tolerance: f64,
    once: &mut Once<'a, ValueDifference, 2>,
) -> Result<TensorDifference<'a>, Error> {
    let alike = a.shape == b.shape && a.has_data() == b.has_data();
    let known = a.encoding.has_values() && b.encoding.has_values();
    let values = match alike && known && a.has_data() {
        true => Some(once.of([a, b], || values::compare(a, b))?),
        false => None,
    };
    let same = match values {
        Some(v) => v.max_abs <= tolerance,
        // Two declarations of the same thing, or the same codes whose values nobody knows.
        None => alike && same_codes(a, b, once)?,
    };
    let encodings = (a.encoding.name(), b.encoding.name());
    Ok(TensorDifference { name: &a.name, same, encodings, shapes: (&a.shape, &b.shape), values })
}

fn same_codes<'a>(
    a: &'a Tensor,
    b: &'a Tensor,
    once: &mut Once<'a, ValueDifference, 2>,
) -> Result<bool, Error> {
    if !a.has_data() {
        return Ok(a.encoding == b.encoding);
    }
    if a.encoding.has_values() || b.encoding.has_values() {
        return Ok(false);
    }
    // They may stand in types of different widths.
    let codes = |t: &Tensor| Tensor { encoding: Encoding::Plain(t.encoding.stored()), ..t.clone() };
    Ok(once.of([a, b], || values::compare(&codes(a), &codes(b)))?.changed == 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use weighbridge_codec::DType;
    use weighbridge_format::View;

    fn file(values: &[(&str, &[f32])]) -> Container {
        let tensor = |(name, values): &(&str, &[f32])| {
            let bytes = values.iter().flat_map(|v| v.to_le_bytes()).collect();
            let shape = vec![values.len() as u64];
            Tensor::stored(*name, Encoding::Plain(DType::F32), shape, View::owned(bytes)).unwrap()
        };
        Container { tensors: values.iter().map(tensor).collect(), ..Container::default() }
    }

    fn within(tolerance: f64) -> DiffSettings {
        DiffSettings::new().tolerance(tolerance)
    }

    #[test]
    fn missing_shapes_and_values() {
        let a = file(&[("same", &[1.0, f32::NAN]), ("off", &[3.0, 4.0]), ("gone", &[0.0])]);
        let b = file(&[("same", &[1.0, f32::NAN]), ("off", &[3.0, 4.5]), ("new", &[0.0])]);
        let d = diff(&a, &b, &within(0.0)).unwrap();
        assert_eq!((d.same, d.only_first, d.only_second), (false, vec!["gone"], vec!["new"]));
        let off = &d.tensors[0];
        let v = off.values.unwrap();
        assert_eq!((off.name, off.same, v.changed, v.max_abs), ("off", false, 1, 0.5));
        assert!((v.relative_rmse - 0.1).abs() < 1e-12);
        assert!((v.cosine - 27.0 / (5.0 * 29.25f64.sqrt())).abs() < 1e-12);
        assert!(diff(&a, &b, &within(0.5)).unwrap().tensors.iter().all(|t| t.same));
        assert!(d.tensors[1].same);
        let other = file(&[("x", &[1.0]), ("y", &[1.0, 2.0])]);
        let shapes = file(&[("x", &[1.0, 2.0]), ("y", &[f32::INFINITY, 2.0])]);
        let d = diff(&other, &shapes, &within(1e30)).unwrap();
        assert!(!d.same && d.tensors.iter().all(|t| !t.same));
    }

    #[test]
    fn single_tensors_need_no_common_name() {
        let (a, b) = (file(&[("a", &[1.0])]), file(&[("b", &[1.0])]));
        assert!(diff(&a, &b, &within(0.0)).unwrap().same);
    }
}
