//! Bytes to container: tells the layouts apart, parses the indexed one.

use super::super::Stop;
use super::layout::{self, Descriptor, Footer, Header};
use super::rules::*;
use super::sections::{Bounded, read_metadata, read_vocabulary};
use super::stream;
use crate::Input;
use crate::model::{Container, Encoding, Tensor};
use crate::source::Source;
use crate::wire::{APPENDED, Cursor, Findings, Regions, What, fnv1a32, numel};
use std::collections::HashSet;

pub(super) fn read(input: &Input, findings: &mut Findings) -> Result<Container, Stop> {
    let source = &input.source;
    let head = source.head()?;
    if !head.starts_with(&layout::MAGIC) {
        return Err(CUT_SHORT
            .at(0..4)
            .field("header.magic")
            .message("the magic is missing")
            .expected("\"EMBD\"")
            .found(format!("{:02x?}", &head[..head.len().min(4)]))
            .into());
    }
    // A version the stream layout can't have settles it; so does anything that only an indexed file has.
    let version = Cursor::new(source, 4..8, CUT_SHORT).u32("header.version")?;
    if version != 1 || has_marks_of_indexed(source)? {
        return read_indexed(source, findings);
    }
    match stream::read(source) {
        Ok(container) => Ok(container),
        Err(Stop::Failed(error)) => Err(error.into()),
        // Neither fits. A damaged indexed file must not be reported as a broken stream file.
        Err(Stop::Broken(_)) if looks_indexed(source)? => read_indexed(source, findings),
        Err(broken) => Err(broken),
    }
}

/// The size, the end magic or the header checksum say that the layout is the indexed one.
fn has_marks_of_indexed(source: &Source) -> Result<bool, Stop> {
    let Some(header) = Stop::unless_broken(Header::parse(source))? else { return Ok(false) };
    let end = header.end(source)?;
    let footer = Stop::unless_broken(Footer::parse(source, end))?;
    Ok(header.total_size == source.len()
        || footer.is_some_and(|f| f.magic == layout::MAGIC_END)
        || checksum_holds(source, &header)?)
}

fn checksum_holds(source: &Source, header: &Header) -> Result<bool, Stop> {
    Ok(header.flags & layout::CHECKSUMS != 0 && header_checksum(source)? == header.checksum)
}

fn header_checksum(source: &Source) -> Result<u32, Stop> {
    Ok(crc32fast::hash(&source.bytes(0..layout::HEADER_CHECKED as u64)?))
}

/// Whether the first fields make sense as an indexed header: no flags but known ones, and metadata
/// right behind the header. A file that ends before that is just cut short.
fn looks_indexed(source: &Source) -> Result<bool, Stop> {
    let mut c = Cursor::new(source, 8..16, CUT_SHORT);
    let flags = Stop::unless_broken(c.u32("header.flags"))?;
    let offset = Stop::unless_broken(c.u32("header.metadata_offset"))?;
    Ok(match (flags, offset) {
        (Some(flags), Some(offset)) => flags < 16 && u64::from(offset) == layout::HEADER,
        _ => true,
    })
}

fn read_indexed(source: &Source, findings: &mut Findings) -> Result<Container, Stop> {
    let header = Header::parse(source)?;
    let size = source.len();
    let end = header.end(source)?;
    let footer = Footer::parse(source, end)?;
    check_header(source, &header, end, &footer, findings)?;
    let mut regions = Regions::default();
    regions.add(0..layout::HEADER, What::Structure("header"));
    regions.add(end - layout::FOOTER..end, What::Structure("footer"));
    regions.add(end..size, APPENDED);
    // Sections lie in front of the footer.
    let source = &Bounded { source, end: end - layout::FOOTER };
    let metadata = read_metadata(source, &header, &mut regions)?;
    let (vocabulary, special_last) = read_vocabulary(source, &header, &mut regions, findings)?;
    let tensors = read_tensors(source, &header, &mut regions, findings)?;
    if let Some((a, b)) = regions.finish(size, layout::ALIGNMENT) {
        let finding = OVERLAP.at(b.span.start..b.span.end.min(a.span.end));
        let named = |what: What| match what {
            What::Tensor(i) => format!("tensor {:?}", tensors[i].name),
            other => format!("{other:?}"),
        };
        findings.push(
            finding
                .field(format!("{} and {}", named(a.what), named(b.what)))
                .expected("separate ranges, or the same one")
                .found(format!(
                    "{:#x}..{:#x} and {:#x}..{:#x}",
                    a.span.start, a.span.end, b.span.start, b.span.end
                )),
        );
    }
    let mut dialect = crate::model::Dialect::new();
    dialect.insert("flags".into(), header.flags.into());
    if special_last {
        dialect.insert("special_last".into(), true.into());
    }
    Ok(Container {
        format: "embd",
        layout: "indexed".to_owned(),
        dialect,
        size,
        metadata,
        tensors,
        vocabulary,
        regions,
        ..Container::default()
    })
}

fn check_header(
    source: &Source,
    h: &Header,
    file_end: u64,
    f: &Footer,
    findings: &mut Findings,
) -> Result<(), Stop> {
    let size = source.len();
    let end = file_end - layout::FOOTER;
    let hex = |v: u32| format!("{v:#010x}");
    if h.major != 1 {
        return Err(MAJOR.at(4..6).field("header.version_major").expected(1).found(h.major).into());
    }
    if h.minor != 0 {
        let version = (h.major.into(), h.minor.into());
        findings.push(MINOR.newer(6..8, version, 0).field("header.version_minor"));
    }
    // The checksum first: when it is wrong, the other fields are hearsay.
    if h.flags & layout::CHECKSUMS != 0 && !checksum_holds(source, h)? {
        let computed = header_checksum(source)?;
        let finding = HEADER_CRC.at(56..60).field("header.header_checksum");
        findings.push(
            finding
                .expected(hex(h.checksum))
                .found(hex(computed))
                .hint("the header was changed or damaged"),
        );
    }
    if h.flags & !0b111 != 0 {
        let compressed = h.flags & 0b1000 != 0;
        let finding =
            FLAGS.at(8..12).field("header.flags").expected("bits 0 to 2").found(hex(h.flags));
        return Err(if compressed {
            finding.hint("bit 3 says compressed, which is reserved and undefined")
        } else {
            finding
        }
        .into());
    }
    if file_end < size {
        findings.push(SIZE.appended(file_end, size).field("header.total_file_size"));
    } else if h.total_size != size {
        let (expected, found) = (format!("{} bytes", h.total_size), format!("{size} bytes"));
        let hint = if h.total_size > size {
            "the file is cut short"
        } else {
            "something was appended to the file, or the header is damaged"
        };
        findings.push(
            SIZE.at(48..56)
                .field("header.total_file_size")
                .expected(expected)
                .found(found)
                .hint(hint),
        );
    }
    if f.magic != layout::MAGIC_END {
        let found = format!("{:02x?}", f.magic);
        let finding = END_MAGIC.at(end + 8..end + 12).field("footer.magic_end");
        findings.push(finding.expected("\"DBME\"").found(found).hint("the file may be cut short"));
    }
    for (at, field, value) in
        [(60, "header.reserved", h.reserved), (end + 12, "footer.reserved", f.reserved)]
    {
        if value != 0 {
            findings.push(RESERVED.at(at..at + 4).field(field).expected(0).found(hex(value)));
        }
    }
    if h.flags & layout::CHECKSUMS == 0 {
        for (at, field, value) in [
            (56, "header.header_checksum", h.checksum),
            (end, "footer.data_checksum", f.data_checksum),
            (end + 4, "footer.file_checksum", f.file_checksum),
        ] {
            if value != 0 {
                findings.push(
                    CRC_WITHOUT_FLAG.at(at..at + 4).field(field).expected(0).found(hex(value)),
                );
            }
        }
    }
    Ok(())
}

fn read_tensors(
    bounded: &Bounded,
    h: &Header,
    regions: &mut Regions,
    findings: &mut Findings,
) -> Result<Vec<Tensor>, Stop> {
    let (offset, count) = (u64::from(h.index_offset), u64::from(h.index_count));
    let index = bounded.section(offset, count * layout::DESCRIPTOR, "tensor index")?;
    let data = bounded.section(h.data_offset.into(), h.data_size, "tensor data")?;
    regions.add(index.clone(), What::Structure("tensor index"));
    let Bounded { source, end } = *bounded;
    let mut c = Cursor::new(source, index.clone(), CUT_SHORT);
    let mut names = Cursor::new(source, index.end..end, NAME);
    let mut tensors = Vec::new();
    let (mut relative_only, mut misaligned) = (None, false);
    for _ in 0..count {
        let at = c.position();
        let d = Descriptor::parse(&mut c)?;
        let name = names.text(d.name_length.into(), "tensor name", NAME)?;
        let field = || format!("tensor {name:?}");
        if fnv1a32(name.as_bytes()) != d.name_hash {
            let expected = format!("{:#010x}", fnv1a32(name.as_bytes()));
            let finding = NAME_HASH.at(at..at + 4).field(field());
            findings.push(finding.expected(expected).found(format!("{:#010x}", d.name_hash)));
        }
        let Some(&dtype) = layout::DTYPES.get(usize::from(d.dtype)) else {
            return Err(DTYPE
                .at(at + 4..at + 5)
                .field(field())
                .expected("0 to 8")
                .found(d.dtype)
                .into());
        };
        let rank = usize::from(d.ndim);
        if rank == 0 || rank > 4 || d.shape[rank..].iter().any(|&x| x != 0) {
            return Err(SHAPE
                .at(at + 5..at + 24)
                .field(field())
                .expected("1 to 4 dimensions, the unused ones 0")
                .found(format!("{rank} dimensions of {:?}", d.shape))
                .into());
        }
        let shape: Vec<u64> = d.shape[..rank].iter().map(|&x| x.into()).collect();
        let bytes = numel(&shape).and_then(|n| dtype.byte_len(n));
        let range = bytes.and_then(|b| {
            let start = data.start.checked_add(d.data_offset)?;
            Some(start..start.checked_add(b)?)
        });
        let Some(range) = range.filter(|r| r.end <= data.end) else {
            return Err(TENSOR_RANGE
                .at(at + 24..at + 32)
                .field(field())
                .expected(format!("within {:#x}..{:#x}", data.start, data.end))
                .found(format!(
                    "{} bytes at {:#x}",
                    bytes.map_or("too many".into(), |b| b.to_string()),
                    d.data_offset
                ))
                .hint("the file may be cut short")
                .into());
        };
        if h.flags & layout::ALIGNED != 0 && !range.start.is_multiple_of(layout::ALIGNMENT) {
            if d.data_offset.is_multiple_of(layout::ALIGNMENT) {
                relative_only.get_or_insert(range.clone());
            } else {
                misaligned = true;
                let found = format!("{:#x}", range.start);
                let finding = ALIGNMENT.at(at + 24..at + 32).field(field());
                findings.push(finding.expected("a multiple of 64").found(found));
            }
        }
        regions.add(range.clone(), What::Tensor(tensors.len()));
        let view = source.view(range.clone()).ok_or_else(|| TENSOR_RANGE.at(range))?;
        tensors.push(Tensor::unchecked(name, Encoding::Plain(dtype), shape, view));
    }
    let mut seen = HashSet::with_capacity(tensors.len());
    if let Some(i) = tensors.iter().position(|t: &Tensor| !seen.insert(t.name.as_str())) {
        let at = index.start + i as u64 * layout::DESCRIPTOR;
        let finding = NAME.at(at..at + layout::DESCRIPTOR);
        let field = format!("tensor {:?}", tensors[i].name);
        return Err(finding.field(field).message("the tensor name appears twice").into());
    }
    if let Some(range) = relative_only {
        findings.push(ALIGNMENT_RELATIVE.at(range).field("tensor data"));
    } else if h.flags & layout::ALIGNED != 0
        && !data.start.is_multiple_of(layout::ALIGNMENT)
        && !misaligned
    {
        let finding = ALIGNMENT.at(36..40).field("header.tensor_data_offset");
        findings.push(finding.expected("a multiple of 64").found(format!("{:#x}", data.start)));
    }
    regions.add(index.end..names.position(), What::Structure("tensor names"));
    Ok(tensors)
}
