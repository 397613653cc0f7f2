//! Static models: the vector of a token is a row of a table, whatever stands around it.

use super::{Batch, Choose, Model, Observer, Sizes};
use crate::kernels::lanes::{ROWS, add_rows};
use crate::layers::{Packing, Scratch};
use crate::team::Member;
use crate::tensors::Tensors;
use weighbridge_codec::DType;
use weighbridge_codec::simd::Level;
use weighbridge_format::spec::ModelSpec;
use weighbridge_format::wire::to_len;
use weighbridge_format::{Encoding, Error, Tensor};

/// The most values of a row.
const WIDEST: usize = 1 << 16;
/// More tokens than any text has: there are no positions that could run out.
const NO_LIMIT: usize = u32::MAX as usize;

/// The vectors of tokens.
#[derive(Debug)]
pub(crate) struct Table {
    rows: Tensor,
    width: usize,
    /// Tokens that have a vector.
    tokens: usize,
    /// The row of each token, where that is not the one with its number.
    mapping: Option<Vec<u32>>,
    /// What each token's row is multiplied by.
    weights: Option<Vec<f32>>,
}

/// Loads the table.
pub(super) fn load(_: &ModelSpec, tensors: &Tensors, _: Packing) -> Result<Box<dyn Model>, Error> {
    Ok(Box::new(Table::load(tensors)?))
}

impl Table {
    fn load(tensors: &Tensors) -> Result<Table, Error> {
        let name = tensors.names().words;
        let [rows, width] = tensors.matrix(name)?;
        if width > WIDEST {
            let what = format!("vectors of {width} values are too long");
            return Err(Error::refused(what, format!("at most {WIDEST}")));
        }
        let mapping = match tensors.has("mapping") {
            true => Some(read_mapping(tensors.get("mapping")?, rows)?),
            false => None,
        };
        let tokens = mapping.as_ref().map_or(rows, Vec::len);
        let weights = match tensors.has("weights") {
            true => Some(tensors.vector("weights", tokens)?),
            false => None,
        };
        Ok(Table { rows: tensors.get(name)?.clone(), width, tokens, mapping, weights })
    }

    /// The row with the vector of a token.
    fn place(&self, id: u32) -> u64 {
        match &self.mapping {
            // Tokens beyond it have no vector; the table has no such row either.
            Some(mapping) => mapping.get(id as usize).map_or(u64::MAX, |place| u64::from(*place)),
            None => u64::from(id),
        }
    }

    /// Fills a row with the vector of a token.
    fn row(&self, id: u32, row: &mut [f32], raw: &mut Vec<u8>) -> Result<(), Error> {
        self.rows.rows_f32(self.place(id), row, raw)
    }

    /// The rows of at most [`ROWS`] tokens as they lie in a table of f32, and their weights. The last of fewer
    /// is there again, and weighs nothing.
    fn in_place<'a>(
        &self,
        ids: &[u32],
        floats: &'a [u8],
    ) -> Option<([&'a [u8]; ROWS], [f32; ROWS])> {
        let (mut rows, mut weights) = ([&[][..]; ROWS], [0.0; ROWS]);
        for i in 0..ROWS {
            let id = *ids.get(i).or(ids.last())?;
            let start = usize::try_from(self.place(id)).ok()?.checked_mul(4 * self.width)?;
            rows[i] = floats.get(start..)?.get(..4 * self.width)?;
            weights[i] = if i < ids.len() { self.weight(id) } else { 0.0 };
        }
        Some((rows, weights))
    }

    /// The bytes of the table, where they are in memory and are f32.
    fn floats(&self) -> Option<&[u8]> {
        let is_f32 = matches!(self.rows.encoding, Encoding::Plain(DType::F32));
        self.rows.plain_view().filter(|_| is_f32)?.resident()
    }

    fn weight(&self, id: u32) -> f32 {
        let weights = self.weights.as_ref();
        weights.and_then(|weights| weights.get(id as usize).copied()).unwrap_or(1.0)
    }

    /// Sets a vector to the mean of the vectors of tokens, as many of its first values as there is room
    /// for; zeros where there are no tokens.
    ///
    /// # Errors
    /// If the table can't be read.
    pub(crate) fn mean(
        &self,
        ids: &[u32],
        vector: &mut [f32],
        scratch: &mut Scratch,
    ) -> Result<(), Error> {
        vector.fill(0.0);
        let Scratch { hidden: row, raw, .. } = scratch;
        row.resize(self.width, 0.0);
        let (level, floats) = (Level::best(), self.floats());
        for some in ids.chunks(ROWS) {
            let Some((rows, weights)) = floats.and_then(|floats| self.in_place(some, floats))
            else {
                for id in some {
                    self.row(*id, row, raw)?;
                    let weight = self.weight(*id);
                    vector.iter_mut().zip(&*row).for_each(|(sum, value)| *sum += weight * value);
                }
                continue;
            };
            add_rows(level, vector, rows, weights);
        }
        #[allow(clippy::cast_precision_loss)]
        let by = 1.0 / ids.len().max(1) as f32;
        vector.iter_mut().for_each(|sum| *sum *= by);
        Ok(())
    }
}

/// The rows that tokens have, all within the table.
fn read_mapping(tensor: &Tensor, rows: usize) -> Result<Vec<u32>, Error> {
    let is_whole = matches!(tensor.encoding, Encoding::Plain(dtype) if !dtype.is_float());
    if !is_whole || tensor.shape.len() != 1 {
        let what = format!("tensor mapping is {} {:?}", tensor.encoding.name(), tensor.shape);
        return Err(Error::refused(what, "a list of whole numbers was expected"));
    }
    let (mut mapping, mut outside) = (Vec::with_capacity(to_len(tensor.count())), None);
    tensor.for_each_block(|block| {
        for &place in block {
            // As f64, which has every number that a table could have rows.
            #[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation)]
            #[allow(clippy::cast_sign_loss)]
            match place >= 0.0 && place < rows as f64 && place <= f64::from(u32::MAX) {
                true => mapping.push(place as u32),
                false => outside = outside.or(Some((mapping.len(), place))),
            }
        }
    })?;
    match outside {
        None => Ok(mapping),
        Some((token, place)) => {
            // Beyond that, an f64 has not every whole number.
            let about = if place.abs() < 2f64.powi(53) { "" } else { "about " };
            let what = format!("tensor mapping gives token {token} the row {about}{place}");
            Err(Error::refused(what, format!("the table has {rows} rows")))
        }
    }
}

impl Model for Table {
    fn sizes(&self) -> Sizes {
        Sizes { hidden: self.width, positions: NO_LIMIT, vocabulary: self.tokens }
    }

    fn most_members(&self) -> usize {
        1
    }

    fn products(&self) -> Vec<Vec<String>> {
        Vec::new()
    }

    fn embed(&self, batch: Batch, scratch: &mut Scratch) -> Result<(), Error> {
        let Scratch { hidden, raw, .. } = scratch;
        hidden.resize(batch.ids.len() * self.width, 0.0);
        for (row, id) in hidden.chunks_exact_mut(self.width).zip(batch.ids) {
            self.row(*id, row, raw)?;
            let weight = self.weight(*id);
            row.iter_mut().for_each(|value| *value *= weight);
        }
        Ok(())
    }

    fn run(&self, batch: Batch, _: &mut Member, scratch: &mut Scratch, _: Option<Observer>) {
        if batch.only_first {
            batch.keep_first(&mut scratch.hidden, self.width);
        }
    }

    /// There are no products.
    fn rehearse(&self, _: Batch, _: &Tensors, _: Choose) -> Result<(), Error> {
        Ok(())
    }

    fn table(&self) -> Option<&Table> {
        Some(self)
    }
}
