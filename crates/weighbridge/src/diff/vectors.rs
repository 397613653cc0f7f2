//! Comparing two models by the vectors that they give.

use crate::quantize::ErrorSums;
use serde::Serialize;
use std::collections::HashSet;
use weighbridge_encoder::Encoder;
use weighbridge_format::Error;
use weighbridge_search::{Matrix, Metric, Query, Rows, nearest};

/// How many of the nearest texts are looked at.
const NEAREST: usize = 10;

/// How far the vectors are apart that two models give to the same texts. Its JSON is described in
/// docs/json.md.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct VectorDifference {
    /// No value differs by more than the tolerance.
    pub same: bool,
    /// Texts.
    pub texts: u64,
    /// Values of a vector.
    pub dimensions: usize,
    /// The largest difference of values.
    pub max_abs: f64,
    /// The smallest cosine of the angle between the two vectors of a text.
    pub worst_cosine: f64,
    /// The text that has it.
    pub worst_text: String,
    /// The cosines' mean.
    pub mean_cosine: f64,
    /// Texts whose nearest other text is another one.
    pub nearest_changed: u64,
    /// The share of the ten nearest other texts (or of all, where there are fewer) that are the same.
    pub neighbours_kept: f64,
}

/// Sentences on all kinds of subjects, some questions, some in other languages.
const TEXTS: &str = include_str!("texts.txt");

/// Texts that come with the library, to compare models with. Quantizing does not see them.
pub fn default_texts() -> Vec<String> {
    TEXTS.lines().map(str::to_owned).collect()
}

/// Compares two models by the vectors that they give to these texts.
///
/// # Errors
/// [`Error::Refused`] if there are fewer than two texts, or the vectors are not of the same size;
/// whatever the models fail with.
pub fn diff_vectors(
    first: &Encoder,
    second: &Encoder,
    texts: &[String],
    tolerance: f64,
) -> Result<VectorDifference, Error> {
    let dimensions = first.dimensions();
    if dimensions != second.dimensions() {
        let what = format!(
            "vectors of {dimensions} values can't be compared with those of {}",
            second.dimensions()
        );
        return Err(Error::refused(what, "the models have to give vectors of the same size"));
    }
    if texts.len() < 2 {
        return Err(Error::refused("at least two texts are needed", "neighbours are compared"));
    }
    let (a, b) = (first.embed_flat(texts)?, second.embed_flat(texts)?);
    let max_abs = a.iter().zip(&b).map(|(x, y)| f64::from((x - y).abs())).fold(0.0, f64::max);
    let pairs = a.chunks_exact(dimensions).zip(b.chunks_exact(dimensions));
    let cosines: Vec<f64> = pairs.map(|(x, y)| ErrorSums::of(x, y).figures().cosine).collect();
    let worst = (0..cosines.len()).min_by(|&i, &j| cosines[i].total_cmp(&cosines[j])).unwrap_or(0);
    let (near_a, near_b) = (neighbours(&a, dimensions)?, neighbours(&b, dimensions)?);
    let changed = near_a.iter().zip(&near_b).filter(|(x, y)| x.first() != y.first()).count();
    let kept = |(x, y): (&Vec<usize>, &Vec<usize>)| {
        let there: HashSet<_> = y.iter().collect();
        x.iter().filter(|row| there.contains(row)).count()
    };
    let kept: usize = near_a.iter().zip(&near_b).map(kept).sum();
    let all: usize = near_a.iter().map(Vec::len).sum();
    #[allow(clippy::cast_precision_loss)]
    Ok(VectorDifference {
        same: max_abs <= tolerance,
        texts: texts.len() as u64,
        dimensions,
        max_abs,
        worst_cosine: cosines[worst],
        worst_text: texts[worst].clone(),
        mean_cosine: cosines.iter().sum::<f64>() / cosines.len() as f64,
        nearest_changed: changed as u64,
        neighbours_kept: kept as f64 / all.max(1) as f64,
    })
}

/// The nearest other texts of each.
fn neighbours(vectors: &[f32], dimensions: usize) -> Result<Vec<Vec<usize>>, Error> {
    let failed = |e: weighbridge_search::Error| Error::refused(e.to_string(), "");
    let rows = Matrix::new(vectors, dimensions).map_err(failed)?;
    let own: Vec<[usize; 1]> = (0..rows.count()).map(|row| [row]).collect();
    let queries = vectors.chunks_exact(dimensions).zip(&own);
    let queries: Vec<_> = queries.map(|(vector, own)| Query { vector, exclude: own }).collect();
    let hits = nearest(&rows, &queries, NEAREST, Metric::Cosine).map_err(failed)?;
    Ok(hits.into_iter().map(|hits| hits.into_iter().map(|h| h.row).collect()).collect())
}
