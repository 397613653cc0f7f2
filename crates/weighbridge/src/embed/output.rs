//! The journal as a file of some format.

use super::journal::Journal;
use super::jsonl::{self, JsonLines};
use super::texts::{TEXT, text_of};
use crate::convert::{Conversion, target_format};
use std::io;
use std::path::{Path, PathBuf};
use weighbridge_codec::DType;
use weighbridge_format::model::{MATRIX, Records};
use weighbridge_format::{
    Container, Encoding, Error, Format, FormatInfo, Options, Tensor, View, Vocabulary,
};

/// Where rows go, and how.
#[derive(Clone, Copy)]
pub(super) struct Target {
    pub format: &'static dyn Format,
    /// The rows have no unit length by themselves.
    pub normalize: bool,
    pub force: bool,
}

impl std::fmt::Debug for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.format.info().id)
    }
}

/// The format that was asked for, else the one that the extension belongs to.
pub(super) fn format_for(output: &Path, to: Option<&str>) -> Result<&'static dyn Format, Error> {
    static JSON_LINES: JsonLines = JsonLines;
    let extension = output.extension().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
    let by_name = JSON_LINES.info().extensions.contains(&extension.as_str());
    if to == Some(jsonl::ID) || (to.is_none() && by_name) {
        return Ok(&JSON_LINES);
    }
    let format = target_format(output, to).map_err(|error| match error {
        Error::Refused { what, hint } => {
            Error::refused(what, hint.replace(": ", &format!(": {} ", jsonl::ID)))
        }
        other => other,
    })?;
    let info = format.info();
    if info.is_folder || !info.writes {
        let what = format!("vectors can't be written as {}", info.id);
        return Err(Error::refused(
            what,
            "--to jsonl, npy, i8bin, f32bin, finalfusion or safetensors",
        ));
    }
    Ok(format)
}

/// The format keeps a record for each row.
fn is_of_rows(info: &FormatInfo) -> bool {
    info.holds.records && info.holds.single
}

impl Target {
    /// What would be in the way of the output, found before hours of work: a row is planned.
    pub(super) fn check(&self, output: &Path, dimensions: usize) -> Result<(), Error> {
        let mut values = vec![0f32; dimensions];
        values[..1].fill(1.0);
        let bytes = values.iter().flat_map(|v| v.to_le_bytes()).collect();
        let mut container = rows(View::owned(bytes), 1, dimensions);
        if self.format.info().holds.words_only() {
            container.vocabulary = Some(Vocabulary::from_tokens(["a"]));
        }
        let conversion = self.plan(container, output)?;
        conversion.obstacle().map_or(Ok(()), Err)
    }

    /// The rows of a journal. `field` is the member of its records that is the text, if they were
    /// JSON lines.
    pub(super) fn convert(
        &self,
        journal: &Journal,
        output: &Path,
        dimensions: usize,
        field: Option<&str>,
    ) -> Result<Conversion, Error> {
        let info = self.format.info();
        let mut container = rows(journal.view()?, journal.finished(), dimensions);
        // Texts alone stand in the input; they are kept where there is a place for them.
        if info.holds.records && (field.is_some() || is_of_rows(info)) {
            let (before, behind) = self.document(journal.finished(), dimensions);
            let document = journal.document(&before, behind)?;
            let bad = |e: serde_json::Error| Error::io(journal.path(), io::Error::other(e));
            container.records = Some(Records::parse(document).map_err(bad)?);
        }
        if info.holds.words_only() {
            container.vocabulary = Some(words(journal, field.unwrap_or(TEXT))?);
        }
        let mut conversion = self.plan(container, output)?;
        // Said without records that would be put together only to be left out.
        if field.is_some() && !info.holds.records {
            let what = format!("{} row records", journal.finished());
            conversion.plan.report.lose(what, "the format has none");
        }
        Ok(conversion)
    }

    fn plan(&self, container: Container, output: &Path) -> Result<Conversion, Error> {
        let mut options = Options::default();
        if self.format.info().id == "i8bin" {
            // Strict readers refuse other norms than these.
            options.set("rounding", "nearest-norm");
            if self.normalize {
                options.set("normalize", "true");
            }
        }
        let plan = self.format.plan(&container, &options)?;
        Ok(Conversion {
            container,
            format: self.format,
            plan,
            output: output.components().collect::<PathBuf>(),
            // Whoever names a format here knows what it is; the report says what it costs.
            allow_loss: true,
            force: self.force,
        })
    }

    /// What stands around the records. The formats of rows take a document that describes itself
    /// rightly as it is, so that records are not held in memory.
    fn document(&self, rows: u64, dimensions: usize) -> (String, &'static str) {
        let (dtype, scale, note) = match self.format.info().id {
            "i8bin" => ("int8", "127", "divide by 127"),
            "f32bin" => ("float32", "1.0", "values as they are"),
            _ => return (String::new(), ""),
        };
        let before = format!(
            "{{\"version\": \"1.0\", \"quantization\": {{\"dtype\": \"{dtype}\", \"scale_factor\": {scale}, \"original_dtype\": \"float32\", \"note\": \"{note}\"}}, \"shape\": [{rows}, {dimensions}], \"records\": "
        );
        (before, "}")
    }
}

fn rows(view: View, count: u64, dimensions: usize) -> Container {
    let shape = vec![count, dimensions as u64];
    Container {
        // A plain file of one tensor: nothing has to be said about where it came from.
        format: "safetensors",
        tensors: vec![Tensor::stored(MATRIX, Encoding::Plain(DType::F32), shape, view)],
        ..Container::default()
    }
}

fn words(journal: &Journal, field: &str) -> Result<Vocabulary, Error> {
    let mut words = Vec::new();
    journal.for_each_record(|record| {
        words.push(text_of(record, field).ok_or(io::ErrorKind::InvalidData)?);
        Ok(())
    })?;
    Ok(Vocabulary::from_tokens(words.iter().map(String::as_str)))
}
