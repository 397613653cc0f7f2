//! Products of rows with packed matrices.
//!
//! A result is accumulated in the order of the rows' values, by fused multiply-add (one rounding)
//! where the processor has it. The order does not depend on how the work was cut, so a row's
//! results do not depend on its neighbours.

use super::walk::{self, Activation, Part, Results, STEPS, Start, TileResults, Tiles, each_panel};
use super::{Lines, PANEL};
use std::ops::Range;
use weighbridge_codec::memory::Arena;
pub(crate) use weighbridge_codec::panel::pack;
use weighbridge_codec::parallel::*;
use weighbridge_codec::simd::{Level, Prefetcher, Rows, SixteenKernel, Vector};

/// How much of a panel is multiplied with all rows before the next: it stays in the L1 cache.
const CACHED_DEPTH: usize = 384;

/// The right side of a product: `depth` rows of `columns` values, panels of sixteen columns apart
/// from each other.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Panels<'a> {
    pub data: &'a [f32],
    pub depth: usize,
    pub columns: usize,
    /// The distance from a panel to the next, in whole lines.
    pub panel_stride: usize,
}

impl Panels<'_> {
    /// Only some of the panels.
    pub(crate) fn part(self, panels: Range<usize>) -> Self {
        let columns = self.columns.min(panels.end * PANEL) - panels.start * PANEL;
        Panels { data: &self.data[panels.start * self.panel_stride..], columns, ..self }
    }
}

/// The left side of a product: `rows` rows, the starts of which are `stride` apart.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Left<'a> {
    pub data: &'a [f32],
    pub stride: usize,
    pub rows: usize,
}

/// A matrix of `columns x depth` values (a row for each output, as in model files), packed.
#[derive(Debug)]
pub(crate) struct Packed {
    lines: Lines<f32>,
    depth: usize,
    columns: usize,
}

impl Packed {
    /// Room for a matrix whose panels are then filled.
    pub(crate) fn new(columns: usize, depth: usize, arena: &Arena) -> Packed {
        let lines = Lines::new_in(arena, columns.div_ceil(PANEL) * depth);
        Packed { lines, depth, columns }
    }

    /// The panels, each with the number of its first column.
    pub(crate) fn panels_mut(
        &mut self,
    ) -> impl IndexedParallelIterator<Item = (usize, &mut [f32])> {
        let panels = self.lines.values_mut().par_chunks_mut(self.depth.max(1) * PANEL).enumerate();
        panels.map(|(p, lines)| (p * PANEL, lines))
    }

    pub(crate) fn panels(&self) -> Panels<'_> {
        Panels {
            data: self.lines.values(),
            depth: self.depth,
            columns: self.columns,
            panel_stride: PANEL * self.depth,
        }
    }
}

/// `c = start + a * b`, where `a` has rows of `b.depth` values, and `c` as many rows of `b.columns`
/// values.
pub(crate) fn multiply(level: Level, a: Left, b: Panels, results: Results) {
    if a.rows == 0 || b.columns == 0 {
        return;
    }
    let Results { start, activation, c, stride } = results;
    let mut from = 0;
    while from < b.depth.max(1) {
        let depth = (b.depth - from).min(CACHED_DEPTH);
        let results = Results {
            start: if from == 0 { start } else { Start::Residual },
            activation: if from + depth == b.depth { activation } else { Activation::None },
            c,
            stride,
        };
        let part = (0..a.rows, 0..b.columns.div_ceil(PANEL));
        level.run_sixteen(Product {
            level,
            operands: Operands { a, b, from, depth },
            part,
            results,
        });
        from += CACHED_DEPTH;
    }
}

/// Both sides of a product, for `depth` values of the rows from one on.
struct Operands<'a> {
    a: Left<'a>,
    b: Panels<'a>,
    from: usize,
    depth: usize,
}

impl Operands<'_> {
    /// The lines of `P` panels, side by side.
    #[inline(always)]
    fn lines<const P: usize>(&self, panel: usize) -> Rows<'_, [f32; PANEL], P> {
        let stride = self.b.panel_stride / PANEL;
        let lines = self.b.data.as_chunks().0;
        // Behind the last one there need not be a whole panel.
        Rows::new(&lines[(panel * stride + self.from).min(lines.len())..], stride, self.depth)
    }
}

/// A product, or some of the terms of its sums.
struct Product<'a> {
    level: Level,
    operands: Operands<'a>,
    part: Part,
    results: Results<'a>,
}

impl SixteenKernel for Product<'_> {
    type Output = ();

    #[inline(always)]
    fn run<V: Vector>(self, token: V::Token) {
        let Product { level, operands, part, results } = self;
        walk::multiply::<V>((level, token), &operands, part, operands.b.columns, results);
    }
}

impl<V: Vector> Tiles<V> for Operands<'_> {
    #[inline(always)]
    fn memory(&self, panel: usize) -> Prefetcher<'_> {
        let first = panel * self.b.panel_stride + self.from * PANEL;
        Prefetcher::new(&self.b.data[first..][..self.depth * PANEL])
    }

    #[inline(always)]
    fn tile<const N: usize, const P: usize>(
        &self,
        token: V::Token,
        (row, panel): (usize, usize),
        mut out: TileResults,
    ) {
        let a = &self.a.data[row * self.a.stride + self.from..];
        let mut sums: [[V; P]; N] = out.starts(token);
        let mut rows = Rows::<_, N>::new(a, self.a.stride, self.depth);
        let mut lines = self.lines::<P>(panel);
        while let (Some(rows), Some(lines)) = (rows.take::<STEPS>(), lines.take::<STEPS>()) {
            (0..P).for_each(|_| out.prefetch.advance());
            for i in 0..STEPS {
                let lines: [V; P] = each_panel!(P, p => V::load(token, &lines[p][i]));
                for (sums, row) in sums.iter_mut().zip(rows) {
                    let value = V::splat(token, row[i]);
                    *sums = each_panel!(P, p => value.mul_add(lines[p], sums[p]));
                }
            }
        }
        while let (Some(rows), Some(lines)) = (rows.take::<1>(), lines.take::<1>()) {
            let lines: [V; P] = each_panel!(P, p => V::load(token, &lines[p][0]));
            for (sums, [value]) in sums.iter_mut().zip(rows) {
                let value = V::splat(token, *value);
                *sums = each_panel!(P, p => value.mul_add(lines[p], sums[p]));
            }
        }
        out.store(sums);
    }
}
