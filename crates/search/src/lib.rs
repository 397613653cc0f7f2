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
//! * [`Rows`]: any matrix, lent or decoded block by block; [`Matrix`] for values in memory.
//! * [`nearest`]: the best rows for one query or many, on all cores of the rayon pool that it is
//!   called in.
//!
//! What is found depends on the values alone: not on the number of threads, nor on the other
//! queries of a batch, nor on how the rows are lent; and scores have the same bits.

#![forbid(unsafe_code)]

mod nearest;
mod prepared;
mod rows;
mod top;

pub use nearest::{nearest, nearest_within};
pub use rows::{Matrix, Rows};

use std::fmt;

/// What makes a row near.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Metric {
    /// The sum of products.
    Dot,
    /// The cosine of the angle. Neither rows nor queries need to have length 1, and any length that
    /// is not infinite will do. A row or a query of zeros scores 0. By rounding, a score can be
    /// above 1 by some 10^-7.
    Cosine,
}

/// A vector, and rows that are not wanted.
#[derive(Clone, Copy, Debug)]
pub struct Query<'a> {
    pub vector: &'a [f32],
    /// In any order; there may be rows twice, and rows that are not there.
    pub exclude: &'a [usize],
}

/// A row that was found. Its score is not NaN.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Hit {
    pub row: usize,
    pub score: f32,
}

/// Why there can't be a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// The query with this index has not as many values as a row.
    Dimension { query: usize, expected: usize, found: usize },
    /// So many values are not whole rows of that many.
    Shape { values: usize, dim: usize },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
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
