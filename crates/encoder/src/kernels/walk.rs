//! What all products have in common: the walk over panels and rows, tile by tile.

use super::PANEL;
use super::lanes::{gelu, gelu_tanh, relu, silu};
use std::ops::Range;
use weighbridge_codec::simd::{Level, Prefetcher, Vector, prefetch_line};

/// The most rows of a tile, which are computed together: with one register of columns this fills
/// half of those of AVX-512, as many as loads can feed.
pub(crate) const MAX_TILE_ROWS: usize = 12;

/// Rows of a tile: six with two registers of columns fill those of AVX2, or with four those of NEON.
const fn tile_rows<V: Vector>() -> usize {
    if V::REGISTERS == 1 { MAX_TILE_ROWS } else { MAX_TILE_ROWS / 2 }
}

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
    /// The bias of the panel at a column.
    #[inline]
    fn bias(self, column: usize) -> &'a [f32; PANEL] {
        match self {
            Start::Zero | Start::Residual => &[0.0; PANEL],
            Start::Bias(bias) | Start::BiasAndResidual(bias) => {
                bias[column..].first_chunk().expect("a bias for every column of the panels")
            }
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
    fn apply(self, level: Level, values: &mut [f32]) {
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
    /// The memory of a panel, to be prefetched before it is used.
    fn memory(&self, panel: usize) -> Prefetcher<'_>;
    /// Computes the products of `N` rows from one on with a panel.
    fn tile<const N: usize>(&self, token: V::Token, row: usize, panel: usize, out: TileResults);
}

/// Where the results of a tile go, what they are added to, and what is prefetched meanwhile.
#[derive(Debug)]
pub(super) struct TileResults<'a> {
    pub bias: &'a [f32; PANEL],
    /// Whether products are added to what `c` holds.
    pub accumulate: bool,
    /// Rows of a panel's width.
    pub c: &'a mut [f32],
    pub stride: usize,
    /// Memory that is needed soon.
    pub prefetch: Prefetcher<'a>,
}

impl TileResults<'_> {
    /// What the sums of a row start with.
    #[inline(always)]
    pub(super) fn start<V: Vector>(&self, token: V::Token, row: usize) -> V {
        let bias = V::load(token, self.bias);
        if self.accumulate { bias.add(V::load(token, &self.c[row * self.stride..])) } else { bias }
    }

    #[inline(always)]
    pub(super) fn store<V: Vector>(&mut self, row: usize, results: V) {
        results.store(&mut self.c[row * self.stride..]);
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
    Results { start, activation, c, stride }: Results,
) {
    // Rows are shared out evenly: a last tile of one or two would take as long as one of four.
    let tile_count = rows.len().div_ceil(tile_rows::<V>());
    let mut buffer = [0.0; MAX_TILE_ROWS * PANEL];
    for panel in panels.clone() {
        let place = (panel - panels.start) * PANEL;
        let width = PANEL.min(columns - panel * PANEL);
        let (bias, accumulate) = (start.bias(place), start.accumulates());
        // The next panel is prefetched while this one is used, a share with each tile.
        let mut next = match panel + 1 < panels.end {
            true => tiles.memory(panel + 1),
            false => Prefetcher::new::<u8>(&[]),
        };
        let share = next.bytes().div_ceil(tile_count.max(1)).next_multiple_of(128);
        let mut first = 0;
        for tile in 1..=tile_count {
            let end = rows.len() * tile / tile_count;
            let (row, n) = (rows.start + first, end - first);
            let c = &mut c[first * stride + place..];
            let prefetch = next.take(share);
            for r in 0..n {
                prefetch_line(c, r * stride);
            }
            if width == PANEL && activation == Activation::None {
                let out = TileResults { bias, accumulate, c, stride, prefetch };
                tile_of(n, token, tiles, row, panel, out);
            } else {
                // Results that end within the panel, or that an activation follows: in a buffer,
                // which is in the L1 cache, where rows that were just written need not be.
                let buffer = &mut buffer[..n * PANEL];
                for r in 0..if accumulate { n } else { 0 } {
                    buffer[r * PANEL..][..width].copy_from_slice(&c[r * stride..][..width]);
                }
                let out = TileResults { bias, accumulate, c: buffer, stride: PANEL, prefetch };
                tile_of(n, token, tiles, row, panel, out);
                activation.apply(level, buffer);
                for r in 0..n {
                    c[r * stride..][..width].copy_from_slice(&buffer[r * PANEL..][..width]);
                }
            }
            first = end;
        }
    }
}

/// Computes a tile with the number of its rows as a constant.
#[inline(always)]
fn tile_of<V: Vector>(
    rows: usize,
    token: V::Token,
    tiles: &impl Tiles<V>,
    row: usize,
    panel: usize,
    out: TileResults,
) {
    macro_rules! by_rows {
        ($($n:literal)*) => {
            match rows {
                $($n if $n <= tile_rows::<V>() => tiles.tile::<$n>(token, row, panel, out),)*
                _ => unreachable!("a tile has at most 12 rows"),
            }
        };
    }
    by_rows!(1 2 3 4 5 6 7 8 9 10 11 12);
}
