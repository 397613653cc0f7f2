//! The numbered rules, and the check of the values.

use crate::model::Container;
use crate::rules;
use crate::wire::{Findings, to_len};
use rayon::prelude::*;
use weighbridge_codec::scan;

rules! {
    CUT_SHORT "ST-01" Error "the file ends too early";
    TOO_LONG "ST-02" Error "the header is longer than readers accept";
    JSON "ST-03" Error "the header is not the JSON it should be";
    DUPLICATE "ST-04" Error "a tensor name appears twice";
    DTYPE "ST-05" Error "unknown data type";
    SIZE "ST-06" Error "type and shape do not give the size of the data";
    OFFSETS "ST-07" Error "the data ranges have gaps, overlap or leave the file";
    NOT_FINITE "ST-08" Warning "a value is not a finite number";
    HUB "ST-09" Warning "the \"weighbridge\" metadata entry does not fit the file";
    INDEX "ST-10" Error "the index of shards is malformed";
    SHARD "ST-11" Error "a shard does not hold what the index says";
    PADDING "ST-12" Warning "the data does not start at a multiple of 8";
}

/// The first NaN or infinity of each tensor that has one.
pub(in super::super) fn check_values(container: &Container, findings: &mut Findings) {
    let bad = container.tensors.par_iter().filter_map(|tensor| {
        let at = scan::first_non_finite(
            tensor.encoding.stored(),
            tensor.view()?,
            to_len(tensor.count()),
        )?;
        Some((tensor, at as u64))
    });
    for (tensor, at) in bad.collect::<Vec<_>>() {
        let start =
            tensor.view().map_or(0, |v| v.span().start) + at * tensor.encoding.stored().bits() / 8;
        let value = tensor.scalar(at).map_or(f64::NAN, |s| s.to_f64());
        findings.push(
            NOT_FINITE
                .at(start..start + tensor.encoding.stored().bits().div_ceil(8))
                .field(format!("tensor {:?}", tensor.name))
                .expected("finite numbers")
                .found(format!("{value} at index {at}")),
        );
    }
}
