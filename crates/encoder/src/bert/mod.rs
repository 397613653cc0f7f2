//! The encoder of BERT: embeddings, then layers of self-attention and a feed-forward network.

mod attention;
mod config;
mod linear;
mod team;
mod tensors;

pub(crate) use config::Config;

use crate::kernels::PANEL;
use crate::kernels::lanes::layer_norm;
use crate::kernels::walk::{Activation, MAX_TILE_ROWS};
use crate::settings::Precision;
use linear::{Linear, Output, RoundedRows};
use std::ops::Range;
use team::{Member, Team};
use tensors::Tensors;
use weighbridge_codec::simd::Level;
use weighbridge_format::{Container, Error, Tensor};

/// The products of a layer in their order, each with the names of the weights that share its input.
const PRODUCTS: [&[&str]; 4] = [
    &["attention.self.query", "attention.self.key", "attention.self.value"],
    &["attention.output.dense"],
    &["intermediate.dense"],
    &["output.dense"],
];

/// Rows that go through the two products of the feed-forward network together: whole tiles.
const FEED_FORWARD_ROWS: usize = 4 * MAX_TILE_ROWS;

/// A model that is ready to run.
#[derive(Debug)]
pub(crate) struct Bert {
    pub config: Config,
    word_embeddings: Tensor,
    /// The embeddings of positions, with that of the first token type added.
    position_embeddings: Vec<f32>,
    norm: Norm,
    layers: Vec<Layer>,
    /// The prefix of the names of its tensors.
    prefix: &'static str,
}

/// Is called with the index of a product, in the order of [`Bert::products`], and the rows that are
/// about to be its input.
pub(crate) type Observer<'a> = &'a mut dyn FnMut(usize, &[f32]);

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

/// The parameters of a layer normalization.
#[derive(Debug)]
struct Norm {
    gains: Vec<f32>,
    shifts: Vec<f32>,
}

/// Memory that is used again for every batch.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    /// A vector for each token.
    pub hidden: Vec<f32>,
    qkv: Vec<f32>,
    attention: Vec<f32>,
    intermediate: Vec<f32>,
    rounded: RoundedRows,
    raw: Vec<u8>,
}

impl Bert {
    pub(crate) fn load(container: &Container, precision: Precision) -> Result<Bert, Error> {
        let tensors = Tensors::new(container);
        let config = Config::read(container, &tensors)?;
        let (hidden, intermediate) = (config.hidden, config.intermediate);
        let norm = |name: &str| -> Result<Norm, Error> {
            Ok(Norm {
                gains: tensors.vector(&format!("{name}.weight"), hidden)?,
                shifts: tensors.vector(&format!("{name}.bias"), hidden)?,
            })
        };
        let positions = "embeddings.position_embeddings.weight";
        let positions = tensors.shaped(positions, &[config.positions, hidden])?;
        let mut position_embeddings = vec![0.0; config.positions * hidden];
        let mut raw = Vec::new();
        positions.rows_f32(0, &mut position_embeddings, &mut raw)?;
        // Texts are of the first type; models without types have no such tensor.
        let types = "embeddings.token_type_embeddings.weight";
        if tensors.has(types) {
            let [count, _] = tensors.matrix(types)?;
            let mut first = vec![0.0; hidden];
            tensors.shaped(types, &[count, hidden])?.rows_f32(0, &mut first, &mut raw)?;
            for row in position_embeddings.chunks_exact_mut(hidden) {
                row.iter_mut().zip(&first).for_each(|(p, t)| *p += t);
            }
        }
        let linear = |names: &[&str], layer: usize, depth: usize, columns: usize| {
            let mut matrices = Vec::new();
            for name in names {
                let name = format!("encoder.layer.{layer}.{name}");
                let weight = tensors.shaped(&format!("{name}.weight"), &[columns, depth])?;
                matrices.push((weight, tensors.vector(&format!("{name}.bias"), columns)?));
            }
            Linear::new(&matrices, depth, precision)
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
            word_embeddings: tensors.get("embeddings.word_embeddings.weight")?.clone(),
            position_embeddings,
            norm: norm("embeddings.LayerNorm")?,
            layers: (0..config.layers).map(layer).collect::<Result<_, _>>()?,
            config,
            prefix: tensors.prefix(),
        })
    }

    /// The names of the weights of each product, in the order in which products are computed.
    pub(crate) fn products(&self) -> Vec<Vec<String>> {
        let mut list = Vec::with_capacity(PRODUCTS.len() * self.layers.len());
        for layer in 0..self.layers.len() {
            list.extend(PRODUCTS.iter().map(|names| {
                let full = |name| format!("{}encoder.layer.{layer}.{name}.weight", self.prefix);
                names.iter().map(full).collect()
            }));
        }
        list
    }

    /// How many of so many threads can share the work of one batch: each takes whole heads, which
    /// must be whole panels.
    pub(crate) fn team_size(&self, threads: usize) -> usize {
        if self.config.head_width().is_multiple_of(PANEL) {
            threads.min(self.config.heads)
        } else {
            1
        }
    }

    /// Runs the model, and leaves a vector for each token in the `hidden` of the first scratch.
    /// `ids` are the tokens of all texts, one behind the other, and `texts` where each text is.
    /// There is a thread for each scratch; the observer is called by this one.
    pub(crate) fn run(
        &self,
        ids: &[u32],
        texts: &[Range<usize>],
        scratches: &mut [Scratch],
        observer: Option<Observer>,
    ) -> Result<(), Error> {
        let team = Team::new(scratches.len());
        let Some((first, others)) = scratches.split_first_mut() else { return Ok(()) };
        self.embed_tokens(ids, texts, first)?;
        for scratch in &mut *others {
            scratch.hidden.clone_from(&first.hidden);
        }
        #[cfg(feature = "threads")]
        if !others.is_empty() {
            // Threads of their own: those of a pool may be busy, and then all would wait.
            std::thread::scope(|scope| {
                for (i, scratch) in others.iter_mut().enumerate() {
                    let member = team.member(i + 1);
                    scope.spawn(move || self.run_member(ids, texts, member, scratch, None));
                }
                self.run_member(ids, texts, team.member(0), first, observer);
            });
            return Ok(());
        }
        self.run_member(ids, texts, team.member(0), first, observer);
        Ok(())
    }

    /// Fills `hidden` with the vectors of words and places.
    fn embed_tokens(
        &self,
        ids: &[u32],
        texts: &[Range<usize>],
        scratch: &mut Scratch,
    ) -> Result<(), Error> {
        let width = self.config.hidden;
        let Scratch { hidden, raw, .. } = scratch;
        hidden.resize(ids.len() * width, 0.0);
        for text in texts {
            let rows = hidden[text.start * width..text.end * width].chunks_exact_mut(width);
            let positions = self.position_embeddings.chunks_exact(width);
            for ((row, &id), position) in rows.zip(&ids[text.clone()]).zip(positions) {
                self.word_embeddings.rows_f32(u64::from(id), row, raw)?;
                row.iter_mut().zip(position).for_each(|(x, p)| *x += p);
            }
        }
        Ok(())
    }

    fn run_member(
        &self,
        ids: &[u32],
        texts: &[Range<usize>],
        mut member: Member,
        scratch: &mut Scratch,
        mut observer: Option<Observer>,
    ) {
        let mut observe = |product: usize, rows: &[f32]| {
            if let Some(observer) = &mut observer {
                observer(product, rows);
            }
        };
        let Config { hidden, intermediate, heads, activation, .. } = self.config;
        let Scratch { hidden: x, qkv, attention, intermediate: wide, rounded, .. } = scratch;
        let tokens = ids.len();
        // Attention reads whole panels of values, which may be wider than the last head.
        qkv.resize(tokens * 3 * hidden + PANEL, 0.0);
        attention.resize(tokens * hidden, 0.0);
        wide.resize(tokens.min(FEED_FORWARD_ROWS) * intermediate, 0.0);
        self.normalize(&self.norm, x);
        let (head, none) = (self.config.head_width(), Activation::None);
        let own_heads = member.share(heads);
        for (i, layer) in self.layers.iter().enumerate() {
            let first = PRODUCTS.len() * i;
            observe(first, x);
            let qkv_rows = &mut qkv[..tokens * 3 * hidden];
            if own_heads.len() == heads {
                layer.qkv.apply(
                    x,
                    0..layer.qkv.panels(),
                    qkv_rows,
                    Output::Overwrite,
                    none,
                    rounded,
                );
            } else {
                // Query, key and value of the own heads.
                let panels = own_heads.start * head / PANEL..own_heads.end * head / PANEL;
                for projection in 0..3 {
                    let first = projection * hidden / PANEL;
                    let panels = first + panels.start..first + panels.end;
                    match projection {
                        0 => layer.qkv.apply(x, panels, qkv_rows, Output::Overwrite, none, rounded),
                        _ => layer.qkv.apply_rounded(
                            x,
                            panels,
                            qkv_rows,
                            Output::Overwrite,
                            none,
                            rounded,
                        ),
                    }
                }
            }
            attention::attend(&self.config, qkv, texts, own_heads.clone(), attention);
            member.exchange(attention, hidden, heads, head);

            observe(first + 1, attention);
            let linear = &layer.attention;
            let own = member.share(linear.panels());
            linear.apply(attention, own, x, Output::Accumulate, none, rounded);
            member.exchange(x, hidden, linear.panels(), PANEL);
            self.normalize(&layer.attention_norm, x);

            // Some rows at a time, so that the wide ones between the two products stay in the
            // cache.
            for x in x.chunks_mut(FEED_FORWARD_ROWS * hidden) {
                observe(first + 2, x);
                let linear = &layer.up;
                let wide = &mut wide[..x.len() / hidden * intermediate];
                let own = member.share(linear.panels());
                linear.apply(x, own, wide, Output::Overwrite, activation, rounded);
                member.exchange(wide, intermediate, linear.panels(), PANEL);

                observe(first + 3, wide);
                let linear = &layer.down;
                let own = member.share(linear.panels());
                linear.apply(wide, own, x, Output::Accumulate, none, rounded);
                member.exchange(x, hidden, linear.panels(), PANEL);
                self.normalize(&layer.norm, x);
            }
        }
    }

    fn normalize(&self, norm: &Norm, rows: &mut [f32]) {
        for row in rows.chunks_exact_mut(self.config.hidden) {
            layer_norm(Level::best(), row, &norm.gains, &norm.shifts, self.config.epsilon);
        }
    }
}
