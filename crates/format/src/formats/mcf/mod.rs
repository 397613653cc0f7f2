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

use super::{Format, FormatInfo, MetadataChange, QuantizedContent, flag_names, hf};
use crate::OptionSpec;
use crate::model::{Scaled, Scaling};
use crate::plan::{Holds, Keeps};
use weighbridge_codec::DType;

const INFO: FormatInfo = FormatInfo {
    summary: "quantized weights of a model with its configuration and tokenizer files",
    extensions: &["mcf"],
    magic: &layout::MAGIC,
    holds: Holds {
        dtypes: layout::DTYPES,
        scaled: holds_scaled,
        blocks: layout::CODECS,
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
    damage: &[rules::SHARE, rules::MOST_NEGATIVE, rules::SCALE, rules::ROW_END],
    model_rule: Some(crate::spec::DISAGREES),
    quantized: Some(QuantizedContent::Weights),
    flags: |c| flag_names(c, &["aligned"]),
    fixed_metadata: |container, key, change| match change {
        // What ModelInfo says counts before what the files say.
        MetadataChange::Set(_) => Ok(None),
        MetadataChange::Remove => Ok(hf::describe_files(&container.attachments)?.0.says(key)),
    },
    ..FormatInfo::new("mcf", "MCF .mcf")
};

/// One scale for the whole tensor, or none, and codes of eight or four bits.
fn holds_scaled(scaled: &Scaled) -> bool {
    let is_finite =
        |(scale, zero): (f32, Option<f32>)| scale.is_finite() && zero.is_none_or(f32::is_finite);
    match &scaled.scaling {
        Scaling::Unknown => matches!(scaled.codes, DType::I8 | DType::U4),
        known => {
            known.as_per_tensor().is_some_and(is_finite)
                && matches!(scaled.codes, DType::I8 | DType::I4)
        }
    }
}

pub(super) static FORMAT: Format = Format {
    read: Some(|input, _, findings| read::read(input, findings)),
    check: rules::check,
    lay_out: Some(write::plan),
    ..Format::new(INFO)
};
