//! The raw records: header, strings, value types.

use super::rules::{CUT_SHORT, PADDING, STRING};
use crate::source::Source;
use crate::wire::{Cursor, Findings, Rule, Stop, align_up, put_u32, put_u64};
use weighbridge_codec::DType;

pub(super) const MAGIC: [u8; 5] = *b"OINF\0";
/// 69 packed bytes, padded to 8.
pub(super) const HEADER: u64 = 72;
pub(super) const ALIGNMENT: u64 = 8;
/// A tensor has data; a tensor has a quantization payload (version 2).
pub(super) const HAS_DATA: u32 = 1;
pub(super) const HAS_QUANT: u32 = 2;

pub(super) const BOOL: u32 = 12;
pub(super) const BITSET: u32 = 13;
pub(super) const STRING_TYPE: u32 = 14;
pub(super) const NDARRAY: u32 = 15;

/// The numeric value types and BOOL, by their tags.
const DTYPES: &[(u32, DType)] = &[
    (1, DType::I8),
    (2, DType::I16),
    (3, DType::I32),
    (4, DType::I64),
    (5, DType::U8),
    (6, DType::U16),
    (7, DType::U32),
    (8, DType::U64),
    (9, DType::F16),
    (10, DType::F32),
    (11, DType::F64),
    (BOOL, DType::Bool),
    (16, DType::BF16),
    (17, DType::F8E5M2),
    (18, DType::I4),
    (19, DType::I2),
    (20, DType::I1),
    (21, DType::U4),
    (22, DType::U2),
    (23, DType::U1),
    (24, DType::T2),
    (25, DType::T1),
];

/// The types that are written as tensors.
pub(super) const DTYPES_WRITTEN: &[DType] = &{
    let mut list = [DType::I8; DTYPES.len()];
    let mut i = 0;
    while i < list.len() {
        list[i] = DTYPES[i].1;
        i += 1;
    }
    list
};

pub(super) fn dtype_of(tag: u32) -> Option<DType> {
    DTYPES.iter().find(|(t, _)| *t == tag).map(|(_, d)| *d)
}

pub(super) fn tag_of(dtype: DType) -> Option<u32> {
    DTYPES.iter().find(|(_, d)| *d == dtype).map(|(t, _)| *t)
}

#[derive(Clone, Debug)]
pub(super) struct Header {
    pub version: u32,
    pub flags: u32,
    pub n_sizevars: u32,
    pub n_metadata: u32,
    pub n_tensors: u32,
    pub reserved: u32,
    pub sizevars: u64,
    pub metadata: u64,
    pub tensors: u64,
    pub data: u64,
    pub file_size: u64,
}

impl Header {
    pub(super) fn parse(source: &Source) -> Result<Header, Stop> {
        let mut c = Cursor::new(source, 0..HEADER, CUT_SHORT);
        let magic = c.take(5, "header.magic")?;
        if magic != MAGIC {
            let finding = CUT_SHORT.at(0..5).field("header.magic").message("the magic is missing");
            return Err(Stop::from(finding.expected("\"OINF\\0\"").found(format!("{magic:02x?}"))));
        }
        let header = Header {
            version: c.u32("header.version")?,
            flags: c.u32("header.flags")?,
            n_sizevars: c.u32("header.n_sizevars")?,
            n_metadata: c.u32("header.n_metadata")?,
            n_tensors: c.u32("header.n_tensors")?,
            reserved: c.u32("header.reserved")?,
            sizevars: c.u64("header.offset_sizevars")?,
            metadata: c.u64("header.offset_metadata")?,
            tensors: c.u64("header.offset_tensors")?,
            data: c.u64("header.offset_data")?,
            file_size: c.u64("header.file_size")?,
        };
        c.take(3, "header padding")?;
        Ok(header)
    }

    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let mut out = MAGIC.to_vec();
        for v in [
            self.version,
            self.flags,
            self.n_sizevars,
            self.n_metadata,
            self.n_tensors,
            self.reserved,
        ] {
            put_u32(&mut out, v);
        }
        for v in [self.sizevars, self.metadata, self.tensors, self.data, self.file_size] {
            put_u64(&mut out, v);
        }
        pad(&mut out);
        out
    }
}

/// What names and string values are made of.
pub(super) fn is_plain(text: &str) -> bool {
    !text.is_empty()
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-'))
}

/// A string: length, bytes, and padding that counts from the string's own start.
pub(super) fn read_string(
    c: &mut Cursor,
    field: &str,
    findings: &mut Findings,
) -> Result<String, Stop> {
    let start = c.position();
    let length = c.u32(field)?;
    let used = 4 + u64::from(length);
    let raw = c.take(length.into(), field)?;
    let text = std::str::from_utf8(raw).ok().filter(|t| is_plain(t)).ok_or_else(|| {
        STRING
            .at(start..start + used)
            .field(field)
            .expected("one or more of A-Z a-z 0-9 . _ -")
            .found(format!("{:?}", String::from_utf8_lossy(raw)))
    })?;
    let text = text.to_owned();
    let padding = used.next_multiple_of(ALIGNMENT) - used;
    zeros(c, padding, field, PADDING, findings)?;
    Ok(text)
}

/// Takes padding and notes when it is not zero.
pub(super) fn zeros(
    c: &mut Cursor,
    count: u64,
    field: &str,
    rule: Rule,
    findings: &mut Findings,
) -> Result<(), Stop> {
    let start = c.position();
    let raw = c.take(count, field)?;
    if raw.iter().any(|&b| b != 0) {
        let found = format!("{raw:02x?}");
        findings.push(rule.at(start..start + count).field(field).expected("zeros").found(found));
    }
    Ok(())
}

pub(super) fn put_string(out: &mut Vec<u8>, text: &str) {
    let start = out.len();
    put_u32(out, u32::try_from(text.len()).unwrap_or(u32::MAX));
    out.extend_from_slice(text.as_bytes());
    let used = out.len() - start;
    out.resize(start + used.next_multiple_of(8), 0);
}

/// Zeros up to a multiple of 8.
pub(super) fn pad(out: &mut Vec<u8>) {
    out.resize(out.len().next_multiple_of(8), 0);
}

pub(super) fn align(value: u64) -> Option<u64> {
    align_up(value, ALIGNMENT)
}
