//! What can be asked of rows, and what is answered.

use crate::{Error, Hit, Metric, Query, RowSet, Rows, exact};

/// How many rows are wanted, by which metric, and among which.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Ask<'a> {
    /// How many rows for each query.
    pub k: usize,
    /// What makes a row near.
    pub metric: Metric,
    /// Only rows below this are found: `usize::MAX` for all.
    pub limit: usize,
    /// Only rows of this set are found, if there is one.
    pub among: Option<&'a RowSet>,
}

impl<'a> Ask<'a> {
    /// For the `k` nearest of all rows.
    pub fn new(k: usize, metric: Metric) -> Ask<'a> {
        Ask { k, metric, limit: usize::MAX, among: None }
    }

    /// Among the first rows only, or all where there are fewer.
    #[must_use]
    pub fn with_limit(self, limit: usize) -> Ask<'a> {
        Ask { limit, ..self }
    }

    /// Among the rows of a set only.
    #[must_use]
    pub fn among(self, rows: &'a RowSet) -> Ask<'a> {
        Ask { among: Some(rows), ..self }
    }
}

/// What a search found.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Found {
    /// For each query its rows, the nearest first, of equal scores the lower row.
    pub hits: Vec<Vec<Hit>>,
    /// Rows that were looked at and that hold NaN or an infinity, if there are any.
    pub not_finite: Option<NotFinite>,
}

impl Found {
    /// For indexes of others.
    pub fn new(hits: Vec<Vec<Hit>>, not_finite: Option<NotFinite>) -> Found {
        Found { hits, not_finite }
    }
}

/// Rows that hold NaN or an infinity. None with NaN is ever found, nor by the cosine one with an
/// infinity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NotFinite {
    /// How many there are.
    pub rows: usize,
    /// The first of them.
    pub first: usize,
}

/// What can be asked for the nearest rows: all rows themselves, or an index of them.
pub trait Neighbours: Sync {
    /// How many rows there are.
    fn count(&self) -> usize;

    /// How many values a row, and so a query, has.
    fn dim(&self) -> usize;

    /// The rows nearest to each query.
    ///
    /// # Errors
    ///
    /// When a query does not have as many values as a row, or rows can't be read.
    fn search(&self, queries: &[Query], ask: &Ask) -> Result<Found, Error>;
}

/// Searches by looking at every row: what it finds are the nearest rows.
#[derive(Clone, Copy, Debug)]
pub struct Exact<R>(R);

impl<R: Rows> Exact<R> {
    /// Of these rows.
    pub fn new(rows: R) -> Exact<R> {
        Exact(rows)
    }

    /// The rows.
    pub fn rows(&self) -> &R {
        &self.0
    }
}

impl<R: Rows> Neighbours for Exact<R> {
    fn count(&self) -> usize {
        self.0.count()
    }

    fn dim(&self) -> usize {
        self.0.dim()
    }

    /// # Panics
    ///
    /// When the rows lend another number of values or bytes than they were asked for.
    fn search(&self, queries: &[Query], ask: &Ask) -> Result<Found, Error> {
        exact::search(&self.0, queries, ask)
    }
}

/// The `k` rows nearest to each query, the nearest first, of equal scores the lower row; fewer
/// where there are not so many. Rows whose score is NaN are not found.
///
/// # Errors
///
/// When a query does not have as many values as a row, or rows can't be read.
///
/// # Panics
///
/// When the rows lend another number of values or bytes than they were asked for.
pub fn nearest<R: Rows + ?Sized>(
    rows: &R,
    queries: &[Query],
    k: usize,
    metric: Metric,
) -> Result<Vec<Vec<Hit>>, Error> {
    Ok(exact::search(rows, queries, &Ask::new(k, metric))?.hits)
}
