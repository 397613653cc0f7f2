//! Every row with its nearest others, and rows that are nearly the same.

use super::Index;
use weighbridge_format::{Error, Progress, Stage};
use weighbridge_search::{Ask, Hit, Metric, Query};

/// Values of the rows that go through the index together. More would save little reading.
const TOGETHER_VALUES: usize = 1 << 20;
/// Hits that are in memory at a time.
const MOST_HITS: usize = 1 << 20;

/// Rows that are nearly the same, in ascending order. What connects two of them may be a third.
pub type Group = Vec<usize>;

/// Takes a row with its nearest others.
pub type TakeHits<'a> = dyn FnMut(usize, &[Hit]) -> Result<(), Error> + 'a;

/// Gives every row with its `k` nearest others to `take`, in order of the rows. Rows that hold NaN, and
/// with the cosine those that are zero, have none.
///
/// # Errors
/// [`Error::Refused`] for `k` of 0, or as many as there are rows; if rows can't be read; those of
/// `take`; [`Error::Cancelled`].
pub fn neighbours(
    index: &Index,
    k: usize,
    metric: Metric,
    take: &mut TakeHits,
    progress: &mut Progress,
) -> Result<(), Error> {
    progress.begin(Stage::Answering, index.len() as u64)?;
    let together = (TOGETHER_VALUES / index.dim()).min(MOST_HITS / k.max(1)).max(1);
    let mut start = 0;
    while start < index.len() {
        let rows: Vec<usize> = (start..index.len().min(start + together)).collect();
        nearest_others(index, &rows, k, metric, take)?;
        start += rows.len();
        progress.advance(rows.len() as u64)?;
    }
    Ok(())
}

/// Rows of the index with their nearest others.
fn nearest_others(
    index: &Index,
    rows: &[usize],
    k: usize,
    metric: Metric,
    take: &mut TakeHits,
) -> Result<(), Error> {
    let vectors = rows.iter().map(|row| index.row(*row)).collect::<Result<Vec<_>, Error>>()?;
    let asked = |vector: &&Vec<f32>| index.can_be_asked(vector, metric);
    let queries: Vec<Query> = rows
        .iter()
        .zip(&vectors)
        .filter(|(_, vector)| asked(vector))
        .map(|(row, vector)| Query { vector, exclude: std::slice::from_ref(row) })
        .collect();
    let mut found = index.search_batch(&queries, &Ask::new(k, metric))?.into_iter();
    for (row, vector) in rows.iter().zip(&vectors) {
        let hits = if asked(&vector) { found.next().unwrap_or_default() } else { Vec::new() };
        take(*row, &hits)?;
    }
    Ok(())
}

/// The groups of rows that are connected by scores of at least `threshold`, each with two rows or
/// more, ordered by their first rows. Every pair of rows counts.
///
/// # Errors
/// If rows can't be read; [`Error::Refused`] if there are none; [`Error::Cancelled`].
pub fn group_near(
    index: &Index,
    threshold: f32,
    metric: Metric,
    progress: &mut Progress,
) -> Result<Vec<Group>, Error> {
    /// Most rows have no more that are nearly the same.
    const FIRST_LOOK: usize = 16;
    let most = index.len().saturating_sub(1);
    let mut groups = Groups((0..index.len()).collect());
    if most == 0 {
        return Ok(Vec::new());
    }
    let mut k = FIRST_LOOK.min(most);
    // Rows whose last hit is still near may have more.
    let mut open = Vec::new();
    neighbours(
        index,
        k,
        metric,
        &mut |row, hits| {
            let near = hits.iter().take_while(|hit| hit.score >= threshold);
            near.clone().for_each(|hit| groups.join(row, hit.row));
            if near.count() == k {
                open.push(row);
            }
            Ok(())
        },
        progress,
    )?;
    while k < most && !open.is_empty() {
        k = k.saturating_mul(8).min(most);
        let together = (TOGETHER_VALUES / index.dim()).min(MOST_HITS / k).max(1);
        progress.begin(Stage::Answering, open.len() as u64)?;
        let mut still = Vec::new();
        for rows in open.chunks(together) {
            nearest_others(index, rows, k, metric, &mut |row, hits| {
                let near = hits.iter().take_while(|hit| hit.score >= threshold);
                near.clone().for_each(|hit| groups.join(row, hit.row));
                if near.count() == k {
                    still.push(row);
                }
                Ok(())
            })?;
            progress.advance(rows.len() as u64)?;
        }
        open = still;
    }
    Ok(groups.list())
}

/// Which rows are connected: each knows another of its group, or that it is the first.
struct Groups(Vec<usize>);

impl Groups {
    fn first(&mut self, mut row: usize) -> usize {
        while self.0[row] != row {
            // The way becomes shorter for who comes next.
            self.0[row] = self.0[self.0[row]];
            row = self.0[row];
        }
        row
    }

    fn join(&mut self, a: usize, b: usize) {
        let (a, b) = (self.first(a), self.first(b));
        // The lower one is the first.
        self.0[a.max(b)] = a.min(b);
    }

    fn list(mut self) -> Vec<Group> {
        let mut members: std::collections::BTreeMap<usize, Group> = Default::default();
        for row in 0..self.0.len() {
            let first = self.first(row);
            if first != row {
                members.entry(first).or_insert_with(|| vec![first]).push(row);
            }
        }
        members.into_values().collect()
    }
}
