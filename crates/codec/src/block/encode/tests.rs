//! What holds for every method, on values of many kinds.

use super::*;
use crate::block::BlockRow;

/// Scales, sub-scales and codes of a row.
#[derive(Debug, PartialEq)]
struct Encoded {
    method: BlockType,
    cols: usize,
    scales: Vec<u8>,
    sub_scales: Vec<u8>,
    codes: Vec<u8>,
}

impl Encoded {
    fn empty(method: BlockType, cols: usize) -> Encoded {
        let blocks = cols.div_ceil(BLOCK);
        let (scales, sub_scales) = if method.has_super_blocks() {
            (blocks.div_ceil(BLOCKS_PER_SUPER), blocks)
        } else {
            (blocks, 0)
        };
        Encoded {
            method,
            cols,
            scales: vec![0xAA; 2 * scales],
            sub_scales: vec![0xAA; sub_scales],
            codes: vec![0xAA; blocks * method.block_bytes()],
        }
    }

    fn new(quantizer: &Quantizer<'_>, row: &[f32]) -> Encoded {
        let mut e = Encoded::empty(quantizer.method, row.len());
        quantizer.choose_scales(row, &mut e.scales, &mut e.sub_scales).unwrap();
        quantizer.make_codes(row, &e.scales, &e.sub_scales, &mut e.codes);
        e
    }

    /// In one step instead of two.
    fn in_one_step(level: Level, quantizer: &Quantizer<'_>, row: &[f32]) -> Encoded {
        let mut e = Encoded::empty(quantizer.method, row.len());
        encode(level, quantizer, row, &mut e.scales, &mut e.sub_scales, &mut e.codes).unwrap();
        e
    }

    fn at(level: Level, quantizer: &Quantizer<'_>, row: &[f32]) -> Encoded {
        let mut e = Encoded::empty(quantizer.method, row.len());
        choose_scales(level, quantizer, row, &mut e.scales, &mut e.sub_scales).unwrap();
        make_codes(level, quantizer, row, &e.scales, &e.sub_scales, &mut e.codes);
        e
    }

    fn row(&self) -> BlockRow<'_> {
        let Encoded { method, cols, scales, sub_scales, codes } = self;
        BlockRow { method: *method, cols: *cols, scales, sub_scales, codes }
    }

    fn codes(&self) -> Vec<i8> {
        (0..self.cols.div_ceil(BLOCK)).flat_map(|b| self.row().block_codes(b)).collect()
    }

    fn error(&self, values: &[f32], importance: Option<&[f32]>) -> f64 {
        let codes = self.codes();
        let errors = values.iter().enumerate().map(|(i, &value)| {
            let decoded = self.row().block_scale(i / BLOCK) * f32::from(codes[i]);
            let weight = importance.map_or(1.0, |importance| f64::from(importance[i]));
            weight * (f64::from(value) - f64::from(decoded)).powi(2)
        });
        errors.sum()
    }
}

fn quantizer(method: BlockType, encoder: BlockEncoder) -> Quantizer<'static> {
    let clip = (f32::NEG_INFINITY, f32::INFINITY);
    Quantizer { method, recipe: Recipe { encoder, clip, importance: None } }
}

/// The same, where the error of a column counts as much as it is important.
fn weighed<'a>(quantizer: Quantizer<'_>, importance: &'a [f32]) -> Quantizer<'a> {
    let Recipe { encoder, clip, .. } = quantizer.recipe;
    let recipe = Recipe { encoder, clip, importance: Some(importance) };
    Quantizer { method: quantizer.method, recipe }
}

/// The same, of values that are clamped first.
fn clipped(quantizer: Quantizer<'_>, clip: (f32, f32)) -> Quantizer<'_> {
    Quantizer { recipe: Recipe { clip, ..quantizer.recipe }, ..quantizer }
}

/// Numbers from 0 to 1 that are the same in every run.
struct Random(u64);

impl Random {
    fn next(&mut self) -> f32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.0 >> 40) as f32 / (1 << 24) as f32
    }

    /// About normally distributed.
    fn normal(&mut self) -> f32 {
        (0..12).map(|_| self.next()).sum::<f32>() - 6.0
    }
}

/// BlockRows of many kinds, all of this length.
fn rows(cols: usize) -> Vec<(&'static str, Vec<f32>)> {
    let mut r = Random(cols as u64);
    let mut row = |value: &mut dyn FnMut(&mut Random, usize) -> f32| -> Vec<f32> {
        (0..cols).map(|i| value(&mut r, i)).collect()
    };
    vec![
        ("bell", row(&mut |r, _| 0.05 * r.normal())),
        ("even", row(&mut |r, _| r.next() - 0.5)),
        ("heavy tails", row(&mut |r, _| r.normal() / (r.next() + 0.01))),
        ("positive", row(&mut |r, _| r.next() + 1.0)),
        ("sparse", row(&mut |r, _| if r.next() < 0.05 { r.normal() } else { 0.0 })),
        ("blocks of all sizes", row(&mut |r, i| r.normal() * 0.3f32.powi((i / BLOCK % 8) as i32))),
        ("whole numbers", row(&mut |r, _| (r.normal() * 4.0).round())),
        ("three values", row(&mut |r, _| 0.7 * (r.normal() * 0.8).clamp(-1.0, 1.0).round())),
        ("constant", row(&mut |_, _| -0.1)),
        ("a constant that needs no rounding", row(&mut |_, _| 7.0 * 31.0 * 127.0)),
        ("zero", row(&mut |_, i| if i % 2 == 0 { 0.0 } else { -0.0 })),
        ("tiny", row(&mut |r, _| 1e-6 * r.normal())),
        ("tinier than f16", row(&mut |r, _| 2e-8 * r.normal())),
        ("tinier than f32", row(&mut |r, _| 1e-41 * r.normal())),
        ("huge", row(&mut |r, _| (60_000.0 * r.normal()).clamp(-65_000.0, 65_000.0))),
    ]
}

const LENGTHS: [usize; 14] = [1, 2, 7, 31, 32, 33, 63, 64, 255, 256, 257, 300, 384, 1000];

#[test]
fn every_machine_makes_the_same_bytes() {
    // From AVX2 on vectors of eight are the same.
    let mut levels = Level::available();
    levels.retain(|level| !level.has_sixteen_lanes());
    for cols in (0..70).chain(250..262).chain(LENGTHS) {
        let mut r = Random(7);
        let importance: Vec<f32> = (0..cols).map(|_| (r.next() - 0.2).max(0.0)).collect();
        for (kind, row) in rows(cols) {
            for method in BlockType::ALL {
                for encoder in [BlockEncoder::Best, BlockEncoder::Reference] {
                    let even = quantizer(method, encoder);
                    // The last bounds leave out what rows are filled up with.
                    let bounds = [(-0.04, 0.03), (0.01, 0.03)].map(|clip| clipped(even, clip));
                    let weighed = weighed(even, &importance);
                    for quantizer in [even, bounds[0], bounds[1], weighed] {
                        let plain = Encoded::at(Level::PLAIN, &quantizer, &row);
                        for &level in &levels {
                            let here = Encoded::at(level, &quantizer, &row);
                            assert_eq!(here, plain, "{level} {kind} {cols} {quantizer:?}");
                            let once = Encoded::in_one_step(level, &quantizer, &row);
                            assert_eq!(once, plain, "{level} {kind} {cols} {quantizer:?}");
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn the_best_is_never_worse_than_the_reference() {
    for cols in LENGTHS {
        for (kind, row) in rows(cols) {
            for method in BlockType::ALL {
                let best = Encoded::new(&quantizer(method, BlockEncoder::Best), &row);
                let reference = Encoded::new(&quantizer(method, BlockEncoder::Reference), &row);
                let (best, reference) = (best.error(&row, None), reference.error(&row, None));
                let slack = 1.0 + 1e-5;
                assert!(best <= reference * slack, "{kind} {cols} {method}: {best} {reference}");
            }
        }
    }
}

/// Measured once, with room for other choices that are as good.
#[test]
fn the_best_is_clearly_better_on_a_bell_curve() {
    let mut r = Random(1);
    let row: Vec<f32> = (0..64 * 1024).map(|_| r.normal()).collect();
    let energy: f64 = row.iter().map(|&v| f64::from(v).powi(2)).sum();
    let most = [0.0051, 0.094, 0.0216, 0.094, 0.202, 0.435];
    for (method, most) in BlockType::ALL.into_iter().zip(most) {
        let error = Encoded::new(&quantizer(method, BlockEncoder::Best), &row).error(&row, None);
        let relative = (error / energy).sqrt();
        assert!(relative < most, "{method}: {relative}");
    }
}

#[test]
fn codes_and_sub_scales_are_those_that_the_format_has() {
    for cols in LENGTHS {
        for (kind, row) in rows(cols) {
            for method in BlockType::ALL {
                for encoder in [BlockEncoder::Best, BlockEncoder::Reference] {
                    let encoded = Encoded::new(&quantizer(method, encoder), &row);
                    let codes = encoded.codes();
                    let limit = method.largest_code();
                    assert!(codes.iter().all(|&c| (-limit..=limit).contains(&c)), "{kind}");
                    assert!(codes[cols..].iter().all(|&c| c == 0), "{kind} {method}");
                    assert!(encoded.sub_scales.iter().all(|&s| s <= 63), "{kind} {method}");
                    if row.iter().all(|&v| v == 0.0) {
                        assert!(codes.iter().all(|&c| c == 0), "{kind} {method}");
                        assert!(encoded.scales.iter().all(|&s| s == 0), "{kind} {method}");
                        assert!(encoded.sub_scales.iter().all(|&s| s == 0), "{kind} {method}");
                    }
                }
            }
        }
    }
}

/// The reference encoder once more, value by value.
#[test]
fn the_reference_is_its_definition() {
    for cols in LENGTHS {
        for (kind, row) in rows(cols) {
            for method in BlockType::ALL {
                let encoded = Encoded::new(&quantizer(method, BlockEncoder::Reference), &row);
                let limit = f32::from(method.largest_code());
                let scale_of = |b: &[f32]| b.iter().fold(0.0, |m: f32, v| m.max(v.abs())) / limit;
                let scales: Vec<f32> = row.chunks(BLOCK).map(scale_of).collect();
                let codes = encoded.codes();
                for (i, &value) in row.iter().enumerate() {
                    let block = i / BLOCK;
                    let mut scale = scales[block];
                    if method.has_super_blocks() {
                        let from = block / BLOCKS_PER_SUPER * BLOCKS_PER_SUPER;
                        let among = &scales[from..scales.len().min(from + BLOCKS_PER_SUPER)];
                        let largest = among.iter().fold(0.0, |m: f32, &s| m.max(s));
                        let share = ((scale / largest) * 32.0).round().clamp(1.0, 63.0);
                        let share = if scale == 0.0 { 0.0 } else { share };
                        assert_eq!(f32::from(encoded.sub_scales[block]), share, "{kind} {method}");
                        scale = largest * (share / 32.0);
                    }
                    if (1.0 / scale).is_finite() {
                        let code = (value * (1.0 / scale)).round().clamp(-limit, limit);
                        assert_eq!(f32::from(codes[i]), code, "{kind} {method} {value}");
                    }
                }
            }
        }
    }
}

#[test]
fn halves_go_away_from_zero_in_the_reference() {
    for method in BlockType::ALL {
        let limit = method.largest_code();
        // The scale is 1.
        let mut row = vec![f32::from(limit)];
        let mut expected = vec![limit];
        for below in 0..limit {
            let half = f32::from(below) + 0.5;
            row.extend([half, half.next_down(), half.next_up(), -half, -half.next_down()]);
            expected.extend([below + 1, below, below + 1, -below - 1, -below]);
        }
        row.truncate(BLOCK);
        let codes = Encoded::new(&quantizer(method, BlockEncoder::Reference), &row).codes();
        assert_eq!(codes[..row.len()], expected[..row.len()], "{method}");
    }
}

#[test]
fn importance_lowers_the_error_that_it_weighs() {
    let mut r = Random(3);
    let row: Vec<f32> = (0..2048).map(|_| r.normal()).collect();
    let importance: Vec<f32> = (0..row.len()).map(|_| 1000.0 * r.next().powi(8)).collect();
    for method in BlockType::ALL {
        let even = quantizer(method, BlockEncoder::Best);
        let errors = [even, weighed(even, &importance)].map(|quantizer| {
            let encoded = Encoded::new(&quantizer, &row);
            (encoded.error(&row, Some(&importance)), encoded.error(&row, None))
        });
        assert!(errors[1].0 < 0.9 * errors[0].0, "{method}: {errors:?}");
        assert!(errors[1].1 > errors[0].1, "{method}: {errors:?}");
        // What counts is how the columns compare.
        for nothing_said in [0.0, 1e-38, 1e30] {
            let importance = vec![nothing_said; row.len()];
            let no_matter = weighed(even, &importance);
            assert_eq!(Encoded::new(&no_matter, &row), Encoded::new(&even, &row), "{method}");
        }
    }
}

#[test]
fn values_are_clamped_first() {
    let row: Vec<f32> = (0..100).map(|i| (i as f32 - 50.0) / 10.0).collect();
    let clamped: Vec<f32> = row.iter().map(|v| v.clamp(-1.0, 2.0)).collect();
    for method in BlockType::ALL {
        for encoder in [BlockEncoder::Best, BlockEncoder::Reference] {
            let quantizer = quantizer(method, encoder);
            let clipped = clipped(quantizer, (-1.0, 2.0));
            assert_eq!(Encoded::new(&clipped, &row), Encoded::new(&quantizer, &clamped));
        }
    }
}

#[test]
fn a_scale_beyond_f16_is_refused() {
    for method in BlockType::ALL {
        let limit = f32::from(method.largest_code());
        let (index, reach) = if method.has_super_blocks() { (1, 63.0 / 32.0) } else { (9, 1.0) };
        let mut row = vec![1.0; 300];
        let best = quantizer(method, BlockEncoder::Best);
        row[290] = -65_504.0 * limit * reach * 0.999;
        let largest = Encoded::new(&best, &row);
        assert!(largest.error(&row, None).sqrt() < 0.01 * f64::from(row[290].abs()), "{method}");
        for value in [-65_504.0 * limit * reach * 1.001, 1e38, f32::INFINITY] {
            row[290] = value;
            let mut e = Encoded::empty(method, row.len());
            let refused = best.choose_scales(&row, &mut e.scales, &mut e.sub_scales).unwrap_err();
            assert_eq!(refused.index, index, "{method} {refused}");
            assert!(refused.scale > 65_504.0, "{method} {refused}");
            let clipped = clipped(best, (-1e4, 1e4));
            assert!(clipped.choose_scales(&row, &mut e.scales, &mut e.sub_scales).is_ok());
        }
        // The reference tool stores infinity.
        let stored = Encoded::new(&quantizer(method, BlockEncoder::Reference), &row);
        assert_eq!(stored.scales[2 * index..][..2], 0x7C00u16.to_le_bytes());
    }
}

#[test]
fn nan_and_infinity_do_no_harm() {
    for method in BlockType::ALL {
        for encoder in [BlockEncoder::Best, BlockEncoder::Reference] {
            for value in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, f32::MAX] {
                let row = vec![value; 70];
                let mixed: Vec<f32> =
                    (0..70).map(|i| if i % 3 == 0 { value } else { 1.0 }).collect();
                for row in [row, mixed] {
                    let quantizer = weighed(quantizer(method, encoder), &row);
                    let mut e = Encoded::empty(method, row.len());
                    let _ = quantizer.choose_scales(&row, &mut e.scales, &mut e.sub_scales);
                    quantizer.make_codes(&row, &e.scales, &e.sub_scales, &mut e.codes);
                }
            }
        }
    }
}
