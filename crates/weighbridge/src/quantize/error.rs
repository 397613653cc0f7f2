//! How far values are from what became of them.

use serde::Serialize;

/// Sums over pairs of values; parts of a tensor are added up.
#[derive(Clone, Copy, Debug, Default)]
pub struct ErrorSums {
    squares: f64,
    before: f64,
    after: f64,
    product: f64,
    largest: f64,
}

/// How far values are from what became of them.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct ErrorFigures {
    /// Root of the summed squares of the errors over that of the values.
    pub relative_rmse: f64,
    /// The largest absolute error.
    pub max_error: f64,
    /// Of the angle between the values and what became of them.
    pub cosine: f64,
    /// Signal to noise in decibels; nothing when there is no noise.
    pub snr_db: Option<f64>,
}

impl ErrorSums {
    /// Of pairs of values.
    pub fn of(before: &[f32], after: &[f32]) -> ErrorSums {
        // Several sums side by side, which vectorises.
        const LANES: usize = 8;
        let mut lanes = [ErrorSums::default(); LANES];
        for (x, y) in before.chunks(LANES).zip(after.chunks(LANES)) {
            for ((sums, &x), &y) in lanes.iter_mut().zip(x).zip(y) {
                let (x, y) = (f64::from(x), f64::from(y));
                let error = x - y;
                sums.squares += error * error;
                sums.before += x * x;
                sums.after += y * y;
                sums.product += x * y;
                sums.largest = sums.largest.max(error.abs());
            }
        }
        lanes.into_iter().fold(ErrorSums::default(), ErrorSums::plus)
    }

    /// With those of other pairs.
    #[must_use]
    pub fn plus(self, other: ErrorSums) -> ErrorSums {
        ErrorSums {
            squares: self.squares + other.squares,
            before: self.before + other.before,
            after: self.after + other.after,
            product: self.product + other.product,
            largest: self.largest.max(other.largest),
        }
    }

    /// What the sums mean.
    pub fn figures(&self) -> ErrorFigures {
        let ratio = if self.squares == 0.0 { 0.0 } else { self.squares / self.before };
        let norms = (self.before * self.after).sqrt();
        ErrorFigures {
            relative_rmse: ratio.sqrt(),
            max_error: self.largest,
            cosine: match (self.squares == 0.0, norms == 0.0) {
                (true, _) => 1.0,
                // Nothing is left: there is no direction any more.
                (false, true) => 0.0,
                (false, false) => self.product / norms,
            },
            snr_db: (ratio > 0.0).then(|| 0.0 - 10.0 * ratio.log10()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_those_of_the_definition() {
        let before: Vec<f32> = (0..19).map(|i| i as f32 - 9.0).collect();
        let after: Vec<f32> = before.iter().map(|v| v + 0.5).collect();
        let loss = ErrorSums::of(&before, &after).figures();
        let squares: f64 = before.iter().map(|v| f64::from(v * v)).sum();
        assert!((loss.relative_rmse - (19.0 * 0.25 / squares).sqrt()).abs() < 1e-12);
        assert_eq!(loss.max_error, 0.5);
        assert!((loss.snr_db.unwrap() + 20.0 * loss.relative_rmse.log10()).abs() < 1e-9);
        let parts = ErrorSums::of(&before[..8], &after[..8]);
        let whole = parts.plus(ErrorSums::of(&before[8..], &after[8..])).figures();
        assert!((whole.cosine - loss.cosine).abs() < 1e-12);
        let same = ErrorSums::of(&before, &before).figures();
        assert_eq!((same.relative_rmse, same.cosine, same.snr_db), (0.0, 1.0, None));
    }
}
