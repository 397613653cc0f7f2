//! Container to planned bytes: the rows and the `meta.json` beside them.

use super::document::{Rows, document, holds_entry};
use super::meta;
use super::quantize::Rounding;
use super::survey::{MatrixRows, RowRules, describe};
use super::{CODES, Kind, NORMALIZE, ROUNDING};
use crate::model::{Container, Encoding, Note, NoteKind, Tensor};
use crate::plan::{FilePlan, Holds, Piece, Plan, Report, fit};
use crate::{Advice, Error, Options};
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
    let rules = asked_rules(kind, options)?;
    let normalize = rules.normalize;
    let mut container = container.clone();
    let words = container.take_row_words(&mut report);

    let holds = &kind.info().holds;
    let codes = kind == Kind::I8 && !normalize && container.tensors.iter().all(is_codes);
    let quantizing = Holds { dtypes: QUANTIZED, ..*holds };
    let placements = match kind {
        Kind::F32 => fit(&container, holds, &mut report)?,
        // The type is int8 in any case: --dtype has no say.
        Kind::I8 => {
            container.dtype = None;
            fit(&container, if codes { holds } else { &quantizing }, &mut report)?
        }
    };
    let placed = placements.first().and_then(|p| Some((p, container.tensors.get(p.tensor)?)));
    let (Some((placement, tensor)), Some(shape)) = (placed, container.rows()) else {
        // Without its one matrix there is no file, so that this is more than a loss.
        let advice = Advice::from("it takes one matrix of rows");
        let select = Advice::set("select", "chooses it");
        return Err(report.nothing_fits(kind.info().id, advice.and(select)));
    };
    let shape = [shape.count, shape.dim];
    check_counts(shape, &container)?;

    let rows = MatrixRows { rules, tensor: tensor.clone(), shape };
    let piece = if codes {
        if options.get("rounding").is_some() {
            let text = "the values are codes already and are written as they are";
            let advice = Advice::set("normalize", "quantizes them anew");
            report.warnings.push(Note::new(NoteKind::Unusual, text).advice(advice));
        }
        Piece::tensor(tensor, &placement.encoding, placement.bytes)
    } else {
        let figures = rows.survey()?.into_figures()?;
        let from = tensor.encoding.name();
        describe(kind, &figures, (tensor, &from), normalize, &mut report);
        if kind == Kind::F32 && !normalize {
            Piece::tensor(tensor, &placement.encoding, placement.bytes)
        } else {
            Piece::Stream { bytes: rows.bytes()?, from: Arc::new(rows) }
        }
    };
    let about = match (&container.records, &words) {
        (Some(records), _) => Rows::Records(records),
        (None, Some(words)) => Rows::Words(words),
        (None, None) => Rows::Nothing,
    };
    let mut file = FilePlan::default();
    file.push(piece);
    let embedding = container.metadata.iter().find(|(key, value)| holds_entry(key, value));
    let embedding = embedding.and_then(|(_, value)| value.as_text());
    let mut beside = FilePlan { companion: kind.info().companion, ..FilePlan::named(meta::NAME) };
    let pieces = document(kind, shape, &about, embedding, !normalize)?;
    pieces.into_iter().for_each(|piece| beside.push(piece));
    Ok(Plan::several(vec![file, beside], report))
}

/// How rows are to be stored, by the options.
pub(super) fn asked_rules(kind: Kind, options: &Options) -> Result<RowRules, Error> {
    let rounding = match options.get(ROUNDING.name) {
        None | Some("nearest") => Rounding::Nearest,
        Some("truncate") => Rounding::Truncate,
        Some("nearest-norm") => Rounding::NearestNorm,
        Some(other) => {
            let advice = Advice::one_of(ROUNDING.name, ROUNDING.choices.iter().copied());
            return Err(Error::refused(format!("there is no rounding {other:?}"), advice));
        }
    };
    Ok(RowRules { kind, normalize: options.flag(NORMALIZE.name), rounding })
}

/// The tensor holds i8bin codes, or values that were decoded from such and travelled.
fn is_codes(tensor: &Tensor) -> bool {
    let holds = |e: &Encoding| matches!(e, Encoding::Scaled(scaled) if **scaled == CODES);
    holds(&tensor.encoding) || tensor.origin.as_ref().is_some_and(holds)
}

fn check_counts([rows, dim]: [u64; 2], container: &Container) -> Result<(), Error> {
    if dim == 0 {
        return Err(Error::refused("the rows have no values", ""));
    }
    let count = container.records.as_ref().map(|records| records.count()).transpose()?;
    match count.filter(|&count| count != rows) {
        None => Ok(()),
        Some(count) => Err(Error::refused(
            format!("there are {count} records for {rows} rows"),
            "every row has one record",
        )),
    }
}
