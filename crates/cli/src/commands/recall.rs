//! `weighbridge recall`: how many neighbours stay the same between two files.

use super::Files;
use crate::ExitCode;
use crate::args::Recall;
use crate::progress::with_bar;
use crate::render::safe;
use weighbridge::index::RecallSettings;
use weighbridge::{Error, Index, Options};

pub(super) fn run(args: &Recall, options: &Options, files: Files) -> Result<ExitCode, Error> {
    let tensor = args.tensor.as_deref();
    let first = Index::of(&files.open(&args.first, options)?, tensor)?;
    let second = Index::of(&files.open(&args.second, &Options::default())?, tensor)?;
    let queries = args.queries.as_ref();
    let queries = queries.map(|path| files.rows(path));
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
