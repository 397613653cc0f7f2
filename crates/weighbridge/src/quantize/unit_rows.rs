//! Rows of unit length as int8 codes: what i8bin holds.

use super::report::bits_per_weight;
use super::{ErrorSums, Method, Quantization, QuantizeReport, Quantized, QuantizedTensor};
use crate::edit::keep_tensors;
use crate::words::to_unit_length;
use weighbridge_format::plan::{LossKind, Piece};
use weighbridge_format::wire::to_len;
use weighbridge_format::{Error, Plan, Progress, Stage, Tensor};

pub(super) fn run(job: Quantization, progress: &mut Progress) -> Result<Quantized, Error> {
    let Quantization { settings, format, mut container, kept, .. } = job;
    // The format holds one tensor, so that here the others are left out.
    keep_tensors(&mut container, &settings.select, &settings.exclude)?;
    let mut plan = format.plan(&container, &settings.options)?;
    // That is what was asked for.
    plan.report.losses.retain(|l| l.kind != LossKind::Precision);
    let tensor =
        container.tensors.first().ok_or_else(|| Error::refused("no tensor is left", ""))?;
    progress.begin(Stage::Quantizing, tensor.count())?;
    let loss = measure(tensor, &plan, settings.options.flag("normalize"), progress)?.figures();
    let before = tensor.stored_len().unwrap_or(0);
    let bits = bits_per_weight(tensor.count(), tensor.count());
    let report = QuantizeReport {
        bytes_before: before,
        bytes_after: plan.size(),
        bits_per_weight: bits,
        loss,
        tensors: vec![QuantizedTensor {
            name: tensor.name.clone(),
            method: Method::UnitRows.name().to_owned(),
            shape: tensor.shape.clone(),
            bytes_before: before,
            bytes_after: tensor.count(),
            bits_per_weight: bits,
            loss,
        }],
        kept,
        adjusted: Vec::new(),
        recall_at_10: None,
        vectors: None,
        calibrated: None,
    };
    Ok(Quantized { container, plan, report })
}

/// Compares the planned codes with the rows they are made of, which are brought to unit length first
/// if that was asked for.
fn measure(
    tensor: &Tensor,
    plan: &Plan,
    normalize: bool,
    progress: &mut Progress,
) -> Result<ErrorSums, Error> {
    let dim = to_len(tensor.shape[1]).max(1);
    let (mut sums, mut waiting, mut next) = (ErrorSums::default(), Vec::new(), 0);
    let mut take = |codes: &[u8]| {
        waiting.extend_from_slice(codes);
        let whole = waiting.len() / dim * dim;
        let mut values = tensor.values_f32(next, whole)?;
        if normalize {
            values.chunks_mut(dim).for_each(to_unit_length);
        }
        let decoded: Vec<_> =
            waiting.drain(..whole).map(|c| f32::from(c.cast_signed()) / 127.0).collect();
        sums = sums.plus(ErrorSums::of(&values, &decoded));
        next += whole as u64;
        progress.advance(whole as u64)
    };
    match plan.files.first().and_then(|f| f.pieces.first()) {
        Some(Piece::Stream { from, .. }) => from.produce(&mut take)?,
        Some(Piece::View(view)) => view.for_each_block(1 << 20, take)?,
        _ => {}
    }
    Ok(sums)
}
