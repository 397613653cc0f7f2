//! A model that is ready to use.

mod observe;

use crate::bert::{Bert, Config, Scratch};
use crate::pool::Pool;
use crate::settings::{Pooling, ResolvedSettings, Settings};
use crate::tokenizer::Tokenizer;
use std::ops::Range;
#[cfg(feature = "fs")]
use std::path::Path;
use std::sync::Mutex;
use weighbridge_codec::parallel::{self, *};
use weighbridge_format::{Advice, Container, Error, Listing};
#[cfg(feature = "fs")]
use weighbridge_format::{Formats, Input, Options};

/// Tokens that go through the model together: enough that reading the weights costs little, and few
/// enough that what is between the products stays in the caches.
const BATCH_TOKENS: usize = 128;

/// With fewer tokens a thread than this, threads divide up the columns of each product instead of
/// the texts.
const FEW_TOKENS: usize = 24;

/// Texts that one thread tokenizes at a time.
const TEXTS_PER_TASK: usize = 32;

/// A model with its tokenizer, ready to embed texts: to make a vector of each.
///
/// ```no_run
/// # fn main() -> Result<(), weighbridge_encoder::Error> {
/// let encoder = weighbridge_encoder::Encoder::open("minilm.weights")?;
/// let vectors = encoder.embed(&["A man is eating pasta.", "Someone has lunch."])?;
/// assert_eq!(vectors[0].len(), encoder.dimensions());
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Encoder {
    model: Bert,
    tokenizer: Tokenizer,
    settings: ResolvedSettings,
    pool: Pool,
    /// Memory of earlier batches, to be used again.
    spare: Mutex<Vec<Scratch>>,
}

impl Encoder {
    /// Opens a model in a file or directory of any format, with the model's own settings.
    ///
    /// # Errors
    ///
    /// When the file can't be read, or is not a model that can be used, see [`Encoder::new`].
    #[cfg(feature = "fs")]
    pub fn open(path: impl AsRef<Path>) -> Result<Encoder, Error> {
        Encoder::open_with(path, &Settings::default())
    }

    /// Opens a model in a file or directory of any format.
    ///
    /// # Errors
    ///
    /// When the file can't be read, or model or settings can't be used, see [`Encoder::new`].
    #[cfg(feature = "fs")]
    pub fn open_with(path: impl AsRef<Path>, settings: &Settings) -> Result<Encoder, Error> {
        let input = Input::open(path.as_ref())?;
        Encoder::new(&Formats::builtin().open(&input, &Options::default())?, settings)
    }

    /// Loads the weights and the tokenizer of a model that is open.
    ///
    /// # Errors
    ///
    /// When the model is not a BERT, or lacks tensors, metadata or a vocabulary; when its weights
    /// are NaN or infinite; or when the settings ask for what the model can't do, such as more
    /// tokens than it has positions.
    pub fn new(container: &Container, settings: &Settings) -> Result<Encoder, Error> {
        crate::family::check(container)?;
        let pool = Pool::new(settings.threads)?;
        let (model, tokenizer) = pool.install(|| {
            // The weights take longest; the words are read beside them.
            let (model, tokenizer) = parallel::join(
                || Bert::load(container, settings.precision),
                || Tokenizer::of(container),
            );
            Ok::<_, Error>((model?, tokenizer?))
        })?;
        let Config { hidden, positions, vocabulary_size, .. } = model.config;
        if tokenizer.len() > vocabulary_size {
            let what = format!(
                "the vocabulary has {} tokens, and {vocabulary_size} have a vector",
                tokenizer.len()
            );
            return Err(Error::refused(what, "vocabulary and weights are of different models"));
        }
        let settings = ResolvedSettings::new(settings, container, hidden, positions)?;
        Ok(Encoder { model, tokenizer, settings, pool, spare: Mutex::default() })
    }

    /// How many values the vector of a text has.
    pub fn dimensions(&self) -> usize {
        self.settings.dimensions
    }

    /// How many tokens of a text are used, `[CLS]` and `[SEP]` included; longer texts are cut off.
    pub fn max_tokens(&self) -> usize {
        self.settings.max_tokens
    }

    /// The model's tokenizer.
    pub fn tokenizer(&self) -> &Tokenizer {
        &self.tokenizer
    }

    /// The vector of each text, in their order. What else is among the texts makes no difference.
    ///
    /// # Errors
    ///
    /// When a vector has a value that is NaN or infinite, which comes of broken weights.
    ///
    /// # Panics
    ///
    /// When the operating system can't start a thread.
    pub fn embed(&self, texts: &[impl AsRef<str> + Sync]) -> Result<Vec<Vec<f32>>, Error> {
        let vectors = self.embed_flat(texts)?;
        Ok(vectors.chunks_exact(self.dimensions()).map(<[f32]>::to_vec).collect())
    }

    /// Like [`Encoder::embed`], with one vector behind the other.
    ///
    /// # Errors
    ///
    /// When a vector has a value that is NaN or infinite, which comes of broken weights.
    ///
    /// # Panics
    ///
    /// When the operating system can't start a thread.
    pub fn embed_flat(&self, texts: &[impl AsRef<str> + Sync]) -> Result<Vec<f32>, Error> {
        let vectors = self.pool.install(|| {
            let (ids, ranges) = self.tokenize(texts);
            self.embed_tokens(&ids, &ranges)
        })?;
        match vectors.iter().position(|v| !v.is_finite()) {
            None => Ok(vectors),
            Some(at) => Err(Error::refused(
                format!(
                    "text {} has a vector with a value that is NaN or infinite",
                    at / self.dimensions() + 1
                ),
                Advice::See(Listing::Findings),
            )),
        }
    }

    /// The tokens of all texts, one text behind the other, and the range of each text.
    fn tokenize(&self, texts: &[impl AsRef<str> + Sync]) -> (Vec<u32>, Vec<Range<usize>>) {
        let tokenize_some = |texts: &[_]| {
            let (mut ids, mut ends) = (Vec::new(), Vec::with_capacity(texts.len()));
            for text in texts {
                let text: &str = AsRef::as_ref(text);
                self.tokenizer.encode_into(text, self.settings.max_tokens, &mut ids);
                ends.push(ids.len());
            }
            (ids, ends)
        };
        let chunks: Vec<_> = if texts.len() <= TEXTS_PER_TASK {
            vec![tokenize_some(texts)]
        } else {
            texts.par_chunks(TEXTS_PER_TASK).map(tokenize_some).collect()
        };
        let (mut ids, mut ranges) = (Vec::new(), Vec::with_capacity(texts.len()));
        for (chunk, ends) in chunks {
            let first = ids.len();
            for end in ends {
                let start = ranges.last().map_or(0, |range: &Range<usize>| range.end);
                ranges.push(start..first + end);
            }
            ids.extend(chunk);
        }
        (ids, ranges)
    }

    fn embed_tokens(&self, ids: &[u32], texts: &[Range<usize>]) -> Result<Vec<f32>, Error> {
        let dimensions = self.dimensions();
        let mut vectors = vec![0.0; texts.len() * dimensions];
        let threads = parallel::current_num_threads();
        let batches = batches(ids.len(), texts, threads);
        // With too few batches for all threads, these divide up the work inside each.
        let team = if batches.len() < threads { self.model.team_size(threads) } else { 1 };
        let mut work = Vec::new();
        let mut rest = &mut vectors[..];
        for batch in batches {
            let (out, remaining) = rest.split_at_mut(batch.len() * dimensions);
            work.push((&texts[batch], out));
            rest = remaining;
        }
        let run = |(texts, vectors): (&[Range<usize>], &mut [f32])| {
            let mut scratches = self.scratches(team);
            self.embed_batch(ids, texts, &mut scratches, vectors)?;
            if let Ok(mut spare) = self.spare.lock() {
                spare.append(&mut scratches);
            }
            Ok(())
        };
        match team {
            1 => work.into_par_iter().try_for_each(run)?,
            _ => work.into_iter().try_for_each(run)?,
        }
        Ok(vectors)
    }

    /// Memory for `count` threads: that of earlier batches where there is some.
    fn scratches(&self, count: usize) -> Vec<Scratch> {
        let mut scratches = match self.spare.lock() {
            Ok(mut spare) => {
                let keep = spare.len().saturating_sub(count);
                spare.split_off(keep)
            }
            Err(_) => Vec::new(),
        };
        scratches.resize_with(count, Scratch::default);
        scratches
    }

    /// Runs the model on texts, and makes a vector of the vectors of each text's tokens.
    fn embed_batch(
        &self,
        ids: &[u32],
        texts: &[Range<usize>],
        scratches: &mut [Scratch],
        vectors: &mut [f32],
    ) -> Result<(), Error> {
        let (Some(first), Some(last)) = (texts.first(), texts.last()) else { return Ok(()) };
        let ranges: Vec<_> =
            texts.iter().map(|t| t.start - first.start..t.end - first.start).collect();
        self.model.run(&ids[first.start..last.end], &ranges, scratches, None)?;
        let hidden = self.model.config.hidden;
        for (range, vector) in ranges.iter().zip(vectors.chunks_exact_mut(self.dimensions())) {
            let rows = &scratches[0].hidden[range.start * hidden..range.end * hidden];
            pool(rows, hidden, self.settings.pooling, vector);
            if self.settings.normalize {
                let norm = vector.iter().map(|x| x * x).sum::<f32>().sqrt();
                let by = 1.0 / norm.max(1e-12);
                vector.iter_mut().for_each(|x| *x *= by);
            }
        }
        Ok(())
    }
}

/// Texts that go through the model together, in batches of about the same number of tokens.
fn batches(tokens: usize, texts: &[Range<usize>], threads: usize) -> Vec<Range<usize>> {
    let share = tokens.div_ceil(threads);
    let size = if share < FEW_TOKENS { BATCH_TOKENS } else { share.min(BATCH_TOKENS) };
    let mut batches = Vec::new();
    let (mut first, mut sum) = (0, 0);
    for (i, text) in texts.iter().enumerate() {
        if sum > 0 && sum + text.len() > size {
            batches.push(first..i);
            (first, sum) = (i, 0);
        }
        sum += text.len();
    }
    if first < texts.len() {
        batches.push(first..texts.len());
    }
    batches
}

/// Pools the vectors of tokens into one; as many of its first values as there is room for.
fn pool(rows: &[f32], width: usize, pooling: Pooling, vector: &mut [f32]) {
    let rows = rows.chunks_exact(width);
    #[allow(clippy::cast_precision_loss)]
    let count = rows.len() as f32;
    let by = match pooling {
        Pooling::Cls => {
            return rows.take(1).for_each(|row| vector.copy_from_slice(&row[..vector.len()]));
        }
        Pooling::Max => {
            vector.fill(f32::NEG_INFINITY);
            for row in rows {
                vector.iter_mut().zip(row).for_each(|(v, x)| *v = v.max(*x));
            }
            return;
        }
        Pooling::Mean => 1.0 / count,
        Pooling::MeanSqrtLen => 1.0 / count.sqrt(),
    };
    vector.fill(0.0);
    for row in rows {
        vector.iter_mut().zip(row).for_each(|(v, x)| *v += x);
    }
    vector.iter_mut().for_each(|v| *v *= by);
}
