//! Statistics of a tensor's values, in bounded memory.

use serde::Serialize;
use weighbridge_format::{Error, Tensor};

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

/// Statistics of a tensor, `None` when it has no values. Walks through the data several times
/// instead of keeping it.
///
/// # Errors
/// If the values can't be read.
pub fn stats(tensor: &Tensor) -> Result<Option<Stats>, Error> {
    let mut s = Stats { min: f64::INFINITY, max: f64::NEG_INFINITY, ..Stats::default() };
    let (mut finite, mut sum) = (0u64, 0.0);
    tensor.for_each_block(|values| {
        s.count += values.len() as u64;
        for &v in values {
            if v.is_finite() {
                finite += 1;
                sum += v;
                s.min = s.min.min(v);
                s.max = s.max.max(v);
                s.zero += u64::from(v == 0.0);
            } else {
                s.nan += u64::from(v.is_nan());
                s.inf += u64::from(v.is_infinite());
            }
        }
    })?;
    if s.count == 0 {
        return Ok(None);
    }
    if finite == 0 {
        let none = f64::NAN;
        return Ok(Some(Stats { min: none, max: none, mean: none, median: none, std: none, ..s }));
    }
    #[allow(clippy::cast_precision_loss)]
    let n = finite as f64;
    s.mean = sum / n;
    let mut squares = 0.0;
    let mut bins = Bins::new(s.min, s.max, !tensor.encoding.is_real());
    tensor.for_each_block(|values| {
        for &v in values.iter().filter(|v| v.is_finite()) {
            squares += (v - s.mean) * (v - s.mean);
            bins.add(v);
        }
    })?;
    s.std = (squares / n).sqrt();
    s.histogram = bins.into_list();
    let upper = select(tensor, finite / 2)?;
    s.median = if finite % 2 == 1 {
        upper
    } else {
        f64::midpoint(below(tensor, finite / 2, upper)?, upper)
    };
    Ok(Some(s))
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
    fn add(&mut self, v: f64) {
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
        self.counts[bin] += 1;
    }

    fn into_list(self) -> Vec<Bin> {
        let bin = |(i, &count): (usize, &u64)| {
            let high = if self.whole { self.edges[i] } else { self.edges[i + 1] };
            Bin { low: self.edges[i], high, count }
        };
        self.counts.iter().enumerate().map(bin).collect()
    }
}

/// The value before `upper`, which is the one with `rank` others in front of it.
fn below(tensor: &Tensor, rank: u64, upper: f64) -> Result<f64, Error> {
    let (mut count, mut largest) = (0, f64::NEG_INFINITY);
    tensor.for_each_block(|values| {
        for &v in values.iter().filter(|v| **v < upper && v.is_finite()) {
            count += 1;
            largest = largest.max(v);
        }
    })?;
    Ok(if count == rank { largest } else { upper })
}

/// The finite value with `rank` smaller ones, found 16 bits at a time from the top.
fn select(tensor: &Tensor, mut rank: u64) -> Result<f64, Error> {
    // Ordered like the numbers: negative ones flipped, positive ones above them.
    let key = |v: f64| {
        let bits = v.to_bits();
        if bits >> 63 == 1 { !bits } else { bits | 1 << 63 }
    };
    // Sorting a few values is cheaper than counting.
    if tensor.count() <= 4096 {
        let mut all = Vec::new();
        tensor.for_each_block(|values| all.extend(values.iter().filter(|v| v.is_finite())))?;
        all.sort_by(f64::total_cmp);
        return Ok(all.get(usize::try_from(rank).unwrap_or(0)).copied().unwrap_or(f64::NAN));
    }
    let mut prefix = 0u64;
    for level in 0..4 {
        let shift = 48 - level * 16;
        let mut counts = vec![0u64; 1 << 16];
        tensor.for_each_block(|values| {
            for &v in values.iter().filter(|v| v.is_finite()) {
                let k = key(v);
                if level == 0 || k >> (shift + 16) == prefix {
                    counts[usize::try_from(k >> shift & 0xFFFF).unwrap_or(0)] += 1;
                }
            }
        })?;
        let mut digit = 0u64;
        for count in counts {
            if rank < count {
                break;
            }
            rank -= count;
            digit += 1;
        }
        prefix = prefix << 16 | digit;
    }
    Ok(f64::from_bits(if prefix >> 63 == 1 { prefix & !(1 << 63) } else { !prefix }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use weighbridge_codec::DType;
    use weighbridge_format::{Encoding, View};

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
}
