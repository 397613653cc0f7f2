//! Products of rows with packed matrices, both rounded to 16 bits: pairs of values are multiplied and
//! added by one instruction.
//!
//! As *integers*, a row has one scale and [`LARGEST`] steps to each side of zero. A column of weights
//! has one scale too, as fine as 16 bits allow without any sum of products leaving 32 bits: weights in
//! blocks of eight bits and fewer lose next to nothing by it. So sums are exact and need no scales on
//! the way. As *bf16*, values are rounded to eight bits of precision and sums are f32.

use super::lanes::{abs_max_and_sum, round_i16};
use super::matrix::{Activation, MAX_TILE_ROWS, Start};
use super::rounded::{self, TileOptions, Tiles};
use super::{BF16, LEVEL, Level, Lines, PANEL, by_rows};
use std::ops::Range;
use weighbridge_codec::parallel::*;

/// The largest value of a row, in steps.
const LARGEST: f32 = 4095.0;

/// Two values of each column.
pub(crate) type Pairs = [[i16; 2]; PANEL];

/// What the 16 bits are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Kind {
    #[default]
    Integers,
    Bf16,
}

/// A matrix of `columns x depth` values, packed.
#[derive(Debug)]
pub(crate) struct Packed {
    lines: Lines<[i16; 2]>,
    /// One for every column of the panels.
    scales: Vec<f32>,
    /// Pairs of values in a column.
    pairs: usize,
    columns: usize,
    pub kind: Kind,
}

impl Packed {
    /// Room for a matrix whose panels are then filled.
    pub(crate) fn new(columns: usize, depth: usize, kind: Kind) -> Packed {
        let (panels, pairs) = (columns.div_ceil(PANEL), depth.div_ceil(2));
        let lines = Lines::new([0; 2], panels * pairs);
        Packed { lines, scales: vec![1.0; panels * PANEL], pairs, columns, kind }
    }

    fn panel(&self, panel: usize) -> &[Pairs] {
        &self.lines.values().as_chunks().0[panel * self.pairs..][..self.pairs]
    }

    /// The panels, each with the number of its first column.
    pub(crate) fn panels_mut(&mut self) -> impl IndexedParallelIterator<Item = (usize, Panel<'_>)> {
        let (kind, pairs) = (self.kind, self.pairs.max(1));
        let lines = self.lines.values_mut().par_chunks_mut(pairs * PANEL);
        let scales = self.scales.par_chunks_mut(PANEL);
        let panels = lines.zip(scales).enumerate();
        panels.map(move |(p, (lines, scales))| {
            let lines = lines.as_chunks_mut().0;
            (p * PANEL, Panel { lines, scales, kind })
        })
    }
}

#[derive(Debug)]
pub(crate) struct Panel<'a> {
    lines: &'a mut [Pairs],
    scales: &'a mut [f32],
    kind: Kind,
}

impl Panel<'_> {
    /// Puts rows (outputs) of a matrix into the panel.
    pub(crate) fn pack(&mut self, rows: &[f32], depth: usize, codes: &mut Vec<i16>) {
        let width = depth.next_multiple_of(2);
        codes.clear();
        codes.resize(rows.len() / depth * width, 0);
        let places = codes.chunks_exact_mut(width).zip(self.scales.iter_mut());
        for (row, (codes, scale)) in rows.chunks_exact(depth).zip(places) {
            match self.kind {
                Kind::Integers => {
                    *scale = column_scale(row);
                    round_i16(row, 1.0 / *scale, codes);
                }
                Kind::Bf16 => to_bf16(row, codes),
            }
        }
        // Short stretches, so that the lines that are written stay in the cache.
        for (at, lines) in self.lines.chunks_mut(16).enumerate() {
            for (column, codes) in codes.chunks_exact(width).enumerate() {
                let pairs = codes[at * 32..].as_chunks::<2>().0;
                for (line, pair) in lines.iter_mut().zip(pairs) {
                    line[column] = *pair;
                }
            }
        }
    }
}

/// The finest scale with which no code leaves 16 bits and no sum 32.
#[allow(clippy::cast_precision_loss)]
fn column_scale(row: &[f32]) -> f32 {
    let (largest, total) = abs_max_and_sum(row);
    // Rounding adds half a step to each; a little is left for the rounding of the sum itself.
    let room = i32::MAX as f32 / LARGEST * 0.999 - row.len() as f32 / 2.0;
    let scale = (largest / 32_760.0).max(total / room.max(1.0));
    // For zeros, or values so small that the inverse is infinite, any scale does.
    if scale < 1e-30 { 1.0 } else { scale }
}

/// Rounds to bf16, to nearest, ties to even.
fn to_bf16(row: &[f32], codes: &mut [i16]) {
    for (code, value) in codes.iter_mut().zip(row) {
        let bits = value.to_bits();
        let up = 0x7fff + (bits >> 16 & 1);
        // Rounding up must not turn NaN into infinity.
        let bits = if value.is_nan() { bits } else { bits.wrapping_add(up) };
        *code = (bits >> 16).cast_signed() as i16;
    }
}

/// Rows (activations) rounded to 16 bits, each with its scale.
#[derive(Debug, Default)]
pub(crate) struct PairRows {
    values: Vec<i16>,
    scales: Vec<f32>,
    /// Values of a row, an even number.
    width: usize,
}

impl PairRows {
    /// Rounds rows of `depth` values, which lie one behind the other, in place of earlier ones.
    pub(crate) fn round_rows(&mut self, rows: &[f32], depth: usize, kind: Kind) {
        let count = rows.len() / depth;
        self.width = depth.next_multiple_of(2);
        // The buffer only grows: what earlier rows left in it is overwritten.
        self.values.resize(self.values.len().max(count * self.width), 0);
        self.scales.clear();
        self.scales.resize(count, 1.0);
        let places = self.values.chunks_exact_mut(self.width).zip(&mut self.scales);
        for (row, (values, scale)) in rows.chunks_exact(depth).zip(places) {
            match kind {
                Kind::Bf16 => to_bf16(row, values),
                Kind::Integers => {
                    let (largest, sum) = abs_max_and_sum(row);
                    // Rounding to integers loses NaN, but the sum keeps it.
                    *scale = if sum.is_nan() { f32::NAN } else { largest / LARGEST };
                    // Rows of zeros, or of values so small that the inverse is infinite, become
                    // zeros.
                    round_i16(row, if *scale < 1e-30 { 0.0 } else { 1.0 / *scale }, values);
                }
            }
            values[depth..].fill(0);
        }
    }
}

#[cfg(test)]
impl PairRows {
    /// The products with the first panel by the reference implementation.
    pub(super) fn plain(&self, b: &Packed, c: &mut [f32]) {
        let tile = Tile {
            a: &self.values,
            row_scales: &self.scales,
            lines: b.panel(0),
            column_scales: b.scales.first_chunk().expect("one panel"),
            options: TileOptions { bias: &[0.0; PANEL], accumulate: false, prefetch: &[] },
            kind: b.kind,
        };
        match b.kind {
            Kind::Integers => plain_integers(tile, c, PANEL),
            Kind::Bf16 => plain_bf16(tile, c, PANEL),
        }
    }
}

/// `c = start + a * b` for some rows and panels; `c` begins with the first of them.
pub(crate) fn multiply(
    a: &PairRows,
    b: &Packed,
    part: (Range<usize>, Range<usize>),
    start: Start,
    activation: Activation,
    c: &mut [f32],
    c_stride: usize,
) {
    assert_eq!(a.width, b.pairs * 2, "rows as wide as the matrix is deep");
    rounded::multiply(&Operands { a, b }, part, b.columns, start, activation, c, c_stride);
}

struct Operands<'a> {
    a: &'a PairRows,
    b: &'a Packed,
}

impl Tiles for Operands<'_> {
    fn memory(&self, panel: usize) -> &[u8] {
        rounded::bytes(self.b.panel(panel))
    }

    fn tile(
        &self,
        rows: Range<usize>,
        panel: usize,
        options: TileOptions,
        c: &mut [f32],
        c_stride: usize,
    ) {
        let (a, b) = (self.a, self.b);
        let n = rows.len();
        assert!((1..=MAX_TILE_ROWS).contains(&n), "rows that a tile can have");
        let tile = Tile {
            a: &a.values[rows.start * a.width..][..n * a.width],
            row_scales: &a.scales[rows][..n],
            lines: b.panel(panel),
            column_scales: b.scales[panel * PANEL..].first_chunk().expect("whole panels"),
            options,
            kind: b.kind,
        };
        by_rows!(n, N => tile.rows::<N>(c, c_stride));
    }
}

/// Some rows times one panel.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tile<'a> {
    pub a: &'a [i16],
    pub row_scales: &'a [f32],
    pub lines: &'a [Pairs],
    pub column_scales: &'a [f32; PANEL],
    pub options: TileOptions<'a>,
    pub kind: Kind,
}

impl Tile<'_> {
    #[inline]
    fn rows<const N: usize>(self, c: &mut [f32], c_stride: usize) {
        // SAFETY (of all calls here): the processor has it, and the slices are as long as the tile
        // needs.
        #[cfg(target_arch = "x86_64")]
        match (self.kind, *LEVEL) {
            (Kind::Bf16, _) if *BF16 => {
                return unsafe { super::avx512::bf16_tile::<N>(self, c, c_stride) };
            }
            (Kind::Integers, Level::Avx512 | Level::Avx512Vnni) => {
                return unsafe { super::avx512::integer_tile::<N>(self, c, c_stride) };
            }
            (Kind::Integers, Level::Avx2) => {
                return unsafe { super::avx2::integer_tile::<N>(self, c, c_stride) };
            }
            _ => {}
        }
        match self.kind {
            Kind::Integers => plain_integers(self, c, c_stride),
            Kind::Bf16 => plain_bf16(self, c, c_stride),
        }
    }

    /// The result for the sum of a row and a column.
    fn finish(self, sum: f32, row: usize, column: usize, existing: f32) -> f32 {
        let bias = self.options.bias[column];
        let start = if self.options.accumulate { bias + existing } else { bias };
        super::mul_add(sum, self.column_scales[column] * self.row_scales[row], start)
    }
}

/// The reference implementation for integers.
pub(super) fn plain_integers(tile: Tile, c: &mut [f32], c_stride: usize) {
    for (r, row) in tile.a.chunks_exact(2 * tile.lines.len().max(1)).enumerate() {
        let mut sums = [0i32; PANEL];
        for (left, line) in row.as_chunks::<2>().0.iter().zip(tile.lines) {
            let [x, y] = left.map(i32::from);
            for (sum, right) in sums.iter_mut().zip(line) {
                *sum += x * i32::from(right[0]) + y * i32::from(right[1]);
            }
        }
        for (i, place) in c[r * c_stride..][..PANEL].iter_mut().enumerate() {
            #[allow(clippy::cast_precision_loss)]
            let sum = sums[i] as f32;
            *place = tile.finish(sum, r, i, *place);
        }
    }
}

/// The reference implementation for bf16.
pub(super) fn plain_bf16(tile: Tile, c: &mut [f32], c_stride: usize) {
    let wide = |code: i16| f32::from_bits(u32::from(code.cast_unsigned()) << 16);
    for (r, row) in tile.a.chunks_exact(2 * tile.lines.len().max(1)).enumerate() {
        let mut sums = [0f32; PANEL];
        for (left, line) in row.as_chunks::<2>().0.iter().zip(tile.lines) {
            let [x, y] = left.map(wide);
            for (sum, right) in sums.iter_mut().zip(line) {
                *sum = super::mul_add(x, wide(right[0]), super::mul_add(y, wide(right[1]), *sum));
            }
        }
        for (i, place) in c[r * c_stride..][..PANEL].iter_mut().enumerate() {
            *place = tile.finish(sums[i], r, i, *place);
        }
    }
}
