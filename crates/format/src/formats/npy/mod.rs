//! NumPy's `.npy`: one array behind a header that is a Python dict.
//!
//! Versions 1.0, 2.0 and 3.0 are read; what `numpy.save` writes is written, byte for byte. See
//! docs/formats/npy.md.

mod header;
mod literal;
mod read;
mod rules;
mod write;

use super::values::check_finite;
use super::{Format, FormatInfo, Stop};
use crate::model::{Container, Holds, Plan};
use crate::wire::Findings;
use crate::{Error, Input, Options};

pub(super) struct Npy;

static INFO: FormatInfo = FormatInfo {
    id: "npy",
    name: "NumPy .npy",
    summary: "one array of numbers, as numpy.save writes it",
    extensions: &["npy"],
    magic: &header::MAGIC,
    writes: true,
    is_folder: false,
    open_ended: false,
    holds: Holds { dtypes: header::HELD, rank: (0, 32), single: true, ..Holds::NOTHING },
    options: &[],
    rules: rules::RULES,
    declarations: false,
};

impl Format for Npy {
    fn info(&self) -> &'static FormatInfo {
        &INFO
    }

    fn read(&self, input: &Input, _: &Options, _: &mut Findings) -> Result<Container, Stop> {
        read::read(input)
    }

    fn check(&self, container: &Container, _: &Input, findings: &mut Findings) {
        check_finite(container, rules::NOT_FINITE, findings);
    }

    fn lay_out(&self, container: &Container, options: &Options) -> Result<Plan, Error> {
        write::plan(container, options, &INFO)
    }
}
