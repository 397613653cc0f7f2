//! `weighbridge convert`: another format, with every loss said first.

use super::Files;
use super::output::{carry_out, planned};
use crate::ExitCode;
use crate::args::Convert;
use serde::Serialize;
use std::path::Path;
use weighbridge::codec::DType;
use weighbridge::words::parse_words;
use weighbridge::{Conversion, Error, Formats, Options, Output, Recall, check_changes};

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
    let recall = match args.recall && !args.dry_run {
        true => super::hits::recall_of_written(&container, &output)?,
        false => None,
    };
    if args.json {
        return super::print_json(&Line { conversion: &outcome.conversion, recall: &recall });
    }
    let told = recall.map(|found| format!("  recall   {}\n", super::hits::recall_text(&found)));
    outcome.tell(&told.unwrap_or_default())
}

#[derive(Serialize)]
struct Line<'a> {
    #[serde(flatten)]
    conversion: &'a Conversion,
    #[serde(skip_serializing_if = "Option::is_none")]
    recall: &'a Option<Recall>,
}

/// The type that `--dtype` names; only known ones get this far.
pub(super) fn dtype(name: Option<&str>) -> Option<DType> {
    name.and_then(DType::from_name)
}

/// The words of a file, one a line.
pub(super) fn read_words(path: &Path) -> Result<Vec<String>, Error> {
    parse_words(&super::text_input::read_input(path)?, &path.display().to_string())
}
