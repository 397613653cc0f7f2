//! `weighbridge merge`: shards of one input to one file, in the input's order.

use super::Files;
use super::output::Outcome;
use crate::ExitCode;
use crate::args::Merge;
use crate::progress::{last_words, with_bar};
use crate::render::{DIM, grouped, safe, styled};
use serde::Serialize;
use weighbridge::embed::{self, EmbeddedFile, MergeSettings};
use weighbridge::{Conversion, Error, Formats, Options, Output};

#[derive(Serialize)]
struct Line<'a> {
    #[serde(flatten)]
    conversion: &'a Conversion,
    rows: u64,
    dimensions: usize,
    shards: usize,
}

pub(super) fn run(args: &Merge, options: &Options, files: Files) -> Result<ExitCode, Error> {
    let format = Formats::builtin().target(&args.output.to_string_lossy(), args.to.as_deref())?;
    let output = Output::new(&args.output).overwrite(args.force);
    let mut settings = MergeSettings::new(output, format);
    settings.output_type = args.stored.output_type;
    settings.ranges = files.ranges(&args.stored, options)?;
    let label = safe(&args.output.display().to_string());
    let words = last_words("nothing was written; the same command goes on");
    let file: EmbeddedFile = with_bar(&label, |progress| -> Result<EmbeddedFile, Error> {
        let file = embed::merge(&settings, &args.shards, progress)?;
        file.write(progress)?;
        Ok(file)
    })?;
    drop(words);
    let outcome = Outcome::new(&file.plan, &file.output, true)?;
    let (rows, dimensions, shards) = (file.rows, file.dimensions, args.shards.len());
    if args.json {
        let conversion = &outcome.conversion;
        return super::print_json(&Line { conversion, rows, dimensions, shards });
    }
    let line = format!("{} vectors of {dimensions} values, of {shards} shards", grouped(rows));
    super::report(&format!("{}  {} {line}\n", outcome.text(), styled(DIM, "rows    ")))
}
