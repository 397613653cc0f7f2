//! A Hugging Face model directory: config.json, the tensors, the tokenizer's files.
//!
//! Settings that formats with metadata need become metadata under EMBD's key names; the files
//! themselves are attachments. See docs/formats/hf.md.

mod describe;
mod files;
mod read;
mod settings;
mod tokenizer;
mod write;

pub(super) use describe::{config_of, describe_files};
pub(super) use read::{HEADER, header_name, headers};

use super::values::check_finite;
use super::{Format, FormatInfo, Sureness, embd, safetensors};
use crate::Error;
use crate::model::Container;
use crate::plan::{Holds, Keeps};
use crate::wire::Findings;
use crate::{Input, rules};

rules! {
    MISSING "HF-01" Error "a file that a model directory needs is missing or unreadable";
    JSON "HF-02" Error "a file is not the JSON it should be";
    TENSORS "HF-03" Error "the tensors are in a form that is not read";
    VOCABULARY "HF-04" Error "the vocabulary is malformed";
    TOKENIZER "HF-05" Warning "the tokenizer is none that a vocabulary and a few settings describe";
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
    ..FormatInfo::new("hf", "Hugging Face directory")
};

pub(super) static FORMAT: Format = Format {
    probe,
    read: Some(|input, _, findings| read::read(input, findings)),
    check,
    lay_out: Some(|container, _, _| write::plan(container)),
    ..Format::new(INFO)
};

fn probe(input: &Input, _: &FormatInfo) -> Sureness {
    if input.is_folder && input.folder.exists("config.json") {
        Sureness::Content
    } else {
        Sureness::No
    }
}

fn check(container: &Container, _: &Input, findings: &mut Findings) -> Result<(), Error> {
    check_finite(container, NOT_FINITE, findings)?;
    let rows = embd::bert_facts(container, "vocab_size");
    let tokens = container.vocabulary.as_ref().map(|v| v.len() as u64);
    if let (Some(rows), Some(tokens)) = (rows, tokens)
        && rows != tokens
    {
        let finding = DISAGREES.at(0..0).field("vocabulary");
        findings.push(finding.expected(format!("{rows} tokens, a row each")).found(tokens));
    }
    let keys = ["vocab_size", "num_layers", "hidden_size", "intermediate_size", "max_position_emb"];
    for key in keys {
        if let (Some(text), Some(tensors)) = (container.text(key), embd::bert_facts(container, key))
            && text.parse() != Ok(tensors)
        {
            let finding = DISAGREES.at(0..0).field(format!("config.json {key:?}"));
            findings.push(finding.expected(format!("{tensors}, from the tensors")).found(text));
        }
    }
    Ok(())
}
