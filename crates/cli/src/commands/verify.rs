//! `weighbridge verify`: every rule of the format.

use crate::args::Verify;
use crate::progress::with_spinner;
use crate::render;
use std::path::Path;
use std::process::ExitCode;
use weighbridge::{Error, Options, Verdict, verify};

pub(super) fn run(args: &Verify, options: &Options) -> Result<ExitCode, Error> {
    let mut verdicts = Vec::new();
    let mut worst = 0;
    for file in &args.files {
        let verdict = match with_spinner(file, || verify(file, options, args.quick)) {
            Ok(verdict) => verdict,
            // A wrong option is wrong for every file.
            Err(error @ Error::Refused { .. }) => return Err(error),
            Err(error) => {
                worst = worst.max(render::exit_code(&error));
                if !args.json {
                    render::error(&error);
                    continue;
                }
                unreadable(file, &error)
            }
        };
        if !verdict.ok {
            worst = worst.max(1);
        }
        if !args.json {
            super::print(&render::verdict(&verdict))?;
        }
        verdicts.push(verdict);
    }
    if args.json {
        match verdicts.as_slice() {
            [one] if args.files.len() == 1 => super::print_json(one)?,
            all => super::print_json(&all)?,
        };
    }
    Ok(ExitCode::from(worst))
}

/// The verdict about a file that could not be looked at, so that a script finds every file.
fn unreadable(file: &Path, error: &Error) -> Verdict {
    let (rule, message, hint) = match error {
        Error::Unrecognised { what, hint, .. } => ("UNRECOGNISED", what.clone(), hint.clone()),
        other => ("UNREADABLE", other.to_string(), String::new()),
    };
    let finding = weighbridge::Finding {
        rule,
        severity: weighbridge::Severity::Error,
        start: 0,
        end: 0,
        field: String::new(),
        message,
        expected: String::new(),
        found: String::new(),
        hint,
    };
    Verdict {
        file: file.display().to_string(),
        format: None,
        ok: false,
        findings: vec![finding],
        more: 0,
    }
}
