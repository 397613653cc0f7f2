//! What the machine allows: reading the same memory and no more, and products without finding the
//! best.

use rayon::prelude::*;
use weighbridge::codec::dot::{CODES_TOGETHER, code_dots};
use weighbridge::codec::simd::Level;

/// Bytes that a thread takes at a time.
const BLOCK: usize = 1 << 18;
/// Places that are read at the same time.
const STREAMS: usize = 4;

/// Reads all bytes, with a sum so that nothing is left out.
pub fn read(bytes: &[u8]) -> u64 {
    bytes.par_chunks(BLOCK).map(sum).reduce(|| 0, u64::wrapping_add)
}

fn sum(bytes: &[u8]) -> u64 {
    #[cfg(target_arch = "x86_64")]
    if std::is_x86_feature_detected!("avx2") {
        // SAFETY: the machine has these instructions.
        return unsafe { sum_avx2(bytes) };
    }
    sum_streams(bytes)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn sum_avx2(bytes: &[u8]) -> u64 {
    sum_streams(bytes)
}

#[inline(always)]
fn sum_streams(bytes: &[u8]) -> u64 {
    const LANES: usize = 8;
    let lines = bytes.as_chunks::<8>().0.as_chunks::<LANES>().0;
    let quarter = lines.len() / STREAMS;
    let streams: [_; STREAMS] = std::array::from_fn(|s| &lines[s * quarter..][..quarter]);
    let mut sums = [[0u64; LANES]; STREAMS];
    for at in 0..quarter {
        for (sums, stream) in sums.iter_mut().zip(&streams) {
            for (sum, value) in sums.iter_mut().zip(&stream[at]) {
                *sum = sum.wrapping_add(u64::from_le_bytes(*value));
            }
        }
    }
    sums.as_flattened().iter().fold(0, |sum, value| sum.wrapping_add(*value))
}

/// Products of all codes with a vector of integers.
pub fn codes(bytes: &[u8], dim: usize) -> f32 {
    let factors = vec![1i16; dim.next_multiple_of(CODES_TOGETHER)];
    let rows = BLOCK / dim;
    let of_block = |block: &[u8]| {
        let mut products = vec![0.0; block.len() / dim];
        code_dots(Level::best(), block, dim, &factors, &mut products, None);
        products[0]
    };
    bytes.par_chunks(rows * dim).map(of_block).reduce(|| 0.0, |a, b| a + b)
}
