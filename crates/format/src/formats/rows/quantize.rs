//! One row of values to codes, and norms.

use weighbridge_codec::convert::Change;

/// The norms that the specification allows after dequantization.
pub(super) const NORMS: std::ops::RangeInclusive<f64> = 0.992..=1.008;
/// Within that, what `nearest-norm` aims for: a reader that sums in f32 agrees too.
const AIM: std::ops::RangeInclusive<f64> = 0.9921..=1.0079;

/// How a value times 127 becomes a whole number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rounding {
    /// To the nearest, ties to even.
    Nearest,
    /// Toward zero, as numpy's cast does.
    Truncate,
    /// To the nearest, but for as few components as it takes to keep the norm in its range.
    NearestNorm,
}

/// Square of the value of every code, by the code's byte. The values are f32, their squares and
/// sums f64: that is what the specification's own check computes.
static SQUARES: [f64; 256] = {
    let mut squares = [0.0; 256];
    let mut byte = 0u8;
    loop {
        let value = byte.cast_signed() as f32 / 127.0;
        squares[byte as usize] = value as f64 * value as f64;
        if byte == u8::MAX {
            break squares;
        }
        byte += 1;
    }
};

fn square(code: u8) -> f64 {
    SQUARES[usize::from(code)]
}

/// The norm of a row of codes after dequantization.
pub(super) fn norm_of_codes(codes: &[u8]) -> f64 {
    codes.iter().map(|&c| square(c)).sum::<f64>().sqrt()
}

pub(super) fn norm(values: &[f32]) -> f64 {
    values.iter().map(|&v| f64::from(v) * f64::from(v)).sum::<f64>().sqrt()
}

/// Divides a row by its norm. A row that has no direction stays as it is.
#[allow(clippy::cast_possible_truncation)]
pub(super) fn normalize(values: &mut [f32]) {
    let norm = norm(values);
    if norm > 0.0 && norm.is_finite() {
        values.iter_mut().for_each(|v| *v = (f64::from(*v) / norm) as f32);
    }
}

/// The codes of a row of finite values, as bytes.
pub(super) fn quantize(values: &[f32], rounding: Rounding, codes: &mut Vec<u8>) {
    codes.clear();
    match rounding {
        // In f32 throughout: np.clip(x * np.float32(127), -127, 127).astype(np.int8).
        Rounding::Truncate => codes.extend(values.iter().map(|v| to_code(v * 127.0))),
        Rounding::Nearest | Rounding::NearestNorm => {
            codes.extend(values.iter().map(|v| to_code(nearest(v * 127.0))));
        }
    }
    if rounding == Rounding::NearestNorm {
        reround(values, codes);
    }
}

/// Clips, and rounds to the nearest whole number, ties to even: where floats are as far apart as whole
/// numbers are, adding does that, with instructions that every processor has.
fn nearest(scaled: f32) -> f32 {
    const WHOLE: f32 = 1.5 * (1 << 23) as f32;
    scaled.clamp(-127.0, 127.0) + WHOLE - WHOLE
}

/// Clips, and cuts off what is behind the point.
#[allow(clippy::cast_possible_truncation)]
fn to_code(scaled: f32) -> u8 {
    (scaled.clamp(-127.0, 127.0) as i8).cast_unsigned()
}

/// Rounds components the other way, those closest to a tie first, until the norm is in its range.
///
/// For a unit vector that always succeeds: rounding everything toward zero gives a norm of at most 1,
/// everything away from zero one of at least 1, and one step moves the norm by less than the range
/// is wide.
fn reround(values: &[f32], codes: &mut [u8]) {
    let mut sum: f64 = codes.iter().map(|&c| square(c)).sum();
    if AIM.contains(&sum.sqrt()) {
        return;
    }
    let shrink = sum > 1.0;
    // Distance to the code, as far as it lies on the side that is of use.
    let mut candidates: Vec<(f32, usize)> = values
        .iter()
        .zip(codes.iter())
        .enumerate()
        .filter_map(|(i, (v, &code))| {
            let gone_up = f32::from(code.cast_signed().unsigned_abs()) - (v * 127.0).abs();
            let distance = if shrink { gone_up } else { -gone_up };
            (distance > 0.0).then_some((distance, i))
        })
        .collect();
    candidates.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    for (_, i) in candidates {
        if AIM.contains(&sum.sqrt()) {
            return;
        }
        let (Some(slot), Some(value)) = (codes.get_mut(i), values.get(i)) else { continue };
        // Away from zero is up for a positive value; a code of 0 has no sign of its own.
        let step = if (*value > 0.0) != shrink { 1 } else { -1 };
        let other = slot.cast_signed().saturating_add(step).clamp(-127, 127).cast_unsigned();
        sum += square(other) - square(*slot);
        *slot = other;
    }
}

/// What the codes change of the values.
pub(super) fn measure(values: &[f32], codes: &[u8]) -> Change {
    let mut change = Change::default();
    for (value, code) in values.iter().zip(codes) {
        let stored = f32::from(code.cast_signed()) / 127.0;
        if stored.to_bits() != value.to_bits() {
            change.note(f64::from(*value), f64::from(stored));
        }
    }
    change
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    fn codes(values: &[f32], rounding: Rounding) -> Vec<i8> {
        let mut out = Vec::new();
        quantize(values, rounding, &mut out);
        out.into_iter().map(u8::cast_signed).collect()
    }

    /// Unit vectors of a simple generator; `power` makes a few components large.
    pub(in super::super) fn unit_rows(count: usize, dim: usize, power: i32) -> Vec<Vec<f32>> {
        let mut state = 1u64;
        let mut next = || {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let uniform = (state >> 40) as f32 / (1u64 << 24) as f32 * 2.0 - 1.0;
            uniform.abs().powi(power) * uniform.signum()
        };
        let mut rows: Vec<Vec<f32>> =
            (0..count).map(|_| (0..dim).map(|_| next()).collect()).collect();
        rows.iter_mut().for_each(|r| normalize(r));
        rows
    }

    #[test]
    fn rounding_modes() {
        let at = |x: f32| x / 127.0;
        let values = [at(2.5), at(3.5), at(-2.5), at(0.9), at(-0.9), 2.0, -2.0, 0.0, -0.0];
        assert_eq!(codes(&values, Rounding::Nearest), [2, 4, -2, 1, -1, 127, -127, 0, 0]);
        assert_eq!(codes(&values, Rounding::Truncate), [2, 3, -2, 0, 0, 127, -127, 0, 0]);
        // What the definition of rounding says, at and beside every tie and whole number.
        for place in (-256..=256).map(|half| half as f32 / 2.0) {
            for scaled in [place, place.next_up(), place.next_down()] {
                let expected = scaled.round_ties_even().clamp(-127.0, 127.0);
                assert_eq!(nearest(scaled), expected, "{scaled}");
            }
        }
    }

    #[test]
    fn decoded_codes_round_to_themselves() {
        for code in -127i8..=127 {
            assert_eq!(codes(&[f32::from(code) / 127.0], Rounding::Nearest), [code]);
        }
    }

    #[test]
    fn rerounded_rows_are_in_range_and_next_to_their_values() {
        let (mut out, mut rerounded) = (Vec::new(), 0);
        for (dim, power) in [(1, 1), (2, 1), (3, 2), (8, 1), (64, 1), (512, 1), (768, 3), (4096, 1)]
        {
            for mut row in unit_rows(300, dim, power) {
                // The most that a source may be off.
                for scale in [1.0, 0.9991, 1.0009 / 0.9991] {
                    row.iter_mut().for_each(|v| *v *= scale);
                    quantize(&row, Rounding::Nearest, &mut out);
                    let nearest = out.clone();
                    quantize(&row, Rounding::NearestNorm, &mut out);
                    let norm = norm_of_codes(&out);
                    assert!(NORMS.contains(&norm), "{dim} {norm}");
                    assert!(!out.contains(&0x80));
                    rerounded += usize::from(out != nearest);
                    assert_eq!(out != nearest, !AIM.contains(&norm_of_codes(&nearest)));
                    for (v, c) in row.iter().zip(&out) {
                        assert!((v * 127.0 - f32::from(c.cast_signed())).abs() <= 1.0);
                    }
                }
            }
        }
        assert!(rerounded > 100);
    }

    #[test]
    fn changes_are_measured() {
        let (values, mut out) = ([1.0, 0.0, 0.5], Vec::new());
        quantize(&values, Rounding::Nearest, &mut out);
        let change = measure(&values, &out);
        assert_eq!(change.changed, 1);
        assert!((change.largest - 0.5 / 127.0).abs() < 1e-7);
    }
}
