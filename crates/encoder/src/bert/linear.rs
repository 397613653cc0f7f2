//! A product with a matrix of the model, plus its bias.

use crate::kernels::matrix::{self, Activation, Left, Packed, Start, rows_at_once};
use crate::kernels::pairs::{self, Kind};
use crate::kernels::{BF16, LEVEL, Level, PANEL, bytes};
use crate::settings::Precision;
use rayon::prelude::*;
use std::ops::Range;
use weighbridge_format::Tensor;

/// With so many rows a thread they are shared out; with fewer, the columns.
const ENOUGH_ROWS: usize = 24;

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
    pub(crate) fn new(parts: &[(&Tensor, Vec<f32>)], depth: usize, precision: Precision) -> Linear {
        let columns = parts.iter().map(|(_, bias)| bias.len()).sum::<usize>();
        let mut bias: Vec<f32> = parts.iter().flat_map(|(_, bias)| bias).copied().collect();
        bias.resize(columns.next_multiple_of(PANEL), 0.0);
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
        Linear { weights, bias, depth, columns }
    }

    /// `c = activation(a * weights + bias)`, or `c += a * weights + bias`. Rows lie one behind the
    /// other; so many threads share the work.
    pub(crate) fn apply(
        &self,
        a: &[f32],
        c: &mut [f32],
        into: Into,
        activation: Activation,
        threads: usize,
        rounded: &mut Rounded,
    ) {
        let rows = a.len() / self.depth;
        match &self.weights {
            Weights::F32(_) => {}
            Weights::Pairs(packed) => rounded.pairs.take(a, self.depth, packed.kind),
            Weights::Bytes(_) => rounded.bytes.take(a, self.depth),
        }
        let left = (a, &*rounded);
        let start = match into {
            Into::Place => Start::Bias(&self.bias),
            Into::Sum => Start::BiasAndThere(&self.bias),
        };
        let panels = self.columns.div_ceil(PANEL);
        if threads == 1 {
            self.part(left, 0..rows, 0..panels, start, activation, c);
        } else if rows >= ENOUGH_ROWS * threads {
            let share = rows.div_ceil(threads).next_multiple_of(rows_at_once());
            c.par_chunks_mut(share * self.columns).enumerate().for_each(|(i, c)| {
                let rows = i * share..rows.min((i + 1) * share);
                self.part(left, rows, 0..panels, start, activation, c);
            });
        } else {
            // Every thread reads its own part of the weights, which takes the time here.
            let share = panels.div_ceil(threads);
            let there = &*c;
            let parts: Vec<_> = (0..panels.div_ceil(share))
                .into_par_iter()
                .map(|i| {
                    let panels = i * share..panels.min((i + 1) * share);
                    let columns = panels.start * PANEL..self.columns.min(panels.end * PANEL);
                    let mut part = vec![0.0; rows * columns.len()];
                    if into == Into::Sum {
                        let there = there.chunks_exact(self.columns);
                        for (part, c) in part.chunks_exact_mut(columns.len()).zip(there) {
                            part.copy_from_slice(&c[columns.clone()]);
                        }
                    }
                    self.part(left, 0..rows, panels, start, activation, &mut part);
                    (columns, part)
                })
                .collect();
            for (columns, part) in parts {
                let part = part.chunks_exact(columns.len());
                for (row, part) in c.chunks_exact_mut(self.columns).zip(part) {
                    row[columns.clone()].copy_from_slice(part);
                }
            }
        }
    }

    /// Some rows with some panels; `c` has only the columns of these.
    fn part(
        &self,
        (a, rounded): (&[f32], &Rounded),
        rows: Range<usize>,
        panels: Range<usize>,
        start: Start,
        activation: Activation,
        c: &mut [f32],
    ) {
        let first = panels.start * PANEL;
        let width = self.columns.min(panels.end * PANEL) - first;
        let start = match start {
            Start::Bias(bias) => Start::Bias(&bias[first..]),
            Start::BiasAndThere(bias) => Start::BiasAndThere(&bias[first..]),
            Start::Zero => Start::Zero,
        };
        match &self.weights {
            Weights::F32(packed) => {
                let (depth, right) = (self.depth, packed.panels().part(panels));
                let a = &a[rows.start * depth..rows.end * depth];
                let left = Left { data: a, row: depth, rows: rows.len() };
                matrix::multiply(left, right, start, activation, c, width);
            }
            Weights::Pairs(packed) => {
                let (a, part) = (&rounded.pairs, (rows, panels));
                pairs::multiply(a, packed, part, start, activation, c, width);
            }
            Weights::Bytes(packed) => {
                let (a, part) = (&rounded.bytes, (rows, panels));
                bytes::multiply(a, packed, part, start, activation, c, width);
            }
        }
    }
}
