//! Writing a `meta.json`.

use super::Kind;
use super::meta::{
    Members, Quantization, VERSION_WRITTEN, is_number, is_object, is_text, read_checksum,
    read_shape,
};
use crate::Error;
use crate::model::{EMBEDDING, Records, Value, quoted};
use crate::plan::Piece;
use crate::source::{Bytes, View};
use serde_json::value::RawValue;
use std::collections::BTreeMap;

/// The members that have a meaning of their own; others are carried along.
const MEMBERS: [&str; 5] = ["version", "quantization", "shape", "checksum", "records"];

/// Whether a metadata entry has a place in a `meta.json`: what the rows were made with.
pub(super) fn holds_entry(key: &str, value: &Value) -> bool {
    let raw = value.as_text().filter(|_| key == EMBEDDING).map(serde_json::from_str::<&RawValue>);
    raw.is_some_and(|raw| raw.is_ok_and(is_object))
}

/// What is to stand in a document's place: the document itself, if it says of itself what is going
/// to be written, with the checksum of the rows if it has one.
///
/// `document` has its members, in their places, but for the records; `whole` is all of it.
fn kept(
    document: &Bytes,
    whole: View,
    kind: Kind,
    shape: [u64; 2],
    embedding: Option<&str>,
) -> Option<Vec<Piece>> {
    if !document.trim_ascii_start().starts_with(b"{") {
        return None;
    }
    let members = serde_json::from_slice::<Members>(document).ok()?;
    let quantization = members.quantization.filter(|raw| raw.get().starts_with('{'));
    let quantization: Option<Quantization> =
        quantization.and_then(|raw| serde_json::from_str(raw.get()).ok());
    let agrees = quantization.is_some_and(|q| {
        q.dtype.is_some_and(|raw| is_text(raw, kind.type_name()))
            && q.scale_factor.is_none_or(|raw| is_number(raw, kind.scale_factor()))
    }) && members.shape.and_then(read_shape) == Some(shape)
        && members.embedding.filter(|raw| is_object(raw)).map(RawValue::get) == embedding;
    if !agrees {
        return None;
    }
    let Some(raw) = members.checksum.filter(|raw| read_checksum(raw).is_some()) else {
        return Some(vec![Piece::View(whole)]);
    };
    // Behind its quotation mark.
    let at = raw.get().as_ptr().addr() - document.as_ptr().addr() + 1;
    let rest = whole.part(at as u64 + 8..whole.len())?;
    Some(vec![Piece::Bytes(document.get(..at)?.to_vec()), ROWS_CHECKSUM, Piece::View(rest)])
}

/// The file of rows is the plan's first.
const ROWS_CHECKSUM: Piece = Piece::Crc32OfFile { file: 0 };

/// What stands in the records of a written `meta.json`.
pub(super) enum Rows<'a> {
    /// Nothing is known of the rows.
    Nothing,
    Records(&'a Records),
    /// The word of each row.
    Words(&'a crate::Vocabulary),
}

/// The `meta.json` of rows: as it was where that is still true, else made anew in the style of
/// Python's `json.dumps(..., ensure_ascii=False)`.
pub(super) fn document(
    kind: Kind,
    shape: [u64; 2],
    rows: &Rows,
    embedding: Option<&str>,
    may_stay: bool,
) -> Result<Vec<Piece>, Error> {
    let mut others: BTreeMap<String, &RawValue> = BTreeMap::new();
    if let Rows::Records(records) = rows {
        // What stands in front of the records is known without reading them.
        let whole = records.source().and_then(|source| source.view(0..source.len()));
        let (document, whole) = match (records.outline(), whole) {
            (Some(outline), Some(whole)) => (Some(outline), Some(whole)),
            _ => {
                let document = records.document()?;
                (document, document.map(|document| document.clone().into()))
            }
        };
        if let Some((document, whole)) = document.zip(whole).filter(|_| may_stay)
            && let Some(pieces) = kept(document, whole, kind, shape, embedding)
        {
            records.check()?;
            return Ok(pieces);
        }
        others = document.and_then(|d| serde_json::from_slice(d).ok()).unwrap_or_default();
        others.retain(|key, value| match key.as_str() {
            // Under this name others may have something else.
            EMBEDDING => embedding.is_none() && !is_object(value),
            key => !MEMBERS.contains(&key),
        });
    }
    let (scale, note) = match kind {
        Kind::I8 => ("127", "divide by 127"),
        Kind::F32 => ("1.0", "values as they are"),
    };
    // In front of the records, so that it is found without reading them.
    let made_with = embedding.map(|text| format!(", \"{EMBEDDING}\": {text}")).unwrap_or_default();
    let front = format!(
        "{{\"version\": \"{VERSION_WRITTEN}\", \"quantization\": {{\"dtype\": \"{}\", \"scale_factor\": {scale}, \"original_dtype\": \"float32\", \"note\": \"{note}\"}}, \"shape\": [{}, {}]{made_with}, \"checksum\": \"",
        kind.type_name(),
        shape[0],
        shape[1]
    );
    let mut pieces = vec![Piece::Bytes(front.into_bytes()), ROWS_CHECKSUM];
    let mut text = "\"".to_owned();
    for (key, value) in others {
        text.push_str(&format!(", {}: {}", quoted(&key), value.get()));
    }
    text.push_str(", \"records\": [");
    if let Rows::Records(records) = rows
        && let Some((bytes, from)) = records.elements()?
    {
        let lines = Piece::Stream { bytes, from };
        pieces.extend([Piece::Bytes(text.into_bytes()), lines, Piece::Bytes(b"]}".to_vec())]);
        return Ok(pieces);
    }
    let mut separator = "";
    let mut add = |record: &str| {
        text.push_str(separator);
        text.push_str(record);
        separator = ", ";
    };
    match rows {
        Rows::Nothing => (0..shape[0]).for_each(|_| add("{}")),
        Rows::Records(records) => records.items()?.into_iter().for_each(&mut add),
        Rows::Words(words) => {
            words.tokens().for_each(|word| add(&format!("{{\"word\": {}}}", quoted(&word))));
        }
    }
    text.push_str("]}");
    pieces.push(Piece::Bytes(text.into_bytes()));
    Ok(pieces)
}
