//! The encoder of BERT and its relatives: embeddings, then layers of self-attention and a feed-forward
//! network. They differ in names, in how they know positions, in where normalizations stand, and in
//! the gate that some have.

mod embeddings;
mod rehearsal;

use super::config::Config;
use super::{Batch, Choose, Model, Observer, Sizes};
use crate::kernels::PANEL;
use crate::kernels::walk::{Activation, MAX_TILE_ROWS};
use crate::layers::{
    Distances, Linear, Norm, Output, Packing, Reach, Rotary, Scratch, Widening, attend,
};
use crate::team::Member;
use crate::tensors::Tensors;
use embeddings::Embeddings;
use std::ops::Range;
use weighbridge_codec::memory::Arena;
use weighbridge_format::spec::{ModelSpec, Names, Positions, Product};
use weighbridge_format::wire::to_len;
use weighbridge_format::{Advice, Error};

/// Products of a layer.
const PRODUCTS: usize = 4;

/// The products of a layer in their order.
fn products(names: &Names) -> [&Product; PRODUCTS] {
    [&names.attention, &names.attention_output, &names.up, &names.down]
}

/// Of so many rows, those that go through the two products of the feed-forward network together: whole tiles
/// of f32, and no few at the end, for which all weights would be read. Where products are so fast that
/// reading takes longer, all rows of most batches.
fn feed_forward_rows(packing: Packing, rows: usize) -> usize {
    let tiles = match packing {
        Packing::Tiles | Packing::Bytes => 12,
        Packing::F32 | Packing::Pairs(_) => 4,
    };
    let rows = rows.max(1);
    let parts = rows.div_ceil(tiles * MAX_TILE_ROWS);
    rows.div_ceil(parts).next_multiple_of(MAX_TILE_ROWS)
}

#[derive(Debug)]
struct Bert {
    config: Config,
    packing: Packing,
    embeddings: Embeddings,
    layers: Vec<Layer>,
    /// What the distance of two tokens adds to the attention.
    distances: Option<Distances>,
    /// How queries and keys are turned: in most layers, and in those that attend to neighbours alone.
    rotary: Option<Rotary>,
    local_rotary: Option<Rotary>,
    final_norm: Option<Norm>,
    names: &'static Names,
    /// The prefix of the names of its tensors.
    prefix: &'static str,
}

#[derive(Debug)]
struct Layer {
    /// How many tokens to each side it attends to, if not to all.
    window: Option<usize>,
    /// Query, key and value side by side.
    qkv: Linear,
    attention: Linear,
    /// None where what comes in is normalized already.
    attention_norm: Option<Norm>,
    up: Widening,
    down: Linear,
    norm: Option<Norm>,
}

/// Loads the weights.
pub(super) fn load(
    spec: &ModelSpec,
    tensors: &Tensors,
    packing: Packing,
) -> Result<Box<dyn Model>, Error> {
    let config = Config::new(spec, tensors)?;
    Ok(Box::new(Bert::load(config, spec, tensors, packing)?))
}

impl Bert {
    fn load(
        config: Config,
        spec: &ModelSpec,
        tensors: &Tensors,
        packing: Packing,
    ) -> Result<Bert, Error> {
        let (hidden, inner, epsilon) = (config.hidden, config.intermediate, config.epsilon);
        let names = tensors.names();
        let norm = |name: &str| Norm::load(tensors, name, hidden, epsilon);
        let matrices = |product: &Product, layer: usize, depth: usize, columns: usize| {
            let columns = columns / product.weights.len().max(1);
            let matrix = |name: &&str| {
                let name = names.of(layer, name);
                let weight = tensors.shaped(&format!("{name}.weight"), &[columns, depth])?;
                Ok((weight, tensors.bias(&name, columns, product.bias)?))
            };
            product.weights.iter().map(matrix).collect::<Result<Vec<_>, Error>>()
        };
        let arena = Arena::default();
        let attended = |product: &Product, layer: usize| {
            let matrices = matrices(product, layer, hidden, 3 * hidden)?;
            Linear::new(&matrices, hidden, packing.of_attention(), &arena)
        };
        let linear = |product: &Product, layer: usize, depth: usize, columns: usize| {
            Linear::new(&matrices(product, layer, depth, columns)?, depth, packing, &arena)
        };
        let windows = windows(&config, spec)?;
        let [own, attention, up, down] = products(names);
        let wide = if config.gate.is_some() { 2 * inner } else { inner };
        let layer = |(i, window): (usize, &Option<usize>)| -> Result<Layer, Error> {
            let first = names.of(i, names.attention_norm);
            // What comes before the first layer is normalized already.
            let is_normal =
                i == 0 && config.norms_first && !tensors.has(&format!("{first}.weight"));
            let widening = (config.gate, config.activation);
            Ok(Layer {
                window: *window,
                qkv: attended(own, i)?,
                attention: linear(attention, i, hidden, hidden)?,
                attention_norm: if is_normal { None } else { Some(norm(&first)?) },
                up: {
                    let matrices = matrices(up, i, hidden, wide)?;
                    Widening::new(&matrices, hidden, packing, &arena, widening)?
                },
                down: linear(down, i, inner, hidden)?,
                norm: Some(norm(&names.of(i, names.norm))?),
            })
        };
        let known = tensors.architecture();
        let distances = |table| Distances::load(tensors, table, config.heads, config.positions);
        let turns = known.positions == Positions::Rotary;
        let has_local = windows.iter().any(Option::is_some);
        let rotary = |local| Rotary::new(spec, config.heads, config.positions, local);
        Ok(Bert {
            embeddings: Embeddings::load(&config, tensors)?,
            packing,
            distances: known.distances.map(distances).transpose()?,
            rotary: turns.then(|| rotary(false)).transpose()?,
            local_rotary: (turns && has_local).then(|| rotary(true)).transpose()?,
            layers: windows.iter().enumerate().map(layer).collect::<Result<_, _>>()?,
            final_norm: names.final_norm.map(norm).transpose()?,
            config,
            names,
            prefix: tensors.prefix(),
        })
    }

    /// The attention of some heads in a layer. It turns queries and keys where they are.
    fn attend(
        &self,
        layer: &Layer,
        only_first: bool,
        qkv: &mut [f32],
        texts: &[Range<usize>],
        own: Range<usize>,
        out: &mut [f32],
    ) {
        let heads = self.config.heads;
        let local = self.local_rotary.as_ref().filter(|_| layer.window.is_some());
        if let Some(rotary) = local.or(self.rotary.as_ref()) {
            rotary.apply(heads, qkv, texts, own.clone());
        }
        let distances = self.distances.as_ref();
        let reach = Reach { distances, window: layer.window, only_first };
        attend(heads, (reach, self.packing), qkv, texts, own, out);
    }

    /// What a part of a layer gets: rows as they are, or normalized in memory of their own.
    fn input<'a>(
        &self,
        norm: Option<&Norm>,
        rows: &'a [f32],
        normalized: &'a mut Vec<f32>,
    ) -> &'a [f32] {
        match norm.filter(|_| self.config.norms_first) {
            None => rows,
            Some(norm) => {
                normalized.clear();
                normalized.extend_from_slice(rows);
                norm.apply(normalized);
                normalized
            }
        }
    }

    /// Normalizes what a part of a layer was added to, if that is where normalizations stand.
    fn finish(&self, norm: Option<&Norm>, rows: &mut [f32]) {
        if let Some(norm) = norm.filter(|_| !self.config.norms_first) {
            norm.apply(rows);
        }
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
        let Config { hidden, intermediate, heads, .. } = self.config;
        let Scratch { hidden: x, qkv, attention, intermediate: wide, gate, .. } = scratch;
        let Scratch { normalized, rounded, .. } = scratch;
        let own_heads = member.share(heads.count);
        let none = Activation::None;

        let input = self.input(layer.attention_norm.as_ref(), x, normalized);
        observe(first, input);
        let qkv_rows = &mut qkv[..batch.ids.len() * 3 * hidden];
        let (overwrite, accumulate) = (Output::Overwrite, Output::Accumulate);
        if own_heads.len() == heads.count {
            layer.qkv.apply(input, 0..layer.qkv.panels(), qkv_rows, overwrite, none, rounded);
        } else {
            // Query, key and value of the own heads.
            let panels = own_heads.start * heads.width / PANEL..own_heads.end * heads.width / PANEL;
            for projection in 0..3 {
                let first = projection * hidden / PANEL;
                let panels = first + panels.start..first + panels.end;
                if projection == 0 {
                    layer.qkv.apply(input, panels, qkv_rows, overwrite, none, rounded);
                } else {
                    layer.qkv.apply_rounded(input, panels, qkv_rows, overwrite, none, rounded);
                }
            }
        }
        let only_first = batch.only_first && index + 1 == self.layers.len();
        self.attend(layer, only_first, qkv, batch.texts, own_heads, attention);
        if only_first {
            batch.keep_first(attention, hidden);
            batch.keep_first(x, hidden);
        }
        member.exchange(attention, hidden, heads.count, heads.width);

        observe(first + 1, attention);
        let linear = &layer.attention;
        let own = member.share(linear.panels());
        linear.apply(attention, own, x, accumulate, none, rounded);
        member.exchange(x, hidden, linear.panels(), PANEL);
        self.finish(layer.attention_norm.as_ref(), x);

        // Some rows at a time, so that the wide ones between the two products stay in the cache.
        let rows = feed_forward_rows(self.packing, x.len() / hidden);
        wide.resize(rows.min(x.len() / hidden) * intermediate, 0.0);
        for x in x.chunks_mut(rows * hidden) {
            let input = self.input(layer.norm.as_ref(), x, normalized);
            observe(first + 2, input);
            let wide = &mut wide[..x.len() / hidden * intermediate];
            let own = member.share(layer.up.panels());
            layer.up.apply(input, own, wide, gate, rounded);
            member.exchange(wide, intermediate, layer.up.panels(), PANEL);

            observe(first + 3, wide);
            let linear = &layer.down;
            let own = member.share(linear.panels());
            linear.apply(wide, own, x, accumulate, none, rounded);
            member.exchange(x, hidden, linear.panels(), PANEL);
            self.finish(layer.norm.as_ref(), x);
        }
    }
}

/// For each layer how many tokens to each side it attends to, if not to all.
fn windows(config: &Config, spec: &ModelSpec) -> Result<Vec<Option<usize>>, Error> {
    let mut windows = vec![None; config.layers];
    for layer in &spec.local_layers.value {
        let Some(said) = &spec.local_attention else {
            let what = "the file does not say how far layers attend that know neighbours alone";
            return Err(Error::refused(what, Advice::from("local_attention in config.json")));
        };
        if let Some(window) = windows.get_mut(to_len(*layer)) {
            // So many tokens to both sides together.
            *window = Some(to_len(said.value / 2));
        }
    }
    Ok(windows)
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
            list.extend(products(self.names).into_iter().map(|product| {
                let full =
                    |name: &&str| format!("{}{}.weight", self.prefix, self.names.of(layer, name));
                product.weights.iter().map(full).collect()
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
        let hidden = self.config.hidden;
        let tokens = batch.ids.len();
        // Attention reads whole panels of values, which may be wider than the last head.
        scratch.qkv.resize(tokens * 3 * hidden + PANEL, 0.0);
        scratch.attention.resize(tokens * hidden, 0.0);
        self.embeddings.norm.apply(&mut scratch.hidden);
        for layer in 0..self.layers.len() {
            self.run_layer(layer, batch, member, scratch, &mut observe);
        }
        if let Some(norm) = &self.final_norm {
            norm.apply(&mut scratch.hidden);
        }
    }
}
