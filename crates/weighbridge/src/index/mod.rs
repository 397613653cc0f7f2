//! Vectors that can be asked: the nearest rows of any matrix in any file, exactly.
//!
//! ```no_run
//! use weighbridge::search::{Ask, Metric};
//!
//! # fn main() -> Result<(), weighbridge::Error> {
//! let index = weighbridge::Index::open("notes.i8bin")?;
//! let query = index.encoder(None)?.embed_flat(&["trains running late"])?;
//! for hit in index.search(&query, &Ask::new(3, Metric::Cosine))? {
//!     println!("{:.3} {}", hit.score, index.record(hit.row)?.unwrap_or_default());
//! }
//! # Ok(())
//! # }
//! ```
//!
//! The file is mapped and not loaded: memory grows with the number of hits, not with that of rows.
//! What is found is the ranking of the query against the decoded rows, whatever they are stored as.
//!
//! # Errors
//!
//! What can't be asked is [`Error::Refused`], and the problem's subject says what is in the way:
//! `dimension` (the query has another number of values), `query` (it is zero, with the cosine, or
//! holds NaN or an infinity), `k` (it is 0, or larger than the index), `index` (it has no rows),
//! `records` (there are none, or not as many as rows), `filter` (no record has the field), `model`
//! (it is not known, or not the one that the rows are of), `tensor` (there are several).

mod answer;
mod filter;
mod neighbours;
mod recall;
mod rerank;
#[cfg(feature = "models")]
mod texts;

pub use answer::{Answer, Asked, HitTable, NamedHit};
pub use filter::{Filter, parse_filter};
pub use neighbours::{Group, TakeHits, group_near, neighbours};
pub(crate) use recall::USUAL_SAMPLE;
#[cfg(feature = "fs")]
pub use recall::recall_of_written;
pub use recall::{Recall, RecallSettings, recall};
#[cfg(feature = "models")]
pub use texts::TextSettings;

use crate::embed::MadeWith;
use crate::rows::{TensorRows, search_error};
use crate::words::{Embeddings, Question};
use std::borrow::Cow;
#[cfg(feature = "fs")]
use std::path::Path;
use std::sync::OnceLock;
use weighbridge_codec::DType;
use weighbridge_format::model::{MATRIX, Note, NoteKind, Records, WORD_TABLE};
use weighbridge_format::source::Source;
use weighbridge_format::wire::to_len;
use weighbridge_format::{Advice, Container, Error, Problem, Tensor};
use weighbridge_search::{Ask, Exact, Hit, Metric, Neighbours, NotFinite, Query};

/// How many candidates are looked at again where rows are rounded and exact ones are at hand: so many
/// times the hits that are wanted, and at least [`FEWEST_CANDIDATES`].
const CANDIDATES: usize = 10;
const FEWEST_CANDIDATES: usize = 100;

/// A matrix of rows in a file of any format, with what is known of each row.
#[derive(Debug)]
pub struct Index {
    matrix: Tensor,
    /// Rows with the lengths that they had, where the matrix has them at unit length.
    original: Option<Tensor>,
    count: usize,
    dim: usize,
    /// What the words are taken from.
    container: Container,
    words: OnceLock<Option<Embeddings>>,
    records: Option<Records>,
    opened: Vec<Source>,
    /// Rows that no search can find, once one has met them.
    not_finite: OnceLock<Option<NotFinite>>,
}

impl Index {
    /// The index of a file of any format that comes with the library.
    ///
    /// # Errors
    /// Where the file can't be opened, or there is not one matrix of rows in it.
    #[cfg(feature = "fs")]
    pub fn open(path: impl AsRef<Path>) -> Result<Index, Error> {
        Index::of(&crate::open(path)?, None)
    }

    /// An index of these rows: a tensor of rank 2.
    ///
    /// # Errors
    /// [`Error::Refused`] if it is no matrix with values.
    pub fn new(rows: Tensor) -> Result<Index, Error> {
        Index::of(&Container { tensors: vec![rows], ..Container::default() }, None)
    }

    /// The index of a container: of the tensor of this name, else of its rows or words, else of its
    /// only matrix.
    ///
    /// # Errors
    /// [`Error::NotFound`] if there is no such tensor, [`Error::Refused`] if it is no matrix or there
    /// are several.
    pub fn of(container: &Container, tensor: Option<&str>) -> Result<Index, Error> {
        let matrix = matrix_of(container, tensor)?.clone();
        let (rows, dim) = (matrix.shape[0], to_len(matrix.shape[1]));
        if dim == 0 {
            return Err(refused("index", "the rows have no values", Advice::None));
        }
        // Words and records are those of this matrix if there is one for each row.
        let behind = container.subwords.as_ref().map_or(0, |subwords| subwords.rows());
        let has_words = container
            .vocabulary
            .as_ref()
            .is_some_and(|words| (words.len() as u64).checked_add(behind) == Some(rows));
        let records = container.records.clone().filter(|_| container.rows().is_some());
        let mut count = to_len(rows);
        let mut original = None;
        if has_words {
            count = to_len(rows - behind);
            let norms =
                container.word_matrix().ok().filter(|found| found.matrix.name == matrix.name);
            if let Some(found) = norms.filter(|found| found.norms.is_some()) {
                original = Some(found.original()?);
            }
        }
        let container = Container {
            tensors: vec![matrix.clone()],
            vocabulary: container.vocabulary.clone().filter(|_| has_words),
            subwords: container.subwords.clone().filter(|_| has_words),
            records: records.clone(),
            metadata: container.metadata.clone(),
            opened: container.opened.clone(),
            ..Container::default()
        };
        Ok(Index {
            matrix,
            original,
            count,
            dim,
            opened: container.opened.clone(),
            container,
            words: OnceLock::new(),
            records,
            not_finite: OnceLock::new(),
        })
    }

    /// The same with other records: one for each row.
    ///
    /// # Errors
    /// [`Error::Refused`] if there are not as many as rows.
    pub fn with_records(mut self, records: Records) -> Result<Index, Error> {
        self.records = Some(records);
        self.check_records()?;
        Ok(self)
    }

    /// Whether the file is still what it was when it was opened.
    ///
    /// # Errors
    /// [`Error::Changed`] if it is not.
    pub fn check_unchanged(&self) -> Result<(), Error> {
        self.opened.iter().try_for_each(Source::check_unchanged)
    }

    /// How many rows can be found.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// How many values a row has.
    pub fn dim(&self) -> usize {
        self.dim
    }

    /// The matrix.
    pub fn matrix(&self) -> &Tensor {
        &self.matrix
    }

    /// What the rows were made with, if the file says it.
    ///
    /// # Errors
    /// [`Error::Refused`] if it says something that makes no sense.
    pub fn made_with(&self) -> Result<Option<MadeWith>, Error> {
        MadeWith::of(&self.container)
    }

    /// Whether rows have records.
    pub fn has_records(&self) -> bool {
        self.records.is_some()
    }

    /// The record of a row, a JSON object, if rows have records.
    ///
    /// # Errors
    /// [`Error::Malformed`] if it is none.
    pub fn record(&self, row: usize) -> Result<Option<String>, Error> {
        let Some(records) = &self.records else { return Ok(None) };
        records.record(row as u64)
    }

    /// The word embeddings, where rows have words: those of the file, or those that its records give.
    pub fn words(&self) -> Option<&Embeddings> {
        let known = self.container.vocabulary.is_some() || self.container.subwords.is_some();
        let words = self.words.get_or_init(|| {
            let found = Embeddings::new(&self.container).ok()?;
            (known || found.has_own_words()).then_some(found)
        });
        words.as_ref()
    }

    /// The word of a row, where rows have words.
    pub fn word(&self, row: usize) -> Option<Cow<'_, str>> {
        self.container.vocabulary.as_ref()?;
        self.words().map(|words| words.word(row))
    }

    /// The vector of a word of the file, or of one that is made of its subwords.
    ///
    /// # Errors
    /// [`Error::NotFound`] if there is none, [`Error::Refused`] if rows have no words.
    pub fn word_question(&self, word: &str) -> Result<Question, Error> {
        let Some(words) = self.words() else {
            let what = "the file has no words, and does not say which model its rows are of";
            let advice = Advice::set("model", "names the model that makes vectors of texts");
            return Err(refused("model", what, advice));
        };
        words.question(word)
    }

    /// The values of a row.
    ///
    /// # Errors
    /// [`Error::NotFound`] if there is no such row; if it can't be read.
    pub fn row(&self, row: usize) -> Result<Vec<f32>, Error> {
        if row >= self.count {
            let what = format!("there is no row {row}; there are {}", self.count);
            return Err(Error::not_found(row.to_string(), what, "rows are counted from 0"));
        }
        let mut values = vec![0.0; self.dim];
        let matrix = self.original.as_ref().unwrap_or(&self.matrix);
        matrix.rows_f32(row as u64, &mut values, &mut Vec::new())?;
        Ok(values)
    }

    /// The rows nearest to a vector, the nearest first, of equal ones the lower. There are fewer than
    /// `k` where a filter leaves fewer, or others hold NaN.
    ///
    /// # Errors
    /// What can't be asked, see [the module](self); [`Error::Changed`] if the file was.
    pub fn search(&self, query: &[f32], ask: &Ask) -> Result<Vec<Hit>, Error> {
        let query = Query { vector: query, exclude: &[] };
        Ok(self.search_batch(&[query], ask)?.swap_remove(0))
    }

    /// The rows nearest to each of several vectors. Together they take much less time than one by one.
    ///
    /// # Errors
    /// What can't be asked, see [the module](self); [`Error::Changed`] if the file was.
    pub fn search_batch(&self, queries: &[Query], ask: &Ask) -> Result<Vec<Vec<Hit>>, Error> {
        self.check_ask(ask)?;
        for (i, query) in queries.iter().enumerate() {
            self.check_query(query.vector, i, queries.len(), ask.metric)?;
        }
        let rows = match (&self.original, ask.metric) {
            (Some(original), Metric::Dot | Metric::L2) => original,
            // The cosine does not depend on lengths.
            _ => &self.matrix,
        };
        // Pages of a mapped file that was cut since can't be looked at.
        self.check_unchanged()?;
        let exact = Exact::new(TensorRows::new(rows));
        let found = exact.search(queries, &ask.with_limit(self.count)).map_err(search_error)?;
        self.check_unchanged()?;
        if !queries.is_empty() {
            self.not_finite.get_or_init(|| found.not_finite);
        }
        Ok(found.hits)
    }

    /// The nearest rows of this index, told apart by the same rows of another one with more precise
    /// values: candidates are found here, and their order there.
    ///
    /// # Errors
    /// As [`Index::search_batch`]; [`Error::Refused`] if the other has another shape.
    pub fn search_rescored(
        &self,
        exact: &Index,
        queries: &[Query],
        ask: &Ask,
    ) -> Result<Vec<Vec<Hit>>, Error> {
        self.check_same_shape(exact)?;
        self.check_ask(ask)?;
        let wanted = ask.k.saturating_mul(CANDIDATES).max(FEWEST_CANDIDATES).min(self.count);
        let mut wider = *ask;
        wider.k = wanted;
        let candidates = self.search_batch(queries, &wider)?;
        let rescored = candidates.into_iter().zip(queries).map(|(hits, query)| {
            let scored: Result<Vec<_>, Error> = hits
                .iter()
                .map(|hit| {
                    let row = exact.row(hit.row)?;
                    Ok((weighbridge_search::score(&row, query.vector, ask.metric), hit.row))
                })
                .collect();
            let mut scored = scored?;
            scored.retain(|(score, _)| !score.is_nan());
            scored.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
            scored.truncate(ask.k);
            #[allow(clippy::cast_possible_truncation)]
            let hit = |(score, row): (f64, usize)| Hit { row, score: score as f32 };
            Ok(scored.into_iter().map(hit).collect())
        });
        let rescored = rescored.collect();
        exact.check_unchanged()?;
        rescored
    }

    /// What is to be said of rows that hold NaN or an infinity and so are never found, after a search
    /// has met them.
    pub fn not_finite_note(&self) -> Option<Note> {
        let NotFinite { rows, first, .. } = (*self.not_finite.get()?)?;
        let text = match rows {
            1 => format!("row {first} holds NaN or an infinity: it is near nothing"),
            n => format!(
                "{n} rows hold NaN or an infinity and are near nothing; the first is row {first}"
            ),
        };
        Some(Note::new(NoteKind::LeftOut, text).counting(rows as u64, self.count as u64))
    }

    pub(crate) fn check_same_shape(&self, other: &Index) -> Result<(), Error> {
        let (own, others) = ([self.count, self.dim], [other.count, other.dim]);
        if own == others {
            return Ok(());
        }
        let what = format!(
            "{} rows of {} values can't be compared with {} of {}",
            own[0], own[1], others[0], others[1]
        );
        Err(refused("dimension", what, "both files have the same vectors".into()))
    }

    pub(crate) fn check_records(&self) -> Result<&Records, Error> {
        let Some(records) = &self.records else {
            let advice = Advice::set("records", "names a file with one for each row");
            return Err(refused("records", "the rows have no records", advice));
        };
        let count = records.count()?;
        if count != self.count as u64 {
            let what = format!("there are {count} records for {} rows", self.count);
            return Err(refused("records", what, "every row has one record".into()));
        }
        Ok(records)
    }

    fn check_ask(&self, ask: &Ask) -> Result<(), Error> {
        if self.is_empty() {
            return Err(refused("index", "there are no rows that could be found", Advice::None));
        }
        let most = Advice::set("k", format!("takes 1 to {}, the number of rows", self.count));
        match ask.k {
            0 => Err(refused("k", "no hits were asked for", most)),
            k if k > self.count => {
                let what = format!("{k} hits were asked for, and there are {} rows", self.count);
                Err(refused("k", what, most))
            }
            _ => Ok(()),
        }
    }

    /// Whether a vector is near anything.
    pub(crate) fn can_be_asked(&self, vector: &[f32], metric: Metric) -> bool {
        self.check_query(vector, 0, 1, metric).is_ok()
    }

    fn check_query(
        &self,
        vector: &[f32],
        number: usize,
        of: usize,
        metric: Metric,
    ) -> Result<(), Error> {
        let name = || if of == 1 { "the query".to_owned() } else { format!("query {number}") };
        if vector.len() != self.dim {
            let (n, dim) = (vector.len(), self.dim);
            let what = format!("{} has {n} values, and the rows have {dim}", name());
            let advice = "queries and rows come of the same model";
            return Err(refused("dimension", what, advice.into()));
        }
        if let Some(column) = vector.iter().position(|v| !v.is_finite()) {
            let value = if vector[column].is_nan() { "NaN" } else { "an infinity" };
            let what = format!("{} holds {value} in column {column}", name());
            return Err(refused("query", what, Advice::None));
        }
        if metric == Metric::Cosine && vector.iter().all(|v| *v == 0.0) {
            let what = format!("{} is zero, and has an angle with nothing", name());
            let advice = Advice::set("metric", "chooses another than the cosine");
            return Err(refused("query", what, advice));
        }
        Ok(())
    }
}

/// The matrix that is meant.
fn matrix_of<'a>(container: &'a Container, name: Option<&str>) -> Result<&'a Tensor, Error> {
    let is_matrix =
        |t: &&Tensor| t.shape.len() == 2 && t.has_data() && t.encoding.stored() != DType::C64;
    let names = || container.tensors.iter().filter(is_matrix).map(|t| t.name.as_str());
    if let Some(name) = name {
        let Some(found) = container.tensor(name) else {
            let what = format!("there is no tensor {name:?}");
            return Err(Error::not_found(name, what, Advice::meant(name, names())));
        };
        return is_matrix(&found).then_some(found).ok_or_else(|| {
            let what = format!("the tensor {name:?} is no matrix of rows");
            refused("tensor", what, Advice::set("tensor", "chooses another"))
        });
    }
    let has_words = container.vocabulary.is_some() || container.subwords.is_some();
    if let Some(Ok(found)) = has_words.then(|| container.word_matrix()) {
        return Ok(found.matrix);
    }
    let mut matrices = container.tensors.iter().filter(is_matrix);
    let named = |name: &str| container.tensor(name).filter(is_matrix);
    let only = matrices.next().filter(|_| matrices.next().is_none());
    named(MATRIX).or_else(|| named(WORD_TABLE)).or(only).ok_or_else(|| match names().count() {
        0 => refused("index", "there is no matrix of rows in it", Advice::None),
        n => {
            let some: Vec<_> = names().take(4).map(|name| format!("{name:?}")).collect();
            let what = format!("there are {n} matrices, such as {}", some.join(", "));
            refused("tensor", what, Advice::set("tensor", "chooses one"))
        }
    })
}

/// A request that can't be carried out; the subject says what is in the way.
pub(crate) fn refused(subject: &str, what: impl Into<String>, advice: Advice) -> Error {
    Error::Refused(Box::new(Problem::new(what, advice).about(subject)))
}
