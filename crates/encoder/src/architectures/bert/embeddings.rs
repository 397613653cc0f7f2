//! What a model begins with: the vectors of words, places and kinds of texts.

use super::super::Batch;
use super::super::config::Config;
use crate::layers::Norm;
use crate::tensors::Tensors;
use weighbridge_format::spec::Positions;
use weighbridge_format::{Error, Tensor};

/// The vectors of words and places.
#[derive(Debug)]
pub(super) struct Embeddings {
    words: Tensor,
    /// Those of positions, with that of the first token type added; none where positions are known
    /// otherwise.
    positions: Vec<f32>,
    /// The padding token, and the vector of its place. Where positions begin behind it, one that stands
    /// in a text has no position of its own.
    padding: Option<(u32, Vec<f32>)>,
    /// That of the first token type, where it is not among the positions; nothing without types.
    first_type: Vec<f32>,
    /// What the second token type has more than the first, if there is one.
    second_type: Option<Vec<f32>>,
    pub(super) norm: Norm,
}

impl Embeddings {
    pub(super) fn load(config: &Config, tensors: &Tensors) -> Result<Embeddings, Error> {
        let hidden = config.hidden;
        let mut raw = Vec::new();
        let (mut positions, mut padding) = (Vec::new(), None);
        if tensors.architecture().positions != Positions::Rotary {
            let first = config.first_position;
            let table = "embeddings.position_embeddings.weight";
            let stored = tensors.shaped(table, &[first + config.positions, hidden])?;
            positions.resize(config.positions * hidden, 0.0);
            stored.rows_f32(first as u64, &mut positions, &mut raw)?;
            if let Some(id) = first.checked_sub(1) {
                let mut row = vec![0.0; hidden];
                stored.rows_f32(id as u64, &mut row, &mut raw)?;
                padding = Some((u32::try_from(id).unwrap_or(u32::MAX), row));
            }
        }
        let mut first_type = Vec::new();
        let mut second_type = None;
        // Texts that stand alone are of the first type; models without types have no such tensor.
        let types = "embeddings.token_type_embeddings.weight";
        if tensors.has(types) {
            let [count, _] = tensors.matrix(types)?;
            let mut first = vec![0.0; hidden];
            let table = tensors.shaped(types, &[count, hidden])?;
            table.rows_f32(0, &mut first, &mut raw)?;
            if count > 1 {
                let mut second = vec![0.0; hidden];
                table.rows_f32(1, &mut second, &mut raw)?;
                second.iter_mut().zip(&first).for_each(|(s, f)| *s -= f);
                second_type = Some(second);
            }
            first_type = first;
        }
        // With positions, there is one table of both.
        if !positions.is_empty() {
            let padding = padding.iter_mut().map(|(_, row)| &mut row[..]);
            for row in positions.chunks_exact_mut(hidden).chain(padding) {
                add(row, &first_type);
            }
            first_type.clear();
        }
        let names = tensors.names();
        let words = tensors.get(names.words)?.clone();
        let norm = Norm::load(tensors, names.embedding_norm, hidden, config.epsilon)?;
        Ok(Embeddings { words, positions, padding, first_type, second_type, norm })
    }

    /// The vectors of the tokens, before they are normalized.
    pub(super) fn rows(
        &self,
        batch: Batch,
        width: usize,
        rows: &mut Vec<f32>,
        raw: &mut Vec<u8>,
    ) -> Result<(), Error> {
        rows.resize(batch.ids.len() * width, 0.0);
        let seconds = batch.seconds.iter().copied().chain(std::iter::repeat(usize::MAX));
        for (text, second) in batch.texts.iter().zip(seconds) {
            let rows = rows[text.start * width..text.end * width].chunks_exact_mut(width);
            let mut positions = self.positions.chunks_exact(width);
            for (place, (row, &id)) in rows.zip(&batch.ids[text.clone()]).enumerate() {
                self.words.rows_f32(u64::from(id), row, raw)?;
                let position = match &self.padding {
                    Some((padding, position)) if *padding == id => position,
                    // A text has no more tokens than there are positions, if they have vectors.
                    _ => positions.next().unwrap_or_default(),
                };
                add(row, position);
                add(row, &self.first_type);
                if let Some(more) = self.second_type.as_ref().filter(|_| place >= second) {
                    add(row, more);
                }
            }
        }
        Ok(())
    }
}

/// Adds a vector, or nothing, to a row.
fn add(row: &mut [f32], more: &[f32]) {
    row.iter_mut().zip(more).for_each(|(x, m)| *x += m);
}
