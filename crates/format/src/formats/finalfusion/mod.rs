//! finalfusion `.fifu`: word embeddings with subwords, plain or product-quantized.
//!
//! Two dialects share the magic: the early *draft* of the specification, and what the software
//! became. Both are read, the second is written unless asked otherwise. See
//! docs/formats/finalfusion.md.

mod layout;
mod metadata;
mod read;
mod rules;
mod storage;
mod vocabulary;
mod write;

#[cfg(test)]
mod tests;

use super::{Format, FormatInfo, Stop};
use crate::model::{Container, Holds, Keeps, Plan};
use crate::wire::Findings;
use crate::{Error, Input, OptionSpec, Options};
use weighbridge_codec::DType;

pub(super) struct Finalfusion;

static INFO: FormatInfo = FormatInfo {
    id: "finalfusion",
    name: "finalfusion .fifu",
    summary: "word embeddings with subwords, plain or product-quantized",
    extensions: &["fifu"],
    magic: layout::MAGIC,
    writes: true,
    is_folder: false,
    open_ended: false,
    holds: Holds {
        dtypes: &[DType::F32],
        product: true,
        rank: (1, 2),
        empty: false,
        metadata: Keeps::Text,
        vocabulary: true,
        subwords: true,
        ..Holds::NOTHING
    },
    options: &[OptionSpec {
        name: "dialect",
        value: "DIALECT",
        choices: &["current", "draft"],
        help: "finalfusion: what the software writes, or the early draft of the specification",
        reading: false,
    }],
    rules: rules::RULES,
    declarations: false,
};

impl Format for Finalfusion {
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
