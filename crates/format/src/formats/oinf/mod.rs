//! OINF `.oinf`: size variables, typed metadata and tensors, versions 1 and 2.
//!
//! See docs/formats/oinf.md.

mod carry;
mod layout;
mod quant;
mod read;
mod rules;
mod values;
mod write;

use super::{Format, FormatInfo, Stop};
use crate::model::{Container, Holds, Keeps, Plan, Scaling};
use crate::wire::Findings;
use crate::{Error, Input, OptionSpec, Options};

pub(super) struct Oinf;

static INFO: FormatInfo = FormatInfo {
    id: "oinf",
    name: "OINF .oinf",
    summary: "size variables, typed metadata and tensors of 22 types, packed and scaled ones too",
    extensions: &["oinf"],
    magic: &layout::MAGIC,
    writes: true,
    is_folder: false,
    open_ended: false,
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
    declarations: true,
};

impl Format for Oinf {
    fn info(&self) -> &'static FormatInfo {
        &INFO
    }

    fn read(&self, input: &Input, _: &Options, findings: &mut Findings) -> Result<Container, Stop> {
        read::read(input, findings)
    }

    fn check(&self, container: &Container, input: &Input, findings: &mut Findings) {
        rules::check(container, input, findings);
    }

    fn lay_out(&self, container: &Container, options: &Options) -> Result<Plan, Error> {
        write::plan(container, options, &INFO)
    }
}
