//! The model beside itself with other weights, one product after the other.

use super::{Bert, Embeddings, Layer, PRODUCTS};
use crate::architectures::{Aim, Batch, Choose, ChosenWeights, Rehearsed};
use crate::kernels::PANEL;
use crate::kernels::walk::Activation;
use crate::layers::linear::RoundedRows;
use crate::layers::{Linear, Norm, Output, Widening};
use crate::schedule::batches;
use crate::tensors::Tensors;
use std::ops::Range;
use weighbridge_codec::memory::Arena;
use weighbridge_codec::parallel::*;
use weighbridge_format::{Error, Tensor};

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
    let mut choose =
        |product: usize, inputs: &[f32], aim: Aim| choose(Rehearsed { product, inputs, aim });
    // Rows that are normalized first, of both models.
    let (mut old_normal, mut new_normal) = (Vec::new(), Vec::new());
    for (index, layer) in model.layers.iter().enumerate() {
        let (first, arena) = (index * PRODUCTS, Arena::default());
        let linear = |chosen: ChosenWeights, depth: usize| {
            Linear::new(&matrices(&chosen), depth, model.packing, &arena)
        };
        let old_in = model.all_inputs(layer.attention_norm.as_ref(), &old, &mut old_normal);
        let new_in = model.all_inputs(layer.attention_norm.as_ref(), &new, &mut new_normal);
        let qkv = linear(choose(first, new_in, Aim::AsBefore(old_in))?, hidden)?;
        let inputs = &mut memory[..batch.ids.len() * hidden];
        let tasks =
            parts.iter().zip(cut(&parts, hidden, inputs)).zip(cut(&parts, hidden, &mut sums));
        let tasks: Vec<_> = tasks.collect();
        tasks.into_par_iter().for_each_init(Memory::default, |memory, ((part, inputs), sums)| {
            sums.copy_from_slice(part.rows(&old, hidden));
            model.attention(layer, &layer.qkv, part, part.rows(old_in, hidden), memory, inputs);
            memory.add(&layer.attention, inputs, sums);
            model.attention(layer, &qkv, part, part.rows(new_in, hidden), memory, inputs);
        });
        less(&sums, &new, &mut missing);
        let attention = linear(choose(first + 1, inputs, Aim::Results(&missing))?, hidden)?;
        model.add_and_finish(&attention, inputs, layer.attention_norm.as_ref(), &mut new);
        model.finish_all(layer.attention_norm.as_ref(), &mut sums);
        std::mem::swap(&mut old, &mut sums);

        let old_in = model.all_inputs(layer.norm.as_ref(), &old, &mut old_normal);
        let new_in = model.all_inputs(layer.norm.as_ref(), &new, &mut new_normal);
        let chosen = choose(first + 2, new_in, Aim::AsBefore(old_in))?;
        let widening = (model.config.gate, model.config.activation);
        let up = Widening::new(&matrices(&chosen), hidden, model.packing, &arena, widening)?;
        let inputs = &mut memory[..batch.ids.len() * wide];
        let tasks = parts.iter().zip(cut(&parts, wide, inputs)).zip(cut(&parts, hidden, &mut sums));
        let tasks: Vec<_> = tasks.collect();
        tasks.into_par_iter().for_each_init(Memory::default, |memory, ((part, inputs), sums)| {
            sums.copy_from_slice(part.rows(&old, hidden));
            memory.widen(&layer.up, part.rows(old_in, hidden), inputs);
            memory.add(&layer.down, inputs, sums);
            memory.widen(&up, part.rows(new_in, hidden), inputs);
        });
        less(&sums, &new, &mut missing);
        let down = linear(choose(first + 3, inputs, Aim::Results(&missing))?, wide)?;
        if index + 1 < model.layers.len() {
            model.add_and_finish(&down, inputs, layer.norm.as_ref(), &mut new);
            model.finish_all(layer.norm.as_ref(), &mut sums);
            std::mem::swap(&mut old, &mut sums);
        }
    }
    Ok(())
}

fn matrices(chosen: &ChosenWeights) -> Vec<(&Tensor, Vec<f32>)> {
    chosen.iter().map(|(weight, bias)| (weight, bias.clone())).collect()
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
    gate: Vec<f32>,
    rounded: RoundedRows,
}

impl Memory {
    fn widen(&mut self, up: &Widening, x: &[f32], into: &mut [f32]) {
        up.apply(x, 0..up.panels(), into, &mut self.gate, &mut self.rounded);
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
        layer: &Layer,
        qkv: &Linear,
        part: &Part,
        x: &[f32],
        memory: &mut Memory,
        into: &mut [f32],
    ) {
        let (hidden, heads) = (self.config.hidden, self.config.heads);
        let values = part.tokens.len() * 3 * hidden;
        let Memory { qkv: rows, rounded, .. } = memory;
        // Attention reads whole panels of values, which may be wider than the last head.
        rows.resize(rows.len().max(values + PANEL), 0.0);
        let (all, none) = (0..qkv.panels(), Activation::None);
        qkv.apply(x, all, &mut rows[..values], Output::Overwrite, none, rounded);
        self.attend(layer, false, rows, &part.texts, 0..heads.count, into);
    }

    /// What a part of a layer gets, of all tokens.
    fn all_inputs<'a>(
        &self,
        norm: Option<&Norm>,
        rows: &'a [f32],
        normalized: &'a mut Vec<f32>,
    ) -> &'a [f32] {
        let Some(norm) = norm.filter(|_| self.config.norms_first) else { return rows };
        normalized.clear();
        normalized.extend_from_slice(rows);
        normalized.par_chunks_mut(ROWS * self.config.hidden).for_each(|rows| norm.apply(rows));
        normalized
    }

    /// Adds a product to rows, and normalizes them if that comes behind it.
    fn add_and_finish(
        &self,
        linear: &Linear,
        inputs: &[f32],
        norm: Option<&Norm>,
        rows: &mut [f32],
    ) {
        let inputs = inputs.par_chunks(ROWS * linear.depth);
        let tasks = rows.par_chunks_mut(ROWS * self.config.hidden).zip(inputs);
        tasks.for_each_init(Memory::default, |memory, (rows, inputs)| {
            memory.add(linear, inputs, rows);
            self.finish(norm, rows);
        });
    }

    fn finish_all(&self, norm: Option<&Norm>, rows: &mut [f32]) {
        let some = rows.par_chunks_mut(ROWS * self.config.hidden);
        some.for_each(|rows| self.finish(norm, rows));
    }
}

fn less(rows: &[f32], others: &[f32], into: &mut Vec<f32>) {
    into.clear();
    into.extend(rows.iter().zip(others).map(|(a, b)| a - b));
}
