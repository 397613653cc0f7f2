//! Where scales, sub-scales and codes of a quantized matrix lie.

use super::{BLOCK, BLOCKS_PER_SUPER, BlockType};

/// Every region begins at a multiple of this.
const ALIGNMENT: u64 = 64;

/// The regions of a quantized matrix: scales, sub-scales (`k*` only), codes; zeros between them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// How the matrix is quantized.
    pub method: BlockType,
    /// BlockRows of the matrix.
    pub rows: u64,
    /// Columns of the matrix: values of a row.
    pub cols: u64,
    /// Blocks of a row, of which the last may be filled up with zeros.
    pub blocks_per_row: u64,
    /// Scales of a row: of its blocks, or of its super blocks.
    pub scales_per_row: u64,
    /// Where the sub-scales begin, in bytes; where the codes begin if there are none.
    pub sub_scales: u64,
    /// Where the codes begin, in bytes.
    pub codes: u64,
    /// Bytes of all regions together.
    pub size: u64,
}

impl Layout {
    /// The layout of a matrix; `None` when its size is more than a `u64` can say.
    pub fn new(method: BlockType, rows: u64, cols: u64) -> Option<Layout> {
        let align = |n: u64| n.checked_next_multiple_of(ALIGNMENT);
        let blocks_per_row = cols.div_ceil(BLOCK as u64);
        let blocks = rows.checked_mul(blocks_per_row)?;
        let scales_per_row = if method.has_super_blocks() {
            blocks_per_row.div_ceil(BLOCKS_PER_SUPER as u64)
        } else {
            blocks_per_row
        };
        let scales = rows.checked_mul(scales_per_row)?.checked_mul(2)?;
        let sub_scales = align(scales)?;
        let codes = if method.has_super_blocks() {
            align(sub_scales.checked_add(blocks)?)?
        } else {
            sub_scales
        };
        let size = codes.checked_add(blocks.checked_mul(method.block_bytes() as u64)?)?;
        Some(Layout { method, rows, cols, blocks_per_row, scales_per_row, sub_scales, codes, size })
    }

    /// Bytes of the scales, without the padding behind them.
    pub fn scales_size(&self) -> u64 {
        self.rows * self.scales_per_row * 2
    }

    /// Bytes of the sub-scales, without the padding behind them; 0 for `q*`.
    pub fn shares_size(&self) -> u64 {
        if self.method.has_super_blocks() { self.rows * self.blocks_per_row } else { 0 }
    }

    /// The scales and the sub-scales of a row, from all bytes before the codes.
    ///
    /// # Panics
    ///
    /// When there is no such row, or `scales` ends before its scales or sub-scales do.
    pub fn row_scales<'a>(&self, scales: &'a [u8], row: u64) -> (&'a [u8], &'a [u8]) {
        assert!(row < self.rows);
        let part = |start: u64, each: u64| &scales[len(start + row * each)..][..len(each)];
        let sub_scales = if self.method.has_super_blocks() { self.blocks_per_row } else { 0 };
        (part(0, 2 * self.scales_per_row), part(self.sub_scales, sub_scales))
    }

    /// Bytes of a row's codes.
    pub fn row_codes(&self) -> u64 {
        self.blocks_per_row * self.method.block_bytes() as u64
    }
}

/// A quantized matrix in memory, row by row.
#[derive(Clone, Copy, Debug)]
pub struct BlockRows<'a> {
    /// The size of the matrix, and where its regions lie.
    pub layout: Layout,
    /// Scales and sub-scales.
    scales: &'a [u8],
    codes: &'a [u8],
}

impl<'a> BlockRows<'a> {
    /// A matrix whose regions lie one behind the other; `None` when the payload does not have the
    /// size that the layout needs.
    pub fn new(layout: Layout, payload: &'a [u8]) -> Option<BlockRows<'a>> {
        let (scales, codes) = payload.split_at_checked(usize::try_from(layout.codes).ok()?)?;
        (payload.len() as u64 == layout.size).then_some(BlockRows { layout, scales, codes })
    }

    /// One row.
    ///
    /// # Panics
    ///
    /// When there is no such row.
    pub fn row(&self, index: u64) -> BlockRow<'a> {
        let l = &self.layout;
        let (scales, sub_scales) = l.row_scales(self.scales, index);
        let codes = &self.codes[len(index * l.row_codes())..][..len(l.row_codes())];
        BlockRow { method: l.method, cols: len(l.cols), scales, sub_scales, codes }
    }
}

/// A place inside a slice, whose length is a `usize`.
fn len(n: u64) -> usize {
    usize::try_from(n).unwrap_or(usize::MAX)
}

/// One row of a quantized matrix. Scales, sub-scales and codes must have the lengths that method
/// and `cols` need.
#[derive(Clone, Copy, Debug)]
pub struct BlockRow<'a> {
    /// How the row is quantized.
    pub method: BlockType,
    /// Values of the row.
    pub cols: usize,
    /// f16, little-endian: one a block for `q*`, one a super block for `k*`.
    pub scales: &'a [u8],
    /// Sub-scales, in units of 1/32: one byte a block for `k*`; empty for `q*`.
    pub sub_scales: &'a [u8],
    /// The packed codes of whole blocks, LSB first.
    pub codes: &'a [u8],
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regions_begin_at_multiples_of_64() {
        // 33 x 300: ten blocks and two super blocks a row.
        let k4 = Layout::new(BlockType::K4, 33, 300).unwrap();
        assert_eq!((k4.sub_scales, k4.codes, k4.size), (192, 576, 576 + 33 * 10 * 16));
        let q8 = Layout::new(BlockType::Q8, 33, 300).unwrap();
        assert_eq!((q8.sub_scales, q8.codes, q8.size), (704, 704, 704 + 33 * 10 * 32));
        assert_eq!(Layout::new(BlockType::K2, u64::MAX, 2), None);
        assert_eq!(Layout::new(BlockType::Q4, 2, u64::MAX), None);
    }

    #[test]
    fn rows_are_where_the_layout_says() {
        let layout = Layout::new(BlockType::K3, 3, 40).unwrap();
        let payload: Vec<u8> = (0..layout.size).map(|i| (i % 251) as u8).collect();
        let rows = BlockRows::new(layout, &payload).unwrap();
        let row = rows.row(2);
        assert_eq!(row.scales, &payload[4..6]);
        assert_eq!(row.sub_scales, &payload[64 + 4..64 + 6]);
        assert_eq!(row.codes, &payload[128 + 48..128 + 72]);
        assert!(BlockRows::new(layout, &payload[1..]).is_none());
    }
}
