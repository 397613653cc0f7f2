//! Rows that are written one behind the other, before it is known how many there will be.

use super::Report;
use crate::model::{Encoding, Tensor};
use crate::{Error, Options};
use serde::{Deserialize, Serialize};
use weighbridge_codec::DType;

/// How a format stores rows one behind the other.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct RowLayout {
    /// Rows in layouts of the same name lie in the same way.
    pub name: &'static str,
    /// What stands in front of the rows, by their number and width. Its length is the same for any
    /// number of rows.
    pub front: fn(u64, u64) -> Vec<u8>,
    /// How a row is stored.
    pub encoding: fn() -> Encoding,
    /// Adds the bytes of some rows to a buffer, and says what storing them so changes.
    pub encode: EncodeRows,
    /// Puts the figures of all rows into a report, in which the rows count as kept.
    pub tell: fn(&RowFigures, &Tensor, &mut Report),
}

/// Encodes rows of so many values, of which the first has this number.
pub type EncodeRows = fn(&[f32], RowBlock, &Options, &mut Vec<u8>) -> Result<RowFigures, Error>;

/// Where some rows stand in a matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowBlock {
    /// The number of the first of them.
    pub first: u64,
    /// Values in a row.
    pub dim: usize,
}

/// What storing rows changes; figures of parts are added up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RowFigures {
    /// Rows.
    pub rows: u64,
    /// Values that change.
    pub changed: u64,
    /// By how much at most.
    pub largest: f64,
    /// Rows that were not unit vectors before they were normalized.
    pub normalized: u64,
    /// Rows that are not of length 1, though near enough to be stored as they are.
    #[serde(default)]
    pub uneven: u64,
    /// Rows whose stored length strict readers refuse.
    pub outside: u64,
}

impl RowFigures {
    /// Adds the figures of other rows.
    pub fn add(&mut self, other: &RowFigures) {
        self.rows += other.rows;
        self.changed += other.changed;
        self.largest = self.largest.max(other.largest);
        self.normalized += other.normalized;
        self.uneven += other.uneven;
        self.outside += other.outside;
    }
}

impl RowLayout {
    /// f32 values, little-endian, and nothing else.
    pub const PLAIN: RowLayout = RowLayout {
        name: "f32",
        front: |_, _| Vec::new(),
        encoding: || Encoding::Plain(DType::F32),
        encode: |rows, block, _, out| {
            out.extend(rows.iter().flat_map(|v| v.to_le_bytes()));
            let count = (rows.len() / block.dim.max(1)) as u64;
            Ok(RowFigures { rows: count, ..RowFigures::default() })
        },
        tell: |_, _, _| {},
    };
}
