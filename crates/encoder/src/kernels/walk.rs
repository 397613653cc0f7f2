//! What all products have in common: the walk over panels and rows, tile by tile.

use super::PANEL;
use super::lanes::{gelu, gelu_tanh, relu, silu};
use std::ops::Range;
use weighbridge_codec::simd::{Level, Prefetcher, Vector, prefetch_line};

/// The most rows of a tile, which are computed together: with two panels of one register each, this
/// fills those of AVX-512.
pub(crate) const MAX_TILE_ROWS: usize = 12;

/// The most panels of a tile: what is loaded of a row is multiplied with all of them.
const MAX_TILE_PANELS: usize = 2;

/// Lines of a panel that are taken at a time. With more of them compilers mix the steps, and run out of
/// registers.
pub(super) const STEPS: usize = 2;

/// A value for each of `P` panels. Neither a loop, which compilers might leave in a kernel, with all that
/// it changes in memory, nor a closure, which they might leave outside, without its instructions.
macro_rules! each_panel {
    ($panels:ident, $panel:ident => $value:expr) => {{
        let $panel = 0;
        let mut all = [$value; $panels];
        if $panels > 1 {
            let $panel = $panels - 1;
            all[$panel] = $value;
        }
        all
    }};
}
pub(super) use each_panel;

/// What the products are added to.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Start<'a> {
    Zero,
    /// One value for every column of the panels.
    Bias(&'a [f32]),
    /// What the result holds already.
    Residual,
    /// Both, as in a residual connection.
    BiasAndResidual(&'a [f32]),
}

impl<'a> Start<'a> {
    /// The biases of some panels from a column on.
    #[inline]
    fn bias(self, column: usize, panels: usize) -> &'a [f32] {
        match self {
            Start::Zero | Start::Residual => &[0.0; MAX_TILE_PANELS * PANEL],
            Start::Bias(bias) | Start::BiasAndResidual(bias) => &bias[column..][..panels * PANEL],
        }
    }

    /// Whether products are added to what the result holds.
    fn accumulates(self) -> bool {
        matches!(self, Start::Residual | Start::BiasAndResidual(_))
    }
}

/// What is done with the sums before they are stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Activation {
    #[default]
    None,
    Gelu,
    GeluTanh,
    Relu,
    Silu,
}

impl Activation {
    /// Applies it to whole panels.
    pub(super) fn apply(self, level: Level, values: &mut [f32]) {
        match self {
            Activation::None => {}
            Activation::Gelu => gelu(level, values),
            Activation::GeluTanh => gelu_tanh(level, values),
            Activation::Relu => relu(level, values),
            Activation::Silu => silu(level, values),
        }
    }
}

/// Where the results of a product go, and what else becomes of them.
#[derive(Debug)]
pub(crate) struct Results<'a> {
    pub start: Start<'a>,
    pub activation: Activation,
    /// It begins with the first row and column.
    pub c: &'a mut [f32],
    /// The distance from a row to the next.
    pub stride: usize,
}

/// Rows and a packed matrix whose products are computed tile by tile, with vectors of some kind.
pub(super) trait Tiles<V: Vector> {
    /// Rows of a tile: six with two registers of columns fill those of AVX2, or with four those of NEON.
    const ROWS: usize = if V::REGISTERS == 1 { MAX_TILE_ROWS } else { MAX_TILE_ROWS / 2 };

    /// The memory of a panel, to be prefetched before it is used.
    fn memory(&self, panel: usize) -> Prefetcher<'_>;
    /// Computes the products of `N` rows with `P` panels, from a row and a panel on.
    fn tile<const N: usize, const P: usize>(
        &self,
        token: V::Token,
        place: (usize, usize),
        out: TileResults,
    );
}

/// Where the results of a tile go, what they are added to, and what is prefetched meanwhile.
#[derive(Debug)]
pub(super) struct TileResults<'a> {
    /// One for every column of the tile.
    pub bias: &'a [f32],
    /// Whether products are added to what `c` holds.
    pub accumulate: bool,
    /// Rows of the width of the tile.
    pub c: &'a mut [f32],
    pub stride: usize,
    /// Memory that is needed soon.
    pub prefetch: Prefetcher<'a>,
}

impl TileResults<'_> {
    /// What the sums of all rows start with.
    #[inline(always)]
    pub(super) fn starts<V: Vector, const N: usize, const P: usize>(
        &self,
        token: V::Token,
    ) -> [[V; P]; N] {
        let bias: [V; P] = each_panel!(P, p => V::load(token, &self.bias[p * PANEL..]));
        let mut starts = [bias; N];
        if self.accumulate {
            // A panel after the other, so that loops are short enough to be unrolled.
            for (r, starts) in starts.iter_mut().enumerate() {
                starts[0] = starts[0].add(V::load(token, &self.c[r * self.stride..]));
            }
            if P > 1 {
                for (r, starts) in starts.iter_mut().enumerate() {
                    let c = &self.c[r * self.stride + PANEL..];
                    starts[P - 1] = starts[P - 1].add(V::load(token, c));
                }
            }
        }
        starts
    }

    #[inline(always)]
    pub(super) fn store<V: Vector, const N: usize, const P: usize>(self, results: [[V; P]; N]) {
        for (r, results) in results.iter().enumerate() {
            results[0].store(&mut self.c[r * self.stride..]);
        }
        if P > 1 {
            for (r, results) in results.iter().enumerate() {
                results[P - 1].store(&mut self.c[r * self.stride + PANEL..]);
            }
        }
    }
}

/// The part of a product that is computed: some rows and panels.
pub(super) type Part = (Range<usize>, Range<usize>);

/// `c = start + a * b` for some rows and panels of a matrix of so many columns. It is part of a
/// kernel, so that what lies between two tiles costs little.
#[inline(always)]
pub(super) fn multiply<V: Vector>(
    (level, token): (Level, V::Token),
    tiles: &impl Tiles<V>,
    (rows, panels): Part,
    columns: usize,
    results: Results,
) {
    let mut panel = panels.start;
    while panel < panels.end {
        let strip = Strip { level, tiles, rows: rows.clone(), panel, end: panels.end, columns };
        let c = &mut results.c[(panel - panels.start) * PANEL..];
        let column = (panel - panels.start) * PANEL;
        let Results { start, activation, stride, .. } = results;
        let results = (column, Results { start, activation, c, stride });
        // Other processors have no registers for two panels.
        if V::REGISTERS == 1 && panel + 1 < panels.end {
            strip.multiply::<V, 2>(token, results);
            panel += 2;
        } else {
            strip.multiply::<V, 1>(token, results);
            panel += 1;
        }
    }
}

/// All rows and the panels of a tile, from one on; behind the last panel the product ends.
struct Strip<'a, T> {
    level: Level,
    tiles: &'a T,
    rows: Range<usize>,
    panel: usize,
    end: usize,
    /// Those of the whole matrix.
    columns: usize,
}

impl<T> Strip<'_, T> {
    /// The results begin with a column of the product.
    #[inline(always)]
    fn multiply<V: Vector, const P: usize>(
        &self,
        token: V::Token,
        (column, Results { start, activation, c, stride }): (usize, Results),
    ) where
        T: Tiles<V>,
    {
        let Strip { level, tiles, ref rows, panel, end, columns } = *self;
        // Rows are shared out evenly: a last tile of one or two would take as long as one of four.
        let tile_count = rows.len().div_ceil(T::ROWS);
        let mut buffer = [0.0; MAX_TILE_ROWS * MAX_TILE_PANELS * PANEL];
        let width = (P * PANEL).min(columns - panel * PANEL);
        let (bias, accumulate) = (start.bias(column, P), start.accumulates());
        // The next panels are prefetched while these are used, a share with each tile.
        let nothing = || Prefetcher::new::<u8>(&[]);
        let mut next = [nothing(), nothing()];
        for (next, panel) in next.iter_mut().zip(panel + P..end.min(panel + 2 * P)) {
            *next = tiles.memory(panel);
        }
        let bytes = next.iter().map(Prefetcher::bytes).sum::<usize>();
        let share = bytes.div_ceil(tile_count.max(1)).next_multiple_of(128);
        let mut first = 0;
        for tile in 1..=tile_count {
            let last = rows.len() * tile / tile_count;
            let (place, n) = ((rows.start + first, panel), last - first);
            let c = &mut c[first * stride..];
            let [now, later] = &mut next;
            let prefetch = if now.bytes() > 0 { now } else { later }.take(share);
            for r in 0..n {
                prefetch_line(c, r * stride);
                if P > 1 {
                    prefetch_line(c, r * stride + PANEL);
                }
            }
            if width == P * PANEL && activation == Activation::None {
                let out = TileResults { bias, accumulate, c, stride, prefetch };
                tile_of::<V, T, P>(n, token, tiles, place, out);
            } else {
                // Results that end within a panel, or that an activation follows: in a buffer,
                // which is in the L1 cache, where rows that were just written need not be.
                let buffer = &mut buffer[..n * P * PANEL];
                let (lines, stride_in) = (buffer.chunks_exact_mut(P * PANEL), P * PANEL);
                for (r, line) in lines.enumerate().take(if accumulate { n } else { 0 }) {
                    line[..width].copy_from_slice(&c[r * stride..][..width]);
                }
                let out = TileResults { bias, accumulate, c: buffer, stride: stride_in, prefetch };
                tile_of::<V, T, P>(n, token, tiles, place, out);
                activation.apply(level, buffer);
                for (r, line) in buffer.chunks_exact(P * PANEL).enumerate() {
                    c[r * stride..][..width].copy_from_slice(&line[..width]);
                }
            }
            first = last;
        }
    }
}

/// Computes a tile with the number of its rows as a constant.
#[inline(always)]
fn tile_of<V: Vector, T: Tiles<V>, const P: usize>(
    rows: usize,
    token: V::Token,
    tiles: &T,
    place: (usize, usize),
    out: TileResults,
) {
    macro_rules! by_rows {
        ($($n:literal)*) => {
            match rows {
                $($n if $n <= T::ROWS => tiles.tile::<$n, P>(token, place, out),)*
                _ => unreachable!("a tile has at most 12 rows"),
            }
        };
    }
    by_rows!(1 2 3 4 5 6 7 8 9 10 11 12);
}
