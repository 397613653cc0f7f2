//! `weighbridge convert`: another format, with every loss said first.

use super::Files;
use super::output::{carry_out, planned};
use crate::args::Convert;
use std::path::Path;
use std::process::ExitCode;
use weighbridge::codec::DType;
use weighbridge::words::parse_words;
use weighbridge::{Error, Formats, Options, Output, check_changes};

pub(super) fn run(args: &Convert, options: &Options, files: Files) -> Result<ExitCode, Error> {
    let files = files.accepting(&args.damage).growing(&args.growth);
    let (formats, output) = (Formats::builtin(), args.output.path());
    let format = formats.target(&output.to_string_lossy(), args.to.as_deref())?;
    let container = files.open(&args.input, options)?;
    formats.check_options(options, container.format, format)?;
    let mut edit = args.metadata.edit();
    edit.select.clone_from(&args.select);
    edit.exclude.clone_from(&args.exclude);
    edit.rename.clone_from(&args.rename);
    edit.dtype = dtype(args.dtype.as_deref());
    edit.words = args.words.as_deref().map(read_words).transpose()?;
    edit.explicit = args.explicit;
    check_changes(&container, &edit, format)?;
    let mut container = edit.apply(container)?;
    super::attach_records(&mut container, &args.records)?;
    let plan =
        planned(&args.input, || format.plan(&container, options))?.accept_losses(args.allow_loss);
    let output = Output::new(output).overwrite(args.force);
    let outcome = carry_out(&plan, &output, args.dry_run)?;
    if args.json { super::print_json(&outcome.conversion) } else { outcome.tell("") }
}

/// The type that `--dtype` names; only known ones get this far.
pub(super) fn dtype(name: Option<&str>) -> Option<DType> {
    name.and_then(DType::from_name)
}

/// The words of a file, one a line.
pub(super) fn read_words(path: &Path) -> Result<Vec<String>, Error> {
    parse_words(&super::text_input::read_input(path)?, &path.display().to_string())
}
