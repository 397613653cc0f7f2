//! The encoder of BERT: embeddings, then layers of self-attention and a feed-forward network.

mod rehearsal;

use super::config::Config;
use super::{Batch, Choose, Model, Observer, Sizes};
use crate::kernels::PANEL;
use crate::kernels::walk::{Activation, MAX_TILE_ROWS};
use crate::layers::{Linear, Norm, Output, Packing, Scratch, attend};
use crate::team::Member;
use crate::tensors::Tensors;
use weighbridge_format::spec::ModelSpec;
use weighbridge_format::{Error, Tensor};

/// The products of a layer in their order, each with the names of the weights that share its input.
const PRODUCTS: [&[&str]; 4] = [
    &["attention.self.query", "attention.self.key", "attention.self.value"],
    &["attention.output.dense"],
    &["intermediate.dense"],
    &["output.dense"],
];

/// Rows that go through the two products of the feed-forward network together: whole tiles.
const FEED_FORWARD_ROWS: usize = 4 * MAX_TILE_ROWS;

#[derive(Debug)]
struct Bert {
    config: Config,
    packing: Packing,
    embeddings: Embeddings,
    layers: Vec<Layer>,
    /// The prefix of the names of its tensors.
    prefix: &'static str,
}

/// The vectors of words and places.
#[derive(Debug)]
struct Embeddings {
    words: Tensor,
    /// Those of positions, with that of the first token type added.
    positions: Vec<f32>,
    norm: Norm,
}

#[derive(Debug)]
struct Layer {
    /// Query, key and value side by side.
    qkv: Linear,
    attention: Linear,
    attention_norm: Norm,
    up: Linear,
    down: Linear,
    norm: Norm,
}

/// Loads the weights.
pub(super) fn load(
    spec: &ModelSpec,
    tensors: &Tensors,
    packing: Packing,
) -> Result<Box<dyn Model>, Error> {
    let config = Config::new(spec, tensors)?;
    Ok(Box::new(Bert::load(config, tensors, packing)?))
}

impl Embeddings {
    fn load(config: &Config, tensors: &Tensors) -> Result<Embeddings, Error> {
        let hidden = config.hidden;
        let stored = "embeddings.position_embeddings.weight";
        let stored = tensors.shaped(stored, &[config.positions, hidden])?;
        let mut positions = vec![0.0; config.positions * hidden];
        let mut raw = Vec::new();
        stored.rows_f32(0, &mut positions, &mut raw)?;
        // Texts are of the first type; models without types have no such tensor.
        let types = "embeddings.token_type_embeddings.weight";
        if tensors.has(types) {
            let [count, _] = tensors.matrix(types)?;
            let mut first = vec![0.0; hidden];
            tensors.shaped(types, &[count, hidden])?.rows_f32(0, &mut first, &mut raw)?;
            for row in positions.chunks_exact_mut(hidden) {
                row.iter_mut().zip(&first).for_each(|(p, t)| *p += t);
            }
        }
        let words = tensors.get("embeddings.word_embeddings.weight")?.clone();
        let norm = Norm::load(tensors, "embeddings.LayerNorm", hidden, config.epsilon)?;
        Ok(Embeddings { words, positions, norm })
    }

    /// The vectors of the tokens, before they are normalized.
    fn rows(
        &self,
        batch: Batch,
        width: usize,
        rows: &mut Vec<f32>,
        raw: &mut Vec<u8>,
    ) -> Result<(), Error> {
        rows.resize(batch.ids.len() * width, 0.0);
        for text in batch.texts {
            let rows = rows[text.start * width..text.end * width].chunks_exact_mut(width);
            let positions = self.positions.chunks_exact(width);
            for ((row, &id), position) in rows.zip(&batch.ids[text.clone()]).zip(positions) {
                self.words.rows_f32(u64::from(id), row, raw)?;
                row.iter_mut().zip(position).for_each(|(x, p)| *x += p);
            }
        }
        Ok(())
    }
}

impl Bert {
    fn load(config: Config, tensors: &Tensors, packing: Packing) -> Result<Bert, Error> {
        let (hidden, intermediate) = (config.hidden, config.intermediate);
        let norm = |name: &str| Norm::load(tensors, name, hidden, config.epsilon);
        let linear = |names: &[&str], layer: usize, depth: usize, columns: usize| {
            let mut matrices = Vec::new();
            for name in names {
                let name = format!("encoder.layer.{layer}.{name}");
                let weight = tensors.shaped(&format!("{name}.weight"), &[columns, depth])?;
                matrices.push((weight, tensors.vector(&format!("{name}.bias"), columns)?));
            }
            Linear::new(&matrices, depth, packing)
        };
        let [own, attention, up, down] = PRODUCTS;
        let layer = |i: usize| -> Result<Layer, Error> {
            Ok(Layer {
                qkv: linear(own, i, hidden, hidden)?,
                attention: linear(attention, i, hidden, hidden)?,
                attention_norm: norm(&format!("encoder.layer.{i}.attention.output.LayerNorm"))?,
                up: linear(up, i, hidden, intermediate)?,
                down: linear(down, i, intermediate, hidden)?,
                norm: norm(&format!("encoder.layer.{i}.output.LayerNorm"))?,
            })
        };
        Ok(Bert {
            embeddings: Embeddings::load(&config, tensors)?,
            packing,
            layers: (0..config.layers).map(layer).collect::<Result<_, _>>()?,
            config,
            prefix: tensors.prefix(),
        })
    }

    /// One layer of the model.
    fn run_layer(
        &self,
        index: usize,
        batch: Batch,
        member: &mut Member,
        scratch: &mut Scratch,
        observe: &mut dyn FnMut(usize, &[f32]),
    ) {
        let layer = &self.layers[index];
        let first = PRODUCTS.len() * index;
        let Config { hidden, intermediate, heads, activation, .. } = self.config;
        let Scratch { hidden: x, qkv, attention, intermediate: wide, rounded, .. } = scratch;
        let own_heads = member.share(heads.count);
        let none = Activation::None;

        observe(first, x);
        let qkv_rows = &mut qkv[..batch.ids.len() * 3 * hidden];
        let (overwrite, accumulate) = (Output::Overwrite, Output::Accumulate);
        if own_heads.len() == heads.count {
            layer.qkv.apply(x, 0..layer.qkv.panels(), qkv_rows, overwrite, none, rounded);
        } else {
            // Query, key and value of the own heads.
            let panels = own_heads.start * heads.width / PANEL..own_heads.end * heads.width / PANEL;
            for projection in 0..3 {
                let first = projection * hidden / PANEL;
                let panels = first + panels.start..first + panels.end;
                if projection == 0 {
                    layer.qkv.apply(x, panels, qkv_rows, overwrite, none, rounded);
                } else {
                    layer.qkv.apply_rounded(x, panels, qkv_rows, overwrite, none, rounded);
                }
            }
        }
        attend(heads, qkv, batch.texts, own_heads, attention);
        member.exchange(attention, hidden, heads.count, heads.width);

        observe(first + 1, attention);
        let linear = &layer.attention;
        let own = member.share(linear.panels());
        linear.apply(attention, own, x, accumulate, none, rounded);
        member.exchange(x, hidden, linear.panels(), PANEL);
        layer.attention_norm.apply(x);

        // Some rows at a time, so that the wide ones between the two products stay in the cache.
        for x in x.chunks_mut(FEED_FORWARD_ROWS * hidden) {
            observe(first + 2, x);
            let linear = &layer.up;
            let wide = &mut wide[..x.len() / hidden * intermediate];
            let own = member.share(linear.panels());
            linear.apply(x, own, wide, overwrite, activation, rounded);
            member.exchange(wide, intermediate, linear.panels(), PANEL);

            observe(first + 3, wide);
            let linear = &layer.down;
            let own = member.share(linear.panels());
            linear.apply(wide, own, x, accumulate, none, rounded);
            member.exchange(x, hidden, linear.panels(), PANEL);
            layer.norm.apply(x);
        }
    }
}

impl Model for Bert {
    fn sizes(&self) -> Sizes {
        let Config { hidden, positions, vocabulary_size, .. } = self.config;
        Sizes { hidden, positions, vocabulary: vocabulary_size }
    }

    /// Each takes whole heads, which must be whole panels.
    fn most_members(&self) -> usize {
        let heads = self.config.heads;
        if heads.width.is_multiple_of(PANEL) { heads.count } else { 1 }
    }

    fn products(&self) -> Vec<Vec<String>> {
        let mut list = Vec::with_capacity(PRODUCTS.len() * self.layers.len());
        for layer in 0..self.layers.len() {
            list.extend(PRODUCTS.iter().map(|names| {
                let full = |name| format!("{}encoder.layer.{layer}.{name}.weight", self.prefix);
                names.iter().map(full).collect()
            }));
        }
        list
    }

    /// The vectors of words and places.
    fn embed(&self, batch: Batch, scratch: &mut Scratch) -> Result<(), Error> {
        self.embeddings.rows(batch, self.config.hidden, &mut scratch.hidden, &mut scratch.raw)
    }

    fn rehearse(&self, batch: Batch, start: &Tensors, choose: Choose) -> Result<(), Error> {
        rehearsal::run(self, batch, start, choose)
    }

    fn run(
        &self,
        batch: Batch,
        member: &mut Member,
        scratch: &mut Scratch,
        mut observer: Option<Observer>,
    ) {
        let mut observe = |product: usize, rows: &[f32]| {
            if let Some(observer) = &mut observer {
                observer(product, rows);
            }
        };
        let Config { hidden, intermediate, .. } = self.config;
        let tokens = batch.ids.len();
        // Attention reads whole panels of values, which may be wider than the last head.
        scratch.qkv.resize(tokens * 3 * hidden + PANEL, 0.0);
        scratch.attention.resize(tokens * hidden, 0.0);
        scratch.intermediate.resize(tokens.min(FEED_FORWARD_ROWS) * intermediate, 0.0);
        self.embeddings.norm.apply(&mut scratch.hidden);
        for layer in 0..self.layers.len() {
            self.run_layer(layer, batch, member, scratch, &mut observe);
        }
    }
}
