//! `weighbridge select`: some words of a file.

use super::Files;
use super::convert::{dtype, read_words};
use super::output::{carry_out, planned};
use super::text_input::read_all;
use crate::ExitCode;
use crate::args::Select;
use crate::render::{GREEN, YELLOW, safe, styled};
use serde::Serialize;
use std::path::Path;
use weighbridge::words::{Selected, parse_words, select};
use weighbridge::{Advice, Conversion, Edit, Error, Formats, Options, Output};

/// Words that are named of those that were not found.
const NAMED: usize = 5;

#[derive(Serialize)]
struct Line<'a> {
    #[serde(flatten)]
    conversion: &'a Conversion,
    words: u64,
    unknown: &'a [String],
}

pub(super) fn run(args: &Select, options: &Options, files: Files) -> Result<ExitCode, Error> {
    let files = files.accepting(&args.damage).growing(&args.growth);
    let words = wanted(&args.words)?;
    let (formats, output) = (Formats::builtin(), args.output.path());
    let format = formats.target(&output.to_string_lossy(), args.to.as_deref())?;
    let container = files.open(&args.file, options)?;
    formats.check_options(options, container.format, format)?;
    let Selected { container, unknown, .. } = select(&container, &words)?;
    if let Some(first) = unknown.first().filter(|_| !args.ignore_unknown) {
        let what = format!("{} of {} words are not in the file", unknown.len(), words.len());
        let advice = Advice::from(format!("the first is {first:?}"))
            .and(Advice::set("ignore-unknown", "goes on without them"));
        return Err(Error::refused(what, advice));
    }
    let mut edit = Edit::new();
    edit.dtype = dtype(args.dtype.as_deref());
    let container = edit.apply(container)?;
    let plan =
        planned(&args.file, || format.plan(&container, options))?.accept_losses(args.allow_loss);
    let output = Output::new(output).overwrite(args.force);
    let outcome = carry_out(&plan, &output, args.dry_run)?;
    let kept = container.word_matrix().map_or(0, |found| found.word_rows());
    if args.json {
        let conversion = &outcome.conversion;
        return super::print_json(&Line { conversion, words: kept, unknown: &unknown });
    }
    let mut out = format!("  {} {kept}\n", styled(GREEN, "words   "));
    if !unknown.is_empty() {
        let mut named: Vec<_> = unknown.iter().take(NAMED).map(|w| format!("{w:?}")).collect();
        if unknown.len() > NAMED {
            named.push("...".to_owned());
        }
        let line = format!("{} of {}: {}", unknown.len(), words.len(), named.join(", "));
        out.push_str(&format!("  {} {}\n", styled(YELLOW, "unknown "), safe(&line)));
    }
    outcome.tell(&out)
}

/// The words to keep: those of a file, or of standard input.
fn wanted(path: &Path) -> Result<Vec<String>, Error> {
    if path != Path::new("-") {
        return read_words(path);
    }
    let name = "standard input";
    parse_words(&read_all(std::io::stdin().lock(), name)?, name)
}
