//! From which approximate product on a row may be one of the best.
//!
//! Kernels give a product `s` and a squared length for each row, both rounded. With the length `x` (or, for
//! distances, its square) a row is worth a closer look if `s + slope * x` is not less than a
//! limit. That is one line for all metrics, and kernels can test it in registers:
//!
//! * A dot product reaches `t` only if `s + e·|q|·x >= t`.
//! * A cosine reaches `t` only if `s >= (t - e)·|q|·x`.
//! * A distance, squared `x² + |q|² - 2·q·r`, is `d` or less only if `s - x²/2 >= (|q|² - d²)/2`, but
//!   for `e·(x² + |q|²)`.
//!
//! Here `e` bounds what rounding may have done, with room for the rounding of the line itself. Where a
//! bound can't be trusted, because something overflowed or `e` is large, the slope or `x` is
//! NaN: then every row is looked at.

use crate::Metric;

/// Squared lengths in f32 from which on they are accurate: below, squares may have underflowed.
const ACCURATE_SQUARE: f32 = f32::from_bits(27 << 23); // 2^-100

/// What is known of the products with a query.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bound {
    /// The query's squared length.
    pub(crate) square: f64,
    /// A product is so many times what the kernel says.
    pub(crate) unit: f64,
    /// A row's length is so many times what the kernel says.
    pub(crate) length: f64,
    /// Twice the share of `|q|·|r|` by which a product may be wrong, and twice the share by which a
    /// squared length may be; or more.
    pub(crate) error: f64,
    /// What a product may be wrong by besides, as the kernel says it, because values underflowed.
    pub(crate) tiny: f64,
}

impl Bound {
    /// Slope and limit with which rows are found whose score may reach `threshold`.
    pub(crate) fn line(&self, metric: Metric, threshold: f64) -> (f32, f32) {
        let Bound { square, unit, length, error, tiny } = *self;
        if square.is_nan() {
            // No score is a number.
            return (0.0, f32::INFINITY);
        }
        if threshold == f64::NEG_INFINITY {
            return (0.0, f32::NEG_INFINITY);
        }
        let size = square.sqrt() * length / unit;
        let (slope, limit) = match metric {
            // The length is itself a little wrong.
            Metric::Dot => (error * (1.0 + error) * size, threshold / unit - tiny),
            // Lengths are wrong too, in proportion to the cosine, which is at most one.
            Metric::Cosine => ((2.0 * error - threshold) * size, 0.0),
            Metric::L2 => {
                let half = 0.5 - error;
                let rest = square * half - 0.5 * threshold * threshold * (1.0 + 1e-12);
                (-half * length * length / unit, rest / unit - tiny)
            }
        };
        #[allow(clippy::cast_possible_truncation, reason = "to the safe side")]
        let (slope, limit) = ((slope as f32).next_up(), (limit as f32).next_down());
        let trusted = error < 0.25 && unit > 0.0 && size.is_finite() && slope.is_finite();
        if trusted { (slope, limit) } else { (f32::NAN, 0.0) }
    }
}

/// Whether the squared length of a row says what is needed of it.
pub(crate) fn is_regular(square: f32, metric: Metric) -> bool {
    // Comparing with NaN is false.
    square <= f32::MAX && (metric != Metric::Cosine || square >= ACCURATE_SQUARE)
}

/// What squared lengths may be too small by, because squares underflowed.
pub(crate) fn underflow(dim: usize) -> f64 {
    (dim as f64 + 16.0) * 2f64.powi(-149)
}

/// What lines are made for: a row's length, or its square. `floor` is what the square may be too
/// small by.
pub(crate) fn to_x(square: f32, metric: Metric, floor: f32) -> f32 {
    match metric {
        Metric::Dot => (square + floor).sqrt(),
        Metric::Cosine => square.sqrt(),
        // An infinite square would be subtracted.
        Metric::L2 if square.is_finite() => square,
        Metric::L2 => f32::NAN,
    }
}
