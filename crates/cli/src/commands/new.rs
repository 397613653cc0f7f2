//! `weighbridge new`: a file out of a description in JSON.

use super::output::{carry_out, planned};
use super::text_input::{read_all, read_input};
use crate::ExitCode;
use crate::args::New;
use std::path::Path;
use weighbridge::{Error, Formats, Options, Output, parse_description};

pub(super) fn run(args: &New, options: &Options) -> Result<ExitCode, Error> {
    let (formats, output) = (Formats::builtin(), args.output.path());
    let format = formats.target(&output.to_string_lossy(), args.to.as_deref())?;
    let (bytes, name) = match args.data == Path::new("-") {
        true => (read_all(std::io::stdin().lock(), "standard input")?, "standard input".to_owned()),
        false => (read_input(&args.data)?, args.data.display().to_string()),
    };
    let container = parse_description(&bytes, &name)?;
    formats.check_options(options, container.format, format)?;
    let plan =
        planned(&args.data, || format.plan(&container, options))?.accept_losses(args.allow_loss);
    let output = Output::new(output).overwrite(args.force);
    let outcome = carry_out(&plan, &output, args.dry_run)?;
    if args.json {
        return super::print_json(&outcome.conversion);
    }
    outcome.tell("")
}
