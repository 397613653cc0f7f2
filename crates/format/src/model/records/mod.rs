//! Row records: one free-form JSON object for every row of a matrix.

mod cursor;
mod index;
mod parse;
pub(crate) mod scan;
#[cfg(test)]
mod tests;

use cursor::CursorElements;
pub use cursor::RecordCursor;
pub use parse::BadRecords;

use super::Produce;
use crate::Error;
use crate::source::{Bytes, Source, View};
use index::RecordIndex;
use parse::{Elements, check_rest, count_in, object};
use scan::Members;
use std::borrow::Cow;
use std::fmt;
use std::ops::Range;
use std::sync::{Arc, OnceLock};
use weighbridge_codec::parallel::*;

/// The member of a document that has the records.
pub(crate) const RECORDS: &str = "records";

/// The records as their JSON text. The text stays as it was written, and nothing is parsed, or even
/// read, that is not asked for: what is wrong with a record may be found only then. Cloning is cheap,
/// and what was found out is known to all clones.
#[derive(Clone, Debug)]
pub struct Records(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    place: Place,
    form: Form,
    /// How many there must be, where somebody else says so.
    expected: Option<u64>,
    blame: Blame,
    /// The document without its records, as far as it was read before.
    outline: Option<Bytes>,
    /// All of it in memory that nobody changes, for who wants all.
    text: OnceLock<Result<Bytes, Error>>,
    /// As it lies in the mapping, which may be more than there is memory for: what is taken from it is
    /// copied, and checked then.
    lying: OnceLock<Result<Bytes, Error>>,
    index: OnceLock<Result<RecordIndex, Error>>,
    /// How many there are, once each was looked at.
    checked: OnceLock<Result<u64, Error>>,
}

#[derive(Debug)]
enum Place {
    Here(Bytes),
    /// Yet to be read.
    There(View),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// An object with a `records` array, or the array alone.
    Document,
    /// An object on each line.
    Lines,
}

/// Makes an error of what is wrong with records.
type MakeError = dyn Fn(&BadRecords) -> Error + Send + Sync;

struct Blame(Option<Box<MakeError>>);

impl fmt::Debug for Blame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Blame")
    }
}

impl Inner {
    fn new(place: Place, form: Form) -> Inner {
        Inner {
            place,
            form,
            expected: None,
            blame: Blame(None),
            outline: None,
            text: OnceLock::new(),
            lying: OnceLock::new(),
            index: OnceLock::new(),
            checked: OnceLock::new(),
        }
    }
}

impl Records {
    /// Checks a document and counts its records without keeping any.
    ///
    /// # Errors
    /// If it is neither an array of objects nor an object with one named `records`.
    pub fn parse(document: Bytes) -> Result<Records, BadRecords> {
        let count = count_in(&document)?;
        let inner = Inner::new(Place::Here(document), Form::Document);
        Ok(Records(Arc::new(Inner { checked: OnceLock::from(Ok(count)), ..inner })))
    }

    /// A document that is read when the first record is asked for, and checked then. `blame` makes an
    /// error of what is wrong with it, or of another number of records than is expected.
    pub fn lazy(
        document: View,
        expected: u64,
        blame: impl Fn(&BadRecords) -> Error + Send + Sync + 'static,
    ) -> Records {
        let inner = Inner::new(Place::There(document), Form::Document);
        let blame = Blame(Some(Box::new(blame)));
        Records(Arc::new(Inner { expected: Some(expected), blame, ..inner }))
    }

    /// The same with what is known of the document before it is read: a document without the records.
    #[must_use]
    pub(crate) fn outlined(self, outline: Bytes) -> Records {
        match Arc::try_unwrap(self.0) {
            Ok(inner) => Records(Arc::new(Inner { outline: Some(outline), ..inner })),
            Err(shared) => Records(shared),
        }
    }

    /// Records that are given one by one, each a JSON object.
    ///
    /// # Errors
    /// If one of them is not.
    pub fn from_objects<'a>(
        objects: impl IntoIterator<Item = &'a str>,
    ) -> Result<Records, BadRecords> {
        let mut text = String::from("[");
        for object in objects {
            text.push_str(if text.len() > 1 { ", " } else { "" });
            text.push_str(object);
        }
        text.push(']');
        Records::parse(Bytes::owned(text.into_bytes()))
    }

    /// Lines that were checked when they were written, each a JSON object; they are counted and not
    /// parsed again. The last line ends with a line break too.
    pub fn from_checked_lines(lines: Bytes) -> Records {
        let count = lines.iter().filter(|b| **b == b'\n').count() as u64;
        let inner = Inner::new(Place::Here(lines), Form::Lines);
        Records(Arc::new(Inner { checked: OnceLock::from(Ok(count)), ..inner }))
    }

    /// What a document is read from that was not read when it was opened.
    pub(crate) fn source(&self) -> Option<&Source> {
        match &self.0.place {
            Place::Here(_) => None,
            Place::There(view) => Some(view.source()),
        }
    }

    /// What was read of a document before: a document itself, without the records.
    pub(crate) fn outline(&self) -> Option<&Bytes> {
        self.0.outline.as_ref()
    }

    /// Whether every record is a JSON object, and there are as many as there should be. It is looked
    /// at once.
    ///
    /// # Errors
    /// [`Error::Malformed`] if a file says otherwise; failures of reading.
    pub fn check(&self) -> Result<(), Error> {
        self.count().map(drop)
    }

    /// How many there are. All are checked for that, see [`Records::check`].
    ///
    /// # Errors
    /// As [`Records::check`].
    pub fn count(&self) -> Result<u64, Error> {
        let checked = self.0.checked.get_or_init(|| self.check_all());
        checked.as_ref().copied().map_err(Error::again)
    }

    fn check_all(&self) -> Result<u64, Error> {
        let text = self.lying()?;
        let count = match self.index() {
            Ok(index) if check_rest(text, &index.inside) => {
                let each = |rows: Range<u64>| {
                    let mut places = index.places(text, rows);
                    places.all(|place| copied(text, place).is_some())
                };
                let blocks: Vec<_> = blocks(index.count()).collect();
                blocks.into_par_iter().all(each).then(|| index.count())
            }
            _ => None,
        };
        match count {
            Some(count) => self.expect(count),
            // Said as whoever reads from front to back says it.
            None => self.expect(count_in(self.text()?).map_err(|bad| self.blame(&bad))?),
        }
    }

    /// The number of records, if it is the right one.
    fn expect(&self, found: u64) -> Result<u64, Error> {
        match self.0.expected.filter(|expected| *expected != found) {
            None => Ok(found),
            Some(expected) => Err(self.blame(&BadRecords::Count { expected, found })),
        }
    }

    fn blame(&self, bad: &BadRecords) -> Error {
        match &self.0.blame.0 {
            Some(blame) => blame(bad),
            None => Error::refused(format!("the records are not JSON objects: {bad}"), ""),
        }
    }

    fn text(&self) -> Result<&Bytes, Error> {
        let load = || match &self.0.place {
            Place::Here(bytes) => Ok(bytes.settled()),
            Place::There(view) => {
                let text = view.load()?;
                // A file that was rewritten since it was opened has other records now.
                view.source().check_unchanged()?;
                Ok(text)
            }
        };
        self.0.text.get_or_init(load).as_ref().map_err(Error::again)
    }

    /// The text where it lies.
    fn lying(&self) -> Result<&Bytes, Error> {
        let load = || match &self.0.place {
            Place::Here(bytes) => Ok(bytes.clone()),
            Place::There(view) => view.in_place(),
        };
        self.0.lying.get_or_init(load).as_ref().map_err(Error::again)
    }

    /// A file that was rewritten since it was opened has other records now.
    fn check_unchanged(&self) -> Result<(), Error> {
        self.source().map_or(Ok(()), Source::check_unchanged)
    }

    /// Where each record is, found in one pass that looks into none of them.
    fn index(&self) -> Result<&RecordIndex, Error> {
        let find = || {
            let text = self.lying()?;
            let index = match self.0.form {
                Form::Lines => Some(RecordIndex::of_lines(text)),
                Form::Document => RecordIndex::of_document(text),
            };
            let Some(index) = index else { return Err(self.unlike_records()) };
            self.expect(index.count())?;
            Ok(index)
        };
        self.0.index.get_or_init(find).as_ref().map_err(Error::again)
    }

    /// The error of a text in which something is wrong.
    fn unlike_records(&self) -> Error {
        let text = match self.text() {
            Ok(text) => text,
            Err(error) => return error,
        };
        let bad = match count_in(text) {
            Err(bad) if self.0.form == Form::Document => bad,
            _ => BadRecords::Malformed("a record is not a JSON object".to_owned()),
        };
        self.blame(&bad)
    }

    /// The whole text as it was, where it was a document.
    ///
    /// # Errors
    /// As [`Records::check`].
    pub fn document(&self) -> Result<Option<&Bytes>, Error> {
        if self.0.form == Form::Lines {
            return Ok(None);
        }
        self.check()?;
        self.text().map(Some)
    }

    /// As a document: an object with a `records` array, or the array alone.
    ///
    /// # Errors
    /// As [`Records::check`].
    pub fn to_document(&self) -> Result<Cow<'_, [u8]>, Error> {
        Ok(match self.document()? {
            Some(document) => Cow::Borrowed(document),
            None => Cow::Owned(format!("[{}]", self.items()?.join(", ")).into_bytes()),
        })
    }

    /// The record of a row, as its own JSON text; none for a row that has no record. Finding it takes
    /// one pass over all of them the first time. Only this record is checked.
    ///
    /// # Errors
    /// As [`Records::check`], as far as it is this record, or keeps it from being found.
    pub fn record(&self, row: u64) -> Result<Option<String>, Error> {
        let end = row.saturating_add(1);
        Ok(self.some(row..end)?.pop())
    }

    /// The records of some rows, as [`Records::record`] gives each.
    ///
    /// # Errors
    /// As [`Records::record`].
    pub fn some(&self, rows: Range<u64>) -> Result<Vec<String>, Error> {
        let (index, text) = (self.index()?, self.lying()?);
        let found = index.places(text, rows).map(|place| copied(text, place));
        let found: Option<Vec<String>> = found.collect();
        self.check_unchanged()?;
        found.ok_or_else(|| self.unlike_records())
    }

    /// A member of the record of a row, as its own JSON text: see [`member`].
    ///
    /// # Errors
    /// As [`Records::record`].
    pub fn member(&self, row: u64, name: &str) -> Result<Option<String>, Error> {
        Ok(self.record(row)?.and_then(|record| member(&record, name).map(str::to_owned)))
    }

    /// The records' own JSON texts.
    ///
    /// # Errors
    /// As [`Records::check`].
    pub fn items(&self) -> Result<Vec<&str>, Error> {
        self.check()?;
        let (index, text) = (self.index()?, self.text()?);
        let blocks: Vec<_> = blocks(index.count()).collect();
        let some = blocks.into_par_iter().map(|rows| {
            let each = index.places(text, rows).map(|place| text.get(place).and_then(object));
            each.collect::<Option<Vec<&str>>>().ok_or_else(|| self.unlike_records())
        });
        Ok(some.collect::<Result<Vec<_>, Error>>()?.concat())
    }

    /// What makes the elements of an array of them, and how many bytes, where they need not be held in
    /// memory for that.
    pub(crate) fn elements(&self) -> Result<Option<Made>, Error> {
        match (self.0.form, &self.0.place) {
            (Form::Lines, Place::Here(text)) => {
                let count = self.count()?;
                // Each line break but the last becomes a comma and a space.
                let bytes = (text.len() as u64 + count).saturating_sub(2);
                let from = Arc::new(Elements(text.clone())) as Arc<dyn Produce>;
                Ok((count > 0).then_some((bytes, from)))
            }
            (Form::Document, Place::There(_)) => {
                let lengths = self.cursor()?.map(|record| record.map(|r| r.len() as u64 + 2));
                let bytes = lengths.sum::<Result<u64, Error>>()?.saturating_sub(2);
                Ok(Some((bytes, Arc::new(CursorElements(self.clone())))))
            }
            _ => Ok(None),
        }
    }
}

/// Bytes that are made while they are written, and how many.
type Made = (u64, Arc<dyn Produce>);

/// The record at a place, if it is one, as a copy.
fn copied(text: &[u8], place: Range<usize>) -> Option<String> {
    let copy = text.get(place)?.to_vec();
    object(&copy)?;
    String::from_utf8(copy).ok()
}

/// A member of a record, by its name, as its own JSON text. Of members with the same name the last
/// counts, as in most programs.
pub fn member<'a>(record: &'a str, name: &str) -> Option<&'a str> {
    let text = record.as_bytes();
    let members = Members::of(text, scan::skip_space(text, 0))?;
    let found = members.filter(|member| member.whole && member.is(text, name)).last()?;
    record.get(found.value)
}

/// Rows that are looked at together.
fn blocks(count: u64) -> impl Iterator<Item = Range<u64>> {
    const TOGETHER: u64 = 4096;
    (0..count.div_ceil(TOGETHER)).map(move |i| i * TOGETHER..count.min((i + 1) * TOGETHER))
}
