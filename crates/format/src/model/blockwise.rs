//! BlockRows of codes with a scale for every block.

use super::plan::not_recovered;
use super::{BLOCK as MOST, Tensor};
use crate::Error;
use crate::source::View;
use crate::wire::to_len;
use weighbridge_codec::block::{self, BLOCK, BlockRow, BlockRows, BlockType, Layout};

/// How the codes of a matrix become values: the method, and the bytes that stand before the codes,
/// which are scales and sub-scales with the padding between them.
#[derive(Clone, Debug)]
pub struct Blockwise {
    /// How many bits codes have, and how scales are stored.
    pub method: BlockType,
    /// Scales and sub-scales, with the padding between them.
    pub scales: View,
}

impl PartialEq for Blockwise {
    fn eq(&self, other: &Self) -> bool {
        self.method == other.method
            && (self.scales.same_place(&other.scales) || *self.scales == *other.scales)
    }
}

impl Blockwise {
    /// Where the parts of a matrix lie; `None` when the shape is no matrix or too large.
    pub fn layout(method: BlockType, shape: &[u64]) -> Option<Layout> {
        match shape {
            [rows, cols] => Layout::new(method, *rows, *cols),
            _ => None,
        }
    }

    /// Bytes of the codes; `None` when the scales are not those of such a shape.
    pub(super) fn codes_len(&self, shape: &[u64]) -> Option<u64> {
        let layout = Blockwise::layout(self.method, shape)?;
        (layout.codes == self.scales.len() as u64).then(|| layout.size - layout.codes)
    }

    /// The matrix with these codes.
    pub fn rows<'a>(&'a self, shape: &[u64], codes: &'a [u8]) -> Option<BlockRows<'a>> {
        BlockRows::from_parts(Blockwise::layout(self.method, shape)?, &self.scales, codes)
    }

    /// Values from element `start` on.
    pub(super) fn decode(&self, codes: &[u8], start: u64, shape: &[u64], out: &mut [f32]) {
        let Some(rows) = self.rows(shape, codes) else { return };
        let cols = rows.layout.cols;
        let (mut row, mut col) = (start / cols, start % cols);
        let mut rest = out;
        while !rest.is_empty() {
            let n = to_len(cols - col).min(rest.len());
            let (part, behind) = rest.split_at_mut(n);
            rows.row(row).decode_range(to_len(col), part);
            (row, col, rest) = (row + 1, 0, behind);
        }
    }

    /// Passes the codes of values that were decoded with these scales before to `out`.
    pub(super) fn restore(
        &self,
        tensor: &Tensor,
        out: &mut dyn FnMut(&[u8]) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let Some(layout) = Blockwise::layout(self.method, &tensor.shape) else { return Ok(()) };
        let mut made = Vec::new();
        for part in row_parts(layout.rows, layout.cols) {
            let (scales, sub_scales) = layout.row_scales(&self.scales, part.row);
            let row = BlockRow { method: self.method, cols: 0, scales, sub_scales, codes: &[] };
            let start = part.row * layout.cols + part.col;
            made.clear();
            for (i, values) in tensor.values_f32(start, part.len).chunks(BLOCK).enumerate() {
                let scale = row.block_scale(to_len(part.col) / BLOCK + i);
                let mut codes = [0u8; BLOCK];
                for (j, (code, &value)) in codes.iter_mut().zip(values).enumerate() {
                    let index = start + (i * BLOCK + j) as u64;
                    *code = exact_code(value, scale, self.method)
                        .ok_or_else(|| not_recovered(&tensor.name, index, value))?;
                }
                let end = made.len();
                made.resize(end + self.method.block_bytes(), 0);
                block::pack(self.method, &codes, &mut made[end..]);
            }
            out(&made)?;
        }
        Ok(())
    }

    /// Every code comes back from its value, so that storing the values loses nothing: no scale of
    /// zero hides a code, none is infinite, and the blocks' ends behind the last column are zero.
    pub fn is_recoverable(&self, shape: &[u64], codes: &[u8]) -> bool {
        let Some(rows) = self.rows(shape, codes) else { return false };
        (0..rows.layout.rows).all(|i| {
            let row = rows.row(i);
            (0..to_len(rows.layout.blocks_per_row)).all(|b| {
                let (scale, codes) = (row.block_scale(b), row.block_codes(b));
                let used = BLOCK.min(row.cols - b * BLOCK);
                scale.is_finite()
                    && codes[used..].iter().all(|&c| c == 0)
                    && (scale != 0.0 || codes.iter().all(|&c| c == 0))
            })
        })
    }
}

/// The code that decodes to exactly this value, if there is one.
#[allow(clippy::cast_possible_truncation)]
fn exact_code(value: f32, scale: f32, method: BlockType) -> Option<u8> {
    let code = if scale == 0.0 { 0.0 } else { (value / scale).round() };
    let largest = f32::from(method.largest_code());
    let there = (-largest - 1.0..=largest).contains(&code);
    (there && (scale * code).to_bits() == value.to_bits()).then_some((code as i8).cast_unsigned())
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
    (0..rows).flat_map(move |row| {
        (0..cols).step_by(MOST).map(move |col| RowPart {
            row,
            col,
            len: to_len(cols - col).min(MOST),
        })
    })
}
