//! Errors and findings.

use super::{
    BOLD, DIM, GREEN, RED, SHOWN, YELLOW, marked, message_width, more, safe, say, styled, wrapped,
};
use crate::ExitCode;
use crate::hints;
use std::ffi::OsString;
use weighbridge::source::is_hidden;
use weighbridge::{Error, Finding, Severity, Verdict};

/// Says why a command failed: as one object on standard output where JSON was asked for, else to
/// standard error.
pub(crate) fn failure(failed: &Error, json: bool) {
    if !json {
        return error(failed);
    }
    let mut report = failed.report();
    report.hint = hints::hint(&failed.advice());
    // Whoever reads it has gone away, or there is nothing left to say it to.
    let _ = crate::commands::print_line(&serde_json::json!({ "error": report }));
}

/// Says what is wrong with a command line, or prints the help that was asked for.
pub(crate) fn usage(usage: &clap::Error, arguments: &[OsString]) -> ExitCode {
    let code = u8::try_from(usage.exit_code()).unwrap_or(2);
    if usage.use_stderr() && arguments.iter().any(|a| a == "--json") {
        let text = usage.to_string();
        let message = text.lines().next().unwrap_or_default().trim_start_matches("error: ");
        let object = serde_json::json!({"error": {"kind": "usage", "message": message}});
        let _ = crate::commands::print_line(&object);
    } else if usage.use_stderr() && usage.to_string().contains(|c| c != '\n' && is_hidden(c)) {
        // What was typed may come from a file.
        for line in usage.to_string().lines() {
            say!("{}", safe(line));
        }
    } else {
        let _ = usage.print();
    }
    ExitCode::from(code)
}

/// Prints an error to standard error.
pub(crate) fn error(error: &Error) {
    let say = |line: String| say!("{}", wrapped(&line, message_width()));
    let line = |key: &str, text: &str| {
        if !text.is_empty() {
            say(format!("  {} {}", marked(DIM, format!("{key:<9}")), safe(text)));
        }
    };
    match error {
        Error::Malformed { file, finding: f } => {
            say(format!("{}: {}", marked(RED, format!("error[{}]", f.rule)), safe(&f.message)));
            let place = match f.has_place() {
                true => format!("{file}, bytes {:#x}..{:#x}", f.start, f.end),
                false => file.clone(),
            };
            line("file", format!("{place}  {}", f.field).trim_end());
            line("expected", &f.expected);
            line("found", &f.found);
        }
        Error::Loss(losses) => {
            say(format!("{}: something would be lost", marked(RED, "error")));
            for loss in losses.iter().take(SHOWN) {
                line("lost", &loss.to_string());
            }
            if losses.len() > SHOWN {
                line("lost", &format!("and {} more; --json lists them", losses.len() - SHOWN));
            }
        }
        other => say(format!("{}: {}", marked(RED, "error"), safe(&other.message()))),
    }
    line("hint", &hints::hint(&error.advice()));
}

/// A finding in one line; it names its file where that is another than the one of the verdict.
fn finding_line(f: &Finding, file: &str) -> String {
    let label = match f.severity {
        Severity::Error => styled(RED, format!("error[{}]", f.rule)),
        Severity::Warning => styled(YELLOW, format!("warning[{}]", f.rule)),
    };
    let other = Some(&f.file).filter(|other| *other != file);
    let bytes = f.has_place().then(|| format!("bytes {:#x}..{:#x}", f.start, f.end));
    let place: Vec<_> =
        other.map(|other| safe(other).to_string()).into_iter().chain(bytes).collect();
    let mut line = match place.is_empty() {
        true => format!("{label} {}", safe(&f.message)),
        false => format!("{label} {}: {}", place.join(", "), safe(&f.message)),
    };
    let hint = f.hint.to_string();
    for (key, text) in
        [("in", &f.field), ("expected", &f.expected), ("found", &f.found), ("hint:", &hint)]
    {
        if !text.is_empty() {
            line.push_str(&format!("; {} {}", styled(DIM, key), safe(text)));
        }
    }
    line
}

/// The verdict about one file: a line, and one for each of its most important findings, or for all.
pub(crate) fn verdict(v: &Verdict, all: bool) -> String {
    let errors = v.findings.iter().filter(|f| f.severity == Severity::Error).count();
    let warnings = v.findings.len() - errors;
    let state = match (errors, warnings) {
        (0, 0) => styled(GREEN, "ok"),
        (0, n) => format!("{}, {n} warning{}", styled(GREEN, "ok"), if n == 1 { "" } else { "s" }),
        (n, _) => styled(RED, format!("{n} error{}", if n == 1 { "" } else { "s" })),
    };
    let name = styled(BOLD, safe(&v.file));
    let unchecked: Vec<_> = v.unchecked.iter().map(ToString::to_string).collect();
    let unchecked = match unchecked.is_empty() {
        true => String::new(),
        false => format!(" {}", styled(DIM, format!("({})", unchecked.join("; ")))),
    };
    let mut out = format!("{name}: {} {state}{unchecked}\n", v.format.unwrap_or("?"));
    let mut findings: Vec<_> = v.findings.iter().collect();
    let shown = if all { findings.len() } else { SHOWN.min(findings.len()) };
    if shown < findings.len() {
        findings.sort_by_key(|f| f.severity != Severity::Error);
    }
    for f in &findings[..shown] {
        out.push_str(&format!("  {}\n", finding_line(f, &v.file)));
    }
    out.push_str(&more(findings.len() - shown, "--all lists them"));
    if v.more > 0 {
        out.push_str(&format!("  and {} more, which are not listed\n", v.more));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_come_first_where_findings_are_many() {
        let error = Error::refused("it is wrong", "");
        let mut verdict = Verdict::unreadable("a.npy", &error);
        let mut warning = verdict.findings[0].clone();
        warning.severity = Severity::Warning;
        verdict.findings.splice(0..0, std::iter::repeat_n(warning, 14));
        let lines =
            |all| super::verdict(&verdict, all).lines().map(str::to_owned).collect::<Vec<_>>();
        let (few, all) = (lines(false), lines(true));
        assert!(few[1].contains("error[") && few[2].contains("warning["), "{few:?}");
        assert_eq!((few.len(), few[11].as_str()), (12, "  … and 5 more; --all lists them"));
        // In their own order where there is room for them.
        assert!(all.len() == 16 && all[15].contains("error["), "{all:?}");
    }
}
