//! Decoding quantized rows.

use super::{BLOCK, BLOCKS_PER_SUPER, BlockRow};
use crate::simd::{Eight, Level, dispatch, prefetch_line};

/// Values of a super block: a row of any method can be cut there.
const SUPER_BLOCK: usize = BLOCK * BLOCKS_PER_SUPER;

/// How many values ahead of the one that decoding writes memory is prefetched: 2 KiB. Anything from
/// half to twice of it does as well.
const PREFETCH_DISTANCE: usize = 512;

impl<'a> BlockRow<'a> {
    /// Decodes the values from `start` on, as many as `out` takes.
    ///
    /// # Panics
    ///
    /// When they go beyond the row's end, or the row has too few codes; it may when the row has too
    /// few scales or sub-scales.
    pub(super) fn decode_range(&self, start: usize, out: &mut [f32]) {
        assert!(start.checked_add(out.len()).is_some_and(|end| end <= self.cols));
        let (before, skipped) = (start / SUPER_BLOCK, start % SUPER_BLOCK);
        let (head, rest) = out.split_at_mut(out.len().min((SUPER_BLOCK - skipped) % SUPER_BLOCK));
        if !head.is_empty() {
            let mut values = [0.0; SUPER_BLOCK];
            let values = &mut values[..skipped + head.len()];
            decode_prefix(Level::best(), &self.skip_super_blocks(before), values);
            head.copy_from_slice(&values[skipped..]);
        }
        if !rest.is_empty() {
            decode_prefix(
                Level::best(),
                &self.skip_super_blocks(start.div_ceil(SUPER_BLOCK)),
                rest,
            );
        }
    }

    /// The rest of the row behind its first `count` super blocks.
    fn skip_super_blocks(&self, count: usize) -> BlockRow<'a> {
        let blocks = count * BLOCKS_PER_SUPER;
        let supers = self.method.has_super_blocks();
        BlockRow {
            method: self.method,
            cols: self.cols - count * SUPER_BLOCK,
            scales: &self.scales[2 * if supers { count } else { blocks }..],
            sub_scales: if supers { &self.sub_scales[blocks..] } else { &[] },
            codes: &self.codes[blocks * self.method.block_bytes()..],
        }
    }
}

dispatch! {
    /// Decodes the first `out.len()` values of a row.
    fn decode_prefix(row: &BlockRow<'_>, out: &mut [f32]) = eight decode_with;
}

#[inline(always)]
fn decode_with<V: Eight>(token: V::Token, row: &BlockRow<'_>, out: &mut [f32]) {
    match row.method.bits() {
        2 => decode_bits::<V, 2>(token, row, out),
        3 => decode_bits::<V, 3>(token, row, out),
        4 => decode_bits::<V, 4>(token, row, out),
        6 => decode_bits::<V, 6>(token, row, out),
        _ => decode_bits::<V, 8>(token, row, out),
    }
}

#[inline(always)]
fn decode_bits<V: Eight, const BITS: usize>(token: V::Token, row: &BlockRow<'_>, out: &mut [f32]) {
    let (groups, rest) = out.as_chunks_mut::<SUPER_BLOCK>();
    let done = groups.len();
    for (group, out) in groups.iter_mut().enumerate() {
        let blocks = blocks::<V, BITS>(token, row, group, BLOCKS_PER_SUPER);
        for ((codes, scale), out) in blocks.zip(out.as_chunks_mut().0) {
            decode_block::<V, BITS>(token, codes, scale, out);
        }
    }
    if !rest.is_empty() {
        let blocks = blocks::<V, BITS>(token, row, done, rest.len().div_ceil(BLOCK));
        for ((codes, scale), out) in blocks.zip(rest.chunks_mut(BLOCK)) {
            if let Ok(out) = out.try_into() {
                decode_block::<V, BITS>(token, codes, scale, out);
            } else {
                let mut values = [0.0; BLOCK];
                decode_block::<V, BITS>(token, codes, scale, &mut values);
                out.copy_from_slice(&values[..out.len()]);
            }
        }
    }
}

/// The packed codes and the scales of `count` blocks of a group of eight.
#[inline(always)]
fn blocks<'a, V: Eight, const BITS: usize>(
    token: V::Token,
    row: &BlockRow<'a>,
    group: usize,
    count: usize,
) -> impl Iterator<Item = (&'a [u8], f32)> {
    let first = group * BLOCKS_PER_SUPER;
    let codes = &row.codes[first * 4 * BITS..][..count * 4 * BITS];
    let scales = if row.method.has_super_blocks() {
        let scale = u16::from_le_bytes([row.scales[2 * group], row.scales[2 * group + 1]]);
        let scales = V::from_f16(token, (u128::from(scale) * EIGHT_HALVES).to_le_bytes());
        let sub_scales = V::from_u8(token, up_to_eight(row.sub_scales, first).to_le_bytes());
        // Their product with 1/32 is exact.
        scales.mul(sub_scales.mul(V::splat(token, 1.0 / 32.0)))
    } else {
        let low = up_to_eight(row.scales, 2 * first);
        let high = up_to_eight(row.scales, 2 * first + 8);
        V::from_f16(token, (u128::from(high) << 64 | u128::from(low)).to_le_bytes())
    };
    codes.chunks_exact(4 * BITS).zip(scales.to_array())
}

#[inline(always)]
fn decode_block<V: Eight, const BITS: usize>(
    token: V::Token,
    packed: &[u8],
    scale: f32,
    out: &mut [f32; BLOCK],
) {
    // Large outputs are an eighth faster with this.
    prefetch_line(out, PREFETCH_DISTANCE);
    prefetch_line(out, PREFETCH_DISTANCE + 16);
    let scale = V::splat(token, scale);
    let codes = [
        eight_codes::<V, BITS, 0>(token, packed),
        eight_codes::<V, BITS, 1>(token, packed),
        eight_codes::<V, BITS, 2>(token, packed),
        eight_codes::<V, BITS, 3>(token, packed),
    ];
    for (codes, out) in codes.into_iter().zip(out.as_chunks_mut::<8>().0) {
        scale.mul(codes).store(out);
    }
}

/// Eight codes of a block, those of one quarter.
#[inline(always)]
fn eight_codes<V: Eight, const BITS: usize, const QUARTER: usize>(
    token: V::Token,
    packed: &[u8],
) -> V {
    assert_eq!(packed.len(), 4 * BITS);
    if BITS == 8 {
        return V::from_i8(token, *packed[8 * QUARTER..].first_chunk().expect("eight codes"));
    }
    let places = const { &Places::new(BITS, QUARTER) };
    let words =
        places.words.map(|at| u32::from_le_bytes(*packed[at..].first_chunk().expect("a word")));
    V::from_fields(token, words, &places.left, places.right)
}

/// Where eight codes are among the packed ones of a block: in two words, four in each, which are
/// one if all eight fit it.
struct Places {
    /// The first byte of each word.
    words: [usize; 2],
    /// How far a code is from the top of its word.
    left: [u32; 8],
    /// How far it is then from the bottom.
    right: u32,
}

impl Places {
    #[allow(clippy::cast_possible_truncation, reason = "all are below 32")]
    const fn new(bits: usize, quarter: usize) -> Places {
        let mut places = Places { words: [0; 2], left: [0; 8], right: 32 - bits as u32 };
        let mut i = 0;
        while i < 8 {
            let half = if bits > 4 { i / 4 * bits / 2 } else { 0 };
            let start = quarter * bits + half;
            // No word ends behind the block.
            let start = if start > 4 * bits - 4 { 4 * bits - 4 } else { start };
            places.words[i / 4] = start;
            let end = bits * (8 * quarter + i + 1);
            places.left[i] = (32 + 8 * start - end) as u32;
            i += 1;
        }
        places
    }
}

/// Multiplied with a number of 16 bits: the same eight times.
const EIGHT_HALVES: u128 = u128::MAX / 0xFFFF;

/// Up to eight bytes from a place on, as a word with zeros above them. It is made without memory: a
/// vector that is read from bytes just written has to wait for all stores before them.
#[inline(always)]
fn up_to_eight(bytes: &[u8], start: usize) -> u64 {
    if let Some(eight) = bytes.get(start..).and_then(|rest| rest.first_chunk()) {
        return u64::from_le_bytes(*eight);
    }
    let Some(last) = bytes.last_chunk() else {
        // So short a row is read byte by byte.
        let rest = bytes.get(start..).unwrap_or_default();
        return rest.iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte));
    };
    // The last eight bytes, of which those before the place are shifted out.
    let missing = start + 8 - bytes.len();
    if missing < 8 { u64::from_le_bytes(*last) >> (8 * missing) } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::super::{BlockCodec, BlockType, Layout, codec_named};
    use super::*;

    /// Numbers that look random, the same in each run.
    struct Random(u64);

    impl Random {
        fn next(&mut self) -> u64 {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            self.0 >> 33
        }

        fn bytes(&mut self, count: u64) -> Vec<u8> {
            (0..count).map(|_| self.next().to_le_bytes()[0]).collect()
        }
    }

    fn codec(method: BlockType) -> &'static dyn BlockCodec {
        codec_named(method.name()).unwrap()
    }

    fn row<'a>(layout: &Layout, payload: &'a [u8], index: u64) -> BlockRow<'a> {
        let (front, codes) = payload.split_at(layout.codes.start as usize);
        let [scales, sub_scales] = layout.front_of(front, index, 0..layout.cols);
        let codes_of = layout.codes_of(index, 0..layout.cols);
        let codes = &codes[codes_of.start as usize..codes_of.end as usize];
        let method = layout.codec.as_signed().unwrap();
        BlockRow { method, cols: layout.cols as usize, scales, sub_scales, codes }
    }

    /// Any bytes: sub-scales above 63, the most negative code, codes behind the end, any scale.
    fn hostile(method: BlockType, rows: u64, cols: u64, random: &mut Random) -> (Layout, Vec<u8>) {
        let layout = Layout::new(codec(method), rows, cols).unwrap();
        (layout, random.bytes(layout.size))
    }

    /// The same, but for scales: those are between 2^-14 and 1.
    fn finite(method: BlockType, rows: u64, cols: u64, random: &mut Random) -> (Layout, Vec<u8>) {
        let (layout, mut payload) = hostile(method, rows, cols, random);
        for scale in payload[..layout.gaps()[0].start as usize].chunks_exact_mut(2) {
            scale[1] = 4 + scale[1] % 56;
        }
        (layout, payload)
    }

    fn same(a: &[f32], b: &[f32]) -> bool {
        let same = |(a, b): (&f32, &f32)| a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan();
        a.len() == b.len() && a.iter().zip(b).all(same)
    }

    /// All but the plain one; vectors of eight are the same from AVX2 on.
    fn levels() -> impl Iterator<Item = Level> {
        let levels = Level::available().into_iter();
        levels.filter(|level| *level != Level::PLAIN && !level.has_sixteen_lanes())
    }

    /// The formula, code by code and bit by bit.
    #[test]
    fn the_plain_version_is_the_formula() {
        let random = &mut Random(1);
        for method in BlockType::ALL {
            let (layout, payload) = hostile(method, 3, 300, random);
            let row = row(&layout, &payload, 2);
            let mut out = vec![0.0; 300];
            decode_prefix(Level::PLAIN, &row, &mut out);
            let scale = |i: usize| {
                half::f16::from_le_bytes([row.scales[2 * i], row.scales[2 * i + 1]]).to_f32()
            };
            for (i, value) in out.iter().enumerate() {
                let bit = |n: usize| i32::from(row.codes[n / 8] >> (n % 8) & 1);
                let bits = method.bits();
                let magnitude = (0..bits - 1).map(|b| bit(i * bits + b) << b).sum::<i32>();
                let code = magnitude - (bit(i * bits + bits - 1) << (bits - 1));
                let scale = match method {
                    BlockType::Q8 | BlockType::Q4 => scale(i / 32),
                    _ => scale(i / 256) * (f32::from(row.sub_scales[i / 32]) / 32.0),
                };
                assert!(same(&[*value], &[scale * code as f32]), "{method} {i}");
            }
        }
    }

    #[test]
    fn every_level_decodes_to_the_same_bits() {
        let random = &mut Random(2);
        for method in BlockType::ALL {
            for cols in 1..=600 {
                let (layout, payload) = hostile(method, 2, cols, random);
                let mut all = vec![0.0; 2 * cols as usize];
                for (index, all) in (0..2).zip(all.chunks_exact_mut(cols as usize)) {
                    row(&layout, &payload, index).decode_range(0, all);
                }
                for (index, all) in (0..2).zip(all.chunks_exact(cols as usize)) {
                    let row = row(&layout, &payload, index);
                    let mut expected = all.to_vec();
                    decode_prefix(Level::PLAIN, &row, &mut expected);
                    assert!(same(&expected, all), "{method} {cols}");
                    for level in levels() {
                        let mut found = vec![7.0; all.len()];
                        decode_prefix(level, &row, &mut found);
                        assert!(same(&expected, &found), "{level} {method} {cols}");
                    }
                }
            }
        }
    }

    #[test]
    fn every_scale_and_share_decodes_to_the_same_bits() {
        let random = &mut Random(3);
        for method in BlockType::ALL {
            let (layout, mut payload) = hostile(method, 65536, 64, random);
            for index in 0..layout.rows as usize {
                let scales = layout.front[0].row_bytes as usize;
                let scale = (index as u16).to_le_bytes();
                payload[index * scales..][..2].copy_from_slice(&scale);
            }
            for index in 0..layout.rows {
                let (mut expected, mut found) = ([0.0; 64], [7.0; 64]);
                decode_prefix(Level::PLAIN, &row(&layout, &payload, index), &mut expected);
                for level in levels() {
                    decode_prefix(level, &row(&layout, &payload, index), &mut found);
                    assert!(same(&expected, &found), "{level} {method} {index:#x}");
                }
            }
        }
    }

    #[test]
    fn ranges_are_parts_of_the_row() {
        let random = &mut Random(4);
        for method in BlockType::ALL {
            let (layout, payload) = finite(method, 1, 777, random);
            let row = row(&layout, &payload, 0);
            let mut all = vec![0.0; 777];
            row.decode_range(0, &mut all);
            for start in (0..=777).step_by(7).chain([32, 255, 256, 257, 512, 768]) {
                for length in (0..=777 - start).step_by(13).chain([1, 777 - start]) {
                    let end = (start + length).min(777);
                    let mut part = vec![0.0; end - start];
                    row.decode_range(start, &mut part);
                    assert!(same(&part, &all[start..end]), "{method} {start}..{end}");
                }
            }
        }
    }

    #[test]
    fn words_of_up_to_eight_bytes_are_padded_with_zeros() {
        let bytes: Vec<u8> = (1..=20).collect();
        for length in 0..=bytes.len() {
            for start in 0..=length + 9 {
                let mut expected = [0; 8];
                let rest = bytes[..length].iter().skip(start);
                expected.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
                let found = up_to_eight(&bytes[..length], start);
                assert_eq!(found.to_le_bytes(), expected, "{length} {start}");
            }
        }
    }

    /// Anyone can make a row by hand: codes that it lacks are not read from elsewhere.
    #[test]
    fn rows_without_all_codes_panic() {
        let random = &mut Random(8);
        let fails =
            |what: &dyn Fn()| std::panic::catch_unwind(std::panic::AssertUnwindSafe(what)).is_err();
        for method in BlockType::ALL {
            for cols in [31, 32, 129, 512] {
                let (layout, payload) = finite(method, 1, cols, random);
                let mut row = row(&layout, &payload, 0);
                row.codes = &row.codes[1..];
                for level in Level::available() {
                    let decode = || decode_prefix(level, &row, &mut vec![0.0; row.cols]);
                    assert!(fails(&decode), "{level} {method} {cols}");
                }
            }
        }
    }
}
