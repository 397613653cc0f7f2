//! Product quantization: a row is cut into parts (subvectors), and each part becomes the number of
//! the nearest of at most 256 centroids.
//!
//! * [`Codebook`]: the centroids of all parts, and the rotation that rows may take before they are
//!   cut. It encodes and decodes.
//! * [`Training`]: makes a codebook for some rows, by k-means for each part. With `rotate`, it also
//!   finds the rotation with which quantization loses least (optimized product quantization).
//!
//! * [`RowDecoder`]: decodes single rows.
//!
//! Inside, `kernels` has the two loops that all time is spent in;
//! `lloyd` is k-means, `rotation` the search for the rotation, `linear` the algebra for that.

mod kernels;
mod linear;
mod lloyd;
mod random;
mod rotation;
mod single;
#[cfg(test)]
mod tests;
mod train;

use kernels::{Centroids, LANES, Lanes, Tiles};
pub use linear::{dot, eigen};
pub use single::RowDecoder;
pub use train::{Training, TrainingError};

/// What product-quantized rows are decoded with.
#[derive(Clone, Debug, PartialEq)]
pub struct Codebook {
    dim: usize,
    parts: usize,
    centroids: usize,
    values: Vec<f32>,
    projection: Option<Vec<f32>>,
    distortion: single::Distortion,
}

impl Codebook {
    /// A codebook of `values[part][centroid][value]`. `projection` is an orthogonal matrix of `dim`
    /// rows and columns: a row times it is what was quantized. `None` unless `parts` divides `dim`,
    /// there are 1 to 256 centroids, and the lengths fit.
    pub fn new(
        dim: usize,
        parts: usize,
        centroids: usize,
        values: Vec<f32>,
        projection: Option<Vec<f32>>,
    ) -> Option<Codebook> {
        let sound = dim > 0
            && parts > 0
            && dim.is_multiple_of(parts)
            && (1..=256).contains(&centroids)
            && dim.checked_mul(centroids) == Some(values.len())
            && projection.as_ref().is_none_or(|p| dim.checked_mul(dim) == Some(p.len()));
        let distortion = single::Distortion::default();
        sound.then_some(Codebook { dim, parts, centroids, values, projection, distortion })
    }

    /// Values of a row.
    pub fn dim(&self) -> usize {
        self.dim
    }

    /// Parts (subvectors) of a row, which is the number of codes of a row too.
    pub fn parts(&self) -> usize {
        self.parts
    }

    /// Centroids of a part.
    pub fn centroids(&self) -> usize {
        self.centroids
    }

    /// All centroids, as `[part][centroid][value]`.
    pub fn values(&self) -> &[f32] {
        &self.values
    }

    /// The matrix that a row is multiplied with before it is quantized, row by row; `None` without
    /// a rotation.
    pub fn projection(&self) -> Option<&[f32]> {
        self.projection.as_deref()
    }

    /// Decodes rows of a code for each part. A code beyond the last centroid is taken for the last.
    ///
    /// # Panics
    ///
    /// When `out` does not have whole rows, or `codes` not as many.
    pub fn decode(&self, codes: &[u8], out: &mut [f32]) {
        self.check_lengths(out, codes);
        let Some(projection) = &self.projection else {
            for (codes, row) in codes.chunks_exact(self.parts).zip(out.chunks_exact_mut(self.dim)) {
                for ((part, &code), out) in
                    codes.iter().enumerate().zip(row.chunks_exact_mut(self.width()))
                {
                    out.copy_from_slice(self.centroid(part, code));
                }
            }
            return;
        };
        // The projection's inverse is its transpose: a row of it makes one value of a row.
        let projection = Tiles::new(projection, self.dim);
        let mut rotated = vec![[0.0; LANES]; self.dim];
        let mut block = rotated.clone();
        for (codes, rows) in codes.chunks(LANES * self.parts).zip(out.chunks_mut(LANES * self.dim))
        {
            for (lane, codes) in codes.chunks_exact(self.parts).enumerate() {
                for ((part, &code), values) in
                    codes.iter().enumerate().zip(rotated.chunks_exact_mut(self.width()))
                {
                    for (values, &value) in values.iter_mut().zip(self.centroid(part, code)) {
                        values[lane] = value;
                    }
                }
            }
            projection.products(&rotated, &mut block);
            kernels::unpack(&block, rows);
        }
    }

    /// The values from `skip` on of one row, of a codebook without a rotation.
    ///
    /// # Panics
    ///
    /// When the row does not have so many, or `codes` is not one row.
    pub fn decode_part(&self, codes: &[u8], skip: usize, out: &mut [f32]) {
        assert!(codes.len() == self.parts && skip + out.len() <= self.dim);
        let width = self.width();
        let mut done = 0;
        while done < out.len() {
            let (part, from) = ((skip + done) / width, (skip + done) % width);
            let values = &self.centroid(part, codes[part])[from..];
            let n = values.len().min(out.len() - done);
            out[done..done + n].copy_from_slice(&values[..n]);
            done += n;
        }
    }

    /// The numbers of the nearest centroids, for each row and part. It prepares for as long as a few
    /// rows take, so it should be given many rows at once; it uses the calling thread only. Parts
    /// with NaN or infinity get any code.
    ///
    /// # Panics
    ///
    /// When `rows` are not whole rows, or `codes` does not have a place for each part exactly.
    pub fn encode(&self, rows: &[f32], codes: &mut [u8]) {
        self.check_lengths(rows, codes);
        let nearest = Nearest::new(self);
        let columns = self.projection.as_ref();
        let columns = columns.map(|p| Tiles::new(&linear::transposed(p, self.dim), self.dim));
        let zeros = vec![0.0; self.dim];
        let mut block = vec![[0.0; LANES]; self.dim];
        let mut rotated = block.clone();
        for (rows, codes) in rows.chunks(LANES * self.dim).zip(codes.chunks_mut(LANES * self.parts))
        {
            match &columns {
                Some(columns) => {
                    kernels::pack(rows, &zeros, &mut block);
                    columns.products(&block, &mut rotated);
                    for (values, offset) in rotated.iter_mut().zip(&nearest.offset) {
                        values.iter_mut().for_each(|value| *value -= offset);
                    }
                    nearest.encode(&rotated, codes);
                }
                None => {
                    kernels::pack(rows, &nearest.offset, &mut block);
                    nearest.encode(&block, codes);
                }
            }
        }
    }

    /// Values of a part.
    fn width(&self) -> usize {
        self.dim / self.parts
    }

    fn centroid(&self, part: usize, code: u8) -> &[f32] {
        let code = usize::from(code).min(self.centroids - 1);
        &self.values[(part * self.centroids + code) * self.width()..][..self.width()]
    }

    fn check_lengths(&self, rows: &[f32], codes: &[u8]) {
        assert!(rows.len().is_multiple_of(self.dim), "rows of {} values", self.dim);
        assert_eq!(codes.len(), rows.len() / self.dim * self.parts, "a code for each part");
    }
}

/// A codebook made ready for finding the nearest centroids.
struct Nearest {
    /// The mean of the centroids, which is subtracted from them and from rows: the differences of
    /// distances would be lost in rounding where all rows are far from zero.
    offset: Vec<f32>,
    tables: Vec<Centroids>,
}

impl Nearest {
    fn new(codebook: &Codebook) -> Nearest {
        let width = codebook.width();
        let mut offset = Vec::with_capacity(codebook.dim);
        let mut values = codebook.values.clone();
        for part in values.chunks_exact_mut(codebook.centroids * width) {
            let mean = mean(part, width);
            for centroid in part.chunks_exact_mut(width) {
                centroid.iter_mut().zip(&mean).for_each(|(value, mean)| *value -= mean);
            }
            offset.extend(mean);
        }
        let parts = values.chunks_exact(codebook.centroids * width);
        Nearest { offset, tables: parts.map(|values| Centroids::new(values, width)).collect() }
    }

    /// The codes of a block's rows, as many as there is room for.
    fn encode(&self, block: &[Lanes], codes: &mut [u8]) {
        let parts = self.tables.len();
        let blocks = block.chunks_exact(block.len() / parts);
        for (part, (block, table)) in blocks.zip(&self.tables).enumerate() {
            for (codes, code) in codes.chunks_exact_mut(parts).zip(table.nearest(block)) {
                codes[part] = code;
            }
        }
    }
}

/// The mean of rows. Zero where it is not finite, so that one broken row does not spoil the others.
#[allow(clippy::cast_possible_truncation)]
fn mean(rows: &[f32], width: usize) -> Vec<f32> {
    let mut sums = vec![0.0f64; width];
    for row in rows.chunks_exact(width) {
        sums.iter_mut().zip(row).for_each(|(sum, &value)| *sum += f64::from(value));
    }
    let count = (rows.len() / width).max(1) as f64;
    let mean = |sum: f64| (sum / count) as f32;
    sums.into_iter().map(|sum| if sum.is_finite() { mean(sum) } else { 0.0 }).collect()
}
