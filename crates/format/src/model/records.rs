//! Row records: one free-form JSON object for every row of a matrix.

use crate::source::View;
use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

/// The records as their JSON text. The text stays as it was written; nothing is parsed that is not
/// asked for.
#[derive(Clone, Debug)]
pub struct Records {
    /// The document: an object with a `records` array, or the array alone.
    document: View,
    count: u64,
}

impl Records {
    /// Checks a document and counts its records without keeping any.
    pub fn parse(document: View) -> Result<Records, serde_json::Error> {
        let count = serde_json::from_slice::<&RawValue>(&document)
            .and_then(|_| serde_json::Deserializer::from_slice(&document).deserialize_any(Count))?;
        Ok(Records { document, count })
    }

    /// The whole text, as it was.
    pub fn document(&self) -> &View {
        &self.document
    }

    pub fn count(&self) -> u64 {
        self.count
    }

    /// The records' own JSON texts.
    pub fn items(&self) -> Vec<&RawValue> {
        #[derive(serde::Deserialize)]
        struct Document<'a> {
            #[serde(borrow, default)]
            records: Vec<&'a RawValue>,
        }
        serde_json::from_slice::<Vec<&RawValue>>(&self.document)
            .or_else(|_| serde_json::from_slice::<Document>(&self.document).map(|d| d.records))
            .unwrap_or_default()
    }
}

/// Counts the elements of an array, or of the `records` member of an object.
struct Count;

impl<'de> Visitor<'de> for Count {
    type Value = u64;

    fn expecting(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
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
        while let Some(key) = map.next_key::<std::borrow::Cow<str>>()? {
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
            fn expecting(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
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

    fn parse(text: &str) -> Result<Records, serde_json::Error> {
        Records::parse(View::owned(text.as_bytes().to_vec()))
    }

    #[test]
    fn records_are_counted_and_kept_verbatim() {
        let records = parse(r#"{"version": "1.0", "records": [{"a" : 1}, {}]}"#).unwrap();
        assert_eq!(records.count(), 2);
        assert_eq!(records.items()[0].get(), r#"{"a" : 1}"#);
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
    }
}
