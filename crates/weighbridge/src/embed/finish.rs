//! From the last text to the file: rows are coded where that was asked for, and what lies beside the
//! file is planned with it.

use super::file::EmbedFile;
use super::journal::Journal;
use super::manifest::{Manifest, name_of};
use super::output_type::{OutputType, Ranges, StoredAs, encode};
use super::texts::TextForm;
use super::words::Words;
use std::path::Path;
use std::sync::Arc;
use weighbridge_codec::DType;
use weighbridge_format::model::{MATRIX, RowSource, Subject};
use weighbridge_format::plan::{Changed, FilePlan, Keeps, Loss, Piece, Report};
use weighbridge_format::wire::to_len;
use weighbridge_format::{
    Advice, Container, Encoding, Error, Options, Output, Plan, Progress, Tensor,
};

/// All vectors are there, and the file is planned.
#[derive(Debug)]
#[non_exhaustive]
pub struct EmbeddedFile {
    /// What will be written.
    pub plan: Plan,
    /// Where it goes.
    pub output: Output,
    /// How many rows it has.
    pub rows: u64,
    /// How many values each row has.
    pub dimensions: usize,
    journal: Journal,
}

impl EmbeddedFile {
    /// Writes the file, and removes the journal once it is there.
    ///
    /// # Errors
    /// What [`Plan::write`] refuses or fails at; the journal then stays.
    pub fn write(&self, progress: &mut Progress) -> Result<(), Error> {
        self.plan.write(self.output.clone(), progress)?;
        self.journal.remove();
        Ok(())
    }
}

impl EmbedFile {
    /// Plans the file, after the last text. On an error the journal stays.
    ///
    /// # Errors
    /// [`Error::Refused`] if the journal has more rows than there were texts, if an earlier run made
    /// the file of another input, and what the format refuses.
    pub fn finish(mut self) -> Result<EmbeddedFile, Error> {
        self.journal.complete()?;
        self.check_replaced()?;
        let info = self.settings.format.info();
        let rows = self.journal.finished();
        let view = self.journal.rows()?;
        let shape = vec![rows, self.dimensions as u64];
        let tensor = Tensor::stored(MATRIX, (self.layout.encoding)(), shape, view)?;
        let coded = self.settings.coded();
        let ranges = self.ranges(coded, &tensor)?;
        let has_more = self.settings.form != TextForm::Plain;
        // Texts alone stand in the input; they are kept where there is a place for them.
        let keeps_records = info.holds.records && (has_more || info.is_of_rows());
        let stored = match coded.filter(|to| to.is_coded()) {
            Some(to) => coded_rows(&tensor, self.dimensions, to, ranges.clone())?,
            None => tensor.clone(),
        };
        let mut container = Container::builder().tensor(stored).build()?;
        container.dtype = coded.filter(|to| !to.is_coded()).map(OutputType::dtype);
        if keeps_records {
            container.records = Some(self.journal.records()?);
        }
        container.vocabulary = self.words.take().map(Words::into_vocabulary);
        self.made_with.output = coded.map(|to| StoredAs::new(to, ranges.clone()));
        self.made_with.store(&mut container);
        // Where there is no place for it, nobody expects it.
        let holds = &info.holds;
        container
            .metadata
            .retain(|(key, value)| holds.metadata != Keeps::Nothing || (holds.entries)(key, value));
        let is_own =
            coded.is_none() && info.row_layout.is_some_and(|own| own.name == self.layout.name);
        let options = if is_own { Options::default() } else { self.options.clone() };
        let mut plan = self.settings.format.plan(&container, &options)?;
        if is_own {
            (self.layout.tell)(&self.journal.figures(), &tensor, &mut plan.report);
        }
        if let Some(to) = coded.filter(|to| to.is_coded()) {
            tell_coded(to, ranges.as_ref(), &tensor, &mut plan.report);
        }
        // Said without records that would be put together only to be left out.
        if has_more && !info.holds.records {
            plan.report.lose(Subject::Records(rows), "the format has none");
        }
        // What a link points to may be on another disk.
        let path = &self.settings.output.path;
        if is_own && !path.is_symlink() {
            plan.files[0].adopted = Some(self.journal.path().to_owned());
        }
        if let Some(ranges) = ranges.filter(|_| container.metadata.is_empty()) {
            plan.files.push(self.ranges_beside(&ranges)?);
        }
        if self.settings.manifest {
            self.describe(&mut plan, rows)?;
        }
        // Whoever names a format here knows what it is; the report says what it costs.
        let plan = plan.accept_losses(true);
        let (output, dimensions) = (self.settings.output, self.dimensions);
        Ok(EmbeddedFile { plan, output, rows, dimensions, journal: self.journal })
    }

    /// What an earlier run made is replaced without being asked for only if it is of this input.
    fn check_replaced(&self) -> Result<(), Error> {
        let (Some(before), Some(now)) = (&self.replaced, &self.input) else { return Ok(()) };
        if before == now {
            return Ok(());
        }
        // Nothing of it is gone on with, whoever was wrong.
        self.journal.remove();
        let path = &self.settings.output.path;
        let advice = Advice::set("overwrite", "replaces it");
        Err(Error::refused_file(path, "is a shard of another input", advice))
    }

    /// The ends of each dimension, where codes are made with them.
    fn ranges(&self, to: Option<OutputType>, rows: &Tensor) -> Result<Option<Ranges>, Error> {
        let Some(to) = to.filter(|to| to.needs_ranges()) else { return Ok(None) };
        if let Some(given) = &self.settings.ranges {
            return Ok(Some(given.clone()));
        }
        if rows.shape.first() == Some(&1) {
            return Err(super::output_type::one_vector(to));
        }
        Ranges::of_rows(rows, self.dimensions).map(Some)
    }

    /// The file with the ranges, for a format that has no place for them: two rows, the lower ends and
    /// the upper ones.
    fn ranges_beside(&self, ranges: &Ranges) -> Result<FilePlan, Error> {
        let values = ranges.low.iter().chain(&ranges.high);
        let bytes = values.flat_map(|v| v.to_le_bytes()).collect();
        let view = weighbridge_format::View::owned(bytes);
        let shape = vec![2, self.dimensions as u64];
        let tensor = Tensor::stored(MATRIX, Encoding::Plain(DType::F32), shape, view)?;
        let container = Container::builder().tensor(tensor).build()?;
        let plan = self.settings.format.plan(&container, &Options::default())?;
        let mut file = FilePlan::named(ranges_name(&self.settings.output.path));
        file.push(Piece::Bytes(plan.to_bytes()?));
        Ok(file)
    }

    /// Plans the hashes of the texts and the manifest.
    fn describe(&self, plan: &mut Plan, rows: u64) -> Result<(), Error> {
        let output = &self.settings.output.path;
        name_companions(plan, output);
        let (hashes, adopted) = self.journal.hashes()?;
        let mut file = FilePlan::named(name_of(&Manifest::hashes_for(output)));
        file.push(Piece::View(hashes));
        file.adopted = Some(adopted.to_owned());
        plan.files.push(file);
        let manifest = Manifest {
            manifest: Manifest::VERSION,
            made_with: self.made_with.clone(),
            form: self.settings.form.clone(),
            input: self.input.clone(),
            shard: self.settings.shard,
            rows,
            files: Vec::new(),
        };
        let manifest = manifest.plan(output, &plan.files);
        plan.files.push(manifest);
        Ok(())
    }
}

/// `vectors.ranges.npy` for `vectors.npy`.
pub(super) fn ranges_name(output: &Path) -> String {
    let stem = output.file_stem().unwrap_or_default().to_string_lossy();
    match output.extension() {
        Some(extension) => format!("{stem}.ranges.{}", extension.to_string_lossy()),
        None => format!("{stem}.ranges"),
    }
}

/// Gives what describes a file the name that belongs to it alone: a manifest has to know it, and many
/// shards lie in one folder.
pub(super) fn name_companions(plan: &mut Plan, output: &Path) {
    for file in &mut plan.files {
        if let Some(companion) = file.companion.take() {
            file.beside = Some(companion.own_name(&name_of(output)));
        }
    }
}

/// Rows that are coded when they are asked for.
#[derive(Debug)]
struct CodedRows {
    rows: Tensor,
    dim: usize,
    to: OutputType,
    ranges: Option<Ranges>,
}

impl RowSource for CodedRows {
    fn read(&self, row: u64, out: &mut [u8]) -> Result<(), Error> {
        let mut values = vec![0.0; self.dim];
        self.rows.rows_f32(row, &mut values, &mut Vec::new())?;
        let mut bytes = Vec::with_capacity(out.len());
        encode(&values, self.to, self.ranges.as_ref(), &mut bytes);
        match bytes.len() == out.len() {
            true => out.copy_from_slice(&bytes),
            false => return Err(Error::refused(format!("row {row} has no codes"), "")),
        }
        Ok(())
    }
}

fn coded_rows(
    rows: &Tensor,
    dim: usize,
    to: OutputType,
    ranges: Option<Ranges>,
) -> Result<Tensor, Error> {
    let shape = [rows.shape.first().copied().unwrap_or(0), to.width(dim) as u64];
    let encoding = Encoding::Plain(to.dtype());
    let from = CodedRows { rows: rows.clone(), dim: to_len(dim as u64), to, ranges };
    Tensor::from_rows(MATRIX, encoding, shape, Arc::new(from))
}

/// Says what codes keep of the values.
fn tell_coded(to: OutputType, ranges: Option<&Ranges>, rows: &Tensor, report: &mut Report) {
    let (from, count) = (rows.encoding.name().into_owned(), rows.count());
    let largest = f64::from(ranges.map_or(0.0, Ranges::largest_step));
    let mut loss = Loss::rounded(MATRIX, &from, to.name(), count, count, largest);
    loss.why = match ranges {
        Some(_) => {
            format!("{from} to {}: values lie within {largest:.3e} of their code", to.name())
        }
        None => format!("{from} to {}: of a value it is kept whether it is positive", to.name()),
    }
    .into();
    report.kept = 0;
    report.changed = vec![Changed::new(MATRIX, from, to.name())];
    report.losses.push(loss);
}
