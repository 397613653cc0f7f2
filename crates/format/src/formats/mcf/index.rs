//! The TensorIndex section: names, types, shapes and places of the tensors.

use super::layout::Kind;
use super::rules::{DIMENSIONS, INDEX, NAME, NAME_TWICE, RESERVED, SECTION_VERSION, SORTED, TYPE};
use crate::source::Bytes;
use crate::source::Source;
use crate::wire::{Cursor, Findings, Span, Stop, numel, put_u32, put_u64, to_len};
use std::collections::HashSet;

const HEADER: u64 = 48;
const ENTRY: u64 = 40;
/// The tensors are sorted by the bytes of their names; the names are UTF-8.
const IS_SORTED: u32 = 1;
const IS_UTF8: u32 = 2;

#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub name: String,
    pub kind: Kind,
    pub shape: Vec<u64>,
    /// In the file.
    pub data: u64,
    pub size: u64,
    /// Where this entry stands.
    pub span: Span,
}

pub(super) fn read(
    source: &Source,
    span: Span,
    findings: &mut Findings,
) -> Result<Vec<Entry>, Stop> {
    let tables = Tables::read(source, &span)?;
    let mut c = Cursor::new(source, tables.entries.clone(), INDEX);
    let (mut list, mut names) = (Vec::new(), HashSet::new());
    // Names that lie over each other could make a small file large.
    let mut letters = tables.strings.len() as u64;
    for _ in 0..tables.count {
        let entry = read_entry(&mut c, &tables, findings)?;
        letters = letters.checked_sub(entry.name.len() as u64).ok_or_else(|| {
            NAME.at(entry.span.clone()).field("entry.name_off").expected("separate names")
        })?;
        if !names.insert(entry.name.clone()) {
            let finding = NAME_TWICE.at(entry.span.clone()).field(format!("{:?}", entry.name));
            return Err(Stop::from(finding));
        }
        list.push(entry);
    }
    let sorted = list.is_sorted_by(|a, b| a.name.as_bytes() <= b.name.as_bytes());
    if tables.flags & IS_SORTED != 0 && !sorted {
        findings.push(SORTED.at(span.start + 4..span.start + 8).field("TensorIndex.flags"));
    }
    Ok(list)
}

/// The three tables of the section, each inside it. All entries look into the last two.
struct Tables {
    flags: u32,
    count: u32,
    entries: Span,
    dims: Bytes,
    strings: Bytes,
}

impl Tables {
    fn read(source: &Source, span: &Span) -> Result<Tables, Stop> {
        let mut c = Cursor::new(source, span.clone(), INDEX);
        let version = c.u32("TensorIndex.version")?;
        if version != 1 {
            let at = span.start..span.start + 4;
            let finding = SECTION_VERSION.at(at).field("TensorIndex.version");
            return Err(Stop::from(finding.expected(1).found(version)));
        }
        let flags = c.u32("TensorIndex.flags")?;
        let count = c.u32("TensorIndex.tensor_count")?;
        let dims = c.u32("TensorIndex.dims_count")?;
        let mut table = |field: &str, size: Option<u64>| -> Result<Span, Stop> {
            let at = c.position();
            let offset = c.u64(field)?;
            let size = match size {
                Some(size) => size,
                None => c.u64("TensorIndex.strings_size")?,
            };
            let room = span.end - span.start;
            match offset.checked_add(size).filter(|end| offset >= HEADER && *end <= room) {
                Some(end) => Ok(span.start + offset..span.start + end),
                None => Err(Stop::from(
                    INDEX
                        .at(at..at + 8)
                        .field(field)
                        .expected(format!("{size} bytes within 48..{room}"))
                        .found(format!("at {offset}"))
                        .hint("the file may be cut short"),
                )),
            }
        };
        let entries = table("TensorIndex.entries_off", Some(u64::from(count) * ENTRY))?;
        let dims = table("TensorIndex.dims_off", Some(u64::from(dims) * 8))?;
        let strings = table("TensorIndex.strings_off", None)?;
        if count == 0 {
            let finding = INDEX.at(span.start + 8..span.start + 12);
            return Err(Stop::from(
                finding.field("TensorIndex.tensor_count").expected("1 or more").found(0),
            ));
        }
        let (dims, strings) = (source.bytes(dims)?, source.bytes(strings)?);
        Ok(Tables { flags, count, entries, dims, strings })
    }
}

fn read_entry(c: &mut Cursor, tables: &Tables, findings: &mut Findings) -> Result<Entry, Stop> {
    let at = c.position();
    let (name_off, name_len) = (c.u32("entry.name_off")?, c.u32("entry.name_len")?);
    let number = c.u32("entry.dtype")?;
    let (rank, dim_off) = (c.u32("entry.rank")?, c.u32("entry.dim_off")?);
    let zero = c.u32("entry.reserved")?;
    let (data, size) = (c.u64("entry.data_off")?, c.u64("entry.data_size")?);
    let span = at..c.position();

    let room = tables.strings.len();
    let (name_start, name_end) = (u64::from(name_off), u64::from(name_off) + u64::from(name_len));
    let raw = tables.strings.get(to_len(name_start)..to_len(name_end));
    let Some(raw) = raw.filter(|raw| !raw.is_empty()) else {
        let finding = NAME.at(at..at + 8).field("entry.name_off");
        let found = format!("{name_len} bytes at {name_off}");
        return Err(Stop::from(
            finding.expected(format!("1 or more bytes within 0..{room}")).found(found),
        ));
    };
    let name = String::from_utf8(raw.to_vec()).map_err(|e| {
        let good = e.utf8_error().valid_up_to();
        let bad = tables.strings.span().start + name_start + good as u64;
        let finding = NAME.at(bad..bad + 1).field("tensor name").expected("UTF-8 text");
        finding.found(format!("byte {:#04x}", e.as_bytes().get(good).copied().unwrap_or_default()))
    })?;
    if zero != 0 {
        findings
            .push(RESERVED.at(at + 20..at + 24).field(format!("{name:?}")).expected(0).found(zero));
    }
    let kind = Kind::from_number(number).ok_or_else(|| {
        let finding = TYPE.at(at + 8..at + 12).field(format!("type of {name:?}"));
        finding
            .expected("1 to 12, 0x10, 0x11, 0x20, 0x21 or 0x30 to 0x33")
            .found(format!("{number:#x}"))
    })?;
    let shape = read_shape(tables, rank, dim_off).ok_or_else(|| {
        let entries = tables.dims.len() / 8;
        let finding = DIMENSIONS.at(at + 12..at + 20).field(format!("shape of {name:?}"));
        let expected = format!("dimensions of 1 or more, in a table of {entries}");
        finding.expected(expected).found(format!("{rank} from {dim_off} on"))
    })?;
    Ok(Entry { name, kind, shape, data, size, span })
}

/// `None` when the dimensions lie outside their table, or one is zero, or there are too many values.
fn read_shape(tables: &Tables, rank: u32, first: u32) -> Option<Vec<u64>> {
    // Every dimension but those of 1 doubles the size, so that no more can mean anything; a long
    // list of ones is refused because all tensors could share it.
    const MOST: u32 = 64;
    let start = u64::from(first) * 8;
    let raw = tables.dims.get(to_len(start)..to_len(start + u64::from(rank) * 8))?;
    if rank > MOST {
        return None;
    }
    let shape: Vec<u64> = raw.as_chunks().0.iter().map(|d| u64::from_le_bytes(*d)).collect();
    let count = numel(&shape)?;
    (!shape.contains(&0) && count > 0).then_some(shape)
}

/// Bytes that the section takes.
pub(super) fn size(entries: &[Entry]) -> u64 {
    let dims: usize = entries.iter().map(|e| e.shape.len()).sum();
    let names: usize = entries.iter().map(|e| e.name.len()).sum();
    HEADER + ENTRY * entries.len() as u64 + 8 * dims as u64 + names as u64
}

/// The section. Entries are sorted by name.
pub(super) fn to_bytes(entries: &[Entry]) -> Vec<u8> {
    let (mut table, mut dims, mut strings) = (Vec::new(), Vec::new(), Vec::new());
    let word = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
    for e in entries {
        put_u32(&mut table, word(strings.len()));
        put_u32(&mut table, word(e.name.len()));
        put_u32(&mut table, e.kind.number());
        put_u32(&mut table, word(e.shape.len()));
        put_u32(&mut table, word(dims.len() / 8));
        put_u32(&mut table, 0);
        put_u64(&mut table, e.data);
        put_u64(&mut table, e.size);
        e.shape.iter().for_each(|d| put_u64(&mut dims, *d));
        strings.extend_from_slice(e.name.as_bytes());
    }
    let mut out = Vec::with_capacity(to_len(size(entries)));
    for n in [1, IS_SORTED | IS_UTF8, word(entries.len()), word(dims.len() / 8)] {
        put_u32(&mut out, n);
    }
    let dims_at = HEADER + table.len() as u64;
    let strings_at = dims_at + dims.len() as u64;
    for n in [HEADER, dims_at, strings_at, strings.len() as u64] {
        put_u64(&mut out, n);
    }
    [table, dims, strings].iter().for_each(|part| out.extend_from_slice(part));
    out
}
