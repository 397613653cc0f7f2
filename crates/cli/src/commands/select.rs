//! `weighbridge select`: some words of a file.

use super::convert::{as_json, text};
use crate::args::Select;
use crate::progress::with_bar;
use crate::render::{YELLOW, safe, styled};
use std::io::Read;
use std::path::Path;
use std::process::ExitCode;
use weighbridge::words::{Selection, parse_words, read_words, select};
use weighbridge::{Error, Options};

/// Words that are named of those that were not found.
const NAMED: usize = 5;

pub(super) fn run(args: &Select, options: Options) -> Result<ExitCode, Error> {
    let words = if args.words == Path::new("-") {
        let (name, mut bytes) = ("standard input", Vec::new());
        let read = std::io::stdin().lock().read_to_end(&mut bytes);
        read.map_err(|e| Error::io(Path::new(name), e))?;
        parse_words(&bytes, name)?
    } else {
        read_words(&args.words)?
    };
    let selection = Selection {
        to: args.to.clone(),
        ignore_unknown: args.ignore_unknown,
        options,
        allow_loss: args.allow_loss,
        force: args.force,
    };
    let (conversion, unknown) = select(&args.file, &words, &args.output, &selection)?;
    if !args.dry_run {
        let (total, label) = (conversion.plan.size(), args.output.display().to_string());
        with_bar(total, &safe(&label), |progress| conversion.write(progress))?;
    }
    let kept = conversion.container.word_matrix().map_or(0, |found| found.word_rows());
    if args.json {
        let mut object = as_json(&conversion, args.dry_run);
        object["words"] = kept.into();
        object["unknown"] = unknown.into();
        return super::print_json(&object);
    }
    let mut out = text(&conversion, args.dry_run);
    out.push_str(&format!("  {} {kept}\n", styled(crate::render::GREEN, "words   ")));
    if !unknown.is_empty() {
        let mut named: Vec<_> = unknown.iter().take(NAMED).map(|w| format!("{w:?}")).collect();
        if unknown.len() > NAMED {
            named.push("...".to_owned());
        }
        let line = format!("{} of {}: {}", unknown.len(), words.len(), named.join(", "));
        out.push_str(&format!("  {} {}\n", styled(YELLOW, "unknown "), safe(&line)));
    }
    super::print(&out)
}
