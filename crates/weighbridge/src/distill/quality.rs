//! How far two models agree about texts, whatever their vectors are like.

use serde::Serialize;
use std::collections::HashSet;
use weighbridge_encoder::Encoder;
use weighbridge_format::Error;

/// How many of the nearest texts are looked at.
const NEAREST: usize = 10;

/// How far two models agree on which texts are near. Their vectors may have different numbers of values.
#[derive(Clone, Copy, Debug, Serialize)]
#[non_exhaustive]
pub struct Agreement {
    /// Texts.
    pub texts: usize,
    /// The correlation of the cosines that both give to each pair of texts, by their ranks.
    pub correlation: f64,
    /// The share of the ten nearest other texts (or of all, where there are fewer) that are the same.
    pub neighbours: f64,
    /// The share of texts whose nearest other text is the same.
    pub nearest: f64,
}

/// How far two models agree on these texts.
///
/// # Errors
/// Whatever the models fail with.
#[allow(clippy::cast_precision_loss)]
pub fn agreement(first: &Encoder, second: &Encoder, texts: &[String]) -> Result<Agreement, Error> {
    let (a, b) = (cosines(first, texts)?, cosines(second, texts)?);
    let n = texts.len();
    let pairs = || (0..n).flat_map(|i| (0..i).map(move |j| i * n + j));
    let of = |all: &[f64]| pairs().map(|at| all[at]).collect::<Vec<_>>();
    let correlation = correlation(&ranks(&of(&a)), &ranks(&of(&b)));
    let k = NEAREST.min(n.saturating_sub(1));
    let (mut same, mut nearest) = (0, 0);
    for i in 0..n {
        let row = |all: &[f64]| best(&all[i * n..][..n], i, k);
        let (x, y) = (row(&a), row(&b));
        nearest += usize::from(!x.is_empty() && x.first() == y.first());
        let there: HashSet<_> = y.into_iter().collect();
        same += x.iter().filter(|other| there.contains(other)).count();
    }
    Ok(Agreement {
        texts: n,
        correlation,
        neighbours: same as f64 / (n * k).max(1) as f64,
        nearest: nearest as f64 / n.max(1) as f64,
    })
}

/// The cosines of every text with every other.
fn cosines(encoder: &Encoder, texts: &[String]) -> Result<Vec<f64>, Error> {
    let vectors = encoder.embed(texts)?;
    let dot = |a: &[f32], b: &[f32]| -> f64 {
        a.iter().zip(b).map(|(x, y)| f64::from(*x) * f64::from(*y)).sum()
    };
    let lengths: Vec<_> = vectors.iter().map(|v| dot(v, v).sqrt().max(1e-12)).collect();
    let mut all = Vec::with_capacity(texts.len() * texts.len());
    for (a, x) in vectors.iter().zip(&lengths) {
        all.extend(vectors.iter().zip(&lengths).map(|(b, y)| dot(a, b) / (x * y)));
    }
    Ok(all)
}

/// The places of the largest values but for one, the largest first.
fn best(values: &[f64], but: usize, k: usize) -> Vec<usize> {
    let mut places: Vec<_> = (0..values.len()).filter(|i| *i != but).collect();
    places.sort_by(|a, b| values[*b].total_cmp(&values[*a]).then(a.cmp(b)));
    places.truncate(k);
    places
}

#[allow(clippy::cast_precision_loss)]
fn ranks(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<_> = (0..values.len()).collect();
    order.sort_by(|a, b| values[*a].total_cmp(&values[*b]));
    let mut ranks = vec![0.0; values.len()];
    order.into_iter().enumerate().for_each(|(rank, place)| ranks[place] = rank as f64);
    ranks
}

#[allow(clippy::cast_precision_loss)]
fn correlation(a: &[f64], b: &[f64]) -> f64 {
    let mean = |list: &[f64]| list.iter().sum::<f64>() / list.len().max(1) as f64;
    let (mean_a, mean_b) = (mean(a), mean(b));
    let (mut both, mut one, mut other) = (0.0, 0.0, 0.0);
    for (x, y) in a.iter().zip(b) {
        let (x, y) = (x - mean_a, y - mean_b);
        both += x * y;
        one += x * x;
        other += y * y;
    }
    if one * other > 0.0 { both / (one * other).sqrt() } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_agree_or_do_not() {
        let rank = |a: &[f64], b: &[f64]| correlation(&ranks(a), &ranks(b));
        assert!((rank(&[1.0, 5.0, 2.0], &[0.1, 0.3, 0.2]) - 1.0).abs() < 1e-12);
        assert!((rank(&[1.0, 2.0, 3.0], &[3.0, 2.0, 1.0]) + 1.0).abs() < 1e-12);
        assert_eq!(best(&[0.5, 1.0, 0.7, 0.9], 1, 2), [3, 2]);
    }
}
