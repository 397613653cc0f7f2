//! Records of rows out of files: tables, JSON lines and documents of JSON.
//!
//! ```
//! use weighbridge::{Container, records};
//!
//! let table = "id,title\n17,a truck\n18,\"a lorry, empty\"\n";
//! let records = records::parse("ids.csv", table.as_bytes())?;
//! assert_eq!(records.items()?[1], r#"{"id": "18", "title": "a lorry, empty"}"#);
//!
//! let mut rows = Container::builder().rows(2, vec![1.0, 0.0, 0.0, 1.0]).build()?;
//! records::attach(&mut rows, records, "ids.csv")?;
//! # Ok::<(), weighbridge::Error>(())
//! ```

use crate::embed::json;
use crate::embed::jsonl::VECTOR;
use crate::embed::lines::{LONGEST_LINE, Lines};
use crate::table::{Members, Table, TableOptions};
use std::io::{BufRead, Read};
use std::path::Path;
use weighbridge_format::model::{MATRIX, Records};
use weighbridge_format::source::Bytes;
use weighbridge_format::{Advice, Container, Error};

/// Records are held in memory, and no list of them is larger.
const LARGEST: u64 = 4 << 30;

/// The records of a file, see [`parse`].
///
/// # Errors
/// Those of [`parse`], and failures of the system.
#[cfg(feature = "fs")]
pub fn read(path: impl AsRef<Path>) -> Result<Records, Error> {
    let path = path.as_ref();
    let file = weighbridge_format::source::open_input(path).map_err(|e| Error::io(path, e))?;
    parse(&path.display().to_string(), std::io::BufReader::with_capacity(1 << 16, file))
}

/// The records of anything that can be read, one for each row. The ending of its name says what it
/// is:
///
/// | ending | a record is |
/// |---|---|
/// | `.csv`, `.tsv`, `.tab`, `.psv` | a row, with the columns of the header as members and their values as texts |
/// | `.jsonl`, `.ndjson` | the object on a line, as it stands there |
/// | `.json` | an element of the array, or of the array `records` of the object |
///
/// A column or member named `vector` is left out of tables and lines: that name is for the vectors
/// themselves.
///
/// # Errors
/// [`Error::Unrecognised`] if it is not what its name says, with the place; [`Error::Refused`] for
/// other names; [`Error::Limit`] for more than fits in memory; failures of the system.
pub fn parse(name: &str, input: impl BufRead) -> Result<Records, Error> {
    let path = Path::new(name);
    if let Some(options) = TableOptions::by_name(path) {
        return of_table(name, input, &options);
    }
    let extension = path.extension().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
    match extension.as_str() {
        "jsonl" | "ndjson" => of_lines(name, input),
        "json" => of_document(name, input),
        _ => {
            let what = "does not tell by its name how records are read from it";
            let advice = "names end with .csv, .tsv, .jsonl, .ndjson or .json";
            Err(Error::refused_file(path, what, advice))
        }
    }
}

/// Gives each row of the container's matrix a record, in the place of those that it had. `name` is
/// what the records came from.
///
/// # Errors
/// [`Error::Refused`] if there are more or fewer records than rows, or no matrix to have any.
pub fn attach(container: &mut Container, records: Records, name: &str) -> Result<(), Error> {
    let counted = |n: u64, thing: &str| format!("{n} {thing}{}", if n == 1 { "" } else { "s" });
    let Some(rows) = rows(container) else {
        let what = format!("{name}: records belong to the rows of one matrix, and here is none");
        return Err(Error::refused(what, "files of vectors have one"));
    };
    let count = records.count()?;
    if rows != count {
        let (records, rows) = (counted(count, "record"), counted(rows, "row"));
        let what = format!("{name}: {records} for {rows}");
        return Err(Error::refused(what, "every row has one record, in the order of the rows"));
    }
    container.records = Some(records);
    Ok(())
}

/// How many rows a container has that can have records: those of its only matrix, or of word
/// embeddings, which have lengths beside it. The table of a model's tokens is neither.
fn rows(container: &Container) -> Option<u64> {
    if let Some(rows) = container.rows() {
        return Some(rows.count);
    }
    let found = container.word_matrix().ok().filter(|found| found.matrix.name == MATRIX);
    found.map(|found| found.rows())
}

/// Lines that are collected, and become records together.
struct Collected<'a> {
    name: &'a str,
    lines: Vec<u8>,
}

impl Collected<'_> {
    fn add(&mut self, record: &str) -> Result<(), Error> {
        if (self.lines.len() + record.len()) as u64 >= LARGEST {
            return Err(too_large(self.name));
        }
        self.lines.extend_from_slice(record.as_bytes());
        self.lines.push(b'\n');
        Ok(())
    }

    fn into_records(self) -> Records {
        Records::from_checked_lines(Bytes::owned(self.lines))
    }
}

fn too_large(name: &str) -> Error {
    Error::limit(format!("bytes of the records of {name}"), LARGEST)
}

fn of_table(name: &str, input: impl BufRead, options: &TableOptions) -> Result<Records, Error> {
    let io = |e| Error::io(Path::new(name), e);
    let mut table = Table::new(input, false);
    table.begin(name, options)?;
    let places = (0..table.columns.len()).filter(|i| table.columns[*i] != VECTOR);
    let members = Members::new(&table.columns, places);
    let mut collected = Collected { name, lines: Vec::new() };
    while let Some(row) = table.next().map_err(io)? {
        let row = row.map_err(|bad| bad.error(name, Advice::None))?;
        collected.add(&members.record(&row))?;
    }
    Ok(collected.into_records())
}

fn of_lines(name: &str, input: impl BufRead) -> Result<Records, Error> {
    let mut lines = Lines::new(input);
    let mut collected = Collected { name, lines: Vec::new() };
    while let Some(line) = lines.next().map_err(|e| Error::io(Path::new(name), e))? {
        let bad = |at: u64, what: String| {
            let message = format!("line {}, byte {at}: {what}", line.number);
            Error::unrecognised(name, message, "a JSON object on each line is expected")
        };
        if line.cut {
            let what = format!("expected a line of at most {} MiB, found more", LONGEST_LINE >> 20);
            return Err(bad(line.start, what));
        }
        let text = std::str::from_utf8(&line.bytes).map_err(|e| {
            let at = e.valid_up_to();
            let byte = line.bytes.get(at).copied().unwrap_or_default();
            bad(line.start + at as u64, format!("expected UTF-8, found the byte {byte:#04x}"))
        })?;
        let text = text.trim_ascii();
        if text.is_empty() {
            continue;
        }
        let members = json::members(text).map_err(|what| bad(line.start, what))?;
        collected.add(&members.without_vector().unwrap_or_else(|| text.to_owned()))?;
    }
    Ok(collected.into_records())
}

fn of_document(name: &str, input: impl BufRead) -> Result<Records, Error> {
    let mut bytes = Vec::new();
    let read = input.take(LARGEST + 1).read_to_end(&mut bytes);
    read.map_err(|e| Error::io(Path::new(name), e))?;
    if bytes.len() as u64 > LARGEST {
        return Err(too_large(name));
    }
    if bytes.starts_with(weighbridge_format::wire::MARK) {
        bytes.drain(..weighbridge_format::wire::MARK.len());
    }
    let expected = "an array of objects is expected, or an object with one named \"records\"";
    let bad = |what: String| Error::unrecognised(name, what, expected);
    let records = Records::parse(Bytes::owned(bytes)).map_err(|e| bad(e.to_string()))?;
    // An object without them has no records, and was not meant.
    if records.count()? == 0 && !is_list(&records.to_document()?) {
        return Err(bad("there is no array \"records\" in it".to_owned()));
    }
    // What an object says beside them is about other rows.
    Records::from_objects(records.items()?).map_err(|e| bad(e.to_string()))
}

/// Whether a document without records has a place for them.
fn is_list(document: &[u8]) -> bool {
    match serde_json::from_slice::<serde_json::Value>(document) {
        Ok(serde_json::Value::Object(members)) => members.contains_key("records"),
        Ok(other) => other.is_array(),
        Err(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn items(name: &str, text: &[u8]) -> Result<Vec<String>, String> {
        let records = parse(name, text).map_err(|e| e.to_string())?;
        assert_eq!(records.count().unwrap() as usize, records.items().unwrap().len());
        Ok(records.items().unwrap().into_iter().map(str::to_owned).collect())
    }

    #[test]
    fn files_of_every_kind_are_the_same_records() {
        let expected = [r#"{"id": "1", "t": "a\nb"}"#, r#"{"id": "2", "t": ""}"#];
        let lines = format!("{}\n\n  {}  ", expected[0], expected[1]);
        for (name, text) in [
            ("a.csv", "id;t;vector\n1;\"a\nb\";[1]\n2;;\n".to_owned()),
            ("a.tsv", "id\tt\r\n1\t\"a\nb\"\r\n2\t\r\n".to_owned()),
            ("a.jsonl", lines.clone()),
            ("a.NDJSON", lines),
            ("a.json", format!("\u{feff}[{}, {}]", expected[0], expected[1])),
            ("a.json", format!("{{\"v\": 1, \"records\": [{}, {}]}}", expected[0], expected[1])),
        ] {
            assert_eq!(items(name, text.as_bytes()).unwrap(), expected, "{name}");
        }
        let old = b"{\"vector\": [1], \"id\": 1.50}\n";
        assert_eq!(items("a.jsonl", old).unwrap(), ["{\"id\": 1.50}"]);
        for (name, text) in [("a.csv", "id\n"), ("a.jsonl", ""), ("a.json", "[]")] {
            assert_eq!(items(name, text.as_bytes()).unwrap(), [""; 0], "{name}");
        }
    }

    #[test]
    fn what_is_wrong_is_placed() {
        for (name, text, expected) in [
            ("a.csv", &b"id,t\n1\n"[..], "a.csv: line 2, byte 5: expected 2 fields"),
            ("a.csv", b"id,t\n1,\"x\n", "a.csv: line 2, byte 5: expected a closing quote"),
            ("a.csv", b"id,t\n1,\xFF\n", "a.csv: line 2, byte 7: expected UTF-8, found the byte"),
            ("a.csv", b"", "a.csv: expected a row with the names of columns"),
            ("a.jsonl", b"{}\n[1]\n", "a.jsonl: line 2, byte 3: an array, not a JSON object"),
            ("a.jsonl", b"{}\n{\"a\n", "a.jsonl: line 2, byte 3: not JSON: "),
            ("a.jsonl", b"{\"a\": \"\xFF\"}", "line 1, byte 7: expected UTF-8"),
            ("a.json", b"[{}, 1]", "a.json: invalid type: integer `1`, expected a record"),
            ("a.json", b"{}", "there is no array \"records\""),
            ("a.json", b"[{}", "at line 1 column 3"),
            ("a.txt", b"{}", "names end with .csv"),
        ] {
            let said = items(name, text).unwrap_err();
            assert!(said.contains(expected), "{said}");
            assert!(!said.contains("option"), "{said}");
        }
    }

    #[test]
    fn every_row_has_one_record() {
        let of = |count: usize| Records::from_objects(vec!["{\"a\": 1}"; count]).unwrap();
        let mut rows = Container::builder().rows(2, vec![0.5; 20]).build().unwrap();
        attach(&mut rows, of(10), "ids.csv").unwrap();
        let error = attach(&mut rows, of(12), "ids.csv").unwrap_err();
        assert!(matches!(error, Error::Refused(_)));
        assert!(error.to_string().starts_with("ids.csv: 12 records for 10 rows; "), "{error}");
        // The others are still there.
        assert_eq!(rows.records.as_ref().unwrap().count().unwrap(), 10);
        let error = attach(&mut rows, of(1), "x").unwrap_err();
        assert!(error.to_string().contains("1 record for 10 rows"), "{error}");
        let two = [("a", [2u64, 3]), ("b", [3, 3])];
        let builder = two.iter().fold(Container::builder(), |builder, (name, shape)| {
            builder.values(*name, shape, vec![0.0; (shape[0] * shape[1]) as usize])
        });
        let error = attach(&mut builder.build().unwrap(), of(2), "x").unwrap_err();
        assert!(error.to_string().contains("here is none"), "{error}");
    }
}
