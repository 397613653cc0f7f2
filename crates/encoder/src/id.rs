//! Which model it was: enough to go on with its vectors, or to ask them something, with that model
//! and no other.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use weighbridge_codec::parallel::*;
use weighbridge_format::wire::to_len;
use weighbridge_format::{Advice, Encoding, Error, Tensor};

/// Texts whose vectors tell models, tokenizers and ways of computing apart.
pub(crate) const PROBES: [&str; 3] = [
    "A lorry loaded with 40 tonnes of gravel stands on the weighbridge.",
    "Why, naïve Straße-läufer; 東京 — 3.14?",
    "x",
];

/// Models whose vectors of these texts are as near as this can be asked for each other's neighbours:
/// one and the same with weights of different precision.
const NEAR: f64 = 0.99;

/// Values that are hashed together.
const HASHED: usize = 1 << 16;

/// A model, told apart from all others. [`Encoder::id`](crate::Encoder::id) makes it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ModelId {
    /// What it is called, where its files say it.
    pub name: Option<String>,
    /// Where it was found: an absolute path.
    pub path: Option<String>,
    /// SHA-256 of the weights that are used: names, types, shapes and values, in hexadecimal
    /// digits. Other containers, prefixes of names and tensors beside them make no difference.
    pub weights: String,
    /// The vectors of a few texts, the same for every model.
    pub probes: Vec<Vec<f32>>,
}

impl ModelId {
    /// A model that is told from others by what it makes of the probe texts alone: its weights are not
    /// read.
    pub fn from_probes(
        name: Option<String>,
        path: Option<String>,
        probes: Vec<Vec<f32>>,
    ) -> ModelId {
        ModelId { name, path, weights: String::new(), probes }
    }

    /// Whether the weights are the same, so that a run can go on.
    pub fn has_weights_of(&self, other: &ModelId) -> bool {
        self.weights == other.weights
    }

    /// The least cosine between the vectors that both give the probe texts; none if they have
    /// different numbers of values.
    pub fn cosine(&self, other: &ModelId) -> Option<f64> {
        let pairs = || self.probes.iter().zip(&other.probes);
        let comparable = !self.probes.is_empty()
            && self.probes.len() == other.probes.len()
            && pairs().all(|(a, b)| a.len() == b.len());
        comparable.then(|| pairs().map(|(a, b)| cosine(a, b)).fold(1.0, f64::min))
    }

    /// Checks that vectors of `asked` can be compared with vectors of this model: both are of the
    /// same weights, or give nearly the same vectors, as a model does whose weights were rounded.
    ///
    /// # Errors
    /// [`Error::Refused`] that names both.
    pub fn check_comparable(&self, asked: &ModelId) -> Result<(), Error> {
        let why = match self.cosine(asked) {
            Some(cosine) if cosine >= NEAR => return Ok(()),
            Some(cosine) => format!("the cosine of what they make of the same text is {cosine:.3}"),
            None => {
                let width = |id: &ModelId| id.probes.first().map_or(0, Vec::len);
                format!("their vectors have {} and {} values", width(self), width(asked))
            }
        };
        let what = format!(
            "the rows are of the model {}, and {} can't be asked for them: {why}",
            self.describe(),
            asked.describe()
        );
        Err(Error::refused(what, Advice::set("model", "names the model that the rows are of")))
    }

    /// Its name and place, for messages.
    fn describe(&self) -> String {
        match (&self.name, &self.path) {
            (Some(name), Some(path)) => format!("{name} ({path})"),
            (Some(one), None) | (None, Some(one)) => one.clone(),
            (None, None) if self.weights.is_empty() => "without a name".to_owned(),
            (None, None) => format!("with the hash {:.12}", self.weights),
        }
    }
}

fn cosine(a: &[f32], b: &[f32]) -> f64 {
    let dot = |a: &[f32], b: &[f32]| -> f64 {
        a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum()
    };
    let lengths = (dot(a, a) * dot(b, b)).sqrt();
    // A text without a token that the model knows has such a vector, with every copy of that model.
    if a.iter().chain(b).all(|value| *value == 0.0) {
        return 1.0;
    }
    // Vectors of zeros have no direction; NaN and infinity are near nothing.
    if lengths > 0.0 && lengths.is_finite() { dot(a, b) / lengths } else { 0.0 }
}

/// The hash of weights with their names.
pub(crate) fn hash(weights: &[(String, Tensor)]) -> Result<String, Error> {
    let each = weights.par_iter().map(|(name, tensor)| hash_tensor(name, tensor));
    let mut all = Sha256::new();
    each.collect::<Result<Vec<_>, Error>>()?.iter().for_each(|hash| all.update(hash));
    Ok(all.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}

fn hash_tensor(name: &str, tensor: &Tensor) -> Result<[u8; 32], Error> {
    let mut hash = Sha256::new();
    hash.update(format!("{name}\n{}{:?}\n", tensor.encoding.value_type(), tensor.shape));
    let (mut raw, mut values, mut bytes) = (Vec::new(), Vec::new(), Vec::new());
    for start in (0..tensor.count()).step_by(HASHED) {
        let n = to_len(tensor.count() - start).min(HASHED);
        if let Encoding::Plain(_) = tensor.encoding {
            hash.update(tensor.canonical(start, n, &mut raw)?);
        } else {
            // Codes are not compared, but what they stand for.
            values.resize(n, 0.0);
            tensor.decode(start, &mut values, &mut raw)?;
            bytes.clear();
            bytes.extend(values.iter().flat_map(|v: &f32| v.to_le_bytes()));
            hash.update(&bytes);
        }
    }
    Ok(hash.finalize().into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(name: &str, vector: [f32; 2]) -> ModelId {
        let probes = vec![vector.to_vec(), vec![1.0, 0.0]];
        ModelId { name: Some(name.into()), path: None, weights: name.into(), probes }
    }

    #[test]
    fn near_models_may_ask() {
        let rows = id("rows", [0.6, 0.8]);
        assert!(rows.check_comparable(&id("rounded", [0.61, 0.79])).is_ok());
        let error = rows.check_comparable(&id("other", [0.8, 0.6])).unwrap_err().to_string();
        assert!(error.contains("rows") && error.contains("other") && error.contains("0.960"));
        let mut narrow = id("narrow", [0.6, 0.8]);
        narrow.probes.iter_mut().for_each(|probe| probe.truncate(1));
        let error = rows.check_comparable(&narrow).unwrap_err().to_string();
        assert!(error.contains("2 and 1 values"), "{error}");
        for odd in [[f32::NAN, 1.0], [f32::INFINITY, 1.0], [0.0, 0.0]] {
            assert!(rows.check_comparable(&id("odd", odd)).is_err());
        }
    }

    #[test]
    fn ids_survive_json() {
        let before = ModelId { path: Some("/models/a".into()), ..id("a", [0.1, 1e-20]) };
        let text = serde_json::to_string(&before).unwrap();
        assert_eq!(serde_json::from_str::<ModelId>(&text).unwrap(), before);
    }
}
