//! The QuantInfo section: a record for every quantized tensor.

use super::layout::Kind;
use super::rules::{
    QUANT_INFO, RECORD_BLOCKS, RECORD_CLIPS, RECORD_DOMAIN, RECORD_METHOD, RECORD_TENSOR,
    RECORD_TWICE, RESERVED, SECTION_VERSION,
};
use crate::source::Source;
use crate::wire::{Cursor, Findings, Span, Stop, put_u16, put_u32};
use std::collections::HashMap;
use weighbridge_codec::DType;

const HEADER: u64 = 8;
const RECORD: u64 = 24;
pub(super) const WEIGHTS: u8 = 0;
pub(super) const ACTIVATIONS: u8 = 1;

#[derive(Clone, Copy, Debug)]
pub(super) struct Record {
    pub tensor: u32,
    pub domain: u8,
    /// The bounds that the scales were derived from.
    pub clips: (f32, f32),
}

/// The records by the number of their tensor. `kinds` are the tensors' types with their names.
pub(super) fn read(
    source: &Source,
    span: Span,
    kinds: &[(Kind, &str)],
    findings: &mut Findings,
) -> Result<HashMap<u32, Record>, Stop> {
    let mut c = Cursor::new(source, span.clone(), QUANT_INFO);
    let (version, count) = (c.u32("QuantInfo.version")?, c.u32("QuantInfo.record_count")?);
    if version != 1 {
        let finding = SECTION_VERSION.at(span.start..span.start + 4).field("QuantInfo.version");
        return Err(Stop::from(finding.expected(1).found(version)));
    }
    if u64::from(count) * RECORD + HEADER != span.end - span.start {
        let finding = QUANT_INFO.at(span.start + 4..span.start + 8).field("QuantInfo.record_count");
        let expected = format!("{} records", (span.end - span.start - HEADER) / RECORD);
        return Err(Stop::from(finding.expected(expected).found(count)));
    }
    let mut records = HashMap::new();
    for _ in 0..count {
        let at = c.position();
        let record = read_record(&mut c, kinds, findings)?;
        if let Some(record) = record
            && records.insert(record.tensor, record).is_some()
        {
            let finding = RECORD_TWICE.at(at..at + 4).field("record.tensor_index");
            findings.push(finding.found(record.tensor));
        }
    }
    Ok(records)
}

/// `None` for a record that is about nothing.
fn read_record(
    c: &mut Cursor,
    kinds: &[(Kind, &str)],
    findings: &mut Findings,
) -> Result<Option<Record>, Stop> {
    let at = c.position();
    let tensor = c.u32("record.tensor_index")?;
    let (method, domain) = (c.u8("record.method")?, c.u8("record.domain")?);
    let sizes = (c.u16("record.block_size")?, c.u16("record.super_size")?);
    let is_clean = *c.take(6, "record.reserved")? == [0; 6];
    let clips = [c.u32("record.min_clip")?, c.u32("record.max_clip")?].map(f32::from_bits);
    if !is_clean {
        findings.push(RESERVED.at(at + 10..at + 16).field("record.reserved").expected("zeros"));
    }
    let known = usize::try_from(tensor).ok().and_then(|i| kinds.get(i));
    let Some((kind, name)) = known.filter(|(k, _)| !matches!(k, Kind::Plain(_))) else {
        let finding = RECORD_TENSOR.at(at..at + 4).field("record.tensor_index");
        findings.push(finding.expected("the number of a quantized tensor").found(tensor));
        return Ok(None);
    };
    let field = |what: &str| format!("record.{what} of {name:?}");
    if u32::from(method) != kind.number() {
        let finding = RECORD_METHOD.at(at + 4..at + 5).field(field("method"));
        findings
            .push(finding.expected(format!("{:#x}", kind.number())).found(format!("{method:#x}")));
    }
    if sizes != kind.block_sizes() {
        let finding = RECORD_BLOCKS.at(at + 6..at + 10).field(field("block_size"));
        let text = |(block, sup): (u16, u16)| format!("{block}/{sup}");
        findings.push(finding.expected(text(kind.block_sizes())).found(text(sizes)));
    }
    let highest = if matches!(kind, Kind::PerTensor(_)) { ACTIVATIONS } else { WEIGHTS };
    if domain > highest {
        let finding = RECORD_DOMAIN.at(at + 5..at + 6).field(field("domain"));
        findings.push(finding.expected(format!("0 to {highest}")).found(domain));
    }
    let [low, high] = clips;
    if !(low.is_finite() && high.is_finite() && low <= high) {
        let finding = RECORD_CLIPS.at(at + 16..at + 24).field(field("clips"));
        findings.push(finding.expected("two numbers in order").found(format!("{low}, {high}")));
    }
    Ok(Some(Record { tensor, domain, clips: (low, high) }))
}

/// The section; each record with the type of its tensor.
pub(super) fn to_bytes(records: &[(Kind, Record)]) -> Vec<u8> {
    let mut out = Vec::new();
    put_u32(&mut out, 1);
    put_u32(&mut out, u32::try_from(records.len()).unwrap_or(u32::MAX));
    for (kind, record) in records {
        put_u32(&mut out, record.tensor);
        out.extend([kind.number().to_le_bytes()[0], record.domain]);
        let (block, sup) = kind.block_sizes();
        put_u16(&mut out, block);
        put_u16(&mut out, sup);
        out.extend([0; 6]);
        put_u32(&mut out, record.clips.0.to_bits());
        put_u32(&mut out, record.clips.1.to_bits());
    }
    out
}

/// The first byte that holds the most negative code, which weights don't use.
pub(super) fn first_most_negative(codes: DType, bytes: &[u8]) -> Option<usize> {
    match codes {
        DType::I4 => bytes.iter().position(|b| b & 0xF == 8 || b >> 4 == 8),
        _ => bytes.iter().position(|&b| b == 0x80),
    }
}
