//! Rows that are written one behind the other.

use super::Kind;
use super::survey::{RowRules, describe};
use super::write::asked_rules;
use crate::plan::RowLayout;

/// Codes, each row by itself.
pub(super) const I8: RowLayout = RowLayout {
    name: "i8bin",
    encoding: || Kind::I8.encoding(),
    encode: |rows, block, options, out| {
        let rules: RowRules = asked_rules(Kind::I8, options)?;
        rules.encode(rows, block, out).into_figures()
    },
    tell: |figures, tensor, report| {
        let from = crate::Encoding::Plain(weighbridge_codec::DType::F32).name();
        describe(Kind::I8, figures, (tensor, &from), false, report);
    },
    ..RowLayout::PLAIN
};

/// Values as they are.
pub(super) const F32: RowLayout = RowLayout::PLAIN;
