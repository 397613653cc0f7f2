//! A linear layer: a product with a matrix of the model, plus its bias.

use crate::kernels::matrix::{self, Left, Packed};
use crate::kernels::pairs::{self, Kind};
use crate::kernels::walk::{Activation, Results, Start};
use crate::kernels::{PANEL, bytes, tiles};
use crate::settings::Precision;
use crate::tensors::not_finite;
use std::ops::Range;
use std::sync::Mutex;
use weighbridge_codec::memory::Arena;
use weighbridge_codec::parallel::*;
use weighbridge_codec::scan::all_finite;
use weighbridge_codec::simd::Level;
use weighbridge_format::{Encoding, Error, Tensor};

/// The packed weights and the bias of a linear layer.
#[derive(Debug)]
pub(crate) struct Linear {
    /// The instructions that the weights were packed for.
    level: Level,
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
    Tiles(tiles::Packed),
}

/// How the values of a product are stored, rows and weights alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Packing {
    F32,
    Pairs(Kind),
    /// For processors with byte products.
    Bytes,
    /// As bf16, for processors that multiply tiles of it: both faster and closer than bytes.
    Tiles,
}

impl Packing {
    /// The fastest for a precision on this processor.
    pub(crate) fn of(precision: Precision) -> Packing {
        let level = Level::best();
        match precision {
            Precision::Q8 | Precision::Bf16 if level.has_tiles() => Packing::Tiles,
            Precision::Q8 if level.has_byte_products() => Packing::Bytes,
            Precision::Q8 => Packing::Pairs(Kind::Integers),
            // Without products of bf16, f32 is both faster and closer. Where they are not of tiles, whether
            // they are faster depends on the processor.
            Precision::Bf16 if level.has_bf16_products() => Packing::Pairs(Kind::Bf16),
            Precision::Bf16 | Precision::F32 => Packing::F32,
        }
    }

    /// The one for queries, keys and values. Bytes round them so much that it is nearly half of the error of
    /// a vector, in a quarter of the products.
    pub(crate) fn of_attention(self) -> Packing {
        match self {
            Packing::Bytes => Packing::Pairs(Kind::Integers),
            _ => self,
        }
    }
}

/// Whether some matrices were quantized before.
fn were_rounded(matrices: &[(&Tensor, Vec<f32>)]) -> bool {
    matrices.iter().any(|(tensor, _)| !matches!(tensor.encoding, Encoding::Plain(_)))
}

/// Fills panels, each of which is given with the number of its first column: with what packs its values,
/// which are read by that number. Buffers are kept from one to the next.
fn fill<P: Send, Codes: Default>(
    panels: impl IndexedParallelIterator<Item = (usize, P)>,
    read: impl Fn(usize, &mut Vec<f32>, &mut Vec<u8>) + Sync + Send,
    pack: impl Fn(P, &[f32], &mut Codes) + Sync + Send,
) {
    panels.for_each_init(Default::default, |(values, raw, codes), (first, panel)| {
        read(first, values, raw);
        pack(panel, values, codes);
    });
}

/// The input rows of a product, rounded as its weights are; with f32 weights it stays empty.
#[derive(Debug, Default)]
pub(crate) struct RoundedRows {
    pairs: pairs::PairRows,
    bytes: bytes::ByteRows,
    tiles: tiles::TileRows,
}

/// What happens to what the output holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Output {
    /// Results replace it.
    Overwrite,
    /// Results are added to it, as in a residual connection.
    Accumulate,
}

impl Linear {
    /// Packs matrices with the same number of columns, one below the other, each with its bias. The
    /// arena is that of what is kept as long.
    pub(crate) fn new(
        matrices: &[(&Tensor, Vec<f32>)],
        depth: usize,
        packing: Packing,
        arena: &Arena,
    ) -> Result<Linear, Error> {
        let all = matrices.iter().map(|(_, bias)| bias.len()).sum::<usize>();
        Linear::of_rows(matrices, 0..all, depth, packing, arena)
    }

    /// The same of some rows of all matrices.
    pub(crate) fn of_rows(
        matrices: &[(&Tensor, Vec<f32>)],
        wanted: Range<usize>,
        depth: usize,
        packing: Packing,
        arena: &Arena,
    ) -> Result<Linear, Error> {
        let columns = wanted.len();
        let biases = matrices.iter().flat_map(|(_, bias)| bias).copied();
        let mut bias: Vec<f32> = biases.skip(wanted.start).take(columns).collect();
        bias.resize(columns.next_multiple_of(PANEL), 0.0);
        let failed = Mutex::new(None);
        // Reads the rows of a panel, from whichever matrices they are in.
        let rows = |first: usize, values: &mut Vec<f32>, raw: &mut Vec<u8>| {
            values.clear();
            values.resize(PANEL.min(columns - first) * depth, 0.0);
            let first = wanted.start + first;
            let mut start = 0;
            for (tensor, bias) in matrices {
                let from = first.max(start);
                let end = (first + PANEL).min(start + bias.len()).min(wanted.end);
                if from < end {
                    let place = &mut values[(from - first) * depth..(end - first) * depth];
                    let read = tensor.rows_f32((from - start) as u64, place, raw);
                    let read = read.and_then(|()| match all_finite(place) {
                        true => Ok(()),
                        false => Err(not_finite(&tensor.name)),
                    });
                    if let (Err(error), Ok(mut failed)) = (read, failed.lock()) {
                        *failed = Some(error);
                    }
                }
                start += bias.len();
            }
        };
        let level = Level::best();
        let weights = match packing {
            Packing::Bytes => {
                let mut packed = bytes::Packed::new(columns, depth, arena);
                let were_rounded = were_rounded(matrices);
                fill(packed.panels_mut(), rows, |mut panel, values, codes| {
                    panel.pack(level, values, depth, were_rounded, codes);
                });
                Weights::Bytes(packed)
            }
            Packing::Pairs(kind) => {
                let mut packed = pairs::Packed::new(columns, depth, kind, arena);
                fill(packed.panels_mut(), rows, |mut panel, values, codes| {
                    panel.pack(level, values, depth, codes);
                });
                Weights::Pairs(packed)
            }
            Packing::Tiles => {
                let mut packed = tiles::Packed::new(columns, depth, arena);
                fill(packed.panels_mut(), rows, |mut panel, values, codes| {
                    panel.pack(level, values, depth, codes);
                });
                Weights::Tiles(packed)
            }
            Packing::F32 => {
                let mut packed = Packed::new(columns, depth, arena);
                fill(packed.panels_mut(), rows, |panel, values, ()| {
                    matrix::pack(values, depth, panel);
                });
                Weights::F32(packed)
            }
        };
        match failed.into_inner() {
            Ok(Some(error)) => Err(error),
            _ => Ok(Linear { level, weights, bias, depth, columns }),
        }
    }

    /// `c = activation(a * weights + bias)`, or `c += a * weights + bias`, for the columns of some
    /// panels. Rows of both lie one behind the other.
    pub(crate) fn apply(
        &self,
        a: &[f32],
        panels: Range<usize>,
        c: &mut [f32],
        output: Output,
        activation: Activation,
        rounded: &mut RoundedRows,
    ) {
        self.round(a, rounded);
        self.apply_rounded(a, panels, c, output, activation, rounded);
    }

    /// Rounds rows as the weights are.
    pub(crate) fn round(&self, a: &[f32], rounded: &mut RoundedRows) {
        match &self.weights {
            Weights::F32(_) => {}
            Weights::Pairs(packed) => {
                rounded.pairs.round_rows(self.level, a, self.depth, packed.kind);
            }
            Weights::Bytes(_) => rounded.bytes.round_rows(self.level, a, self.depth),
            Weights::Tiles(_) if self.level.has_tiles() => {
                let rows = Left { data: a, stride: self.depth, rows: a.len() / self.depth };
                rounded.tiles.round_rows(self.level, rows, self.depth);
            }
            Weights::Tiles(_) => unreachable!("packed where there are tiles"),
        }
    }

    /// Like [`Linear::apply`] with rows that it has just rounded, for other panels.
    pub(crate) fn apply_rounded(
        &self,
        a: &[f32],
        panels: Range<usize>,
        c: &mut [f32],
        output: Output,
        activation: Activation,
        rounded: &RoundedRows,
    ) {
        if panels.is_empty() || a.is_empty() {
            return;
        }
        let first = panels.start * PANEL;
        let start = match output {
            Output::Overwrite => Start::Bias(&self.bias[first..]),
            Output::Accumulate => Start::BiasAndResidual(&self.bias[first..]),
        };
        let results = Results { start, activation, c: &mut c[first..], stride: self.columns };
        self.multiply(a, panels, results, rounded);
    }

    /// Like [`Linear::apply_rounded`], with the columns of these panels alone in the output, whose rows
    /// are `stride` apart.
    pub(crate) fn apply_apart(
        &self,
        a: &[f32],
        panels: Range<usize>,
        c: &mut [f32],
        stride: usize,
        activation: Activation,
        rounded: &RoundedRows,
    ) {
        if panels.is_empty() || a.is_empty() {
            return;
        }
        let start = Start::Bias(&self.bias[panels.start * PANEL..]);
        self.multiply(a, panels, Results { start, activation, c, stride }, rounded);
    }

    fn multiply(&self, a: &[f32], panels: Range<usize>, results: Results, rounded: &RoundedRows) {
        let rows = a.len() / self.depth;
        match &self.weights {
            Weights::F32(packed) => {
                let left = Left { data: a, stride: self.depth, rows };
                let right = packed.panels().part(panels);
                matrix::multiply(self.level, left, right, results);
            }
            Weights::Pairs(packed) => {
                pairs::multiply(self.level, &rounded.pairs, packed, (0..rows, panels), results);
            }
            // Asked again, so that modules for processors that never have them do without the kernels.
            Weights::Bytes(packed) if self.level.has_byte_products() => {
                bytes::multiply(self.level, &rounded.bytes, packed, (0..rows, panels), results);
            }
            Weights::Tiles(packed) if self.level.has_tiles() => {
                let right = packed.panels().part(panels);
                tiles::multiply(self.level, &rounded.tiles, right, results);
            }
            Weights::Tiles(_) | Weights::Bytes(_) => {
                unreachable!("packed where there are such products")
            }
        }
    }

    /// How many panels the columns are.
    pub(crate) fn panels(&self) -> usize {
        self.columns.div_ceil(PANEL)
    }
}
