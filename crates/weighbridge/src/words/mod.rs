//! Words to vectors and to their neighbours, straight from a file.
//!
//! ```no_run
//! # fn main() -> Result<(), weighbridge::Error> {
//! let words = weighbridge::Embeddings::open("words.fifu")?;
//! let vector = words.lookup("truck")?.expect("it is in the file").vector;
//! for hit in words.similar("truck", 5)? {
//!     println!("{} {:.3}", words.word(hit.row), hit.score);
//! }
//! # Ok(())
//! # }
//! ```

mod evaluate;
mod explicit;
mod select;

pub use evaluate::{Evaluation, Score, Section, evaluate};
pub use explicit::to_explicit;
pub(crate) use select::give_words;
pub use select::{Selected, parse_words, select};

use crate::rows::{TensorRows, floats, search_error};
use serde::Serialize;
use std::borrow::Cow;
#[cfg(feature = "fs")]
use std::path::Path;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use weighbridge_format::model::{Note, NoteKind, SubwordVectors, Subwords, norm};
use weighbridge_format::source::Source;
use weighbridge_format::wire::to_len;
use weighbridge_format::{Advice, Container, Error, Listing, Tensor, Vocabulary};
use weighbridge_search::{Ask, Exact, Found, Hit, Metric, Neighbours, NotFinite, Query};

/// A matrix of vectors with a word for each row, from a file of any format. The file is mapped, and
/// only what is asked for is read. Rows without words go by their numbers.
#[derive(Debug)]
pub struct Embeddings {
    matrix: Tensor,
    words: Option<Vocabulary>,
    subwords: Option<Subwords>,
    /// Rows of words; those of subwords are behind them.
    count: usize,
    dim: usize,
    opened: Vec<Source>,
    /// How many unknown words were asked for.
    slips: AtomicUsize,
    /// Rows that no search can find, once one has met them.
    not_finite: OnceLock<Option<NotFinite>>,
}

/// A word that was found near another. Its JSON is described in docs/json.md.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Neighbour<'a> {
    /// The word.
    pub word: Cow<'a, str>,
    /// The cosine; higher is nearer.
    pub score: f32,
}

/// A word's vector.
#[derive(Clone, Debug, PartialEq)]
pub struct Lookup<'a> {
    /// It is one of the words of the file; else it was made of its parts.
    pub known: bool,
    /// Its values.
    pub vector: Cow<'a, [f32]>,
}

/// A vector whose nearest words are wanted, but for those that it was made of.
#[derive(Clone, Debug, PartialEq)]
pub struct Question {
    /// All its words are words of the file.
    pub known: bool,
    /// Its values.
    pub vector: Vec<f32>,
    /// Rows that are no answer.
    pub exclude: Vec<usize>,
}

impl Embeddings {
    /// The word embeddings of a file of any format that comes with the library.
    ///
    /// # Errors
    /// Where the file can't be opened, or is not word embeddings.
    #[cfg(feature = "fs")]
    pub fn open(path: impl AsRef<Path>) -> Result<Embeddings, Error> {
        Embeddings::new(&crate::open(path)?)
    }

    /// The word embeddings of a container.
    ///
    /// # Errors
    /// [`Error::Refused`] if there is not one matrix with a row for each word.
    pub fn new(container: &Container) -> Result<Embeddings, Error> {
        let found = container.word_matrix()?;
        if found.dim() == 0 {
            return Err(Error::refused("the rows have no values", ""));
        }
        Ok(Embeddings {
            count: to_len(found.word_rows()),
            dim: to_len(found.dim()),
            matrix: found.matrix.clone(),
            subwords: found.subwords.cloned(),
            words: found.words.map(Cow::into_owned),
            opened: container.opened.clone(),
            slips: AtomicUsize::new(0),
            not_finite: OnceLock::new(),
        })
    }

    /// Whether the file is still what it was when it was opened. One that is mapped and rewritten gives
    /// other words and values, and no error.
    ///
    /// # Errors
    /// [`Error::Changed`] if it is not.
    pub fn check_unchanged(&self) -> Result<(), Error> {
        self.opened.iter().try_for_each(Source::check_unchanged)
    }

    /// How many words there are.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Whether rows have words, rather than going by their numbers.
    pub(crate) fn has_own_words(&self) -> bool {
        self.words.is_some()
    }

    /// How many values a vector has.
    pub fn dim(&self) -> usize {
        self.dim
    }

    /// The row of a word.
    pub fn find(&self, word: &str) -> Option<usize> {
        match &self.words {
            Some(words) => words.find(word),
            None => word.parse().ok(),
        }
        .filter(|&row| row < self.count)
    }

    /// The word of a row; its number where rows have no words.
    pub fn word(&self, row: usize) -> Cow<'_, str> {
        let word = self.words.as_ref().and_then(|words| words.token(row));
        word.unwrap_or_else(|| Cow::Owned(row.to_string()))
    }

    /// The values of a row, as they are in the file.
    ///
    /// # Errors
    /// If they can't be read, or there is no such row.
    pub fn row(&self, row: usize) -> Result<Cow<'_, [f32]>, Error> {
        if let Some(values) = floats(&self.matrix, row, 1, self.dim) {
            return Ok(Cow::Borrowed(values));
        }
        let mut values = vec![0.0; self.dim];
        self.matrix.rows_f32(row as u64, &mut values, &mut Vec::new())?;
        Ok(Cow::Owned(values))
    }

    /// The vector of a word: its row, or what its parts make up. `None` when there is neither.
    ///
    /// # Errors
    /// If it can't be read.
    pub fn lookup(&self, word: &str) -> Result<Option<Lookup<'_>>, Error> {
        Ok(match self.find(word) {
            Some(row) => Some(Lookup { known: true, vector: self.row(row)? }),
            None => {
                let made = self.made_of_parts(word)?;
                made.map(|vector| Lookup { known: false, vector: Cow::Owned(vector) })
            }
        })
    }

    /// The mean of the rows of a word's n-grams, brought to unit length where the model does that.
    fn made_of_parts(&self, word: &str) -> Result<Option<Vec<f32>>, Error> {
        let Some(subwords) = &self.subwords else { return Ok(None) };
        let (mut sums, mut count, mut failed) = (vec![0f32; self.dim], 0u32, None);
        let mut add = |row: u64| {
            let row = (self.count as u64).checked_add(row).map(to_len);
            match self.row(row.unwrap_or(usize::MAX)) {
                Ok(values) => sums.iter_mut().zip(values.iter()).for_each(|(sum, v)| *sum += v),
                Err(error) => failed = Some(error),
            }
            count += 1;
        };
        let unit = subwords.vectors == SubwordVectors::Unit;
        if unit {
            subwords.for_each_row(word, &mut add);
        } else {
            subwords.for_each_fasttext_row(word, &mut add);
        }
        if let Some(error) = failed {
            return Err(error);
        }
        if count == 0 {
            return Ok(None);
        }
        // Rounded as fastText and floret round it.
        #[allow(clippy::cast_possible_truncation)]
        let by = (1.0 / f64::from(count)) as f32;
        sums.iter_mut().for_each(|v| *v *= by);
        if unit {
            to_unit_length(&mut sums);
        }
        Ok(Some(sums))
    }

    /// The words nearest to a word, the nearest first, without the word itself.
    ///
    /// # Errors
    /// [`Error::NotFound`] for a word without a vector, or with one that holds NaN or an infinity,
    /// [`Error::Refused`] if there are no words.
    pub fn similar(&self, word: &str, k: usize) -> Result<Vec<Hit>, Error> {
        Ok(self.answer(&[self.question(word)?], k)?.swap_remove(0))
    }

    /// A is to B as C is to what? The words nearest to b - a + c of the unit vectors, without the
    /// three.
    ///
    /// # Errors
    /// [`Error::NotFound`] for a word without a vector, or with one that holds NaN or an infinity,
    /// [`Error::Refused`] if there are no words.
    pub fn analogy(&self, words: [&str; 3], k: usize) -> Result<Vec<Hit>, Error> {
        Ok(self.answer(&[self.analogy_question(words)?], k)?.swap_remove(0))
    }

    /// What is like this word?
    ///
    /// # Errors
    /// [`Error::NotFound`] for a word without a vector, or with one that holds NaN or an infinity,
    /// [`Error::Refused`] if there are no words.
    pub fn question(&self, word: &str) -> Result<Question, Error> {
        self.has_words()?;
        let Lookup { known, vector } = self.usable(word)?;
        let exclude = self.find(word).into_iter().collect();
        Ok(Question { known, vector: vector.into_owned(), exclude })
    }

    /// A is to B as C is to what?
    ///
    /// # Errors
    /// [`Error::NotFound`] for a word without a vector, or with one that holds NaN or an infinity,
    /// [`Error::Refused`] if there are no words.
    pub fn analogy_question(&self, words: [&str; 3]) -> Result<Question, Error> {
        self.has_words()?;
        let (mut sums, mut all_known) = (vec![0.0; self.dim], true);
        for (word, sign) in words.into_iter().zip([-1.0, 1.0, 1.0]) {
            let Lookup { known, vector } = self.usable(word)?;
            let mut unit = vector.into_owned();
            to_unit_length(&mut unit);
            sums.iter_mut().zip(unit).for_each(|(sum, v)| *sum += sign * v);
            all_known &= known;
        }
        let exclude = words.into_iter().filter_map(|w| self.find(w)).collect();
        Ok(Question { known: all_known, vector: sums, exclude })
    }

    /// The answers to several questions. Together they take much less time than one by one.
    ///
    /// # Errors
    /// [`Error::Refused`] for a vector of another width.
    pub fn answer(&self, questions: &[Question], k: usize) -> Result<Vec<Vec<Hit>>, Error> {
        let queries: Vec<_> =
            questions.iter().map(|q| Query { vector: &q.vector, exclude: &q.exclude }).collect();
        self.nearest(&queries, k)
    }

    fn has_words(&self) -> Result<(), Error> {
        if self.is_empty() {
            let what = "the file has no words among which the nearest could be";
            return Err(Error::refused(
                what,
                "vectors can be looked up: they are made of its subwords",
            ));
        }
        Ok(())
    }

    /// Rows that were found, by their words.
    pub fn neighbours(&self, hits: &[Hit]) -> Vec<Neighbour<'_>> {
        let named = |hit: &Hit| Neighbour { word: self.word(hit.row), score: hit.score };
        hits.iter().map(named).collect()
    }

    /// The nearest words of several vectors by the cosine, on all cores.
    ///
    /// # Errors
    /// [`Error::Refused`] for a vector of another width.
    pub fn nearest(&self, queries: &[Query], k: usize) -> Result<Vec<Vec<Hit>>, Error> {
        self.nearest_of_first(queries, k, self.count)
    }

    /// The same among the first words only, or all where there are fewer. Files usually have the most
    /// frequent words first.
    ///
    /// # Errors
    /// [`Error::Refused`] for a vector of another width.
    pub fn nearest_of_first(
        &self,
        queries: &[Query],
        k: usize,
        first: usize,
    ) -> Result<Vec<Vec<Hit>>, Error> {
        let rows = Exact::new(TensorRows::new(&self.matrix));
        let ask = Ask::new(k, Metric::Cosine).with_limit(self.count.min(first));
        let Found { hits, not_finite, .. } = rows.search(queries, &ask).map_err(search_error)?;
        self.check_unchanged()?;
        if k > 0 && !queries.is_empty() && first >= self.count {
            self.not_finite.get_or_init(|| not_finite);
        }
        Ok(hits)
    }

    /// What is to be said of rows that hold NaN or an infinity and so are never found, after a
    /// search has met them.
    pub fn not_finite_note(&self) -> Option<Note> {
        let NotFinite { rows, first, .. } = (*self.not_finite.get()?)?;
        let word = self.word(first);
        let text = match rows {
            1 => format!("row {first}, {word:?}, holds NaN or an infinity: it is near nothing"),
            n => format!(
                "{n} rows hold NaN or an infinity and are near nothing; the first is row {first}, {word:?}"
            ),
        };
        Some(Note::new(NoteKind::LeftOut, text).counting(rows as u64, self.count as u64))
    }

    /// What is to be said of a word's vector that holds NaN or an infinity.
    pub fn fault(&self, word: &str, vector: &[f32]) -> Option<String> {
        let (column, value) = vector.iter().enumerate().find(|(_, v)| !v.is_finite())?;
        let what = if value.is_nan() { "NaN" } else { "an infinity" };
        let row = self.find(word).map(|row| format!(" (row {row})")).unwrap_or_default();
        Some(format!("the vector of {word:?}{row} holds {what} in column {column}"))
    }

    /// The vector of a word that something can be near to.
    fn usable(&self, word: &str) -> Result<Lookup<'_>, Error> {
        let found = self.lookup(word)?.ok_or_else(|| self.unknown(word))?;
        match self.fault(word, &found.vector) {
            None => Ok(found),
            Some(fault) => Err(Error::not_found(
                word,
                format!("{fault}, so it has no neighbours"),
                Advice::See(Listing::Statistics),
            )),
        }
    }

    /// The words nearest to one by their letters. Finding them takes a walk through all words, so
    /// that only the first few slips get it.
    fn meant(&self, word: &str) -> Advice {
        const SLIPS: usize = 8;
        match &self.words {
            Some(words) if self.slips.fetch_add(1, Relaxed) < SLIPS => {
                Advice::meant(word, words.tokens())
            }
            _ => Advice::None,
        }
    }

    /// Says that there is no vector for a word, and whether it is there in other letters.
    pub fn unknown(&self, word: &str) -> Error {
        let mut first = word.chars();
        let capital: String =
            first.next().map(|c| c.to_uppercase().chain(first).collect()).unwrap_or_default();
        let others = [word.to_lowercase(), capital, word.to_uppercase(), word.trim().to_owned()];
        let near = others.iter().find(|o| *o != word && self.find(o).is_some());
        let hint = match (near, &self.words) {
            (Some(near), _) => format!("there is {near:?}").into(),
            (None, None) if self.subwords.is_none() => Advice::from(format!(
                "rows have no words; they go by their numbers, 0 to {}",
                self.count.max(1) - 1
            )),
            (None, _) => self.meant(word).and(match self.subwords {
                Some(_) => "none of its parts has a vector either",
                None => "the file has no subwords: it only knows its own words",
            }),
        };
        Error::not_found(word, format!("there is no vector for {word:?}"), hint)
    }
}

/// Gives a vector length 1; zeros stay.
#[allow(clippy::cast_possible_truncation)]
pub(crate) fn to_unit_length(vector: &mut [f32]) {
    let length = norm(vector);
    if length > 0.0 {
        vector.iter_mut().for_each(|v| *v = (f64::from(*v) / length) as f32);
    }
}
