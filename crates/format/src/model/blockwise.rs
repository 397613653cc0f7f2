//! Rows of codes with a scale for every block.

use super::BLOCK as MOST;
use crate::Error;
use crate::source::{Bytes, View};
use crate::wire::to_len;
use std::sync::OnceLock;
use weighbridge_codec::block::{BLOCK, BLOCKS_PER_SUPER, BlockRow, BlockType, Layout};

/// How the codes of a matrix become values: the method, and the bytes that stand before the codes,
/// which are scales and sub-scales with the padding between them.
#[derive(Clone, Debug)]
pub struct Blockwise {
    /// How many bits codes have, and how scales are stored.
    pub method: BlockType,
    /// Scales and sub-scales, with the padding between them.
    pub scales: View,
    /// The same once they were needed.
    loaded: OnceLock<Bytes>,
}

/// Scales that can't be read are like no others.
impl PartialEq for Blockwise {
    fn eq(&self, other: &Self) -> bool {
        self.method == other.method && self.scales.same_bytes(&other.scales).unwrap_or(false)
    }
}

impl Blockwise {
    /// Codes of a method with these scales and sub-scales.
    pub fn new(method: BlockType, scales: View) -> Blockwise {
        Blockwise { method, scales, loaded: OnceLock::new() }
    }

    /// Where the parts of a matrix lie; `None` when the shape is no matrix or too large.
    pub fn layout(method: BlockType, shape: &[u64]) -> Option<Layout> {
        match shape {
            [rows, cols] => Layout::new(method, *rows, *cols),
            _ => None,
        }
    }

    /// Bytes of the codes; `None` when the scales are not those of such a shape.
    pub(super) fn codes_len(&self, shape: &[u64]) -> Option<u64> {
        self.own_layout(shape).map(|layout| layout.size - layout.codes)
    }

    /// The layout of a matrix of this shape that has these scales.
    fn own_layout(&self, shape: &[u64]) -> Option<Layout> {
        Blockwise::layout(self.method, shape).filter(|l| l.codes == self.scales.len())
    }

    /// All bytes before the codes. They are read once.
    ///
    /// # Errors
    /// If they can't be read.
    pub fn scale_bytes(&self) -> Result<&[u8], Error> {
        if let Some(bytes) = self.scales.resident() {
            return Ok(bytes);
        }
        if let Some(loaded) = self.loaded.get() {
            return Ok(loaded);
        }
        let loaded = self.scales.load()?;
        Ok(self.loaded.get_or_init(|| loaded))
    }

    /// Values from element `start` on.
    pub(super) fn decode(
        &self,
        codes: &View,
        start: u64,
        shape: &[u64],
        out: &mut [f32],
        buffer: &mut Vec<u8>,
    ) -> Result<(), Error> {
        let Some(layout) = self.own_layout(shape).filter(|l| l.cols > 0) else { return Ok(()) };
        if out.is_empty() {
            return Ok(());
        }
        let scales = self.scale_bytes()?;
        // All codes of the elements lie together; they are read from a whole super block on.
        let first = Place::of(start, &layout, self.method);
        let last = Place::of(start + out.len() as u64 - 1, &layout, self.method);
        let codes = codes.read(first.super_block..last.block + first.block_bytes, buffer)?;
        let (mut row, mut col) = (start / layout.cols, start % layout.cols);
        let mut rest = out;
        let mut base = first.super_block;
        while !rest.is_empty() {
            let n = to_len(layout.cols - col).min(rest.len());
            let (part, behind) = rest.split_at_mut(n);
            let skipped = col / SUPER * SUPER;
            let at = to_len(base - first.super_block);
            self.row_from(&layout, scales, row, skipped, &codes[at..])
                .decode_range(to_len(col - skipped), part);
            (row, col, rest) = (row + 1, 0, behind);
            base = row * layout.row_codes();
        }
        Ok(())
    }

    /// A row from column `from` on, a multiple of 256, whose codes `codes` begins with.
    fn row_from<'a>(
        &self,
        layout: &Layout,
        scales: &'a [u8],
        row: u64,
        from: u64,
        codes: &'a [u8],
    ) -> BlockRow<'a> {
        let (scales, sub_scales) = layout.row_scales(scales, row);
        let (method, cols) = (self.method, to_len(layout.cols));
        BlockRow { method, cols, scales, sub_scales, codes: &[] }.rest(to_len(from / SUPER), codes)
    }

    /// Calls `each` with every row and its number, until it says that it has seen enough. Codes are
    /// read some rows at a time.
    ///
    /// # Errors
    /// If they can't be read.
    pub fn for_each_row(
        &self,
        codes: &View,
        shape: &[u64],
        mut each: impl FnMut(u64, BlockRow) -> bool,
    ) -> Result<(), Error> {
        let Some(layout) = self.own_layout(shape).filter(|l| l.cols > 0) else { return Ok(()) };
        let (scales, width) = (self.scale_bytes()?, layout.row_codes());
        let together = (MOST as u64).div_ceil(layout.cols.max(1));
        let mut buffer = Vec::new();
        for first in (0..layout.rows).step_by(to_len(together)) {
            let n = together.min(layout.rows - first);
            let codes = codes.read(first * width..(first + n) * width, &mut buffer)?;
            for i in 0..n {
                let codes = &codes[to_len(i * width)..to_len((i + 1) * width)];
                if !each(first + i, self.row_from(&layout, scales, first + i, 0, codes)) {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// Every code comes back from its value, so that storing the values loses nothing: no scale of
    /// zero hides a code, none is infinite, and the blocks' ends behind the last column are zero.
    ///
    /// # Errors
    /// If the codes can't be read.
    pub fn is_recoverable(&self, shape: &[u64], codes: &View) -> Result<bool, Error> {
        let mut all = self.own_layout(shape).is_some();
        self.for_each_row(codes, shape, |_, row| {
            all &= (0..row.cols.div_ceil(BLOCK)).all(|b| {
                let (scale, codes) = (row.block_scale(b), row.block_codes(b));
                let used = BLOCK.min(row.cols - b * BLOCK);
                scale.is_finite()
                    && codes[used..].iter().all(|&c| c == 0)
                    && (scale != 0.0 || codes.iter().all(|&c| c == 0))
            });
            all
        })?;
        Ok(all)
    }
}

/// Values of a super block.
const SUPER: u64 = (BLOCK * BLOCKS_PER_SUPER) as u64;

/// Where the codes of an element lie, in bytes.
struct Place {
    /// The super block, counted from the start of its row.
    super_block: u64,
    block: u64,
    block_bytes: u64,
}

impl Place {
    fn of(element: u64, layout: &Layout, method: BlockType) -> Place {
        let (row, col) = (element / layout.cols, element % layout.cols);
        let block_bytes = method.block_bytes() as u64;
        let (start, blocks) = (row * layout.row_codes(), BLOCK as u64);
        Place {
            super_block: start + col / SUPER * BLOCKS_PER_SUPER as u64 * block_bytes,
            block: start + col / blocks * block_bytes,
            block_bytes,
        }
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

/// The rows of a matrix in parts of bounded length that begin at whole super blocks.
pub fn row_parts(rows: u64, cols: u64) -> impl Iterator<Item = RowPart> {
    // Rows without columns have no parts, however many they are.
    let rows = if cols == 0 { 0 } else { rows };
    (0..rows).flat_map(move |row| {
        (0..cols).step_by(MOST).map(move |col| RowPart {
            row,
            col,
            len: to_len(cols - col).min(MOST),
        })
    })
}
