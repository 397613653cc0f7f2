//! The rows on their way into a file: looked at before anything is written, then streamed.

use super::Kind;
use super::quantize::{self, NORMS, Rounding};
use crate::model::{BLOCK, Note, NoteKind, Produce, Tensor};
use crate::plan::{Changed, Loss, Report, RowBlock, RowFigures};
use crate::wire::to_len;
use crate::{Advice, Error};
use weighbridge_codec::convert::Change;
use weighbridge_codec::parallel::*;

/// A row is a unit vector when its norm is this close to 1. Others are told, and refused where they
/// are out of the format's own range.
const TOLERANCE: f64 = 1e-3;

/// How rows are stored.
#[derive(Clone, Copy, Debug)]
pub(super) struct RowRules {
    pub kind: Kind,
    pub normalize: bool,
    pub rounding: Rounding,
}

/// The rows of a matrix on their way into a file.
#[derive(Debug)]
pub(super) struct MatrixRows {
    pub rules: RowRules,
    pub tensor: Tensor,
    pub shape: [u64; 2],
}

/// Why a row can't be written.
#[derive(Clone, Copy, Debug)]
enum Bad {
    NotFinite { column: usize, value: f32 },
    Zero,
    Norm(f64),
}

/// What writing some rows will do.
#[derive(Debug, Default)]
pub(super) struct Survey {
    bad: Option<(u64, Bad)>,
    bad_rows: u64,
    figures: RowFigures,
}

impl RowRules {
    /// Looks at rows and adds their bytes to `out`, on all cores.
    pub(super) fn encode(&self, rows: &[f32], block: RowBlock, out: &mut Vec<u8>) -> Survey {
        /// Rows for one core at a time.
        const TOGETHER: usize = 64;
        let parts = rows.par_chunks(TOGETHER * block.dim.max(1)).enumerate();
        let parts: Vec<(Survey, Vec<u8>)> = parts
            .map(|(i, rows)| {
                let (mut bytes, mut rows) = (Vec::new(), rows.to_vec());
                let block = RowBlock { first: block.first + (i * TOGETHER) as u64, ..block };
                (self.survey(&mut rows, block, Some(&mut bytes)), bytes)
            })
            .collect();
        parts.into_iter().fold(Survey::default(), |all, (survey, bytes)| {
            out.extend(bytes);
            all.join(survey)
        })
    }

    /// Looks at every row, normalizes it if that was asked for, and adds its bytes to `out`.
    fn survey(&self, values: &mut [f32], block: RowBlock, mut out: Option<&mut Vec<u8>>) -> Survey {
        let mut survey = Survey::default();
        let mut codes = Vec::new();
        for (row, values) in (block.first..).zip(values.chunks_exact_mut(block.dim.max(1))) {
            survey.figures.rows += 1;
            let norm = quantize::norm(values);
            if let Some(bad) = self.judge_row(values, norm) {
                survey.bad_rows += 1;
                survey.bad = survey.bad.or(Some((row, bad)));
                continue;
            }
            if self.normalize {
                survey.figures.normalized += u64::from((norm - 1.0).abs() > TOLERANCE);
                quantize::normalize(values);
            }
            if self.kind == Kind::I8 {
                quantize::quantize(values, self.rounding, &mut codes);
                let Change { changed, largest } = quantize::measure(values, &codes);
                let outside = u64::from(!NORMS.contains(&quantize::norm_of_codes(&codes)));
                let uneven = u64::from(!self.normalize && (norm - 1.0).abs() > TOLERANCE);
                let row = RowFigures { changed, largest, uneven, outside, ..RowFigures::default() };
                survey.figures.add(&row);
            }
            match (self.kind, &mut out) {
                (Kind::I8, Some(out)) => out.extend_from_slice(&codes),
                (Kind::F32, Some(out)) => out.extend(values.iter().flat_map(|v| v.to_le_bytes())),
                (_, None) => {}
            }
        }
        survey
    }

    fn judge_row(&self, values: &[f32], norm: f64) -> Option<Bad> {
        // The sum of squares of finite f32 values is finite in f64.
        if !norm.is_finite() {
            let (column, value) = values.iter().enumerate().find(|(_, v)| !v.is_finite())?;
            return Some(Bad::NotFinite { column, value: *value });
        }
        let needs_direction = self.kind == Kind::I8 || self.normalize;
        if needs_direction && norm == 0.0 {
            return Some(Bad::Zero);
        }
        let fits = NORMS.contains(&norm);
        (self.kind == Kind::I8 && !self.normalize && !fits).then_some(Bad::Norm(norm))
    }

    /// The bytes of rows that were looked at before.
    fn bytes(&self, values: &mut [f32], dim: usize) -> Vec<u8> {
        let (mut out, mut codes) = (Vec::new(), Vec::new());
        for values in values.chunks_exact_mut(dim) {
            if self.normalize {
                quantize::normalize(values);
            }
            match self.kind {
                Kind::I8 => {
                    quantize::quantize(values, self.rounding, &mut codes);
                    out.extend_from_slice(&codes);
                }
                Kind::F32 => out.extend(values.iter().flat_map(|v| v.to_le_bytes())),
            }
        }
        out
    }
}

impl MatrixRows {
    pub(super) fn bytes(&self) -> Result<u64, Error> {
        let bytes = self.rules.kind.encoding().byte_len(&self.tensor.shape);
        bytes.ok_or_else(|| Error::refused(format!("{:?} is too large", self.tensor.name), ""))
    }

    /// Rows handled at a time.
    fn per_block(&self) -> u64 {
        (BLOCK as u64 / self.shape[1].max(1)).max(1)
    }

    fn blocks(&self) -> u64 {
        self.shape[0].div_ceil(self.per_block())
    }

    fn dim(&self) -> usize {
        to_len(self.shape[1])
    }

    /// The values of a block of rows, and the number of its first row.
    fn values(&self, block: u64) -> Result<(u64, Vec<f32>), Error> {
        let [rows, dim] = self.shape;
        let first = block * self.per_block();
        let n = self.per_block().min(rows - first);
        Ok((first, self.tensor.values_f32(first * dim, to_len(n * dim))?))
    }

    /// Looks at every row before the first is written.
    pub(super) fn survey(&self) -> Result<Survey, Error> {
        let survey = |block| {
            let (first, mut values) = self.values(block)?;
            Ok(self.rules.survey(&mut values, RowBlock { first, dim: self.dim() }, None))
        };
        let blocks: Result<Vec<Survey>, Error> =
            (0..self.blocks()).into_par_iter().map(survey).collect();
        Ok(blocks?.into_iter().fold(Survey::default(), Survey::join))
    }
}

impl Produce for MatrixRows {
    fn produce(&self, out: &mut dyn FnMut(&[u8]) -> Result<(), Error>) -> Result<(), Error> {
        // A few blocks at a time on all cores; memory stays bounded.
        const TOGETHER: u64 = 16;
        let bytes = |block| Ok(self.rules.bytes(&mut self.values(block)?.1, self.dim()));
        let mut start = 0;
        while start < self.blocks() {
            let end = self.blocks().min(start + TOGETHER);
            let made: Result<Vec<_>, Error> = (start..end).into_par_iter().map(bytes).collect();
            made?.iter().try_for_each(|bytes| out(bytes))?;
            start = end;
        }
        Ok(())
    }
}

impl Survey {
    fn join(mut self, later: Survey) -> Survey {
        self.bad = self.bad.or(later.bad);
        self.bad_rows += later.bad_rows;
        self.figures.add(&later.figures);
        self
    }

    /// The figures, unless rows can't be written.
    pub(super) fn into_figures(self) -> Result<RowFigures, Error> {
        match self.bad {
            Some((row, bad)) => Err(self.refusal(row, bad)),
            None => Ok(self.figures),
        }
    }

    fn refusal(&self, row: u64, bad: Bad) -> Error {
        let (what, advice): (String, Advice) = match bad {
            Bad::NotFinite { column, value } => (
                format!("row {row} holds {value} in column {column}"),
                "every value has to be a finite number".into(),
            ),
            Bad::Zero => (
                format!("row {row} is all zeros and has no direction"),
                "leave such rows out".into(),
            ),
            Bad::Norm(norm) => (
                format!(
                    "row {row} has norm {norm:.6}, and the format holds unit vectors ({} to {})",
                    NORMS.start(),
                    NORMS.end()
                ),
                Advice::set("normalize", "divides every row by its norm"),
            ),
        };
        let more = match self.bad_rows {
            1 => String::new(),
            n => format!(" ({n} rows in all can't be written)"),
        };
        Error::refused(format!("{what}{more}"), advice)
    }
}

/// Reports what becomes of the rows of a tensor that had this encoding.
pub(super) fn describe(
    kind: Kind,
    figures: &RowFigures,
    (tensor, from): (&Tensor, &str),
    normalize: bool,
    report: &mut Report,
) {
    let count = tensor.shape.first().copied().unwrap_or(0);
    if figures.normalized > 0 {
        let text = format!(
            "{} of {count} rows were not unit vectors and are normalized",
            figures.normalized
        );
        let note = Note::new(NoteKind::Normalized, text).counting(figures.normalized, count);
        report.warnings.push(note);
    }
    if kind == Kind::F32 {
        report.kept *= usize::from(!normalize);
        return;
    }
    // Fitting took the values for kept; they become codes.
    let to = kind.encoding().name();
    if figures.changed > 0 {
        let RowFigures { changed, largest, .. } = *figures;
        report.losses.push(Loss::rounded(
            &tensor.name,
            from,
            to.clone(),
            changed,
            tensor.count(),
            largest,
        ));
    }
    report.kept = 0;
    report.changed = vec![Changed::new(&tensor.name, from, to)];
    if figures.uneven > 0 {
        let text = format!(
            "{} of {count} rows have norms off 1 by more than {TOLERANCE} and are written as they are",
            figures.uneven
        );
        let note = Note::new(NoteKind::Unusual, text).counting(figures.uneven, count);
        report
            .warnings
            .push(note.advice(Advice::set("normalize", "divides every row by its norm")));
    }
    if figures.outside > 0 {
        let text = format!(
            "{} of {count} rows get norms out of {}..{}, which strict readers refuse",
            figures.outside,
            NORMS.start(),
            NORMS.end()
        );
        let note = Note::new(NoteKind::Strict, text).counting(figures.outside, count);
        report.warnings.push(note.advice(Advice::set_to(
            "rounding",
            "nearest-norm",
            "avoids that",
        )));
    }
}
