//! Checking a file against every rule of its format.

use serde::Serialize;
use weighbridge_format::{Error, Finding, Formats, Input, Options, Unchecked};

/// What there is to say about one file. Its JSON is described in docs/json.md.
#[derive(Debug, Serialize)]
#[non_exhaustive]
pub struct Verdict {
    /// The file, as the input was given.
    pub file: String,
    /// Id of its format; none if it could not be read or recognised.
    pub format: Option<&'static str>,
    /// No errors; there may be warnings.
    pub ok: bool,
    /// The broken rules.
    pub findings: Vec<Finding>,
    /// Findings beyond those listed.
    #[serde(skip_serializing_if = "is_zero")]
    pub more: u64,
    /// What was not checked, or can't be.
    pub unchecked: Vec<Unchecked>,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "the signature serde asks for")]
fn is_zero(n: &u64) -> bool {
    *n == 0
}

impl Verdict {
    /// The verdict about a file that could not be looked at, so that a list has every file.
    pub fn unreadable(file: impl Into<String>, error: &Error) -> Verdict {
        let (rule, message) = match error {
            Error::Unrecognised { problem, .. } => ("UNRECOGNISED", problem.message.clone()),
            other => ("UNREADABLE", other.message()),
        };
        let file = file.into();
        let finding = Finding::unreadable(rule, message).in_file(&file).hint(error.advice());
        Verdict {
            file,
            format: None,
            ok: false,
            findings: vec![finding],
            more: 0,
            unchecked: vec![Unchecked::Rest],
        }
    }
}

/// Checks the structure and, unless `quick`, the data too. Broken rules are findings.
///
/// # Errors
/// Where the file could not be read or is of no known format.
pub fn verify(
    formats: &Formats,
    input: &Input,
    options: &Options,
    quick: bool,
) -> Result<Verdict, Error> {
    let (format, findings) = formats.check(input, options, quick)?;
    Ok(Verdict {
        file: input.path.clone(),
        format: Some(format.info().id),
        ok: !findings.has_errors(),
        more: findings.suppressed,
        unchecked: findings.unchecked.clone(),
        findings: findings.into_list(),
    })
}
