//! What products of rounded values have in common: the walk over panels and rows.

use super::PANEL;
use super::matrix::{Activation, PrefetchShares, Start, TILE_BUFFER, in_buffer, tile_rows};
use super::prefetch::prefetch_results;
use std::ops::Range;

/// Rows and a packed matrix whose products are computed tile by tile.
pub(super) trait Tiles {
    /// The memory of a panel, to be prefetched.
    fn memory(&self, panel: usize) -> &[u8];
    /// Computes the products of `rows` with a panel, into the rows of `c`.
    fn tile(
        &self,
        rows: Range<usize>,
        panel: usize,
        options: TileOptions,
        c: &mut [f32],
        c_stride: usize,
    );
}

/// What the products of a tile are added to, and what is prefetched meanwhile.
#[derive(Clone, Copy, Debug)]
pub(super) struct TileOptions<'a> {
    pub bias: &'a [f32; PANEL],
    /// Whether products are added to what `c` holds.
    pub accumulate: bool,
    /// Memory that is needed soon.
    pub prefetch: &'a [u8],
}

/// `c = start + a * b` for some rows and panels of a matrix of so many columns; `c` begins with the
/// first of them.
pub(super) fn multiply(
    tiles: &impl Tiles,
    (rows, panels): (Range<usize>, Range<usize>),
    columns: usize,
    start: Start,
    activation: Activation,
    c: &mut [f32],
    c_stride: usize,
) {
    let tile_rows = tile_rows();
    let mut buffer = TILE_BUFFER;
    for panel in panels.clone() {
        let place = (panel - panels.start) * PANEL;
        let width = columns - panel * PANEL;
        let next = if panel + 1 < panels.end { tiles.memory(panel + 1) } else { &[] };
        let mut prefetch_shares = PrefetchShares::new(next, rows.len().div_ceil(tile_rows));
        let mut row = rows.start;
        while row < rows.end {
            let tile = row..rows.end.min(row + tile_rows);
            let c = &mut c[(row - rows.start) * c_stride + place..];
            let (bias, accumulate) = (start.bias(place), start.accumulates());
            let options = TileOptions { bias, accumulate, prefetch: prefetch_shares.next_share() };
            let n = tile.len();
            prefetch_results(c, c_stride, n);
            if width >= PANEL && activation == Activation::None {
                assert!(c.len() >= (n - 1) * c_stride + PANEL, "rows of results");
                tiles.tile(tile, panel, options, c, c_stride);
            } else {
                in_buffer(&mut buffer, c, c_stride, n, width.min(PANEL), accumulate, |buffer| {
                    tiles.tile(tile, panel, options, buffer, PANEL);
                    activation.apply(buffer);
                });
            }
            row += n;
        }
    }
}

/// The bytes of packed lines.
pub(super) fn bytes<T>(lines: &[T]) -> &[u8] {
    // SAFETY: any memory may be looked at as bytes; it is only prefetched.
    unsafe { std::slice::from_raw_parts(lines.as_ptr().cast::<u8>(), size_of_val(lines)) }
}
