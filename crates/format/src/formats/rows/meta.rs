//! `meta.json`: reading it without keeping its records, and writing one.

use super::Kind;
use super::rules::*;
use crate::Advice;
use crate::model::{Container, Records, quoted};
use crate::plan::Piece;
use crate::source::{Bytes, Source};
use crate::wire::{Finding, Findings, Span, Stop};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::collections::BTreeMap;

/// Its name, beside the file of rows.
pub(super) const NAME: &str = "meta.json";
const VERSION_WRITTEN: &str = "1.0";
/// What helps where nothing says how wide rows are.
pub(super) const DIM_HINT: Advice = Advice::Set {
    option: "dim",
    value: std::borrow::Cow::Borrowed(""),
    effect: std::borrow::Cow::Borrowed("gives the number of values in a row"),
};
const RE_EXPORT: &str = "re-export embeddings using export_for_browser.py";
/// The members that have a meaning of their own; others are carried along.
const MEMBERS: [&str; 5] = ["version", "quantization", "shape", "checksum", "records"];

/// What a `meta.json` says.
#[derive(Debug)]
pub(super) struct Meta {
    pub layout: String,
    pub shape: Option<[u64; 2]>,
    pub records: Records,
}

/// The members as they stand there. The records are passed over.
#[derive(Default, Deserialize)]
struct Members<'a> {
    #[serde(borrow)]
    version: Option<&'a RawValue>,
    #[serde(borrow)]
    quantization: Option<&'a RawValue>,
    #[serde(borrow)]
    shape: Option<&'a RawValue>,
    #[serde(borrow)]
    checksum: Option<&'a RawValue>,
}

#[derive(Default, Deserialize)]
struct Quantization<'a> {
    #[serde(borrow)]
    dtype: Option<&'a RawValue>,
    #[serde(borrow)]
    scale_factor: Option<&'a RawValue>,
}

impl Meta {
    pub(super) fn parse(
        source: &Source,
        kind: Kind,
        findings: &mut Findings,
    ) -> Result<Meta, Stop> {
        let whole = 0..source.len();
        let text = source.bytes(whole.clone())?;
        if text.trim_ascii_start().starts_with(b"[") {
            return Err(Stop::from(
                RETIRED
                    .at(whole)
                    .field(NAME)
                    .expected("an object with version, quantization, shape and records")
                    .found("a bare array")
                    .hint("the values are float16; re-export them with packages/mtg-image-db/export_for_browser.py, which writes embeddings.i8bin and a new meta.json (see SPEC.md there, sections 6.2.1-6.2.2)"),
            ));
        }
        let malformed = |e: &dyn std::fmt::Display| {
            let finding = META.at(whole.clone()).field(NAME).found(e);
            finding
                .expected("an object with version, quantization, shape and records")
                .hint(Advice::from("repair it, or move it away").and(DIM_HINT))
        };
        let records = Records::parse(text.clone()).map_err(|e| malformed(&e))?;
        let members: Members = serde_json::from_slice(&text).map_err(|e| malformed(&e))?;
        let layout = read_version(members.version, &whole, findings);
        read_quantization(members.quantization, kind, &whole, findings)?;
        let shape = match members.shape {
            Some(raw) => Some(read_shape(raw).ok_or_else(|| {
                let finding = META.at(whole.clone()).field("meta.json \"shape\"");
                finding.expected("[rows, values in a row]").found(raw)
            })?),
            None => {
                findings.push(lacks("shape", &whole));
                None
            }
        };
        Ok(Meta { layout, shape, records })
    }
}

/// The shape that a `meta.json` gives, if it does.
pub(super) fn shape_in(source: &Source) -> Option<[u64; 2]> {
    let text = source.bytes(0..source.len()).ok()?;
    let members: Members = serde_json::from_slice(&text).ok()?;
    members.shape.and_then(read_shape)
}

/// The CRC32 of the rows that a `meta.json` gives, if it does. What others may call a checksum has
/// another length.
pub(super) fn checksum_beside(container: &Container) -> Option<u32> {
    let document = container.records.as_ref()?.document()?;
    let members: Members = serde_json::from_slice(document).ok()?;
    read_checksum(members.checksum?)
}

pub(super) fn has_checksum(container: &Container) -> bool {
    checksum_beside(container).is_some()
}

fn read_checksum(raw: &RawValue) -> Option<u32> {
    let digits = raw.get().strip_prefix('"')?.strip_suffix('"')?;
    let is_it = digits.len() == 8 && digits.bytes().all(|b| b.is_ascii_hexdigit());
    u32::from_str_radix(digits, 16).ok().filter(|_| is_it)
}

fn lacks(field: &str, whole: &Span) -> Finding {
    INCOMPLETE.at(whole.clone()).field(format!("meta.json {field:?}"))
}

/// The version, as the name of the layout.
fn read_version(raw: Option<&RawValue>, whole: &Span, findings: &mut Findings) -> String {
    let Some(raw) = raw else {
        findings.push(lacks("version", whole).hint("older exports have none; 1.0 is assumed"));
        return "no version".to_owned();
    };
    let version: String = serde_json::from_str(raw.get()).unwrap_or_default();
    if version != VERSION_WRITTEN {
        let minor = version.strip_prefix("1.").and_then(|minor| minor.parse().ok());
        let finding = match minor.filter(|minor| *minor > 0) {
            Some(minor) => VERSION.newer(whole.clone(), (1, minor), 0),
            None => VERSION.at(whole.clone()).expected(format!("{VERSION_WRITTEN:?}")).found(raw),
        };
        findings.push(finding.field("meta.json \"version\""));
        return "unknown version".to_owned();
    }
    format!("version {version}")
}

fn read_quantization(
    raw: Option<&RawValue>,
    kind: Kind,
    whole: &Span,
    findings: &mut Findings,
) -> Result<(), Stop> {
    let Some(raw) = raw else {
        findings.push(lacks("quantization", whole));
        return Ok(());
    };
    let parsed = raw.get().starts_with('{').then(|| serde_json::from_str(raw.get()));
    let Some(Ok(Quantization { dtype, scale_factor })) = parsed else {
        let finding = META.at(whole.clone()).field("meta.json \"quantization\"");
        return Err(Stop::from(
            finding.expected("an object with dtype and scale_factor").found(raw),
        ));
    };
    match dtype {
        None => findings.push(lacks("quantization.dtype", whole)),
        Some(raw) if is_text(raw, kind.type_name()) => {}
        Some(raw) => {
            let other = [Kind::I8, Kind::F32].into_iter().find(|k| is_text(raw, k.type_name()));
            let hint: Advice = match other {
                Some(other) => Advice::set_to("from", other.info().id, "reads such a file"),
                None => RE_EXPORT.into(),
            };
            findings.push(
                QUANTIZATION
                    .at(whole.clone())
                    .field("meta.json \"quantization.dtype\"")
                    .expected(format!("{:?}", kind.type_name()))
                    .found(raw)
                    .hint(hint),
            );
        }
    }
    match scale_factor {
        None => findings.push(lacks("quantization.scale_factor", whole)),
        Some(raw) if is_number(raw, kind.scale_factor()) => {}
        Some(raw) => findings.push(
            QUANTIZATION
                .at(whole.clone())
                .field("meta.json \"quantization.scale_factor\"")
                .expected(kind.scale_factor())
                .found(raw)
                .hint(RE_EXPORT),
        ),
    }
    Ok(())
}

fn is_text(raw: &RawValue, text: &str) -> bool {
    serde_json::from_str::<String>(raw.get()).is_ok_and(|t| t == text)
}

fn is_number(raw: &RawValue, number: f64) -> bool {
    short(raw).and_then(|text| serde_json::from_str::<f64>(text).ok()) == Some(number)
}

fn read_shape(raw: &RawValue) -> Option<[u64; 2]> {
    short(raw).and_then(|text| serde_json::from_str(text).ok())
}

/// The text of a number or two. Of a longer one, serde's error would be a multiple of its length.
fn short(raw: &RawValue) -> Option<&str> {
    Some(raw.get()).filter(|text| text.len() <= 1024)
}

/// What is to stand in a document's place: the document itself, if it says of itself what is going
/// to be written, with the checksum of the rows if it has one.
fn kept(document: &Bytes, kind: Kind, shape: [u64; 2]) -> Option<Vec<Piece>> {
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
    }) && members.shape.and_then(read_shape) == Some(shape);
    if !agrees {
        return None;
    }
    let Some(raw) = members.checksum.filter(|raw| read_checksum(raw).is_some()) else {
        return Some(vec![Piece::View(document.clone().into())]);
    };
    // Behind its quotation mark.
    let at = raw.get().as_ptr().addr() - document.as_ptr().addr() + 1;
    let (front, rest) = (document.get(..at)?, document.get(at + 8..)?);
    Some(vec![Piece::Bytes(front.to_vec()), ROWS_CHECKSUM, Piece::Bytes(rest.to_vec())])
}

/// The file of rows is the plan's first.
const ROWS_CHECKSUM: Piece = Piece::Crc32OfFile { file: 0 };

/// What stands in the records of a written `meta.json`.
pub(super) enum About<'a> {
    /// Nothing is known of the rows.
    Nothing,
    Records(&'a Records),
    /// The word of each row.
    Words(&'a crate::Vocabulary),
}

/// The `meta.json` of rows: as it was where that is still true, else made anew in the style of
/// Python's `json.dumps(..., ensure_ascii=False)`.
pub(super) fn document(kind: Kind, shape: [u64; 2], rows: &About, may_stay: bool) -> Vec<Piece> {
    let mut others: BTreeMap<String, &RawValue> = BTreeMap::new();
    if let About::Records(records) = rows {
        let document = records.document();
        let kept = document.filter(|_| may_stay).and_then(|d| kept(d, kind, shape));
        if let Some(pieces) = kept {
            return pieces;
        }
        others = document.and_then(|d| serde_json::from_slice(d).ok()).unwrap_or_default();
        others.retain(|key, _| !MEMBERS.contains(&key.as_str()));
    }
    let (scale, note) = match kind {
        Kind::I8 => ("127", "divide by 127"),
        Kind::F32 => ("1.0", "values as they are"),
    };
    let front = format!(
        "{{\"version\": \"{VERSION_WRITTEN}\", \"quantization\": {{\"dtype\": \"{}\", \"scale_factor\": {scale}, \"original_dtype\": \"float32\", \"note\": \"{note}\"}}, \"shape\": [{}, {}], \"checksum\": \"",
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
    if let About::Records(records) = rows
        && let Some((bytes, from)) = records.elements()
    {
        let lines = Piece::Stream { bytes, from };
        pieces.extend([Piece::Bytes(text.into_bytes()), lines, Piece::Bytes(b"]}".to_vec())]);
        return pieces;
    }
    let mut separator = "";
    let mut add = |record: &str| {
        text.push_str(separator);
        text.push_str(record);
        separator = ", ";
    };
    match rows {
        About::Nothing => (0..shape[0]).for_each(|_| add("{}")),
        About::Records(records) => records.items().into_iter().for_each(&mut add),
        About::Words(words) => {
            words.tokens().for_each(|word| add(&format!("{{\"word\": {}}}", quoted(&word))));
        }
    }
    text.push_str("]}");
    pieces.push(Piece::Bytes(text.into_bytes()));
    pieces
}
