//! MCF `.mcf`: a container for quantized models.
//!
//! See docs/formats/mcf.md.

mod carry;
mod index;
mod layout;
mod model_info;
mod payload;
mod quant_info;
mod read;
mod rules;
mod write;

use super::{Format, FormatInfo, Stop};
use crate::model::{Container, Holds, Keeps, Plan, Scaled};
use crate::wire::Findings;
use crate::{Error, Input, OptionSpec, Options};
use weighbridge_codec::DType;

pub(super) struct Mcf;

static INFO: FormatInfo = FormatInfo {
    id: "mcf",
    name: "MCF .mcf",
    summary: "quantized weights of a model with its configuration and tokenizer files",
    extensions: &["mcf"],
    magic: &layout::MAGIC,
    writes: true,
    is_folder: false,
    open_ended: false,
    holds: Holds {
        dtypes: layout::DTYPES,
        scaled: holds_scaled,
        blockwise: true,
        rank: (0, 64),
        empty: false,
        metadata: Keeps::Text,
        vocabulary: true,
        attachments: true,
        ..Holds::NOTHING
    },
    options: &[OptionSpec {
        name: "dedup",
        value: "",
        choices: &[],
        help: "MCF: store tensors with the same content once",
        reading: false,
    }],
    rules: rules::RULES,
    declarations: false,
};

/// One scale for the whole tensor, and codes of eight or four bits.
fn holds_scaled(scaled: &Scaled) -> bool {
    let is_finite =
        |(scale, zero): (f32, Option<f32>)| scale.is_finite() && zero.is_none_or(f32::is_finite);
    scaled.scaling.as_whole().is_some_and(is_finite)
        && matches!(scaled.codes, DType::I8 | DType::I4)
}

impl Format for Mcf {
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
