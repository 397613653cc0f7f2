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

/// Rows of queries that are multiplied with keys and values together.
const QUERY_ROWS: usize = 8 * MAX_TILE_ROWS;

/// The attention of some heads in one text. `qkv` has a row for each token with its query, key and
/// value (and a panel's width behind the last row); `out` has a row for each token.
fn attend_text(
    all: Heads,
    distances: Option<&Distances>,
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
                row_stride: PANEL,
                panel_stride: PANEL * head,
            };
            let values = Panels {
                data: &scratch.values,
                depth: tokens,
                columns: head,
                row_stride: PANEL,
                panel_stride: PANEL * tokens,
            };
            let mut first = 0;
            while first < tokens {
                let n = QUERY_ROWS.min(tokens - first);
                let queries = &qkv[first * 3 * hidden + column..];
                let scores = &mut scratch.scores[..n * width];
                let (start, activation) = (Start::Zero, Activation::None);
                let queries = Left { data: queries, stride: 3 * hidden, rows: n };
                let results = Results { start, activation, c: &mut *scores, stride: width };
                multiply(level, queries, keys, results);
                let mut factors = [0.0; QUERY_ROWS];
                let rows = scores.chunks_exact_mut(width).zip(&mut factors);
                for (query, (scores, factor)) in (first..).zip(rows) {
                    if let Some(distances) = distances {
                        distances.add(h, query, &mut scores[..tokens]);
                    }
                    scores[tokens..].fill(f32::NEG_INFINITY);
                    *factor = 1.0 / softmax(level, scores, scale);
                }
                let out = &mut out[first * hidden + column..];
                let scores = Left { data: scores, stride: width, rows: n };
                let results = Results { start, activation, c: &mut *out, stride: hidden };
                multiply(level, scores, values, results);
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
    distances: Option<&Distances>,
    qkv: &[f32],
    texts: &[Range<usize>],
    heads: Range<usize>,
    out: &mut [f32],
) {
    let hidden = all.hidden();
    for text in texts {
        let qkv = &qkv[text.start * 3 * hidden..];
        let out = &mut out[text.start * hidden..text.end * hidden];
        attend_text(all, distances, qkv, text.len(), heads.clone(), out);
    }
}
