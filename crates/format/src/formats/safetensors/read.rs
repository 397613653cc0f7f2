//! Bytes to container.

use super::super::Stop;
use super::header::{DTYPES, Header, LONGEST};
use super::hub;
use super::rules::*;
use crate::Advice;
use crate::model::{Container, Encoding, Note, NoteKind, Tensor, Value};
use crate::source::{Source, mistaken};
use crate::wire::{Cursor, Finding, Findings, Regions, Span, What, numel, to_len};
use std::collections::{HashMap, HashSet};

/// One file with all that it carries.
pub(in super::super) fn read_file(
    source: &Source,
    findings: &mut Findings,
) -> Result<Container, Stop> {
    let Parts { metadata, tensors, regions, notes } = tensors_of(source, findings)?;
    let mut container = Container {
        format: "safetensors",
        layout: "single file".to_owned(),
        size: source.len(),
        tensors,
        regions,
        notes,
        ..Container::default()
    };
    let mut carried = None;
    for (key, text) in metadata {
        if key == hub::KEY {
            carried = Some(text);
        } else {
            container.metadata.push((key, Value::Text(text)));
        }
    }
    if let Some(text) = carried {
        let in_file: Vec<_> = container.tensors.iter().map(|t| t.name.clone()).collect();
        match hub::unpack(&text, &mut container) {
            Ok(()) => after_unpacking(&mut container, &in_file),
            Err(hub::Bad::Failed(error)) => return Err(error.into()),
            Err(hub::Bad::Damaged(why)) => {
                let finding = HUB.at(0..8).field("__metadata__.weighbridge").found(&why);
                findings.push(finding.hint(
                    "tensors and texts are readable; what only that entry knows is not used",
                ));
                let text = format!("the entry \"weighbridge\" is not used: {why}");
                container.notes.push(Note::new(NoteKind::LeftOut, text));
            }
        }
    }
    Ok(container)
}

/// Says what the file carries, and gives the regions the tensors' new numbers.
fn after_unpacking(container: &mut Container, in_file: &[String]) {
    if let Some(origin) = container.origin.as_ref().filter(|o| o.format != "safetensors") {
        container.layout = format!("single file, carries {} ({})", origin.format, origin.layout);
    }
    let place: HashMap<_, _> =
        container.tensors.iter().enumerate().map(|(i, t)| (&t.name, i)).collect();
    container.regions.renumber(|old| match place.get(&in_file[old]) {
        Some(&new) => What::Tensor(new),
        None => What::Structure("part of the weighbridge entry"),
    });
}

/// Metadata, tensors in the order of their data, and the region map of one file.
pub(super) struct Parts {
    pub metadata: Vec<(String, String)>,
    pub tensors: Vec<Tensor>,
    pub regions: Regions,
    pub notes: Vec<Note>,
}

/// What one file holds.
pub(super) fn tensors_of(source: &Source, findings: &mut Findings) -> Result<Parts, Stop> {
    let size = source.len();
    if let Some((what, advice)) = instead(source)? {
        let finding = JSON.at(0..size.min(8)).field("header").expected("a safetensors file");
        return Err(finding.found(what).hint(advice).into());
    }
    let mut c = Cursor::new(source, 0..size, CUT_SHORT);
    let length = c.u64("header length")?;
    if length > LONGEST {
        return Err(TOO_LONG
            .at(0..8)
            .field("header length")
            .expected(format!("at most {LONGEST} bytes"))
            .found(length)
            .hint("the file may be damaged, or of another format")
            .into());
    }
    let start = c.position();
    c.skip(length, "header")?;
    let data = c.position();
    let text = source.bytes(start..data)?;
    let text: &[u8] = &text;
    let header: Header = serde_json::from_slice(text).map_err(|e| bad_json(&e, text))?;
    if !data.is_multiple_of(8) {
        findings.push(
            PADDING.at(8..data).field("header length").expected("a multiple of 8").found(length),
        );
    }
    let mut regions = Regions::default();
    regions.add(0..8, What::Structure("header length"));
    regions.add(8..data, What::Structure("header"));
    let metadata = header.metadata;
    let mut notes = Vec::new();
    let mut unknown = |span: Span, field: String, what: &str| {
        findings.push(MEMBER.at(span).field(field.clone()).found(what));
        let text = format!("{field}: {what} says nothing that the format knows");
        notes.push(Note::new(NoteKind::Unusual, text));
    };
    if header.null_metadata {
        unknown(place_of("__metadata__", text), "__metadata__".to_owned(), "null");
    }
    let mut entries = header.tensors;
    let more = entries.iter().filter(|(_, e)| e.unknown.is_some()).count();
    if let Some((name, member)) =
        entries.iter().find_map(|(name, e)| Some((name, e.unknown.as_ref()?)))
    {
        let field = match more - 1 {
            0 => format!("tensor {name:?}"),
            others => format!("tensor {name:?} and {others} more"),
        };
        unknown(place_of(name, text), field, &format!("the member {member:?}"));
    }
    entries.sort_by_key(|(_, e)| e.data_offsets);
    let mut names = HashSet::with_capacity(entries.len());
    if let Some((name, _)) = entries.iter().find(|(name, _)| !names.insert(name.as_ref())) {
        return Err(DUPLICATE.at(place_of(name, text)).field(format!("tensor {name:?}")).into());
    }
    drop(names);
    let mut tensors = Vec::with_capacity(entries.len());
    let mut next = 0;
    for (name, entry) in entries {
        let about = || format!("tensor {name:?}");
        let place = || place_of(&name, text);
        let Some((_, dtype)) = DTYPES.iter().find(|(n, _)| *n == entry.dtype) else {
            return Err(DTYPE
                .at(place())
                .field(about())
                .expected("F32, F16, BF16, I64, …")
                .found(&entry.dtype)
                .into());
        };
        let (start, end) = entry.data_offsets;
        if start != next || end < start || end > size - data {
            return Err(OFFSETS
                .at(place())
                .field(about())
                .expected(format!("{next}.. within {} bytes of data", size - data))
                .found(format!("{start}..{end}"))
                .hint(if end > size - data { "the file is cut short" } else { "" })
                .into());
        }
        next = end;
        // Packed types must fill whole bytes.
        let bits = numel(&entry.shape).and_then(|n| n.checked_mul(dtype.bits()));
        if bits != (end - start).checked_mul(8) {
            return Err(SIZE
                .at(place())
                .field(about())
                .expected(bits.map_or("a size that exists".into(), |b| format!("{} bits", b)))
                .found(format!("{} bytes", end - start))
                .into());
        }
        let span = data + start..data + end;
        let view = source.view(span.clone()).ok_or_else(|| OFFSETS.at(place()))?;
        regions.add(span, What::Tensor(tensors.len()));
        tensors.push(Tensor::unchecked(name, Encoding::Plain(*dtype), entry.shape, view));
    }
    if data + next != size {
        return Err(OFFSETS.appended(data + next, size).into());
    }
    regions.finish(size, 1);
    Ok(Parts { metadata, tensors, regions, notes })
}

/// What stands in the place of a safetensors file: a pointer of Git LFS, a web page, a pickle.
fn instead(source: &Source) -> Result<Option<(&'static str, Advice)>, Stop> {
    let head = source.head()?;
    let plausible = head.is_empty() || head.get(8) == Some(&b'{');
    Ok(if plausible { None } else { mistaken::recognise(head) })
}

/// Where the entry of a tensor stands in the header; looked for only when something is wrong with it.
fn place_of(name: &str, header: &[u8]) -> Span {
    let quoted = serde_json::to_string(name).unwrap_or_default();
    let found = header.windows(quoted.len()).position(|w| w == quoted.as_bytes());
    let at = 8 + found.unwrap_or(0) as u64;
    at..at + quoted.len() as u64
}

/// Turns the parser's line and column into a place in the file.
fn bad_json(error: &serde_json::Error, text: &[u8]) -> Box<Finding> {
    let lines = text.split_inclusive(|&b| b == b'\n');
    let before: usize = lines.take(error.line().saturating_sub(1)).map(<[u8]>::len).sum();
    let at = 8 + (before + error.column().saturating_sub(1)).min(text.len()) as u64;
    let found = &text[to_len(at - 8)..text.len().min(to_len(at) + 12)];
    Box::new(
        JSON.at(at..at + 1)
            .field("header")
            .message(format!("the header is not the JSON it should be: {error}"))
            .expected("an object of tensors, each with dtype, shape and data_offsets")
            .found(String::from_utf8_lossy(found)),
    )
}
