//! Stand-in.
#![allow(missing_docs)]
use crate::*;

#[derive(Clone, Debug, Default)]
pub struct RowSet(Vec<bool>);
impl RowSet {
    pub fn new(count: usize) -> RowSet {
        RowSet(vec![false; count])
    }
    pub fn insert(&mut self, row: usize) {
        self.0[row] = true;
    }
    pub fn contains(&self, row: usize) -> bool {
        self.0.get(row).copied().unwrap_or(false)
    }
    pub fn len(&self) -> usize {
        self.0.iter().filter(|b| **b).count()
    }
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
    pub fn from_fn(count: usize, f: impl Fn(usize) -> bool) -> RowSet {
        RowSet((0..count).map(f).collect())
    }
}
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Ask<'a> {
    pub k: usize,
    pub metric: Metric,
    pub limit: usize,
    pub among: Option<&'a RowSet>,
}
impl<'a> Ask<'a> {
    pub fn new(k: usize, metric: Metric) -> Self {
        Ask { k, metric, limit: usize::MAX, among: None }
    }
    pub fn with_limit(self, limit: usize) -> Self {
        Ask { limit, ..self }
    }
    pub fn among(self, set: &'a RowSet) -> Self {
        Ask { among: Some(set), ..self }
    }
}
#[derive(Debug)]
#[non_exhaustive]
pub struct Found {
    pub hits: Vec<Vec<Hit>>,
    pub not_finite: Option<NotFinite>,
}
pub trait Neighbours: Sync {
    fn count(&self) -> usize;
    fn dim(&self) -> usize;
    fn search(&self, queries: &[Query], ask: &Ask) -> Result<Found, Error>;
}
#[derive(Debug)]
pub struct Exact<R>(R);
impl<R: Rows> Exact<R> {
    pub fn new(rows: R) -> Self {
        Exact(rows)
    }
}
impl<R: Rows> Neighbours for Exact<R> {
    fn count(&self) -> usize {
        self.0.count()
    }
    fn dim(&self) -> usize {
        self.0.dim()
    }
    fn search(&self, queries: &[Query], ask: &Ask) -> Result<Found, Error> {
        let (mut hits, not_finite) =
            nearest_telling(&self.0, ask.limit, queries, usize::MAX, ask.metric)?;
        for list in &mut hits {
            list.retain(|h| ask.among.is_none_or(|s| s.contains(h.row)));
            list.truncate(ask.k);
        }
        Ok(Found { hits, not_finite })
    }
}
pub fn score(row: &[f32], query: &[f32], metric: Metric) -> f64 {
    let dot = |a: &[f32], b: &[f32]| {
        a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum::<f64>()
    };
    match metric {
        Metric::Dot => dot(row, query),
        Metric::Cosine => dot(row, query) / (dot(row, row) * dot(query, query)).sqrt(),
        Metric::L2 => -row
            .iter()
            .zip(query)
            .map(|(a, b)| (f64::from(*a) - f64::from(*b)).powi(2))
            .sum::<f64>()
            .sqrt(),
    }
}
