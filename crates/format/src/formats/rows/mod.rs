//! `.i8bin` and `.f32bin`: rows of embeddings without a header, described by a `meta.json` beside
//! them, or by one that has their name. See docs/formats/i8bin.md.

mod append;
mod document;
mod front;
mod meta;
mod quantize;
mod read;
mod rules;
mod survey;
#[cfg(test)]
mod tests;
mod write;

use super::{Format, FormatInfo, QuantizedContent, Sureness, head};
use crate::model::{Encoding, Scaled, Scaling};
use crate::plan::Holds;
use crate::source::mistaken;
use crate::wire::numel;
use crate::{Input, OptionSpec};
use std::sync::Arc;
use weighbridge_codec::DType;

/// Which of the two formats; all that sets them apart is said here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    I8,
    F32,
}

impl Kind {
    const fn info(self) -> &'static FormatInfo {
        match self {
            Kind::I8 => &I8_INFO,
            Kind::F32 => &F32_INFO,
        }
    }

    /// The type of the stored values.
    const fn stored(self) -> DType {
        match self {
            Kind::I8 => DType::I8,
            Kind::F32 => DType::F32,
        }
    }

    fn encoding(self) -> Encoding {
        match self {
            Kind::I8 => Encoding::Scaled(Arc::new(CODES)),
            Kind::F32 => Encoding::Plain(DType::F32),
        }
    }

    /// What `meta.json` calls the type.
    const fn type_name(self) -> &'static str {
        match self {
            Kind::I8 => "int8",
            Kind::F32 => "float32",
        }
    }

    /// `scale_factor` of `meta.json`.
    const fn scale_factor(self) -> f64 {
        match self {
            Kind::I8 => 127.0,
            Kind::F32 => 1.0,
        }
    }
}

/// Codes of -127..127; a value is its code divided by 127.
const CODES: Scaled = Scaled { codes: DType::I8, scaling: Scaling::Divisor(127.0) };

const DIM: OptionSpec = OptionSpec {
    name: "dim",
    value: "N",
    choices: &[],
    help: "i8bin, f32bin: values in a row; default is what meta.json says, or 512",
    reading: true,
};

const RENORMALIZE: OptionSpec = OptionSpec {
    name: "renormalize",
    value: "",
    choices: &[],
    help: "i8bin, f32bin: divide every row by its norm after reading it",
    reading: true,
};

const NORMALIZE: OptionSpec = OptionSpec {
    name: "normalize",
    value: "",
    choices: &[],
    help: "i8bin, f32bin: divide every row by its norm before writing it",
    reading: false,
};

const ROUNDING: OptionSpec = OptionSpec {
    name: "rounding",
    value: "HOW",
    choices: &["nearest", "truncate", "nearest-norm"],
    help: "i8bin: round to the nearest code (default), toward zero as the original exporter does, or so that norms stay within 0.992..1.008",
    reading: false,
};

const HOLDS: Holds = Holds {
    rank: (2, 2),
    single: true,
    records: true,
    entries: document::holds_entry,
    ..Holds::NOTHING
};

const I8_INFO: FormatInfo = FormatInfo {
    summary: "unit vectors as int8 codes, with a meta.json beside them",
    extensions: &["i8bin"],
    holds: Holds { scaled: |scaled| *scaled == CODES, ..HOLDS },
    options: &[DIM, RENORMALIZE, NORMALIZE, ROUNDING],
    rules: rules::RULES,
    damage: &[rules::RANGE, rules::CHECKSUM],
    checksums: meta::has_checksum,
    unit_rows: true,
    quantized: Some(QuantizedContent::UnitRows),
    companion: Some(meta::COMPANION_I8),
    row_layout: Some(append::I8),
    ..FormatInfo::new("i8bin", "int8 rows .i8bin")
};

const F32_INFO: FormatInfo = FormatInfo {
    summary: "vectors as f32 values, with a meta.json beside them",
    extensions: &["f32bin"],
    holds: Holds { dtypes: &[DType::F32], ..HOLDS },
    options: &[DIM, RENORMALIZE, NORMALIZE],
    rules: rules::RULES,
    damage: &[rules::CHECKSUM],
    checksums: meta::has_checksum,
    companion: Some(meta::COMPANION_F32),
    row_layout: Some(append::F32),
    ..FormatInfo::new("f32bin", "f32 rows .f32bin")
};

/// Only the name tells. Any bytes may be such rows, so that those of a usual mistake (nothing, zeros,
/// the first bytes of an archive) are a mistake only where a `meta.json` beside them does not say
/// otherwise. Rows of zeros in front of others are nothing unusual.
fn probe(kind: Kind, input: &Input) -> Sureness {
    if !kind.info().fits_name(input) {
        return Sureness::No;
    }
    let head = head(input);
    if mistaken::recognise(head).is_none() {
        return Sureness::Name;
    }
    let about = meta::About::find(input).ok().flatten();
    let said = about.and_then(|about| meta::shape_in(&about.source));
    let said = said.and_then(|shape| numel(&shape));
    let is_said = said.and_then(|n| kind.stored().byte_len(n)) == Some(input.source.len());
    // Of the mistakes, zeros alone begin with one.
    if is_said || head.first() == Some(&0) { Sureness::Content } else { Sureness::Name }
}

pub(super) static I8: Format = Format {
    probe: |input, _| probe(Kind::I8, input),
    read: Some(|input, options, findings| read::read(Kind::I8, input, options, findings)),
    check: rules::check_codes,
    lay_out: Some(|container, options, _| write::plan(Kind::I8, container, options)),
    ..Format::new(I8_INFO)
};

pub(super) static F32: Format = Format {
    probe: |input, _| probe(Kind::F32, input),
    read: Some(|input, options, findings| read::read(Kind::F32, input, options, findings)),
    check: rules::check_floats,
    lay_out: Some(|container, options, _| write::plan(Kind::F32, container, options)),
    ..Format::new(F32_INFO)
};
