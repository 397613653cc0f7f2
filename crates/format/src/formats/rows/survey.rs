//! The rows on their way into a file: looked at before anything is written, then streamed.

use super::Kind;
use super::quantize::{self, NORMS, Rounding};
use crate::Error;
use crate::model::{BLOCK, Changed, Produce, Report, Tensor};
use crate::wire::to_len;
use rayon::prelude::*;
use weighbridge_codec::convert::Change;

/// A row is a unit vector when its norm is this close to 1.
const TOLERANCE: f64 = 1e-3;

/// The rows of a matrix on their way into a file.
#[derive(Debug)]
pub(super) struct Rows {
    pub kind: Kind,
    pub tensor: Tensor,
    pub shape: [u64; 2],
    pub normalize: bool,
    pub rounding: Rounding,
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
    /// What quantizing changes.
    change: Change,
    /// Rows that were no unit vectors before they were normalized.
    normalized: u64,
    /// Rows whose codes leave the range of norms.
    outside: u64,
}

impl Rows {
    pub(super) fn bytes(&self) -> Result<u64, Error> {
        self.kind
            .encoding()
            .byte_len(&self.tensor.shape)
            .ok_or_else(|| Error::refused(format!("{:?} is too large", self.tensor.name), ""))
    }

    /// Rows handled at a time.
    fn per_block(&self) -> u64 {
        (BLOCK as u64 / self.shape[1].max(1)).max(1)
    }

    fn blocks(&self) -> u64 {
        self.shape[0].div_ceil(self.per_block())
    }

    /// The values of a block of rows, and the number of its first row.
    fn values(&self, block: u64) -> (u64, Vec<f32>) {
        let [rows, dim] = self.shape;
        let first = block * self.per_block();
        let n = self.per_block().min(rows - first);
        (first, self.tensor.values_f32(first * dim, to_len(n * dim)))
    }

    /// Looks at every row before the first is written.
    pub(super) fn survey(&self) -> Survey {
        let blocks: Vec<Survey> =
            (0..self.blocks()).into_par_iter().map(|b| self.survey_block(b)).collect();
        blocks.into_iter().fold(Survey::default(), Survey::join)
    }

    fn survey_block(&self, block: u64) -> Survey {
        let mut survey = Survey::default();
        let mut codes = Vec::new();
        let (first, mut values) = self.values(block);
        for (row, values) in (first..).zip(values.chunks_exact_mut(to_len(self.shape[1]))) {
            let norm = quantize::norm(values);
            if let Some(bad) = self.judge_row(values, norm) {
                survey.bad_rows += 1;
                survey.bad = survey.bad.or(Some((row, bad)));
                continue;
            }
            if self.normalize {
                survey.normalized += u64::from((norm - 1.0).abs() > TOLERANCE);
                quantize::normalize(values);
            }
            if self.kind == Kind::I8 {
                quantize::quantize(values, self.rounding, &mut codes);
                survey.change.add(quantize::measure(values, &codes));
                survey.outside += u64::from(!NORMS.contains(&quantize::norm_of_codes(&codes)));
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
        let is_unit = (norm - 1.0).abs() <= TOLERANCE;
        (self.kind == Kind::I8 && !self.normalize && !is_unit).then_some(Bad::Norm(norm))
    }

    /// The bytes of a block.
    fn made(&self, block: u64) -> Vec<u8> {
        let (_, mut values) = self.values(block);
        let (mut out, mut codes) = (Vec::new(), Vec::new());
        for values in values.chunks_exact_mut(to_len(self.shape[1])) {
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

impl Produce for Rows {
    fn produce(&self, out: &mut dyn FnMut(&[u8]) -> Result<(), Error>) -> Result<(), Error> {
        // A few blocks at a time on all cores; memory stays bounded.
        const TOGETHER: u64 = 16;
        let mut start = 0;
        while start < self.blocks() {
            let end = self.blocks().min(start + TOGETHER);
            let made: Vec<_> = (start..end).into_par_iter().map(|b| self.made(b)).collect();
            made.iter().try_for_each(|bytes| out(bytes))?;
            start = end;
        }
        Ok(())
    }
}

impl Survey {
    fn join(self, later: Survey) -> Survey {
        let mut change = self.change;
        change.add(later.change);
        Survey {
            bad: self.bad.or(later.bad),
            bad_rows: self.bad_rows + later.bad_rows,
            change,
            normalized: self.normalized + later.normalized,
            outside: self.outside + later.outside,
        }
    }

    /// Refuses rows that can't be written, and reports what becomes of the others.
    pub(super) fn judge(&self, rows: &Rows, report: &mut Report) -> Result<(), Error> {
        if let Some((row, bad)) = self.bad {
            return Err(self.refusal(row, bad));
        }
        let (count, tensor) = (rows.shape[0], &rows.tensor);
        if self.normalized > 0 {
            report.warnings.push(format!(
                "{} of {count} rows were no unit vectors and are normalized",
                self.normalized
            ));
        }
        if rows.kind == Kind::F32 {
            report.kept *= usize::from(!rows.normalize);
            return Ok(());
        }
        // Fitting took the values for kept; they become codes.
        let (from, to) = (tensor.encoding.name(), rows.kind.encoding().name());
        if self.change.changed > 0 {
            let Change { changed, largest } = self.change;
            report.lose(
                format!("precision of tensor {:?}", tensor.name),
                format!(
                    "{from} to {to}: {changed} of {} values change, by {largest:.3e} at most",
                    tensor.count()
                ),
            );
        }
        report.kept = 0;
        report.changed = vec![Changed {
            tensor: tensor.name.clone(),
            from: from.into_owned(),
            to: to.into_owned(),
        }];
        if self.outside > 0 {
            report.warnings.push(format!(
                "{} of {count} rows get norms out of {}..{}, which strict readers refuse; --rounding nearest-norm avoids that",
                self.outside,
                NORMS.start(),
                NORMS.end()
            ));
        }
        Ok(())
    }

    fn refusal(&self, row: u64, bad: Bad) -> Error {
        let (what, hint) = match bad {
            Bad::NotFinite { column, value } => (
                format!("row {row} holds {value} in column {column}"),
                "every value has to be a finite number",
            ),
            Bad::Zero => {
                (format!("row {row} is all zeros and has no direction"), "leave such rows out")
            }
            Bad::Norm(norm) => (
                format!(
                    "row {row} has norm {norm:.6}, and the format holds unit vectors (1 ± {TOLERANCE})"
                ),
                "--normalize divides every row by its norm",
            ),
        };
        let more = match self.bad_rows {
            1 => String::new(),
            n => format!(" ({n} rows in all can't be written)"),
        };
        Error::refused(format!("{what}{more}"), hint)
    }
}
