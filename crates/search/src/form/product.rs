//! Product-quantized rows. A product with a row is the sum of a product for each of its parts, and
//! those of a query with all centroids are computed once.

use super::{Buffers, Decoded, Form, Limits, Sums};
use crate::bound::{Bound, underflow};
use crate::score::square;
use crate::{Metric, Query, Rows, Unreadable};
use weighbridge_codec::dot::{Table, lookup_sums};
use weighbridge_codec::product::{Codebook, RowDecoder};
use weighbridge_codec::simd::Level;

/// How many codes are taken at a time.
const BLOCK_CODES: usize = 1 << 16;

/// How much the tables of the queries that go through the rows together may take.
const TABLE_BYTES: usize = 1 << 23;

/// Rows that are rotated by something that is farther from a rotation are decoded.
const MOST_DISTORTION: f64 = 0.01;

/// Rows of codes for parts.
pub(crate) struct Product<'a, R: ?Sized> {
    rows: &'a R,
    book: &'a Codebook,
    decoder: RowDecoder<'a>,
    norms: Option<&'a [[u8; 4]]>,
    /// The squared length of each centroid.
    squares: Vec<Table>,
    /// Twice the share of `|q|·|r|` by which products may be wrong.
    error: f64,
}

#[derive(Clone, Copy)]
pub(crate) struct Block<'b> {
    codes: &'b [u8],
    norms: Option<&'b [[u8; 4]]>,
}

impl<'a, R: Rows + ?Sized> Product<'a, R> {
    /// `None` if lengths can't be told from the codes.
    pub(crate) fn new(
        rows: &'a R,
        dim: usize,
        book: &'a Codebook,
        norms: Option<&'a [u8]>,
    ) -> Option<Self> {
        let norms = norms.map(|norms| norms.as_chunks::<4>().0);
        let fits = dim == book.dim() && norms.is_none_or(|norms| norms.len() >= rows.count());
        let finite = book.values().iter().all(|value| value.is_finite());
        let distortion = book.distortion();
        // NaN is not less.
        let rotated = distortion < MOST_DISTORTION;
        if !fits || !finite || !rotated {
            return None;
        }
        let squares = tables(book, |_, centroid| square(centroid));
        let ulp = 2f64.powi(-24);
        // Entries and their sums are rounded, and so are the values of a row times its norm.
        let mut error = 2.0 * (book.parts() as f64 + 8.0) * ulp;
        if book.projection().is_some() {
            // Each value of a row is a sum of as many products, each rounded twice at most.
            let rounding = 2.0 * (dim as f64).powf(1.5) * ulp;
            error += distortion + 2.0 * rounding;
        }
        let decoder = book.row_decoder();
        Some(Product { rows, book, decoder, norms, squares, error: 2.0 * error })
    }

    fn norm(norms: Option<&[[u8; 4]]>, row: usize) -> f32 {
        norms.map_or(1.0, |norms| f32::from_le_bytes(norms[row]))
    }
}

/// A number for each part and code. Codes without a centroid stand for the last one, as where they
/// are decoded.
#[allow(clippy::cast_possible_truncation)]
fn tables(book: &Codebook, number: impl Fn(usize, &[f32]) -> f64) -> Vec<Table> {
    let width = book.dim() / book.parts();
    let parts = book.values().chunks_exact(book.centroids() * width);
    let table = |(part, values): (usize, &[f32])| {
        let mut table = [0.0; 256];
        let mut last = 0.0;
        let mut centroids = values.chunks_exact(width);
        for entry in &mut table {
            if let Some(centroid) = centroids.next() {
                last = number(part, centroid) as f32;
            }
            *entry = last;
        }
        table
    };
    parts.enumerate().map(table).collect()
}

pub(crate) struct Prepared {
    /// For each query a table for each part.
    tables: Vec<Table>,
}

impl<R: Rows + ?Sized> Form for Product<'_, R> {
    type Block<'b>
        = Block<'b>
    where
        Self: 'b;
    type Prepared = Prepared;

    fn rows_together(&self, _: usize) -> usize {
        BLOCK_CODES / self.book.parts()
    }

    fn queries_together(&self) -> usize {
        (TABLE_BYTES / size_of::<Table>() / self.book.parts()).clamp(1, 64)
    }

    fn prepare(&self, queries: &[Query], _: Metric) -> (Prepared, Vec<Bound>) {
        let (mut all, mut bounds) = (Vec::new(), Vec::new());
        let (dim, width) = (self.book.dim(), self.book.dim() / self.book.parts());
        for query in queries {
            let square = square(query.vector);
            let trusted = square.is_finite() && square > 0.0;
            let unit = if trusted { square.sqrt() } else { 1.0 };
            // At length 1, and turned as the rows were before they were encoded.
            let mut vector: Vec<f64> = query.vector.iter().map(|v| f64::from(*v) / unit).collect();
            if let Some(projection) = self.book.projection() {
                let mut turned = vec![0.0; dim];
                for (value, row) in vector.iter().zip(projection.chunks_exact(dim)) {
                    for (sum, factor) in turned.iter_mut().zip(row) {
                        *sum += value * f64::from(*factor);
                    }
                }
                vector = turned;
            }
            all.extend(tables(self.book, |part, centroid| {
                let vector = &vector[part * width..];
                centroid.iter().zip(vector).map(|(c, v)| f64::from(*c) * v).sum()
            }));
            let error = if trusted { self.error } else { f64::INFINITY };
            bounds.push(Bound { square, unit, length: 1.0, error, tiny: 2.0 * underflow(dim) });
        }
        (Prepared { tables: all }, bounds)
    }

    fn paneled(_: &Prepared) -> usize {
        0
    }

    #[allow(clippy::cast_possible_truncation)]
    fn floor(&self) -> f32 {
        underflow(self.book.dim()) as f32
    }

    fn read<'b>(
        &'b self,
        _: &Prepared,
        (start, n): (usize, usize),
        buffers: &'b mut Buffers,
    ) -> Result<Block<'b>, Unreadable> {
        let codes = self.rows.bytes(start, n, &mut buffers.bytes)?;
        assert_eq!(codes.len(), n * self.book.parts(), "as many codes as asked for");
        Ok(Block { codes, norms: self.norms.map(|norms| &norms[start..start + n]) })
    }

    fn measure(&self, _: Level, prepared: &Prepared, block: Block, to: Sums) {
        let Sums { squares, products, .. } = to;
        let parts = self.book.parts();
        lookup_sums(block.codes, &self.squares, squares);
        let queries = prepared.tables.chunks_exact(parts);
        for (tables, products) in queries.zip(products.chunks_exact_mut(squares.len())) {
            lookup_sums(block.codes, tables, products);
            if block.norms.is_some() {
                for (row, product) in products.iter_mut().enumerate() {
                    *product *= Self::norm(block.norms, row);
                }
            }
        }
        if block.norms.is_some() {
            for (row, square) in squares.iter_mut().enumerate() {
                let norm = Self::norm(block.norms, row);
                // A norm would make more of what was lost in a tiny sum, or of a sum that became
                // infinite: such rows are looked at.
                let sound = (2f32.powi(-100)..=f32::MAX).contains(square);
                *square = if sound { *square * norm * norm } else { f32::NAN };
            }
        }
    }

    fn reach(&self, _: Level, _: &Prepared, _: Block, _: Limits) {}

    fn row<'b: 'd, 'd>(&self, block: Block<'b>, row: usize, decoded: &'d mut Decoded) -> &'d [f32]
    where
        Self: 'b,
    {
        let parts = self.book.parts();
        decoded.get(row, self.book.dim(), |out| {
            self.decoder.decode(&block.codes[row * parts..][..parts], out);
            if block.norms.is_some() {
                let norm = Self::norm(block.norms, row);
                out.iter_mut().for_each(|value| *value *= norm);
            }
        })
    }
}
