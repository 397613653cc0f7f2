//! Container to planned bytes: the rows and the `meta.json` beside them.

use super::meta::{self, About};
use super::quantize::Rounding;
use super::survey::Rows;
use super::{CODES, Kind};
use crate::model::{Container, Encoding, FilePlan, Holds, Piece, Plan, Report, Tensor, fit};
use crate::{Error, Options, Vocabulary};
use std::sync::Arc;
use weighbridge_codec::DType;

/// Values of these types are quantized as they are; fitting widens whole numbers to one of them.
const QUANTIZED: &[DType] = &[
    DType::F32,
    DType::F64,
    DType::F16,
    DType::BF16,
    DType::F8E5M2,
    DType::F8E4M3,
    DType::F8E5M2Fnuz,
    DType::F8E4M3Fnuz,
    DType::F8E8M0,
    DType::F6E2M3,
    DType::F6E3M2,
    DType::F4E2M1,
];

pub(super) fn plan(kind: Kind, container: &Container, options: &Options) -> Result<Plan, Error> {
    let mut report = Report::default();
    let rounding = asked_rounding(options)?;
    let normalize = options.flag("normalize");
    let mut container = container.clone();
    let words = take_words(&mut container, &mut report);

    let holds = &kind.info().holds;
    let codes = kind == Kind::I8 && !normalize && container.tensors.iter().all(is_codes);
    let quantizing = Holds { dtypes: QUANTIZED, ..*holds };
    let placements = match kind {
        Kind::F32 => fit(&container, holds, options, &mut report)?,
        // The type is int8 in any case: --dtype has no say.
        Kind::I8 if codes => fit(&container, holds, &Options::default(), &mut report)?,
        Kind::I8 => fit(&container, &quantizing, &Options::default(), &mut report)?,
    };
    let placed = placements.first().and_then(|p| Some((p, container.tensors.get(p.tensor)?)));
    let (Some((placement, tensor)), Some(shape)) = (placed, container.rows()) else {
        // Without its one matrix there is no file, so that this is more than a loss.
        let why = report.losses.last().map(|l| format!("{}: {}", l.what, l.why));
        let what =
            format!("nothing can be written as {}; {}", kind.info().id, why.unwrap_or_default());
        return Err(Error::refused(what, "it takes one matrix of rows; choose it with --select"));
    };
    let shape = [shape.count, shape.dim];
    check_counts(shape, &container)?;

    let rows = Rows {
        kind,
        tensor: tensor.clone(),
        shape,
        normalize,
        rounding: rounding.unwrap_or(Rounding::Nearest),
    };
    let piece = if codes {
        if rounding.is_some() {
            report.warnings.push(
                "the values are codes already and are written as they are; --normalize quantizes them anew".to_owned(),
            );
        }
        Piece::tensor(tensor, &placement.encoding, placement.bytes)
    } else {
        rows.survey().judge(&rows, &mut report)?;
        if kind == Kind::F32 && !normalize {
            Piece::tensor(tensor, &placement.encoding, placement.bytes)
        } else {
            Piece::Stream { bytes: rows.bytes()?, from: Arc::new(rows) }
        }
    };
    let about = match (&container.records, &words) {
        (Some(records), _) => About::Records(records),
        (None, Some(words)) => About::Words(words),
        (None, None) => About::Nothing,
    };
    let mut file = FilePlan::default();
    file.push(piece);
    let mut beside = FilePlan { beside: Some(meta::NAME.to_owned()), ..FilePlan::default() };
    beside.push(meta::document(kind, shape, &about, !normalize));
    Ok(Plan { files: vec![file, beside], is_folder: false, report })
}

fn asked_rounding(options: &Options) -> Result<Option<Rounding>, Error> {
    match options.get("rounding") {
        None => Ok(None),
        Some("nearest") => Ok(Some(Rounding::Nearest)),
        Some("truncate") => Ok(Some(Rounding::Truncate)),
        Some("nearest-norm") => Ok(Some(Rounding::NearestNorm)),
        Some(other) => Err(Error::refused(
            format!("there is no rounding {other:?}"),
            "--rounding takes nearest, truncate or nearest-norm",
        )),
    }
}

/// The tensor holds i8bin codes, or values that were decoded from such and travelled.
fn is_codes(tensor: &Tensor) -> bool {
    let holds = |e: &Encoding| matches!(e, Encoding::Scaled(scaled) if **scaled == CODES);
    holds(&tensor.encoding) || tensor.origin.as_ref().is_some_and(holds)
}

/// A vocabulary with one word for each row becomes the records, if there are none.
fn take_words(container: &mut Container, report: &mut Report) -> Option<Vocabulary> {
    let rows = container.rows()?.count;
    if container.records.is_some() {
        return None;
    }
    let words = container.vocabulary.take_if(|v| v.len() as u64 == rows)?;
    words.lose_special(report);
    Some(words)
}

fn check_counts([rows, dim]: [u64; 2], container: &Container) -> Result<(), Error> {
    if dim == 0 {
        return Err(Error::refused("the rows have no values", ""));
    }
    match container.records.as_ref().map(|r| r.count()).filter(|&count| count != rows) {
        None => Ok(()),
        Some(count) => Err(Error::refused(
            format!("there are {count} records for {rows} rows"),
            "every row has one record",
        )),
    }
}
