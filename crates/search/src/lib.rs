//! The rows of a matrix that are nearest to a vector, exactly: every row is looked at.
//!
//! ```
//! use weighbridge_search::{Matrix, Metric, Query, nearest};
//!
//! let rows = Matrix::new(&[1.0, 0.0, 0.6, 0.8, 0.0, 2.0], 2)?;
//! let query = Query { vector: &[0.0, 1.0], exclude: &[] };
//! let found = nearest(&rows, &[query], 2, Metric::Cosine)?;
//! assert_eq!((found[0][0].row, found[0][0].score), (2, 1.0));
//! assert_eq!(found[0][1].row, 1);
//! # Ok::<(), weighbridge_search::Error>(())
//! ```
//!
//! * [`Rows`]: any matrix, lent or decoded block by block, also as it is stored ([`Stored`]);
//!   [`Matrix`] for values in memory.
//! * [`nearest`]: the best rows for one query or many, on all cores of the rayon pool that it is
//!   called in. [`Ask`] says more: among which rows.
//! * [`Neighbours`]: what can be asked. [`Exact`] looks at every row.
//! * [`score`]: what results are ranked by.
//!
//! What is found depends on the values alone: not on the number of threads, nor on the other
//! queries of a batch, nor on how the rows are lent; and scores have the same bits.
//!
//! # How it is exact
//!
//! A search reads rows as fast as memory gives them, in the encoding that they have, and multiplies
//! them with f32 or integers. Each such product comes with a bound of its error. A row that could be
//! one of the best by that is scored once more in f64, as [`score`] defines it; these are few.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod ask;
mod bound;
mod exact;
mod form;
mod row_set;
mod rows;
mod score;
mod top;

pub use ask::{Ask, Exact, Found, Neighbours, NotFinite, nearest};
pub use row_set::RowSet;
pub use rows::{Matrix, Rows, Stored};
pub use score::score;

use std::fmt;

/// What makes a row near.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Metric {
    /// The dot product: larger is nearer.
    Dot,
    /// The cosine similarity: the dot product of the two vectors at length 1. Neither rows nor
    /// queries need to have length 1, and any length that is not infinite will do. A row or a query
    /// of zeros scores 0.
    Cosine,
    /// The Euclidean distance, negative, so that higher is nearer here too.
    L2,
}

/// A vector to find the nearest rows of, and rows that are not wanted.
#[derive(Clone, Copy, Debug)]
pub struct Query<'a> {
    /// The vector, with as many values as a row.
    pub vector: &'a [f32],
    /// Indices of rows to leave out, in any order. They may be there twice, or not be rows at all.
    pub exclude: &'a [usize],
}

/// A row that was found. Its score is not NaN.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Hit {
    /// The index of the row.
    pub row: usize,
    /// The row's dot product with the query, its cosine, or its negative distance; higher is
    /// nearer. Rows are ranked by the same in f64, see [`score`], so that two may have the same
    /// here.
    pub score: f32,
}

/// What keeps rows from being read.
pub type Unreadable = Box<dyn std::error::Error + Send + Sync>;

/// Why a search can't be done, or a matrix not be made.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// Rows could not be read.
    Rows(Unreadable),
    /// A query has another number of values than a row.
    Dimension {
        /// The index of the query.
        query: usize,
        /// Values of a row.
        expected: usize,
        /// Values of the query.
        found: usize,
    },
    /// Values are not whole rows, or rows would have no values.
    Shape {
        /// How many values there are.
        values: usize,
        /// How many values a row should have.
        dim: usize,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Error::Rows(why) => write!(f, "{why}"),
            Error::Dimension { query, expected, found } => {
                write!(f, "query {query} has {found} values where rows have {expected}")
            }
            Error::Shape { values, dim } => {
                write!(f, "{values} values can't be rows of {dim}")
            }
        }
    }
}

impl std::error::Error for Error {}

impl From<Unreadable> for Error {
    fn from(why: Unreadable) -> Error {
        Error::Rows(why)
    }
}
