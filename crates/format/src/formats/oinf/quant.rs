//! The quantization payload of version 2.

use super::layout::{pad, zeros};
use super::rules::{PADDING, QUANT, SCALE, SCHEME};
use crate::model::{Scaled, Scaling};
use crate::source::Source;
use crate::wire::{Cursor, Findings, Span, Stop, put_u32, put_u64};
use weighbridge_codec::DType;

const SYMMETRIC: u32 = 1;
const ASYMMETRIC: u32 = 2;
const NONE: u32 = 0;
const PER_TENSOR: u32 = 1;
const PER_CHANNEL: u32 = 2;

/// Parses a payload that must fill `span` exactly.
pub(super) fn read(
    source: &Source,
    span: Span,
    codes: DType,
    shape: &[u64],
    field: &str,
    findings: &mut Findings,
) -> Result<Scaled, Stop> {
    let mut c = Cursor::new(source, span.clone(), QUANT);
    let [scheme, scale_mode, zero_mode, reserved] =
        [c.u32(field)?, c.u32(field)?, c.u32(field)?, c.u32(field)?];
    let [scale_axis, scale_count, zero_axis, zero_count] =
        [c.u64(field)?, c.u64(field)?, c.u64(field)?, c.u64(field)?];
    let bad = |at: u64, expected: &str, found: String| {
        let at = span.start + at;
        Stop::from(QUANT.at(at..at + 8).field(field).expected(expected).found(found).hint(
            "a known version 2 writer puts all data before all scales and so misplaces them \
             whenever another tensor follows a quantized one",
        ))
    };
    if scheme != SYMMETRIC && scheme != ASYMMETRIC {
        return Err(bad(0, "scheme 1 or 2", scheme.to_string()));
    }
    if reserved != 0 {
        return Err(bad(12, "0 in the reserved field", reserved.to_string()));
    }
    let axis = axis_of(scale_mode, scale_axis, scale_count, shape).ok_or_else(|| {
        bad(
            16,
            "a scale for the tensor, or one for each index of an axis",
            format!("mode {scale_mode}, axis {scale_axis}, {scale_count} scales"),
        )
    })?;
    let has_zero = match zero_mode {
        NONE if zero_axis == 0 && zero_count == 0 => false,
        _ if zero_mode == scale_mode
            && zero_axis == scale_axis
            && zero_count == scale_count
            && scheme == ASYMMETRIC =>
        {
            true
        }
        _ => {
            let found = format!(
                "scheme {scheme}, mode {zero_mode}, axis {zero_axis}, {zero_count} zero points"
            );
            return Err(bad(
                32,
                "no zero points, or as many as scales with an asymmetric scheme",
                found,
            ));
        }
    };
    if !has_zero && scheme == ASYMMETRIC {
        findings.push(SCHEME.at(span.start..span.start + 4).field(field));
    }
    let words = c.take(scale_count.saturating_mul(4), field)?.as_chunks().0;
    let scales: Vec<_> = words.iter().map(|b| f32::from_le_bytes(*b)).collect();
    let zero_bytes = if has_zero { zero_count.saturating_mul(4) } else { 0 };
    let words = c.take(zero_bytes, field)?.as_chunks().0;
    let points: Vec<_> = words.iter().map(|b| i32::from_le_bytes(*b)).collect();
    let used = c.position() - span.start;
    let padding = used.next_multiple_of(8) - used;
    zeros(&mut c, padding, field, PADDING, findings)?;
    if c.remaining() != 0 {
        return Err(bad(
            0,
            &format!("{} bytes", used + padding),
            format!("{} bytes", span.end - span.start),
        ));
    }
    if !codes.is_integer() {
        let finding = QUANT.at(span).field(field).expected("scales on a tensor of integers");
        return Err(Stop::from(finding.found(codes)));
    }
    if let Some(bad) = scales.iter().position(|s| !s.is_finite() || *s == 0.0) {
        let at = span.start + 48 + 4 * bad as u64;
        findings
            .push(SCALE.at(at..at + 4).field(field).expected("finite, not 0").found(scales[bad]));
    }
    let zero_points = has_zero.then_some(points);
    Ok(Scaled { codes, scaling: Scaling::Affine { axis, scales, zero_points } })
}

/// `Some(None)` for one scale, `Some(Some(axis))` for one per index; `None` when it makes no sense.
fn axis_of(mode: u32, axis: u64, count: u64, shape: &[u64]) -> Option<Option<usize>> {
    match mode {
        PER_TENSOR if axis == 0 && count == 1 => Some(None),
        PER_CHANNEL => {
            let axis = usize::try_from(axis).ok()?;
            (shape.get(axis) == Some(&count)).then_some(Some(axis))
        }
        _ => None,
    }
}

pub(super) fn to_bytes(scaled: &Scaled) -> Vec<u8> {
    let Scaling::Affine { axis, scales, zero_points } = &scaled.scaling else { return Vec::new() };
    let mode = if axis.is_some() { PER_CHANNEL } else { PER_TENSOR };
    let (axis, count) = (axis.unwrap_or(0) as u64, scales.len() as u64);
    let mut out = Vec::new();
    let zero = zero_points.as_deref();
    for v in [
        if zero.is_some() { ASYMMETRIC } else { SYMMETRIC },
        mode,
        if zero.is_some() { mode } else { NONE },
        0,
    ] {
        put_u32(&mut out, v);
    }
    let (zero_axis, zero_count) = if zero.is_some() { (axis, count) } else { (0, 0) };
    [axis, count, zero_axis, zero_count].into_iter().for_each(|v| put_u64(&mut out, v));
    scales.iter().for_each(|s| put_u32(&mut out, s.to_bits()));
    zero.unwrap_or_default().iter().for_each(|z| put_u32(&mut out, z.cast_unsigned()));
    pad(&mut out);
    out
}
