//! Using quantized rows: decoding them, and multiplying them with vectors.

#[cfg(target_arch = "x86_64")]
use super::avx2;
#[cfg(target_arch = "aarch64")]
use super::neon;
use super::{BLOCK, BLOCKS_PER_SUPER, BlockRow, BlockRows, scalar};

/// Values of a super block: a row can be cut at multiples of it, whatever the method.
const SUPER_BLOCK: usize = BLOCK * BLOCKS_PER_SUPER;

/// Calls the fastest version that the processor has.
macro_rules! fastest {
    ($function:ident($($argument:expr),*)) => {{
        #[cfg(target_arch = "x86_64")]
        if *avx2::AVAILABLE {
            // SAFETY: the processor has what the function needs.
            return unsafe { avx2::$function($($argument),*) };
        }
        #[cfg(target_arch = "aarch64")]
        if neon::AVAILABLE {
            // SAFETY: the processor has what the function needs.
            return unsafe { neon::$function($($argument),*) };
        }
        scalar::$function($($argument),*)
    }};
}

impl<'a> BlockRow<'a> {
    /// Decodes all values of the row.
    ///
    /// # Panics
    ///
    /// When `out` does not have the row's length, or the row has too few codes; it may when the row
    /// has too few scales or sub-scales.
    pub fn decode(&self, out: &mut [f32]) {
        assert_eq!(out.len(), self.cols, "a row has as many values as columns");
        decode_prefix(self, out);
    }

    /// Decodes the values from `start` on, as many as `out` takes.
    ///
    /// # Panics
    ///
    /// When they go beyond the row's end, or the row has too few codes; it may when the row has too
    /// few scales or sub-scales.
    pub fn decode_range(&self, start: usize, out: &mut [f32]) {
        assert!(start.checked_add(out.len()).is_some_and(|end| end <= self.cols));
        let (before, skipped) = (start / SUPER_BLOCK, start % SUPER_BLOCK);
        let (head, rest) = out.split_at_mut(out.len().min((SUPER_BLOCK - skipped) % SUPER_BLOCK));
        if !head.is_empty() {
            let mut values = [0.0; SUPER_BLOCK];
            let values = &mut values[..skipped + head.len()];
            decode_prefix(&self.skip_super_blocks(before), values);
            head.copy_from_slice(&values[skipped..]);
        }
        if !rest.is_empty() {
            decode_prefix(&self.skip_super_blocks(start.div_ceil(SUPER_BLOCK)), rest);
        }
    }

    /// The row times a vector of its length: `sum(w[i] * x[i])`, in f32. It differs from the exact
    /// sum by at most `cols * 2^-23 * sum(|w[i] * x[i]|)`; how it is rounded depends on the
    /// processor.
    ///
    /// # Panics
    ///
    /// When `x` does not have the row's length, or the row has too few codes; it may when the row
    /// has too few scales or sub-scales.
    pub fn dot_f32(&self, x: &[f32]) -> f32 {
        assert_eq!(x.len(), self.cols, "vectors of the same length");
        fastest!(dot_f32(self, x))
    }

    /// The row times a vector of eight-bit codes with one scale for every 32, filled up with zeros
    /// to whole blocks: the sum of `scale of the row's block * scale * sum(code * code)` over the
    /// blocks, where the sums of codes are exact. Any code may be there, -128 as well. It differs
    /// from the exact sum by at most `(blocks + 8) * 2^-23` of the sum of all absolute products.
    ///
    /// # Panics
    ///
    /// When `codes` or `scales` do not have the length for as many whole blocks as the row has, or
    /// the row has too few codes; it may when the row has too few scales or sub-scales.
    pub fn dot_i8(&self, codes: &[i8], scales: &[f32]) -> f32 {
        let blocks = self.cols.div_ceil(BLOCK);
        assert_eq!((codes.len(), scales.len()), (blocks * BLOCK, blocks), "whole blocks");
        fastest!(dot_i8(self, codes, scales))
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

impl BlockRows<'_> {
    /// Decodes as many rows as fit `out`, from the row with index `first` on.
    ///
    /// # Panics
    ///
    /// When `out` does not have the length of whole rows, or goes beyond the last row.
    pub fn decode(&self, first: u64, out: &mut [f32]) {
        if out.is_empty() {
            return;
        }
        let cols = self.row(first).cols;
        assert_eq!(out.len() % cols, 0, "whole rows");
        for (row, out) in (first..).zip(out.chunks_exact_mut(cols)) {
            decode_prefix(&self.row(row), out);
        }
    }
}

/// Decodes the first `out.len()` values of a row.
fn decode_prefix(row: &BlockRow, out: &mut [f32]) {
    fastest!(decode(row, out))
}

#[cfg(test)]
mod tests {
    use super::super::{BlockType, Layout};
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

        fn floats(&mut self, count: usize) -> Vec<f32> {
            (0..count).map(|_| self.next() as f32 / (1u64 << 30) as f32 - 1.0).collect()
        }
    }

    /// Any bytes: sub-scales above 63, the most negative code, codes behind the end, any scale.
    fn hostile(method: BlockType, rows: u64, cols: u64, random: &mut Random) -> (Layout, Vec<u8>) {
        let layout = Layout::new(method, rows, cols).unwrap();
        (layout, random.bytes(layout.size))
    }

    /// The same, but for scales: those are between 2^-14 and 1.
    fn finite(method: BlockType, rows: u64, cols: u64, random: &mut Random) -> (Layout, Vec<u8>) {
        let (layout, mut payload) = hostile(method, rows, cols, random);
        for scale in payload[..layout.scales_size() as usize].chunks_exact_mut(2) {
            scale[1] = 4 + scale[1] % 56;
        }
        (layout, payload)
    }

    fn same(a: &[f32], b: &[f32]) -> bool {
        let same = |(a, b): (&f32, &f32)| a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan();
        a.len() == b.len() && a.iter().zip(b).all(same)
    }

    /// The formula, code by code and bit by bit.
    #[test]
    fn the_scalar_version_is_the_formula() {
        let random = &mut Random(1);
        for method in BlockType::ALL {
            let (layout, payload) = hostile(method, 3, 300, random);
            let row = BlockRows::new(layout, &payload).unwrap().row(2);
            let mut out = vec![0.0; 300];
            scalar::decode(&row, &mut out);
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
    fn the_fastest_version_decodes_to_the_same_bits() {
        let random = &mut Random(2);
        for method in BlockType::ALL {
            for cols in 1..=600 {
                let (layout, payload) = hostile(method, 2, cols, random);
                let rows = BlockRows::new(layout, &payload).unwrap();
                let mut all = vec![0.0; 2 * cols as usize];
                rows.decode(0, &mut all);
                for (index, all) in (0..2).zip(all.chunks_exact(cols as usize)) {
                    let row = rows.row(index);
                    let (mut expected, mut found) = (all.to_vec(), all.to_vec());
                    scalar::decode(&row, &mut expected);
                    row.decode(&mut found);
                    assert!(same(&expected, &found), "{method} {cols}");
                    assert!(same(&expected, all), "{method} {cols}");
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
                let scales = 2 * layout.scales_per_row as usize;
                let scale = (index as u16).to_le_bytes();
                payload[index * scales..][..2].copy_from_slice(&scale);
            }
            let rows = BlockRows::new(layout, &payload).unwrap();
            let mut all = vec![0.0; 65536 * 64];
            rows.decode(0, &mut all);
            for (index, found) in (0..).zip(all.chunks_exact(64)) {
                let mut expected = [0.0; 64];
                scalar::decode(&rows.row(index), &mut expected);
                assert!(same(&expected, found), "{method} {index:#x}");
            }
        }
    }

    #[test]
    fn ranges_are_parts_of_the_row() {
        let random = &mut Random(4);
        for method in BlockType::ALL {
            let (layout, payload) = finite(method, 1, 777, random);
            let row = BlockRows::new(layout, &payload).unwrap().row(0);
            let mut all = vec![0.0; 777];
            row.decode(&mut all);
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
    fn products_with_floats_are_within_their_bound() {
        let random = &mut Random(5);
        for method in BlockType::ALL {
            for cols in 1..=600 {
                let (layout, payload) = finite(method, 1, cols, random);
                let row = BlockRows::new(layout, &payload).unwrap().row(0);
                let x = random.floats(row.cols);
                let mut w = vec![0.0; row.cols];
                row.decode(&mut w);
                let products = w.iter().zip(&x).map(|(&w, &x)| f64::from(w) * f64::from(x));
                let (exact, size) =
                    products.fold((0.0, 0.0), |(sum, size), p| (sum + p, size + p.abs()));
                let bound = cols as f64 * f64::from(f32::EPSILON) * size;
                for found in [row.dot_f32(&x), scalar::dot_f32(&row, &x)] {
                    assert!((f64::from(found) - exact).abs() <= bound, "{method} {cols}");
                }
            }
        }
    }

    #[test]
    fn products_with_codes_are_within_their_bound() {
        let random = &mut Random(6);
        for method in BlockType::ALL {
            for cols in 1..=600 {
                let (layout, payload) = finite(method, 1, cols, random);
                let row = BlockRows::new(layout, &payload).unwrap().row(0);
                let blocks = row.cols.div_ceil(BLOCK);
                let mut codes: Vec<i8> =
                    random.bytes(cols).iter().map(|b| b.cast_signed()).collect();
                codes.resize(blocks * BLOCK, 0);
                let scales = random.floats(blocks);
                let (mut exact, mut size) = (0.0, 0.0);
                for (i, &code) in codes.iter().enumerate() {
                    let block = i / BLOCK;
                    let scale = f64::from(row.block_scale(block)) * f64::from(scales[block]);
                    let ours = row.block_codes(block)[i % BLOCK];
                    let product = scale * f64::from(i32::from(code) * i32::from(ours));
                    (exact, size) = (exact + product, size + product.abs());
                }
                let bound = (blocks + 8) as f64 * f64::from(f32::EPSILON) * size;
                let found = [row.dot_i8(&codes, &scales), scalar::dot_i8(&row, &codes, &scales)];
                for found in found {
                    assert!((f64::from(found) - exact).abs() <= bound, "{method} {cols}");
                }
            }
        }
    }

    /// With scales of one every number on the way is an integer that f32 holds: no rounding.
    #[test]
    fn sums_of_codes_are_exact() {
        let random = &mut Random(7);
        for method in BlockType::ALL {
            for extreme in [false, true] {
                let (layout, mut payload) = hostile(method, 1, 512, random);
                for scale in payload[..layout.scales_size() as usize].chunks_exact_mut(2) {
                    scale.copy_from_slice(&half::f16::ONE.to_le_bytes());
                }
                payload[layout.sub_scales as usize..][..layout.shares_size() as usize].fill(32);
                if extreme {
                    // Each bit pattern of a code is then its most negative one.
                    let codes = &mut payload[layout.codes as usize..];
                    for i in 0..512 * method.bits() {
                        let sign = i % method.bits() == method.bits() - 1;
                        codes[i / 8] = codes[i / 8] & !(1 << (i % 8)) | u8::from(sign) << (i % 8);
                    }
                }
                let row = BlockRows::new(layout, &payload).unwrap().row(0);
                let mut codes: Vec<i8> =
                    random.bytes(512).iter().map(|b| b.cast_signed()).collect();
                if extreme {
                    codes.fill(i8::MIN);
                }
                let products = |block: usize| -> i32 {
                    let ours = row.block_codes(block);
                    let theirs = &codes[block * BLOCK..];
                    ours.iter().zip(theirs).map(|(&a, &b)| i32::from(a) * i32::from(b)).sum()
                };
                let exact = (0..16).map(products).sum::<i32>() as f32;
                assert_eq!(row.dot_i8(&codes, &[1.0; 16]), exact, "{method} {extreme}");
                assert_eq!(scalar::dot_i8(&row, &codes, &[1.0; 16]), exact, "{method} {extreme}");
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
                let mut row = BlockRows::new(layout, &payload).unwrap().row(0);
                row.codes = &row.codes[1..];
                let (x, blocks) = (vec![0.0; row.cols], row.cols.div_ceil(BLOCK));
                let (codes, scales) = (vec![0; blocks * BLOCK], vec![0.0; blocks]);
                assert!(fails(&|| row.decode(&mut x.clone())), "{method} {cols}");
                assert!(fails(&|| assert_eq!(row.dot_f32(&x), 0.0)), "{method} {cols}");
                assert!(fails(&|| assert_eq!(row.dot_i8(&codes, &scales), 0.0)), "{method} {cols}");
            }
        }
    }
}
