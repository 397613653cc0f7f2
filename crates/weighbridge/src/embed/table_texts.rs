//! Texts that are a column of a table.

use super::jsonl::VECTOR;
use super::texts::{BadLine, TextForm, TextRow};
use crate::table::{BadRow, Members, Table, TableOptions, TableRow, choose, find};
use std::collections::VecDeque;
use std::io::{self, BufRead};
use std::path::Path;
use weighbridge_format::{Advice, Error};

/// Rows that are looked at where nobody says which column holds the texts, and their bytes.
const LOOKED_AT: usize = 100;
const LOOKED_AT_BYTES: u64 = 4 << 20;

/// The column of a table that holds the texts.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TextColumn {
    /// Its name.
    pub name: String,
    /// Nobody named it: among several columns it was the one to be clear.
    pub by_itself: bool,
    /// The columns of a record, in their order.
    pub kept: Vec<String>,
    /// Names that the header does not have: of columns without one, or with one that is there twice.
    pub made: Vec<String>,
}

pub(super) struct TableTexts<R> {
    table: Table<R>,
    options: TableOptions,
    column: Option<TextColumn>,
    /// Where the text stands in a row, and what of a row its record has.
    text: usize,
    members: Members,
    /// Rows that were looked at, and not taken yet.
    waiting: VecDeque<Result<TableRow, BadRow>>,
}

/// A row of the table: its line, what became of it, and its place.
pub(super) type Next = (u64, Result<Option<TextRow>, BadLine>, String);

impl<R: BufRead> TableTexts<R> {
    pub(super) fn new(input: R, options: TableOptions, lossy: bool) -> TableTexts<R> {
        let (table, members) = (Table::new(input, lossy), Members::new(&[], []));
        let (column, waiting) = (None, VecDeque::new());
        TableTexts { table, options, column, text: 0, members, waiting }
    }

    pub(super) fn head(&mut self) -> io::Result<&[u8]> {
        self.table.head()
    }

    /// Finds the columns. `name` is what messages call the table.
    pub(super) fn begin(&mut self, name: &str) -> Result<(), Error> {
        self.table.begin(name, &self.options)?;
        let columns = self.table.columns.clone();
        self.text = match &self.options.column {
            Some(column) => find(name, &columns, column, "column")?,
            None => {
                self.look().map_err(|e| Error::io(Path::new(name), e))?;
                let rows: Vec<_> = self.waiting.iter().flatten().collect();
                choose(name, &columns, &rows)?
            }
        };
        let mut kept: Vec<usize> = match &self.options.keep {
            Some(keep) => {
                let find = |column: &String| find(name, &columns, column, "keep");
                keep.iter().map(find).collect::<Result<_, _>>()?
            }
            // A vector of before is left out: the new one takes its place.
            None => (0..columns.len()).filter(|i| columns[*i] != VECTOR).collect(),
        };
        kept.push(self.text);
        kept.sort_unstable();
        kept.dedup();
        self.members = Members::new(&columns, kept.iter().copied());
        self.column = Some(TextColumn {
            name: columns[self.text].clone(),
            by_itself: self.options.column.is_none() && columns.len() > 1,
            kept: kept.iter().map(|i| columns[*i].clone()).collect(),
            made: self.table.made.clone(),
        });
        Ok(())
    }

    /// Reads the rows that tell which column holds texts.
    fn look(&mut self) -> io::Result<()> {
        let begin = self.table.position();
        while self.waiting.len() < LOOKED_AT && self.table.position() - begin < LOOKED_AT_BYTES {
            let Some(row) = self.table.next()? else { break };
            self.waiting.push_back(row);
        }
        Ok(())
    }

    pub(super) fn form(&self) -> TextForm {
        match &self.column {
            Some(TextColumn { name, kept, .. }) => {
                TextForm::Table { column: name.clone(), kept: kept.clone() }
            }
            None => TextForm::Table { column: String::new(), kept: Vec::new() },
        }
    }

    pub(super) fn column(&self) -> Option<&TextColumn> {
        self.column.as_ref()
    }

    pub(super) fn position(&self) -> u64 {
        self.table.position()
    }

    pub(super) fn is_next_there(&self) -> bool {
        !self.waiting.is_empty() || self.table.is_next_there()
    }

    pub(super) fn next(&mut self) -> io::Result<Option<Next>> {
        let row = match self.waiting.pop_front() {
            Some(row) => Some(row),
            None => self.table.next()?,
        };
        Ok(row.map(|row| match row {
            Ok(mut row) => {
                let record = self.members.record(&row);
                let text = row.fields.get_mut(self.text).map(std::mem::take).unwrap_or_default();
                (row.line, Ok(Some(TextRow { text, record })), String::new())
            }
            Err(bad) => {
                let mut advice = Advice::from(bad.help);
                if bad.replaceable {
                    advice = advice.and(Advice::set("lossy", "replaces such bytes"));
                }
                advice = advice.and(Advice::set("skip-bad", "leaves such rows out"));
                (bad.line, Err(BadLine::new(bad.what, advice)), format!(", byte {}", bad.at))
            }
        }))
    }
}

#[cfg(test)]
mod tests {
    use crate::embed::{TextForm, TextOptions, TextRow, Texts};
    use crate::table::TableOptions;

    fn options(column: Option<&str>, keep: Option<&[&str]>) -> TextOptions {
        let mut table = TableOptions::new();
        table.column = column.map(str::to_owned);
        table.keep = keep.map(|names| names.iter().map(|n| (*n).to_owned()).collect());
        TextOptions { table: Some(table), ..TextOptions::default() }
    }

    fn read(text: &str, options: &TextOptions) -> Result<Vec<TextRow>, String> {
        let texts = Texts::new("in.csv", text.as_bytes(), options);
        texts.map(|row| row.map_err(|e| e.to_string())).collect()
    }

    const TABLE: &str = "id,body,vector,tag\n1,\"a, b\",[1],x\n\n2,,[2],y\n";

    #[test]
    fn a_column_is_the_texts_and_rows_are_records() {
        let rows = read(TABLE, &options(Some("body"), None)).unwrap();
        let texts: Vec<_> = rows.iter().map(|r| r.text.as_str()).collect();
        assert_eq!(texts, ["a, b", ""]);
        assert_eq!(rows[0].record, r#"{"id": "1", "body": "a, b", "tag": "x"}"#);
        let rows = read(TABLE, &options(Some("body"), Some(&["tag", "tag"]))).unwrap();
        assert_eq!(rows[1].record, r#"{"body": "", "tag": "y"}"#);
        let rows = read(TABLE, &options(Some("tag"), Some(&["vector"]))).unwrap();
        assert_eq!(rows[1].record, r#"{"vector": "[2]", "tag": "y"}"#);
        assert_eq!(read("a\n\"\"\nb\n", &options(None, None)).unwrap().len(), 2);
    }

    #[test]
    fn what_was_chosen_is_known() {
        let table = options(None, Some(&["id"]));
        let mut texts = Texts::new("in.csv", TABLE.as_bytes(), &table);
        texts.check().unwrap();
        let column = texts.column().unwrap();
        assert_eq!((column.name.as_str(), column.by_itself), ("body", true));
        let form = texts.form();
        let said = "a table with texts in \"body\" and records of [\"id\", \"body\"]";
        assert_eq!(form.to_string(), said);
        assert!(matches!(form, TextForm::Table { .. }));
        assert_eq!(texts.count(), 2);
        let one = read("only\n1\n2\n", &options(None, None)).unwrap();
        assert_eq!(one[1].record, r#"{"only": "2"}"#);
        let mut texts = Texts::new("in.csv", &b"only\n1\n"[..], &options(None, None));
        texts.check().unwrap();
        assert!(!texts.column().unwrap().by_itself);
    }

    #[test]
    fn bad_rows_are_errors_or_left_out() {
        let text = "id,body\n1,a\n2\n3,b\n4,\"open\n";
        let error = read(text, &options(Some("body"), None)).unwrap_err();
        let said = "in.csv: line 3, byte 12: expected 2 fields, as in the first row, found 1";
        assert!(error.starts_with(said) && error.contains("skip-bad"), "{error}");
        let skipping = TextOptions { skip_bad: true, ..options(None, None) };
        let mut texts = Texts::new("in.csv", text.as_bytes(), &skipping);
        assert_eq!(texts.by_ref().filter(Result::is_ok).count(), 2);
        assert_eq!(texts.skipped, 2);
        assert_eq!((texts.first_skipped[0].line, texts.first_skipped[1].line), (3, 5));
        let lossy = TextOptions { lossy: true, ..options(None, None) };
        let texts = Texts::new("in.csv", &b"t\na\xFFb\n"[..], &lossy);
        assert_eq!(texts.map(|t| t.unwrap().text).collect::<Vec<_>>(), ["a\u{fffd}b"]);
        let error = read(text, &options(Some("text"), None)).unwrap_err();
        assert!(error.contains("there is no column \"text\""), "{error}");
        let error = read(text, &options(Some("body"), Some(&["no"]))).unwrap_err();
        assert!(error.contains("no column \"no\"") && error.contains("option keep"), "{error}");
    }

    /// Whatever the table is named, other kinds of files are none.
    #[test]
    fn files_of_other_kinds_are_no_tables() {
        let gzip = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03\x4b\x54";
        let mut texts = Texts::new("in.csv", &gzip[..], &options(None, None));
        assert!(texts.check().unwrap_err().to_string().contains("gzip"));
    }
}
