//! Every operation at every level, against plain Rust.

use super::*;

/// The same bits, but any NaN for NaN.
fn same(a: &[f32], b: &[f32]) -> bool {
    let same = |(a, b): (&f32, &f32)| a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan();
    a.len() == b.len() && a.iter().zip(b).all(same)
}

fn levels() -> impl Iterator<Item = Level> {
    Level::available().into_iter().filter(|level| level.definition() != *level)
}

/// Numbers of all kinds, each paired with each.
fn pairs() -> Vec<(f32, f32)> {
    let sizes = [0.0, 1e-45, 1e-38, 0.3, 1.0, 1.5, 127.0, 3e9, f32::MAX, f32::INFINITY];
    let values: Vec<f32> = sizes.into_iter().flat_map(|v| [v, -v]).chain([f32::NAN]).collect();
    values.iter().flat_map(|&a| values.iter().map(move |&b| (a, b))).collect()
}

dispatch! {
    /// What every operation gives that works lane by lane, and the columns of rows that all differ.
    fn lane_by_lane(a: &[f32], b: &[f32]) -> Vec<f32> = eight lane_by_lane_with;
    fn largest(a: &[f32]) -> f32 = eight largest_with;
    fn integers(a: &[f32; 32], bytes: [u8; 16]) -> (Vec<i16>, [u8; 32], Vec<f32>) = eight integers_with;
    fn numbers(values: &[f32; 64], table: &[u8; 16]) -> Vec<u16> = numbers numbers_with;
    fn fields(words: [u32; 2], left: &[u32; 8], right: u32) -> [f32; 8] = eight fields_with;
    fn wide(a: &[f32], b: &[f32]) -> Vec<f32> = sixteen wide_with;
    fn reaches(a: &[f32], b: &[f32]) -> [bool; 2] = sixteen reaches_with;
    fn code_sums(start: i32, codes: &[u8; 16], factors: &[i16; 16]) -> [[f32; 8]; 2] = eight code_sums_with;
    fn pair_sums(start: i32, pair: [i16; 2], line: &[[i16; 2]]) -> [f32; 16] = sixteen pair_sums_with;
}

fn lane_by_lane_with<V: Eight>(token: V::Token, a: &[f32], b: &[f32]) -> Vec<f32> {
    let splat = |value: f32| V::splat(token, value);
    let rows: [V; 8] = std::array::from_fn(|i| V::load(token, a).mul(splat(i as f32)));
    let (a, b) = (V::load(token, a), V::load(token, b));
    let mut results = vec![
        a.add(b),
        a.sub(b),
        a.mul(b),
        a.div(b),
        a.abs(),
        a.min(b),
        a.max(b),
        a.abs().with_sign_of(b),
        a.mul_add(b, splat(0.7)),
        a.fused_mul_add(b, splat(0.7)),
        a.fused_mul_add(splat(0.7), b),
        V::select_less(a, b, splat(1.0), splat(2.0)),
        a.clamp((splat(-1.0), b)),
        a.mul_power_of_two(splat(f32::from_bits(3))),
    ];
    results.extend(V::transpose(rows));
    let counts = V::count_less(V::count_less(V::sums(token, 7), a, b), b, splat(1.0));
    results.push(V::from_sums(counts));
    let mut values: Vec<f32> = results.iter().flat_map(|v| v.to_array()).collect();
    values.extend(results.iter().map(|v| v.sum()));
    values.extend(moments(a, b));
    let four: [V; 4] = std::array::from_fn(|i| results[i]);
    values.extend(V::sum_each(four));
    values.extend(V::sum_each([four[0], four[1], four[2]]));
    for length in 0..=8 {
        values.extend(V::load_padded(token, &four[2].to_array()[..length]).to_array());
    }
    values
}

/// Sums and squares of two vectors: all bits of doubles, in parts that floats hold.
fn moments<V: Vector>(a: V, b: V) -> Vec<f32> {
    let (mut sums, mut squares) = (vec![1e-9; V::LANES], vec![1e9; V::LANES]);
    a.add_moments(&mut sums, &mut squares);
    b.add_moments(&mut sums, &mut squares);
    let bits = |v: &f64| if v.is_nan() { 0 } else { v.to_bits() };
    let parts = |bits: u64| [bits & 0xFF_FFFF, bits >> 24 & 0xFF_FFFF, bits >> 48];
    sums.iter().chain(&squares).map(bits).flat_map(parts).map(|part| part as f32).collect()
}

fn largest_with<V: Eight>(token: V::Token, a: &[f32]) -> f32 {
    V::load(token, a).largest()
}

fn integers_with<V: Eight>(
    token: V::Token,
    a: &[f32; 32],
    bytes: [u8; 16],
) -> (Vec<i16>, [u8; 32], Vec<f32>) {
    let four: [V; 4] = std::array::from_fn(|i| V::load(token, &a[8 * i..]));
    let rounded = four.iter().flat_map(|v| v.round()).collect();
    let eight = *bytes.first_chunk().unwrap();
    let read = [
        V::from_f16(token, bytes),
        V::from_bf16(token, bytes),
        V::from_u8(token, eight),
        V::from_i8(token, eight),
    ];
    let read: Vec<f32> = read.into_iter().flat_map(|v| v.to_array()).collect();
    (rounded, V::truncate(four), read)
}

/// The same for vectors of any width: of each half the numbers, the counts of those below a limit and the bits of those
/// that are among others, and in some order upper bits and what a table has there.
fn numbers_with<V: Numbers>(token: V::Token, values: &[f32; 64], table: &[u8; 16]) -> Vec<u16> {
    let (by, plus) = (V::splat(token, 1.7), V::splat(token, 12_582_912.0));
    let (mut all, mut low, mut bits) = (Vec::new(), 0, Vec::new());
    let mut bytes = [Vec::new(), Vec::new()];
    for group in values.chunks_exact(4 * V::LANES) {
        let vectors = group.chunks_exact(V::LANES).map(|v| V::load(token, v).multiplied(by, plus));
        let vectors: Vec<V> = vectors.collect();
        let numbers = [vectors[0].lower_halves(vectors[1]), vectors[2].lower_halves(vectors[3])];
        let (mut halves, mut quarters) = (vec![0; 2 * V::LANES], vec![0; 4 * V::LANES]);
        for (half, vectors) in numbers.into_iter().zip(vectors.chunks_exact(2)) {
            V::store_halves(half, &mut halves);
            // Lane by lane, whatever the width.
            let mut lanes = [vec![0.0; V::LANES], vec![0.0; V::LANES]];
            vectors.iter().zip(&mut lanes).for_each(|(v, to)| v.store(to));
            for (i, number) in halves.iter().enumerate() {
                assert_eq!(*number, lanes[i % 2][i / 2].to_bits() as u16);
            }
            all.extend_from_slice(&halves);
        }
        let counts = V::add_lower(V::no_halves(token), numbers[0], numbers[1], 7);
        V::store_halves(counts, &mut halves);
        low += halves.iter().sum::<u16>();
        let among = V::are_among::<4>(numbers, 2, (90, 30));
        bits.extend((0..4 * V::LANES).map(|bit| (among >> bit & 1) as u16));
        let upper = V::upper_bits::<8>(numbers[0], numbers[1]);
        let places = V::upper_bits::<12>(numbers[0], numbers[1]);
        let added = V::add_from(V::add_from(V::no_quarters(token), table, places), table, places);
        for (bytes, quarter) in bytes.iter_mut().zip([upper, added]) {
            V::store_quarters(quarter, &mut quarters);
            bytes.extend_from_slice(&quarters);
        }
    }
    // Vectors of another width have the numbers in another order.
    let mut marked: Vec<(u16, u16)> = all.into_iter().zip(bits).collect();
    marked.sort_unstable();
    bytes.iter_mut().for_each(|bytes| bytes.sort_unstable());
    let marked = marked.into_iter().flat_map(|(number, bit)| [number, bit]);
    marked.chain([low]).chain(bytes.concat().into_iter().map(u16::from)).collect()
}

fn fields_with<V: Eight>(
    token: V::Token,
    words: [u32; 2],
    left: &[u32; 8],
    right: u32,
) -> [f32; 8] {
    V::from_fields(token, words, left, right).to_array()
}

fn wide_with<V: Vector>(token: V::Token, a: &[f32], b: &[f32]) -> Vec<f32> {
    assert_eq!(V::LANES, 16);
    let (a, b) = (V::load(token, a), V::load(token, b));
    let one = V::splat(token, 1.0);
    let counts = V::count_less(V::count_less(V::sums(token, 7), a, b), b, one);
    let results = [
        a.add(b),
        a.sub(b),
        a.mul(b),
        a.div(b),
        a.abs(),
        a.min(b),
        a.max(b),
        a.mul_add(b, one),
        V::select_less(a, b, one, b),
        V::from_sums(counts),
    ];
    let mut values = vec![0.0; 16 * results.len()];
    for (values, result) in values.chunks_exact_mut(16).zip(results) {
        result.store(values);
    }
    values.extend(moments(a, b));
    values
}

fn reaches_with<V: Vector>(token: V::Token, a: &[f32], b: &[f32]) -> [bool; 2] {
    let (a, b) = (V::load(token, a), V::load(token, b));
    [a.any_reaches(b), b.any_reaches(a)]
}

fn code_sums_with<V: Eight>(
    token: V::Token,
    start: i32,
    codes: &[u8; 16],
    factors: &[i16; 16],
) -> [[f32; 8]; 2] {
    let start = V::sums(token, start);
    let sums = [V::add_codes(start, codes, factors), V::add_code_squares(start, codes)];
    sums.map(|sums| V::from_sums(sums).to_array())
}

fn pair_sums_with<V: Vector>(
    token: V::Token,
    start: i32,
    pair: [i16; 2],
    line: &[[i16; 2]],
) -> [f32; 16] {
    let sums = V::add_pairs(V::sums(token, start), pair, line);
    let mut values = [0.0; 16];
    V::from_sums(V::add_pairs(sums, pair, line)).store(&mut values);
    values
}

#[test]
fn this_machine_has_more_than_the_definition() {
    assert_eq!(Level::available()[..2], [Level::PLAIN, Level::PLAIN_FUSED]);
    assert!(Level::available().contains(&Level::best()) && Level::best() != Level::PLAIN_FUSED);
    for level in levels() {
        println!("{level}");
    }
}

#[test]
fn lanes_agree_with_the_definition() {
    for level in levels() {
        for pairs in pairs().windows(8) {
            let (a, b): (Vec<f32>, Vec<f32>) = pairs.iter().copied().unzip();
            let (found, expected) =
                (lane_by_lane(level, &a, &b), lane_by_lane(level.definition(), &a, &b));
            for (i, (found, expected)) in found.chunks(8).zip(expected.chunks(8)).enumerate() {
                assert!(same(found, expected), "{level} {i} {a:?} {b:?}: {found:?} {expected:?}");
            }
            if !a.iter().any(|a| a.is_nan()) {
                let (found, expected) = (largest(level, &a), largest(Level::PLAIN, &a));
                assert!(same(&[found], &[expected]), "{level} {a:?}");
            }
        }
        for pairs in pairs().windows(16) {
            let (a, b): (Vec<f32>, Vec<f32>) = pairs.iter().copied().unzip();
            assert!(same(&wide(level, &a, &b), &wide(level.definition(), &a, &b)), "{level} {a:?}");
        }
    }
}

#[test]
fn conversions_agree_with_the_definition() {
    for level in levels() {
        for from in -128..=0 {
            let values: [f32; 32] = std::array::from_fn(|i| (from + 4 * i as i32) as f32 * 0.99);
            let bytes = [0; 16];
            assert_eq!(integers(level, &values, bytes), integers(Level::PLAIN, &values, bytes));
        }
        // Halves, what is beside them, and all that 16 bits hold.
        for from in (-32768..32736).step_by(31) {
            for offset in [-0.5f32, 0.5, 0.499, 0.501, 0.0] {
                let values: [f32; 32] = std::array::from_fn(|i| (from + i as i32) as f32 + offset);
                let values = values.map(|v| v.clamp(-32768.0, 32767.0));
                let rounded = |level| integers(level, &values, [0; 16]).0;
                assert_eq!(rounded(level), rounded(Level::PLAIN), "{level} {values:?}");
            }
        }
        // Every f16 and every byte.
        for first in (0..=u16::MAX).step_by(8) {
            let mut bytes = [0; 16];
            for (i, half) in bytes.chunks_exact_mut(2).enumerate() {
                half.copy_from_slice(&(first + i as u16).to_le_bytes());
            }
            let read = |level| integers(level, &[0.0; 32], bytes).2;
            assert!(same(&read(level), &read(Level::PLAIN)), "{level} {bytes:?}");
        }
        for bits in 2..=8u32 {
            for word in (0..=u32::MAX).step_by(65_537 * 257) {
                let words = [word, word.rotate_left(11) ^ 0x5555];
                let left = std::array::from_fn(|i| (3 * i as u32) % (33 - bits));
                let (found, expected) = (
                    fields(level, words, &left, 32 - bits),
                    fields(Level::PLAIN, words, &left, 32 - bits),
                );
                assert_eq!(found, expected, "{level} {bits} {word:#x}");
            }
        }
    }
}

const EXTREME: [i16; 7] = [i16::MIN, -4095, -1, 0, 1, 4095, i16::MAX];

#[test]
fn numbers_agree_with_the_definition() {
    let table: [u8; 16] = std::array::from_fn(|i| (i * i + 3) as u8);
    for spread in [0.9f32, 20.0, 600.0] {
        let values: [f32; 64] = std::array::from_fn(|i| (i * i % 67) as f32 * spread - 40.0);
        let expected = numbers(Level::PLAIN_FUSED, &values, &table);
        // Below the limit, and among the others, some are and some are not.
        let marked = expected[..128].chunks(2).filter(|pair| pair[1] == 1).count();
        assert!(marked > 0 && marked < 64 && expected[128] > 0 && expected[128] < 64, "{spread}");
        for level in Level::available() {
            assert_eq!(numbers(level, &values, &table), expected, "{level} {spread}");
        }
    }
}

#[test]
fn sums_of_pairs_agree_with_the_definition() {
    for level in levels() {
        for x in EXTREME {
            for y in EXTREME {
                for start in [0, 1, -77, i32::MAX, i32::MIN] {
                    let line: [[i16; 2]; 16] =
                        std::array::from_fn(|i| [EXTREME[i % 7], EXTREME[(i + i / 7) % 7]]);
                    let sums = |level| pair_sums(level, start, [x, y], &line);
                    assert_eq!(sums(level), sums(Level::PLAIN), "{level} {x} {y} {start}");
                }
            }
        }
    }
}

#[test]
fn sums_of_codes_agree_with_the_definition() {
    for level in levels() {
        for code in i8::MIN..=i8::MAX {
            for start in [0, -77, i32::MAX, i32::MIN] {
                let code = code.cast_unsigned();
                let codes = std::array::from_fn(|i| code.wrapping_mul(i as u8 * 2 + 1));
                let factors = std::array::from_fn(|i| EXTREME[(i + usize::from(code)) % 7]);
                let sums = |level| code_sums(level, start, &codes, &factors);
                assert_eq!(sums(level), sums(Level::PLAIN), "{level} {code} {start}");
            }
        }
    }
}

/// In each lane alone: less, equal, more, NaN on either side.
#[test]
fn any_lane_can_reach_its_limit() {
    for level in Level::available() {
        let limits = [1.0; 16];
        assert_eq!(reaches(level, &[0.5; 16], &limits), [false, true], "{level}");
        for lane in 0..16 {
            for (value, expected) in [(0.9, false), (1.0, true), (1.1, true), (f32::NAN, true)] {
                let mut values = [0.5; 16];
                values[lane] = value;
                assert_eq!(reaches(level, &values, &limits)[0], expected, "{level} {lane}");
            }
            let mut limits = limits;
            limits[lane] = f32::NAN;
            assert!(reaches(level, &[0.5; 16], &limits)[0], "{level} {lane}");
        }
    }
}

struct Fours<'a>(i32, &'a [[i8; 4]], [u8; 4]);

impl ByteKernel for Fours<'_> {
    type Output = [f32; 16];

    #[inline(always)]
    fn run<V: ByteProducts>(self, token: V::Token) -> [f32; 16] {
        let mut values = [0.0; 16];
        V::from_sums(V::add_fours(V::sums(token, self.0), self.1, self.2)).store(&mut values);
        values
    }
}

#[test]
fn sums_of_fours_agree_with_the_definition() {
    for level in levels().filter(|level| level.has_byte_products()) {
        for code in i8::MIN..=i8::MAX {
            for start in [0, -128 * 127 * 32, i32::MIN] {
                let line: [[i8; 4]; 16] =
                    std::array::from_fn(|i| [-128, (17 * i) as i8, code, (i % 3 * 63) as i8]);
                let four = [code.cast_unsigned(), 255, 128, code.wrapping_mul(3).cast_unsigned()];
                let sums = |level: Level| level.run_bytes(Fours(start, &line, four));
                assert_eq!(sums(level), sums(Level::PLAIN), "{level} {code}");
            }
        }
    }
}

struct Rounded<'a>(&'a [f32; 16], usize);

impl ByteKernel for Rounded<'_> {
    type Output = ((f32, f32), [u8; 16]);

    #[inline(always)]
    fn run<V: ByteProducts>(self, token: V::Token) -> Self::Output {
        let (values, mut bytes) = (V::load(token, self.0), [0; 64]);
        // In one of four places, with others beside it.
        let mut four = std::array::from_fn(|i| values.add(V::splat(token, i as f32)));
        four[self.1] = values;
        V::last_bytes(four, &mut bytes);
        (V::extremes(values, values), std::array::from_fn(|i| bytes[16 * self.1 + i]))
    }
}

/// In each lane alone.
#[test]
fn extremes_and_last_bytes_are_those_of_all_lanes() {
    for level in Level::available() {
        for lane in 0..16 {
            let mut values: [f32; 16] = std::array::from_fn(|i| (7 * i % 16) as f32 * 0.37 - 2.0);
            for extreme in [-9.5, 1e6, f32::INFINITY] {
                values[lane] = extreme;
                let (extremes, bytes) = level.run_bytes(Rounded(&values, lane % 4));
                let least = values.into_iter().reduce(f32::min).unwrap();
                let most = values.into_iter().reduce(f32::max).unwrap();
                assert_eq!(extremes, (least, most), "{level} {lane}");
                assert_eq!(bytes, values.map(|value| value.to_bits() as u8), "{level} {lane}");
            }
        }
    }
}

struct Bf16s<'a>(&'a [f32; 16], [i16; 2], &'a [[i16; 2]]);

impl Bf16Kernel for Bf16s<'_> {
    type Output = [f32; 16];

    #[inline(always)]
    fn run<V: Bf16Products>(self, token: V::Token) -> [f32; 16] {
        let mut values = [0.0; 16];
        V::load(token, self.0).add_bf16_pairs(self.1, self.2).store(&mut values);
        values
    }
}

/// To the bit for numbers that stay away from subnormal ones.
#[test]
fn sums_of_bf16_agree_with_the_definition() {
    let mut state = 1u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let random = (state >> 32) as u32;
        // Exponents from -15 to 16, any sign and mantissa.
        f32::from_bits(random & 0x807F_FFFF | (112 + (random >> 23 & 31)) << 23)
    };
    for level in levels().filter(|level| level.has_bf16_products()) {
        for _ in 0..100_000 {
            let mut bf16 = || (next().to_bits() >> 16) as i16;
            let (pair, line) =
                ([bf16(), bf16()], std::array::from_fn::<_, 16, _>(|_| [bf16(), bf16()]));
            let start = std::array::from_fn(|_| next());
            let sums = |level: Level| level.run_bf16(Bf16s(&start, pair, &line));
            assert_eq!(
                sums(level),
                sums(Level::PLAIN_FUSED),
                "{level} {pair:?} {line:?} {start:?}"
            );
        }
    }
}

struct ToBf16<'a>(&'a [f32], &'a mut [i16]);

impl Bf16Kernel for ToBf16<'_> {
    type Output = ();

    #[inline(always)]
    fn run<V: Bf16Products>(self, token: V::Token) {
        V::load(token, self.0).to_bf16(self.1);
    }
}

/// To the bit, and as the crate half rounds, which keeps subnormal numbers.
#[test]
fn bf16_agree_with_the_definition() {
    let mut bits: Vec<u32> = (0..=u16::MAX).map(|high| u32::from(high) << 16).collect();
    bits.extend((0..=u16::MAX).flat_map(|high| {
        [1, 0x7FFF, 0x8000, 0x8001, 0xFFFF].map(|low| u32::from(high) << 16 | low)
    }));
    let values: Vec<f32> = bits.into_iter().map(f32::from_bits).collect();
    for values in values.as_chunks::<16>().0 {
        let expected = values.map(|x| match x {
            _ if x.is_nan() => None,
            _ if x.is_subnormal() => Some(half::bf16::from_f32(0f32.copysign(x))),
            _ => Some(half::bf16::from_f32(x)),
        });
        for level in Level::available() {
            let mut found = [0; 16];
            level.run_bf16(ToBf16(values, &mut found));
            let found = found.map(|bits| half::bf16::from_bits(bits.cast_unsigned()));
            for (found, (expected, x)) in found.iter().zip(expected.iter().zip(values)) {
                let is_right = expected.map_or(found.is_nan(), |x| x.to_bits() == found.to_bits());
                assert!(is_right, "{level} {x:e}: {found} for {expected:?}");
            }
        }
    }
}

/// Loads and stores go through pointers: slices that are too short must not come that far.
#[test]
fn short_slices_panic() {
    let fails =
        |what: &dyn Fn()| std::panic::catch_unwind(std::panic::AssertUnwindSafe(what)).is_err();
    let (short, zeros, lines) = ([0.0; 7], [0.0; 16], [[0i16; 2]; 15]);
    for level in Level::available() {
        assert!(fails(&|| assert_eq!(largest(level, &short), 0.0)), "{level}");
        assert!(fails(&|| assert!(wide(level, &zeros[..15], &zeros).is_empty())), "{level}");
        assert!(fails(&|| assert_eq!(pair_sums(level, 0, [0; 2], &lines), zeros)), "{level}");
        let fours = Fours(0, &[[0; 4]; 15], [0; 4]);
        assert!(fails(&|| assert_eq!(level.run_bytes(Fours(fours.0, fours.1, fours.2)), zeros)));
        let bf16s = || Bf16s(&[0.0; 16], [0; 2], &[[0; 2]; 15]);
        assert!(fails(&|| assert_eq!(level.run_bf16(bf16s()), zeros)), "{level}");
        assert!(fails(&|| level.run_bf16(ToBf16(&zeros, &mut [0; 15]))), "{level}");
    }
}
