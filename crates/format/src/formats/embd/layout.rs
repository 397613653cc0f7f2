//! The raw records of the indexed layout.

use super::rules::CUT_SHORT;
use crate::Error;
use crate::source::Source;
use crate::wire::{Cursor, Stop, put_u16, put_u32, put_u64};
use weighbridge_codec::DType;

pub(super) const MAGIC: [u8; 4] = *b"EMBD";
pub(super) const MAGIC_END: [u8; 4] = *b"DBME";
pub(super) const HEADER: u64 = 64;
pub(super) const FOOTER: u64 = 16;
pub(super) const DESCRIPTOR: u64 = 32;
pub(super) const ALIGNMENT: u64 = 64;
/// Header bytes that the header checksum covers.
pub(super) const HEADER_CHECKED: usize = 56;
/// `special_tokens` entry of a token that the vocabulary lacks.
pub(super) const NO_TOKEN: u32 = 0xFFFF_FFFF;

pub(super) const VOCABULARY: u32 = 1 << 0;
pub(super) const ALIGNED: u32 = 1 << 1;
pub(super) const CHECKSUMS: u32 = 1 << 2;

/// The data types, by their number.
pub(super) const DTYPES: &[DType] = &[
    DType::F32,
    DType::F16,
    DType::BF16,
    DType::I32,
    DType::I16,
    DType::I8,
    DType::U32,
    DType::U16,
    DType::U8,
];

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Header {
    pub major: u16,
    pub minor: u16,
    pub flags: u32,
    pub metadata_offset: u32,
    pub metadata_size: u32,
    pub vocab_offset: u32,
    pub vocab_size: u32,
    pub index_offset: u32,
    pub index_count: u32,
    pub data_offset: u32,
    pub data_size: u64,
    pub total_size: u64,
    pub checksum: u32,
    pub reserved: u32,
}

impl Header {
    pub(super) fn parse(file: &Source) -> Result<Header, Stop> {
        let mut c = Cursor::new(file, 0..HEADER, CUT_SHORT);
        c.take(4, "header.magic")?;
        Ok(Header {
            major: c.u16("header.version_major")?,
            minor: c.u16("header.version_minor")?,
            flags: c.u32("header.flags")?,
            metadata_offset: c.u32("header.metadata_offset")?,
            metadata_size: c.u32("header.metadata_size")?,
            vocab_offset: c.u32("header.vocab_offset")?,
            vocab_size: c.u32("header.vocab_size")?,
            index_offset: c.u32("header.tensor_index_offset")?,
            index_count: c.u32("header.tensor_index_count")?,
            data_offset: c.u32("header.tensor_data_offset")?,
            data_size: c.u64("header.tensor_data_size")?,
            total_size: c.u64("header.total_file_size")?,
            checksum: c.u32("header.header_checksum")?,
            reserved: c.u32("header.reserved")?,
        })
    }

    /// Where the file ends: where the header says, if there is a footer. Something may have been
    /// appended to it.
    pub(super) fn end(&self, file: &Source) -> Result<u64, Error> {
        let size = file.len();
        if !(HEADER + FOOTER..size).contains(&self.total_size) {
            return Ok(size);
        }
        let footer = Stop::unless_broken(Footer::parse(file, self.total_size))?;
        let is_there = footer.is_some_and(|footer| footer.magic == MAGIC_END);
        Ok(if is_there { self.total_size } else { size })
    }

    /// The 64 bytes, with the checksum computed where the flags ask for it.
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let mut out = MAGIC.to_vec();
        put_u16(&mut out, self.major);
        put_u16(&mut out, self.minor);
        for field in [
            self.flags,
            self.metadata_offset,
            self.metadata_size,
            self.vocab_offset,
            self.vocab_size,
            self.index_offset,
            self.index_count,
            self.data_offset,
        ] {
            put_u32(&mut out, field);
        }
        put_u64(&mut out, self.data_size);
        put_u64(&mut out, self.total_size);
        let checksum = if self.flags & CHECKSUMS != 0 { crc32fast::hash(&out) } else { 0 };
        put_u32(&mut out, checksum);
        put_u32(&mut out, 0);
        out
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Footer {
    pub data_checksum: u32,
    pub file_checksum: u32,
    pub magic: [u8; 4],
    pub reserved: u32,
}

impl Footer {
    /// The last 16 bytes of a file that ends at `end`.
    pub(super) fn parse(file: &Source, end: u64) -> Result<Footer, Stop> {
        let start = end.saturating_sub(FOOTER);
        let mut c = Cursor::new(file, start..end, CUT_SHORT);
        let (data_checksum, file_checksum) =
            (c.u32("footer.data_checksum")?, c.u32("footer.file_checksum")?);
        let mut magic = [0; 4];
        magic.copy_from_slice(c.take(4, "footer.magic_end")?);
        Ok(Footer { data_checksum, file_checksum, magic, reserved: c.u32("footer.reserved")? })
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Descriptor {
    pub name_hash: u32,
    pub dtype: u8,
    pub ndim: u8,
    pub name_length: u16,
    pub shape: [u32; 4],
    pub data_offset: u64,
}

impl Descriptor {
    pub(super) fn parse(c: &mut Cursor) -> Result<Descriptor, Stop> {
        let field = "tensor index";
        Ok(Descriptor {
            name_hash: c.u32(field)?,
            dtype: c.u8(field)?,
            ndim: c.u8(field)?,
            name_length: c.u16(field)?,
            shape: [c.u32(field)?, c.u32(field)?, c.u32(field)?, c.u32(field)?],
            data_offset: c.u64(field)?,
        })
    }

    pub(super) fn write(&self, out: &mut Vec<u8>) {
        put_u32(out, self.name_hash);
        out.extend_from_slice(&[self.dtype, self.ndim]);
        put_u16(out, self.name_length);
        self.shape.iter().for_each(|&d| put_u32(out, d));
        put_u64(out, self.data_offset);
    }
}
