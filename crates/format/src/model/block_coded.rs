//! Matrices of codes in blocks.

use super::{BLOCK as MOST, Tensor};
use crate::Error;
use crate::source::{Bytes, View};
use crate::wire::to_len;
use std::sync::OnceLock;
use weighbridge_codec::block::{BlockCodec, Front, Layout};

/// How the codes of a matrix become values: the codec, and what stands before the codes.
#[derive(Clone, Debug)]
pub struct BlockCoded {
    /// What makes values of the codes.
    pub codec: &'static dyn BlockCodec,
    /// The scales that stand before the codes of all rows, with the padding between them. Empty
    /// where the codec has them among the codes.
    pub front: View,
    /// The same once it was needed.
    loaded: OnceLock<Bytes>,
}

/// A front that can't be read is like no other.
impl PartialEq for BlockCoded {
    fn eq(&self, other: &Self) -> bool {
        self.codec == other.codec && self.front.same_bytes(&other.front).unwrap_or(false)
    }
}

impl BlockCoded {
    /// Codes of a codec behind this front.
    pub fn new(codec: &'static dyn BlockCodec, front: View) -> BlockCoded {
        BlockCoded { codec, front, loaded: OnceLock::new() }
    }

    /// Where the parts of a matrix lie; `None` when the shape is no matrix or too large.
    pub fn layout_of(codec: &'static dyn BlockCodec, shape: &[u64]) -> Option<Layout> {
        match shape {
            [rows, cols] => Layout::new(codec, *rows, *cols),
            _ => None,
        }
    }

    /// The layout of a matrix of this shape; `None` when the front is not that of such a matrix.
    pub fn layout(&self, shape: &[u64]) -> Option<Layout> {
        let layout = BlockCoded::layout_of(self.codec, shape);
        layout.filter(|layout| layout.codes.start == self.front.len())
    }

    /// Each row has all that its values are made of.
    pub(super) fn has_own_rows(&self) -> bool {
        self.front.is_empty()
    }

    /// All bytes before the codes. They are read once.
    ///
    /// # Errors
    /// If they can't be read.
    pub fn front_bytes(&self) -> Result<&[u8], Error> {
        if let Some(bytes) = self.front.resident() {
            return Ok(bytes);
        }
        if let Some(loaded) = self.loaded.get() {
            return Ok(loaded);
        }
        let loaded = self.front.load()?;
        Ok(self.loaded.get_or_init(|| loaded))
    }

    /// Values from element `start` of a tensor on.
    pub(super) fn decode(
        &self,
        tensor: &Tensor,
        start: u64,
        out: &mut [f32],
        buffer: &mut Vec<u8>,
    ) -> Result<(), Error> {
        let Some(layout) = self.layout(&tensor.shape).filter(|l| l.cols > 0) else { return Ok(()) };
        if out.is_empty() {
            return Ok(());
        }
        let front = self.front_bytes()?;
        // All codes of the elements lie together; they are read from where a row can be cut on.
        let cut = self.codec.cut() as u64;
        let cols = layout.cols;
        let last = start + out.len() as u64 - 1;
        let (mut row, mut col) = (start / cols, start % cols);
        let first = layout.codes_of(row, col / cut * cut..col + 1).start;
        let end = layout.codes_of(last / cols, 0..last % cols + 1).end;
        let (codes, first) = match tensor.view() {
            Some(view) => (view.read(first..end, buffer)?, first),
            None => {
                let rows = tensor.row_bytes(row, last / cols + 1 - row, buffer)?;
                (rows, layout.codes_of(row, 0..cols).start)
            }
        };
        let mut rest = out;
        while !rest.is_empty() {
            let n = to_len(cols - col).min(rest.len());
            let (part, behind) = rest.split_at_mut(n);
            let begin = col / cut * cut;
            let at = to_len(layout.codes_of(row, begin..cols).start - first);
            let front = layout.front_of(front, row, begin..cols);
            self.codec.decode(front, &codes[at..], to_len(col - begin), part);
            (row, col, rest) = (row + 1, 0, behind);
        }
        Ok(())
    }

    /// Calls `each` with the number, the front and the codes of every row, until it says that it has
    /// seen enough. Codes are read some rows at a time.
    ///
    /// # Errors
    /// If they can't be read.
    pub fn for_each_row(
        &self,
        codes: &View,
        shape: &[u64],
        mut each: impl FnMut(u64, Front, &[u8]) -> bool,
    ) -> Result<(), Error> {
        let Some(layout) = self.layout(shape).filter(|l| l.cols > 0) else { return Ok(()) };
        let (front, width) = (self.front_bytes()?, layout.codes.row_bytes);
        let together = (MOST as u64).div_ceil(layout.cols.max(1));
        let mut buffer = Vec::new();
        for first in (0..layout.rows).step_by(to_len(together)) {
            let n = together.min(layout.rows - first);
            let codes = codes.read(first * width..(first + n) * width, &mut buffer)?;
            for (row, codes) in (first..first + n).zip(codes.chunks_exact(to_len(width))) {
                if !each(row, layout.front_of(front, row, 0..layout.cols), codes) {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// Every code comes back from its value, so that storing the values loses nothing.
    ///
    /// # Errors
    /// If the codes can't be read.
    pub(super) fn is_recoverable(&self, shape: &[u64], codes: &View) -> Result<bool, Error> {
        let mut all = self.layout(shape).is_some();
        let cols = to_len(shape.last().copied().unwrap_or(0));
        self.for_each_row(codes, shape, |_, front, codes| {
            all &= self.codec.is_recoverable(front, codes, cols);
            all
        })?;
        Ok(all)
    }
}

/// Values `col..col + len` of a row.
#[derive(Clone, Copy, Debug)]
pub struct RowPart {
    /// The row.
    pub row: u64,
    /// Its first column.
    pub col: u64,
    /// How many columns.
    pub len: usize,
}

/// The rows of a matrix in parts of bounded length that begin at multiples of `cut`.
pub fn row_parts(rows: u64, cols: u64, cut: usize) -> impl Iterator<Item = RowPart> {
    // Rows without columns have no parts, however many they are.
    let rows = if cols == 0 { 0 } else { rows };
    let most = whole_cuts(cut);
    (0..rows).flat_map(move |row| {
        let starts = (0..cols).step_by(most);
        starts.map(move |col| RowPart { row, col, len: to_len(cols - col).min(most) })
    })
}

/// As many values as are handled at a time, or some less, so that they end at a multiple of `cut`.
pub fn whole_cuts(cut: usize) -> usize {
    (MOST / cut * cut).max(cut)
}
