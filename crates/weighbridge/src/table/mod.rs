//! Tables of text: CSV, TSV and their like, read row by row in bounded memory.
//!
//! Fields may stand in quotes, with delimiters, line breaks and doubled quotes in them. Lines end with
//! LF, CRLF or CR, and blank lines are no rows. All rows have as many fields as the first.

mod columns;
mod delimiter;
mod rows;

#[cfg(feature = "fs")]
pub(crate) use columns::shortened;
pub(crate) use columns::{choose, find, listed};
pub use delimiter::parse_delimiter;
pub(crate) use rows::{LONGEST_ROW, MOST_FIELDS};

use rows::{Flaw, RawRow, Rows};
use std::io::{self, BufRead};
use std::path::Path;
use weighbridge_format::{Advice, Error};

/// How a table is read, and which of its columns are wanted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TableOptions {
    /// The byte between fields. Where none is given, the first rows tell whether it is a comma, a
    /// semicolon, a tab or a bar.
    pub delimiter: Option<u8>,
    /// The first row is data, and columns go by their numbers, from 1.
    pub no_header: bool,
    /// The column that holds the texts. Where none is given, one that is clear is taken.
    pub column: Option<String>,
    /// The columns that are kept beside it; all where none are given.
    pub keep: Option<Vec<String>>,
}

impl TableOptions {
    /// A table with a header, whose delimiter and texts are found by looking at it.
    pub fn new() -> TableOptions {
        TableOptions::default()
    }

    /// How a file of this name is read, if the ending says that it is a table: `.csv`, or `.tsv`,
    /// `.tab` and `.psv` with their delimiters.
    pub fn by_name(name: &Path) -> Option<TableOptions> {
        let extension = name.extension()?.to_str()?;
        let delimiter = delimiter::by_extension(extension)?;
        Some(TableOptions { delimiter, ..TableOptions::default() })
    }
}

/// A row of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TableRow {
    /// The line that it begins on, counted from 1.
    pub line: u64,
    /// Where it begins in the stream.
    pub start: u64,
    /// As many as there are columns.
    pub fields: Vec<String>,
}

/// A row that can't be used.
#[derive(Clone, Debug)]
pub(crate) struct BadRow {
    /// The line of the flaw, counted from 1.
    pub line: u64,
    /// Its place in the stream.
    pub at: u64,
    /// What was expected and found.
    pub what: String,
    /// What would help, whatever the table is read for.
    pub help: &'static str,
    /// Bytes that are not UTF-8 could be replaced.
    pub replaceable: bool,
}

impl BadRow {
    /// What is wrong, with its place.
    pub(crate) fn message(&self) -> String {
        format!("line {}, byte {}: {}", self.line, self.at, self.what)
    }

    /// As an error about a file.
    pub(crate) fn error(&self, file: &str, advice: impl Into<Advice>) -> Error {
        Error::unrecognised(file, self.message(), Advice::from(self.help).and(advice))
    }
}

/// A table that is read row by row.
pub(crate) struct Table<R> {
    rows: Rows<R>,
    lossy: bool,
    /// The names of the columns.
    pub columns: Vec<String>,
    /// Those of them that the header does not have: columns without a name, or with one twice.
    pub made: Vec<String>,
    /// The first row, if it is none of names.
    first: Option<TableRow>,
}

impl<R: BufRead> Table<R> {
    /// Bytes that are not UTF-8 are replaced if it is `lossy`.
    pub(crate) fn new(input: R, lossy: bool) -> Table<R> {
        let (columns, made) = (Vec::new(), Vec::new());
        Table { rows: Rows::new(input), lossy, columns, made, first: None }
    }

    /// The bytes at the beginning that are there already.
    pub(crate) fn head(&mut self) -> io::Result<&[u8]> {
        self.rows.head()
    }

    /// Finds out the delimiter and the columns.
    ///
    /// # Errors
    /// [`Error::Unrecognised`] if there is no first row, or none that can be used; failures of the
    /// system.
    pub(crate) fn begin(&mut self, file: &str, options: &TableOptions) -> Result<(), Error> {
        let io = |e| Error::io(Path::new(file), e);
        let delimiter = match options.delimiter {
            Some(delimiter) => {
                self.rows.look(|_| true).map_err(io)?;
                delimiter
            }
            None => self.delimiter(options).map_err(io)?,
        };
        self.rows.cut_at(delimiter);
        let Some(row) = self.rows.next().map_err(io)? else {
            let what = "expected a row with the names of columns, found nothing";
            return Err(Error::unrecognised(file, what, "a table has at least one row"));
        };
        // What has no rows that could be counted is as wide as it is.
        self.columns = columns::numbers(row.ends.len());
        let row = self.decode(row).map_err(|bad| bad.error(file, Advice::None))?;
        if options.no_header {
            self.first = Some(row);
        } else {
            (self.columns, self.made) = columns::names(row.fields);
        }
        Ok(())
    }

    fn delimiter(&mut self, options: &TableOptions) -> io::Result<u8> {
        let wanted = options.column.iter().chain(options.keep.iter().flatten());
        let wanted: Vec<_> = wanted.map(String::as_str).collect();
        if !options.no_header {
            let (sample, is_all) = self.rows.look(|sample| sample.contains(&b'\n'))?;
            if let Some(found) = delimiter::by_names(sample, is_all, &wanted) {
                return Ok(found);
            }
        }
        let (sample, is_all) = self.rows.look(delimiter::is_enough)?;
        Ok(delimiter::by_rows(sample, is_all))
    }

    /// Bytes read so far.
    pub(crate) fn position(&self) -> u64 {
        self.rows.position()
    }

    /// Whether the next row can be had without waiting for the stream.
    pub(crate) fn is_next_there(&self) -> bool {
        self.first.is_some() || self.rows.is_next_there()
    }

    /// The next row, or what is wrong with it; `None` at the end.
    pub(crate) fn next(&mut self) -> io::Result<Option<Result<TableRow, BadRow>>> {
        if let Some(first) = self.first.take() {
            return Ok(Some(Ok(first)));
        }
        Ok(self.rows.next()?.map(|row| self.decode(row)))
    }

    fn decode(&self, row: RawRow) -> Result<TableRow, BadRow> {
        let bad = |what: String, help| {
            Err(BadRow { line: row.line, at: row.start, what, help, replaceable: false })
        };
        match row.flaw {
            None => {}
            Some(Flaw::Unclosed) => {
                let what = "expected a closing quote, found the end of the input";
                return bad(what.to_owned(), "a quote within quotes is written twice");
            }
            Some(Flaw::TooLong) => {
                let what =
                    format!("expected a row of at most {} MiB, found more", LONGEST_ROW >> 20);
                return bad(what, "a quote may be open that is closed nowhere");
            }
            Some(Flaw::TooManyFields) => {
                let what = format!("expected at most {MOST_FIELDS} fields, found more");
                return bad(what, "a table is expected, with a field for each column");
            }
        }
        let (expected, found) = (self.columns.len(), row.ends.len());
        if found != expected {
            let fields = if expected == 1 { "field" } else { "fields" };
            let what = format!("expected {expected} {fields}, as in the first row, found {found}");
            return bad(what, "a field with delimiters or line breaks in it stands in quotes");
        }
        if let (Err(e), false) = (std::str::from_utf8(&row.raw), self.lossy) {
            return Err(not_utf8(&row, e.valid_up_to()));
        }
        let mut start = 0;
        let fields = row.ends.iter().map(|end| {
            let field = row.fields.get(start..*end).unwrap_or_default();
            start = *end;
            String::from_utf8_lossy(field).into_owned()
        });
        Ok(TableRow { line: row.line, start: row.start, fields: fields.collect() })
    }
}

fn not_utf8(row: &RawRow, at: usize) -> BadRow {
    let (before, rest) = row.raw.split_at_checked(at).unwrap_or_default();
    let byte = rest.first().copied().unwrap_or_default();
    let lines = before.iter().filter(|b| **b == b'\n').count() as u64;
    let utf16 = row.start == 0 && (rest.starts_with(b"\xFF\xFE") || rest.starts_with(b"\xFE\xFF"));
    BadRow {
        line: row.line + lines,
        at: row.start + at as u64,
        what: format!("expected UTF-8, found the byte {byte:#04x}"),
        help: match utf16 {
            true => "the file is UTF-16: `iconv -f UTF-16 -t UTF-8` converts it",
            false => "",
        },
        replaceable: !utf16,
    }
}

/// The members of a record: a JSON object with some columns of a row, in their order.
pub(crate) struct Members(Vec<(usize, String)>);

impl Members {
    /// Of the columns at these places.
    pub(crate) fn new(columns: &[String], places: impl IntoIterator<Item = usize>) -> Members {
        let member = |i: usize| {
            let name = columns.get(i).map_or("", String::as_str);
            (i, format!("{}: ", serde_json::Value::from(name)))
        };
        Members(places.into_iter().map(member).collect())
    }

    /// The record of a row, in one line. Values are texts, as the table has them.
    pub(crate) fn record(&self, row: &TableRow) -> String {
        let mut record = String::from("{");
        for (i, start) in &self.0 {
            record.push_str(if record.len() > 1 { ", " } else { "" });
            record.push_str(start);
            let field = row.fields.get(*i).map_or("", String::as_str);
            record.push_str(&serde_json::to_string(field).unwrap_or_default());
        }
        record.push('}');
        record
    }
}

#[cfg(test)]
mod tests;
