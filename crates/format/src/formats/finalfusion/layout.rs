//! Identifiers, types and padding.

use weighbridge_codec::DType;

pub(super) const MAGIC: &[u8; 4] = b"FiFu";

/// What a chunk holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Chunk {
    Simple,
    Matrix,
    Buckets,
    Quantized,
    Metadata,
    Norms,
    FastText,
    Explicit,
    Floret,
    /// The draft has one number for both kinds of matrices.
    DraftMatrix,
}

use Chunk::*;

/// Number, kind and name of every chunk in current files.
const CURRENT: [(u32, Chunk, &str); 9] = [
    (1, Simple, "simple vocabulary"),
    (2, Matrix, "matrix"),
    (3, Buckets, "bucket vocabulary"),
    (4, Quantized, "quantized matrix"),
    (5, Metadata, "metadata"),
    (6, Norms, "norms"),
    (7, FastText, "fastText vocabulary"),
    (8, Explicit, "explicit vocabulary"),
    (9, Floret, "floret vocabulary"),
];

/// The same of the draft.
const DRAFT: [(u32, Chunk, &str); 3] = [
    (0, Simple, "simple vocabulary"),
    (1, DraftMatrix, "matrix"),
    (3, Buckets, "bucket vocabulary"),
];

impl Chunk {
    fn table(draft: bool) -> &'static [(u32, Chunk, &'static str)] {
        if draft { &DRAFT } else { &CURRENT }
    }

    pub(super) fn from_number(number: u32, draft: bool) -> Option<Chunk> {
        Chunk::table(draft).iter().find(|(n, ..)| *n == number).map(|(_, chunk, _)| *chunk)
    }

    pub(super) fn number(self, draft: bool) -> u32 {
        let kind = if draft && matches!(self, Matrix | Quantized) { DraftMatrix } else { self };
        Chunk::table(draft).iter().find(|(_, c, _)| *c == kind).map_or(u32::MAX, |(n, ..)| *n)
    }

    pub(super) fn name(self) -> &'static str {
        CURRENT.iter().find(|(_, c, _)| *c == self).map_or("matrix", |(.., name)| *name)
    }

    /// Where it stands: metadata, vocabulary, storage, norms.
    pub(super) fn place(self) -> usize {
        match self {
            Metadata => 0,
            Simple | Buckets | FastText | Explicit | Floret => 1,
            Matrix | Quantized | DraftMatrix => 2,
            Norms => 3,
        }
    }
}

/// A file is a draft when its list of chunks starts with 0, or is that of a bucket vocabulary and
/// the draft's matrix.
pub(super) fn is_draft(numbers: &[u32]) -> bool {
    numbers.first() == Some(&0) || numbers == [3, 1]
}

/// The types of the specification, by number; those of 128 bits have no type here.
pub(super) const TYPES: [(&str, Option<DType>); 12] = [
    ("i8", Some(DType::I8)),
    ("u8", Some(DType::U8)),
    ("i16", Some(DType::I16)),
    ("u16", Some(DType::U16)),
    ("i32", Some(DType::I32)),
    ("u32", Some(DType::U32)),
    ("i64", Some(DType::I64)),
    ("u64", Some(DType::U64)),
    ("i128", None),
    ("u128", None),
    ("f32", Some(DType::F32)),
    ("f64", Some(DType::F64)),
];
pub(super) const U8: u32 = 1;
pub(super) const F32: u32 = 10;

/// Bytes between a position of the file and data of elements of `size` bytes. Current files have
/// at least one: a whole element when there is nothing to align.
pub(super) fn padding(position: u64, size: u64, draft: bool) -> u64 {
    let full = size - position % size;
    if draft { full % size } else { full }
}
