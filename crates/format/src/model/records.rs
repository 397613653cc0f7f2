//! Row records: one free-form JSON object for every row of a matrix.

use super::Produce;
use crate::Error;
use crate::source::Bytes;
use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::fmt;
use std::sync::{Arc, OnceLock};

/// The records as their JSON text. The text stays as it was written; nothing is parsed that is not
/// asked for.
#[derive(Clone, Debug)]
pub struct Records {
    text: Bytes,
    /// What records are taken from.
    settled: OnceLock<Bytes>,
    form: Form,
    count: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// An object with a `records` array, or the array alone.
    Document,
    /// An object on each line.
    Lines,
}

/// Why a text is not a list of records.
#[derive(Debug)]
pub struct BadRecords(String);

impl fmt::Display for BadRecords {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for BadRecords {}

impl From<serde_json::Error> for BadRecords {
    fn from(error: serde_json::Error) -> BadRecords {
        BadRecords(error.to_string())
    }
}

impl Records {
    /// Checks a document and counts its records without keeping any.
    ///
    /// # Errors
    /// If it is neither an array of objects nor an object with one named `records`.
    pub fn parse(document: Bytes) -> Result<Records, BadRecords> {
        let count = serde_json::from_slice::<&RawValue>(&document)
            .and_then(|_| serde_json::Deserializer::from_slice(&document).deserialize_any(Count))?;
        Ok(Records { text: document, settled: OnceLock::new(), form: Form::Document, count })
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
        Records { text: lines, settled: OnceLock::new(), form: Form::Lines, count }
    }

    /// The whole text as it was, where it was a document.
    pub fn document(&self) -> Option<&Bytes> {
        (self.form == Form::Document).then_some(&self.text)
    }

    /// As a document: an object with a `records` array, or the array alone.
    pub fn to_document(&self) -> Cow<'_, [u8]> {
        match self.form {
            Form::Document => Cow::Borrowed(&self.text),
            Form::Lines => Cow::Owned(format!("[{}]", self.items().join(", ")).into_bytes()),
        }
    }

    /// How many there are.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The records' own JSON texts.
    pub fn items(&self) -> Vec<&str> {
        #[derive(serde::Deserialize)]
        struct Document<'a> {
            #[serde(borrow, default)]
            records: Vec<&'a RawValue>,
        }
        let text: &[u8] = self.settled.get_or_init(|| self.text.settled());
        if self.form == Form::Lines {
            let lines = text.split(|b| *b == b'\n');
            return lines.take_while(|l| !l.is_empty()).filter_map(text_of).collect();
        }
        let items = serde_json::from_slice::<Vec<&RawValue>>(text)
            .or_else(|_| serde_json::from_slice::<Document>(text).map(|d| d.records))
            .unwrap_or_default();
        items.into_iter().map(RawValue::get).collect()
    }

    /// What makes the elements of an array of them, and how many bytes, where they are lines.
    pub(crate) fn elements(&self) -> Option<(u64, Arc<dyn Produce>)> {
        // Each line break but the last becomes a comma and a space.
        let bytes = (self.text.len() as u64 + self.count).saturating_sub(2);
        (self.form == Form::Lines && self.count > 0)
            .then(|| (bytes, Arc::new(Elements(self.text.clone())) as Arc<dyn Produce>))
    }
}

fn text_of(line: &[u8]) -> Option<&str> {
    std::str::from_utf8(line).ok()
}

/// Lines as the elements of an array.
#[derive(Debug)]
struct Elements(Bytes);

impl Produce for Elements {
    fn produce(&self, out: &mut dyn FnMut(&[u8]) -> Result<(), Error>) -> Result<(), Error> {
        const TOGETHER: usize = 1 << 16;
        let mut block = Vec::new();
        for line in self.0.split_inclusive(|b| *b == b'\n') {
            let line = line.strip_suffix(b"\n").unwrap_or(line);
            if block.len() >= TOGETHER {
                out(&block)?;
                block.clear();
                block.extend_from_slice(b", ");
            } else if !block.is_empty() {
                block.extend_from_slice(b", ");
            }
            block.extend_from_slice(line);
        }
        out(&block)
    }

    fn is_work(&self) -> bool {
        false
    }
}

/// Counts the elements of an array, or of the `records` member of an object.
struct Count;

impl<'de> Visitor<'de> for Count {
    type Value = u64;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("an array of objects, or an object with one named \"records\"")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<u64, A::Error> {
        let mut count = 0;
        while seq.next_element::<Object>()?.is_some() {
            count += 1;
        }
        Ok(count)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<u64, A::Error> {
        let mut count = None;
        while let Some(key) = map.next_key::<Cow<str>>()? {
            if key == "records" && count.is_some() {
                return Err(serde::de::Error::duplicate_field("records"));
            } else if key == "records" {
                count = Some(map.next_value::<Counted>()?.0);
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(count.unwrap_or(0))
    }
}

/// An array's length.
struct Counted(u64);

impl<'de> serde::Deserialize<'de> for Counted {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        d.deserialize_seq(Count).map(Counted)
    }
}

/// Any JSON object, skipped.
struct Object;

impl<'de> serde::Deserialize<'de> for Object {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct Skip;
        impl<'de> Visitor<'de> for Skip {
            type Value = Object;
            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str("a record (a JSON object)")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Object, A::Error> {
                while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                Ok(Object)
            }
        }
        d.deserialize_map(Skip)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Records, BadRecords> {
        Records::parse(Bytes::owned(text.as_bytes().to_vec()))
    }

    #[test]
    fn records_are_counted_and_kept_verbatim() {
        let records = parse(r#"{"version": "1.0", "records": [{"a" : 1}, {}]}"#).unwrap();
        assert_eq!(records.count(), 2);
        assert_eq!(records.items()[0], r#"{"a" : 1}"#);
        assert_eq!(parse(r#"[{"x":[1,2]},{},{}]"#).unwrap().items().len(), 3);
        assert_eq!(parse("{}").unwrap().count(), 0);
        for bad in [
            r#"{"records": [{}], "records": []}"#,
            r#"{"records": [1]}"#,
            r#"{"records": {}}"#,
            "[{},",
            "3",
            "[] x",
        ] {
            assert!(parse(bad).is_err(), "{bad}");
        }
        assert!(Records::from_objects(["{}", "3"]).is_err());
        assert_eq!(Records::from_objects([]).unwrap().count(), 0);
    }

    #[test]
    fn lines_are_the_same_records_as_a_document() {
        let long = format!("{{\"a\": \"{}\"}}", "x".repeat(70_000));
        for objects in [vec![], vec!["{}"], vec!["{\"a\": 1}", "{}"], vec![&*long, &long, "{}"]] {
            let lines: String = objects.iter().map(|o| format!("{o}\n")).collect();
            let lines = Records::from_checked_lines(Bytes::owned(lines.into_bytes()));
            let document = Records::from_objects(objects.iter().copied()).unwrap();
            assert_eq!((lines.count(), lines.items()), (document.count(), objects));
            assert_eq!(lines.to_document(), document.to_document());
            if let Some((bytes, from)) = lines.elements() {
                let mut made = Vec::new();
                from.produce(&mut |part| {
                    made.extend_from_slice(part);
                    Ok(())
                })
                .unwrap();
                assert_eq!(made.len() as u64, bytes);
                assert_eq!([b"[", &made[..], b"]"].concat(), *document.to_document());
            } else {
                assert_eq!(lines.count(), 0);
            }
        }
    }
}
