//! The numbered rules, and the checks that need the data.

use super::super::values::{check_padding, try_map_all};
use super::layout::{ALIGNED, CHECKSUMS, FOOTER, Footer, Header};
use super::metadata;
use crate::model::Container;
use crate::wire::{Findings, Span, Stop, What, align_up, to_len};
use crate::{Error, Input, Source, rules};
use weighbridge_codec::scan;

rules! {
    CUT_SHORT "EMBD-01" Error "the file ends too early";
    MAJOR "EMBD-02" Error "unknown major version";
    MINOR "EMBD-03" Warning "unknown minor version";
    FLAGS "EMBD-04" Error "reserved flags are set";
    SIZE "EMBD-05" Error "total_file_size is not the file's size";
    END_MAGIC "EMBD-06" Error "the end magic is missing";
    HEADER_CRC "EMBD-07" Error "the header checksum is wrong";
    DATA_CRC "EMBD-08" Error "the data checksum is wrong";
    FILE_CRC "EMBD-09" Error "the file checksum is wrong";
    CRC_WITHOUT_FLAG "EMBD-10" Error "there are checksums, but the flag for them is off";
    RESERVED "EMBD-11" Error "a reserved field is not zero";
    SECTION "EMBD-12" Error "a section lies outside the file";
    OVERLAP "EMBD-13" Error "two sections or tensors overlap";
    METADATA "EMBD-14" Error "the metadata section is malformed";
    METADATA_KEY "EMBD-15" Error "a metadata key appears twice";
    VOCAB "EMBD-16" Error "the vocabulary section is malformed";
    SPECIAL_RELATIVE "EMBD-17" Warning "special_tokens is relative to its section";
    SPECIAL_ID "EMBD-18" Error "a special token is not in the vocabulary";
    VOCAB_WITHOUT_FLAG "EMBD-19" Error "there is a vocabulary, but the flag for it is off";
    DTYPE "EMBD-20" Error "unknown data type";
    SHAPE "EMBD-21" Error "impossible shape";
    NAME "EMBD-22" Error "a tensor name is malformed or appears twice";
    NAME_HASH "EMBD-23" Warning "the name hash is not that of the name";
    TENSOR_RANGE "EMBD-24" Error "a tensor lies outside the data section";
    ALIGNMENT "EMBD-25" Error "a tensor or the data section is not aligned to 64 bytes";
    ALIGNMENT_RELATIVE "EMBD-26" Warning "tensors are aligned within the data section only";
    PADDING "EMBD-27" Warning "padding is not zero";
    ORDER "EMBD-28" Warning "sections or tensors are not in their usual places";
    REQUIRED_KEY "EMBD-29" Warning "a required metadata key is missing";
    DISAGREES "EMBD-30" Error "metadata and content disagree";
    NOT_FINITE "EMBD-31" Warning "a weight is not a finite number";
    STREAM "EMBD-32" Error "the stream layout is malformed";
    FLAG_WITHOUT_VOCAB "EMBD-33" Warning "the flag says that there is a vocabulary, but there is none";
    CREATED_AT "EMBD-34" Error "created_at is not an ISO 8601 date";
}

pub(super) fn check(
    container: &Container,
    input: &Input,
    findings: &mut Findings,
) -> Result<(), Error> {
    let source = &input.source;
    let header = Stop::unless_broken(Header::parse(source))?;
    let end = container.regions.end(source.len());
    let footer = Stop::unless_broken(Footer::parse(source, end))?;
    let data = header.as_ref().map_or(0..0, data_section);
    let scan_values = findings.wants(NOT_FINITE);
    let blocks = read_blocks(container, source, &[data.start, data.end], scan_values)?;
    if let ("indexed", Some(header), Some(footer)) = (container.layout.as_str(), header, footer) {
        metadata::check(container, header.metadata_offset, findings);
        check_order(container, &header, findings);
        check_padding(container, source, PADDING, findings)?;
        if header.flags & CHECKSUMS != 0 {
            check_sums(&blocks, end - FOOTER, &header, &footer, findings);
        }
    }
    report_values(container, &blocks, findings)
}

fn data_section(header: &Header) -> Span {
    let start = u64::from(header.data_offset);
    start..start.saturating_add(header.data_size)
}

/// A run of the file of at most `BLOCK` bytes, all of one region.
struct Block {
    span: Span,
    sum: crc32fast::Hasher,
    /// Tensor and place of the first value that is not finite.
    not_finite: Option<(usize, u64)>,
}

/// Reads every byte of the file once, in parallel, for its checksum and its values. Which checksum
/// covers what is settled afterwards, by combining the blocks'.
///
/// No block reaches across one of the `cuts`, where a checksum begins or ends.
fn read_blocks(
    container: &Container,
    source: &Source,
    cuts: &[u64],
    scan_values: bool,
) -> Result<Vec<Block>, Error> {
    const BLOCK: u64 = 1 << 20;
    const CACHED: usize = 1 << 16;
    let mut spans = Vec::new();
    let mut at = 0;
    for region in container.regions.list() {
        // An alias is the same bytes again.
        let mut start = region.span.start.max(at);
        while start < region.span.end {
            let end = region.span.end.min(start + BLOCK);
            let end =
                cuts.iter().copied().filter(|c| (start + 1..end).contains(c)).min().unwrap_or(end);
            spans.push((start..end, region.what));
            start = end;
        }
        at = at.max(region.span.end);
    }
    let read = |buffer: &mut Vec<u8>, (span, what): (Span, What)| {
        let bytes = source.read(span.clone(), buffer)?;
        let tensor = match what {
            What::Tensor(index) if scan_values => {
                container.tensors.get(index).map(|t| (index, t.encoding.stored()))
            }
            _ => None,
        };
        let mut sum = crc32fast::Hasher::new();
        let mut not_finite = None;
        // In pieces that stay in the second cache between the checksum and the look at the values: in smaller ones
        // the checksum starts over more often than reading ahead can follow.
        for (i, piece) in bytes.chunks(CACHED).enumerate() {
            sum.update(piece);
            if let (Some((index, dtype)), None) = (tensor, not_finite) {
                let size = to_len(dtype.bits() / 8);
                let first = scan::first_non_finite(dtype, piece, piece.len() / size);
                let place = |first: usize| (index, span.start + (i * CACHED + first * size) as u64);
                not_finite = first.map(place);
            }
        }
        Ok(Block { span, sum, not_finite })
    };
    try_map_all(spans, source.len(), read)
}

fn check_sums(
    blocks: &[Block],
    end: u64,
    header: &Header,
    footer: &Footer,
    findings: &mut Findings,
) {
    let data = data_section(header);
    for (rule, field, span, stored) in [
        (DATA_CRC, "footer.data_checksum", data, footer.data_checksum),
        (FILE_CRC, "footer.file_checksum", 0..end, footer.file_checksum),
    ] {
        let mut total = crc32fast::Hasher::new();
        let inside = |b: &&Block| b.span.start >= span.start && b.span.end <= span.end;
        blocks.iter().filter(inside).for_each(|b| total.combine(&b.sum));
        let computed = total.finalize();
        if stored != computed {
            findings.push(
                rule.at(span)
                    .field(field)
                    .expected(format!("{stored:#010x}"))
                    .found(format!("{computed:#010x}"))
                    .hint("the file was changed or damaged after it was written"),
            );
        }
    }
}

/// The first NaN or infinity of each tensor that has one.
fn report_values(
    container: &Container,
    blocks: &[Block],
    findings: &mut Findings,
) -> Result<(), Error> {
    let mut last = None;
    for &(index, at) in blocks.iter().filter_map(|b| b.not_finite.as_ref()) {
        let tensor = &container.tensors[index];
        let Some(view) = tensor.view().filter(|_| last != Some(index)) else { continue };
        last = Some(index);
        let size = tensor.encoding.stored().bits() / 8;
        let place = (at - view.span().start) / size;
        let value = tensor.scalar(place)?.map_or(f64::NAN, |s| s.to_f64());
        findings.push(
            NOT_FINITE
                .at(at..at + size)
                .field(format!("tensor {:?}", tensor.name))
                .expected("finite numbers")
                .found(format!("{value} at index {place}")),
        );
    }
    Ok(())
}

/// Sections and tensors where a writer puts them: without that the same bytes can't be written again.
fn check_order(container: &Container, header: &Header, findings: &mut Findings) {
    let aligned = header.flags & ALIGNED != 0;
    let mut next = header.data_offset.into();
    let mut seen = std::collections::HashSet::new();
    let mut out_of_place = container.regions.of(What::Unknown).next();
    for tensor in &container.tensors {
        let Some(view) = tensor.view() else { continue };
        // A second name for the same bytes.
        if !seen.insert(view.span()) && !view.is_empty() {
            continue;
        }
        let start = if aligned { align_up(next, super::layout::ALIGNMENT) } else { Some(next) };
        // That a tensor is not aligned is told by a rule of its own.
        let told = aligned && !view.span().start.is_multiple_of(super::layout::ALIGNMENT);
        if Some(view.span().start) != start && !told {
            out_of_place = out_of_place.or(Some(view.span()));
        }
        next = view.span().end;
    }
    // A header that was read anew may have become another one.
    let data_end = u64::from(header.data_offset).saturating_add(header.data_size);
    if next != data_end {
        out_of_place = out_of_place.or(Some(next.min(data_end)..next.max(data_end)));
    }
    let sections =
        [header.metadata_offset, header.vocab_offset, header.index_offset, header.data_offset];
    let present: Vec<_> = sections.into_iter().filter(|&o| o != 0).collect();
    // Each section begins where the one before it ends, also where it is empty.
    let names = container.regions.of(What::Structure("tensor names")).next();
    let index_end = u64::from(header.index_offset) + u64::from(header.index_count) * 32;
    let names_end = names.map_or(index_end, |n| n.end);
    let data =
        if aligned { align_up(names_end, super::layout::ALIGNMENT) } else { Some(names_end) };
    let before_index = u64::from(header.metadata_offset)
        + u64::from(header.metadata_size)
        + u64::from(header.vocab_size);
    let told = aligned && !u64::from(header.data_offset).is_multiple_of(super::layout::ALIGNMENT);
    if !present.is_sorted()
        || (data != Some(header.data_offset.into()) && !told)
        || (header.metadata_size > 0 && before_index != u64::from(header.index_offset))
    {
        out_of_place = out_of_place.or(Some(12..40));
    }
    if let Some(span) = out_of_place {
        findings.push(
            ORDER
                .at(span)
                .expected("metadata, vocabulary, index and tensors in this order, without gaps")
                .hint("readable; converting writes the usual order"),
        );
    }
}
