//! `weighbridge quantize`: fewer bits a weight, and what that cost.

use crate::args::Quantize;
use crate::progress::with_bar;
use crate::render::{self, BOLD, DIM, GREEN, Table, YELLOW, general, safe, styled};
use serde_json::json;
use std::collections::HashSet;
use std::process::ExitCode;
use weighbridge::codec::block::Encoder;
use weighbridge::quantize::{Calibration, Domain, Method, ProductSettings};
use weighbridge::{Conversion, Error, Options, QuantizeReport, QuantizeRequest, quantize};

pub(super) fn run(args: &Quantize, options: Options) -> Result<ExitCode, Error> {
    let unknown = || Error::refused(format!("there is no method {:?}", args.method), "");
    let method = Method::from_name(&args.method).ok_or_else(unknown)?;
    let reference = args.encoder == "reference";
    let request = QuantizeRequest {
        encoder: if reference { Encoder::Reference } else { Encoder::Best },
        domain: if args.domain == "activations" { Domain::Activations } else { Domain::Weights },
        select: args.select.clone(),
        exclude: args.exclude.clone(),
        overrides: args.overrides.clone(),
        min_bytes: args.min_bytes,
        clip: args.clip,
        importance: args.importance.clone(),
        calibration: match &args.calibrate_with {
            Some(file) => Calibration::File(file.clone()),
            None if args.no_calibrate => Calibration::Never,
            None => Calibration::Automatic,
        },
        product: ProductSettings {
            subquantizers: args.subquantizers,
            bits: args.bits,
            seed: args.seed,
        },
        options,
        allow_loss: args.allow_loss,
        force: args.force,
        ..QuantizeRequest::new(method)
    };
    let job = quantize(&args.input, args.output.as_deref(), &request)?;
    let label = safe(&args.input.display().to_string());
    let (conversion, report) =
        with_bar(4 * job.work(), &label, |progress| job.run(&mut |values| progress(4 * values)))?;
    if !args.report_only {
        let (total, label) = (conversion.plan.size(), conversion.output.display().to_string());
        with_bar(total, &safe(&label), |progress| conversion.write(progress))?;
    }
    if args.json {
        super::print_json(&as_json(&conversion, &report, args))
    } else {
        super::print(&text(&conversion, &report, args))
    }
}

fn as_json(c: &Conversion, report: &QuantizeReport, args: &Quantize) -> serde_json::Value {
    let mut out = json!({
        "method": args.method,
        "encoder": args.encoder,
        "written": !args.report_only,
        "files": if args.report_only { vec![] } else { c.paths() },
        "needs": needs(c, args),
        "report": c.plan.report,
    });
    if let (Some(out), Ok(serde_json::Value::Object(figures))) =
        (out.as_object_mut(), serde_json::to_value(report))
    {
        out.extend(figures);
    }
    out
}

/// What writing would ask for.
fn needs(c: &Conversion, args: &Quantize) -> Option<&'static str> {
    let loses = !c.plan.report.losses.is_empty() && !args.allow_loss;
    (args.report_only && loses).then_some("--allow-loss")
}

fn text(c: &Conversion, report: &QuantizeReport, args: &Quantize) -> String {
    let mut out = String::new();
    for path in c.paths().iter().filter(|_| !args.report_only) {
        out.push_str(&format!("wrote {}\n", styled(BOLD, safe(&path.display().to_string()))));
    }
    out.push_str(&format!(
        "  size     {} of tensors become {}, {:.2} bits a quantized weight\n",
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
            "  recall   {:.1} % of the ten nearest words are still among them\n",
            100.0 * recall
        ));
    }
    if let Some(vectors) = &report.calibrated {
        out.push_str(&format!(
            "  vectors  calibrated; of {} other texts: cosine {:.5} on average, {:.5} at worst\n",
            vectors.texts, vectors.mean_cosine, vectors.worst_cosine
        ));
    }
    // Quantized and kept tensors are listed below.
    let quantized: HashSet<_> = report.tensors.iter().map(|t| t.name.as_str()).collect();
    let mut others = c.plan.report.clone();
    others.kept = 0;
    others.changed.retain(|c| !quantized.contains(c.tensor.as_str()));
    out.push_str(&super::convert::outcome(&others));
    if let Some(needed) = needs(c, args) {
        out.push_str(&format!("  {} {needed}\n", styled(YELLOW, "needs   ")));
    }
    out.push_str(&kept(report));
    out.push('\n');
    out.push_str(&chart(report));
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
fn chart(report: &QuantizeReport) -> String {
    const WIDTH: f64 = 24.0;
    let worst = report.tensors.first().map_or(0.0, |t| t.loss.relative_rmse);
    let mut table = Table::new(&[
        "tensor",
        "method",
        ">bits",
        ">rmse",
        ">largest",
        ">cosine",
        ">SNR dB",
        "error by tensor",
    ]);
    for t in &report.tensors {
        let share = if worst > 0.0 { t.loss.relative_rmse / worst } else { 0.0 };
        table.row(vec![
            safe(&t.name),
            t.method.clone(),
            format!("{:.2}", t.bits_per_weight),
            format!("{:.5}", t.loss.relative_rmse),
            general(t.loss.max_error),
            format!("{:.6}", t.loss.cosine),
            t.loss.snr_db.map_or(String::new(), |db| format!("{db:.1}")),
            bar(share * WIDTH),
        ]);
    }
    table.render()
}

/// A bar of so many characters, in eighths.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn bar(length: f64) -> String {
    const PARTS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    let eighths = (length * 8.0).round() as usize;
    "█".repeat(eighths / 8) + PARTS[eighths % 8]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_have_their_length() {
        assert_eq!(bar(0.0), "");
        assert_eq!(bar(1.5), "█▌");
        assert_eq!(bar(3.0), "███");
    }
}
