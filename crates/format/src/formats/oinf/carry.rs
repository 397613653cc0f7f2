//! What OINF's alphabet and tables can't say, as U8 arrays in the metadata; and back.
//!
//! | what | under |
//! |---|---|
//! | a text with other characters | `<key>.utf8` |
//! | a key that is empty or has other characters | `metadata.<key>`, escaped as below |
//! | the vocabulary | `vocabulary.bytes`, `vocabulary.ends`, `vocabulary.special.<name>` |
//! | an attachment | `attachment.<name>`, characters outside the alphabet as `_` and two hex digits |
//! | row records | `records.utf8` |
//!
//! Turning back happens only where writing would give the very same entries again.

use super::layout::is_plain;
use crate::model::{Array, Attachment, Container, Records, Value, Vocabulary};
use crate::source::Bytes;
use crate::{Advice, Error};
use weighbridge_codec::DType;

/// The end of the key of a text with other characters.
pub(super) const UTF8: &str = ".utf8";
const RECORDS: &str = "records.utf8";
const BYTES: &str = "vocabulary.bytes";
const ENDS: &str = "vocabulary.ends";
const SPECIAL: &str = "vocabulary.special.";
const ATTACHMENT: &str = "attachment.";
const KEY: &str = "metadata.";

fn bytes_value(bytes: Vec<u8>) -> Value {
    let shape = vec![bytes.len() as u64];
    Value::Array(Array { dtype: DType::U8, shape, data: Bytes::owned(bytes) })
}

fn as_bytes(value: &Value) -> Option<&Bytes> {
    match value {
        Value::Array(a) if a.dtype == DType::U8 && a.shape.len() == 1 => Some(&a.data),
        _ => None,
    }
}

/// The metadata entries of everything in the container that is no tensor and no size variable.
pub(super) fn to_entries(container: &Container) -> Result<Vec<(String, Value)>, Error> {
    let mut entries = Vec::new();
    for (key, value) in &container.metadata {
        let key = written_key(key);
        match value {
            Value::Text(text) if !is_plain(text) => {
                entries.push((format!("{key}{UTF8}"), bytes_value(text.clone().into_bytes())));
            }
            other => entries.push((key, other.clone())),
        }
    }
    if let Some(v) = &container.vocabulary {
        let (mut bytes, mut ends) = (Vec::new(), Vec::new());
        for token in v.tokens() {
            bytes.extend_from_slice(token.as_bytes());
            ends.extend_from_slice(&(bytes.len() as u64).to_le_bytes());
        }
        let shape = vec![v.len() as u64];
        entries.push((BYTES.to_owned(), bytes_value(bytes)));
        let ends = Array { dtype: DType::U64, shape, data: Bytes::owned(ends) };
        entries.push((ENDS.to_owned(), Value::Array(ends)));
        for (name, id) in &v.special {
            entries.push((format!("{SPECIAL}{name}"), Value::Number(DType::U32, (*id).into())));
        }
    }
    for a in &container.attachments {
        entries.push((
            format!("{ATTACHMENT}{}", escape(&a.name)),
            bytes_value(a.data.in_place()?.to_vec()),
        ));
    }
    if let Some(records) = &container.records {
        entries.push((RECORDS.to_owned(), bytes_value(records.to_document()?.into_owned())));
    }
    let mut keys: Vec<_> = entries.iter().map(|(k, _)| k.as_str()).collect();
    keys.sort_unstable();
    if let Some(twice) = keys.windows(2).find(|w| w[0] == w[1]) {
        let hint = Advice::set("rename", "gives one of them another name");
        return Err(Error::refused(
            format!("two metadata entries would be named {:?}", twice[0]),
            hint,
        ));
    }
    Ok(entries)
}

/// The other way, on a container whose metadata is as it stands in the file, sorted by name.
pub(super) fn from_entries(container: &mut Container) {
    take_vocabulary(container);
    let entries = std::mem::take(&mut container.metadata);
    let names: std::collections::HashSet<_> = entries.iter().map(|(k, _)| k.clone()).collect();
    let mut kept = Vec::with_capacity(entries.len());
    for (key, value) in entries {
        let bytes = as_bytes(&value);
        if let (RECORDS, Some(view)) = (key.as_str(), bytes)
            && let Ok(records) = Records::parse(view.settled())
        {
            container.records = Some(records);
        } else if let (Some(name), Some(view)) = (key.strip_prefix(ATTACHMENT), bytes)
            && let Some(name) = unescape(name)
        {
            container.attachments.push(Attachment {
                name,
                data: view.clone().into(),
                described: false,
            });
        } else if let (Some(base), Some(view)) = (key.strip_suffix(UTF8), bytes)
            && let Ok(text) = String::from_utf8(view.to_vec())
            && is_plain(base)
            && !is_plain(&text)
            && !names.contains(base)
        {
            kept.push((read_key(base), Value::Text(text)));
        } else {
            kept.push((read_key(&key), value));
        }
    }
    container.metadata = kept;
}

/// The name that a metadata key is written under: itself if it can be one.
fn written_key(key: &str) -> String {
    match is_plain(key) && escaped_key(key).is_none() {
        true => key.to_owned(),
        false => format!("{KEY}{}", escape(key)),
    }
}

/// The key that is written under a name.
fn read_key(name: &str) -> String {
    escaped_key(name).unwrap_or_else(|| name.to_owned())
}

/// The key that only this name is written for.
fn escaped_key(name: &str) -> Option<String> {
    let key = unescape(name.strip_prefix(KEY)?)?;
    (!is_plain(&key) || escaped_key(&key).is_some()).then_some(key)
}

/// Takes the vocabulary's entries out of the metadata if they are one.
fn take_vocabulary(container: &mut Container) {
    let get = |key: &str| container.metadata.iter().find(|(k, _)| k == key).map(|(_, v)| v);
    let Some(bytes) = get(BYTES).and_then(as_bytes).map(Bytes::settled) else { return };
    let Some(Value::Array(ends)) = get(ENDS) else { return };
    if ends.dtype != DType::U64 || ends.shape.len() != 1 {
        return;
    }
    let mut tokens = Vec::new();
    let mut from = 0;
    for i in 0..ends.count() {
        let to = ends.scalar(i).to_i128().and_then(|n| usize::try_from(n).ok());
        let token = to.filter(|&to| to >= from).and_then(|to| bytes.get(from..to));
        let Some(token) = token.and_then(|t| std::str::from_utf8(t).ok()) else { return };
        tokens.push(token);
        from += token.len();
    }
    if from != bytes.len() {
        return;
    }
    let mut vocabulary = Vocabulary::from_tokens(tokens);
    let mut special = Vec::new();
    for (key, value) in &container.metadata {
        if let Some(name) = key.strip_prefix(SPECIAL) {
            match value {
                Value::Number(DType::U32, id) => {
                    special.push((name.to_owned(), u32::try_from(*id).unwrap_or(u32::MAX)));
                }
                _ => return,
            }
        }
    }
    // The usual order, so that other formats write them as they always do.
    let rank = |name: &str| crate::model::SPECIAL_TOKENS.iter().position(|(n, _)| *n == name);
    special.sort_by_key(|(name, _)| rank(name).unwrap_or(usize::MAX));
    vocabulary.special = special;
    container.vocabulary = Some(vocabulary);
    container.metadata.retain(|(k, _)| k != BYTES && k != ENDS && !k.starts_with(SPECIAL));
}

/// `_` and two hex digits for every byte outside the alphabet, and for `_` itself.
fn escape(name: &str) -> String {
    name.bytes().fold(String::new(), |mut out, b| {
        if b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-') {
            out.push(char::from(b));
        } else {
            out.push_str(&format!("_{b:02x}"));
        }
        out
    })
}

/// The name whose escaped form this is.
fn unescape(text: &str) -> Option<String> {
    let mut bytes = Vec::new();
    let mut rest = text.bytes();
    while let Some(b) = rest.next() {
        if b == b'_' {
            let pair = [rest.next()?, rest.next()?];
            bytes.push(u8::from_str_radix(std::str::from_utf8(&pair).ok()?, 16).ok()?);
        } else {
            bytes.push(b);
        }
    }
    String::from_utf8(bytes).ok().filter(|name| escape(name) == text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_survive_escaping() {
        for name in ["config.json", "1_Pooling/config.json", "a b", "é", "_"] {
            let text = escape(name);
            assert!(is_plain(&text), "{text}");
            assert_eq!(unescape(&text).as_deref(), Some(name));
        }
        for odd in ["a_", "a_2", "a_zz", "a_41", "a_C3"] {
            assert_eq!(unescape(odd), None, "{odd}");
        }
    }

    #[test]
    fn every_key_comes_back() {
        for key in ["", "a", "a b", "é", "a.utf8", "metadata.", "metadata.a", "metadata.a_20b"] {
            let name = written_key(key);
            assert!(is_plain(&name), "{name}");
            assert_eq!(read_key(&name), key);
            // Keys that a file may have are written as they are.
            assert_eq!(name == key, is_plain(key) && escaped_key(key).is_none(), "{name}");
        }
    }
}
