//! The JSON header, parsed in order and without building a tree.

use crate::Error;
use crate::source::Source;
use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};
use std::borrow::Cow;
use std::collections::HashSet;
use weighbridge_codec::DType;

/// Readers of safetensors refuse headers longer than this.
pub(super) const LONGEST: u64 = 100_000_000;

/// Each type under its name in the header.
pub(in super::super) const DTYPES: &[(&str, DType)] = &[
    ("BOOL", DType::Bool),
    ("F4", DType::F4E2M1),
    ("F6_E2M3", DType::F6E2M3),
    ("F6_E3M2", DType::F6E3M2),
    ("U8", DType::U8),
    ("I8", DType::I8),
    ("F8_E5M2", DType::F8E5M2),
    ("F8_E4M3", DType::F8E4M3),
    ("F8_E8M0", DType::F8E8M0),
    ("F8_E4M3FNUZ", DType::F8E4M3Fnuz),
    ("F8_E5M2FNUZ", DType::F8E5M2Fnuz),
    ("I16", DType::I16),
    ("U16", DType::U16),
    ("F16", DType::F16),
    ("BF16", DType::BF16),
    ("I32", DType::I32),
    ("U32", DType::U32),
    ("F32", DType::F32),
    ("C64", DType::C64),
    ("F64", DType::F64),
    ("I64", DType::I64),
    ("U64", DType::U64),
];

/// The types of the table above.
pub(in super::super) const DTYPES_HELD: &[DType] = &{
    let mut list = [DType::Bool; DTYPES.len()];
    let mut i = 0;
    while i < list.len() {
        list[i] = DTYPES[i].1;
        i += 1;
    }
    list
};

/// The header's text, as it stands in a file that was read before.
pub(in super::super) fn header_text(source: &Source) -> Result<String, Error> {
    let length = source.head()?.first_chunk().map_or(0, |raw| u64::from_le_bytes(*raw));
    let view = source.view(8..length.saturating_add(8));
    let text = view.map(|view| view.in_place()).transpose()?.unwrap_or_default();
    Ok(String::from_utf8(text.to_vec()).unwrap_or_default())
}

pub(super) fn name_of(dtype: DType) -> &'static str {
    DTYPES.iter().find(|(_, d)| *d == dtype).map_or("U8", |(name, _)| name)
}

/// A tensor's entry. Members that are not known say nothing, as in the reference reader.
#[derive(Debug)]
pub(in super::super) struct Entry<'a> {
    pub dtype: Cow<'a, str>,
    pub shape: Vec<u64>,
    pub data_offsets: (u64, u64),
    /// The first member that is not known.
    pub unknown: Option<Cow<'a, str>>,
}

impl<'de: 'a, 'a> Deserialize<'de> for Entry<'a> {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        d.deserialize_map(EntryVisitor)
    }
}

struct EntryVisitor;

impl<'de> Visitor<'de> for EntryVisitor {
    type Value = Entry<'de>;

    fn expecting(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        f.write_str("an object with dtype, shape and data_offsets")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Entry<'de>, A::Error> {
        use serde::de::Error;
        let (mut dtype, mut shape, mut data_offsets, mut unknown) = (None, None, None, None);
        while let Some(BorrowedText(name)) = map.next_key()? {
            let is_first = match name.as_ref() {
                "dtype" => dtype.replace(map.next_value::<BorrowedText>()?.0).is_none(),
                "shape" => shape.replace(map.next_value()?).is_none(),
                "data_offsets" => data_offsets.replace(map.next_value()?).is_none(),
                _ => {
                    map.next_value::<IgnoredAny>()?;
                    unknown.get_or_insert(name);
                    continue;
                }
            };
            if !is_first {
                return Err(A::Error::custom(format!("{name} appears twice")));
            }
        }
        Ok(Entry {
            dtype: dtype.ok_or_else(|| A::Error::missing_field("dtype"))?,
            shape: shape.ok_or_else(|| A::Error::missing_field("shape"))?,
            data_offsets: data_offsets.ok_or_else(|| A::Error::missing_field("data_offsets"))?,
            unknown,
        })
    }
}

/// The header's entries in the order of the file.
#[derive(Debug, Default)]
pub(in super::super) struct Header<'a> {
    /// `__metadata__` is there, and null.
    pub null_metadata: bool,
    pub metadata: Vec<(String, String)>,
    pub tensors: Vec<(Cow<'a, str>, Entry<'a>)>,
}

impl<'de: 'a, 'a> Deserialize<'de> for Header<'a> {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        d.deserialize_map(HeaderVisitor)
    }
}

struct HeaderVisitor;

impl<'de> Visitor<'de> for HeaderVisitor {
    type Value = Header<'de>;

    fn expecting(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        f.write_str("an object of tensors")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Header<'de>, A::Error> {
        let mut header = Header::default();
        let mut with_metadata = false;
        while let Some(BorrowedText(name)) = map.next_key()? {
            if name == "__metadata__" && with_metadata {
                return Err(serde::de::Error::custom("__metadata__ appears twice"));
            } else if name == "__metadata__" {
                with_metadata = true;
                match map.next_value::<Option<Texts>>()? {
                    Some(texts) => header.metadata = texts.0,
                    None => header.null_metadata = true,
                }
            } else {
                header.tensors.push((name, map.next_value()?));
            }
        }
        Ok(header)
    }
}

/// A string that is borrowed from the header unless it has escapes.
#[derive(Deserialize)]
struct BorrowedText<'a>(#[serde(borrow)] Cow<'a, str>);

/// A map of strings, in order.
#[derive(Default)]
struct Texts(Vec<(String, String)>);

impl<'de> Deserialize<'de> for Texts {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct TextsVisitor;
        impl<'de> Visitor<'de> for TextsVisitor {
            type Value = Texts;
            fn expecting(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
                f.write_str("an object of strings")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Texts, A::Error> {
                let mut texts = Texts::default();
                let mut keys = HashSet::new();
                while let Some((key, text)) = map.next_entry::<String, String>()? {
                    if !keys.insert(key.clone()) {
                        let what = format!("the metadata key {key:?} appears twice");
                        return Err(serde::de::Error::custom(what));
                    }
                    texts.0.push((key, text));
                }
                Ok(texts)
            }
        }
        d.deserialize_map(TextsVisitor)
    }
}
