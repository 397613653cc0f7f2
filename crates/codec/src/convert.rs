//! Whole slices from one element type to another.

use crate::DType;
use crate::element::{Scalar, read, write};
use crate::simd::{Eight, Level, dispatch};
use half::{bf16, f16};

/// Converts `count` elements, rounding to nearest even where the target is narrower.
/// `out` is replaced; it is as long as the target type needs.
///
/// # Panics
///
/// May panic when `bytes` holds fewer than `count` elements; where it does not, `out` holds any
/// values in their place.
pub fn convert(from: DType, to: DType, bytes: &[u8], count: usize, out: &mut Vec<u8>) {
    out.clear();
    let size = to.byte_len(count as u64).and_then(|n| usize::try_from(n).ok());
    out.resize(size.unwrap_or(0), 0);
    // The pairs that whole models are converted with go without the detour over `Scalar`.
    match (from, to) {
        (a, b) if a == b => {
            let size = out.len();
            out.copy_from_slice(&bytes[..size]);
        }
        (_, DType::F32) => {
            let mut values = [0f32; 256];
            for start in (0..count).step_by(values.len()) {
                let n = values.len().min(count - start);
                to_f32(from, bytes, start, &mut values[..n]);
                for (slot, v) in out[start * 4..].chunks_exact_mut(4).zip(&values[..n]) {
                    slot.copy_from_slice(&v.to_le_bytes());
                }
            }
        }
        (DType::F32, DType::F16) => narrow_f32(bytes, out, |v| f16::from_f32(v).to_bits()),
        (DType::F32, DType::BF16) => narrow_f32(bytes, out, |v| bf16::from_f32(v).to_bits()),
        _ => (0..count).for_each(|i| write(to, out, i, read(from, bytes, i))),
    }
}

/// Stores f32 as a type of 16 bits.
fn narrow_f32(bytes: &[u8], out: &mut [u8], narrow: impl Fn(f32) -> u16) {
    for (slot, raw) in out.chunks_exact_mut(2).zip(bytes.chunks_exact(4)) {
        let value = f32::from_le_bytes([raw[0], raw[1], raw[2], raw[3]]);
        slot.copy_from_slice(&narrow(value).to_le_bytes());
    }
}

/// Elements from `start` on as f32, as many as `out` takes; 64-bit types are rounded.
///
/// # Panics
///
/// May panic when `bytes` ends before the last of them; where it does not, `out` holds any values
/// in their place.
#[allow(clippy::cast_possible_truncation)]
pub fn to_f32(from: DType, bytes: &[u8], start: usize, out: &mut [f32]) {
    match from {
        DType::F32 => {
            // In short pieces: long ones become calls that copy whole pages, which is slow from
            // places that are not aligned.
            for (part, raw) in out.chunks_mut(256).zip(bytes[start * 4..].chunks(1024)) {
                for (v, raw) in part.iter_mut().zip(raw.as_chunks::<4>().0) {
                    *v = f32::from_le_bytes(*raw);
                }
            }
        }
        DType::F16 => widen_f16(Level::best(), &bytes[start * 2..], out),
        DType::BF16 => widen_bf16(Level::best(), &bytes[start * 2..], out),
        DType::I8 => {
            for (v, &raw) in out.iter_mut().zip(&bytes[start..]) {
                *v = f32::from(raw.cast_signed());
            }
        }
        _ => {
            for (i, v) in out.iter_mut().enumerate() {
                *v = read(from, bytes, start + i).to_f64() as f32;
            }
        }
    }
}

dispatch! {
    /// As many f16 as `out` takes.
    fn widen_f16(raw: &[u8], out: &mut [f32]) = eight widen_f16_with;
    /// As many bf16 as `out` takes.
    fn widen_bf16(raw: &[u8], out: &mut [f32]) = eight widen_bf16_with;
}

#[inline(always)]
fn widen_f16_with<V: Eight>(token: V::Token, raw: &[u8], out: &mut [f32]) {
    widen::<V>(raw, out, |halves| V::from_f16(token, halves));
}

#[inline(always)]
fn widen_bf16_with<V: Eight>(token: V::Token, raw: &[u8], out: &mut [f32]) {
    widen::<V>(raw, out, |halves| V::from_bf16(token, halves));
}

#[inline(always)]
fn widen<V: Eight>(raw: &[u8], out: &mut [f32], widened: impl Fn([u8; 16]) -> V) {
    let (eights, rest) = out.as_chunks_mut::<8>();
    for (eight, raw) in eights.iter_mut().zip(raw.as_chunks().0) {
        widened(*raw).store(eight);
    }
    if let Some(left) = raw.get(16 * eights.len()..) {
        let n = rest.len().min(left.len() / 2);
        let mut halves = [0; 16];
        halves[..2 * n].copy_from_slice(&left[..2 * n]);
        rest[..n].copy_from_slice(&widened(halves).to_array()[..n]);
    }
}

/// How much values change when they are stored as another type.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Change {
    /// How many values are not the same afterwards.
    pub changed: u64,
    /// The largest absolute difference among them; infinite when a number became NaN or infinity.
    pub largest: f64,
}

impl Change {
    /// Includes the changes of other values, such as those of another part of a tensor.
    pub fn add(&mut self, other: Change) {
        self.changed += other.changed;
        self.largest = self.largest.max(other.largest);
    }

    /// Includes one value that changed.
    pub fn note(&mut self, before: f64, after: f64) {
        self.changed += 1;
        self.include((before - after).abs());
    }

    fn include(&mut self, difference: f64) {
        self.largest =
            self.largest.max(if difference.is_nan() { f64::INFINITY } else { difference });
    }
}

/// How far two numbers are from each other. Whole numbers are subtracted as such: as f64, large ones
/// that differ would seem to be the same.
#[allow(clippy::cast_precision_loss)]
fn difference(before: Scalar, after: Scalar) -> f64 {
    match (before, after) {
        (Scalar::Complex(a, b), Scalar::Complex(c, d)) => f64::from(a - c).hypot(f64::from(b - d)),
        (Scalar::Complex(re, im), real) => (f64::from(re) - real.to_f64()).hypot(im.into()),
        (Scalar::Float(a), Scalar::Float(b)) => (a - b).abs(),
        _ => match (before.to_i128(), after.to_i128()) {
            (Some(a), Some(b)) => a.abs_diff(b) as f64,
            _ => (before.to_f64() - after.to_f64()).abs(),
        },
    }
}

/// Measures what storing `count` elements as `to` would change, without storing them.
///
/// # Panics
///
/// May panic when `bytes` holds fewer than `count` elements; where it does not, those that are
/// missing are not measured.
pub fn measure(from: DType, to: DType, bytes: &[u8], count: usize) -> Change {
    let mut change = Change::default();
    if from == to || from.wider().contains(&to) {
        return change;
    }
    // The narrowing that whole models are measured for.
    if from == DType::F32 && matches!(to, DType::F16 | DType::BF16) {
        for raw in bytes.chunks_exact(4).take(count) {
            let value = f32::from_le_bytes([raw[0], raw[1], raw[2], raw[3]]);
            let stored = if to == DType::F16 {
                f16::from_f32(value).to_f32()
            } else {
                bf16::from_f32(value).to_f32()
            };
            if stored.to_bits() != value.to_bits() && !(stored.is_nan() && value.is_nan()) {
                change.note(f64::from(value), f64::from(stored));
            }
        }
        return change;
    }
    let bits = usize::try_from(to.bits()).unwrap_or(64);
    for i in 0..count {
        let value = read(from, bytes, i);
        let mut slot = [0; 8];
        write(to, &mut slot[..bits.div_ceil(8)], 0, value);
        let stored = read(to, &slot, 0);
        if !value.same(stored) {
            change.changed += 1;
            change.include(difference(value, stored));
        }
    }
    change
}

#[cfg(test)]
mod tests {
    use super::*;

    fn f32s(values: &[f32]) -> Vec<u8> {
        values.iter().flat_map(|v| v.to_le_bytes()).collect()
    }

    /// All codes of both types, from any place and of any length.
    #[test]
    fn halves_are_widened_alike_at_every_level() {
        let raw: Vec<u8> = (0..=u16::MAX).flat_map(u16::to_le_bytes).collect();
        let same = |a: f32, b: f32| a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan();
        for level in Level::available() {
            for (dtype, widened) in
                [(DType::F16, widen_f16 as fn(Level, &[u8], &mut [f32])), (DType::BF16, widen_bf16)]
            {
                let single = |i: usize| read(dtype, &raw, i).to_f64() as f32;
                let mut out = vec![0.0; raw.len() / 2];
                widened(level, &raw, &mut out);
                assert!(
                    out.iter().enumerate().all(|(i, v)| same(*v, single(i))),
                    "{level} {dtype}"
                );
                for (start, n) in (0..20).flat_map(|n| [(0, n), (15_361, n), (31_000, n)]) {
                    let mut out = vec![0.5; n + 1];
                    widened(level, &raw[2 * start..], &mut out[..n]);
                    let expected = (start..start + n).map(single);
                    assert!(out.iter().zip(expected).all(|(a, b)| same(*a, b)), "{level} {dtype}");
                    assert_eq!(out[n], 0.5);
                }
            }
        }
    }

    #[test]
    fn fast_paths_agree_with_single_values() {
        let values: Vec<f32> = (0..700).map(|i| (i as f32 - 350.0) * 0.37e-2).collect();
        let source = f32s(&values);
        let mut out = Vec::new();
        for to in [DType::F16, DType::BF16, DType::F64, DType::I8] {
            convert(DType::F32, to, &source, values.len(), &mut out);
            let mut expected = vec![0; out.len()];
            for i in 0..values.len() {
                write(to, &mut expected, i, read(DType::F32, &source, i));
            }
            assert_eq!(out, expected, "{to}");
            let mut back = Vec::new();
            convert(to, DType::F32, &out, values.len(), &mut back);
            for i in 0..values.len() {
                assert_eq!(
                    read(DType::F32, &back, i).to_f64(),
                    read(to, &out, i).to_f64() as f32 as f64
                );
            }
        }
    }

    /// All 65,536 codes of both half types, and the middle between every two neighbours.
    #[test]
    fn half_types_round_to_nearest_even() {
        for (dtype, exponent_mask) in [(DType::F16, 0x7C00u16), (DType::BF16, 0x7F80)] {
            let value = |code: u16| read(dtype, &code.to_le_bytes(), 0).to_f64();
            for code in 0..exponent_mask - 1 {
                let middle = f64::midpoint(value(code), value(code + 1)) as f32;
                let even = code + code % 2;
                let mut out = Vec::new();
                for (v, expected) in [
                    (value(code) as f32, code),
                    (middle, even),
                    (middle.next_down(), code),
                    (middle.next_up(), code + 1),
                ] {
                    convert(DType::F32, dtype, &v.to_le_bytes(), 1, &mut out);
                    assert_eq!(out, expected.to_le_bytes(), "{dtype} {v:e}");
                    convert(DType::F32, dtype, &(-v).to_le_bytes(), 1, &mut out);
                    assert_eq!(out, (expected | 0x8000).to_le_bytes(), "{dtype} -{v:e}");
                }
            }
        }
    }

    #[test]
    fn changes_are_measured() {
        let source = f32s(&[1.0, 0.1, f32::NAN]);
        let change = measure(DType::F32, DType::F16, &source, 3);
        assert_eq!(change.changed, 1);
        assert!(change.largest > 0.0 && change.largest < 1e-4);
        assert_eq!(measure(DType::F32, DType::F64, &source, 3), Change::default());
        let big = 70_000i64.to_le_bytes();
        assert_eq!(measure(DType::I64, DType::I32, &big, 1).changed, 0);
        assert_eq!(measure(DType::I64, DType::I16, &big, 1).largest, 70_000.0 - 32_767.0);
        // Numbers that are the same as f64, and are not.
        for (n, far) in [((1i64 << 60) + 1, 1.0), ((1 << 24) + 1, 1.0), (i64::MAX, 1.0)] {
            let change = measure(DType::I64, DType::F32, &n.to_le_bytes(), 1);
            assert_eq!(change, Change { changed: 1, largest: far }, "{n}");
        }
        let change = measure(DType::U64, DType::F32, &u64::MAX.to_le_bytes(), 1);
        assert_eq!(change, Change { changed: 1, largest: 1.0 });
        let change = measure(DType::I64, DType::F64, &((1i64 << 53) + 1).to_le_bytes(), 1);
        assert_eq!(change, Change { changed: 1, largest: 1.0 });
        let third = (1.0f64 / 3.0).to_le_bytes();
        for (to, least, most) in [(DType::F32, 9e-9, 1e-8), (DType::F16, 8e-5, 9e-5)] {
            let change = measure(DType::F64, to, &third, 1);
            assert!((least..most).contains(&change.largest), "{to}: {change:?}");
        }
    }
}
