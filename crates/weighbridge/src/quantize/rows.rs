//! Rows of unit length as int8 codes: what i8bin holds.

use super::report::bits_per_weight;
use super::{ErrorSums, Kept, QuantizeReport, QuantizeRequest, Quantized};
use crate::convert::{Conversion, keep_tensors, target_format};
use crate::words::to_unit_length;
use std::path::Path;
use weighbridge_format::model::{Piece, Plan};
use weighbridge_format::sink::Progress;
use weighbridge_format::wire::to_len;
use weighbridge_format::{Container, Error, Tensor};

pub(super) fn run(
    mut container: Container,
    output: &Path,
    request: &QuantizeRequest,
    kept: Vec<Kept>,
    progress: Progress,
) -> Result<(Conversion, QuantizeReport), Error> {
    // The format holds one tensor, so that here the others are left out.
    keep_tensors(&mut container, &request.select, &request.exclude)?;
    let format = target_format(output, Some("i8bin"))?;
    let mut plan = format.plan(&container, &request.options)?;
    // That is what was asked for.
    plan.report.losses.retain(|l| !l.what.starts_with("precision of tensor"));
    let tensor =
        container.tensors.first().ok_or_else(|| Error::refused("no tensor is left", ""))?;
    let loss = measure(tensor, &plan, request.options.flag("normalize"), progress)?.loss();
    let before = tensor.stored_len().unwrap_or(0);
    let bits = bits_per_weight(tensor.count(), tensor.count());
    let report = QuantizeReport {
        bytes_before: before,
        bytes_after: plan.size(),
        bits_per_weight: bits,
        loss,
        tensors: vec![Quantized {
            name: tensor.name.clone(),
            method: "i8".to_owned(),
            shape: tensor.shape.clone(),
            bytes_before: before,
            bytes_after: tensor.count(),
            bits_per_weight: bits,
            loss,
        }],
        kept,
        recall_at_10: None,
        calibrated: None,
    };
    let (allow_loss, force) = (request.allow_loss, request.force);
    let output = output.to_owned();
    Ok((Conversion { container, format, plan, output, allow_loss, force }, report))
}

/// Compares the planned codes with the rows they are made of, which are brought to unit length first
/// if that was asked for.
fn measure(
    tensor: &Tensor,
    plan: &Plan,
    normalize: bool,
    progress: Progress,
) -> Result<ErrorSums, Error> {
    let dim = to_len(tensor.shape[1]).max(1);
    let (mut sums, mut waiting, mut next) = (ErrorSums::default(), Vec::new(), 0);
    let mut take = |codes: &[u8]| {
        waiting.extend_from_slice(codes);
        let whole = waiting.len() / dim * dim;
        let mut values = tensor.values_f32(next, whole);
        if normalize {
            values.chunks_mut(dim).for_each(to_unit_length);
        }
        let decoded: Vec<_> =
            waiting.drain(..whole).map(|c| f32::from(c.cast_signed()) / 127.0).collect();
        sums = sums.plus(ErrorSums::of(&values, &decoded));
        next += whole as u64;
        progress(whole as u64);
        Ok(())
    };
    match plan.files.first().and_then(|f| f.pieces.first()) {
        Some(Piece::Stream { from, .. }) => from.produce(&mut take)?,
        Some(Piece::View(view)) => take(view)?,
        _ => {}
    }
    Ok(sums)
}
