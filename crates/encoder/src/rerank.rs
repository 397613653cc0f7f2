//! A model that says how well texts answer a question: both go through it together.

use crate::encoder::Encoder;
use crate::layers::Packing;
use crate::settings::{Settings, Use};
use std::ops::ControlFlow;
#[cfg(feature = "fs")]
use std::path::Path;
use weighbridge_format::{Container, Error};
#[cfg(feature = "fs")]
use weighbridge_format::{Formats, Input, Options};

/// A cross-encoder with its tokenizer: two texts become a score.
///
/// ```no_run
/// # fn main() -> Result<(), weighbridge_encoder::Error> {
/// let reranker = weighbridge_encoder::Reranker::open("ms-marco-minilm")?;
/// let texts = ["Lorries weigh up to 44 tonnes.", "Paris is the capital of France."];
/// for ranked in reranker.rank("how heavy is a lorry", &texts)? {
///     println!("{} {:.3}", texts[ranked.row], ranked.score);
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Reranker {
    encoder: Encoder,
}

/// A text with its score.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ranked {
    /// Its place among the texts that were given.
    pub row: usize,
    /// How well it answers; higher is better.
    pub score: f32,
}

impl Reranker {
    /// Opens a model in a file or directory of any format, with the model's own settings.
    ///
    /// # Errors
    ///
    /// When the file can't be read, or is not a model that can be used, see [`Reranker::new`].
    #[cfg(feature = "fs")]
    pub fn open(path: impl AsRef<Path>) -> Result<Reranker, Error> {
        let input = Input::open(path.as_ref())?;
        let container = Formats::builtin().open(&input, &Options::default())?;
        Reranker::new(&container, &Settings::default())
    }

    /// Loads the weights and the tokenizer of a model that is open. Of the settings, pooling,
    /// normalization and dimensions say nothing here.
    ///
    /// # Errors
    ///
    /// Those of [`Encoder::new`], and when the model has no classifier behind its layers.
    pub fn new(container: &Container, settings: &Settings) -> Result<Reranker, Error> {
        let packing = Packing::of(settings.precision);
        Ok(Reranker { encoder: Encoder::load(container, settings, packing, Use::Scores)? })
    }

    /// How many scores a pair of texts has; nearly always it is one.
    pub fn labels(&self) -> usize {
        self.encoder.dimensions()
    }

    /// How many tokens of a pair are used, the special ones included. Of longer pairs the longer text is
    /// cut off first.
    pub fn max_tokens(&self) -> usize {
        self.encoder.max_tokens()
    }

    /// The model's tokenizer.
    pub fn tokenizer(&self) -> &crate::Tokenizer {
        self.encoder.tokenizer()
    }

    /// The scores of pairs of texts, [`Reranker::labels`] for each, one pair behind the other.
    ///
    /// # Errors
    ///
    /// When the model's file is damaged, or a score is NaN or infinite, which comes of broken weights.
    pub fn score<S: AsRef<str> + Sync>(&self, pairs: &[(S, S)]) -> Result<Vec<f32>, Error> {
        self.score_telling(pairs, &mut |_| ControlFlow::Continue(()))
    }

    /// Like [`Reranker::score`]. `tell` hears now and then how many of the pairs are done, and can end the
    /// work.
    ///
    /// # Errors
    ///
    /// Those of [`Reranker::score`], and [`Error::Cancelled`].
    pub fn score_telling<S: AsRef<str> + Sync>(
        &self,
        pairs: &[(S, S)],
        tell: &mut dyn FnMut(usize) -> ControlFlow<()>,
    ) -> Result<Vec<f32>, Error> {
        self.encoder.score_pairs(pairs, tell)
    }

    /// The texts in the order of how well they answer a question, the best first.
    ///
    /// # Errors
    ///
    /// Those of [`Reranker::score`], and when the model has several scores for a pair.
    pub fn rank(
        &self,
        question: &str,
        texts: &[impl AsRef<str> + Sync],
    ) -> Result<Vec<Ranked>, Error> {
        self.rank_telling(question, texts, &mut |_| ControlFlow::Continue(()))
    }

    /// Like [`Reranker::rank`]. `tell` hears now and then how many of the texts are done, and can end the
    /// work.
    ///
    /// # Errors
    ///
    /// Those of [`Reranker::rank`], and [`Error::Cancelled`].
    pub fn rank_telling(
        &self,
        question: &str,
        texts: &[impl AsRef<str> + Sync],
        tell: &mut dyn FnMut(usize) -> ControlFlow<()>,
    ) -> Result<Vec<Ranked>, Error> {
        if self.labels() != 1 {
            let what = format!("the model has {} scores for a text", self.labels());
            return Err(Error::refused(what, "texts can be ranked by one"));
        }
        let pairs: Vec<_> = texts.iter().map(|text| (question, text.as_ref())).collect();
        let scores = self.score_telling(&pairs, tell)?;
        let ranked = scores.into_iter().enumerate();
        let mut ranked: Vec<_> = ranked.map(|(row, score)| Ranked { row, score }).collect();
        ranked.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.row.cmp(&b.row)));
        Ok(ranked)
    }
}
