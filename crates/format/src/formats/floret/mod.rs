//! floret's text format: a table of rows that words share by hashing, without any words.
//!
//! See docs/formats/floret.md.

mod layout;
mod read;
mod rules;
#[cfg(test)]
mod tests;
mod write;

use super::{Format, FormatInfo, Stop, Sureness};
use crate::model::{Container, Holds, Plan};
use crate::wire::Findings;
use crate::{Error, Input, Options};
use weighbridge_codec::DType;

pub(super) struct Floret;

static INFO: FormatInfo = FormatInfo {
    id: "floret",
    name: "floret text .floret",
    summary: "rows that words share by hashing, as decimal numbers",
    extensions: &["floret"],
    magic: b"",
    writes: true,
    is_folder: false,
    open_ended: false,
    holds: Holds {
        dtypes: &[DType::F32],
        rank: (2, 2),
        empty: false,
        subwords: true,
        ..Holds::NOTHING
    },
    options: &[],
    rules: rules::RULES,
    declarations: false,
};

impl Format for Floret {
    fn info(&self) -> &'static FormatInfo {
        &INFO
    }

    fn probe(&self, input: &Input) -> Sureness {
        if layout::Header::parse(input.source.bytes()).is_some() {
            Sureness::Content
        } else if !input.is_folder && INFO.extensions.contains(&input.extension().as_str()) {
            Sureness::Name
        } else {
            Sureness::No
        }
    }

    fn read(&self, input: &Input, _: &Options, _: &mut Findings) -> Result<Container, Stop> {
        read::read(input)
    }

    fn check(&self, container: &Container, input: &Input, findings: &mut Findings) {
        rules::check(container, input, findings);
    }

    fn lay_out(&self, container: &Container, options: &Options) -> Result<Plan, Error> {
        write::plan(container, options, &INFO)
    }
}
