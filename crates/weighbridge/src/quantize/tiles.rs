//! Tensors in tiles of bounded size, worked on by all cores.

use weighbridge_codec::parallel::*;
use weighbridge_format::model::whole_cuts;
use weighbridge_format::wire::to_len;
use weighbridge_format::{Error, Tensor};

/// Columns `col..col + len` of some rows; of one row unless they are whole ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Tile {
    pub row: u64,
    pub rows: u64,
    pub col: u64,
    pub len: u64,
}

impl Tile {
    /// Index of the first value.
    pub(super) fn start(&self, cols: u64) -> u64 {
        self.row * cols + self.col
    }

    pub(super) fn count(&self) -> u64 {
        self.rows * self.len
    }

    /// The values.
    pub(super) fn values(&self, tensor: &Tensor, cols: u64) -> Result<Vec<f32>, Error> {
        tensor.values_f32(self.start(cols), to_len(self.count()))
    }
}

/// A matrix in tiles of bounded size: whole rows, or parts of long rows that begin at multiples of
/// `cut`.
pub(super) fn tiles(rows: u64, cols: u64, cut: usize) -> Vec<Tile> {
    let most = whole_cuts(cut) as u64;
    let mut list = Vec::new();
    if cols > most {
        for row in 0..rows {
            let starts = (0..cols).step_by(to_len(most));
            list.extend(starts.map(|col| Tile { row, rows: 1, col, len: most.min(cols - col) }));
        }
        return list;
    }
    let together = (most / cols.max(1)).max(1);
    let starts = (0..rows).step_by(to_len(together));
    list.extend(starts.map(|row| Tile { row, rows: together.min(rows - row), col: 0, len: cols }));
    list
}

/// Makes something of every tile on all cores, a few at a time, and passes it on in order.
pub(super) fn in_order<T: Copy + Sync>(
    tiles: &[T],
    make: impl Fn(T) -> Result<Vec<u8>, Error> + Sync,
    out: &mut dyn FnMut(&[u8]) -> Result<(), Error>,
) -> Result<(), Error> {
    for few in tiles.chunks(4 * current_num_threads()) {
        let made = few.par_iter().map(|tile| make(*tile)).collect::<Result<Vec<_>, Error>>()?;
        made.iter().try_for_each(|bytes| out(bytes))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use weighbridge_format::model::BLOCK;

    #[test]
    fn tiles_cover_a_matrix_once() {
        for (rows, cols) in [(3, 5), (1000, 384), (2, 200_000), (1, 65_536), (7, 65_537)] {
            for cut in [1, 32, 48, 256] {
                let mut next = 0;
                for tile in tiles(rows, cols, cut) {
                    assert_eq!(tile.start(cols), next);
                    assert!(tile.count() <= BLOCK as u64 && tile.col % cut as u64 == 0);
                    next += tile.count();
                }
                assert_eq!(next, rows * cols);
            }
        }
    }
}
