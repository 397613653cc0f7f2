//! Distilling: a static model out of a sentence model, as Model2Vec does it.
//!
//! Every token of the vocabulary goes through the model by itself. The vectors that come out are brought
//! to fewer values by their principal components, and given weights: tokens stand in the vocabulary by how
//! frequent they are, and frequent ones say little (Zipf's law, and smooth inverse frequencies). A text is
//! then the mean of its tokens' vectors: hundreds of times faster than the model, and less good, which is
//! measured.

mod pca;
mod quality;
mod vocabulary;

pub use quality::{Agreement, agreement};

use serde::Serialize;
use serde_json::json;
use std::ops::ControlFlow;
use vocabulary::Tokens;
use weighbridge_codec::DType;
use weighbridge_encoder::{Encoder, Pooling, Settings};
use weighbridge_format::model::MATRIX;
use weighbridge_format::source::View;
use weighbridge_format::{Advice, Container, Error, Progress, Stage};

/// Tokens that go through the model between two looks at whether to go on.
const TOKENS_PER_LOOK: usize = 1024;

/// How rows are stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum RowType {
    /// 32 bits a value.
    F32,
    /// 16 bits a value.
    #[default]
    F16,
    /// 8 bits a value, and a weight for each row.
    I8,
}

impl RowType {
    /// All, by their names.
    pub const NAMES: [(&'static str, RowType); 3] =
        [("f32", RowType::F32), ("f16", RowType::F16), ("int8", RowType::I8)];

    /// Its name: `f32`, `f16` or `int8`.
    pub fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(_, own)| *own == self).map_or("", |(name, _)| name)
    }
}

/// What a static model is to be like.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct DistillSettings {
    /// Values of a vector; as many as the model has where it has no more.
    pub dimensions: usize,
    /// Words that get a vector of their own, beside the tokens of the model.
    pub words: Vec<String>,
    /// Keep only so many tokens of the model: the first ones, which are the most frequent.
    pub most_tokens: Option<usize>,
    /// How much less tokens count for being frequent: the smaller, the less. Without it all count alike.
    pub sif: Option<f64>,
    /// How rows are stored.
    pub rows: RowType,
    /// How many threads to use; all cores without it.
    pub threads: Option<usize>,
}

impl Default for DistillSettings {
    /// What Model2Vec takes.
    fn default() -> DistillSettings {
        DistillSettings {
            dimensions: 256,
            words: Vec::new(),
            most_tokens: None,
            sif: Some(1e-4),
            rows: RowType::default(),
            threads: None,
        }
    }
}

/// A static model, and what is known of it.
#[derive(Debug)]
#[non_exhaustive]
pub struct Distilled {
    /// The model, with its files.
    pub container: Container,
    /// How it was made, and how good it is.
    pub report: DistillReport,
}

/// How a static model was made, and how good it is. Its JSON is described in docs/json.md.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct DistillReport {
    /// The model that it was distilled from.
    pub teacher: Option<String>,
    /// Tokens that have a vector.
    pub tokens: usize,
    /// Words among them that were asked for and the model had no token for.
    pub added: usize,
    /// Values of a vector.
    pub dimensions: usize,
    /// The share of the variance of the tokens' vectors that they still have.
    pub variance: f64,
    /// How far both models agree on texts that come with the library.
    pub agreement: Agreement,
}

/// Distils a static model out of a sentence model.
///
/// # Errors
/// If the model can't be used, the settings ask for what can't be, or the work is ended.
pub fn distill(
    container: &Container,
    settings: &DistillSettings,
    progress: &mut Progress,
) -> Result<Distilled, Error> {
    check(settings)?;
    let plain = Settings {
        pooling: Some(Pooling::Mean),
        normalize: Some(false),
        threads: settings.threads,
        ..Settings::default()
    };
    let encoder = Encoder::new(container, &plain)?;
    let tokens = Tokens::of(container, &encoder, &settings.words, settings.most_tokens)?;
    let rows = token_vectors(&encoder, &tokens, progress)?;
    let width = encoder.dimensions();
    let wanted = settings.dimensions.min(width);
    if tokens.ids.len() <= wanted {
        let what = format!("{} tokens are too few for {wanted} dimensions", tokens.ids.len());
        return Err(Error::refused(what, Advice::set("dimensions", "asks for fewer")));
    }
    let reduced = pca::reduce(&rows, width, wanted);
    let (mut rows, variance) = reduced.ok_or_else(|| {
        Error::refused("vectors of tokens are NaN or infinite", "the weights are broken")
    })?;
    weigh(&mut rows, wanted, settings.sif);
    let name = encoder.spec().name.clone();
    let made = assemble(rows, wanted, &tokens, name.as_deref(), settings)?;
    let teacher = Settings { threads: settings.threads, ..Settings::default() };
    let (teacher, student) = (Encoder::new(container, &teacher)?, Encoder::new(&made, &teacher)?);
    progress.begin(Stage::Comparing, None::<u64>)?;
    let agreement = agreement(&teacher, &student, &crate::default_texts())?;
    let report = DistillReport {
        teacher: name,
        tokens: tokens.ids.len(),
        added: tokens.added,
        dimensions: wanted,
        variance,
        agreement,
    };
    Ok(Distilled { container: made, report })
}

fn check(settings: &DistillSettings) -> Result<(), Error> {
    if settings.dimensions == 0 {
        let advice = Advice::set("dimensions", "is at least 1");
        return Err(Error::refused("vectors of no values say nothing", advice));
    }
    match settings.sif {
        Some(sif) if !(sif > 0.0 && sif < 1.0) => {
            let advice = Advice::set("sif", "is 0, or above it and below 1");
            Err(Error::refused(format!("{sif} is no weight of frequencies"), advice))
        }
        _ => Ok(()),
    }
}

/// The vectors that the model gives to tokens, one behind the other.
fn token_vectors(
    encoder: &Encoder,
    tokens: &Tokens,
    progress: &mut Progress,
) -> Result<Vec<f32>, Error> {
    progress.begin(Stage::Embedding, tokens.ids.len() as u64)?;
    let mut rows = Vec::with_capacity(tokens.ids.len() * encoder.dimensions());
    for part in tokens.ids.chunks(TOKENS_PER_LOOK) {
        rows.extend(encoder.embed_tokens(part, &mut |_| ControlFlow::Continue(()))?);
        progress.advance(part.len() as u64)?;
    }
    Ok(rows)
}

/// Makes the rows of frequent tokens shorter. How frequent they are, their places tell: by Zipf's law a
/// token is met as often as one divided by its place says.
#[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation)]
fn weigh(rows: &mut [f32], width: usize, sif: Option<f64>) {
    let Some(sif) = sif else { return };
    let count = rows.len() / width;
    let share = |place: usize| 1.0 / (place + 2) as f64;
    let all: f64 = (0..count).map(share).sum();
    for (place, row) in rows.chunks_exact_mut(width).enumerate() {
        let weight = sif / (sif + share(place) / all);
        row.iter_mut().for_each(|x| *x = (f64::from(*x) * weight) as f32);
    }
}

/// The files and tensors of a model as Model2Vec saves it.
fn assemble(
    rows: Vec<f32>,
    width: usize,
    tokens: &Tokens,
    teacher: Option<&str>,
    settings: &DistillSettings,
) -> Result<Container, Error> {
    let name = |teacher: &str| format!("{teacher}-static-{width}");
    let dtype = match settings.rows {
        RowType::F32 => "float32",
        RowType::F16 => "float16",
        RowType::I8 => "int8",
    };
    let config = json!({
        "model_type": "model2vec", "architectures": ["StaticModel"],
        "tokenizer_name": teacher.unwrap_or_default(), "apply_pca": width,
        "sif_coefficient": settings.sif, "hidden_dim": width, "seq_length": 1_000_000,
        "normalize": true, "pooling": "mean", "embedding_dtype": dtype,
    });
    let module = |idx: u64, path: &str, class: &str| {
        let class = format!("sentence_transformers.models.{class}");
        json!({"idx": idx, "name": idx.to_string(), "path": path, "type": class})
    };
    let modules = json!([module(0, ".", "StaticEmbedding"), module(1, "1_Normalize", "Normalize")]);
    let pretty = |json: &serde_json::Value| serde_json::to_vec_pretty(json).unwrap_or_default();
    let shape = [tokens.ids.len() as u64, width as u64];
    let mut builder = Container::builder();
    if let Some(teacher) = teacher {
        builder = builder.metadata("model_name", name(teacher));
    }
    builder = match settings.rows {
        RowType::F32 => builder.values(MATRIX, &shape, rows),
        RowType::F16 => {
            let halves = rows.iter().flat_map(|x| half::f16::from_f32(*x).to_le_bytes());
            builder.bytes(MATRIX, DType::F16, &shape, View::owned(halves.collect()))
        }
        RowType::I8 => {
            let (codes, weights) = to_bytes(&rows, width);
            builder.bytes(MATRIX, DType::I8, &shape, View::owned(codes)).values(
                "weights",
                &shape[..1],
                weights,
            )
        }
    };
    builder
        .attachment("config.json", pretty(&config))
        .attachment("modules.json", pretty(&modules))
        .attachment("tokenizer.json", tokens.json.to_string().into_bytes())
        .build()
}

/// Rows of whole numbers from -127 to 127, and what each is to be multiplied by.
#[allow(clippy::cast_possible_truncation)]
fn to_bytes(rows: &[f32], width: usize) -> (Vec<u8>, Vec<f32>) {
    let (mut codes, mut weights) = (Vec::with_capacity(rows.len()), Vec::new());
    for row in rows.chunks_exact(width) {
        let largest = row.iter().fold(0f32, |most, x| most.max(x.abs()));
        let weight = if largest > 0.0 { largest / 127.0 } else { 1.0 };
        let code = |x: &f32| ((x / weight).round_ties_even() as i8).to_le_bytes();
        codes.extend(row.iter().flat_map(code));
        weights.push(weight);
    }
    (codes, weights)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What `compute_weights` of Model2Vec 0.9.0 gives for five tokens and 1e-4.
    #[test]
    fn weights_are_those_of_model2vec() {
        let mut rows = vec![1.0; 5];
        weigh(&mut rows, 1, Some(1e-4));
        let wanted = [2.899_159_6e-4, 4.348_108_6e-4, 5.796_637e-4, 7.244_748e-4, 8.692_435e-4];
        for (a, b) in rows.iter().zip(wanted) {
            assert!((a - b).abs() < 1e-9, "{a} {b}");
        }
        let mut rows = vec![1.0; 5];
        weigh(&mut rows, 1, None);
        assert_eq!(rows, [1.0; 5]);
    }

    #[test]
    fn bytes_are_near() {
        let rows = [0.5, -1.0, 0.25, 0.0, 0.0, 0.0];
        let (codes, weights) = to_bytes(&rows, 3);
        let back: Vec<_> = codes.iter().map(|c| f32::from(*c as i8)).collect();
        for (i, (code, wanted)) in back.iter().zip(rows).enumerate() {
            assert!((code * weights[i / 3] - wanted).abs() <= weights[i / 3] / 2.0);
        }
        assert_eq!((weights[0], weights[1]), (1.0 / 127.0, 1.0));
    }
}
