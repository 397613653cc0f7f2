//! Bytes to container.

use super::super::Stop;
use super::layout::{self, Header, read_string};
use super::rules::*;
use super::{carry, tensors, values};
use crate::Input;
use crate::model::{Container, Value};
use crate::source::Source;
use crate::wire::{APPENDED, Budget, Cursor, Findings, Region, Regions, Span, What, to_len};
use std::collections::HashSet;

pub(super) fn read(input: &Input, findings: &mut Findings) -> Result<Container, Stop> {
    let source = &input.source;
    let h = Header::parse(source)?;
    check_header(source, &h, findings)?;
    let mut regions = Regions::default();
    regions.add(0..layout::HEADER, What::Structure("header"));
    let sizevars = read_sizevars(source, &h, &mut regions, findings)?;
    let metadata = read_metadata(source, &h, &mut regions, findings)?;
    let tensors = tensors::read(source, &h, &mut regions, findings)?;
    check_end(source.len(), &h, &mut regions, findings);
    if let Some((a, b)) = regions.finish(source.len(), layout::ALIGNMENT) {
        let name = |what: What| match what {
            What::Tensor(i) => format!("tensor {:?}", tensors[i].name),
            What::Scales(i) => format!("scales of {:?}", tensors[i].name),
            What::Metadata(i) => format!("metadata {:?}", metadata[i].0),
            other => format!("{other:?}"),
        };
        let field = format!("{} and {}", name(a.what), name(b.what));
        let spans = format!(
            "{:#x}..{:#x} and {:#x}..{:#x}",
            a.span.start, a.span.end, b.span.start, b.span.end
        );
        let finding = OVERLAP.at(b.span.start..b.span.end.min(a.span.end)).field(field);
        findings.push(finding.expected("separate ranges, or the same one").found(spans));
    }
    let by_name = |a: &str, b: &str| a < b;
    let sorted = sizevars.is_sorted_by(|a, b| by_name(&a.0, &b.0))
        && metadata.is_sorted_by(|a, b| by_name(&a.0, &b.0))
        && tensors.is_sorted_by(|a, b| by_name(&a.name, &b.name));
    let mut dialect = crate::model::Dialect::new();
    dialect.insert("version".into(), h.version.into());
    if !sorted {
        dialect.insert("unsorted".into(), true.into());
    }
    let mut container = Container {
        format: "oinf",
        layout: format!("version {}", h.version),
        dialect,
        size: source.len(),
        metadata,
        sizevars,
        tensors,
        regions,
        ..Container::default()
    };
    let keys: Vec<_> = container.metadata.iter().map(|(key, _)| key.clone()).collect();
    if sorted {
        carry::from_entries(&mut container);
    }
    let texts: HashSet<_> =
        container.metadata.iter().filter(|(_, v)| v.as_text().is_some()).map(|(k, _)| k).collect();
    let mut places: Vec<_> = container.regions.list().iter().filter_map(place_of_entry).collect();
    places.sort_by_key(|(i, _)| *i);
    let mut entries = Vec::with_capacity(places.len());
    for (i, span) in places {
        // A text that the format's alphabet can't say goes by another name.
        let own =
            keys[i].strip_suffix(carry::UTF8).filter(|own| texts.contains(&(*own).to_owned()));
        entries.push((own.unwrap_or(&keys[i]).to_owned(), span));
    }
    entries.into_iter().for_each(|(key, span)| container.regions.add_entry(key, span));
    Ok(container)
}

/// The number of a metadata entry, and where its value is.
fn place_of_entry(region: &Region) -> Option<(usize, Span)> {
    match region.what {
        What::Metadata(i) => Some((i, region.span.clone())),
        _ => None,
    }
}

fn check_header(source: &Source, h: &Header, findings: &mut Findings) -> Result<(), Stop> {
    let size = source.len();
    if h.version != 1 && h.version != 2 {
        return Err(VERSION
            .at(5..9)
            .field("header.version")
            .expected("1 or 2")
            .found(h.version)
            .into());
    }
    for (at, field, value) in [(9, "header.flags", h.flags), (25, "header.reserved", h.reserved)] {
        if value != 0 {
            findings.push(RESERVED.at(at..at + 4).field(field).expected(0).found(value));
        }
    }
    if h.file_size > size {
        let finding = SIZE.at(61..69).field("header.file_size").expected(h.file_size);
        findings.push(finding.found(size).hint("the file is cut short"));
    }
    if *source.bytes(69..72)? != [0; 3] {
        findings.push(PADDING.at(69..72).field("header padding").expected("zeros"));
    }
    let offsets = [
        (29, "header.offset_sizevars", h.sizevars),
        (37, "header.offset_metadata", h.metadata),
        (45, "header.offset_tensors", h.tensors),
        (53, "header.offset_data", h.data),
    ];
    let mut least = layout::HEADER;
    for (at, field, value) in offsets {
        if value < least || value > size || !value.is_multiple_of(layout::ALIGNMENT) {
            let expected = format!("a multiple of 8 from {least} to {size}");
            return Err(SECTIONS
                .at(at..at + 8)
                .field(field)
                .expected(expected)
                .found(value)
                .into());
        }
        least = value;
    }
    Ok(())
}

/// Whether the file ends where its header says.
fn check_end(size: u64, h: &Header, regions: &mut Regions, findings: &mut Findings) {
    let used = regions.list().iter().map(|r| r.span.end).max().unwrap_or(0).max(h.data);
    if h.file_size >= size {
        // Cut short, which was said before, or as it should be.
    } else if used <= h.file_size {
        findings.push(SIZE.appended(h.file_size, size).field("header.file_size"));
        regions.add(h.file_size..size, APPENDED);
    } else {
        let finding = SIZE.at(61..69).field("header.file_size");
        findings.push(finding.expected(size).found(h.file_size));
    }
}

/// A cursor over a table, whose number of entries of at least `smallest` bytes must be possible.
pub(super) fn table<'a>(
    source: &'a Source,
    span: Span,
    count: u32,
    smallest: u64,
    field: &str,
) -> Result<Cursor<'a>, Stop> {
    let room = span.end - span.start;
    if u64::from(count) * smallest > room {
        let expected = format!("at most {} entries in {room} bytes", room / smallest);
        return Err(Stop::from(COUNT.at(span).field(field).expected(expected).found(count)));
    }
    Ok(Cursor::new(source, span, CUT_SHORT))
}

pub(super) fn duplicate(start: u64, end: u64, name: &str) -> Stop {
    DUPLICATE.at(start..end).field(format!("{name:?}")).into()
}

fn read_sizevars(
    source: &Source,
    h: &Header,
    regions: &mut Regions,
    findings: &mut Findings,
) -> Result<Vec<(String, u64)>, Stop> {
    let mut c = table(source, h.sizevars..h.metadata, h.n_sizevars, 16, "header.n_sizevars")?;
    let (mut list, mut names) = (Vec::new(), HashSet::new());
    for _ in 0..h.n_sizevars {
        let start = c.position();
        let name = read_string(&mut c, "size variable", findings)?;
        if !names.insert(name.clone()) {
            return Err(duplicate(start, c.position(), &name));
        }
        list.push((name, c.u64("size variable")?));
    }
    regions.add(h.sizevars..c.position(), What::Structure("size variables"));
    Ok(list)
}

/// A blob in the data section.
pub(super) fn blob(
    source: &Source,
    h: &Header,
    at: u64,
    offset: u64,
    size: u64,
    field: &str,
) -> Result<Span, Stop> {
    let end = offset.checked_add(size).filter(|&e| e <= source.len());
    match end {
        Some(end) if offset >= h.data && offset.is_multiple_of(layout::ALIGNMENT) => {
            Ok(offset..end)
        }
        _ => Err(Stop::from(
            BLOB.at(at..at + 16)
                .field(field)
                .expected(format!("a multiple of 8, within {:#x}..{:#x}", h.data, source.len()))
                .found(format!("{size} bytes at {offset:#x}"))
                .hint("the file may be cut short"),
        )),
    }
}

fn read_metadata(
    source: &Source,
    h: &Header,
    regions: &mut Regions,
    findings: &mut Findings,
) -> Result<Vec<(String, Value)>, Stop> {
    let mut payloads = values::Payloads::new(source);
    let mut budget = Budget::for_copies(source.len());
    let mut c = table(source, h.metadata..h.tensors, h.n_metadata, 32, "header.n_metadata")?;
    let (mut list, mut names) = (Vec::new(), HashSet::new());
    for i in 0..to_len(h.n_metadata.into()) {
        let start = c.position();
        let key = read_string(&mut c, "metadata key", findings)?;
        let field = format!("metadata {key:?}");
        if !names.insert(key.clone()) {
            return Err(duplicate(start, c.position(), &key));
        }
        let at = c.position();
        let (tag, flags) = (c.u32(&field)?, c.u32(&field)?);
        let (size, offset) = (c.u64(&field)?, c.u64(&field)?);
        if flags != 0 {
            findings.push(
                RESERVED.at(at + 4..at + 8).field(&field).expected("value_flags of 0").found(flags),
            );
        }
        let span = blob(source, h, at + 8, offset, size, &field)?;
        budget.spend(size, "bytes of metadata values, which share their places")?;
        let value = values::read(&mut payloads, tag, span.clone(), &field, findings)?;
        regions.add(span, What::Metadata(i));
        list.push((key, value));
    }
    regions.add(h.metadata..c.position(), What::Structure("metadata"));
    Ok(list)
}
