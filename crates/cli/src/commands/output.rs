//! What verbs that write a file have in common: the plan is written or not, and reported.

use crate::ExitCode;
use crate::hints;
use crate::progress::{last_words, with_bar, with_spinner, with_spinner_for};
use crate::render::{self, BOLD, DIM, GREEN, SHOWN, YELLOW, safe, styled};
use std::path::Path;
use weighbridge::plan::Report;
use weighbridge::{Conversion, Error, Formats, Output, Plan};

/// Makes a plan, which may mean to look at every value of a file.
pub(super) fn planned(
    input: &Path,
    plan: impl FnOnce() -> Result<Plan, Error>,
) -> Result<Plan, Error> {
    let _words = last_words("nothing was written");
    with_spinner(input, plan)
}

/// Writes a plan unless it is a dry run, and says what that did.
pub(super) fn carry_out(plan: &Plan, output: &Output, dry_run: bool) -> Result<Outcome, Error> {
    if output.path == Path::new("-") {
        let advice = "name a file, and then read that; a file of this name is ./-";
        return Err(Error::refused("only `embed` writes to standard output", advice));
    }
    let label = safe(&output.path.display().to_string());
    let words = last_words("nothing was written");
    if dry_run {
        // Text is made to know how long it is.
        return with_spinner_for(plan.size(), &label, || Outcome::new(plan, output, false));
    }
    with_bar(&label, |progress| plan.write(output.clone(), progress))?;
    drop(words);
    Outcome::new(plan, output, true)
}

/// What a plan did, or would do.
pub(super) struct Outcome {
    pub conversion: Conversion,
    obstacle: Option<Error>,
    is_folder: bool,
    output: Output,
}

impl Outcome {
    pub(super) fn new(plan: &Plan, output: &Output, written: bool) -> Result<Outcome, Error> {
        let mut conversion = Conversion::new(plan, output, written)?;
        // After it is known how much would be written.
        let obstacle = plan.obstacle(output).filter(|_| !written);
        hints::word_conversion(&mut conversion, obstacle.as_ref());
        Ok(Outcome { conversion, obstacle, is_folder: plan.is_folder, output: output.clone() })
    }

    /// For people: with `more` below it; what was written is only said where that is wanted.
    pub(super) fn tell(&self, more: &str) -> Result<ExitCode, Error> {
        let text = self.text() + more;
        if self.conversion.written { super::report(&text) } else { super::print_text(&text) }
    }

    /// For people.
    pub(super) fn text(&self) -> String {
        let Conversion { to, written, files, report, .. } = &self.conversion;
        let verb = if *written { "wrote" } else { "would write" };
        let format = Formats::builtin().find(to).map_or(*to, |f| f.info().name);
        let mut out = String::new();
        let mut line = |path: &Path, what: String| {
            let name = styled(BOLD, safe(&path.display().to_string()));
            out.push_str(&format!("{verb} {name}: {format}, {what}\n"));
        };
        if self.is_folder {
            let bytes = files.iter().map(|f| f.bytes).sum();
            line(&self.output.path, format!("{} files, {}", files.len(), render::size(bytes)));
        } else {
            files.iter().for_each(|f| line(&f.file, render::size(f.bytes)));
        }
        out.push_str(&report_text(report));
        let needed = match (&self.obstacle, &self.conversion.needs) {
            (Some(Error::Loss(_)), _) => "--allow-loss",
            (Some(_), Some(needs)) => needs,
            _ => return out,
        };
        out.push_str(&format!("  {} {}\n", styled(YELLOW, "needs   "), safe(needed)));
        out
    }
}

/// What is kept, stored otherwise, lost and left out.
pub(super) fn report_text(report: &Report) -> String {
    let mut out = String::new();
    let mut part = |label: String, items: Vec<String>| {
        for item in items.iter().take(SHOWN) {
            out.push_str(&format!("  {label} {}\n", safe(item)));
        }
        if items.len() > SHOWN {
            let more = items.len() - SHOWN;
            out.push_str(&format!("  {label} and {more} more; --json lists them\n"));
        }
    };
    match report.kept {
        0 => {}
        1 => part(styled(GREEN, "kept    "), vec!["1 tensor as it is".to_owned()]),
        n => part(styled(GREEN, "kept    "), vec![format!("{n} tensors as they are")]),
    }
    part(styled(GREEN, "stored  "), changes(report));
    part(styled(YELLOW, "lost    "), report.losses.iter().map(ToString::to_string).collect());
    part(styled(YELLOW, "warning "), report.warnings.iter().map(ToString::to_string).collect());
    if !report.ignored.is_empty() {
        let ignored: Vec<_> = report.ignored.iter().map(ToString::to_string).collect();
        part(styled(DIM, "ignored "), vec![ignored.join(", ")]);
    }
    out
}

/// Changes of type, tensors with the same change in one line.
fn changes(report: &Report) -> Vec<String> {
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
