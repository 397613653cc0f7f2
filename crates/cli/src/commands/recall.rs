//! `weighbridge recall`: how many neighbours stay the same between two files.

use super::Files;
use crate::args::Recall;
use crate::progress::with_bar;
use crate::render::safe;
use std::process::ExitCode;
use weighbridge::index::RecallSettings;
use weighbridge::{Error, Options};

pub(super) fn run(args: &Recall, options: &Options, files: Files) -> Result<ExitCode, Error> {
    let first = files.index(&args.first, options, &args.tensor, &None)?;
    let second = files.index(&args.second, &Options::default(), &args.tensor, &None)?;
    let queries = args.queries.as_ref();
    let queries = queries.map(|path| files.index(path, &Options::default(), &None, &None));
    let queries = queries.transpose()?;
    let mut settings = RecallSettings::default();
    settings.k = args.k;
    settings.metric = args.metric.metric();
    settings.sample = args.sample;
    settings.seed = args.seed;
    let label = safe(&args.second.display().to_string());
    let found = with_bar(&label, |progress| {
        weighbridge::recall(&first, &second, queries.as_ref(), &settings, progress)
    })?;
    if args.json {
        return super::print_json(&found);
    }
    super::print_text(&(super::hits::recall_text(&found) + "\n"))
}
