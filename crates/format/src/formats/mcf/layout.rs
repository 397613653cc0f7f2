//! The raw records: header, section directory, numbers of sections and types.

use super::rules::{CUT_SHORT, DIRECTORY, FILE_SIZE, HEADER_SIZE, NEWER, VERSION};
use crate::source::Source;
use crate::wire::{Cursor, Findings, Span, Stop, put_u16, put_u32, put_u64};
use weighbridge_codec::DType;
use weighbridge_codec::block::{BlockCodec, BlockType};

pub(super) const MAGIC: [u8; 4] = *b"MCF\0";
pub(super) const MAJOR: u16 = 1;
pub(super) const MINOR: u16 = 1;
pub(super) const HEADER: u64 = 40;
/// An entry of the section directory.
pub(super) const SECTION: u64 = 24;
/// Sections begin at multiples of this, payloads and the regions in them at multiples of 64.
pub(super) const SECTION_ALIGNMENT: u64 = 8;
pub(super) const PAYLOAD_ALIGNMENT: u64 = 64;
/// Header flag: regions within quantized payloads are aligned.
pub(super) const ALIGNED: u64 = 1;

pub(super) const MODEL_INFO: u32 = 1;
pub(super) const QUANT_INFO: u32 = 2;
pub(super) const TENSOR_INDEX: u32 = 3;
pub(super) const TENSOR_DATA: u32 = 4;

/// In the dialect: the directory stands before the sections, as the specification draws it; the
/// order of its entries, where they are not sorted by type.
pub(super) const DIRECTORY_FIRST: &str = "directory_first";
pub(super) const DIRECTORY_ORDER: &str = "directory";

/// Files that have sections of their own.
pub(super) const RESOURCES: [(u32, &str); 6] = [
    (0x100, "config.json"),
    (0x101, "generation_config.json"),
    (0x102, "tokenizer.json"),
    (0x103, "tokenizer_config.json"),
    (0x104, "vocab.json"),
    (0x105, "merges.txt"),
];

/// What a section is called.
pub(super) fn section_name(kind: u32) -> &'static str {
    match kind {
        MODEL_INFO => "ModelInfo",
        QUANT_INFO => "QuantInfo",
        TENSOR_INDEX => "TensorIndex",
        TENSOR_DATA => "TensorData",
        _ => RESOURCES.iter().find(|(k, _)| *k == kind).map_or("unknown section", |(_, n)| n),
    }
}

/// A tensor's type by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Plain(DType),
    /// One scale for the whole tensor.
    PerTensor(DType),
    Blocks(&'static dyn BlockCodec),
}

/// The plain types, numbered from 1 on.
pub(super) const DTYPES: &[DType] = &[
    DType::F32,
    DType::F16,
    DType::BF16,
    DType::F64,
    DType::I8,
    DType::U8,
    DType::I16,
    DType::U16,
    DType::I32,
    DType::U32,
    DType::I64,
    DType::U64,
];

const PER_TENSOR: [(u32, Kind); 2] =
    [(0x10, Kind::PerTensor(DType::I8)), (0x11, Kind::PerTensor(DType::I4))];

/// The codecs of blocks, and their numbers.
pub(super) const CODECS: &[&dyn BlockCodec] = &[
    &BlockType::Q8,
    &BlockType::Q4,
    &BlockType::K6,
    &BlockType::K4,
    &BlockType::K3,
    &BlockType::K2,
];
const CODEC_NUMBERS: [u32; CODECS.len()] = [0x20, 0x21, 0x30, 0x31, 0x32, 0x33];

impl Kind {
    /// Every type with its number.
    fn all() -> impl Iterator<Item = (u32, Kind)> {
        let plain = (1..).zip(DTYPES.iter().map(|dtype| Kind::Plain(*dtype)));
        let blocks = CODECS.iter().map(|codec| Kind::Blocks(*codec));
        plain.chain(PER_TENSOR).chain(CODEC_NUMBERS.into_iter().zip(blocks))
    }

    pub(super) fn from_number(number: u32) -> Option<Kind> {
        Kind::all().find(|(n, _)| *n == number).map(|(_, kind)| kind)
    }

    pub(super) fn number(self) -> u32 {
        Kind::all().find(|(_, k)| *k == self).map_or(0, |(number, _)| number)
    }

    /// Block and super block sizes of a QuantInfo record.
    pub(super) fn block_sizes(self) -> (u16, u16) {
        match self {
            Kind::Blocks(codec) if codec.cut() > codec.codes().values => (32, 256),
            Kind::Blocks(_) => (32, 0),
            _ => (0, 0),
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Kind::Plain(dtype) => dtype.name(),
            Kind::PerTensor(DType::I4) => "int4",
            Kind::PerTensor(_) => "int8",
            Kind::Blocks(codec) => codec.name(),
        }
    }
}

#[derive(Clone, Debug)]
pub(super) struct Section {
    pub kind: u32,
    pub version: u32,
    pub span: Span,
}

#[derive(Debug)]
pub(super) struct Header {
    pub minor: u16,
    pub size: u32,
    pub directory: Span,
    /// As the header says it.
    pub file_size: u64,
    pub flags: u64,
}

impl Header {
    pub(super) fn parse(source: &Source, findings: &mut Findings) -> Result<Header, Stop> {
        let size = source.len();
        let mut c = Cursor::new(source, 0..size, CUT_SHORT);
        c.take(4, "header.magic")?;
        let (major, minor) = (c.u16("header.major")?, c.u16("header.minor")?);
        if major != MAJOR {
            let finding = VERSION.at(4..6).field("header.major").expected(MAJOR).found(major);
            return Err(Stop::from(finding));
        }
        let header_size = c.u32("header.header_size")?;
        let count = c.u32("header.section_count")?;
        let start = c.u64("header.section_dir_offset")?;
        let file_size = c.u64("header.file_size")?;
        let flags = c.u64("header.flags")?;
        if u64::from(header_size) < HEADER || u64::from(header_size) > size {
            let finding = HEADER_SIZE.at(8..12).field("header.header_size");
            return Err(Stop::from(finding.expected(format!("40 to {size}")).found(header_size)));
        }
        if minor > MINOR {
            findings.push(NEWER.newer(6..8, (major.into(), minor.into()), MINOR.into()));
        }
        if file_size > size {
            let finding = FILE_SIZE.at(24..32).field("header.file_size");
            findings.push(finding.expected(file_size).found(size).hint("the file is cut short"));
        }
        let end = start.checked_add(u64::from(count) * SECTION);
        match end.filter(|&end| count > 0 && start >= header_size.into() && end <= size) {
            Some(end) => {
                let directory = start..end;
                Ok(Header { minor, size: header_size, directory, file_size, flags })
            }
            None => {
                let finding = DIRECTORY.at(12..24).field("header.section_dir_offset");
                Err(Stop::from(
                    finding
                        .expected(format!("1 or more entries within {header_size:#x}..{size:#x}"))
                        .found(format!("{count} entries at {start:#x}"))
                        .hint("the file may be cut short"),
                ))
            }
        }
    }

    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let mut out = MAGIC.to_vec();
        put_u16(&mut out, MAJOR);
        put_u16(&mut out, self.minor);
        put_u32(&mut out, self.size);
        let count = (self.directory.end - self.directory.start) / SECTION;
        put_u32(&mut out, u32::try_from(count).unwrap_or(u32::MAX));
        put_u64(&mut out, self.directory.start);
        put_u64(&mut out, self.file_size);
        put_u64(&mut out, self.flags);
        out
    }
}
