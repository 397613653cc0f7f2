//! The rows of a window, which come from several places.

use super::directed::is_zero;
use super::reuse::EarlierFile;
use weighbridge_format::wire::to_len;
use weighbridge_format::{Encoding, Error};

/// The rows of a window: as values that are yet to be encoded, or as the bytes that they become.
pub(super) struct Gathered {
    row_bytes: usize,
    values: Vec<f32>,
    bytes: Vec<u8>,
    rows: Vec<Row>,
    is_all_values: bool,
    /// How many rows the values are of.
    encoded: usize,
}

#[derive(Clone, Copy)]
enum Row {
    /// The number among the rows that are encoded.
    Values(usize),
    /// Where its bytes begin.
    Bytes(usize),
}

impl Gathered {
    pub(super) fn new(row_bytes: u64, rows: usize) -> Gathered {
        let row_bytes = to_len(row_bytes);
        let (values, bytes, rows) = (Vec::new(), Vec::new(), Vec::with_capacity(rows));
        Gathered { row_bytes, values, bytes, rows, is_all_values: true, encoded: 0 }
    }

    pub(super) fn add_values(&mut self, vector: &[f32]) {
        self.values.extend_from_slice(vector);
        self.rows.push(Row::Values(self.encoded));
        self.encoded += 1;
    }

    pub(super) fn add_bytes(
        &mut self,
        read: impl FnOnce(&mut Vec<u8>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        self.is_all_values = false;
        self.rows.push(Row::Bytes(self.bytes.len()));
        read(&mut self.bytes)
    }

    /// A row of an earlier file: as it is stored there where that is how it will be.
    pub(super) fn add_earlier(
        &mut self,
        file: &EarlierFile,
        row: u64,
        encoding: &Encoding,
    ) -> Result<(), Error> {
        if file.tensor.encoding != *encoding {
            self.add_values(&file.values(row)?);
            return Ok(());
        }
        self.add_bytes(|out| {
            let mut buffer = Vec::new();
            out.extend_from_slice(file.tensor.row_bytes(row, 1, &mut buffer)?);
            Ok(())
        })
    }

    /// The same as a row before.
    pub(super) fn repeat(&mut self, place: usize) {
        self.is_all_values = false;
        self.rows.extend(self.rows.get(place).copied());
    }

    /// The values of rows that are yet to be encoded.
    pub(super) fn values(&self) -> &[f32] {
        &self.values
    }

    /// The first row with values of `dim` zeros.
    pub(super) fn first_zero(&self, dim: usize) -> Option<usize> {
        let is_zero = |row: &Row| match row {
            Row::Values(number) => {
                self.values.get(number * dim..(number + 1) * dim).is_some_and(is_zero)
            }
            Row::Bytes(_) => false,
        };
        self.rows.iter().position(is_zero)
    }

    /// The bytes of all rows in their order; `encoded` are those of the values.
    pub(super) fn in_order(&self, encoded: Vec<u8>) -> Vec<u8> {
        if self.is_all_values {
            return encoded;
        }
        let mut out = Vec::with_capacity(self.rows.len() * self.row_bytes);
        for row in &self.rows {
            let (from, start) = match row {
                Row::Values(number) => (&*encoded, number * self.row_bytes),
                Row::Bytes(start) => (&*self.bytes, *start),
            };
            out.extend_from_slice(from.get(start..start + self.row_bytes).unwrap_or_default());
        }
        out
    }
}
