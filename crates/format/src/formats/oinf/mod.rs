//! OINF `.oinf`: size variables, typed metadata and tensors, versions 1 and 2.
//!
//! See docs/formats/oinf.md.

mod carry;
mod layout;
mod quant;
mod read;
mod rules;
mod tensors;
mod values;
mod write;

use super::{Format, FormatInfo};
use crate::OptionSpec;
use crate::model::Scaling;
use crate::plan::{Holds, Keeps};

const INFO: FormatInfo = FormatInfo {
    summary: "size variables, typed metadata and tensors of 22 types, packed and scaled ones too",
    extensions: &["oinf"],
    magic: &layout::MAGIC,
    holds: Holds {
        dtypes: layout::DTYPES_WRITTEN,
        scaled: |s| matches!(s.scaling, Scaling::Affine { .. }),
        metadata: Keeps::Typed,
        sizevars: true,
        vocabulary: true,
        attachments: true,
        declared: |e| layout::DTYPES_WRITTEN.contains(&e.stored()),
        records: true,
        ..Holds::NOTHING
    },
    options: &[OptionSpec {
        name: "oinf-version",
        value: "VERSION",
        choices: &["1", "2"],
        help: "OINF version; default 1, or 2 where tensors have scales",
        reading: false,
    }],
    rules: rules::RULES,
    damage: &[rules::BOOLEAN, rules::TERNARY],
    model_rule: Some(crate::spec::DISAGREES),
    declarations: true,
    ..FormatInfo::new("oinf", "OINF .oinf")
};

pub(super) static FORMAT: Format = Format {
    read: Some(|input, _, findings| read::read(input, findings)),
    check: rules::check,
    lay_out: Some(write::plan),
    ..Format::new(INFO)
};
