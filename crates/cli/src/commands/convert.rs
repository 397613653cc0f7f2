//! `weighbridge convert`: another format, with every loss said first.

use crate::args::Convert;
use crate::progress::with_bar;
use crate::render::{self, BOLD, DIM, GREEN, YELLOW, safe, styled};
use serde_json::json;
use std::process::ExitCode;
use weighbridge::{Conversion, Error, Options, Request, convert};

pub(super) fn run(args: &Convert, options: Options) -> Result<ExitCode, Error> {
    let request = Request {
        to: args.to.clone(),
        select: args.select.clone(),
        exclude: args.exclude.clone(),
        rename: args.rename.clone(),
        set: args.set.clone(),
        words: args.words.clone(),
        explicit: args.explicit,
        options,
        allow_loss: args.allow_loss,
        force: args.force,
    };
    let conversion = convert(&args.input, &args.output, &request)?;
    if !args.dry_run {
        let (total, label) = (conversion.plan.size(), args.output.display().to_string());
        with_bar(total, &label, |progress| conversion.write(progress))?;
    }
    if args.json {
        super::print_json(&as_json(&conversion, args.dry_run))
    } else {
        super::print(&text(&conversion, args.dry_run))
    }
}

pub(super) fn as_json(c: &Conversion, dry_run: bool) -> serde_json::Value {
    let files: Vec<_> = c
        .paths()
        .iter()
        .zip(&c.plan.files)
        .map(|(p, f)| json!({"file": p, "bytes": f.size}))
        .collect();
    json!({
        "from": c.container.format,
        "to": c.format.info().id,
        "written": !dry_run,
        "files": files,
        "needs": c.obstacle().filter(|_| dry_run).map(|o| o.to_string()),
        "report": c.plan.report,
    })
}

pub(super) fn text(c: &Conversion, dry_run: bool) -> String {
    let report = &c.plan.report;
    let verb = if dry_run { "would write" } else { "wrote" };
    let mut out = String::new();
    let mut line = |path: &std::path::Path, what: String| {
        let name = styled(BOLD, safe(&path.display().to_string()));
        out.push_str(&format!("{verb} {name}: {}, {what}\n", c.format.info().name));
    };
    if c.plan.is_folder {
        let files = c.plan.files.len();
        line(&c.output, format!("{files} files, {}", render::size(c.plan.size())));
    } else {
        for (path, file) in c.paths().iter().zip(&c.plan.files) {
            line(path, render::size(file.size));
        }
    }
    out.push_str(&outcome(report));
    if dry_run && let Some(obstacle) = c.obstacle() {
        let needed = match obstacle {
            Error::Loss(_) => "--allow-loss".to_owned(),
            other => other.to_string(),
        };
        out.push_str(&format!("  {} {}\n", styled(YELLOW, "needs   "), safe(&needed)));
    }
    out
}

/// What is kept, stored otherwise, lost and left out.
pub(super) fn outcome(report: &weighbridge::model::Report) -> String {
    let mut out = String::new();
    let mut part = |label: String, items: Vec<String>| {
        const MOST: usize = 12;
        for item in items.iter().take(MOST) {
            out.push_str(&format!("  {label} {}\n", safe(item)));
        }
        if items.len() > MOST {
            out.push_str(&format!("  {label} and {} more\n", items.len() - MOST));
        }
    };
    let tensors = |n: usize| if n == 1 { "1 tensor".to_owned() } else { format!("{n} tensors") };
    if report.kept > 0 {
        part(styled(GREEN, "kept    "), vec![format!("{} as they are", tensors(report.kept))]);
    }
    part(styled(GREEN, "stored  "), changes(report));
    let losses = report.losses.iter().map(|l| format!("{}: {}", l.what, l.why));
    part(styled(YELLOW, "lost    "), losses.collect());
    part(styled(YELLOW, "warning "), report.warnings.clone());
    if !report.ignored.is_empty() {
        part(styled(DIM, "ignored "), vec![report.ignored.join(", ")]);
    }
    out
}

/// Changes of type, tensors with the same change in one line.
fn changes(report: &weighbridge::model::Report) -> Vec<String> {
    let mut kinds: Vec<(String, Vec<&str>)> = Vec::new();
    for c in &report.changed {
        let kind = format!("{} as {}", c.from, c.to);
        match kinds.iter_mut().find(|(k, _)| *k == kind) {
            Some((_, names)) => names.push(&c.tensor),
            None => kinds.push((kind, vec![&c.tensor])),
        }
    }
    let line = |(kind, names): &(String, Vec<&str>)| match names.as_slice() {
        [one] => format!("{one}: {kind}"),
        many => format!("{} tensors: {kind}", many.len()),
    };
    kinds.iter().map(line).collect()
}
