//! Self-attention: the vector of every token becomes a weighted mean over the tokens of its text.

use super::Distances;
use crate::kernels::PANEL;
use crate::kernels::lanes::softmax;
use crate::kernels::matrix::{Left, Panels, multiply};
use crate::kernels::walk::{Activation, MAX_TILE_ROWS, Results, Start};
use std::cell::RefCell;
use std::ops::Range;
use weighbridge_codec::simd::Level;

/// How the values of a token's vector are divided among the heads of the attention.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Heads {
    pub count: usize,
    /// Values of a query, key or value in one head.
    pub width: usize,
}

impl Heads {
    /// Values of all heads together.
    pub(crate) fn hidden(self) -> usize {
        self.count * self.width
    }
}

/// What the attention of a layer knows of where tokens stand, besides what their vectors tell.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Reach<'a> {
    /// What the distance of two tokens adds to it.
    pub distances: Option<&'a Distances>,
    /// How many tokens to each side are attended to; all without it.
    pub window: Option<usize>,
    /// Only each text's first token attends to anything: the others are not needed any more.
    pub only_first: bool,
}

impl Reach<'_> {
    /// The keys that a query of a text with so many tokens attends to.
    fn of(&self, query: usize, tokens: usize) -> Range<usize> {
        match self.window {
            None => 0..tokens,
            Some(n) => {
                query.saturating_sub(n)..query.saturating_add(n).saturating_add(1).min(tokens)
            }
        }
    }

    /// Rows of queries that are multiplied with keys and values together. Fewer where they reach no farther
    /// than their neighbours: all get the keys of all of them.
    fn rows(&self) -> usize {
        if self.window.is_some() { QUERY_ROWS / 2 } else { QUERY_ROWS }
    }
}

/// Memory for the attention of one head in one text.
#[derive(Debug, Default)]
struct HeadScratch {
    /// The keys, packed into panels.
    keys: Vec<f32>,
    /// The values, packed into panels: where they are, each line would be in another page of memory.
    values: Vec<f32>,
    scores: Vec<f32>,
}

thread_local! {
    /// Kept, so that nothing is allocated text by text.
    static HEAD_SCRATCH: RefCell<HeadScratch> = RefCell::default();
}

/// The most rows of queries that are multiplied with keys and values together.
const QUERY_ROWS: usize = 8 * MAX_TILE_ROWS;

/// The attention of some heads in one text. `qkv` has a row for each token with its query, key and
/// value (and a panel's width behind the last row); `out` has a row for each token.
fn attend_text(
    all: Heads,
    reach: Reach,
    qkv: &[f32],
    tokens: usize,
    heads: Range<usize>,
    out: &mut [f32],
) {
    if tokens == 0 {
        return;
    }
    let level = Level::best();
    let (hidden, head) = (all.hidden(), all.width);
    let width = tokens.next_multiple_of(PANEL);
    #[allow(clippy::cast_precision_loss)]
    let scale = 1.0 / (head as f32).sqrt();
    HEAD_SCRATCH.with_borrow_mut(|scratch| {
        scratch.keys.resize(width * head, 0.0);
        scratch.values.resize(tokens * head.next_multiple_of(PANEL), 0.0);
        scratch.scores.resize(QUERY_ROWS * width, 0.0);
        for h in heads {
            let column = h * head;
            pack_keys(&qkv[hidden + column..], 3 * hidden, head, tokens, &mut scratch.keys);
            pack_values(&qkv[2 * hidden + column..], 3 * hidden, tokens, &mut scratch.values);
            let keys = Panels {
                data: &scratch.keys,
                depth: head,
                // Those of no token too, so that whole panels are written.
                columns: width,
                panel_stride: PANEL * head,
            };
            let values = Panels {
                data: &scratch.values,
                depth: tokens,
                columns: head,
                panel_stride: PANEL * tokens,
            };
            let (mut first, queries) = (0, if reach.only_first { 1 } else { tokens });
            while first < queries {
                let n = reach.rows().min(queries - first);
                // The keys that some of these queries attend to, in whole panels.
                let (from, end) =
                    (reach.of(first, tokens).start, reach.of(first + n - 1, tokens).end);
                let panels = from / PANEL..end.div_ceil(PANEL);
                let (from, width) = (panels.start * PANEL, panels.len() * PANEL);
                let queries = &qkv[first * 3 * hidden + column..];
                let scores = &mut scratch.scores[..n * width];
                let (start, activation) = (Start::Zero, Activation::None);
                let queries = Left { data: queries, stride: 3 * hidden, rows: n };
                let results = Results { start, activation, c: &mut *scores, stride: width };
                multiply(level, queries, keys.part(panels), results);
                let mut factors = [0.0; QUERY_ROWS];
                let rows = scores.chunks_exact_mut(width).zip(&mut factors);
                for (query, (scores, factor)) in (first..).zip(rows) {
                    let keys = reach.of(query, tokens);
                    let known = keys.start - from..keys.end - from;
                    if let Some(distances) = reach.distances {
                        distances.add(h, query, keys.start, &mut scores[known.clone()]);
                    }
                    scores[..known.start].fill(f32::NEG_INFINITY);
                    scores[known.end..].fill(f32::NEG_INFINITY);
                    *factor = 1.0 / softmax(level, scores, scale);
                }
                let out = &mut out[first * hidden + column..];
                let scores = Left { data: scores, stride: width, rows: n };
                let results = Results { start, activation, c: &mut *out, stride: hidden };
                let data = &scratch.values[from * PANEL..];
                multiply(level, scores, Panels { data, depth: end - from, ..values }, results);
                for (row, factor) in out.chunks_mut(hidden).zip(&factors[..n]) {
                    row[..head].iter_mut().for_each(|x| *x *= factor);
                }
                first += n;
            }
        }
    });
}

/// Keys of a head as panels: sixteen tokens side by side.
fn pack_keys(keys: &[f32], key_stride: usize, head: usize, tokens: usize, panels: &mut [f32]) {
    for (p, panel) in panels.chunks_exact_mut(PANEL * head).enumerate() {
        for t in 0..PANEL {
            let token = p * PANEL + t;
            if token < tokens {
                let key = &keys[token * key_stride..][..head];
                panel[t..].iter_mut().step_by(PANEL).zip(key).for_each(|(to, &from)| *to = from);
            } else {
                panel[t..].iter_mut().step_by(PANEL).for_each(|to| *to = 0.0);
            }
        }
    }
}

/// Values of a head as panels: sixteen of each token.
fn pack_values(values: &[f32], stride: usize, tokens: usize, panels: &mut [f32]) {
    for (p, panel) in panels.chunks_exact_mut(PANEL * tokens).enumerate() {
        for (line, value) in panel.as_chunks_mut::<PANEL>().0.iter_mut().zip(values.chunks(stride))
        {
            line.copy_from_slice(&value[p * PANEL..][..PANEL]);
        }
    }
}

/// The attention of some heads in texts that lie one behind the other.
pub(crate) fn attend(
    all: Heads,
    reach: Reach,
    qkv: &[f32],
    texts: &[Range<usize>],
    heads: Range<usize>,
    out: &mut [f32],
) {
    let hidden = all.hidden();
    for text in texts {
        let qkv = &qkv[text.start * 3 * hidden..];
        let out = &mut out[text.start * hidden..text.end * hidden];
        attend_text(all, reach, qkv, text.len(), heads.clone(), out);
    }
}
