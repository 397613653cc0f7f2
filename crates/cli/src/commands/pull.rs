//! `weighbridge pull`: a model into the cache folder.

use crate::ExitCode;
use crate::args::Pull;
use crate::progress::{last_words, while_turning, with_bar};
use crate::render::{BOLD, DIM, GREEN, safe, size, styled};
use weighbridge::Error;
use weighbridge::models::{PullSettings, Pulled, PulledFrom, pull};

pub(super) fn run(args: &Pull) -> Result<ExitCode, Error> {
    let mut settings = PullSettings::from_env()?;
    settings.network = args.network;
    settings.revision.clone_from(&args.revision);
    settings.force = args.force;
    let label = safe(&args.name);
    let words = last_words("the model is not there yet; the same command starts again");
    let pull = while_turning(&label, || pull(&args.name, &settings))?;
    if args.dry_run {
        let report = pull.report();
        return if args.json {
            super::print_json(report)
        } else {
            super::print_text(&text(report, "would be"))
        };
    }
    let report = with_bar(&label, |progress| pull.write(progress))?;
    drop(words);
    if args.json { super::print_json(&report) } else { super::report(&text(&report, "is")) }
}

fn text(report: &Pulled, is: &str) -> String {
    let place = safe(&report.model.display().to_string());
    let is = if report.already { "is already" } else { is };
    let line =
        |key: &str, value: &str| format!("  {} {value}\n", styled(GREEN, format!("{key:<8}")));
    let mut out = format!("{} {is} in {place}\n", styled(BOLD, safe(&report.name)));
    if let Some(from) = &report.from {
        out.push_str(&line("from", &safe(&origin(from))));
    }
    out.push_str(&line("files", &format!("{}, {}", report.files, size(report.bytes))));
    if report.already {
        out.push_str(&format!("  {} --force fetches it again\n", styled(DIM, "hint    ")));
    }
    out
}

pub(super) fn origin(from: &PulledFrom) -> String {
    let place = match from.kind.as_str() {
        "pypi" => format!("PyPI, package {}", from.place),
        "hub-cache" => format!("the hub's cache, {}", from.place),
        _ => from.place.clone(),
    };
    match (&from.revision, from.kind.as_str()) {
        // The folder in the hub's cache has the commit in its name.
        (Some(revision), "pypi" | "hub") => format!("{place}, {revision}"),
        _ => place,
    }
}
