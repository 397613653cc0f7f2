//! EMBD `.weights`: weights and vocabulary of a sentence embedder.
//!
//! Two layouts share the magic: *indexed* is the specification's, *stream* is what its reference
//! converter writes. See docs/formats/embd.md.

mod layout;
mod metadata;
mod read;
mod rules;
mod sections;
mod stream;
mod write;

pub(super) use metadata::derived as bert_facts;

use super::{Format, FormatInfo, Stop};
use crate::model::{Container, Holds, Keeps, Plan};
use crate::wire::Findings;
use crate::{Error, Input, OptionSpec, Options};

pub(super) struct Embd;

static INFO: FormatInfo = FormatInfo {
    id: "embd",
    name: "EMBD .weights",
    summary: "weights and vocabulary of a sentence embedder, with checksums",
    extensions: &["weights"],
    magic: &layout::MAGIC,
    writes: true,
    is_folder: false,
    open_ended: false,
    holds: Holds {
        dtypes: layout::DTYPES,
        rank: (1, 4),
        metadata: Keeps::Text,
        vocabulary: true,
        ..Holds::NOTHING
    },
    options: &[
        OptionSpec {
            name: "layout",
            value: "LAYOUT",
            choices: &["indexed", "stream"],
            help: "EMBD layout: the specification's, or the simpler one of its reference converter",
            reading: false,
        },
        OptionSpec {
            name: "created-at",
            value: "TIME",
            choices: &[],
            help: "EMBD created_at, as 2025-01-16T12:00:00Z; default SOURCE_DATE_EPOCH or now",
            reading: false,
        },
    ],
    rules: rules::RULES,
    declarations: false,
};

impl Format for Embd {
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
