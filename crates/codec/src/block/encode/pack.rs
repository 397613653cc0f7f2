//! Codes side by side, LSB first.

use crate::block::{BLOCK, BlockType};

/// Packs the codes of a block, each in two's complement, into the bytes of a block.
///
/// # Panics
///
/// When `packed` has fewer than [`BlockType::block_bytes`], or with codes of eight bits another
/// number.
#[inline(always)]
pub fn pack(method: BlockType, codes: &[u8; BLOCK], packed: &mut [u8]) {
    match method.bits() {
        2 => pack_bits::<2>(codes, packed),
        3 => pack_bits::<3>(codes, packed),
        4 => pack_bits::<4>(codes, packed),
        6 => pack_bits::<6>(codes, packed),
        _ => packed.copy_from_slice(codes),
    }
}

/// Eight codes of `BITS` bits make `BITS` bytes: neighbours are pushed together, then pairs of
/// neighbours, then fours.
#[inline(always)]
fn pack_bits<const BITS: usize>(codes: &[u8; BLOCK], packed: &mut [u8]) {
    let (eights, _) = codes.as_chunks::<8>();
    let (groups, _) = packed.as_chunks_mut::<BITS>();
    for (eight, group) in eights.iter().zip(&mut groups[..BLOCK / 8]) {
        let mut word = u64::from_le_bytes(*eight) & periodic_mask(8, BITS);
        for width in [8, 16, 32] {
            let bits = BITS * width / 8;
            let even = periodic_mask(2 * width, bits);
            word = word & even | word >> (width - bits) & even << bits;
        }
        group.copy_from_slice(&word.to_le_bytes()[..BITS]);
    }
}

/// A mask of the lowest `bits` of every `width` bits.
const fn periodic_mask(width: usize, bits: usize) -> u64 {
    let mut mask = 0;
    let mut at = 0;
    while at < 64 {
        mask |= (u64::MAX >> (64 - bits)) << at;
        at += width;
    }
    mask
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_is_where_the_stream_of_bits_has_it() {
        for method in BlockType::ALL {
            let bits = method.bits();
            let codes: [u8; BLOCK] = std::array::from_fn(|i| (i * 37 + 11) as u8);
            let mut packed = vec![0; method.block_bytes()];
            pack(method, &codes, &mut packed);
            for (i, code) in codes.into_iter().enumerate() {
                for bit in 0..bits {
                    let at = i * bits + bit;
                    assert_eq!(packed[at / 8] >> (at % 8) & 1, code >> bit & 1, "{method} {i}");
                }
            }
        }
    }
}
