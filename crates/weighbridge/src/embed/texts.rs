//! Texts out of lines, plain ones or a member of JSON objects, and out of tables.

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
    /// Its number, counted from 1.
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
        let (name, options) = (name.to_owned(), options.clone());
        Texts { name, source, options, checked: false, skipped: 0, first_skipped: Vec::new() }
    }

    /// Texts that are there already, and may have several lines each.
    pub fn given(texts: Vec<String>) -> Texts<'static> {
        let (source, options) = (TextSource::Given(texts.into_iter()), TextOptions::default());
        let (name, first_skipped) = (String::new(), Vec::new());
        Texts { name, source, options, checked: true, skipped: 0, first_skipped }
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
        match &self.source {
            TextSource::Lines(lines) => lines.is_next_there(),
            TextSource::Table(table) => table.is_next_there(),
            TextSource::Given(_) => true,
        }
    }

    fn read(&mut self) -> Result<Option<TextRow>, Error> {
        const LISTED: usize = 5;
        self.check()?;
        loop {
            // A line's number is said with it; a row of a table has its own place.
            let next = match &mut self.source {
                TextSource::Given(texts) => return Ok(texts.next().map(TextRow::plain)),
                TextSource::Lines(lines) => lines.next().map(|line| {
                    line.map(|line| (line.number, row_of(line, &self.options), String::new()))
                }),
                TextSource::Table(table) => table.next(),
            };
            let next = next.map_err(|e| Error::io(Path::new(&self.name), e))?;
            let Some((line, row, place)) = next else { return Ok(None) };
            match row {
                Ok(Some(row)) => return Ok(Some(row)),
                Ok(None) => {}
                Err(bad) if self.options.skip_bad => {
                    self.skipped += 1;
                    if self.first_skipped.len() < LISTED {
                        self.first_skipped.push(Skipped { line, why: bad.what });
                    }
                }
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
    const NEEDED: &str = "a text on each line is needed, in UTF-8";
    let mut texts = Vec::new();
    for row in Texts::new(name, input, &TextOptions::default()) {
        let row = row.map_err(|error| match error {
            // What would help is for embedding.
            Error::Unrecognised { file, problem } => {
                Error::unrecognised(file, problem.message, NEEDED)
            }
            other => other,
        })?;
        texts.extend(Some(row.text.trim()).filter(|t| !t.is_empty()).map(str::to_owned));
    }
    match texts.is_empty() {
        true => Err(Error::unrecognised(name, "there is no text in it", NEEDED)),
        false => Ok(texts),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &[u8], reading: &TextOptions) -> (Vec<TextRow>, Option<String>, u64) {
        let mut texts = Texts::new("in", text, reading);
        let mut rows = Vec::new();
        loop {
            match texts.next() {
                Some(Ok(row)) => rows.push(row),
                None => return (rows, None, texts.skipped),
                Some(Err(e)) => return (rows, Some(e.to_string()), texts.skipped),
            }
        }
    }

    fn json(field: &str) -> TextOptions {
        TextOptions { field: Some(field.to_owned()), ..TextOptions::default() }
    }

    #[test]
    fn plain_lines_are_texts_and_blank_ones_too() {
        let (rows, error, _) = read(b"one\n\n  \nq\"\0t\n", &TextOptions::default());
        assert_eq!(error, None);
        let texts: Vec<_> = rows.iter().map(|r| r.text.as_str()).collect();
        assert_eq!(texts, ["one", "", "  ", "q\"\0t"]);
        assert_eq!(rows[3].record, "{\"text\": \"q\\\"\\u0000t\"}");
    }

    #[test]
    fn json_lines_are_kept_as_they_are() {
        let line = r#"{"id" : 1.50, "title": "a \u00e9", "n": 123456789012345678901234567890}"#;
        let (rows, error, _) = read(format!("{line}\n\n").as_bytes(), &json("title"));
        assert_eq!((error, rows.len()), (None, 1));
        assert_eq!(rows[0], TextRow { text: "a é".into(), record: line.into() });
        let old = r#"{"text": "x", "vector": [1, 2], "n": 1e2}"#;
        assert_eq!(read(old.as_bytes(), &json("text")).0[0].record, r#"{"text": "x", "n": 1e2}"#);
        let twice = r#"{"text": "x", "text": "y"}"#;
        assert_eq!(read(twice.as_bytes(), &json("text")).0[0].text, "y");
    }

    #[test]
    fn bad_lines_are_named() {
        for (line, expected) in [
            ("{\"text\": \"a\"", "line 2: not JSON: EOF while parsing an object at column 12"),
            ("nonsense", "line 2: not JSON: expected ident at column 2"),
            ("[1]", "line 2: an array, not a JSON object"),
            ("\"x\"", "line 2: a text, not a JSON object"),
            ("{\"text\": 5}", "line 2: the member \"text\" is a number and not a text"),
            (
                "{\"body\": \"a\"}",
                "line 2: it has no member \"text\"; hint: the option field names the member with the text; there are \"body\"",
            ),
            ("{} x", "line 2: not JSON: trailing characters at column 4"),
        ] {
            let input = format!("{{\"text\": \"fine\"}}\n{line}\n{{\"text\": \"too\"}}\n");
            let (rows, error, _) = read(input.as_bytes(), &json("text"));
            let error = error.unwrap();
            assert!(error.contains(expected), "{error}");
            assert_eq!(rows.len(), 1);
            let skipping = TextOptions { skip_bad: true, ..json("text") };
            let (rows, error, skipped) = read(input.as_bytes(), &skipping);
            assert_eq!((rows.len(), error, skipped), (2, None, 1));
        }
    }

    #[test]
    fn what_is_not_utf8_is_placed_or_replaced() {
        let input = b"fine\nx\xFFy\n";
        let error = read(input, &TextOptions::default()).1.unwrap();
        assert!(
            error.contains("line 2: not UTF-8: byte 0xff at offset 6 of the file, 1 of the line"),
            "{error}"
        );
        let lossy = TextOptions { lossy: true, ..TextOptions::default() };
        assert_eq!(read(input, &lossy).0[1].text, "x\u{fffd}y");
        let error = read(b"\xFF\xFEa\0\n", &TextOptions::default()).1.unwrap();
        assert!(error.contains("UTF-16"), "{error}");
        let mut long = vec![b'a'; LONGEST_LINE + 1];
        long.extend(b"\nb");
        let error = read(&long, &TextOptions::default()).1.unwrap();
        assert!(error.contains("line 1: it is longer than 16 MiB"), "{error}");
        let skipping = TextOptions { skip_bad: true, ..TextOptions::default() };
        let (rows, _, skipped) = read(&long, &skipping);
        assert_eq!((rows[0].text.as_str(), skipped), ("b", 1));
    }
}
