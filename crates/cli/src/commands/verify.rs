//! `weighbridge verify`: every rule of the format.

use super::Files;
use crate::ExitCode;
use crate::args::Verify;
use crate::hints;
use crate::progress::with_spinner;
use crate::render;
use std::path::Path;
use weighbridge::{Error, Formats, Options, Verdict, verify};

pub(super) fn run(args: &Verify, options: &Options, files: Files) -> Result<ExitCode, Error> {
    let mut verdicts = Vec::new();
    let mut worst = 0;
    for file in &args.files {
        let mut verdict = match with_spinner(file, || check(files, file, options, args.quick)) {
            Ok(verdict) => verdict,
            // A wrong option is wrong for every file.
            Err(error @ Error::Refused(_)) => return Err(error),
            Err(error) => {
                worst = worst.max(error.kind().exit_code());
                if !args.json {
                    render::error(&error);
                    continue;
                }
                Verdict::unreadable(file.display().to_string(), &error)
            }
        };
        hints::word_verdict(&mut verdict);
        if !verdict.ok {
            worst = worst.max(1);
        }
        // Of those that are fine, the exit code is enough for who wants quiet.
        let is_told = !verdict.findings.is_empty() || !crate::talk::is_quiet();
        if is_told && !args.json {
            super::print_text(&render::verdict(&verdict, args.all))?;
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

fn check(files: Files, file: &Path, options: &Options, quick: bool) -> Result<Verdict, Error> {
    verify(Formats::builtin(), &files.input(file)?, options, quick)
}
