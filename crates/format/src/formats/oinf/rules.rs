//! The numbered rules, and the checks that need the data.

use super::super::values::{check_finite, check_padding};
use super::layout::{self, Header};
use crate::Error;
use crate::model::{Container, Once, Tensor};
use crate::wire::{APPENDED, Findings, Span, Stop, What, to_len};
use crate::{Input, rules};
use std::collections::HashMap;
use weighbridge_codec::DType;

rules! {
    CUT_SHORT "OINF-01" Error "the file ends too early";
    VERSION "OINF-02" Error "unknown version";
    RESERVED "OINF-03" Error "reserved flags or fields are not zero";
    SIZE "OINF-04" Error "file_size is not the file's size";
    SECTIONS "OINF-05" Error "section offsets are not ascending, aligned and inside the file";
    STRING "OINF-06" Error "a name or string has characters that are not allowed";
    DUPLICATE "OINF-07" Error "a name appears twice in its table";
    COUNT "OINF-08" Error "a table can't have as many entries as the header says";
    TYPE "OINF-09" Error "unknown value type, or one that is not allowed here";
    PAYLOAD "OINF-10" Error "a metadata value is malformed";
    BLOB "OINF-11" Error "a blob is not aligned or lies outside the data section";
    TENSOR_SIZE "OINF-12" Error "type and shape do not give the size of the data";
    DECLARED "OINF-13" Error "a tensor without data must have size and offset 0";
    OVERLAP "OINF-14" Error "two blobs overlap";
    QUANT "OINF-15" Error "a quantization payload is malformed";
    BOOLEAN "OINF-16" Error "a boolean is neither 0 nor 1";
    PADDING "OINF-17" Warning "padding is not zero";
    ORDER "OINF-18" Warning "tables or blobs are not in their usual places";
    BITSET_TENSOR "OINF-19" Warning "a tensor has the type BITSET, which one sentence of the specification excludes";
    TERNARY "OINF-20" Error "a ternary value is neither -1, 0 nor +1";
    NOT_FINITE "OINF-21" Warning "a value is not a finite number";
    SCHEME "OINF-22" Warning "an asymmetric scheme has no zero point";
    SCALE "OINF-23" Warning "a scale is zero or not a finite number";
}

pub(super) fn check(
    container: &Container,
    input: &Input,
    findings: &mut Findings,
) -> Result<(), Error> {
    check_padding(container, &input.source, PADDING, findings)?;
    let mut once = Once::new([container]);
    for tensor in &container.tensors {
        once.of([tensor], || check_values(tensor, findings))?;
    }
    check_finite(container, NOT_FINITE, findings)?;
    if let Some(header) = Stop::unless_broken(Header::parse(&input.source))? {
        check_order(container, &header, findings);
    }
    Ok(())
}

fn check_values(tensor: &Tensor, findings: &mut Findings) -> Result<(), Error> {
    let Some(view) = tensor.view() else { return Ok(()) };
    let dtype = tensor.encoding.stored();
    let span = view.span();
    let field = || format!("tensor {:?}", tensor.name);
    match dtype {
        DType::Bool => {
            if let Some((i, byte)) = view.find(|block| block.iter().position(|&b| b > 1))? {
                let at = span.start + i;
                findings.push(BOOLEAN.at(at..at + 1).field(field()).expected("0 or 1").found(byte));
            }
        }
        DType::T2 => {
            // The fourth code, -2, has no meaning.
            let of_byte = |byte: u8| (0..4).find(|i| byte >> (2 * i) & 3 == 2);
            let bad = view.find(|block| block.iter().position(|&b| of_byte(b).is_some()))?;
            let index = bad.and_then(|(i, byte)| Some(4 * i + of_byte(byte)?));
            if let Some(i) = index.filter(|i| *i < tensor.count()) {
                let at = span.start + i / 4;
                findings
                    .push(TERNARY.at(at..at + 1).field(field()).found(format!("-2 at index {i}")));
            }
        }
        _ => {}
    }
    // Bits behind the last element of a packed type are padding too.
    let used = tensor.count().wrapping_mul(dtype.bits()) % 8;
    if dtype.is_packed()
        && used != 0
        && let Some(last) = view.last()?
        && last >> used != 0
    {
        findings
            .push(PADDING.at(span.end - 1..span.end).field(field()).expected("unused bits of 0"));
    }
    Ok(())
}

/// Tables and blobs where the reference writer puts them: without that the same bytes can't be
/// written again.
fn check_order(container: &Container, header: &Header, findings: &mut Findings) {
    let mut out_of_place = container.regions.of(What::Unknown).next();
    let mut next = 0;
    let mut seen: HashMap<Span, What> = HashMap::new();
    for region in container.regions.list() {
        if matches!(region.what, What::Padding | What::Unknown | APPENDED) {
            continue;
        }
        if let Some(first) = seen.insert(region.span.clone(), region.what) {
            // Two tensors may be the same bytes, if they mean the same by them.
            let encoding = |what: What| match what {
                What::Tensor(i) => Some(&container.tensors[i].encoding),
                _ => None,
            };
            if encoding(first).is_none() || encoding(first) != encoding(region.what) {
                out_of_place = out_of_place.or(Some(region.span.clone()));
            }
            continue;
        }
        if region.span.start != next {
            out_of_place = out_of_place.or(Some(region.span.clone()));
        }
        next = layout::align(region.span.end).unwrap_or(region.span.end);
    }
    // A tensor of no bytes has a place too: where the next blob begins.
    let ends: HashMap<_, _> =
        container.regions.list().iter().map(|r| (place_of(r.what), r.span.end)).collect();
    let mut cursor = header.data;
    let metadata = (0..to_len(header.n_metadata.into())).map(What::Metadata);
    let tensors = (0..container.tensors.len()).flat_map(|i| [What::Tensor(i), What::Scales(i)]);
    for what in metadata.chain(tensors) {
        if let Some(end) = ends.get(&place_of(what)) {
            cursor = cursor.max(layout::align(*end).unwrap_or(*end));
        } else if let What::Tensor(i) = what
            && let Some(view) = container.tensors[i].view()
            && view.span().start != cursor
        {
            out_of_place = out_of_place.or(Some(view.span()));
        }
    }
    // The blobs' order is that of the tables: metadata first, then each tensor and its scales.
    let ranked = container.regions.list().iter().filter(|r| place_of(r.what).0 < 2);
    let mut seen = std::collections::HashSet::new();
    let fresh: Vec<_> =
        ranked.filter(|r| seen.insert(r.span.clone())).map(|r| (place_of(r.what), r)).collect();
    if let Some(pair) = fresh.windows(2).find(|w| w[0].0 > w[1].0) {
        out_of_place = out_of_place.or(Some(pair[1].1.span.clone()));
    }
    if next != header.file_size {
        out_of_place = out_of_place.or(Some(next.min(header.file_size)..header.file_size));
    }
    if let Some(span) = out_of_place {
        findings.push(
            ORDER
                .at(span)
                .expected("blobs in the order of the tables, each at the next multiple of 8")
                .hint("readable; converting writes the usual order"),
        );
    }
}

/// The order of blobs in a file: metadata, then each tensor and its scales.
fn place_of(what: What) -> (u8, usize) {
    match what {
        What::Metadata(i) => (0, i),
        What::Tensor(i) => (1, 2 * i),
        What::Scales(i) => (1, 2 * i + 1),
        _ => (2, 0),
    }
}
