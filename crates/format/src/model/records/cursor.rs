//! Records one behind the other. Nothing is kept of those that were passed, so that files may have more
//! than there is memory for.

use super::super::Produce;
use super::parse::object;
use super::scan::{Members, is_key, skip_space, skip_value};
use super::{BadRecords, Form, RECORDS, Records};
use crate::Error;
use crate::source::Bytes;

/// Gives records in their order. [`Records::cursor`] makes it.
#[derive(Debug)]
pub struct RecordCursor {
    records: Records,
    /// As it lies in the mapping: each record is copied and checked when its turn comes.
    text: Bytes,
    /// Where the next record is looked for; none at the end.
    at: Option<usize>,
    given: u64,
}

impl Records {
    /// Goes through the records from front to back in bounded memory.
    ///
    /// # Errors
    /// If they can't be read, or there are none where they should be.
    pub fn cursor(&self) -> Result<RecordCursor, Error> {
        let text = self.lying()?.clone();
        let at = match self.0.form {
            Form::Lines => Some(0),
            Form::Document => inside(&text).map_err(|bad| self.blame(&bad))?,
        };
        Ok(RecordCursor { records: self.clone(), text, at, given: 0 })
    }
}

/// Where the inside of the array of records begins; none where a document has no such array.
fn inside(text: &[u8]) -> Result<Option<usize>, BadRecords> {
    let malformed = || BadRecords::Malformed("no array of records is found".to_owned());
    let start = skip_space(text, 0);
    if text.get(start) == Some(&b'[') {
        return Ok(Some(start + 1));
    }
    let mut members = Members::of(text, start).ok_or_else(malformed)?;
    while let Some((key, at)) = members.head() {
        if text.get(key).is_some_and(|key| is_key(key, RECORDS)) {
            return match text.get(at) {
                Some(b'[') => Ok(Some(at + 1)),
                _ => Err(malformed()),
            };
        }
        members.behind(skip_value(text, at).ok_or_else(malformed)?);
    }
    members.end.map(|_| None).ok_or_else(malformed)
}

impl RecordCursor {
    /// The next record's own JSON text, or none behind the last.
    fn read(&mut self) -> Result<Option<String>, Error> {
        let Some(at) = self.at else { return Ok(None) };
        let found = match self.records.0.form {
            Form::Lines => self.line(at),
            Form::Document => self.element(at),
        };
        let malformed = || BadRecords::Malformed("a record is not a JSON object".to_owned());
        let found = found.ok_or_else(|| self.records.blame(&malformed()))?;
        let Some((start, end)) = found else {
            self.at = None;
            self.records.check_unchanged()?;
            return self.records.expect(self.given).map(|_| None);
        };
        self.at = Some(end);
        self.given += 1;
        let copy = self.text.get(start..end).unwrap_or_default().to_vec();
        let record = object(copy.trim_ascii_end()).map(str::to_owned);
        record.map(Some).ok_or_else(|| self.records.blame(&malformed()))
    }

    /// The line at a place.
    fn line(&self, at: usize) -> Option<Option<(usize, usize)>> {
        let rest = self.text.get(at..)?;
        let length = rest.iter().position(|b| *b == b'\n').map_or(rest.len(), |n| n + 1);
        Some((length > 0).then_some((at, at + length)))
    }

    /// The element at a place, behind a comma unless it is the first.
    fn element(&self, at: usize) -> Option<Option<(usize, usize)>> {
        let text = &*self.text;
        let mut start = skip_space(text, at);
        match text.get(start)? {
            b']' => return Some(None),
            b',' if self.given > 0 => start = skip_space(text, start + 1),
            _ if self.given == 0 => {}
            _ => return None,
        }
        Some(Some((start, skip_value(text, start)?)))
    }
}

/// Nothing follows an error.
impl Iterator for RecordCursor {
    type Item = Result<String, Error>;

    fn next(&mut self) -> Option<Result<String, Error>> {
        let next = self.read();
        if next.is_err() {
            self.at = None;
        }
        next.transpose()
    }
}

/// Records of a document as the elements of an array.
#[derive(Debug)]
pub(super) struct CursorElements(pub Records);

impl Produce for CursorElements {
    fn produce(&self, out: &mut dyn FnMut(&[u8]) -> Result<(), Error>) -> Result<(), Error> {
        const TOGETHER: usize = 1 << 16;
        let (mut block, mut separator) = (Vec::new(), "");
        for record in self.0.cursor()? {
            block.extend_from_slice(separator.as_bytes());
            block.extend_from_slice(record?.as_bytes());
            separator = ", ";
            if block.len() >= TOGETHER {
                out(&block)?;
                block.clear();
            }
        }
        out(&block)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(records: &Records) -> Result<Vec<String>, Error> {
        records.cursor()?.collect()
    }

    #[test]
    fn records_come_in_their_order() {
        let expected = vec![r#"{"a": "]},"}"#.to_owned(), "{}".to_owned(), r#"{"b": [1]}"#.into()];
        for document in [
            r#"[{"a": "]},"},{} , {"b": [1]}]"#,
            r#" {"records" : [ {"a": "]},"}, {}, {"b": [1]} ], "x": 1}"#,
            r#"{"x": {"records": []}, "records": [{"a": "]},"}, {}, {"b": [1]}]}"#,
        ] {
            let records = Records::parse(Bytes::owned(document.into())).unwrap();
            assert_eq!(all(&records).unwrap(), expected);
        }
        let lines = expected.iter().map(|r| format!("{r}\n")).collect::<String>();
        let records = Records::from_checked_lines(Bytes::owned(lines.into_bytes()));
        assert_eq!(all(&records).unwrap(), expected);
        let none = Records::parse(Bytes::owned(b"{\"x\": 1}".to_vec())).unwrap();
        assert_eq!(all(&none).unwrap(), Vec::<String>::new());
        let none = Records::from_checked_lines(Bytes::owned(Vec::new()));
        assert_eq!(all(&none).unwrap(), Vec::<String>::new());
    }

    #[test]
    fn what_is_no_record_is_an_error() {
        for document in [r#"[{"a": 1} {"b": 2}]"#, r#"[{"a": 1}, 5]"#, r#"[{"a": 1}"#, "5", "{"] {
            let view = crate::View::owned(document.as_bytes().to_vec());
            let records = Records::lazy(view, 2, |bad| Error::refused(bad.to_string(), ""));
            assert!(all(&records).is_err(), "{document}");
        }
        let view = crate::View::owned(b"[{}]".to_vec());
        let records = Records::lazy(view, 2, |bad| Error::refused(bad.to_string(), ""));
        assert!(all(&records).unwrap_err().to_string().contains("1 records for 2 rows"));
    }
}
