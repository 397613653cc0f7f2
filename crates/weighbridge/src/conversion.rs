//! What was written, or would be.

use serde::Serialize;
use std::path::PathBuf;
use weighbridge_format::plan::{FilePlan, Report};
use weighbridge_format::{Error, Output, Plan};

/// What carrying out a plan did, or would do. Its JSON is described in docs/json.md.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Conversion {
    /// Id of the source's format; empty if the content came from no file.
    pub from: &'static str,
    /// Id of the target's format.
    pub to: &'static str,
    /// The files were written.
    pub written: bool,
    /// First the one that was asked for, then those beside it; or all of a folder.
    pub files: Vec<ConvertedFile>,
    /// Why writing would be refused, of what was not written.
    pub needs: Option<String>,
    /// What is kept, stored otherwise and lost.
    pub report: Report,
}

/// A file of a conversion.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct ConvertedFile {
    /// Where it is.
    pub file: PathBuf,
    /// Its size.
    pub bytes: u64,
}

impl Conversion {
    /// What a plan does to an output; `written` tells whether it was carried out. Of text that was
    /// not, the length is found by making it.
    ///
    /// # Errors
    /// What keeps text from being made.
    pub fn new(plan: &Plan, output: &Output, written: bool) -> Result<Conversion, Error> {
        let sized =
            |(file, plan): (PathBuf, &FilePlan)| Ok(ConvertedFile { file, bytes: plan.count()? });
        let files = plan.paths(output).into_iter().zip(&plan.files).map(sized);
        let files = files.collect::<Result<_, Error>>()?;
        Ok(Conversion {
            from: plan.from,
            to: plan.to,
            written,
            files,
            needs: plan.obstacle(output).filter(|_| !written).map(|o| o.to_string()),
            report: plan.report.clone(),
        })
    }
}
