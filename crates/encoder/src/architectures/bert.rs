//! The encoder of BERT and its relatives: embeddings, then layers of self-attention and a feed-forward
//! network.

mod rehearsal;

use super::config::Config;
use super::{Batch, Choose, Model, Observer, Sizes};
use crate::kernels::PANEL;
use crate::kernels::walk::{Activation, MAX_TILE_ROWS};
use crate::layers::{Distances, Linear, Norm, Output, Packing, Scratch, attend};
use crate::team::Member;
use crate::tensors::Tensors;
use weighbridge_format::spec::{LayerNames, ModelSpec};
use weighbridge_format::{Error, Tensor};

/// Products of a layer.
const PRODUCTS: usize = 4;

/// The products of a layer in their order, each with the names of the weights that share its input.
fn products(names: &LayerNames) -> [&[&'static str]; PRODUCTS] {
    let one = std::slice::from_ref;
    [&names.attention, one(&names.attention_output), one(&names.up), one(&names.down)]
}

/// Rows that go through the two products of the feed-forward network together: whole tiles.
const FEED_FORWARD_ROWS: usize = 4 * MAX_TILE_ROWS;

#[derive(Debug)]
struct Bert {
    config: Config,
    packing: Packing,
    embeddings: Embeddings,
    layers: Vec<Layer>,
    /// What the distance of two tokens adds to the attention.
    distances: Option<Distances>,
    names: &'static LayerNames,
    /// The prefix of the names of its tensors.
    prefix: &'static str,
}

/// The vectors of words and places.
#[derive(Debug)]
struct Embeddings {
    words: Tensor,
    /// Those of positions, with that of the first token type added.
    positions: Vec<f32>,
    /// The padding token, and the vector of its place. Where positions begin behind it, one that stands
    /// in a text has no position of its own.
    padding: Option<(u32, Vec<f32>)>,
    /// What the second token type has more than the first, if there is one.
    second_type: Option<Vec<f32>>,
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
        let first = config.first_position;
        let stored = tensors.shaped(stored, &[first + config.positions, hidden])?;
        let mut positions = vec![0.0; config.positions * hidden];
        let mut raw = Vec::new();
        stored.rows_f32(first as u64, &mut positions, &mut raw)?;
        let mut padding = None;
        if let Some(id) = first.checked_sub(1) {
            let mut row = vec![0.0; hidden];
            stored.rows_f32(id as u64, &mut row, &mut raw)?;
            padding = Some((u32::try_from(id).unwrap_or(u32::MAX), row));
        }
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
            let padding = padding.iter_mut().map(|(_, row)| &mut row[..]);
            for row in positions.chunks_exact_mut(hidden).chain(padding) {
                row.iter_mut().zip(&first).for_each(|(p, t)| *p += t);
            }
        }
        let words = tensors.get("embeddings.word_embeddings.weight")?.clone();
        let norm = Norm::load(tensors, "embeddings.LayerNorm", hidden, config.epsilon)?;
        Ok(Embeddings { words, positions, padding, second_type, norm })
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
        let seconds = batch.seconds.iter().copied().chain(std::iter::repeat(usize::MAX));
        for (text, second) in batch.texts.iter().zip(seconds) {
            let rows = rows[text.start * width..text.end * width].chunks_exact_mut(width);
            let mut positions = self.positions.chunks_exact(width);
            for (place, (row, &id)) in rows.zip(&batch.ids[text.clone()]).enumerate() {
                self.words.rows_f32(u64::from(id), row, raw)?;
                let position = match &self.padding {
                    Some((padding, position)) if *padding == id => position,
                    // A text has no more tokens than there are positions.
                    _ => positions.next().unwrap_or_default(),
                };
                row.iter_mut().zip(position).for_each(|(x, p)| *x += p);
                if let Some(more) = self.second_type.as_ref().filter(|_| place >= second) {
                    row.iter_mut().zip(more).for_each(|(x, m)| *x += m);
                }
            }
        }
        Ok(())
    }
}

impl Bert {
    fn load(config: Config, tensors: &Tensors, packing: Packing) -> Result<Bert, Error> {
        let (hidden, intermediate) = (config.hidden, config.intermediate);
        let norm = |name: &str| Norm::load(tensors, name, hidden, config.epsilon);
        let names = &tensors.architecture().layer;
        let linear = |list: &[&str], layer: usize, depth: usize, columns: usize| {
            let mut matrices = Vec::new();
            for name in list {
                let name = names.of(layer, name);
                let weight = tensors.shaped(&format!("{name}.weight"), &[columns, depth])?;
                matrices.push((weight, tensors.vector(&format!("{name}.bias"), columns)?));
            }
            Linear::new(&matrices, depth, packing)
        };
        let [own, attention, up, down] = products(names);
        let layer = |i: usize| -> Result<Layer, Error> {
            Ok(Layer {
                qkv: linear(own, i, hidden, hidden)?,
                attention: linear(attention, i, hidden, hidden)?,
                attention_norm: norm(&names.of(i, names.attention_norm))?,
                up: linear(up, i, hidden, intermediate)?,
                down: linear(down, i, intermediate, hidden)?,
                norm: norm(&names.of(i, names.norm))?,
            })
        };
        let distances = |table| Distances::load(tensors, table, config.heads, config.positions);
        Ok(Bert {
            embeddings: Embeddings::load(&config, tensors)?,
            packing,
            layers: (0..config.layers).map(layer).collect::<Result<_, _>>()?,
            distances: tensors.architecture().distances.map(distances).transpose()?,
            config,
            names,
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
        let first = PRODUCTS * index;
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
        attend(heads, self.distances.as_ref(), qkv, batch.texts, own_heads, attention);
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
        let mut list = Vec::with_capacity(PRODUCTS * self.layers.len());
        for layer in 0..self.layers.len() {
            list.extend(products(self.names).into_iter().map(|names| {
                let full = |name| format!("{}{}.weight", self.prefix, self.names.of(layer, name));
                names.iter().map(|name| full(*name)).collect()
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
