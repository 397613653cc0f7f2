//! The hashes of n-grams. Each is what one peer does, to the bit: trained rows depend on them.

/// finalfusion: 64-bit FNV-1a over the count of characters as u64 and then each character as u32,
/// all little-endian, masked to the exponent.
pub(super) fn finalfusion(ngram: &str, chars: usize, exponent: u32) -> u64 {
    const PRIME: u64 = 0x100_0000_01b3;
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(PRIME);
    let count = (chars as u64).to_le_bytes().into_iter().fold(0xcbf2_9ce4_8422_2325, step);
    let hash = ngram.chars().flat_map(|c| u32::from(c).to_le_bytes()).fold(count, step);
    // An exponent of 64 or more masks nothing.
    hash & 1u64.checked_shl(exponent).map_or(u64::MAX, |buckets| buckets - 1)
}

/// fastText: 32-bit FNV-1a over the bytes, each widened with its sign. The sign was an
/// oversight there, which trained models have made permanent.
pub(super) fn fasttext(ngram: &[u8]) -> u32 {
    ngram.iter().fold(2_166_136_261, |hash: u32, byte| {
        let widened = i32::from(byte.cast_signed()).cast_unsigned();
        (hash ^ widened).wrapping_mul(16_777_619)
    })
}

/// floret: the first `hashes` 32-bit words of murmur3 (128 bits, for 64-bit machines), each modulo
/// the buckets.
pub(super) fn floret_rows(
    text: &[u8],
    seed: u32,
    hashes: u32,
    buckets: u64,
    each: &mut (impl FnMut(u64) + ?Sized),
) {
    if buckets == 0 {
        return;
    }
    let (low, high) = murmur3(text, seed);
    let words = [low & 0xffff_ffff, low >> 32, high & 0xffff_ffff, high >> 32];
    for (word, _) in words.into_iter().zip(0..hashes) {
        each(word % buckets);
    }
}

/// MurmurHash3 x64 128.
fn murmur3(bytes: &[u8], seed: u32) -> (u64, u64) {
    let (mut h1, mut h2) = (u64::from(seed), u64::from(seed));
    let (blocks, tail) = bytes.as_chunks::<16>();
    for block in blocks {
        let (k1, k2) = halves(*block);
        h1 ^= first(k1);
        h1 = h1.rotate_left(27).wrapping_add(h2).wrapping_mul(5).wrapping_add(0x52dc_e729);
        h2 ^= second(k2);
        h2 = h2.rotate_left(31).wrapping_add(h1).wrapping_mul(5).wrapping_add(0x3849_5ab5);
    }
    let mut last = [0; 16];
    last[..tail.len()].copy_from_slice(tail);
    let (k1, k2) = halves(last);
    // Both mixers map zero to zero, so that an absent tail changes nothing.
    h1 ^= first(k1);
    h2 ^= second(k2);

    h1 ^= bytes.len() as u64;
    h2 ^= bytes.len() as u64;
    h1 = h1.wrapping_add(h2);
    h2 = h2.wrapping_add(h1);
    h1 = finish(h1);
    h2 = finish(h2);
    h1 = h1.wrapping_add(h2);
    (h1, h2.wrapping_add(h1))
}

const C1: u64 = 0x87c3_7b91_1142_53d5;
const C2: u64 = 0x4cf5_ad43_2745_937f;

fn first(k: u64) -> u64 {
    k.wrapping_mul(C1).rotate_left(31).wrapping_mul(C2)
}

fn second(k: u64) -> u64 {
    k.wrapping_mul(C2).rotate_left(33).wrapping_mul(C1)
}

fn finish(mut k: u64) -> u64 {
    k = (k ^ (k >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    k = (k ^ (k >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    k ^ (k >> 33)
}

fn halves(block: [u8; 16]) -> (u64, u64) {
    let half = |at: usize| u64::from_le_bytes(std::array::from_fn(|i| block[at + i]));
    (half(0), half(8))
}
