//! `weighbridge pull`: a model into the cache folder.

use crate::args::Pull;
use crate::progress::with_bar;
use crate::render::{BOLD, DIM, GREEN, safe, size, styled};
use indicatif::ProgressBar;
use std::io::IsTerminal;
use std::process::ExitCode;
use std::time::Duration;
use weighbridge::Error;
use weighbridge::models::{Origin, Report, Request, pull};

pub(super) fn run(args: &Pull) -> Result<ExitCode, Error> {
    let mut request = Request::from_env()?;
    request.network = args.network;
    request.revision = args.revision.clone();
    request.force = args.force;
    let label = safe(&args.name);
    let pull = while_waiting(&label, || pull(&args.name, &request))?;
    let report = with_bar(pull.bytes(), &label, |progress| pull.write(progress))?;
    if args.json { super::print_json(&report) } else { super::print(&text(&report)) }
}

fn text(report: &Report) -> String {
    let place = safe(&report.model.display().to_string());
    let already = if report.already { "already " } else { "" };
    let line =
        |key: &str, value: &str| format!("  {} {value}\n", styled(GREEN, format!("{key:<8}")));
    let mut out = format!("{} is {already}in {place}\n", styled(BOLD, safe(&report.name)));
    if let Some(from) = &report.from {
        out.push_str(&line("from", &safe(&origin(from))));
    }
    out.push_str(&line("files", &format!("{}, {}", report.files, size(report.bytes))));
    if report.already {
        out.push_str(&format!("  {} --force fetches it again\n", styled(DIM, "hint    ")));
    }
    out
}

fn origin(from: &Origin) -> String {
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

/// Something turns until it is known how much there is to fetch; on a terminal only.
fn while_waiting<T>(label: &str, work: impl FnOnce() -> T) -> T {
    if !std::io::stderr().is_terminal() {
        return work();
    }
    let spinner = ProgressBar::new_spinner().with_message(label.to_owned());
    spinner.enable_steady_tick(Duration::from_millis(100));
    let done = work();
    spinner.finish_and_clear();
    done
}
