//! Every version of a kernel against its definition.

use super::matrix::{Activation, Left, Panels, Start};
use super::*;
#[allow(unused_imports, reason = "without threads it has nothing that is used here")]
use weighbridge_codec::parallel::*;

/// Values that look random, from -1 to 1.
fn noise(count: usize, seed: u32) -> Vec<f32> {
    let mut state = seed.wrapping_mul(2_654_435_761).max(1);
    let next = || {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        (state >> 8) as f32 / 8_388_608.0 - 1.0
    };
    std::iter::repeat_with(next).take(count).collect()
}

/// Sizes around those of tiles and panels.
const SIZES: [(usize, usize, usize); 9] = [
    (1, 1, 1),
    (2, 3, 17),
    (5, 32, 16),
    (6, 33, 15),
    (7, 7, 48),
    (13, 384, 40),
    (12, 64, 32),
    (25, 385, 33),
    (11, 800, 16),
];

#[test]
fn products_are_those_of_the_definition() {
    for (rows, depth, columns) in SIZES {
        let (a, b) = (noise(rows * depth, 1), noise(columns * depth, 2));
        let bias = noise(columns.next_multiple_of(PANEL), 3);
        let mut packed = matrix::Packed::new(columns, depth);
        for (first, panel) in packed.panels_mut().collect::<Vec<_>>() {
            let end = columns.min(first + PANEL);
            matrix::pack(&b[first * depth..end * depth], depth, panel);
        }
        for accumulate in [false, true] {
            let before = noise(rows * columns, 4);
            let mut c = before.clone();
            let start = if accumulate { Start::BiasAndResidual(&bias) } else { Start::Bias(&bias) };
            let panels = packed.panels();
            matrix::multiply(
                Left { data: &a, stride: depth, rows },
                panels,
                start,
                Activation::None,
                &mut c,
                columns,
            );
            for r in 0..rows {
                for j in 0..columns {
                    let mut sum = f64::from(bias[j]);
                    sum += if accumulate { f64::from(before[r * columns + j]) } else { 0.0 };
                    for k in 0..depth {
                        sum += f64::from(a[r * depth + k]) * f64::from(b[j * depth + k]);
                    }
                    let got = f64::from(c[r * columns + j]);
                    assert!((got - sum).abs() < 6e-5, "{rows} {depth} {columns}: {got} {sum}");
                }
            }
        }
    }
}

#[test]
fn products_do_not_depend_on_their_neighbours() {
    let (rows, depth, columns) = (29, 391, 50);
    let (a, b) = (noise(rows * depth, 5), noise(columns * depth, 6));
    let mut packed = matrix::Packed::new(columns, depth);
    for (first, panel) in packed.panels_mut().collect::<Vec<_>>() {
        let end = columns.min(first + PANEL);
        matrix::pack(&b[first * depth..end * depth], depth, panel);
    }
    let mut together = vec![0.0; rows * columns];
    let plain = Activation::None;
    let panels = packed.panels();
    matrix::multiply(
        Left { data: &a, stride: depth, rows },
        panels,
        Start::Zero,
        plain,
        &mut together,
        columns,
    );
    for r in 0..rows {
        let mut alone = vec![0.0; columns];
        let row = &a[r * depth..][..depth];
        matrix::multiply(
            Left { data: row, stride: depth, rows: 1 },
            packed.panels(),
            Start::Zero,
            plain,
            &mut alone,
            columns,
        );
        assert_eq!(alone, together[r * columns..][..columns]);
    }
}

#[test]
fn rows_may_lie_apart() {
    // As in attention: values of one head among those of others.
    let (rows, depth, head, stride) = (9, 21, 32, 96);
    let (a, b) = (noise(rows * 40, 7), noise(depth * stride + PANEL, 8));
    let values = Panels { data: &b, depth, columns: head, row_stride: stride, panel_stride: PANEL };
    let mut c = vec![0.0; rows * 50];
    matrix::multiply(
        Left { data: &a, stride: 40, rows },
        values,
        Start::Zero,
        Activation::None,
        &mut c,
        50,
    );
    for r in 0..rows {
        for j in 0..50 {
            let sum: f32 = (0..depth).map(|k| a[r * 40 + k] * b[k * stride + j]).sum();
            let expected = if j < head { sum } else { 0.0 };
            assert!((c[r * 50 + j] - expected).abs() < 1e-5);
        }
    }
}

#[test]
fn pairs_are_those_of_their_definition() {
    for kind in [pairs::Kind::Integers, pairs::Kind::Bf16] {
        for (rows, depth, columns) in SIZES {
            let (a, b) = (noise(rows * depth, 9), noise(columns * depth, 10));
            let bias = noise(columns.next_multiple_of(PANEL), 11);
            let mut packed = pairs::Packed::new(columns, depth, kind);
            for (first, mut panel) in packed.panels_mut().collect::<Vec<_>>() {
                let end = columns.min(first + PANEL);
                panel.pack(&b[first * depth..end * depth], depth, &mut Vec::new());
            }
            let mut rounded = pairs::PairRows::default();
            rounded.round_rows(&a, depth, kind);
            let panels = columns.div_ceil(PANEL);
            let mut c = vec![0.0; rows * columns];
            let start = Start::Bias(&bias);
            let plain = Activation::None;
            pairs::multiply(&rounded, &packed, (0..rows, 0..panels), start, plain, &mut c, columns);
            let relative = if kind == pairs::Kind::Bf16 { 0.01 } else { 0.002 };
            for r in 0..rows {
                for j in 0..columns {
                    let products = (0..depth).map(|k| a[r * depth + k] * b[j * depth + k]);
                    let sum = bias[j] + products.clone().sum::<f32>();
                    let scale = 0.1 + products.map(|p| p * p).sum::<f32>().sqrt();
                    let error = (c[r * columns + j] - sum).abs() / scale;
                    assert!(error < relative, "{kind:?} {rows} {depth} {columns}: {error}");
                }
            }
        }
    }
}

#[test]
fn bytes_are_those_of_their_definition() {
    for (rows, depth, columns) in SIZES {
        let (a, b) = (noise(rows * depth, 18), noise(columns * depth, 19));
        let bias = noise(columns.next_multiple_of(PANEL), 20);
        let mut packed = bytes::Packed::new(columns, depth);
        for (first, mut panel) in packed.panels_mut().collect::<Vec<_>>() {
            let end = columns.min(first + PANEL);
            panel.pack(&b[first * depth..end * depth], depth);
        }
        let mut rounded = bytes::ByteRows::default();
        rounded.round_rows(&a, depth);
        let part = (0..rows, 0..columns.div_ceil(PANEL));
        let before = noise(rows * columns, 21);
        let mut c = before.clone();
        let start = Start::BiasAndResidual(&bias);
        bytes::multiply(&rounded, &packed, part, start, Activation::None, &mut c, columns);
        for r in 0..rows {
            for j in 0..columns {
                let products = (0..depth).map(|k| a[r * depth + k] * b[j * depth + k]);
                let sum = before[r * columns + j] + bias[j] + products.clone().sum::<f32>();
                let scale = 0.1 + products.map(|p| p * p).sum::<f32>().sqrt();
                let error = (c[r * columns + j] - sum).abs() / scale;
                assert!(error < 0.05, "{rows} {depth} {columns}: {error}");
            }
        }
    }
}

#[test]
fn bytes_that_were_rounded_before_lose_nothing() {
    // A row that holds one thing at a time reads the weights out.
    let codes: Vec<f32> = (0..32).map(|i| (i * 37 % 241) as f32 - 120.0).collect();
    let weights: Vec<f32> = codes.iter().map(|code| code * 0.0123).collect();
    let mut packed = bytes::Packed::new(1, 32);
    for (_, mut panel) in packed.panels_mut().collect::<Vec<_>>() {
        panel.pack(&weights, 32);
    }
    for (i, weight) in weights.iter().enumerate() {
        let mut row = vec![0.0; 32];
        row[i] = 1.0;
        let mut rounded = bytes::ByteRows::default();
        rounded.round_rows(&row, 32);
        let mut c = [0.0];
        let none = Activation::None;
        bytes::multiply(&rounded, &packed, (0..1, 0..1), Start::Zero, none, &mut c, 1);
        assert!((c[0] - weight).abs() < 1e-6, "{i}: {} {weight}", c[0]);
    }
}

#[test]
fn pairs_have_the_bits_of_their_definition() {
    let (rows, depth) = (11, 77);
    let (a, b) = (noise(rows * depth, 12), noise(PANEL * depth, 13));
    for kind in [pairs::Kind::Integers, pairs::Kind::Bf16] {
        let mut packed = pairs::Packed::new(PANEL, depth, kind);
        for (_, mut panel) in packed.panels_mut().collect::<Vec<_>>() {
            panel.pack(&b, depth, &mut Vec::new());
        }
        let mut rounded = pairs::PairRows::default();
        rounded.round_rows(&a, depth, kind);
        let (mut c, mut plain) = (vec![0.0; rows * PANEL], vec![0.0; rows * PANEL]);
        let none = Activation::None;
        pairs::multiply(&rounded, &packed, (0..rows, 0..1), Start::Zero, none, &mut c, PANEL);
        rounded.plain(&packed, &mut plain);
        for (c, plain) in c.iter().zip(&plain) {
            // Integers add up exactly; bf16 may be fused or not.
            let allowed = if kind == pairs::Kind::Integers { 1e-6 } else { 1e-4 };
            assert!((c - plain).abs() <= allowed, "{kind:?} {c} {plain}");
        }
    }
}

/// Activations and softmax against f64.
#[test]
fn functions_are_right() {
    let x: Vec<f32> = (-96..96).map(|i| i as f32 / 16.0).collect();
    let mut y = x.clone();
    for row in y.chunks_mut(PANEL) {
        lanes::gelu(row);
    }
    for (x, y) in x.iter().zip(&y) {
        let expected = gelu(f64::from(*x));
        assert!((f64::from(*y) - expected).abs() < 1.2e-6, "{x}: {y} {expected}");
    }
    let mut y = x.clone();
    for row in y.chunks_mut(PANEL) {
        lanes::gelu_tanh(row);
    }
    for (x, y) in x.iter().map(|x| f64::from(*x)).zip(&y) {
        let u = (2.0 / std::f64::consts::PI).sqrt() * (x + 0.044_715 * x.powi(3));
        let expected = 0.5 * x * (1.0 + u.tanh());
        assert!((f64::from(*y) - expected).abs() < 2e-6, "{x}: {y} {expected}");
    }
    let mut scores = noise(48, 14);
    scores[45..].fill(f32::NEG_INFINITY);
    let before = scores.clone();
    let sum = lanes::softmax(&mut scores, 3.0);
    let max = before.iter().fold(f32::MIN, |a, &b| a.max(b));
    let mut total = 0.0;
    for (score, x) in scores.iter().zip(&before[..45]) {
        let expected = (3.0 * f64::from(x - max)).exp();
        assert!((f64::from(*score) - expected).abs() < 1e-6);
        total += expected;
    }
    assert!((f64::from(sum) - total).abs() < 1e-4);
}

/// By the series of erf, in f64.
fn gelu(x: f64) -> f64 {
    let z = (x / std::f64::consts::SQRT_2).clamp(-4.5, 4.5);
    let (mut term, mut sum) = (z, z);
    for n in 1..200 {
        term *= -z * z / f64::from(n);
        sum += term / f64::from(2 * n + 1);
    }
    0.5 * x * (1.0 + sum * 2.0 / std::f64::consts::PI.sqrt())
}

#[test]
fn normalization_and_rounding() {
    for width in [1, 7, 8, 31, 384] {
        let (x, gains, shifts) = (noise(width, 15), noise(width, 16), noise(width, 17));
        let mut y = x.clone();
        lanes::layer_norm(&mut y, &gains, &shifts, 1e-5);
        let mean = x.iter().map(|v| f64::from(*v)).sum::<f64>() / width as f64;
        let variance = x.iter().map(|v| (f64::from(*v) - mean).powi(2)).sum::<f64>() / width as f64;
        for i in 0..width {
            let unit = (f64::from(x[i]) - mean) / (variance + 1e-5).sqrt();
            let expected = unit * f64::from(gains[i]) + f64::from(shifts[i]);
            assert!((f64::from(y[i]) - expected).abs() < 1e-4, "{width}");
        }
        let (largest, sum) = lanes::abs_max_and_sum(&x);
        assert_eq!(largest, x.iter().fold(0.0, |m: f32, v| m.max(v.abs())));
        assert!((sum - x.iter().map(|v| v.abs()).sum::<f32>()).abs() < 1e-3);
        let mut codes = vec![0i16; width];
        lanes::round_i16(&x, 1000.0, &mut codes);
        for (code, x) in codes.iter().zip(&x) {
            assert_eq!(*code, (x * 1000.0).round_ties_even() as i16);
        }
    }
}
