//! A Hugging Face model directory: config.json, the tensors, the tokenizer's files.
//!
//! Settings that formats with metadata need become metadata under EMBD's key names; the files
//! themselves are attachments. See docs/formats/hf.md.

mod describe;
mod files;
mod nested;
mod read;
mod tokenizer;
mod write;

pub(super) use describe::{Description, describe_files};
pub(super) use read::{HEADER, header_name, headers};

use super::values::check_finite;
use super::{Format, FormatInfo, Sureness, safetensors};
use crate::plan::{Holds, Keeps};
use crate::{Input, rules};

rules! {
    MISSING "HF-01" Error "a file that a model directory needs is missing or unreadable";
    JSON "HF-02" Error "a file is not the JSON it should be";
    TENSORS "HF-03" Error "the tensors are in a form that is not read";
    VOCABULARY "HF-04" Error "the vocabulary is malformed";
    TOKENIZER "HF-05" Warning "the tokenizer is not one that a vocabulary and a few settings describe";
    DISAGREES "HF-06" Error "config.json and the tensors disagree";
    NOT_FINITE "HF-07" Warning "a value is not a finite number";
}

const INFO: FormatInfo = FormatInfo {
    summary: "config.json, model.safetensors or its shards, and the tokenizer's files",
    is_folder: true,
    holds: Holds {
        dtypes: safetensors::DTYPES_HELD,
        metadata: Keeps::Text,
        vocabulary: true,
        attachments: true,
        ..Holds::NOTHING
    },
    rules: RULES,
    model_rule: Some(DISAGREES),
    fixed_metadata: |container, key, _| match key {
        "model_name" => Ok(Some("it is the name of the folder")),
        "format" => Ok(Some("the header of every model.safetensors has its own")),
        _ => Ok(describe_files(&container.attachments)?.0.says(key)),
    },
    ..FormatInfo::new("hf", "Hugging Face directory")
};

pub(super) static FORMAT: Format = Format {
    probe,
    read: Some(|input, _, findings| read::read(input, findings)),
    check: |container, _, findings| check_finite(container, NOT_FINITE, findings),
    lay_out: Some(|container, _, _| write::plan(container)),
    ..Format::new(INFO)
};

fn probe(input: &Input, _: &FormatInfo) -> Sureness {
    let has_model = || input.folder.exists("config.json") || nested::is_static(&*input.folder);
    if input.is_folder && has_model() { Sureness::Content } else { Sureness::No }
}
