//! Rows of floats.

use super::{Buffers, Decoded, Form, Limits, Sums, in_panels};
use crate::bound::{Bound, underflow};
use crate::score::square;
use crate::{Metric, Query, Rows, Unreadable};
use weighbridge_codec::dot::{Bf16, F16, F32, Panels, dots, dots_and_squares};
use weighbridge_codec::simd::{Level, Prefetcher};
use weighbridge_codec::{DType, convert};

/// How many bytes of rows are taken at a time: they fit the L2 cache of a core, so that rows that
/// were decoded are still in it when they are multiplied.
const BLOCK_BYTES: usize = 1 << 18;

/// The same where the cache has panels to hold as well.
const PANEL_BLOCK_BYTES: usize = 1 << 17;

/// How many queries go through the rows together. With more, reading the rows once for all of them
/// would save next to nothing.
const QUERIES: usize = 256;

/// Longer queries could make products overflow, where they are not brought to another length.
const LARGEST_SQUARE: f64 = (1u128 << 120) as f64;

/// Rows of f32, or of halves that are lent as they are.
pub(crate) struct Floats<'a, R: ?Sized> {
    pub(crate) rows: &'a R,
    pub(crate) dim: usize,
    /// f16 or bf16.
    pub(crate) half: Option<DType>,
}

#[derive(Clone, Copy)]
pub(crate) enum Block<'b> {
    F32(&'b [f32]),
    F16(&'b [[u8; 2]]),
    Bf16(&'b [[u8; 2]]),
}

pub(crate) struct Prepared {
    paneled: usize,
    panels: Panels<f32>,
    /// The vectors of the loose queries, one behind the other.
    loose: Vec<f32>,
}

impl<R: Rows + ?Sized> Form for Floats<'_, R> {
    type Block<'b>
        = Block<'b>
    where
        Self: 'b;
    type Prepared = Prepared;

    fn rows_together(&self, queries: usize) -> usize {
        let values = match (in_panels(queries), self.half) {
            (0, None) => BLOCK_BYTES / 4,
            (0, Some(_)) => BLOCK_BYTES / 2,
            _ => PANEL_BLOCK_BYTES / 4,
        };
        values / self.dim.max(1)
    }

    fn queries_together(&self) -> usize {
        QUERIES
    }

    fn prepare(&self, queries: &[Query], metric: Metric) -> (Prepared, Vec<Bound>) {
        let dim = self.dim.max(1);
        let mut vectors = Vec::with_capacity(queries.len() * dim);
        let mut bounds = Vec::with_capacity(queries.len());
        for query in queries {
            let start = vectors.len();
            vectors.extend_from_slice(query.vector);
            vectors.resize(start + dim, 0.0);
            let square = square(query.vector);
            let mut error = (dim as f64 + 32.0) * 2f64.powi(-23);
            let mut unit = 1.0;
            if !square.is_finite() {
                vectors[start..].fill(0.0);
                error = f64::INFINITY;
            } else if metric == Metric::L2 {
                error = if square > LARGEST_SQUARE { f64::INFINITY } else { error };
            } else {
                unit = normalize_exponent(&mut vectors[start..]);
            }
            let tiny = 2.0 * underflow(dim);
            bounds.push(Bound { square, unit, length: 1.0, error, tiny });
        }
        let paneled = in_panels(queries.len());
        let loose = vectors.split_off(paneled * dim);
        (Prepared { paneled, panels: Panels::new(&vectors, dim), loose }, bounds)
    }

    fn paneled(prepared: &Prepared) -> usize {
        prepared.paneled
    }

    #[allow(clippy::cast_possible_truncation)]
    fn floor(&self) -> f32 {
        underflow(self.dim) as f32
    }

    fn read<'b>(
        &'b self,
        prepared: &Prepared,
        (start, n): (usize, usize),
        buffers: &'b mut Buffers,
    ) -> Result<Block<'b>, Unreadable> {
        let values = n * self.dim;
        let Some(dtype) = self.half else {
            let rows = self.rows.block(start, n, &mut buffers.floats)?;
            assert_eq!(rows.len(), values, "as many values as asked for");
            return Ok(Block::F32(rows));
        };
        let Buffers { floats, bytes } = buffers;
        let bytes = self.rows.bytes(start, n, bytes)?;
        assert_eq!(bytes.len(), 2 * values, "as many bytes as asked for");
        if prepared.paneled > 0 {
            floats.resize(values, 0.0);
            convert::to_f32(dtype, bytes, 0, floats);
            return Ok(Block::F32(floats));
        }
        let halves = bytes.as_chunks().0;
        Ok(if dtype == DType::F16 { Block::F16(halves) } else { Block::Bf16(halves) })
    }

    fn measure(&self, level: Level, prepared: &Prepared, block: Block, to: Sums) {
        let Sums { squares, products, .. } = to;
        let (loose, dim) = (&prepared.loose[..], self.dim);
        match block {
            // More than two queries with squares beside them are more than registers hold.
            Block::F32(rows) if loose.len() > 2 * dim => {
                dots_and_squares::<F32>(level, rows, &[], dim, &mut [], squares);
                dots::<F32>(level, rows, loose, dim, products);
            }
            Block::F32(rows) => {
                dots_and_squares::<F32>(level, rows, loose, dim, products, squares);
            }
            Block::F16(rows) => {
                dots_and_squares::<F16>(level, rows, loose, dim, products, squares);
            }
            Block::Bf16(rows) => {
                dots_and_squares::<Bf16>(level, rows, loose, dim, products, squares);
            }
        }
    }

    fn reach(&self, level: Level, prepared: &Prepared, block: Block, limits: Limits) {
        // With panels, halves have been decoded.
        if let Block::F32(rows) = block {
            // Decoded rows lie in a buffer, with nothing behind it.
            let ahead = match self.half {
                None => Prefetcher::behind(rows),
                Some(_) => Prefetcher::new::<u8>(&[]),
            };
            prepared.panels.reached(level, rows, limits.xs, limits.lines, ahead, limits.told);
        }
    }

    fn row<'b: 'd, 'd>(&self, block: Block<'b>, row: usize, decoded: &'d mut Decoded) -> &'d [f32]
    where
        Self: 'b,
    {
        let place = row * self.dim..(row + 1) * self.dim;
        let (halves, dtype) = match block {
            Block::F32(rows) => return &rows[place],
            Block::F16(rows) => (rows, DType::F16),
            Block::Bf16(rows) => (rows, DType::BF16),
        };
        decoded.get(row, self.dim, |out| {
            convert::to_f32(dtype, halves[place].as_flattened(), 0, out);
        })
    }
}

/// Multiplies a vector with a power of two such that its largest value is about 1, and returns what
/// undoes that. Products then can't overflow but where the row's own square does.
#[allow(clippy::cast_possible_truncation)]
fn normalize_exponent(vector: &mut [f32]) -> f64 {
    let largest = vector.iter().fold(0.0f32, |largest, v| largest.max(v.abs()));
    if largest == 0.0 {
        return 1.0;
    }
    let exponent = (f64::from(largest).to_bits() >> 52) as i32 - 1023;
    let factor = 2f64.powi(-exponent);
    for value in vector {
        *value = (f64::from(*value) * factor) as f32;
    }
    2f64.powi(exponent)
}
