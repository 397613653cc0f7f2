//! Products of rows with packed matrices, both rounded to 16 bits: pairs of values are multiplied and
//! added by one instruction.
//!
//! As *integers*, a row has one scale and [`LARGEST`] steps to each side of zero. A column of weights
//! has one scale too, as fine as 16 bits allow without any sum of products leaving 32 bits: weights in
//! blocks of eight bits and fewer lose next to nothing by it. So sums are exact and need no scales on
//! the way. As *bf16*, values are rounded to eight bits of precision and sums are f32.

use super::lanes::{abs_max_and_sum, round_i16};
use super::walk::{self, Part, Results, STEPS, TileResults, Tiles, each_panel};
use super::{Lines, PANEL, inverse};
use std::marker::PhantomData;
use weighbridge_codec::memory::Arena;
use weighbridge_codec::panel;
use weighbridge_codec::parallel::*;
use weighbridge_codec::simd::{
    Bf16Kernel, Bf16Products, Level, Prefetcher, Rows, SixteenKernel, Vector,
};

/// The largest value of a row, in steps.
const LARGEST: f32 = 4095.0;

/// Two values of each column.
type Pairs = [[i16; 2]; PANEL];

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
    pub(crate) fn new(columns: usize, depth: usize, kind: Kind, arena: &Arena) -> Packed {
        let (panels, pairs) = (columns.div_ceil(PANEL), depth.div_ceil(2));
        let lines = Lines::new_in(arena, panels * pairs);
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
    pub(crate) fn pack(&mut self, level: Level, rows: &[f32], depth: usize, codes: &mut Vec<i16>) {
        let width = depth.next_multiple_of(2);
        codes.clear();
        codes.resize(rows.len() / depth * width, 0);
        let places = codes.chunks_exact_mut(width).zip(self.scales.iter_mut());
        for (row, (codes, scale)) in rows.chunks_exact(depth).zip(places) {
            match self.kind {
                Kind::Integers => {
                    *scale = column_scale(level, row);
                    round_i16(level, row, 1.0 / *scale, codes);
                }
                Kind::Bf16 => to_bf16(level, row, codes),
            }
        }
        let pairs = codes.as_chunks::<2>().0;
        panel::pack(pairs, width / 2, self.lines.as_flattened_mut());
    }
}

/// The finest scale with which no code leaves 16 bits and no sum 32.
#[allow(clippy::cast_precision_loss)]
fn column_scale(level: Level, row: &[f32]) -> f32 {
    let (largest, total) = abs_max_and_sum(level, row);
    // Rounding adds half a step to each; a little is left for the rounding of the sum itself.
    let room = i32::MAX as f32 / LARGEST * 0.999 - row.len() as f32 / 2.0;
    let scale = (largest / 32_760.0).max(total / room.max(1.0));
    // For zeros, or values so small that the inverse is infinite, any scale does.
    if scale < 1e-30 { 1.0 } else { scale }
}

/// Rounds to bf16; behind the values, codes stay as they are.
pub(super) fn to_bf16(level: Level, values: &[f32], codes: &mut [i16]) {
    level.run_bf16(Rounding { values, codes });
}

struct Rounding<'a> {
    values: &'a [f32],
    codes: &'a mut [i16],
}

impl Bf16Kernel for Rounding<'_> {
    type Output = ();

    #[inline(always)]
    fn run<V: Bf16Products>(self, token: V::Token) {
        let (lanes, rest) = self.values.as_chunks::<16>();
        for (lanes, codes) in lanes.iter().zip(self.codes.chunks_exact_mut(16)) {
            V::load(token, lanes).to_bf16(codes);
        }
        if !rest.is_empty() {
            let (mut padded, mut rounded) = ([0.0; 16], [0; 16]);
            padded[..rest.len()].copy_from_slice(rest);
            V::load(token, &padded).to_bf16(&mut rounded);
            let codes = &mut self.codes[lanes.len() * 16..][..rest.len()];
            codes.copy_from_slice(&rounded[..rest.len()]);
        }
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
    pub(crate) fn round_rows(&mut self, level: Level, rows: &[f32], depth: usize, kind: Kind) {
        let count = rows.len() / depth;
        self.width = depth.next_multiple_of(2);
        // The buffer only grows: what earlier rows left in it is overwritten.
        self.values.resize(self.values.len().max(count * self.width), 0);
        self.scales.clear();
        self.scales.resize(count, 1.0);
        let places = self.values.chunks_exact_mut(self.width).zip(&mut self.scales);
        for (row, (values, scale)) in rows.chunks_exact(depth).zip(places) {
            match kind {
                Kind::Bf16 => to_bf16(level, row, values),
                Kind::Integers => {
                    let (largest, sum) = abs_max_and_sum(level, row);
                    // Rounding to integers loses NaN, but the sum keeps it.
                    *scale = if sum.is_nan() { f32::NAN } else { largest / LARGEST };
                    round_i16(level, row, inverse(*scale), values);
                }
            }
            values[depth..].fill(0);
        }
    }
}

/// `c = start + a * b` for some rows and panels.
pub(crate) fn multiply(level: Level, a: &PairRows, b: &Packed, part: Part, results: Results) {
    assert_eq!(a.width, b.pairs * 2, "rows as wide as the matrix is deep");
    let product = Product { level, a, b, part, results };
    match b.kind {
        Kind::Integers => level.run_sixteen(product),
        Kind::Bf16 => level.run_bf16(product),
    }
}

struct Product<'a> {
    level: Level,
    a: &'a PairRows,
    b: &'a Packed,
    part: Part,
    results: Results<'a>,
}

impl SixteenKernel for Product<'_> {
    type Output = ();

    #[inline(always)]
    fn run<V: Vector>(self, token: V::Token) {
        self.multiply::<V, Integers>(token);
    }
}

impl Bf16Kernel for Product<'_> {
    type Output = ();

    #[inline(always)]
    fn run<V: Bf16Products>(self, token: V::Token) {
        self.multiply::<V, Bf16>(token);
    }
}

impl Product<'_> {
    #[inline(always)]
    fn multiply<V: Vector, S: Sums<V>>(self, token: V::Token) {
        let Product { level, a, b, part, results } = self;
        let tiles = PairTiles::<S> { a, b, sums: PhantomData };
        walk::multiply::<V>((level, token), &tiles, part, b.columns, results);
    }
}

/// How products of pairs are summed up.
trait Sums<V: Vector> {
    type Sum: Copy;
    fn zero(token: V::Token) -> Self::Sum;
    fn add(sum: Self::Sum, pair: [i16; 2], line: &Pairs) -> Self::Sum;
    fn finish(sum: Self::Sum) -> V;
}

struct Integers;

impl<V: Vector> Sums<V> for Integers {
    type Sum = V::Sums;

    #[inline(always)]
    fn zero(token: V::Token) -> V::Sums {
        V::sums(token, 0)
    }

    #[inline(always)]
    fn add(sum: V::Sums, pair: [i16; 2], line: &Pairs) -> V::Sums {
        V::add_pairs(sum, pair, line)
    }

    #[inline(always)]
    fn finish(sum: V::Sums) -> V {
        V::from_sums(sum)
    }
}

struct Bf16;

impl<V: Bf16Products> Sums<V> for Bf16 {
    type Sum = V;

    #[inline(always)]
    fn zero(token: V::Token) -> V {
        V::splat(token, 0.0)
    }

    #[inline(always)]
    fn add(sum: V, pair: [i16; 2], line: &Pairs) -> V {
        sum.add_bf16_pairs(pair, line)
    }

    #[inline(always)]
    fn finish(sum: V) -> V {
        sum
    }
}

struct PairTiles<'a, S> {
    a: &'a PairRows,
    b: &'a Packed,
    sums: PhantomData<S>,
}

impl<V: Vector, S: Sums<V>> Tiles<V> for PairTiles<'_, S> {
    #[inline(always)]
    fn memory(&self, panel: usize) -> Prefetcher<'_> {
        Prefetcher::new(self.b.panel(panel))
    }

    #[inline(always)]
    fn tile<const N: usize, const P: usize>(
        &self,
        token: V::Token,
        (row, panel): (usize, usize),
        mut out: TileResults,
    ) {
        let PairTiles { a, b, .. } = self;
        let mut sums = [[S::zero(token); P]; N];
        let values: &[[i16; 2]] = a.values[row * a.width..].as_chunks().0;
        let mut rows = Rows::<_, N>::new(values, b.pairs, b.pairs);
        let lines: &[Pairs] = b.lines.values().as_chunks().0;
        let mut lines = Rows::<_, P>::new(&lines[panel * b.pairs..], b.pairs, b.pairs);
        while let (Some(rows), Some(lines)) = (rows.take::<STEPS>(), lines.take::<STEPS>()) {
            (0..P).for_each(|_| out.prefetch.advance());
            for i in 0..STEPS {
                for (sums, row) in sums.iter_mut().zip(rows) {
                    *sums = each_panel!(P, p => S::add(sums[p], row[i], &lines[p][i]));
                }
            }
        }
        while let (Some(rows), Some(lines)) = (rows.take::<1>(), lines.take::<1>()) {
            for (sums, [pair]) in sums.iter_mut().zip(rows) {
                *sums = each_panel!(P, p => S::add(sums[p], *pair, &lines[p][0]));
            }
        }
        let by: [V; P] = each_panel!(P, p => V::load(token, &b.scales[(panel + p) * PANEL..]));
        let mut results: [[V; P]; N] = out.starts(token);
        let scales = a.scales[row..].first_chunk::<N>().expect("a scale for every row");
        for ((result, sums), scale) in results.iter_mut().zip(sums).zip(scales) {
            let scale = V::splat(token, *scale);
            *result = each_panel!(P, p => S::finish(sums[p]).mul_add(by[p].mul(scale), result[p]));
        }
        out.store(results);
    }
}
