//! A row of signed codes, and the codes and the scale of a single block of it.

use super::{BLOCK, BLOCKS_PER_SUPER, BlockType};
use half::f16;

/// A row with signed codes, or its part from a super block on. Scales, sub-scales and codes go as
/// far as its values, or farther.
#[derive(Clone, Copy, Debug)]
pub(super) struct BlockRow<'a> {
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

impl BlockRow<'_> {
    /// The blocks, each with how many of its codes stand for values.
    pub(super) fn blocks(&self) -> impl Iterator<Item = (usize, usize)> + use<> {
        let cols = self.cols;
        (0..cols.div_ceil(BLOCK)).map(move |block| (block, BLOCK.min(cols - block * BLOCK)))
    }

    /// The codes of a block, with those that fill up the last one. A broken file may have any
    /// codes, the most negative as well.
    ///
    /// # Panics
    ///
    /// When the row has no such block.
    pub(super) fn block_codes(&self, block: usize) -> [i8; BLOCK] {
        let size = self.method.block_bytes();
        let packed = &self.codes[block * size..][..size];
        match self.method.bits() {
            2 => unpack::<2>(packed),
            3 => unpack::<3>(packed),
            4 => unpack::<4>(packed),
            6 => unpack::<6>(packed),
            _ => unpack::<8>(packed),
        }
    }

    /// The scale of a block, which its codes are multiplied with.
    ///
    /// # Panics
    ///
    /// When the row has no such block.
    pub(super) fn block_scale(&self, block: usize) -> f32 {
        if self.method.has_super_blocks() {
            self.scale(block / BLOCKS_PER_SUPER) * (f32::from(self.sub_scales[block]) / 32.0)
        } else {
            self.scale(block)
        }
    }

    fn scale(&self, index: usize) -> f32 {
        f16::from_le_bytes([self.scales[2 * index], self.scales[2 * index + 1]]).to_f32()
    }
}

/// Eight codes fill as many bytes as a code has bits.
#[inline(always)]
fn unpack<const BITS: usize>(packed: &[u8]) -> [i8; BLOCK] {
    let mut codes = [0; BLOCK];
    for (eight, bytes) in codes.chunks_exact_mut(8).zip(packed.chunks_exact(BITS)) {
        let mut word = [0; 8];
        word[..BITS].copy_from_slice(bytes);
        let word = u64::from_le_bytes(word);
        for (i, code) in eight.iter_mut().enumerate() {
            // To the top of a byte, and back with the sign.
            let top = (word >> (BITS * i)).to_le_bytes()[0] << (8 - BITS);
            *code = top.cast_signed() >> (8 - BITS);
        }
    }
    codes
}
