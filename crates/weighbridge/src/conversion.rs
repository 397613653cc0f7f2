//! What was written, or would be.

use crate::quantize::QuantizeReport;
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

/// What quantizing a file did, or would do. Its JSON is described in docs/json.md.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct QuantizedFile {
    /// Name of the method.
    pub method: String,
    /// Name of the way in which blocks are encoded.
    pub encoder: String,
    /// The files were written.
    pub written: bool,
    /// Those that were written, the one that was asked for first.
    pub files: Vec<PathBuf>,
    /// What would have to be said for writing, of what was not written.
    pub needs: Option<String>,
    /// What is kept, stored otherwise and lost.
    pub report: Report,
    /// What it cost.
    #[serde(flatten)]
    pub figures: QuantizeReport,
}

impl QuantizedFile {
    /// What became of the plan that quantizing made, with its figures.
    pub fn new(
        method: &str,
        encoder: &str,
        conversion: &Conversion,
        figures: QuantizeReport,
    ) -> QuantizedFile {
        let files = conversion.files.iter().filter(|_| conversion.written);
        QuantizedFile {
            method: method.to_owned(),
            encoder: encoder.to_owned(),
            written: conversion.written,
            files: files.map(|file| file.file.clone()).collect(),
            needs: None,
            report: conversion.report.clone(),
            figures,
        }
    }
}
