//! Of values that take a double: several walks, and no place for any of them.

use super::{Bins, Stats};
use weighbridge_format::{Error, Tensor};

pub(super) fn of_wide(tensor: &Tensor) -> Result<Stats, Error> {
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
    if finite == 0 {
        return Ok(s.without_finite());
    }
    #[allow(clippy::cast_precision_loss)]
    let n = finite as f64;
    s.mean = sum / n;
    let mut squares = 0.0;
    let mut bins = Bins::new(s.min, s.max, !tensor.encoding.is_real());
    tensor.for_each_block(|values| {
        for &v in values.iter().filter(|v| v.is_finite()) {
            squares += (v - s.mean) * (v - s.mean);
            bins.add(v, 1);
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
    Ok(s)
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
