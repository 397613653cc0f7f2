//! What of a container is written as words and rows.

use super::decode::{Decode, left_out_text};
use crate::formats::FormatInfo;
use crate::model::{Container, Subject, Tensor};
use crate::plan::{Report, fit, lose_others, lose_precision};
use crate::{Advice, Error, Vocabulary};

/// What helps where rows have no words.
pub(crate) const NO_WORDS: Advice = Advice::Set {
    option: "words",
    value: std::borrow::Cow::Borrowed(""),
    effect: std::borrow::Cow::Borrowed("gives a word for each row"),
};

/// A matrix with a word for each row, ready to be written.
#[derive(Debug)]
pub(crate) struct Prepared {
    /// Rows have the lengths that they had at first.
    pub matrix: Tensor,
    pub words: Vocabulary,
    pub report: Report,
}

impl Prepared {
    pub(crate) fn dim(&self) -> u64 {
        self.matrix.shape[1]
    }

    pub(crate) fn rows(&self) -> u64 {
        self.matrix.shape[0]
    }

    /// Refuses words that would not come back as they are.
    pub(crate) fn check_words(&self, decode: Decode, id: &str) -> Result<(), Error> {
        for (i, word) in self.words.tokens().enumerate() {
            if decode.written(&word).is_none() {
                let what = if word.is_empty() { "is empty" } else { "has a space or a line break" };
                return Err(Error::refused(
                    format!("word {i}, {word:?}, {what}, which {id} can't hold"),
                    Advice::set(
                        "escape",
                        "writes such words in another way, and undoes that when it is read",
                    ),
                ));
            }
        }
        Ok(())
    }
}

/// The words and their rows in f32, and what else the container had. Formats with subwords get the
/// rows of all words; what is behind them is theirs to handle.
pub(crate) fn prepare(container: &Container, info: &FormatInfo) -> Result<Prepared, Error> {
    let mut report = Report::default();
    let embeddings = container.word_matrix()?;
    let Some(words) = embeddings.words.clone() else {
        return Err(Error::refused("the rows have no words", NO_WORDS));
    };
    let words = words.into_owned();
    lose_others(container, &embeddings, &mut report);
    let mut alone = container.clone();
    if embeddings.norms.is_some() {
        lose_precision(embeddings.matrix, &mut report)?;
    }
    alone.tensors = vec![embeddings.original()?];
    words.lose_special(&mut report);
    let words = match words.without_repeats() {
        None => words,
        // Readers would find the first of equal words only.
        Some((once, mut kept)) => {
            let left_out = words.len() - once.len();
            let first =
                (0..).zip(&kept).find(|(i, row)| i != *row).map_or(once.len() as u64, |(i, _)| i);
            report.lose(Subject::RepeatedWords(left_out as u64), left_out_text(first));
            kept.extend(embeddings.word_rows()..embeddings.rows());
            alone.tensors = vec![alone.tensors[0].pick_rows(kept)?];
            once
        }
    };
    if container.vocabulary.is_none() {
        alone.drop_word_records()?;
    }
    let placements = fit(&alone, &info.holds, &mut report)?;
    let Some(placed) = placements.first().and_then(|p| alone.tensors.get(p.tensor)) else {
        return Err(report.nothing_fits(info.id, ""));
    };
    Ok(Prepared { matrix: placed.clone(), words, report })
}
