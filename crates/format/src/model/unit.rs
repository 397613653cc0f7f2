//! Rows of unit length, and the lengths that they had.

use super::Tensor;
use super::rows::{Computed, Rule, norm};
use crate::Error;
use crate::wire::to_len;
use weighbridge_codec::convert::Change;
use weighbridge_codec::parallel::*;
use weighbridge_codec::simd::{Eight, Level, dispatch};

impl Tensor {
    /// The matrix with its first rows of unit length, and the lengths that they had. Zeros stay, and
    /// so do rows whose length f32 can't hold, such as those with an infinity: they get length 1.
    ///
    /// # Errors
    /// If the rows can't be read.
    pub fn unit_rows(&self, n: u64) -> Result<UnitRows, Error> {
        let dim = self.shape.last().copied().unwrap_or(0);
        // Rows that are looked at together.
        let together = ((1u64 << 14) / dim.max(1)).max(1);
        let look = |(values, raw): &mut (Vec<f32>, Vec<u8>), i: u64| {
            let first = i * together;
            values.resize(to_len(together.min(n - first) * dim), 0.0);
            self.rows_f32(first, values, raw)?;
            let shape = [to_len(together.min(n - first)), to_len(dim)];
            Ok(look_at_rows(Level::best(), values, shape))
        };
        let blocks = (0..n.div_ceil(together)).into_par_iter().map_init(Default::default, look);
        let blocks = blocks.collect::<Result<Vec<(Vec<f64>, Change)>, Error>>()?;
        let (mut lengths, mut change) = (Vec::with_capacity(to_len(n)), Change::default());
        for (some, part) in blocks {
            lengths.extend(some);
            change.add(part);
        }
        #[allow(clippy::cast_possible_truncation)]
        let norms = lengths.iter().map(|l| *l as f32).collect();
        let matrix = self.computed(Computed { from: self.clone(), rule: Rule::Divide(lengths) });
        Ok(UnitRows { matrix, norms, change })
    }
}

/// A matrix whose rows were brought to unit length.
#[derive(Clone, Debug)]
pub struct UnitRows {
    /// The matrix.
    pub matrix: Tensor,
    /// The lengths that its rows had.
    pub norms: Vec<f32>,
    /// How the values of these rows change, when they get their lengths back.
    pub change: Change,
}

dispatch! {
    /// The lengths of rows, as they are divided by, and what changes when they get these back.
    fn look_at_rows(values: &[f32], shape: [usize; 2]) -> (Vec<f64>, Change) = eight look_at_rows_with;
    /// Brings a row of this length to unit length.
    pub(super) fn divide(row: &mut [f32], length: f64) = eight divide_with;
}

#[inline(always)]
fn divide_with<V: Eight>(_: V::Token, row: &mut [f32], length: f64) {
    let divisor = divisor(length);
    row.iter_mut().for_each(|value| *value = unit(*value, divisor));
}

/// Compilers make vectors of this themselves, once they may use the processor's instructions.
#[inline(always)]
#[allow(clippy::cast_possible_truncation)]
fn look_at_rows_with<V: Eight>(
    _: V::Token,
    values: &[f32],
    [rows, dim]: [usize; 2],
) -> (Vec<f64>, Change) {
    let storable = |length: f64| length == 0.0 || (length as f32).is_normal();
    let mut lengths = Vec::with_capacity(rows);
    // A sum waits for the one before: those of four rows do so together.
    let mut fours = values.chunks_exact(dim.saturating_mul(4).max(1));
    for four in &mut fours {
        let (ab, cd) = four.split_at(2 * dim);
        let ((a, b), (c, d)) = (ab.split_at(dim), cd.split_at(dim));
        let mut sums = [0f64; 4];
        for (((a, b), c), d) in a.iter().zip(b).zip(c).zip(d) {
            let each = [a, b, c, d].map(|v| f64::from(*v).powi(2));
            sums.iter_mut().zip(each).for_each(|(sum, square)| *sum += square);
        }
        lengths.extend(sums.map(f64::sqrt));
    }
    lengths.extend(fours.remainder().chunks_exact(dim.max(1)).map(norm));
    lengths.resize(rows, 0.0);
    let mut change = Change::default();
    for (length, row) in lengths.iter_mut().zip(values.chunks_exact(dim.max(1))) {
        *length = if storable(*length) { *length } else { 1.0 };
        change.add(change_of(row, *length));
    }
    (lengths, change)
}

/// What changes when a row is divided by its length and multiplied with it, as readers do.
#[inline(always)]
#[allow(clippy::cast_possible_truncation)]
fn change_of(row: &[f32], length: f64) -> Change {
    const LANES: usize = 4;
    let (norm, divisor) = (length as f32, divisor(length));
    // Without a branch, because about every third value changes.
    let mut changed = [0u32; LANES];
    let mut largest = [0f64; LANES];
    let mut look = |lane: usize, value: f32| {
        let back = unit(value, divisor) * norm;
        let both_nan = value.is_nan() & back.is_nan();
        let differs = (value.to_bits() != back.to_bits()) & !both_nan;
        let off = (f64::from(value) - f64::from(back)).abs();
        let off = if off.is_nan() { f64::INFINITY } else { off };
        let off = if differs { off } else { 0.0 };
        changed[lane] += u32::from(differs);
        largest[lane] = if off > largest[lane] { off } else { largest[lane] };
    };
    let (fours, rest) = row.as_chunks::<LANES>();
    for four in fours {
        (0..LANES).for_each(|lane| look(lane, four[lane]));
    }
    rest.iter().for_each(|value| look(0, *value));
    let changed = changed.iter().map(|n| u64::from(*n)).sum();
    Change { changed, largest: largest.into_iter().fold(0.0, f64::max) }
}

/// What the values of a row of this length are divided by.
#[inline(always)]
fn divisor(length: f64) -> f64 {
    if length > 0.0 { length } else { 1.0 }
}

/// What becomes of a value of such a row.
#[inline(always)]
#[allow(clippy::cast_possible_truncation)]
fn unit(value: f32, divisor: f64) -> f32 {
    (f64::from(value) / divisor) as f32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Encoding;
    use crate::source::View;
    use weighbridge_codec::DType;

    fn matrix() -> Tensor {
        let values = [3f32, 4.0, 0.0, 0.0, 1.0, 0.0, -6.0, 8.0];
        let bytes = values.iter().flat_map(|v| v.to_le_bytes()).collect();
        Tensor::unchecked("m", Encoding::Plain(DType::F32), vec![4, 2], View::owned(bytes))
    }

    #[test]
    fn lengths_that_no_number_holds_are_left() {
        let values = [3e38f32, 3e38, 1.0, f32::INFINITY, f32::NAN, 0.0, 1e-45, 0.0];
        let bytes = values.iter().flat_map(|v| v.to_le_bytes()).collect();
        let encoding = Encoding::Plain(DType::F32);
        let tensor = Tensor::unchecked("m", encoding, vec![4, 2], View::owned(bytes));
        let unit = tensor.unit_rows(4).unwrap();
        assert_eq!(unit.norms, [1.0; 4]);
        assert_eq!(unit.change, Change::default());
        let same = unit
            .matrix
            .values_f32(0, 8)
            .unwrap()
            .iter()
            .zip(values)
            .all(|(a, b)| a.to_bits() == b.to_bits());
        assert!(same);
    }

    #[test]
    fn lengths_are_taken_and_given_back() {
        let UnitRows { matrix: unit, norms: lengths, change } = matrix().unit_rows(3).unwrap();
        assert_eq!(lengths, [5.0, 0.0, 1.0]);
        assert_eq!(change, Change::default());
        assert_eq!(unit.values_f32(0, 8).unwrap(), [0.6, 0.8, 0.0, 0.0, 1.0, 0.0, -6.0, 8.0]);
        let bytes = lengths.iter().flat_map(|v| v.to_le_bytes()).collect();
        let norms =
            Tensor::unchecked("n", Encoding::Plain(DType::F32), vec![3], View::owned(bytes));
        assert_eq!(
            unit.scale_rows(&norms).unwrap().values_f32(0, 8).unwrap(),
            matrix().values_f32(0, 8).unwrap()
        );
    }

    /// However many rows are looked at together, each has its own length and its own changes.
    #[test]
    fn rows_side_by_side_are_as_rows_alone() {
        let mut state = 1u32;
        for (rows, dim) in [(1u64, 1u64), (3, 5), (4, 7), (11, 301), (70, 300), (5, 20_000)] {
            let values: Vec<f32> = (0..rows * dim)
                .map(|_| {
                    state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                    (f64::from(state) / 1e9 - 2.0) as f32
                })
                .collect();
            let bytes = values.iter().flat_map(|v| v.to_le_bytes()).collect();
            let encoding = Encoding::Plain(DType::F32);
            let matrix =
                Tensor::unchecked("m", encoding.clone(), vec![rows, dim], View::owned(bytes));
            let unit = matrix.unit_rows(rows).unwrap();
            let each = values.chunks_exact(to_len(dim));
            assert!(each.map(|row| norm(row) as f32).eq(unit.norms.iter().copied()));
            let norms = unit.norms.iter().flat_map(|v| v.to_le_bytes()).collect();
            let norms = Tensor::unchecked("n", encoding, vec![rows], View::owned(norms));
            let back = unit.matrix.scale_rows(&norms).unwrap();
            let mut change = Change::default();
            for (a, b) in values.iter().zip(back.values_f32(0, values.len()).unwrap()) {
                if a.to_bits() != b.to_bits() {
                    change.note(f64::from(*a), f64::from(b));
                }
            }
            assert_eq!(unit.change, change, "{rows} x {dim}");
            assert!(change.changed > 0 || rows == 1);
        }
    }
}
