//! The model beside itself with other weights, one product after the other.

use super::{Bert, Embeddings, PRODUCTS};
use crate::architectures::{Aim, Batch, Choose, Rehearsed};
use crate::kernels::PANEL;
use crate::kernels::walk::Activation;
use crate::layers::linear::RoundedRows;
use crate::layers::{Linear, Norm, Output, attend};
use crate::schedule::batches;
use crate::tensors::Tensors;
use std::ops::Range;
use weighbridge_codec::parallel::*;
use weighbridge_format::Error;

/// Takes texts through the model as it is and as it becomes. What both make of all tokens is kept from
/// one product to the next, since its weights depend on all of it.
pub(super) fn run(
    model: &Bert,
    batch: Batch,
    start: &Tensors,
    choose: Choose,
) -> Result<(), Error> {
    let hidden = model.config.hidden;
    let rows = |embeddings: &Embeddings| {
        let mut rows = Vec::new();
        embeddings.rows(batch, hidden, &mut rows, &mut Vec::new())?;
        embeddings.norm.apply(&mut rows);
        Ok::<_, Error>(rows)
    };
    let mut old = rows(&model.embeddings)?;
    let mut new = rows(&Embeddings::load(&model.config, start)?)?;
    let parts = parts(batch.texts);
    // Memory for all of it once: giving it back and asking for it anew takes a fifth of the time.
    let wide = model.config.intermediate;
    let mut memory = vec![0.0; batch.ids.len() * hidden.max(wide)];
    let mut sums = vec![0.0; batch.ids.len() * hidden];
    let mut missing = Vec::new();
    let mut choose = |product: usize, depth: usize, inputs: &[f32], aim: Aim| {
        let chosen = choose(Rehearsed { product, inputs, aim })?;
        let matrices: Vec<_> = chosen.iter().map(|(weight, bias)| (weight, bias.clone())).collect();
        Linear::new(&matrices, depth, model.packing)
    };
    for (index, layer) in model.layers.iter().enumerate() {
        let first = index * PRODUCTS;
        let qkv = choose(first, hidden, &new, Aim::AsBefore(&old))?;
        let inputs = &mut memory[..batch.ids.len() * hidden];
        let tasks =
            parts.iter().zip(cut(&parts, hidden, inputs)).zip(cut(&parts, hidden, &mut sums));
        let tasks: Vec<_> = tasks.collect();
        tasks.into_par_iter().for_each_init(Memory::default, |memory, ((part, inputs), sums)| {
            sums.copy_from_slice(part.rows(&old, hidden));
            model.attention(&layer.qkv, part, sums, memory, inputs);
            memory.add(&layer.attention, inputs, sums);
            model.attention(&qkv, part, part.rows(&new, hidden), memory, inputs);
        });
        less(&sums, &new, &mut missing);
        let attention = choose(first + 1, hidden, inputs, Aim::Results(&missing))?;
        model.add_and_normalize(&attention, inputs, &layer.attention_norm, &mut new);
        model.normalize(&layer.attention_norm, &mut sums);
        std::mem::swap(&mut old, &mut sums);

        let up = choose(first + 2, hidden, &new, Aim::AsBefore(&old))?;
        let inputs = &mut memory[..batch.ids.len() * wide];
        let tasks = parts.iter().zip(cut(&parts, wide, inputs)).zip(cut(&parts, hidden, &mut sums));
        let tasks: Vec<_> = tasks.collect();
        tasks.into_par_iter().for_each_init(Memory::default, |memory, ((part, inputs), sums)| {
            sums.copy_from_slice(part.rows(&old, hidden));
            let activation = model.config.activation;
            memory.apply(&layer.up, sums, inputs, activation);
            memory.add(&layer.down, inputs, sums);
            memory.apply(&up, part.rows(&new, hidden), inputs, activation);
        });
        less(&sums, &new, &mut missing);
        let down = choose(first + 3, wide, inputs, Aim::Results(&missing))?;
        if index + 1 < model.layers.len() {
            model.add_and_normalize(&down, inputs, &layer.norm, &mut new);
            model.normalize(&layer.norm, &mut sums);
            std::mem::swap(&mut old, &mut sums);
        }
    }
    Ok(())
}

/// Texts that one task takes through a product.
struct Part {
    /// Where each text is, counted from the first token.
    texts: Vec<Range<usize>>,
    tokens: Range<usize>,
}

impl Part {
    fn rows<'a>(&self, all: &'a [f32], width: usize) -> &'a [f32] {
        &all[self.tokens.start * width..self.tokens.end * width]
    }
}

fn parts(texts: &[Range<usize>]) -> Vec<Part> {
    let part = |some: Range<usize>| {
        let texts = &texts[some];
        let tokens = texts[0].start..texts[texts.len() - 1].end;
        let own = |text: &Range<usize>| text.start - tokens.start..text.end - tokens.start;
        Part { texts: texts.iter().map(own).collect(), tokens: tokens.clone() }
    };
    batches(texts).into_iter().map(part).collect()
}

/// The rows of each part.
fn cut<'a>(parts: &[Part], width: usize, mut rows: &'a mut [f32]) -> Vec<&'a mut [f32]> {
    let cut = |part: &Part| {
        let (own, rest) = std::mem::take(&mut rows).split_at_mut(part.tokens.len() * width);
        rows = rest;
        own
    };
    parts.iter().map(cut).collect()
}

/// Rows that go through a product together where it does not matter which text they are of.
const ROWS: usize = 96;

/// Memory of one thread.
#[derive(Default)]
struct Memory {
    qkv: Vec<f32>,
    rounded: RoundedRows,
}

impl Memory {
    fn apply(&mut self, linear: &Linear, x: &[f32], into: &mut [f32], activation: Activation) {
        let all = 0..linear.panels();
        linear.apply(x, all, into, Output::Overwrite, activation, &mut self.rounded);
    }

    /// Adds a product to rows.
    fn add(&mut self, linear: &Linear, inputs: &[f32], rows: &mut [f32]) {
        let (all, none) = (0..linear.panels(), Activation::None);
        linear.apply(inputs, all, rows, Output::Accumulate, none, &mut self.rounded);
    }
}

impl Bert {
    fn attention(
        &self,
        qkv: &Linear,
        part: &Part,
        x: &[f32],
        memory: &mut Memory,
        into: &mut [f32],
    ) {
        let (hidden, heads) = (self.config.hidden, self.config.heads);
        let values = part.tokens.len() * 3 * hidden;
        let mut rows = std::mem::take(&mut memory.qkv);
        // Attention reads whole panels of values, which may be wider than the last head.
        rows.resize(rows.len().max(values + PANEL), 0.0);
        memory.apply(qkv, x, &mut rows[..values], Activation::None);
        let distances = self.distances.as_ref();
        attend(heads, distances, &rows, &part.texts, 0..heads.count, into);
        memory.qkv = rows;
    }

    /// Adds a product to rows, and normalizes them.
    fn add_and_normalize(&self, linear: &Linear, inputs: &[f32], norm: &Norm, rows: &mut [f32]) {
        let inputs = inputs.par_chunks(ROWS * linear.depth);
        let tasks = rows.par_chunks_mut(ROWS * self.config.hidden).zip(inputs);
        tasks.for_each_init(Memory::default, |memory, (rows, inputs)| {
            memory.add(linear, inputs, rows);
            norm.apply(rows);
        });
    }

    fn normalize(&self, norm: &Norm, rows: &mut [f32]) {
        rows.par_chunks_mut(ROWS * self.config.hidden).for_each(|rows| norm.apply(rows));
    }
}

fn less(rows: &[f32], others: &[f32], into: &mut Vec<f32>) {
    into.clear();
    into.extend(rows.iter().zip(others).map(|(a, b)| a - b));
}
