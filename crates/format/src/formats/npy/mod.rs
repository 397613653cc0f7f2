//! NumPy's `.npy`: one array behind a header that is a Python dict.
//!
//! Versions 1.0, 2.0 and 3.0 are read; what `numpy.save` writes is written, byte for byte. See
//! docs/formats/npy.md.

mod header;
mod literal;
mod read;
mod rules;
mod write;

use super::values::check_finite;
use super::{Format, FormatInfo};
use crate::plan::Holds;

const INFO: FormatInfo = FormatInfo {
    summary: "one array of numbers, as numpy.save writes it",
    extensions: &["npy"],
    magic: &header::MAGIC,
    holds: Holds { dtypes: header::HELD, rank: (0, 32), single: true, ..Holds::NOTHING },
    rules: rules::RULES,
    row_layout: Some(write::ROWS),
    ..FormatInfo::new("npy", "NumPy .npy")
};

pub(super) static FORMAT: Format = Format {
    read: Some(|input, _, _| read::read(input)),
    check: |container, _, findings| check_finite(container, rules::NOT_FINITE, findings),
    lay_out: Some(write::plan),
    ..Format::new(INFO)
};
