//! Errors and findings.

use super::{BOLD, DIM, GREEN, RED, YELLOW, safe, styled};
use anstream::eprintln;
use weighbridge::{Error, Finding, Severity, Verdict};

/// The exit code that stands for an error.
pub(crate) fn exit_code(error: &Error) -> u8 {
    match error {
        Error::Refused { .. } | Error::Loss(_) => 2,
        Error::Malformed { .. } | Error::Unrecognised { .. } => 3,
        Error::Io { .. } => 4,
    }
}

/// Prints an error to standard error.
pub(crate) fn error(error: &Error) {
    let line = |key: &str, text: &str| {
        if !text.is_empty() {
            eprintln!("  {} {}", styled(DIM, format!("{key:<9}")), safe(text));
        }
    };
    match error {
        Error::Malformed { file, finding: f } => {
            eprintln!("{}: {}", styled(RED, format!("error[{}]", f.rule)), safe(&f.message));
            line("file", &format!("{file}, bytes {:#x}..{:#x}  {}", f.start, f.end, f.field));
            line("expected", &f.expected);
            line("found", &f.found);
            line("hint", &f.hint);
        }
        Error::Unrecognised { file, what, hint } => {
            eprintln!("{}: {}", styled(RED, "error"), safe(&format!("{file}: {what}")));
            line("hint", hint);
        }
        Error::Io { path, source } => {
            eprintln!("{}: {}: {source}", styled(RED, "error"), safe(&path.display().to_string()));
        }
        Error::Refused { what, hint } => {
            eprintln!("{}: {}", styled(RED, "error"), safe(what));
            line("hint", hint);
        }
        Error::Loss(losses) => {
            eprintln!("{}: something would be lost", styled(RED, "error"));
            for loss in losses.iter().take(20) {
                line("lost", &format!("{}: {}", loss.what, loss.why));
            }
            if losses.len() > 20 {
                line("lost", &format!("and {} more", losses.len() - 20));
            }
            line("hint", "--allow-loss goes on without it");
        }
    }
}

/// A finding in one line.
fn finding_line(f: &Finding) -> String {
    let label = match f.severity {
        Severity::Error => styled(RED, format!("error[{}]", f.rule)),
        Severity::Warning => styled(YELLOW, format!("warning[{}]", f.rule)),
    };
    let mut line = format!("{label} bytes {:#x}..{:#x}: {}", f.start, f.end, safe(&f.message));
    for (key, text) in
        [("in", &f.field), ("expected", &f.expected), ("found", &f.found), ("hint:", &f.hint)]
    {
        if !text.is_empty() {
            line.push_str(&format!("; {} {}", styled(DIM, key), safe(text)));
        }
    }
    line
}

/// The verdict about one file: a line, and one for each finding.
pub(crate) fn verdict(v: &Verdict) -> String {
    let errors = v.findings.iter().filter(|f| f.severity == Severity::Error).count();
    let warnings = v.findings.len() - errors;
    let state = match (errors, warnings) {
        (0, 0) => styled(GREEN, "ok"),
        (0, n) => format!("{}, {n} warning{}", styled(GREEN, "ok"), if n == 1 { "" } else { "s" }),
        (n, _) => styled(RED, format!("{n} error{}", if n == 1 { "" } else { "s" })),
    };
    let name = styled(BOLD, safe(&v.file));
    let mut out = format!("{name}: {} {state}\n", v.format.unwrap_or("?"));
    for f in &v.findings {
        out.push_str(&format!("  {}\n", finding_line(f)));
    }
    if v.more > 0 {
        out.push_str(&format!("  and {} more\n", v.more));
    }
    out
}
