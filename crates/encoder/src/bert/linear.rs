//! A product with a matrix of the model, plus its bias.

use super::tensors::no_numbers;
use crate::kernels::matrix::{self, Activation, Left, Packed, Start};
use crate::kernels::pairs::{self, Kind};
use crate::kernels::{BF16, LEVEL, Level, PANEL, bytes};
use crate::settings::Precision;
use rayon::prelude::*;
use std::ops::Range;
use std::sync::Mutex;
use weighbridge_format::{Error, Tensor};

#[derive(Debug)]
pub(crate) struct Linear {
    weights: Weights,
    /// One for every column of the panels, the last of which may be wider than the matrix.
    bias: Vec<f32>,
    pub depth: usize,
    pub columns: usize,
}

#[derive(Debug)]
enum Weights {
    F32(Packed),
    Pairs(pairs::Packed),
    Bytes(bytes::Packed),
}

/// Room for the rows of a product, rounded as its weights are.
#[derive(Debug, Default)]
pub(crate) struct Rounded {
    pairs: pairs::Rows,
    bytes: bytes::Rows,
}

/// Where the results go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Into {
    /// In place of what is there.
    Place,
    /// Added to what is there.
    Sum,
}

impl Linear {
    /// Of matrices with the same number of columns, one below the other, each with its bias.
    pub(crate) fn new(
        parts: &[(&Tensor, Vec<f32>)],
        depth: usize,
        precision: Precision,
    ) -> Result<Linear, Error> {
        let columns = parts.iter().map(|(_, bias)| bias.len()).sum::<usize>();
        let mut bias: Vec<f32> = parts.iter().flat_map(|(_, bias)| bias).copied().collect();
        bias.resize(columns.next_multiple_of(PANEL), 0.0);
        let odd = Mutex::new(None);
        // The rows of a panel, out of whichever part they are in.
        let rows = |first: usize, values: &mut Vec<f32>, raw: &mut Vec<u8>| {
            values.clear();
            values.resize(PANEL.min(columns - first) * depth, 0.0);
            let mut start = 0;
            for (tensor, bias) in parts {
                let from = first.max(start);
                let end = (first + PANEL).min(start + bias.len());
                if from < end {
                    let place = &mut values[(from - first) * depth..(end - first) * depth];
                    tensor.rows_f32((from - start) as u64, place, raw);
                    if !place.iter().all(|v| v.is_finite())
                        && let Ok(mut odd) = odd.lock()
                    {
                        *odd = Some(tensor.name.clone());
                    }
                }
                start += bias.len();
            }
        };
        let new = || (Vec::new(), Vec::new(), Vec::new());
        // Without products of bf16, f32 is both faster and closer.
        let kind = match precision {
            Precision::Q8 => Some(Kind::Integers),
            Precision::Bf16 if *BF16 => Some(Kind::Bf16),
            Precision::Bf16 | Precision::F32 => None,
        };
        let weights = if precision == Precision::Q8 && *LEVEL == Level::Avx512Vnni {
            let mut packed = bytes::Packed::new(columns, depth);
            packed.panels_mut().for_each_init(new, |(values, raw, _), (first, mut panel)| {
                rows(first, values, raw);
                panel.pack(values, depth);
            });
            Weights::Bytes(packed)
        } else if let Some(kind) = kind {
            let mut packed = pairs::Packed::new(columns, depth, kind);
            packed.panels_mut().for_each_init(new, |(values, raw, codes), (first, mut panel)| {
                rows(first, values, raw);
                panel.pack(values, depth, codes);
            });
            Weights::Pairs(packed)
        } else {
            let mut packed = Packed::new(columns, depth);
            packed.panels_mut().for_each_init(new, |(values, raw, _), (first, panel)| {
                rows(first, values, raw);
                matrix::pack(values, depth, panel);
            });
            Weights::F32(packed)
        };
        match odd.into_inner() {
            Ok(Some(name)) => Err(no_numbers(&name)),
            _ => Ok(Linear { weights, bias, depth, columns }),
        }
    }

    /// `c = activation(a * weights + bias)`, or `c += a * weights + bias`, for the columns of some
    /// panels. Rows of both lie one behind the other.
    pub(crate) fn apply(
        &self,
        a: &[f32],
        panels: Range<usize>,
        c: &mut [f32],
        into: Into,
        activation: Activation,
        rounded: &mut Rounded,
    ) {
        match &self.weights {
            Weights::F32(_) => {}
            Weights::Pairs(packed) => rounded.pairs.take(a, self.depth, packed.kind),
            Weights::Bytes(_) => rounded.bytes.take(a, self.depth),
        }
        self.again(a, panels, c, into, activation, rounded);
    }

    /// The same for other panels right after that.
    pub(crate) fn again(
        &self,
        a: &[f32],
        panels: Range<usize>,
        c: &mut [f32],
        into: Into,
        activation: Activation,
        rounded: &Rounded,
    ) {
        if panels.is_empty() || a.is_empty() {
            return;
        }
        let rows = a.len() / self.depth;
        let first = panels.start * PANEL;
        let start = match into {
            Into::Place => Start::Bias(&self.bias[first..]),
            Into::Sum => Start::BiasAndThere(&self.bias[first..]),
        };
        let (c, c_row) = (&mut c[first..], self.columns);
        match &self.weights {
            Weights::F32(packed) => {
                let left = Left { data: a, row: self.depth, rows };
                let right = packed.panels().part(panels);
                matrix::multiply(left, right, start, activation, c, c_row);
            }
            Weights::Pairs(packed) => {
                let part = (0..rows, panels);
                pairs::multiply(&rounded.pairs, packed, part, start, activation, c, c_row);
            }
            Weights::Bytes(packed) => {
                let part = (0..rows, panels);
                bytes::multiply(&rounded.bytes, packed, part, start, activation, c, c_row);
            }
        }
    }

    /// How many panels the columns are.
    pub(crate) fn panels(&self) -> usize {
        self.columns.div_ceil(PANEL)
    }
}
