//! What records are as text: reading them from front to back, and checking the parts.

use super::super::Produce;
use super::RECORDS;
use crate::Error;
use crate::source::Bytes;
use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

/// Why a text is not a list of records.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BadRecords {
    /// It is no such text: why not.
    Malformed(String),
    /// There are more or fewer than there should be.
    Count {
        /// How many there should be.
        expected: u64,
        /// How many there are.
        found: u64,
    },
}

impl fmt::Display for BadRecords {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BadRecords::Malformed(why) => f.write_str(why),
            BadRecords::Count { expected, found } => {
                write!(f, "there are {found} records for {expected} rows")
            }
        }
    }
}

impl std::error::Error for BadRecords {}

impl From<serde_json::Error> for BadRecords {
    fn from(error: serde_json::Error) -> BadRecords {
        BadRecords::Malformed(error.to_string())
    }
}

/// How many records a document has, all of which are looked at.
pub(super) fn count_in(document: &[u8]) -> Result<u64, BadRecords> {
    let count = serde_json::from_slice::<&RawValue>(document)
        .and_then(|_| serde_json::Deserializer::from_slice(document).deserialize_any(Count))?;
    Ok(count)
}

/// The text of a JSON object, if it is one and nothing else.
pub(super) fn object(text: &[u8]) -> Option<&str> {
    let value = serde_json::from_slice::<&RawValue>(text).ok()?;
    Some(value.get()).filter(|text| text.starts_with('{'))
}

/// Whether a document would be sound if the inside of its array of records were empty. With objects
/// in there, and commas between them, it then is.
pub(super) fn check_rest(document: &[u8], inside: &Range<usize>) -> bool {
    let (front, rest) = (document.get(..inside.start), document.get(inside.end..));
    let (Some(front), Some(rest)) = (front, rest) else { return false };
    count_in(&[front, rest].concat()) == Ok(0)
}

/// Lines as the elements of an array.
#[derive(Debug)]
pub(super) struct Elements(pub Bytes);

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
            if key == RECORDS && count.is_some() {
                return Err(serde::de::Error::duplicate_field(RECORDS));
            } else if key == RECORDS {
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
