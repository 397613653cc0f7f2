//! Rows with a byte for each value, where all values are multiples of one number.
//!
//! Codes are multiplied as they are with queries rounded to 16 bits. Sums of integers are exact, so
//! that what a query lost by rounding, which is known, is all that a product can be wrong by.

use super::{Buffers, Decoded, Form, Limits, Sums, in_panels};
use crate::bound::Bound;
use crate::score::square;
use crate::{Metric, Query, Rows, Unreadable};
use weighbridge_codec::dot::{CODES_TOGETHER, Panels, code_dots, widen_codes};
use weighbridge_codec::simd::{Level, Prefetcher};

/// How many codes are taken at a time: they fit the L2 cache of a core.
const BLOCK_CODES: usize = 1 << 18;

/// The same where the cache has to hold them in 16 bits, and panels as well.
const PANEL_BLOCK_CODES: usize = 1 << 16;

/// How many queries go through the rows together.
const QUERIES: usize = 256;

/// With fewer steps, a query is rounded too much. Very wide rows have no room for more in their sums.
const LEAST_STEPS: usize = 1024;

/// Rows of codes.
pub(crate) struct Codes<'a, R: ?Sized> {
    rows: &'a R,
    dim: usize,
    values: &'a [f32; 256],
    /// A code's value is the code times this, but for `rounding` of it.
    scale: f64,
    rounding: f64,
}

impl<'a, R: Rows + ?Sized> Codes<'a, R> {
    /// `None` unless values are codes times a scale.
    pub(crate) fn new(rows: &'a R, dim: usize, values: &'a [f32; 256]) -> Option<Self> {
        let value = |code: i8| f64::from(values[usize::from(code.cast_unsigned())]);
        let scale = value(-128) / -128.0;
        let off = |code: i8| (value(code) / (scale * f64::from(code)) - 1.0).abs();
        let codes = (-128..=127i8).filter(|code| *code != 0);
        // NaN, where there is any, is not less.
        let rounding = codes.map(off).fold(0.0, |most, off| if off < most { most } else { off });
        let regular = value(0) == 0.0 && scale != 0.0 && rounding < 1e-5;
        (regular && dim > 0 && steps(dim) >= LEAST_STEPS).then_some(Codes {
            rows,
            dim,
            values,
            scale,
            rounding,
        })
    }
}

/// The largest integer of a query for which no sum of products with codes leaves 32 bits.
fn steps(dim: usize) -> usize {
    (((1 << 24) - 1) / dim.max(1)).min(32767)
}

pub(crate) struct Prepared {
    paneled: usize,
    panels: Panels<[i16; 2]>,
    /// The integers of the loose queries, one behind the other.
    loose: Vec<i16>,
}

impl<R: Rows + ?Sized> Form for Codes<'_, R> {
    type Block<'b>
        = &'b [u8]
    where
        Self: 'b;
    type Prepared = Prepared;

    fn rows_together(&self, queries: usize) -> usize {
        let codes = if in_panels(queries) == 0 { BLOCK_CODES } else { PANEL_BLOCK_CODES };
        codes / self.dim
    }

    fn queries_together(&self) -> usize {
        QUERIES
    }

    fn prepare(&self, queries: &[Query], metric: Metric) -> (Prepared, Vec<Bound>) {
        let paneled = in_panels(queries.len());
        let (mut packed, mut loose, mut bounds) = (Vec::new(), Vec::new(), Vec::new());
        for (q, query) in queries.iter().enumerate() {
            let (to, together) =
                if q < paneled { (&mut packed, 2) } else { (&mut loose, CODES_TOGETHER) };
            let start = to.len();
            let rounded = self.round(query.vector, to);
            to.resize(start + self.dim.next_multiple_of(together), 0);
            bounds.push(self.bound(query, rounded, metric));
        }
        let pairs = self.dim.div_ceil(2);
        let panels = Panels::new(packed.as_chunks().0, pairs);
        (Prepared { paneled, panels, loose }, bounds)
    }

    fn paneled(prepared: &Prepared) -> usize {
        prepared.paneled
    }

    fn floor(&self) -> f32 {
        0.0
    }

    fn read<'b>(
        &'b self,
        _: &Prepared,
        (start, n): (usize, usize),
        buffers: &'b mut Buffers,
    ) -> Result<&'b [u8], Unreadable> {
        let codes = self.rows.bytes(start, n, &mut buffers.bytes)?;
        assert_eq!(codes.len(), n * self.dim, "as many codes as asked for");
        Ok(codes)
    }

    #[allow(clippy::cast_precision_loss)]
    fn measure(&self, level: Level, prepared: &Prepared, codes: &[u8], to: Sums) {
        let Sums { metric, squares, products } = to;
        let (dim, width) = (self.dim, self.dim.next_multiple_of(CODES_TOGETHER));
        let mut queries =
            prepared.loose.chunks_exact(width).zip(products.chunks_exact_mut(squares.len()));
        if metric == Metric::Dot {
            // No row is longer, and lengths only say how wrong products may be.
            squares.fill(128.0 * 128.0 * 1.01 * dim as f32);
        } else {
            match queries.next() {
                Some((factors, products)) => {
                    code_dots(level, codes, dim, factors, products, Some(&mut *squares));
                }
                None => {
                    let factors = vec![0; width];
                    let mut products = vec![0.0; squares.len()];
                    code_dots(level, codes, dim, &factors, &mut products, Some(&mut *squares));
                }
            }
        }
        for (factors, products) in queries {
            code_dots(level, codes, dim, factors, products, None);
        }
    }

    fn reach(&self, level: Level, prepared: &Prepared, codes: &[u8], limits: Limits) {
        if prepared.paneled > 0 {
            let Limits { xs, lines, told, pairs } = limits;
            widen_codes(level, codes, self.dim, pairs);
            let ahead = Prefetcher::behind(codes);
            prepared.panels.reached(level, pairs, xs, lines, ahead, told);
        }
    }

    fn row<'b: 'd, 'd>(&self, codes: &'b [u8], row: usize, decoded: &'d mut Decoded) -> &'d [f32]
    where
        Self: 'b,
    {
        decoded.get(row, self.dim, |out| {
            let codes = &codes[row * self.dim..][..self.dim];
            for (value, code) in out.iter_mut().zip(codes) {
                *value = self.values[usize::from(*code)];
            }
        })
    }
}

/// What a query became: the size of a step, and the length of what was lost.
struct Rounded {
    step: f64,
    lost: f64,
}

impl<R: ?Sized> Codes<'_, R> {
    /// Rounds a query to integers.
    #[allow(clippy::cast_possible_truncation, clippy::cast_precision_loss)]
    fn round(&self, vector: &[f32], to: &mut Vec<i16>) -> Rounded {
        let largest = vector.iter().fold(0.0f32, |largest, v| largest.max(v.abs()));
        let steps = steps(self.dim) as f64;
        let step = f64::from(largest) / steps;
        let mut lost = 0.0;
        for value in vector.iter().map(|v| f64::from(*v)) {
            // NaN, of a query of zeros or with NaN in it, becomes 0.
            let rounded = (value / step).round().clamp(-steps, steps) as i16;
            lost += (value - f64::from(rounded) * step).powi(2);
            // Codes times a negative scale are those times a positive one, of the negative query.
            to.push(if self.scale < 0.0 { -rounded } else { rounded });
        }
        Rounded { step, lost: lost.sqrt() }
    }

    fn bound(&self, query: &Query, rounded: Rounded, metric: Metric) -> Bound {
        let Rounded { step, lost } = rounded;
        let square = square(query.vector);
        let length = self.scale.abs();
        // Sums are rounded to f32, and values were.
        let mut error = 2.0 * (2.0 * self.rounding + 2f64.powi(-20) + lost / square.sqrt());
        if metric == Metric::L2 {
            // The line of a distance takes its slope from the scale: both must be of sizes that f32
            // has.
            let ratio = length / step;
            error = if (1e-30..1e30).contains(&ratio) { error } else { f64::INFINITY };
        }
        Bound { square, unit: step * length, length, error, tiny: 1e-40 }
    }
}
