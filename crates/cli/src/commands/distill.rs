//! `weighbridge distill`: a static model out of a sentence model, and how far both agree.

use super::Files;
use super::output::Outcome;
use crate::ExitCode;
use crate::args::Distill;
use crate::progress::{last_words, with_bar};
use crate::render::{DIM, grouped, safe, styled};
use serde::Serialize;
use weighbridge::distill::{DistillReport, DistillSettings, distill};
use weighbridge::embed::texts_of_lines;
use weighbridge::{Conversion, Error, Formats, Options, Output, models};

#[derive(Serialize)]
struct Line<'a> {
    #[serde(flatten)]
    conversion: &'a Conversion,
    #[serde(flatten)]
    report: &'a DistillReport,
}

pub(super) fn run(args: &Distill, options: &Options, files: Files) -> Result<ExitCode, Error> {
    let files = files.accepting(&args.damage);
    // What is wrong with the name is said before anything is opened.
    let name = args.output.to_string_lossy();
    let folder = args.output.extension().is_none().then_some("hf");
    let format = Formats::builtin().target(&name, args.to.as_deref().or(folder))?;
    let output = Output::new(&args.output).overwrite(args.force);
    output.obstacle().map_or(Ok(()), Err)?;
    let settings = settings(args)?;
    let container = files.open(&models::find(&args.model)?, options)?;
    let words = last_words("nothing was written");
    let label = safe(&args.model);
    let made = with_bar(&label, |progress| distill(&container, &settings, progress))?;
    drop(words);
    let plan = format.plan(&made.container, options)?;
    let outcome = super::output::carry_out(&plan, &output, false)?;
    if args.json {
        let (conversion, report) = (&outcome.conversion, &made.report);
        return super::print_json(&Line { conversion, report });
    }
    super::report(&text(&outcome, &made.report))
}

fn settings(args: &Distill) -> Result<DistillSettings, Error> {
    let mut settings = DistillSettings::default();
    settings.dimensions = args.dimensions;
    settings.most_tokens = args.max_vocab;
    settings.sif = Some(args.sif).filter(|sif| *sif != 0.0);
    settings.rows = args.dtype.into();
    settings.threads = args.threads;
    if let Some(path) = &args.vocab {
        let words = super::text_input::read_input(path)?;
        settings.words = texts_of_lines(&path.display().to_string(), &words[..])?;
    }
    Ok(settings)
}

fn text(outcome: &Outcome, report: &DistillReport) -> String {
    let mut out = outcome.text();
    let mut line = |label: &str, text: String| {
        out.push_str(&format!("  {} {text}\n", styled(DIM, label)));
    };
    let added = match report.added {
        0 => String::new(),
        n => format!(", {} of them new words", grouped(n as u64)),
    };
    let (tokens, variance) = (grouped(report.tokens as u64), 100.0 * report.variance);
    let values = report.dimensions;
    line(
        "tokens  ",
        format!("{tokens}{added}; {values} values each keep {variance:.1} % of the variance"),
    );
    let agreement = &report.agreement;
    line(
        "agrees  ",
        format!(
            "with its model about {:.0} % of the ten nearest of {} texts; correlation {:.2}",
            100.0 * agreement.neighbours,
            agreement.texts,
            agreement.correlation
        ),
    );
    out
}
