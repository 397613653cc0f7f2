//! Making a codebook for rows.

use super::lloyd::{Blocks, Shape};
use super::random::Random;
use super::{Codebook, lloyd, mean, rotation};
use std::fmt;
use std::ops::ControlFlow;

/// How to make a codebook.
#[derive(Clone, Debug, PartialEq)]
pub struct Training {
    /// Parts (subvectors) of a row, which become a byte each.
    pub parts: usize,
    /// Centroids of a part, 1 to 256.
    pub centroids: usize,
    /// Rounds of k-means. The first ones look at some of the rows, the last ones at all.
    pub iterations: usize,
    /// Other seeds give other codebooks, about as good.
    pub seed: u64,
    /// Whether to look for a rotation of the rows (optimized product quantization).
    pub rotate: bool,
    /// Rounds of looking for the rotation.
    pub rotations: usize,
}

impl Training {
    /// The usual training of bytes: 256 centroids for each part.
    pub fn new(parts: usize) -> Training {
        Training { parts, centroids: 256, iterations: 20, seed: 1, rotate: false, rotations: 20 }
    }

    /// A codebook for rows of `dim` values, of which all are looked at: give a sample of very many.
    /// It is the same for the same rows and settings however many threads there are. `progress` is
    /// called with the fraction of the work that is done, and can end it.
    ///
    /// # Errors
    ///
    /// When rows can't be cut as the settings say, there are no whole rows, or a value is NaN,
    /// infinite or beyond 10^15; when `progress` ends the work. See [`TrainingError`].
    pub fn train(
        &self,
        rows: &[f32],
        dim: usize,
        progress: &mut dyn FnMut(f64) -> ControlFlow<()>,
    ) -> Result<Codebook, TrainingError> {
        let shape = self.shape(rows, dim)?;
        if rows.len() / dim <= self.centroids {
            return Ok(self.codebook_of_rows(rows, shape));
        }
        let random = Random::new(self.seed);
        let order = random.fork(usize::MAX).permutation(rows.len() / dim);
        // Rows are centered: distances and rotations do not change by it, but rounding errors do.
        let offset = mean(rows, dim);
        let mut blocks = Blocks::gather(rows, dim, &order, &offset);
        let mut values = Vec::new();
        let mut columns = None;
        let mut rotation_share = 0.0;
        if self.rotate && self.parts > 1 {
            rotation_share = 0.9;
            let found = rotation::find(&blocks, shape, self.rotations, &random, &mut |done| {
                progress(rotation_share * done)
            });
            let ControlFlow::Continue(found) = found else { return Err(TrainingError::Stopped) };
            blocks.rotate(&found.columns);
            columns = Some(found.columns);
            values = found.centroids;
        }
        // The search for a rotation leaves centroids that need only be fitted to all rows.
        let warm = !values.is_empty();
        let rounds = if warm { self.iterations.div_ceil(4) } else { self.iterations };
        if !warm {
            values = lloyd::initial_centroids(blocks.first(usize::MAX), shape, &random);
        }
        for round in 0..rounds {
            let rows = if warm { usize::MAX } else { rows_of_round(round, rounds, shape) };
            let (random, last) = (random.fork(round + 1), round + 1 == rounds);
            let changed = lloyd::iterate(blocks.first(rows), shape, &mut values, &random, last);
            let rest = (1.0 - rotation_share) * (round + 1) as f64 / rounds as f64;
            if progress(rotation_share + rest).is_break() {
                return Err(TrainingError::Stopped);
            }
            if !changed && rows >= blocks.rows() {
                break;
            }
        }
        let offset = match &columns {
            Some(columns) => columns.chunks_exact(dim).map(|column| dot(&offset, column)).collect(),
            None => offset,
        };
        for (part, offset) in
            values.chunks_exact_mut(shape.table_len()).zip(offset.chunks_exact(shape.width()))
        {
            for centroid in part.chunks_exact_mut(shape.width()) {
                centroid.iter_mut().zip(offset).for_each(|(value, offset)| *value += offset);
            }
        }
        let projection = columns.map(|columns| super::linear::transposed(&columns, dim));
        Ok(self.codebook(values, projection, dim))
    }

    fn shape(&self, rows: &[f32], dim: usize) -> Result<Shape, TrainingError> {
        let Training { parts, centroids, .. } = *self;
        if !(1..=256).contains(&centroids) {
            return Err(TrainingError::Centroids { centroids });
        }
        if dim == 0 || parts == 0 || !dim.is_multiple_of(parts) {
            return Err(TrainingError::Parts { parts, dim });
        }
        if rows.is_empty() || !rows.len().is_multiple_of(dim) {
            return Err(TrainingError::Rows { values: rows.len(), dim });
        }
        // Sums of squares of larger ones might not be finite.
        let limit = 1e15;
        if let Some(i) = rows.iter().position(|v| v.is_nan() || v.abs() > limit) {
            return Err(TrainingError::Value { row: i / dim, column: i % dim, value: rows[i] });
        }
        Ok(Shape { dim, parts, centroids })
    }

    /// A codebook for at most as many rows as centroids: each part of each row is a centroid,
    /// repeated until there are enough.
    fn codebook_of_rows(&self, rows: &[f32], shape: Shape) -> Codebook {
        let width = shape.width();
        let mut values = Vec::with_capacity(shape.dim * shape.centroids);
        for part in 0..shape.parts {
            for row in rows.chunks_exact(shape.dim).cycle().take(shape.centroids) {
                values.extend_from_slice(&row[part * width..][..width]);
            }
        }
        self.codebook(values, None, shape.dim)
    }

    fn codebook(&self, values: Vec<f32>, projection: Option<Vec<f32>>, dim: usize) -> Codebook {
        // Where a rotation was asked for there is one, if only the identity.
        let projection = projection.or_else(|| self.rotate.then(|| super::linear::identity(dim)));
        Codebook {
            dim,
            parts: self.parts,
            centroids: self.centroids,
            values,
            projection,
            distortion: Default::default(),
        }
    }
}

/// How many rows a round looks at. Early rounds move centroids a lot whatever rows they see, so few
/// are enough: the result is about that of looking at all rows always.
fn rows_of_round(round: usize, rounds: usize, shape: Shape) -> usize {
    let left = rounds - round;
    if left <= rounds.div_ceil(7) {
        usize::MAX
    } else if left <= rounds * 9 / 20 {
        shape.centroids * 128
    } else {
        shape.centroids * 64
    }
}

/// Why there is no codebook.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum TrainingError {
    /// The number of centroids is not one that a code of a byte can have: 1 to 256.
    Centroids {
        /// The number that was asked for.
        centroids: usize,
    },
    /// Rows can't be cut into parts of the same length.
    Parts {
        /// The parts that were asked for.
        parts: usize,
        /// Values of a row.
        dim: usize,
    },
    /// There are no rows, or not whole ones.
    Rows {
        /// Values of all rows.
        values: usize,
        /// Values that a row should have.
        dim: usize,
    },
    /// A value is NaN, infinite, or beyond 10^15, where sums of squares might not be finite.
    Value {
        /// The row that it is in.
        row: usize,
        /// The column that it is in.
        column: usize,
        /// The value.
        value: f32,
    },
    /// Whoever was told the progress ended the work.
    Stopped,
}

impl fmt::Display for TrainingError {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            TrainingError::Centroids { centroids } => {
                write!(f, "{centroids} centroids: a code of a byte is for 1 to 256")
            }
            TrainingError::Parts { parts, dim } => {
                write!(f, "rows of {dim} values can't be cut into {parts} parts of the same length")
            }
            TrainingError::Rows { values: 0, .. } => write!(f, "no rows to learn from"),
            TrainingError::Rows { values, dim } => {
                write!(f, "{values} values are not whole rows of {dim}")
            }
            TrainingError::Value { row, column, value } => {
                write!(f, "row {row} has {value} at {column}: it can't be learnt from")
            }
            TrainingError::Stopped => f.write_str("it was stopped"),
        }
    }
}

impl std::error::Error for TrainingError {}

fn dot(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}
