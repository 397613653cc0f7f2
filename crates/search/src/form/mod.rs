//! The forms that rows come in, and what a search asks of them.
//!
//! * [`floats`]: f32, f16, bf16, and everything that is decoded to f32.
//! * [`codes`]: a byte for each value.
//! * [`product`]: a byte for each part of a row.

pub(crate) mod codes;
pub(crate) mod floats;
pub(crate) mod product;

use crate::bound::Bound;
use crate::{Metric, Query, Unreadable};
use weighbridge_codec::dot::Reached;
use weighbridge_codec::panel::PANEL;
use weighbridge_codec::simd::Level;

/// Rows in one form: approximate products with queries, and the values of single rows.
pub(crate) trait Form: Sync {
    /// Rows that were read.
    type Block<'b>: Copy
    where
        Self: 'b;
    /// Queries as this form needs them.
    type Prepared: Sync;

    /// How many rows are taken at a time.
    fn rows_together(&self, queries: usize) -> usize;
    /// How many queries may go through the rows together.
    fn queries_together(&self) -> usize;
    /// Makes queries ready, and says how good their products are.
    fn prepare(&self, queries: &[Query], metric: Metric) -> (Self::Prepared, Vec<Bound>);
    /// How many queries, from the first on, are packed into panels. The others are *loose*.
    fn paneled(prepared: &Self::Prepared) -> usize;
    /// What squared lengths may be too small by.
    fn floor(&self) -> f32;

    fn read<'b>(
        &'b self,
        prepared: &Self::Prepared,
        rows: (usize, usize),
        buffers: &'b mut Buffers,
    ) -> Result<Self::Block<'b>, Unreadable>;
    /// Fills in the rows' squared lengths, and their products with the loose queries.
    fn measure(&self, level: Level, prepared: &Self::Prepared, block: Self::Block<'_>, to: Sums);
    /// Tells which rows reach the limits of queries in panels.
    fn reach(
        &self,
        level: Level,
        prepared: &Self::Prepared,
        block: Self::Block<'_>,
        limits: Limits,
    );
    /// The values of one of the rows.
    fn row<'b: 'd, 'd>(
        &self,
        block: Self::Block<'b>,
        row: usize,
        decoded: &'d mut Decoded,
    ) -> &'d [f32]
    where
        Self: 'b;
}

/// What rows are read and decoded into.
#[derive(Debug, Default)]
pub(crate) struct Buffers {
    pub(crate) floats: Vec<f32>,
    pub(crate) bytes: Vec<u8>,
}

/// Where the sums of a block go: a square for each row, and for each loose query a product with each.
pub(crate) struct Sums<'a> {
    pub(crate) metric: Metric,
    pub(crate) squares: &'a mut [f32],
    pub(crate) products: &'a mut [f32],
}

/// What products have to reach, for each column of the panels, and what is told of them.
pub(crate) struct Limits<'a> {
    pub(crate) xs: &'a [f32],
    pub(crate) lines: (&'a [f32], &'a [f32]),
    pub(crate) told: &'a mut Vec<Reached>,
    /// For rows in another width.
    pub(crate) pairs: &'a mut Vec<[i16; 2]>,
}

/// The row of a block that was decoded last: several queries may want to see it.
#[derive(Debug, Default)]
pub(crate) struct Decoded {
    row: Option<usize>,
    values: Vec<f32>,
}

impl Decoded {
    /// For another block.
    pub(crate) fn forget(&mut self) {
        self.row = None;
    }

    fn get(&mut self, row: usize, dim: usize, decode: impl FnOnce(&mut [f32])) -> &[f32] {
        if self.row != Some(row) {
            self.values.resize(dim, 0.0);
            decode(&mut self.values);
            self.row = Some(row);
        }
        &self.values
    }
}

/// How many of some queries are packed into panels: those that fill them, and the rest too where
/// that is quicker than one by one.
fn in_panels(queries: usize) -> usize {
    if queries % PANEL > PANEL / 2 { queries } else { queries / PANEL * PANEL }
}
