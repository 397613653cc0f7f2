//! The numbered rules, and the checks that need the data.

use super::super::values::try_map_all;
use super::super::values::{check_finite, check_padding};
use super::{carry, quant_info, write};
use crate::Error;
use crate::model::{BlockCoded, Container, Encoding, Scaled, Scaling, Tensor};
use crate::plan::Piece;
use crate::source::{Source, View, name_problem};
use crate::wire::{Finding, Findings, to_len};
use crate::{Input, Options, rules};
use std::collections::HashSet;
use weighbridge_codec::block::FlawKind;
use weighbridge_codec::{DType, scan};

rules! {
    CUT_SHORT "MCF-01" Error "the file ends too early";
    VERSION "MCF-02" Error "unknown major version";
    HEADER_SIZE "MCF-03" Error "header_size is impossible";
    FILE_SIZE "MCF-04" Error "file_size is not the file's size";
    DIRECTORY "MCF-05" Error "the section directory lies outside the file, or is empty";
    SECTION "MCF-06" Error "a section is misaligned or lies outside the file";
    SECTION_OVERLAP "MCF-07" Error "two sections overlap, or one covers the header or the directory";
    SECTION_TWICE "MCF-08" Error "a section type appears twice";
    SECTION_VERSION "MCF-09" Error "unknown version of a section";
    INDEX "MCF-10" Error "the tensor index is malformed";
    NAME "MCF-11" Error "a tensor's name is empty, is not UTF-8, or lies outside the strings";
    PAYLOAD_SIZE "MCF-12" Error "tensor payload has the wrong size";
    NAME_TWICE "MCF-13" Error "two tensors have the same name";
    TYPE "MCF-14" Error "unknown tensor type";
    DIMENSIONS "MCF-15" Error "dimensions lie outside their table, are zero, or overflow";
    RANK "MCF-16" Error "blocks are for matrices only";
    PAYLOAD "MCF-17" Error "a payload lies outside TensorData";
    PAYLOAD_OVERLAP "MCF-18" Error "two payloads overlap without being the same";
    BLOCKS_MISALIGNED "MCF-19" Error "a payload of blocks does not begin at a multiple of 64";
    MISALIGNED "MCF-20" Warning "a payload does not begin at a multiple of 64";
    FLAG "MCF-21" Error "there are payloads of blocks, but the aligned flag is not set";
    SORTED "MCF-22" Error "the index says it is sorted by name, but is not";
    RESERVED "MCF-23" Error "reserved bytes are not zero";
    QUANT_INFO "MCF-24" Error "QuantInfo does not have the size that its number of records needs";
    RECORD_TENSOR "MCF-25" Error "a record is about a tensor that is not there or not quantized";
    RECORD_TWICE "MCF-26" Error "two records are about the same tensor";
    RECORD_METHOD "MCF-27" Error "a record's method is not the tensor's type";
    RECORD_BLOCKS "MCF-28" Error "a record has the wrong block sizes";
    RECORD_DOMAIN "MCF-29" Error "a record's domain is unknown, or not allowed for its method";
    RECORD_CLIPS "MCF-30" Error "a record's bounds are not finite, or the wrong way round";
    NO_RECORD "MCF-31" Warning "a quantized tensor has no QuantInfo record";
    NO_SCALE "MCF-32" Warning "integers without a scale region: the values are not known";
    SHARE "MCF-33" Error "a sub-scale is above 63";
    MOST_NEGATIVE "MCF-34" Error "the most negative code is used";
    SCALE "MCF-35" Error "a scale or zero point is not a finite number";
    ROW_END "MCF-36" Error "codes after the end of a row are not zero";
    PADDING "MCF-37" Warning "padding is not zero";
    MODEL_INFO "MCF-38" Error "ModelInfo is malformed";
    KEY_TWICE "MCF-39" Error "a key or a file appears twice";
    PATH "MCF-40" Error "a file's path is not relative, leads out of its folder, or is one that tools or systems act on";
    RESOURCE "MCF-41" Warning "a file is not what its name says";
    NOT_FINITE "MCF-42" Warning "a value is not a finite number";
    ORDER "MCF-43" Warning "parts are not in their usual places";
    NEWER "MCF-44" Warning "the minor version is newer than those that are known";
}

pub(super) fn check(
    container: &Container,
    input: &Input,
    findings: &mut Findings,
) -> Result<(), Error> {
    check_padding(container, &input.source, PADDING, findings)?;
    // Many names for the same payload are no more work than one.
    let mut seen = HashSet::new();
    let mut fresh = |t: &&Tensor| {
        let place = t.view().map(|v| v.span());
        seen.insert((place, t.encoding.name(), t.shape.clone()))
    };
    let tensors: Vec<_> = container.tensors.iter().filter(|t| fresh(t)).collect();
    let bytes = tensors.iter().filter_map(|t| t.view().map(View::len)).sum();
    for found in try_map_all(tensors, bytes, |_, tensor| check_codes(tensor))? {
        found.into_iter().for_each(|f| findings.push(f));
    }
    check_finite(container, NOT_FINITE, findings)?;
    for a in &container.attachments {
        if !carry::is_section(&a.name)
            && let Some(why) = name_problem(&a.name)
        {
            let finding = PATH.at(a.data.span()).field(format!("file {:?}", a.name));
            findings
                .push(finding.expected("a relative path that is plain on every system").found(why));
        }
    }
    match findings.wants(ORDER) {
        true => check_places(container, &input.source, findings),
        false => Ok(()),
    }
}

/// The first bad scale, share and code of each kind in a tensor.
fn check_codes(tensor: &Tensor) -> Result<Vec<Finding>, Error> {
    match (&tensor.encoding, tensor.view()) {
        (Encoding::Scaled(scaled), Some(codes)) => check_per_tensor(tensor, scaled, codes),
        (Encoding::Blocks(blocks), Some(codes)) => check_blocks(tensor, blocks, codes),
        _ => Ok(Vec::new()),
    }
}

fn check_per_tensor(tensor: &Tensor, scaled: &Scaled, codes: &View) -> Result<Vec<Finding>, Error> {
    let field = || format!("tensor {:?}", tensor.name);
    let mut found = Vec::new();
    let span = codes.span();
    let is_symmetric = matches!(&scaled.scaling, Scaling::Affine { zero_points: None, .. });
    let first = |block: &[u8]| quant_info::first_most_negative(scaled.codes, block);
    if is_symmetric && let Some((i, _)) = codes.find(first)? {
        let at = span.start + i;
        found.push(MOST_NEGATIVE.at(at..at + 1).field(field()));
    }
    let unused = tensor.count() % 2 == 1 && scaled.codes == DType::I4;
    if unused && codes.last()?.is_some_and(|b| b >> 4 != 0) {
        found.push(ROW_END.at(span.end - 1..span.end).field(field()).expected("a nibble of 0"));
    }
    Ok(found)
}

fn check_blocks(tensor: &Tensor, blocks: &BlockCoded, codes: &View) -> Result<Vec<Finding>, Error> {
    let Some(layout) = blocks.layout(&tensor.shape) else { return Ok(Vec::new()) };
    let scales = blocks.front_bytes()?;
    let (front, data) = (blocks.front.span().start, codes.span().start);
    let mut found: [Option<Finding>; 5] = [const { None }; 5];
    let note = |slot: &mut Option<Finding>, make: &dyn Fn() -> Finding| {
        if slot.is_none() {
            *slot = Some(make().field(format!("tensor {:?}", tensor.name)));
        }
    };
    for gap in layout.gaps() {
        let bytes = scales.get(to_len(gap.start)..to_len(gap.end)).unwrap_or_default();
        if let Some(i) = scan::first_non_zero(bytes) {
            let at = front + gap.start + i as u64;
            note(&mut found[0], &|| PADDING.at(at..at + 1).expected(0).found(bytes[i]));
        }
    }
    blocks.for_each_row(codes, &tensor.shape, |row, scales, codes| {
        blocks.codec.check(scales, codes, to_len(layout.cols), &mut |flaw| {
            let (base, place) = match flaw.region {
                Some(region) => (front + layout.front[region].start, layout.front[region]),
                None => (data, layout.codes),
            };
            let start = base + row * place.row_bytes;
            let span = start + flaw.bytes.start as u64..start + flaw.bytes.end as u64;
            match flaw.kind {
                FlawKind::SubScale { found: share, largest } => note(&mut found[1], &|| {
                    SHARE.at(span.clone()).expected(format!("0 to {largest}")).found(share)
                }),
                FlawKind::Scale(scale) => note(&mut found[2], &|| {
                    SCALE.at(span.clone()).expected("a number").found(scale)
                }),
                FlawKind::MostNegative { code, value } => note(&mut found[3], &|| {
                    let expected = format!("{} to {}", code + 1, -(code + 1));
                    let index = row * layout.cols + value as u64;
                    let text = format!("{code} at index {index}");
                    MOST_NEGATIVE.at(span.clone()).expected(expected).found(text)
                }),
                FlawKind::Filling(code) => {
                    note(&mut found[4], &|| ROW_END.at(span.clone()).expected(0).found(code))
                }
                _ => {}
            }
        });
        true
    })?;
    Ok(found.into_iter().flatten().collect())
}

/// Whether the same bytes would be written again: without that, going through another format and
/// back changes the file.
fn check_places(
    container: &Container,
    source: &Source,
    findings: &mut Findings,
) -> Result<(), Error> {
    let plan = match write::plan(container, &Options::default(), &super::INFO) {
        Ok(plan) => plan,
        Err(error @ (Error::Io { .. } | Error::Changed { .. })) => return Err(error),
        Err(_) => return Ok(()),
    };
    let pieces = plan.files.iter().flat_map(|f| &f.pieces);
    let size = container.regions.end(source.len());
    let mut at = 0;
    for piece in pieces {
        let end = at + piece.len();
        let there = source.view(at..end).filter(|_| end <= size);
        let same = match (piece, &there) {
            (Piece::Bytes(bytes), Some(there)) if at == 0 => same_header(&there.load()?, bytes),
            (Piece::Bytes(bytes), Some(there)) => there.in_place()?[..] == bytes[..],
            (Piece::View(view), Some(there)) => there.same_bytes(view)?,
            (Piece::Zeros(_), Some(there)) => there.find(scan::first_non_zero)?.is_none(),
            // Payloads are where the index says; that is compared above.
            (_, there) => there.is_some(),
        };
        if !same {
            let finding = ORDER.at(at..end.min(size).max(at));
            findings.push(
                finding
                    .expected("what the reference tools write")
                    .hint("readable; converting writes the usual order"),
            );
            return Ok(());
        }
        at = end;
    }
    if at != size {
        findings.push(ORDER.at(at..size).expected("the end of the file"));
    }
    Ok(())
}

/// Whether headers are the same but for what says nothing about places: the minor version, and that
/// payloads are aligned.
fn same_header(a: &[u8], b: &[u8]) -> bool {
    const MINOR: usize = 6;
    const FLAGS: usize = 32;
    a.len() == b.len()
        && a.iter().zip(b).enumerate().all(|(i, (a, b))| match i {
            MINOR | 7 => true,
            FLAGS => (a ^ b) & !1 == 0,
            _ => a == b,
        })
}
