//! `meta.json`, or what has its place: finding it, and reading it without its records.

use super::Kind;
use super::front::{front, text_of};
use super::rules::*;
use crate::model::{BadRecords, Container, Records};
use crate::plan::Companion;
use crate::source::{Bytes, Source, is_plain_name};
use crate::wire::{Finding, Findings, Rule, Span, Stop, numel};
use crate::{Advice, Error, Input};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::fmt::Display;
use std::io::ErrorKind;
use std::path::Path;

/// Its usual name, beside the file of rows.
pub(super) const NAME: &str = "meta.json";
pub(super) const COMPANION_I8: Companion =
    Companion::new(NAME, |about, rows| describes(Kind::I8, about, rows));
pub(super) const COMPANION_F32: Companion =
    Companion::new(NAME, |about, rows| describes(Kind::F32, about, rows));
pub(super) const VERSION_WRITTEN: &str = "1.0";
/// What helps where nothing says how wide rows are.
pub(super) const DIM_HINT: Advice = Advice::Set {
    option: "dim",
    value: std::borrow::Cow::Borrowed(""),
    effect: std::borrow::Cow::Borrowed("gives the number of values in a row"),
};
const RE_EXPORT: &str = "re-export embeddings using export_for_browser.py";
/// What a `meta.json` says.
#[derive(Debug)]
pub(super) struct Meta {
    pub layout: String,
    pub shape: Option<[u64; 2]>,
    /// What the rows were made with: an object.
    pub embedding: Option<String>,
    pub records: Told,
}

/// What is known of the records.
#[derive(Debug)]
pub(super) enum Told {
    /// All of it.
    Records(Records),
    /// They are yet to be read; this is the rest.
    Outline(Bytes),
}

/// The members as they stand there. The records are passed over.
#[derive(Default, Deserialize)]
pub(super) struct Members<'a> {
    #[serde(borrow)]
    pub version: Option<&'a RawValue>,
    #[serde(borrow)]
    pub quantization: Option<&'a RawValue>,
    #[serde(borrow)]
    pub shape: Option<&'a RawValue>,
    #[serde(borrow)]
    pub embedding: Option<&'a RawValue>,
    #[serde(borrow)]
    pub checksum: Option<&'a RawValue>,
}

#[derive(Default, Deserialize)]
pub(super) struct Quantization<'a> {
    #[serde(borrow)]
    pub dtype: Option<&'a RawValue>,
    #[serde(borrow)]
    pub scale_factor: Option<&'a RawValue>,
}

impl Meta {
    pub(super) fn parse(
        about: &About,
        kind: Kind,
        thorough: bool,
        findings: &mut Findings,
    ) -> Result<Meta, Stop> {
        let (source, whole) = (&about.source, 0..about.source.len());
        let malformed = |e: &dyn Display| about.malformed(e);
        let front = if thorough { None } else { front(source)? };
        let text = match &front {
            Some(front) => front.clone(),
            None => source.bytes(whole.clone())?,
        };
        if text.trim_ascii_start().starts_with(b"[") {
            return Err(Stop::from(
                about
                    .broken(RETIRED, whole)
                    .field(&about.name)
                    .expected("an object with version, quantization, shape and records")
                    .found("a bare array")
                    .hint("the values are float16; re-export them with packages/mtg-image-db/export_for_browser.py, which writes embeddings.i8bin and a new meta.json (see SPEC.md there, sections 6.2.1-6.2.2)"),
            ));
        }
        let records = match front {
            Some(_) => None,
            None => Some(Records::parse(text.clone()).map_err(|e| malformed(&e))?),
        };
        let members: Members = serde_json::from_slice(&text).map_err(|e| malformed(&e))?;
        let layout = about.read_version(members.version, findings);
        about.read_quantization(members.quantization, kind, findings)?;
        let shape = match members.shape {
            Some(raw) => Some(read_shape(raw).ok_or_else(|| {
                let finding = about.broken(META, whole.clone()).field(about.member("shape"));
                finding.expected("[rows, values in a row]").found(raw)
            })?),
            None => {
                findings.push(about.lacks("shape"));
                None
            }
        };
        let embedding = members.embedding.filter(|raw| is_object(raw)).map(|raw| raw.get().into());
        let records = match records {
            Some(records) => Told::Records(records),
            None => Told::Outline(text),
        };
        Ok(Meta { layout, shape, embedding, records })
    }
}

/// A description that lies beside rows.
#[derive(Clone, Debug)]
pub(super) struct About {
    /// The name that it really has.
    pub name: String,
    pub source: Source,
}

impl About {
    /// The one that belongs to an input: that of its own name, else the one that all rows of a folder
    /// may use.
    pub(super) fn find(input: &Input) -> Result<Option<About>, Error> {
        for name in names(input) {
            match input.folder.open(&name) {
                Ok(source) => return Ok(Some(About { name, source })),
                Err(e) if e.kind() == ErrorKind::NotFound => {}
                Err(e) => return Err(Error::io(Path::new(&name), e)),
            }
        }
        Ok(None)
    }

    /// The name of the description that belongs to an input.
    pub(super) fn name_for(input: &Input) -> String {
        let there = names(input).find(|name| input.folder.exists(name));
        there.unwrap_or_else(|| NAME.to_owned())
    }

    /// A member of it, in a message.
    pub(super) fn member(&self, name: &str) -> String {
        format!("{} {name:?}", self.name)
    }

    /// A finding about it. The message has the name that it really has.
    pub(super) fn broken(&self, rule: Rule, span: Span) -> Finding {
        let message = rule.title.replacen(NAME, &self.name, 1);
        rule.at(span).message(message).in_file(&self.name)
    }

    pub(super) fn malformed(&self, why: &dyn Display) -> Finding {
        let finding = self.broken(META, 0..self.source.len()).field(&self.name).found(why);
        finding
            .expected("an object with version, quantization, shape and records")
            .hint(Advice::from("repair it, or move it away").and(DIM_HINT))
    }

    /// There are other records than rows.
    pub(super) fn miscounted(&self, rows: u64, count: u64) -> Finding {
        let finding = self.broken(RECORDS, 0..0).field(self.member("records"));
        finding
            .expected(format!("{rows} records, one for each row"))
            .found(format!("{count} records"))
            .hint(RE_EXPORT)
    }

    fn lacks(&self, field: &str) -> Finding {
        self.broken(INCOMPLETE, 0..self.source.len()).field(self.member(field))
    }

    /// Records that are read when they are asked for, and found to be wrong then.
    pub(super) fn records(&self, outline: Bytes, rows: u64, input: &Input) -> Option<Records> {
        let (about, path) = (self.clone(), input.path_of(&self.name));
        let blame = move |bad: &BadRecords| {
            let finding = match bad {
                BadRecords::Count { expected, found } => about.miscounted(*expected, *found),
                other => about.malformed(other),
            };
            Error::malformed(&path, finding.in_file(&path))
        };
        let document = self.source.view(0..self.source.len())?;
        Some(Records::lazy(document, rows, blame).outlined(outline))
    }

    /// The version, as the name of the layout.
    fn read_version(&self, raw: Option<&RawValue>, findings: &mut Findings) -> String {
        let Some(raw) = raw else {
            findings.push(self.lacks("version").hint("older exports have none; 1.0 is assumed"));
            return "no version".to_owned();
        };
        let version: String = serde_json::from_str(raw.get()).unwrap_or_default();
        if version != VERSION_WRITTEN {
            let whole = 0..self.source.len();
            let minor = version.strip_prefix("1.").and_then(|minor| minor.parse().ok());
            let finding = match minor.filter(|minor| *minor > 0) {
                Some(minor) => VERSION.newer(whole, (1, minor), 0).in_file(&self.name),
                None => {
                    self.broken(VERSION, whole).expected(format!("{VERSION_WRITTEN:?}")).found(raw)
                }
            };
            findings.push(finding.field(self.member("version")));
            return "unknown version".to_owned();
        }
        format!("version {version}")
    }

    fn read_quantization(
        &self,
        raw: Option<&RawValue>,
        kind: Kind,
        findings: &mut Findings,
    ) -> Result<(), Stop> {
        let Some(raw) = raw else {
            findings.push(self.lacks("quantization"));
            return Ok(());
        };
        let parsed = raw.get().starts_with('{').then(|| serde_json::from_str(raw.get()));
        let Some(Ok(Quantization { dtype, scale_factor })) = parsed else {
            let finding =
                self.broken(META, 0..self.source.len()).field(self.member("quantization"));
            return Err(Stop::from(
                finding.expected("an object with dtype and scale_factor").found(raw),
            ));
        };
        match dtype {
            None => findings.push(self.lacks("quantization.dtype")),
            Some(raw) if is_text(raw, kind.type_name()) => {}
            Some(raw) => {
                let other = [Kind::I8, Kind::F32].into_iter().find(|k| is_text(raw, k.type_name()));
                let hint: Advice = match other {
                    Some(other) => Advice::set_to("from", other.info().id, "reads such a file"),
                    None => RE_EXPORT.into(),
                };
                findings.push(
                    self.broken(QUANTIZATION, 0..self.source.len())
                        .field(self.member("quantization.dtype"))
                        .expected(format!("{:?}", kind.type_name()))
                        .found(raw)
                        .hint(hint),
                );
            }
        }
        match scale_factor {
            None => findings.push(self.lacks("quantization.scale_factor")),
            Some(raw) if is_number(raw, kind.scale_factor()) => {}
            Some(raw) => findings.push(
                self.broken(QUANTIZATION, 0..self.source.len())
                    .field(self.member("quantization.scale_factor"))
                    .expected(kind.scale_factor())
                    .found(raw)
                    .hint(RE_EXPORT),
            ),
        }
        Ok(())
    }
}

/// The names that the description of an input may have, in the order in which they count.
fn names(input: &Input) -> impl Iterator<Item = String> {
    let own = COMPANION_I8.own_name(&input.name);
    [own, NAME.to_owned()].into_iter().filter(|name| is_plain_name(name))
}

/// The shape that a description gives, if it does.
pub(super) fn shape_in(source: &Source) -> Option<[u64; 2]> {
    let text = text_of(source).ok()?;
    let members: Members = serde_json::from_slice(&text).ok()?;
    members.shape.and_then(read_shape)
}

/// Whether a description is that of these rows: as many, of this type, and with its checksum if it
/// has one.
fn describes(kind: Kind, about: &Source, rows: &Source) -> Result<bool, Error> {
    let text = text_of(about)?;
    let Ok(members) = serde_json::from_slice::<Members>(&text) else { return Ok(false) };
    let quantization = members.quantization.map(|raw| serde_json::from_str(raw.get()));
    let dtype = match quantization {
        Some(Ok(Quantization { dtype, .. })) => dtype,
        Some(Err(_)) => return Ok(false),
        None => None,
    };
    let shape = members.shape.and_then(read_shape);
    let bytes = shape.and_then(|shape| numel(&shape)).and_then(|n| kind.stored().byte_len(n));
    if dtype.is_some_and(|raw| !is_text(raw, kind.type_name())) || bytes != Some(rows.len()) {
        return Ok(false);
    }
    let Some(expected) = members.checksum.and_then(read_checksum) else { return Ok(true) };
    let mut crc = crc32fast::Hasher::new();
    let view = rows.view(0..rows.len());
    view.map_or(Ok(()), |view| {
        view.for_each_block(1 << 20, |block| -> Result<(), Error> {
            crc.update(block);
            Ok(())
        })
    })?;
    Ok(crc.finalize() == expected)
}

/// The CRC32 of the rows that their description gives, if it does. What others may call a checksum has
/// another length.
///
/// # Errors
/// If the description turns out to be malformed, or can't be read.
pub(super) fn checksum_beside(container: &Container) -> Result<Option<u32>, Error> {
    let Some(records) = &container.records else { return Ok(None) };
    let in_text = |text: &[u8]| {
        let members: Members = serde_json::from_slice(text).ok()?;
        Some(members.checksum.map(read_checksum))
    };
    if let Some(Some(told)) = records.outline().and_then(|outline| in_text(outline)) {
        return Ok(told);
    }
    // Somebody else may have written it behind the records.
    Ok(records.document()?.and_then(|document| in_text(document)).flatten().flatten())
}

pub(super) fn has_checksum(container: &Container) -> bool {
    checksum_beside(container).is_ok_and(|sum| sum.is_some())
}

pub(super) fn read_checksum(raw: &RawValue) -> Option<u32> {
    let digits = raw.get().strip_prefix('"')?.strip_suffix('"')?;
    let is_it = digits.len() == 8 && digits.bytes().all(|b| b.is_ascii_hexdigit());
    u32::from_str_radix(digits, 16).ok().filter(|_| is_it)
}

pub(super) fn is_text(raw: &RawValue, text: &str) -> bool {
    serde_json::from_str::<String>(raw.get()).is_ok_and(|t| t == text)
}

pub(super) fn is_number(raw: &RawValue, number: f64) -> bool {
    short(raw).and_then(|text| serde_json::from_str::<f64>(text).ok()) == Some(number)
}

pub(super) fn read_shape(raw: &RawValue) -> Option<[u64; 2]> {
    short(raw).and_then(|text| serde_json::from_str(text).ok())
}

/// The text of a number or two. Of a longer one, serde's error would be a multiple of its length.
fn short(raw: &RawValue) -> Option<&str> {
    Some(raw.get()).filter(|text| text.len() <= 1024)
}

/// Whether a value is an object.
pub(super) fn is_object(raw: &RawValue) -> bool {
    raw.get().starts_with('{')
}
