//! safetensors: a JSON header and the tensors behind it, or several such files under an index.
//!
//! It is the lossless hub: what it can't say itself travels in one metadata entry, see [`hub`] and
//! docs/formats/safetensors.md.

mod header;
mod hub;
mod read;
mod rules;
mod shards;
mod write;

pub(super) use header::{DTYPES, DTYPES_HELD, Header, header_text};
pub(super) use read::read_file;
pub(super) use shards::read_index;
pub(super) use write::{Written, assemble, with_header};

use super::values::check_finite;
use super::{Format, FormatInfo, Stop, Sureness, by_content_or_name, head};
use crate::model::Container;
use crate::plan::{Holds, Keeps};
use crate::wire::Findings;
use crate::{Input, OptionSpec, Options};

const INFO: FormatInfo = FormatInfo {
    summary: "tensors behind a JSON header; holds everything the others hold",
    extensions: &["safetensors"],
    holds: Holds {
        dtypes: header::DTYPES_HELD,
        metadata: Keeps::Typed,
        sizevars: true,
        vocabulary: true,
        subwords: true,
        attachments: true,
        declared: hub::can_name,
        records: true,
        ..Holds::NOTHING
    },
    options: &[OptionSpec {
        name: "keep-codes",
        value: "",
        choices: &[],
        help: "safetensors: keep the integers of scaled tensors instead of their f32 values",
        reading: false,
    }],
    rules: rules::RULES,
    model_rule: Some(crate::spec::DISAGREES),
    ..FormatInfo::new("safetensors", "safetensors")
};

pub(super) static FORMAT: Format = Format {
    probe,
    read: Some(read),
    check: |container, _, findings| check_finite(container, rules::NOT_FINITE, findings),
    lay_out: Some(write::plan),
    ..Format::new(INFO)
};

fn probe(input: &Input, info: &FormatInfo) -> Sureness {
    if input.name.ends_with(shards::INDEX_SUFFIX) {
        return Sureness::Content;
    }
    // No magic: a plausible length in front of a JSON object.
    let looks_right = match head(input) {
        [l0, l1, l2, l3, l4, l5, l6, l7, b'{', ..] => {
            let length = u64::from_le_bytes([*l0, *l1, *l2, *l3, *l4, *l5, *l6, *l7]);
            (2..=header::LONGEST).contains(&length)
        }
        _ => false,
    };
    by_content_or_name(looks_right, input, info)
}

fn read(input: &Input, _: &Options, findings: &mut Findings) -> Result<Container, Stop> {
    if input.name.ends_with(shards::INDEX_SUFFIX) {
        shards::read_index(input, &input.source, "", findings)
    } else {
        read_file(&input.source, findings)
    }
}
