//! What products of rounded values have in common: the walk over panels and rows.

use super::PANEL;
use super::ahead::fetch_results;
use super::matrix::{Activation, ROOM, Shares, Start, in_room, rows_at_once};
use std::ops::Range;

/// Rows and a packed matrix whose products are computed tile by tile.
pub(super) trait Tiles {
    /// The memory of a panel, which is asked for ahead of time.
    fn memory(&self, panel: usize) -> &[u8];
    /// The products of `rows` with a panel, added to what `onto` says, into the rows of `c`.
    fn tile(&self, rows: Range<usize>, panel: usize, onto: Onto, c: &mut [f32], c_row: usize);
}

/// What the products of a tile are added to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Onto<'a> {
    pub bias: &'a [f32; PANEL],
    /// What is in `c` counts.
    pub there: bool,
    /// What is needed soon.
    pub ahead: &'a [u8],
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
    c_row: usize,
) {
    let most = rows_at_once();
    let mut room = ROOM;
    for panel in panels.clone() {
        let place = (panel - panels.start) * PANEL;
        let width = columns - panel * PANEL;
        let next = if panel + 1 < panels.end { tiles.memory(panel + 1) } else { &[] };
        let mut shares = Shares::new(next, rows.len().div_ceil(most));
        let mut row = rows.start;
        while row < rows.end {
            let some = row..rows.end.min(row + most);
            let c = &mut c[(row - rows.start) * c_row + place..];
            let (bias, there) = (start.bias(place), start.is_there());
            let onto = Onto { bias, there, ahead: shares.next() };
            let n = some.len();
            fetch_results(c, c_row, n);
            if width >= PANEL && activation == Activation::None {
                assert!(c.len() >= (n - 1) * c_row + PANEL, "rows of results");
                tiles.tile(some, panel, onto, c, c_row);
            } else {
                in_room(&mut room, c, c_row, n, width.min(PANEL), there, |room| {
                    tiles.tile(some, panel, onto, room, PANEL);
                    activation.apply(room);
                });
            }
            row += n;
        }
    }
}

/// The bytes of packed lines.
pub(super) fn bytes<T>(lines: &[T]) -> &[u8] {
    // SAFETY: any memory may be looked at as bytes; it is only used to ask for it ahead of time.
    unsafe { std::slice::from_raw_parts(lines.as_ptr().cast::<u8>(), size_of_val(lines)) }
}
