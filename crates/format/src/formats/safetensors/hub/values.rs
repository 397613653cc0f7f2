//! Metadata values in the hub's JSON.

use super::KEY;
use crate::model::{Array, Value};
use crate::source::Bytes;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use weighbridge_codec::DType;

/// A metadata value; `Text` stands in the file's own metadata.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum HubValue {
    Text,
    /// A text that can't stand there: its key is the hub's own, or all texts are too long together.
    Kept(String),
    Bool(bool),
    Number(String, u64),
    Bits(u32, String),
    Array(String, Vec<u64>, String),
}

pub(super) fn hub_value(key: &str, value: &Value, in_header: bool) -> HubValue {
    match value {
        Value::Text(text) if key == KEY || !in_header => HubValue::Kept(text.clone()),
        Value::Text(_) => HubValue::Text,
        Value::Bool(b) => HubValue::Bool(*b),
        Value::Number(dtype, bits) => HubValue::Number(dtype.name().to_owned(), *bits),
        Value::Bits { count, bytes } => HubValue::Bits(*count, hex(bytes)),
        Value::Array(a) => {
            HubValue::Array(a.dtype.name().to_owned(), a.shape.clone(), hex(&a.data))
        }
    }
}

/// A value; texts are taken out of those that stand in the file.
pub(super) fn value_of(
    key: &str,
    value: HubValue,
    texts: &mut HashMap<String, Value>,
) -> Result<Option<Value>, String> {
    Ok(Some(match value {
        HubValue::Text => return Ok(texts.remove(key)),
        HubValue::Kept(text) => Value::Text(text),
        HubValue::Bool(b) => Value::Bool(b),
        HubValue::Number(dtype, bits) => {
            let dtype = dtype_of(&dtype)?;
            let fits = dtype.bits() == 64 || bits >> dtype.bits() == 0;
            if !fits || matches!(dtype, DType::C64 | DType::Bitset | DType::Bool) {
                return Err(format!("metadata {key:?} is not {dtype}"));
            }
            Value::Number(dtype, bits)
        }
        HubValue::Bits(count, bytes) => {
            let bytes = unhex(&bytes)?;
            if bytes.len() as u64 != u64::from(count).div_ceil(8) {
                return Err(format!("metadata {key:?} has the wrong size"));
            }
            Value::Bits { count, bytes: Bytes::owned(bytes) }
        }
        HubValue::Array(dtype, shape, data) => {
            let (dtype, data) = (dtype_of(&dtype)?, unhex(&data)?);
            let size = crate::wire::numel(&shape).and_then(|n| dtype.byte_len(n));
            if size != Some(data.len() as u64) {
                return Err(format!("metadata {key:?} has the wrong size"));
            }
            Value::Array(Array { dtype, shape, data: Bytes::owned(data) })
        }
    }))
}

pub(super) fn dtype_of(name: &str) -> Result<DType, String> {
    DType::from_name(name).ok_or_else(|| format!("unknown type {name:?}"))
}

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut out, b| {
        let _ = write!(out, "{b:02x}");
        out
    })
}

fn unhex(text: &str) -> Result<Vec<u8>, String> {
    let bad = || "bytes are not written as hex digits".to_owned();
    let digits = text.as_bytes();
    if !digits.len().is_multiple_of(2) {
        return Err(bad());
    }
    let digit = |b: u8| char::from(b).to_digit(16).and_then(|d| u8::try_from(d).ok());
    let byte = |p: &[u8]| Some(digit(p[0])? << 4 | digit(p[1])?);
    digits.chunks(2).map(|p| byte(p).ok_or_else(bad)).collect()
}
