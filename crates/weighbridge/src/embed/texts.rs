//! Texts out of lines, plain ones or a member of JSON objects, and out of tables.

use super::directed::{Directed, NumberedLine, may_give_zeros};
use super::json::from_json;
use super::jsonl::TEXT;
use super::lines::{LONGEST_LINE, Line, Lines};
use super::mistaken;
use super::table_texts::{TableTexts, TextColumn};
use crate::table::TableOptions;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::io::BufRead;
use std::path::Path;
use weighbridge_encoder::Encoder;
use weighbridge_format::{Advice, Error};

/// What helps where a line can't be used.
pub(super) const SKIP_BAD: Advice = Advice::Set {
    option: "skip-bad",
    value: Cow::Borrowed(""),
    effect: Cow::Borrowed("leaves such lines out"),
};

/// How lines are read.
#[derive(Clone, Debug, Default)]
pub struct TextOptions {
    /// Lines are JSON objects, and this member of each is the text.
    pub field: Option<String>,
    /// Bytes that are not UTF-8 become U+FFFD.
    pub lossy: bool,
    /// Lines that can't be used are left out and counted.
    pub skip_bad: bool,
    /// Each line is a text, even if together they look like a table or like JSON.
    pub lines: bool,
    /// The input is a table, and a column of it holds the texts.
    pub table: Option<TableOptions>,
}

/// What texts are taken from, and what is kept with them: all that a row's record depends on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
#[non_exhaustive]
pub enum TextForm {
    /// Texts alone.
    #[default]
    Plain,
    /// A member of JSON objects, which are kept as records.
    Json {
        /// Its name.
        field: String,
    },
    /// A column of a table, whose rows are kept as records.
    Table {
        /// Its name.
        column: String,
        /// The columns that a record has, in their order.
        kept: Vec<String>,
    },
}

impl std::fmt::Display for TextForm {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            TextForm::Plain => f.write_str("plain text"),
            TextForm::Json { field } => write!(f, "JSON lines with {field:?}"),
            TextForm::Table { column, kept } => {
                write!(f, "a table with texts in {column:?} and records of {kept:?}")
            }
        }
    }
}

/// A text that becomes a row, and the JSON object that describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextRow {
    /// The text.
    pub text: String,
    /// In one line. Of plain text, the text alone; of JSON lines, the line as it was; of tables, the
    /// columns that are kept, with their values as texts.
    pub record: String,
}

impl TextRow {
    /// A text that is its own record.
    pub fn plain(text: String) -> TextRow {
        let record = format!("{{\"{TEXT}\": {}}}", serde_json::Value::from(text.as_str()));
        TextRow { text, record }
    }
}

/// A line that was left out, and why.
#[derive(Clone, Debug)]
pub struct Skipped {
    /// Its number, counted from 1; that of the text where texts were given.
    pub line: u64,
    /// What is wrong with it.
    pub why: String,
}

/// Reads rows one by one.
pub struct Texts<'a> {
    name: String,
    source: TextSource<'a>,
    options: TextOptions,
    /// The beginning was looked at.
    checked: bool,
    /// Texts that were given and read.
    given: u64,
    /// Leaves out texts whose vectors have no direction.
    directed: Option<Directed>,
    /// How many lines were left out.
    pub skipped: u64,
    /// The first few of them.
    pub first_skipped: Vec<Skipped>,
}

impl std::fmt::Debug for Texts<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (at, skipped) = (self.bytes_read(), self.skipped);
        f.debug_struct("Texts").field("at", &at).field("skipped", &skipped).finish()
    }
}

enum TextSource<'a> {
    Lines(Lines<Box<dyn BufRead + 'a>>),
    Table(Box<TableTexts<Box<dyn BufRead + 'a>>>),
    Given(std::vec::IntoIter<String>),
}

/// What is wrong with a line or a row.
pub(super) struct BadLine {
    what: String,
    advice: Advice,
}

impl BadLine {
    pub(super) fn new(what: impl Into<String>, advice: impl Into<Advice>) -> BadLine {
        BadLine { what: what.into(), advice: advice.into() }
    }
}

/// The next texts, or what is wrong with them. Nothing follows an error of the system.
impl Iterator for Texts<'_> {
    type Item = Result<TextRow, Error>;

    fn next(&mut self) -> Option<Result<TextRow, Error>> {
        self.read().transpose()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        match &self.source {
            TextSource::Lines(_) | TextSource::Table(_) => (0, None),
            TextSource::Given(texts) => texts.size_hint(),
        }
    }
}

impl<'a> Texts<'a> {
    /// `name` is what messages call the input.
    pub fn new(name: &str, input: impl BufRead + 'a, options: &TextOptions) -> Texts<'a> {
        let input: Box<dyn BufRead + 'a> = Box::new(input);
        let source = match &options.table {
            Some(table) => {
                TextSource::Table(Box::new(TableTexts::new(input, table.clone(), options.lossy)))
            }
            None => TextSource::Lines(Lines::new(input)),
        };
        Texts::of(name, source, options.clone(), false)
    }

    /// Texts that are there already, and may have several lines each.
    pub fn given(texts: Vec<String>) -> Texts<'static> {
        Texts::of("", TextSource::Given(texts.into_iter()), TextOptions::default(), true)
    }

    fn of(name: &str, source: TextSource<'a>, options: TextOptions, checked: bool) -> Texts<'a> {
        let (name, first_skipped) = (name.to_owned(), Vec::new());
        let (given, directed, skipped) = (0, None, 0);
        Texts { name, source, options, checked, given, directed, skipped, first_skipped }
    }

    /// Leaves out and counts what can't be used, and texts too whose vectors are all zeros, for files of
    /// vectors of unit length. Static models give such vectors; with others nothing changes. All texts go
    /// through the model for it, some at a time: of a shard those of the others too, so that all agree on
    /// which rows there are.
    pub fn skip_zeros(&mut self, encoder: &Encoder) {
        self.options.skip_bad = true;
        self.directed = may_give_zeros(encoder).then(|| Directed::new(encoder.clone()));
    }

    /// Looks at the beginning of the input, before the first text is read: whether these are lines of
    /// text at all, or which column of a table has the texts. Reading the first text does the same.
    ///
    /// # Errors
    /// [`Error::Unrecognised`] for tables that were not announced, JSON without a field, and files of
    /// other kinds; [`Error::Refused`] if a table has no such column, or it is not clear which holds the
    /// texts; failures of the system.
    pub fn check(&mut self) -> Result<(), Error> {
        if std::mem::replace(&mut self.checked, true) {
            return Ok(());
        }
        let head = match &mut self.source {
            TextSource::Lines(lines) => lines.head(),
            TextSource::Table(table) => table.head(),
            TextSource::Given(_) => return Ok(()),
        };
        let head = head.map_err(|e| Error::io(Path::new(&self.name), e))?;
        mistaken::check(&self.name, head, &self.options)?;
        match &mut self.source {
            TextSource::Table(table) => table.begin(&self.name),
            _ => Ok(()),
        }
    }

    /// What the texts are taken from. Of a table that is known once it was [checked](Texts::check).
    pub fn form(&self) -> TextForm {
        match (&self.source, &self.options.field) {
            (TextSource::Table(table), _) => table.form(),
            (_, Some(field)) => TextForm::Json { field: field.clone() },
            (_, None) => TextForm::Plain,
        }
    }

    /// The column of a table that has the texts, once it was [checked](Texts::check).
    pub fn column(&self) -> Option<&TextColumn> {
        match &self.source {
            TextSource::Table(table) => table.column(),
            _ => None,
        }
    }

    /// Bytes read so far.
    pub fn bytes_read(&self) -> u64 {
        match &self.source {
            TextSource::Lines(lines) => lines.position(),
            TextSource::Table(table) => table.position(),
            TextSource::Given(_) => 0,
        }
    }

    /// The next line is there already: reading it does not wait for whoever writes it.
    pub(super) fn is_next_there(&self) -> bool {
        if let Some(directed) = &self.directed {
            return directed.is_next_there();
        }
        match &self.source {
            TextSource::Lines(lines) => lines.is_next_there(),
            TextSource::Table(table) => table.is_next_there(),
            TextSource::Given(_) => true,
        }
    }

    fn read(&mut self) -> Result<Option<TextRow>, Error> {
        self.check()?;
        if let Some(mut directed) = self.directed.take() {
            let row = self.read_directed(&mut directed);
            self.directed = Some(directed);
            return row;
        }
        loop {
            match self.next_line()? {
                Some((_, Ok(row))) => return Ok(Some(row)),
                Some((line, Err(why))) => self.skip(line, why),
                None => return Ok(None),
            }
        }
    }

    fn read_directed(&mut self, directed: &mut Directed) -> Result<Option<TextRow>, Error> {
        loop {
            if let Some(row) = directed.next()? {
                return Ok(Some(row));
            }
            let Some(left_out) = directed.look(|| self.next_line())? else { return Ok(None) };
            left_out.into_iter().for_each(|(line, why)| self.skip(line, why));
        }
    }

    fn skip(&mut self, line: u64, why: String) {
        const LISTED: usize = 5;
        self.skipped += 1;
        if self.first_skipped.len() < LISTED {
            self.first_skipped.push(Skipped { line, why });
        }
    }

    /// The next line that is not blank between others: its row, or why it is left out.
    fn next_line(&mut self) -> Result<Option<NumberedLine>, Error> {
        loop {
            // A line's number is said with it; a row of a table has its own place.
            let next = match &mut self.source {
                TextSource::Given(texts) => {
                    self.given += 1;
                    return Ok(texts.next().map(|text| (self.given, Ok(TextRow::plain(text)))));
                }
                TextSource::Lines(lines) => lines.next().map(|line| {
                    line.map(|line| (line.number, row_of(line, &self.options), String::new()))
                }),
                TextSource::Table(table) => table.next(),
            };
            let next = next.map_err(|e| Error::io(Path::new(&self.name), e))?;
            let Some((line, row, place)) = next else { return Ok(None) };
            match row {
                Ok(Some(row)) => return Ok(Some((line, Ok(row)))),
                Ok(None) => {}
                Err(bad) if self.options.skip_bad => return Ok(Some((line, Err(bad.what)))),
                Err(BadLine { what, advice }) => {
                    let message = format!("line {line}{place}: {what}");
                    return Err(Error::unrecognised(&self.name, message, advice));
                }
            }
        }
    }
}

/// The row of a line; none of a blank line between JSON objects.
fn row_of(line: Line, options: &TextOptions) -> Result<Option<TextRow>, BadLine> {
    if line.cut {
        let what = format!("it is longer than {} MiB", LONGEST_LINE >> 20);
        let advice = Advice::from("one text stands on one line").and(SKIP_BAD);
        return Err(BadLine::new(what, advice));
    }
    let text = decode(line, options)?;
    match &options.field {
        None => Ok(Some(TextRow::plain(text))),
        Some(_) if text.trim_ascii().is_empty() => Ok(None),
        Some(field) => from_json(&text, field).map(Some),
    }
}

fn decode(line: Line, options: &TextOptions) -> Result<String, BadLine> {
    let Line { number, start, bytes, .. } = line;
    String::from_utf8(bytes).or_else(|e| {
        let (at, bytes) = (e.utf8_error().valid_up_to(), e.as_bytes());
        if options.lossy {
            return Ok(String::from_utf8_lossy(bytes).into_owned());
        }
        let byte = bytes.get(at).copied().unwrap_or_default();
        let what = format!(
            "not UTF-8: byte {byte:#04x} at offset {} of the file, {at} of the line",
            start + at as u64
        );
        let utf16 =
            number == 1 && (bytes.starts_with(b"\xFF\xFE") || bytes.starts_with(b"\xFE\xFF"));
        Err(BadLine::new(
            what,
            match utf16 {
                true => "the file is UTF-16: `iconv -f UTF-16 -t UTF-8` converts it".into(),
                false => Advice::set("lossy", "replaces such bytes"),
            },
        ))
    })
}

/// The texts of a file with one on each line, without blank ones. `name` is what errors call it.
///
/// # Errors
/// [`Error::Unrecognised`] if it is something else, or there is no text in it.
pub fn texts_of_lines(name: &str, input: impl BufRead) -> Result<Vec<String>, Error> {
    let lines = lines_of(name, input)?;
    let texts = lines.iter().map(|line| line.trim()).filter(|line| !line.is_empty());
    let texts: Vec<_> = texts.map(str::to_owned).collect();
    match texts.is_empty() {
        true => Err(Error::unrecognised(name, "there is no text in it", NEEDED)),
        false => Ok(texts),
    }
}

/// What files of lines need to be.
const NEEDED: &str = "a text on each line is needed, in UTF-8";

/// The lines of a file with a text on each, as they are, blank ones too. `name` is what errors call it.
///
/// # Errors
/// [`Error::Unrecognised`] if it is something else.
pub fn lines_of(name: &str, input: impl BufRead) -> Result<Vec<String>, Error> {
    let rows = Texts::new(name, input, &TextOptions::default());
    let lines = rows.map(|row| row.map(|row| row.text));
    lines.collect::<Result<_, _>>().map_err(|error| match error {
        // What would help is for embedding.
        Error::Unrecognised { file, problem } => Error::unrecognised(file, problem.message, NEEDED),
        other => other,
    })
}

#[cfg(test)]
mod tests;
