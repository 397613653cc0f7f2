//! `weighbridge quantize`: fewer bits a weight, and what that cost.

use super::Files;
use super::output::{Outcome, report_text};
use crate::ExitCode;
use crate::args::Quantize;
use crate::progress::{last_words, with_bar};
use crate::render::{
    self, BOLD, DIM, GREEN, SHOWN, Table, YELLOW, bar, general, more, safe, styled,
};
use std::collections::HashSet;
use weighbridge::codec::block::BlockEncoder;
use weighbridge::quantize::{
    Calibration, Domain, Importance, Method, ProductSettings, Quantization, QuantizeReport,
    QuantizeSettings,
};
use weighbridge::{Error, Formats, Options, Output, QuantizedFile};

pub(super) fn run(args: &Quantize, options: Options, files: Files) -> Result<ExitCode, Error> {
    let files = files.accepting(&args.damage).growing(&args.growth);
    let settings = settings(args, options, files)?;
    // What is wrong with the name is said before anything is opened.
    let output = output(args, settings.method, &settings.formats)?;
    let mut container = files.open(&args.input, &settings.options)?;
    super::attach_records(&mut container, &args.records)?;
    let job = Quantization::new(&container, &settings)?;
    if args.output().is_some() {
        // Said before the work rather than after it.
        output.obstacle().map_or(Ok(()), Err)?;
        if !args.allow_loss {
            let losses = job.losses()?;
            if !losses.is_empty() {
                return Err(Error::Loss(losses));
            }
        }
    }
    let label = safe(&args.input.display().to_string());
    let words = last_words("nothing was written");
    let quantized = with_bar(&label, |progress| job.run(progress))?;
    drop(words);
    let plan = quantized.plan.accept_losses(args.allow_loss);
    let outcome = super::output::carry_out(&plan, &output, args.dry_run)?;
    let mut report = quantized.report;
    if !args.dry_run && report.recall_at_10.is_none() {
        let found = super::hits::recall_of_written(&container, &output)?;
        report.recall_at_10 = found.map(|found| found.recall);
    }
    let report = &report;
    let loses = !plan.report.losses.is_empty() && !args.allow_loss;
    let needs = (args.dry_run && loses).then_some("--allow-loss");
    if args.json {
        let (method, encoder) = (&args.method, &args.encoder);
        let mut line = QuantizedFile::new(method, encoder, &outcome.conversion, report.clone());
        line.needs = needs.map(str::to_owned);
        return super::print_json(&line);
    }
    let text = text(&outcome, report, needs, args.all);
    if args.dry_run { super::print_text(&text) } else { super::report(&text) }
}

fn settings(args: &Quantize, options: Options, files: Files) -> Result<QuantizeSettings, Error> {
    let mut settings = QuantizeSettings::new(Method::named(&args.method)?);
    if args.encoder == "reference" {
        settings.encoder = BlockEncoder::Reference;
    }
    if args.domain == "activations" {
        settings.domain = Domain::Activations;
    }
    settings.select.clone_from(&args.select);
    settings.exclude.clone_from(&args.exclude);
    settings.overrides.clone_from(&args.overrides);
    settings.min_bytes = args.min_bytes;
    settings.clip = args.clip;
    if let Some(path) = &args.importance {
        settings.importance = Some(Importance::new(&files.open(path, &Options::default())?)?);
    }
    settings.calibration = match &args.calibrate_with {
        Some(path) => {
            let texts = super::text_input::read_input(path)?;
            Calibration::from_lines(&path.display().to_string(), &texts[..])?
        }
        None if args.no_calibrate => Calibration::Never,
        None => Calibration::Automatic,
    };
    settings.product =
        ProductSettings { subquantizers: args.subquantizers, bits: args.bits, seed: args.seed };
    settings.options = options;
    Ok(settings)
}

/// Where the file goes; a name that does not say the format that the method writes is refused.
fn output(args: &Quantize, method: Method, formats: &Formats) -> Result<Output, Error> {
    let Some(path) = args.output() else {
        let info = method.format(formats)?.info();
        return Ok(Output::new(format!("out.{}", info.extensions.first().unwrap_or(&""))));
    };
    method.check_output(&path.to_string_lossy(), formats)?;
    Ok(Output::new(path).overwrite(args.force))
}

fn text(outcome: &Outcome, report: &QuantizeReport, needs: Option<&str>, all: bool) -> String {
    let conversion = &outcome.conversion;
    let mut out = String::new();
    for file in conversion.files.iter().filter(|_| conversion.written) {
        let name = safe(&file.file.display().to_string());
        out.push_str(&format!("wrote {}\n", styled(BOLD, name)));
    }
    out.push_str(&format!(
        "  size     {} of tensors become {}, {:.2} bits per quantized weight\n",
        render::size(report.bytes_before),
        styled(GREEN, render::size(report.bytes_after)),
        report.bits_per_weight,
    ));
    out.push_str(&format!(
        "  error    relative rmse {}, largest {}, cosine {:.6}{}\n",
        general(report.loss.relative_rmse),
        general(report.loss.max_error),
        report.loss.cosine,
        report.loss.snr_db.map(|db| format!(", signal to noise {db:.1} dB")).unwrap_or_default(),
    ));
    if let Some(recall) = report.recall_at_10 {
        out.push_str(&format!(
            "  recall   {:.1} % of the ten nearest rows are still among them\n",
            100.0 * recall
        ));
    }
    if let Some(vectors) = &report.vectors {
        let (how, other) =
            if report.calibrated.is_some() { ("calibrated; ", "other ") } else { ("", "") };
        out.push_str(&format!(
            "  vectors  {how}of {} {other}texts: cosine {:.5} on average, {:.5} at worst\n",
            vectors.texts, vectors.mean_cosine, vectors.worst_cosine
        ));
    }
    // Quantized and kept tensors are listed below.
    let quantized: HashSet<_> = report.tensors.iter().map(|t| t.name.as_str()).collect();
    let mut others = conversion.report.clone();
    others.kept = 0;
    others.changed.retain(|c| !quantized.contains(c.tensor.as_str()));
    out.push_str(&report_text(&others));
    if let Some(needed) = needs {
        out.push_str(&format!("  {} {needed}\n", styled(YELLOW, "needs   ")));
    }
    if !report.adjusted.is_empty() {
        let line = format!("{} biases, so that errors are 0 on average", report.adjusted.len());
        out.push_str(&format!("  {} {line}\n", styled(DIM, "adjusted")));
    }
    out.push_str(&kept(report));
    out.push('\n');
    out.push_str(&chart(report, all));
    out
}

/// The kept tensors, those of the same reason in one line.
fn kept(report: &QuantizeReport) -> String {
    let mut reasons: Vec<(&str, Vec<&str>)> = Vec::new();
    for kept in &report.kept {
        match reasons.iter_mut().find(|(why, _)| *why == kept.why) {
            Some((_, names)) => names.push(&kept.name),
            None => reasons.push((&kept.why, vec![&kept.name])),
        }
    }
    let mut out = String::new();
    for (why, names) in reasons {
        const MOST: usize = 4;
        let shown: Vec<_> = names.iter().take(MOST).map(|n| safe(n)).collect();
        let more = if names.len() > MOST {
            format!(" and {} more", names.len() - MOST)
        } else {
            String::new()
        };
        let line = format!("{} ({why}): {}{more}", names.len(), shown.join(", "));
        out.push_str(&format!("  {} {line}\n", styled(DIM, "kept    ")));
    }
    out
}

/// The tensors with their errors, the worst first, each with a bar.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn chart(report: &QuantizeReport, all: bool) -> String {
    const EIGHTHS: f64 = 24.0 * 8.0;
    let shown = if all { report.tensors.len() } else { SHOWN.min(report.tensors.len()) };
    let worst = report.tensors.first().map_or(0.0, |t| t.loss.relative_rmse);
    let mut table = Table::new(&[
        "tensor",
        "method",
        ">bits",
        ">rmse",
        "?>largest",
        ">cosine",
        "?>SNR dB",
        "?error by tensor",
    ]);
    for t in &report.tensors[..shown] {
        let share = if worst > 0.0 { t.loss.relative_rmse / worst } else { 0.0 };
        table.row(vec![
            safe(&t.name),
            t.method.clone(),
            format!("{:.2}", t.bits_per_weight),
            format!("{:.5}", t.loss.relative_rmse),
            general(t.loss.max_error),
            format!("{:.6}", t.loss.cosine),
            t.loss.snr_db.map_or(String::new(), |db| format!("{db:.1}")),
            bar((share * EIGHTHS).round() as usize),
        ]);
    }
    table.render() + &more(report.tensors.len() - shown, "--all lists them")
}
