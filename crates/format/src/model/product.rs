//! Product quantization: each part of a vector is the number of a centroid.

use super::Tensor;
use crate::Error;
use crate::source::View;
use crate::wire::{Rule, to_len};
use std::sync::OnceLock;
use weighbridge_codec::product::Codebook;

/// How the codes of a matrix become rows. The parts stand as they lie in a file, f32 little-endian.
#[derive(Clone, Debug)]
pub struct Product {
    /// Values in a row.
    pub dim: u64,
    /// Codes in a row; each stands for `dim / parts` values.
    pub parts: u64,
    /// Centroids that a code chooses from, 256 at most.
    pub centroids: u64,
    /// `[parts][centroids][dim / parts]`.
    pub values: View,
    /// `[dim][dim]`; a reconstructed row is multiplied with its transpose.
    pub projection: Option<View>,
    /// A factor for every row.
    pub norms: Option<View>,
    /// The file that the codes are in, and the rule that each has a centroid.
    pub(crate) checked: Option<(String, Rule)>,
    book: OnceLock<Option<Codebook>>,
}

/// Parts that can't be read are like no others.
impl PartialEq for Product {
    fn eq(&self, other: &Self) -> bool {
        let same = |a: &View, b: &View| a.same_bytes(b).unwrap_or(false);
        let both = |a: &Option<View>, b: &Option<View>| match (a, b) {
            (Some(a), Some(b)) => same(a, b),
            (None, None) => true,
            _ => false,
        };
        (self.dim, self.parts, self.centroids) == (other.dim, other.parts, other.centroids)
            && same(&self.values, &other.values)
            && both(&self.projection, &other.projection)
            && both(&self.norms, &other.norms)
    }
}

impl Product {
    /// `None` when the sizes do not agree with each other.
    pub fn new(
        [dim, parts, centroids]: [u64; 3],
        values: View,
        projection: Option<View>,
        norms: Option<View>,
    ) -> Option<Product> {
        let sound = parts > 0
            && dim.is_multiple_of(parts)
            && (1..=256).contains(&centroids)
            && dim.checked_mul(centroids)?.checked_mul(4)? == values.len();
        let square = dim.checked_mul(dim).and_then(|n| n.checked_mul(4));
        let turned = projection.as_ref().is_none_or(|p| square == Some(p.len()));
        (sound && turned).then(|| Product {
            dim,
            parts,
            centroids,
            values,
            projection,
            norms,
            checked: None,
            book: OnceLock::new(),
        })
    }

    /// What codes are decoded with. It is made once.
    ///
    /// # Errors
    /// If the centroids can't be read.
    pub fn book(&self) -> Result<Option<&Codebook>, Error> {
        if self.book.get().is_none() {
            let sizes = [self.dim, self.parts, self.centroids].map(to_len);
            let projection = self.projection.as_ref().map(View::load).transpose()?;
            let projection = projection.as_deref().map(floats);
            let values = floats(&self.values.in_place()?);
            let book = Codebook::new(sizes[0], sizes[1], sizes[2], values, projection);
            // Another thread may have been faster; both made the same.
            let _ = self.book.set(book);
        }
        Ok(self.book.get().and_then(Option::as_ref))
    }

    /// Its name in reports.
    pub fn name(&self) -> &'static str {
        if self.projection.is_some() { "opq" } else { "pq" }
    }

    /// Bytes of the codes; `None` when the shape is not that of such rows.
    pub(super) fn codes_len(&self, shape: &[u64]) -> Option<u64> {
        match shape {
            [rows, dim] if *dim == self.dim => rows.checked_mul(self.parts),
            _ => None,
        }
    }

    /// Bytes of centroids, projection and norms.
    pub(super) fn side_len(&self) -> u64 {
        let parts = [Some(&self.values), self.projection.as_ref(), self.norms.as_ref()];
        parts.into_iter().flatten().map(View::len).sum()
    }

    /// There is a norm for every row of a matrix of this shape, if there are any.
    pub(super) fn fits(&self, shape: &[u64]) -> bool {
        let rows = shape.first().copied().unwrap_or(0);
        self.codes_len(shape).is_some()
            && self.norms.as_ref().is_none_or(|n| rows.checked_mul(4) == Some(n.len()))
    }

    /// Values from element `start` of a tensor on.
    pub(super) fn decode(
        &self,
        tensor: &Tensor,
        start: u64,
        out: &mut [f32],
        raw: &mut Vec<u8>,
    ) -> Result<(), Error> {
        let Some(book) = self.book()?.filter(|_| self.dim > 0) else {
            out.fill(0.0);
            return Ok(());
        };
        let dim = to_len(self.dim);
        let (first, skipped) = (start / self.dim, to_len(start % self.dim));
        let rows = (skipped + out.len()).div_ceil(dim);
        // Codes of a mapped file may change after they were looked at, and each must have a centroid.
        let codes = &tensor.row_bytes(first, rows as u64, raw)?.to_vec();
        self.check_codes(tensor, first, codes)?;
        // Whole rows go to their place at once.
        if skipped == 0 && out.len() == rows * dim {
            book.decode(codes, out);
            return self.scale(first, out);
        }
        // Parts of a wide row are copied by themselves: all of it for each would take its square.
        if rows == 1 && book.projection().is_none() && self.norms.is_none() {
            book.decode_part(codes, skipped, out);
            return Ok(());
        }
        let mut values = vec![0.0; rows * dim];
        book.decode(codes, &mut values);
        self.scale(first, &mut values)?;
        out.copy_from_slice(&values[skipped..skipped + out.len()]);
        Ok(())
    }

    /// Whether there is a centroid for each code of some rows of a tensor, from a row on.
    ///
    /// # Errors
    /// If there is not: where the format has a rule for that, that it is broken.
    pub fn check_codes(&self, tensor: &Tensor, row: u64, codes: &[u8]) -> Result<(), Error> {
        match self.first_beyond(codes) {
            Some(i) => Err(self.beyond(tensor, row * self.parts + i as u64, codes[i])),
            None => Ok(()),
        }
    }

    /// The first of some codes that has no centroid.
    pub(crate) fn first_beyond(&self, codes: &[u8]) -> Option<usize> {
        let last = u8::try_from(self.centroids - 1).ok()?;
        // The largest of many is found faster than the first that is too large.
        let largest = codes.iter().copied().max()?;
        if largest <= last { None } else { codes.iter().position(|code| *code > last) }
    }

    /// There is no value for the code with this number.
    fn beyond(&self, tensor: &Tensor, number: u64, code: u8) -> Error {
        let field = format!("tensor {:?}, row {}", tensor.name, number / self.parts);
        let expected = format!("a code below {}", self.centroids);
        let Some((file, rule)) = &self.checked else {
            let message = format!("{field}: {expected} is needed, and {code} was found");
            return Error::unsupported("product quantization", message, "");
        };
        let at = tensor.view().map_or(0, |codes| codes.span().start) + number;
        let finding = rule.at(at..at + 1).in_file(file).field(field).expected(expected);
        Error::malformed(file, finding.found(code))
    }

    /// Multiplies rows with their norms.
    fn scale(&self, first: u64, rows: &mut [f32]) -> Result<(), Error> {
        let Some(norms) = &self.norms else { return Ok(()) };
        let dim = to_len(self.dim);
        let mut raw = Vec::new();
        let norms = norms.read(first * 4..(first + (rows.len() / dim) as u64) * 4, &mut raw)?;
        for (row, norm) in rows.chunks_exact_mut(dim).zip(norms.as_chunks::<4>().0) {
            let norm = f32::from_le_bytes(*norm);
            row.iter_mut().for_each(|v| *v *= norm);
        }
        Ok(())
    }
}

/// The numbers of some bytes.
fn floats(bytes: &[u8]) -> Vec<f32> {
    let (words, _) = bytes.as_chunks::<4>();
    words.iter().map(|b| f32::from_le_bytes(*b)).collect()
}
