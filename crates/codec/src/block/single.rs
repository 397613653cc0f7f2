//! A row of signed codes, and the codes and the scale of a single block of it.

use super::signed::LARGEST_SUB_SCALE;
use super::{BLOCK, BLOCKS_PER_SUPER, BlockType};
use crate::scan::any_u16_special;
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

    /// Whether there is surely nothing that [`BlockCodec::check`](super::BlockCodec::check) would find:
    /// a quick look at many codes at a time. Rows that end within a block are not looked at.
    pub(super) fn is_flawless(&self) -> bool {
        let blocks = self.cols / BLOCK;
        let supers = self.method.has_super_blocks();
        let scales = if supers { blocks.div_ceil(BLOCKS_PER_SUPER) } else { blocks };
        let codes = &self.codes[..blocks * self.method.block_bytes()];
        let has_most_negative = match self.method.bits() {
            2 => any_most_negative::<2, 8>(codes),
            3 => any_most_negative::<3, 3>(codes),
            4 => any_most_negative::<4, 8>(codes),
            6 => any_most_negative::<6, 6>(codes),
            _ => any_most_negative::<8, 8>(codes),
        };
        let sub_scales = if supers { &self.sub_scales[..blocks] } else { &[] };
        self.cols.is_multiple_of(BLOCK)
            && !any_u16_special(&self.scales[..2 * scales], 0x7C00)
            && !sub_scales.iter().fold(false, |any, &share| any | (share > LARGEST_SUB_SCALE))
            && !has_most_negative
    }

    fn scale(&self, index: usize) -> f32 {
        f16::from_le_bytes([self.scales[2 * index], self.scales[2 * index + 1]]).to_f32()
    }
}

/// Whether one of the codes is the most negative: only its top bit is set. Words of so many bytes hold
/// whole codes, which are looked at together: one less than the top bit, added to the bits below it,
/// reaches the top bit unless they are all zero.
fn any_most_negative<const BITS: usize, const BYTES: usize>(packed: &[u8]) -> bool {
    let top = (0..8 * BYTES / BITS).fold(0u64, |all, i| all | 1 << (BITS * (i + 1) - 1));
    let below =
        (0..8 * BYTES / BITS).fold(0u64, |all, i| all | ((1 << (BITS - 1)) - 1) << (BITS * i));
    let found = packed.as_chunks::<BYTES>().0.iter().fold(0, |found, bytes| {
        let mut word = [0; 8];
        word[..BYTES].copy_from_slice(bytes);
        let word = u64::from_le_bytes(word);
        found | (word & top & !((word & below) + below))
    });
    found != 0
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Every code in every place, among the largest ones of either sign.
    #[test]
    fn the_most_negative_code_is_found_wherever_it_is() {
        fn check<const BITS: usize, const BYTES: usize>() {
            let count = 8 * BLOCK / BITS;
            for place in 0..count {
                for code in 0..1u8 << (BITS - 1) {
                    for others in [0u64, 1, (1 << (BITS - 1)) - 1, (1 << (BITS - 1)) + 1] {
                        for code in [code, code | 1 << (BITS - 1)] {
                            let mut packed = [0u8; BLOCK + 16];
                            for i in 0..count {
                                let value = if i == place { u64::from(code) } else { others };
                                for bit in (0..BITS).filter(|bit| value >> bit & 1 == 1) {
                                    let at = i * BITS + bit;
                                    packed[at / 8] |= 1 << (at % 8);
                                }
                            }
                            let whole = count * BITS / 8 / BYTES * BYTES;
                            let is_within = (place + 1) * BITS <= 8 * whole;
                            let is_most_negative = code == 1 << (BITS - 1);
                            assert_eq!(
                                any_most_negative::<BITS, BYTES>(&packed[..whole]),
                                is_within && is_most_negative,
                                "{BITS} bits, code {code} among {others}"
                            );
                        }
                    }
                }
            }
        }
        check::<2, 8>();
        check::<3, 3>();
        check::<4, 8>();
        check::<6, 6>();
        check::<8, 8>();
    }
}
