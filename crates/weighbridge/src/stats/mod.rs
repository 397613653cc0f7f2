//! Statistics of a tensor's values, in bounded memory.

mod floats;
mod list;
mod wide;

use serde::Serialize;
use weighbridge_codec::{DType, Scalar};
use weighbridge_format::{Encoding, Error, Tensor};

/// Over the finite values; NaN and infinities are counted apart. Its JSON is described in
/// docs/json.md.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Stats {
    /// All values.
    pub count: u64,
    /// The smallest.
    pub min: f64,
    /// The largest.
    pub max: f64,
    /// Their mean.
    pub mean: f64,
    /// Their median.
    pub median: f64,
    /// Their standard deviation, that of the population.
    pub std: f64,
    /// How many are NaN.
    pub nan: u64,
    /// How many are infinite.
    pub inf: u64,
    /// How many are zero.
    pub zero: u64,
    /// How they are distributed.
    pub histogram: Vec<Bin>,
}

/// Values from `low` up to `high`; the last bin has its upper end too.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Bin {
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
    /// Values between them.
    pub count: u64,
}

/// Bins of a histogram.
const BINS: usize = 10;

/// Statistics of a tensor, `None` when it has no values or complex ones. Walks through the data once or a few times
/// instead of keeping it.
///
/// # Errors
/// If the values can't be read.
pub fn stats(tensor: &Tensor) -> Result<Option<Stats>, Error> {
    // Complex numbers have no order.
    let is_complex = tensor.encoding == Encoding::Plain(DType::C64);
    if !tensor.has_data() || tensor.count() == 0 || is_complex {
        return Ok(None);
    }
    tensor.check_values()?;
    let stored = tensor.encoding.stored();
    let is_short = matches!(stored.bits(), 8 | 16);
    let made = match &tensor.encoding {
        _ if tensor.count() <= list::FEW => list::of_few(tensor)?,
        Encoding::Plain(DType::F32) => floats::of_floats(tensor)?,
        Encoding::Plain(_) if is_short => list::of_codes(tensor, stored, Scalar::to_f64)?,
        Encoding::Plain(_) => wide::of_wide(tensor)?,
        Encoding::Scaled(scaled) if is_short && scaled.is_uniform() => {
            let value = |v: Scalar| scaled.value(v.to_i128().unwrap_or(0), 0).into();
            list::of_codes(tensor, stored, value)?
        }
        // Quantized values are f32.
        _ => floats::of_floats(tensor)?,
    };
    Ok(Some(made))
}

impl Stats {
    /// Of values of which none is finite.
    fn without_finite(self) -> Stats {
        let none = f64::NAN;
        Stats { min: none, max: none, mean: none, median: none, std: none, ..self }
    }
}

/// Equal bins over the range, or one for each whole number when there are few.
struct Bins {
    edges: Vec<f64>,
    counts: Vec<u64>,
    whole: bool,
}

impl Bins {
    fn new(min: f64, max: f64, integers: bool) -> Bins {
        // Beyond 2^53 not every whole number is a double.
        let exact = 2f64.powi(53);
        let whole = integers && max - min <= 20.0 && min > -exact && max < exact;
        let edges: Vec<f64> = if whole {
            (0..=20).map(|i| min + f64::from(i)).take_while(|v| *v <= max).collect()
        } else if min == max {
            vec![min, max]
        } else {
            let step = (max - min) / BINS as f64;
            let edge = |i: usize| match i {
                BINS => max,
                // The range of doubles is wider than a double.
                _ if step.is_infinite() => {
                    let part = i as f64 / BINS as f64;
                    min * (1.0 - part) + max * part
                }
                _ => i as f64 * step + min,
            };
            (0..=BINS).map(edge).collect()
        };
        let count = if whole { edges.len() } else { edges.len() - 1 };
        Bins { edges, counts: vec![0; count], whole }
    }

    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    fn add(&mut self, v: f64, count: u64) {
        let (min, last) = (self.edges[0], self.counts.len() - 1);
        let step = self.edges.get(1).map_or(1.0, |next| next - min);
        let place = if self.whole { v - min } else { v / step - min / step };
        // Rounding may put a value beside its bin: the edges decide.
        let mut bin = (place as usize).min(last);
        if v < self.edges[bin] {
            bin = bin.saturating_sub(1);
        } else if !self.whole && bin < last && v >= self.edges[bin + 1] {
            bin += 1;
        }
        self.counts[bin] += count;
    }

    fn into_list(self) -> Vec<Bin> {
        let bin = |(i, &count): (usize, &u64)| {
            let high = if self.whole { self.edges[i] } else { self.edges[i + 1] };
            Bin { low: self.edges[i], high, count }
        };
        self.counts.iter().enumerate().map(bin).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weighbridge_format::View;
    use weighbridge_format::model::{Scaled, Scaling};

    fn tensor(values: &[f32]) -> Tensor {
        let bytes = values.iter().flat_map(|v| v.to_le_bytes()).collect();
        let shape = vec![values.len() as u64];
        Tensor::stored("x", Encoding::Plain(DType::F32), shape, View::owned(bytes)).unwrap()
    }

    #[test]
    fn known_numbers() {
        let s = stats(&tensor(&[-1.0, 0.0, 2.0, f32::NAN, 3.0, f32::INFINITY])).unwrap().unwrap();
        assert_eq!((s.count, s.nan, s.inf, s.zero), (6, 1, 1, 1));
        assert_eq!((s.min, s.max, s.mean, s.median), (-1.0, 3.0, 1.0, 1.0));
        assert!((s.std - 2.5f64.sqrt()).abs() < 1e-12);
        assert_eq!(s.histogram.iter().map(|b| b.count).sum::<u64>(), 4);
        assert_eq!(stats(&tensor(&[])).unwrap(), None);
    }

    /// Numbers so large that adding one changes nothing, and a range wider than any number.
    #[test]
    fn huge_numbers_have_histograms() {
        let bytes = [1u64 << 60, 1 << 60].iter().flat_map(|v| v.to_le_bytes()).collect();
        let whole =
            Tensor::stored("x", Encoding::Plain(DType::U64), vec![2], View::owned(bytes)).unwrap();
        assert_eq!(stats(&whole).unwrap().unwrap().histogram.len(), 1);
        let bytes = [f64::MAX, f64::MIN, 0.0].iter().flat_map(|v| v.to_le_bytes()).collect();
        let wide =
            Tensor::stored("x", Encoding::Plain(DType::F64), vec![3], View::owned(bytes)).unwrap();
        let bins = stats(&wide).unwrap().unwrap().histogram;
        assert_eq!(bins.iter().map(|b| b.count).sum::<u64>(), 3);
        assert!(bins.iter().all(|b| b.low.is_finite() && b.high.is_finite()));
    }

    #[test]
    fn the_median_is_that_of_sorting() {
        let mut values: Vec<f32> =
            (0..70_001).map(|i| ((i * 7919) % 70_001) as f32 - 30_000.5).collect();
        let s = stats(&tensor(&values)).unwrap().unwrap();
        values.sort_by(f32::total_cmp);
        assert_eq!(s.median, f64::from(values[35_000]));
        for even in [&[1.0, 1.0, 1.0, 2.0][..], &[1.0, 2.0, 3.0, 3.0], &[-1.0, 5.0]] {
            let s = stats(&tensor(even)).unwrap().unwrap();
            assert_eq!(s.median, f64::from(even[even.len() / 2 - 1] + even[even.len() / 2]) / 2.0);
        }
    }

    fn stored(dtype: DType, bytes: Vec<u8>) -> Tensor {
        let count = bytes.len() as u64 * 8 / dtype.bits();
        Tensor::stored("x", Encoding::Plain(dtype), vec![count], View::owned(bytes)).unwrap()
    }

    /// The definition, by sorting.
    fn by_sorting(tensor: &Tensor) -> Stats {
        let mut all = Vec::new();
        tensor.for_each_block(|b| all.extend_from_slice(b)).unwrap();
        let count = |what: &dyn Fn(f64) -> bool| all.iter().filter(|v| what(**v)).count() as u64;
        let mut s = Stats { count: all.len() as u64, ..Stats::default() };
        s.nan = count(&f64::is_nan);
        s.inf = count(&f64::is_infinite);
        s.zero = count(&|v| v == 0.0);
        all.retain(|v| v.is_finite());
        all.sort_by(f64::total_cmp);
        let n = all.len();
        (s.min, s.max) = (all[0], all[n - 1]);
        s.median = (all[(n - 1) / 2] + all[n / 2]) / 2.0;
        s.mean = all.iter().sum::<f64>() / n as f64;
        s.std = (all.iter().map(|v| (v - s.mean) * (v - s.mean)).sum::<f64>() / n as f64).sqrt();
        let mut bins = Bins::new(s.min, s.max, !tensor.encoding.is_real());
        all.iter().for_each(|v| bins.add(*v, 1));
        s.histogram = bins.into_list();
        s
    }

    /// In every type and over the borders of what is done at once.
    #[test]
    fn statistics_are_those_of_the_definition() {
        let mut state = 1u64;
        let mut bits = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            state >> 32
        };
        let mut words: Vec<u32> = (0..300_001).map(|_| bits() as u32).collect();
        for (i, word) in words.iter_mut().enumerate() {
            match i % 7 {
                0 => *word = 0,
                1 => *word = 0x8000_0000,
                // Between -1 and 1, as weights are; the others are of all magnitudes.
                2..6 => *word = ((f64::from(*word) / 2f64.powi(31) - 1.0) as f32).to_bits(),
                _ => {}
            }
        }
        let raw: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
        let weights: Vec<u8> = (0..2_200_000u32)
            .flat_map(|i| ((i % 9973) as f32 * 1e-3 - 4.0).to_le_bytes())
            .collect();
        let per_row = Scaling::Affine {
            axis: Some(0),
            scales: vec![1.0, 0.5, 0.25, 0.125],
            zero_points: Some(vec![0, 1, 2, 3]),
        };
        let mut tensors = Vec::new();
        let constant = 0.25f32.to_le_bytes().repeat(10_000);
        // Around a median that is there often, and between two that are.
        for (zeros, others) in [(200, 100), (50, 100), (25, 100), (10, 100), (1 << 20, 1)] {
            let value = |i: u32| match i {
                _ if i % zeros == zeros - 1 => 0f32,
                _ if i.is_multiple_of(2) => (1 + i % others) as f32,
                _ => -((1 + i % others) as f32) / 2.0,
            };
            let bytes = (0..100_000).flat_map(|i| value(i).to_le_bytes()).collect();
            tensors.push(stored(DType::F32, bytes));
        }
        for (dtype, bytes) in [
            (DType::F32, raw.clone()),
            (DType::F32, weights),
            (DType::F32, constant),
            (DType::F16, raw[..1_200_000].to_vec()),
            (DType::BF16, raw[..1_200_000].to_vec()),
            (DType::I8, raw.clone()),
            (DType::U8, raw.iter().map(|b| b % 7).collect()),
            (DType::I16, raw[..1_200_000].to_vec()),
            (DType::F8E4M3, raw.clone()),
            (DType::I32, raw.clone()),
        ] {
            tensors.push(stored(dtype, bytes));
        }
        // Codes have the same value everywhere, or one by their row.
        let scaling = [Scaling::Divisor(127.0), Scaling::per_tensor(0.3, Some(1.5)), per_row];
        for scaling in scaling {
            let scaled = Scaled { codes: DType::I8, scaling };
            let data = View::owned(raw.clone());
            let shape = vec![4, raw.len() as u64 / 4];
            tensors
                .push(Tensor::stored("x", Encoding::Scaled(scaled.into()), shape, data).unwrap());
        }
        for tensor in tensors {
            let dtype = tensor.encoding.name();
            let (made, expected) = (stats(&tensor).unwrap().unwrap(), by_sorting(&tensor));
            let near = |a: f64, b: f64| (a - b).abs() <= 1e-9 * b.abs().max(1e-300);
            assert!(near(made.mean, expected.mean), "{dtype}: {} {}", made.mean, expected.mean);
            assert!(near(made.std, expected.std), "{dtype}: {} {}", made.std, expected.std);
            let exact = |s: Stats| Stats { mean: 0.0, std: 0.0, ..s };
            assert_eq!(exact(made), exact(expected), "{dtype}");
        }
    }

    #[test]
    fn values_that_are_all_infinite() {
        for n in [3, 10_000] {
            let s = stats(&tensor(&vec![f32::NEG_INFINITY; n])).unwrap().unwrap();
            assert_eq!((s.count, s.inf, s.histogram.len()), (n as u64, n as u64, 0));
            assert!(s.min.is_nan() && s.median.is_nan());
        }
    }
}
