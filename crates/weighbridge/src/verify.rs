//! Checking a file against every rule of its format.

use serde::Serialize;
use std::path::Path;
use weighbridge_format::{Error, Finding, Input, Options, check};

/// What `verify` has to say about one file.
#[derive(Debug, Serialize)]
pub struct Verdict {
    pub file: String,
    pub format: Option<&'static str>,
    /// No errors; there may be warnings.
    pub ok: bool,
    pub findings: Vec<Finding>,
    /// Findings beyond those listed.
    #[serde(skip_serializing_if = "is_zero")]
    pub more: u64,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "the signature serde asks for")]
fn is_zero(n: &u64) -> bool {
    *n == 0
}

/// Checks the structure and, unless `quick`, the data too. An error means that the file could not be
/// read or is of no known format; broken rules are findings.
pub fn verify(path: &Path, options: &Options, quick: bool) -> Result<Verdict, Error> {
    let input = Input::open(path)?;
    let (format, findings) = check(&input, options, quick)?;
    Ok(Verdict {
        file: path.display().to_string(),
        format: Some(format.info().id),
        ok: !findings.has_errors(),
        more: findings.suppressed,
        findings: findings.into_list(),
    })
}
