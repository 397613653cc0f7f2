//! Texts to vectors, and vectors to files of any format.
//!
//! [`embed`] takes any iterator of texts and gives the rows to any [`RowSink`], window by window. A
//! [`Vec<f32>`] is one; so is a function; so is an [`EmbedFile`], which collects rows in a journal
//! beside the file: memory stays bounded however many there are, a run that was interrupted goes on
//! from there, and the file appears whole or not at all.

#[cfg(feature = "fs")]
mod allowed;
mod directed;
#[cfg(feature = "fs")]
mod facts;
#[cfg(feature = "fs")]
mod file;
#[cfg(feature = "fs")]
mod finish;
#[cfg(feature = "fs")]
mod gathered;
#[cfg(feature = "fs")]
mod journal;
pub(crate) mod json;
#[cfg(feature = "fs")]
mod known;
pub(crate) mod lines;
mod made_with;
#[cfg(feature = "fs")]
mod manifest;
#[cfg(feature = "fs")]
mod merge;
mod mistaken;
mod output_type;
#[cfg(feature = "fs")]
mod reuse;
mod shard;
#[cfg(feature = "fs")]
mod sync;
mod table_texts;
mod texts;
#[cfg(feature = "fs")]
mod words;

#[cfg(feature = "fs")]
pub use file::{EmbedFile, EmbedSettings};
#[cfg(feature = "fs")]
pub use finish::EmbeddedFile;
pub use lines::LONGEST_LINE;
pub use made_with::MadeWith;
#[cfg(feature = "fs")]
pub use manifest::{HashedFile, Manifest};
#[cfg(feature = "fs")]
pub use merge::{MergeSettings, merge};
pub use output_type::{OutputType, Ranges, StoredAs, quantize};
pub use shard::{InputId, InputRows, Shard};
pub use table_texts::TextColumn;
pub use texts::{Skipped, TextForm, TextOptions, TextRow, Texts, lines_of, texts_of_lines};
pub use weighbridge_format::formats::jsonl;

use std::ops::ControlFlow;
use weighbridge_encoder::Encoder;
use weighbridge_format::{Error, Progress, Stage};

/// Texts that are embedded together, unless something else is asked for.
pub const WINDOW: usize = 1024;

/// A window ends when its texts have as many bytes together.
const WINDOW_BYTES: usize = 4 << 20;

/// Takes the rows that texts became.
pub trait RowSink {
    /// Whether it has these rows already, so that they need not be computed again.
    ///
    /// # Errors
    /// If it has others in their place.
    fn has(&mut self, rows: &[TextRow]) -> Result<bool, Error> {
        let _ = rows;
        Ok(false)
    }

    /// Which of these rows it wants a vector of: all, unless it knows some by itself.
    ///
    /// # Errors
    /// What keeps it from knowing.
    fn wanted(&mut self, rows: &[TextRow]) -> Result<Wanted, Error> {
        Ok(Wanted::all(rows.len()))
    }

    /// Takes the next rows: texts, and the vectors one behind the other of those that it
    /// [wanted](RowSink::wanted).
    ///
    /// # Errors
    /// What keeps it from taking them.
    fn take(&mut self, rows: &[TextRow], vectors: &[f32]) -> Result<(), Error>;
}

/// The rows of a window whose vectors are computed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Wanted {
    /// Their places, in order.
    pub rows: Vec<usize>,
    /// How many of the others are those of earlier files.
    pub reused: u64,
    /// The places of those of the others that have the text of a row before.
    pub repeated: Vec<usize>,
}

impl Wanted {
    /// All of so many.
    pub fn all(rows: usize) -> Wanted {
        Wanted { rows: (0..rows).collect(), ..Wanted::default() }
    }
}

/// Vectors in memory, one behind the other.
impl RowSink for Vec<f32> {
    fn take(&mut self, _: &[TextRow], vectors: &[f32]) -> Result<(), Error> {
        self.extend_from_slice(vectors);
        Ok(())
    }
}

impl<F: FnMut(&[TextRow], &[f32]) -> Result<(), Error>> RowSink for F {
    fn take(&mut self, rows: &[TextRow], vectors: &[f32]) -> Result<(), Error> {
        self(rows, vectors)
    }
}

/// What can be embedded: a text, or one that was read and may have failed.
pub trait IntoTextRow {
    /// The text with its record.
    ///
    /// # Errors
    /// What went wrong when it was read.
    fn into_text_row(self) -> Result<TextRow, Error>;
}

impl IntoTextRow for TextRow {
    fn into_text_row(self) -> Result<TextRow, Error> {
        Ok(self)
    }
}

impl IntoTextRow for Result<TextRow, Error> {
    fn into_text_row(self) -> Result<TextRow, Error> {
        self
    }
}

impl IntoTextRow for String {
    fn into_text_row(self) -> Result<TextRow, Error> {
        Ok(TextRow::plain(self))
    }
}

impl IntoTextRow for &str {
    fn into_text_row(self) -> Result<TextRow, Error> {
        Ok(TextRow::plain(self.to_owned()))
    }
}

/// How many rows a run gave to its sink.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Embedded {
    /// All of them.
    pub rows: u64,
    /// Those that the sink had already.
    pub resumed: u64,
    /// Those of the others whose vectors were taken from earlier files.
    pub reused: u64,
    /// Those of the others with the text of a row before, whose vector they got.
    pub repeated: u64,
    /// Those of the others whose texts have more tokens than the model takes: their ends did not
    /// count.
    pub cut: u64,
}

/// Embeds texts, `window` at a time, and gives the rows to a sink. Where a window ends depends on
/// nothing but the texts from its first on, so that every run has the same windows.
///
/// ```no_run
/// use weighbridge::{Encoder, Progress, embed};
///
/// # fn main() -> Result<(), weighbridge::Error> {
/// let encoder = Encoder::open("minilm.weights")?;
/// let mut vectors = Vec::new();
/// let texts = ["a text", "another one"];
/// embed::embed(&encoder, texts, embed::WINDOW, &mut vectors, &mut Progress::none())?;
/// assert_eq!(vectors.len(), 2 * encoder.dimensions());
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// Those of the texts, of the model and of the sink, and [`Error::Cancelled`].
pub fn embed<T: IntoTextRow>(
    encoder: &Encoder,
    texts: impl IntoIterator<Item = T>,
    window: usize,
    sink: &mut (impl RowSink + ?Sized),
    progress: &mut Progress,
) -> Result<Embedded, Error> {
    let mut texts = texts.into_iter();
    let total = texts.size_hint().1.map(|n| n as u64);
    embed_windows(encoder, total, || next_window(&mut texts, window), sink, progress)
}

/// Like [`embed`], for who waits for each answer: a window has the next text and those behind it that
/// are there already, at most `window`, and does not wait for more.
///
/// # Errors
/// Those of [`embed`].
pub fn embed_as_they_come(
    encoder: &Encoder,
    texts: &mut Texts,
    window: usize,
    sink: &mut (impl RowSink + ?Sized),
    progress: &mut Progress,
) -> Result<Embedded, Error> {
    let next = || {
        let mut may_wait = true;
        let there = std::iter::from_fn(|| {
            let next = if may_wait || texts.is_next_there() { texts.next() } else { None };
            may_wait = false;
            next
        });
        next_window(&mut { there }, window)
    };
    embed_windows(encoder, None, next, sink, progress)
}

/// Embeds windows until one is empty.
fn embed_windows(
    encoder: &Encoder,
    total: Option<u64>,
    mut next: impl FnMut() -> Result<Vec<TextRow>, Error>,
    sink: &mut (impl RowSink + ?Sized),
    progress: &mut Progress,
) -> Result<Embedded, Error> {
    let mut done = Embedded::default();
    let mut stage = None;
    loop {
        let rows = next()?;
        if rows.is_empty() {
            return Ok(done);
        }
        let count = rows.len() as u64;
        let resumed = sink.has(&rows)?;
        let now = if resumed { Stage::Resuming } else { Stage::Embedding };
        if stage != Some(now) {
            stage = Some(now);
            progress.begin(now, total.map(|n| n.saturating_sub(done.rows)))?;
        }
        let (mut counted, mut stopped) = (0, Ok(()));
        if resumed {
            done.resumed += count;
        } else {
            let wanted = sink.wanted(&rows)?;
            let texts_at = |places: &[usize]| -> Vec<&str> {
                let rows = places.iter().filter_map(|place| rows.get(*place));
                rows.map(|row| row.text.as_str()).collect()
            };
            let texts = texts_at(&wanted.rows);
            let mut tell = |finished: usize| {
                let more = finished as u64 - counted;
                counted += more;
                if more > 0 && stopped.is_ok() {
                    stopped = progress.advance(more);
                }
                ControlFlow::Continue(())
            };
            // Who stops the work in the middle of a window finds it in the sink all the same.
            sink.take(&rows, &encoder.embed_flat_telling(&texts, &mut tell)?)?;
            done.cut += encoder.count_cut(&texts) + encoder.count_cut(&texts_at(&wanted.repeated));
            done.reused += wanted.reused;
            done.repeated += wanted.repeated.len() as u64;
        }
        done.rows += count;
        stopped?;
        progress.advance(count - counted)?;
    }
}

fn next_window<T: IntoTextRow>(
    texts: &mut impl Iterator<Item = T>,
    size: usize,
) -> Result<Vec<TextRow>, Error> {
    let (mut rows, mut bytes) = (Vec::new(), 0);
    while rows.len() < size.max(1) && bytes < WINDOW_BYTES {
        let Some(text) = texts.next() else { break };
        let row = text.into_text_row()?;
        bytes += row.text.len() + row.record.len();
        rows.push(row);
    }
    Ok(rows)
}

/// The cosine of the angle between the vectors of two texts.
///
/// # Errors
/// Where the model gives no vectors.
pub fn compare(encoder: &Encoder, first: &str, second: &str) -> Result<f64, Error> {
    let vectors = encoder.embed_flat(&[first, second])?;
    let (a, b) = vectors.split_at(encoder.dimensions());
    let product = |a: &[f32], b: &[f32]| -> f64 {
        a.iter().zip(b).map(|(x, y)| f64::from(*x) * f64::from(*y)).sum()
    };
    let lengths = (product(a, a) * product(b, b)).sqrt();
    Ok(if lengths > 0.0 { (product(a, b) / lengths).clamp(-1.0, 1.0) } else { 0.0 })
}
