//! Metadata payloads.

use super::layout::{self, dtype_of, pad, put_string, read_string, tag_of, zeros};
use super::rules::{BOOLEAN, PADDING, PAYLOAD, TYPE};
use crate::Error;
use crate::model::{Array, Value};
use crate::source::{Bytes, Source};
use crate::wire::{Cursor, Findings, Span, Stop, numel, put_u32, put_u64};
use std::collections::HashMap;
use weighbridge_codec::DType;

/// Payloads that were read. Many entries may share one, which is then in memory once.
pub(super) struct Payloads<'a> {
    source: &'a Source,
    known: HashMap<Span, Bytes>,
}

impl<'a> Payloads<'a> {
    pub(super) fn new(source: &'a Source) -> Payloads<'a> {
        Payloads { source, known: HashMap::new() }
    }

    fn bytes(&mut self, span: Span) -> Result<Bytes, Error> {
        if let Some(known) = self.known.get(&span) {
            return Ok(known.clone());
        }
        let bytes = self.source.in_place(span.clone())?;
        self.known.insert(span, bytes.clone());
        Ok(bytes)
    }
}

/// The payload of a value type, which must fill `span` exactly.
pub(super) fn read(
    payloads: &mut Payloads,
    tag: u32,
    span: Span,
    field: &str,
    findings: &mut Findings,
) -> Result<Value, Stop> {
    let mut c = Cursor::new(payloads.source, span.clone(), PAYLOAD);
    let value = match tag {
        layout::STRING_TYPE => Value::Text(read_string(&mut c, field, findings)?),
        layout::BITSET => read_bits(payloads, &mut c, field, findings)?,
        layout::NDARRAY => read_array(payloads, &mut c, field, findings)?,
        layout::BOOL => {
            let byte = c.u8(field)?;
            if byte > 1 {
                let finding = BOOLEAN.at(span.clone()).field(field);
                findings.push(finding.expected("0 or 1").found(byte));
            }
            Value::Bool(byte != 0)
        }
        tag => {
            let Some(dtype) = dtype_of(tag) else {
                let finding = TYPE.at(span).field(field).expected("1 to 25").found(tag);
                return Err(Stop::from(finding));
            };
            let raw = c.take(dtype.bits().div_ceil(8), field)?;
            if dtype.is_packed() && raw[0] >> dtype.bits() != 0 {
                findings.push(PADDING.at(span.clone()).field(field).expected("unused bits of 0"));
            }
            Value::number(dtype, raw)
        }
    };
    if c.remaining() != 0 {
        let expected = format!("{} bytes", c.position() - span.start);
        let found = format!("{} bytes", span.end - span.start);
        return Err(Stop::from(PAYLOAD.at(span).field(field).expected(expected).found(found)));
    }
    Ok(value)
}

fn read_bits(
    payloads: &mut Payloads,
    c: &mut Cursor,
    field: &str,
    findings: &mut Findings,
) -> Result<Value, Stop> {
    let start = c.position();
    let (count, bytes) = (c.u32(field)?, c.u32(field)?);
    if bytes != count.div_ceil(8) {
        let finding = PAYLOAD.at(start..start + 8).field(field);
        return Err(Stop::from(
            finding.expected(format!("{} bytes for {count} bits", count.div_ceil(8))).found(bytes),
        ));
    }
    let at = c.position();
    c.skip(bytes.into(), field)?;
    let bytes = payloads.bytes(at..c.position())?;
    if let Some(last) = bytes.last()
        && count % 8 != 0
        && last >> (count % 8) != 0
    {
        findings.push(
            PADDING.at(c.position() - 1..c.position()).field(field).expected("unused bits of 0"),
        );
    }
    finish(c, start, field, findings)?;
    Ok(Value::Bits { count, bytes })
}

fn read_array(
    payloads: &mut Payloads,
    c: &mut Cursor,
    field: &str,
    findings: &mut Findings,
) -> Result<Value, Stop> {
    let start = c.position();
    let (tag, rank) = (c.u32(field)?, c.u32(field)?);
    let dtype = dtype_of(tag).ok_or_else(|| {
        TYPE.at(start..start + 4).field(field).expected("a numeric type or BOOL").found(tag)
    })?;
    let shape = c.u64_list(rank, field)?;
    let bytes = numel(&shape).and_then(|n| dtype.byte_len(n)).unwrap_or(u64::MAX);
    let at = c.position();
    c.skip(bytes, field)?;
    let data = payloads.bytes(at..c.position())?;
    if dtype == DType::Bool
        && let Some(i) = data.iter().position(|&b| b > 1)
    {
        let at = at + i as u64;
        findings.push(BOOLEAN.at(at..at + 1).field(field).expected("0 or 1").found(data[i]));
    }
    finish(c, start, field, findings)?;
    Ok(Value::Array(Array { dtype, shape, data }))
}

/// The padding behind a payload that began at `start`.
fn finish(c: &mut Cursor, start: u64, field: &str, findings: &mut Findings) -> Result<(), Stop> {
    let used = c.position() - start;
    zeros(c, used.next_multiple_of(8) - used, field, PADDING, findings)
}

/// Tag and payload of a value.
pub(super) fn to_bytes(value: &Value) -> (u32, Vec<u8>) {
    let mut out = Vec::new();
    let tag = match value {
        Value::Text(text) => {
            put_string(&mut out, text);
            layout::STRING_TYPE
        }
        Value::Bool(b) => {
            out.push(u8::from(*b));
            layout::BOOL
        }
        Value::Number(dtype, bits) => {
            let size = crate::wire::to_len(dtype.bits().div_ceil(8));
            out.extend_from_slice(&bits.to_le_bytes()[..size]);
            tag_of(*dtype).unwrap_or(layout::BOOL)
        }
        Value::Bits { count, bytes } => {
            put_u32(&mut out, *count);
            put_u32(&mut out, count.div_ceil(8));
            out.extend_from_slice(bytes);
            pad(&mut out);
            layout::BITSET
        }
        Value::Array(a) => {
            put_u32(&mut out, tag_of(a.dtype).unwrap_or(5));
            put_u32(&mut out, u32::try_from(a.shape.len()).unwrap_or(0));
            a.shape.iter().for_each(|&d| put_u64(&mut out, d));
            out.extend_from_slice(&a.data);
            pad(&mut out);
            layout::NDARRAY
        }
    };
    (tag, out)
}
