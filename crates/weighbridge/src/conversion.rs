//! What was written, or would be.

use serde::Serialize;
use std::path::PathBuf;
use weighbridge_format::plan::Report;
use weighbridge_format::{Output, Plan};

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
    /// What a plan does to an output; `written` tells whether it was carried out.
    pub fn new(plan: &Plan, output: &Output, written: bool) -> Conversion {
        let file = |(file, bytes)| ConvertedFile { file, bytes };
        let sizes = plan.files.iter().map(|f| f.size);
        Conversion {
            from: plan.from,
            to: plan.to,
            written,
            files: plan.paths(output).into_iter().zip(sizes).map(file).collect(),
            needs: plan.obstacle(output).filter(|_| !written).map(|o| o.to_string()),
            report: plan.report.clone(),
        }
    }
}
