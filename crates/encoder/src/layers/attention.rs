//! Self-attention: the vector of every token becomes a weighted mean over the tokens of its text.

use super::{Distances, Packing};
use crate::kernels::PANEL;
use crate::kernels::lanes::softmax;
use crate::kernels::matrix::{Left, Panels, multiply};
use crate::kernels::tiles::{self, DEPTH, TileRows};
use crate::kernels::walk::{Activation, MAX_TILE_ROWS, Results, Start};
use std::cell::RefCell;
use std::ops::Range;
use weighbridge_codec::simd::Level;
use weighbridge_codec::simd::tiles::ColumnTile;

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

/// The keys and values of one head in one text, packed, and products with them.
trait Head: Default {
    /// Keys are taken in multiples of so many.
    const KEYS: usize;

    /// Packs the keys and values that are somewhere in rows of so many values.
    fn pack(&mut self, keys: &[f32], values: &[f32], stride: usize, width: usize, tokens: usize);

    /// Products of queries with some keys, whose number is a multiple of [`Head::KEYS`]; those of no token are
    /// zeros.
    fn scores(&mut self, queries: Left, keys: Range<usize>, results: Results);

    /// The sums of values of tokens, each times a factor; of the last tokens behind the text there are none.
    fn sums(&mut self, factors: Left, tokens: Range<usize>, results: Results);
}

/// In f32.
#[derive(Debug, Default)]
struct PlainHead {
    /// The keys, packed into panels.
    keys: Vec<f32>,
    /// The values, packed into panels: where they are, each line would be in another page of memory.
    values: Vec<f32>,
    width: usize,
    tokens: usize,
}

impl Head for PlainHead {
    const KEYS: usize = PANEL;

    fn pack(&mut self, keys: &[f32], values: &[f32], stride: usize, width: usize, tokens: usize) {
        (self.width, self.tokens) = (width, tokens);
        self.keys.resize(tokens.next_multiple_of(PANEL) * width, 0.0);
        self.values.resize(tokens * width.next_multiple_of(PANEL), 0.0);
        pack_keys(keys, stride, width, tokens, &mut self.keys);
        pack_values(values, stride, tokens, &mut self.values);
    }

    fn scores(&mut self, queries: Left, keys: Range<usize>, results: Results) {
        let (data, panel_stride) = (&self.keys[keys.start * self.width..], PANEL * self.width);
        // Those of no token too, so that whole panels are written.
        let keys = Panels { data, depth: self.width, columns: keys.len(), panel_stride };
        multiply(Level::best(), queries, keys, results);
    }

    fn sums(&mut self, factors: Left, tokens: Range<usize>, results: Results) {
        let depth = tokens.end.min(self.tokens) - tokens.start;
        let (data, panel_stride) = (&self.values[tokens.start * PANEL..], PANEL * self.tokens);
        let values = Panels { data, depth, columns: self.width, panel_stride };
        multiply(Level::best(), factors, values, results);
    }
}

/// In tiles of bf16.
#[derive(Debug, Default)]
struct TileHead {
    /// For each sixteen tokens the tiles of their keys.
    keys: Vec<ColumnTile>,
    /// For each sixteen values the tiles of all tokens.
    values: Vec<ColumnTile>,
    /// Queries, or factors.
    rows: TileRows,
    width: usize,
    tokens: usize,
}

impl Head for TileHead {
    const KEYS: usize = DEPTH;

    fn pack(&mut self, keys: &[f32], values: &[f32], stride: usize, width: usize, tokens: usize) {
        (self.width, self.tokens) = (width, tokens);
        let all = tokens.next_multiple_of(DEPTH);
        let (level, zeros) = (Level::best(), ColumnTile::default());
        self.keys.clear();
        self.keys.resize(all / PANEL * width.div_ceil(DEPTH), zeros);
        self.values.clear();
        self.values.resize(all / DEPTH * width.div_ceil(PANEL), zeros);
        tiles::pack_columns(
            level,
            Left { data: keys, stride, rows: tokens },
            width,
            &mut self.keys,
        );
        tiles::pack_rows(
            level,
            Left { data: values, stride, rows: tokens },
            width,
            &mut self.values,
        );
    }

    fn scores(&mut self, queries: Left, keys: Range<usize>, results: Results) {
        let level = Level::best();
        self.rows.round_rows(level, queries, self.width);
        let depth = self.width.div_ceil(DEPTH);
        let tiles = &self.keys[keys.start / PANEL * depth..];
        let keys = tiles::Panels { tiles, depth, columns: keys.len(), panel_stride: depth };
        tiles::multiply(level, &self.rows, keys, results);
    }

    fn sums(&mut self, factors: Left, tokens: Range<usize>, results: Results) {
        let level = Level::best();
        self.rows.round_rows(level, factors, tokens.len());
        let tiles = &self.values[tokens.start / DEPTH..];
        let (depth, panel_stride) = (tokens.len() / DEPTH, self.tokens.div_ceil(DEPTH));
        let values = tiles::Panels { tiles, depth, columns: self.width, panel_stride };
        tiles::multiply(level, &self.rows, values, results);
    }
}

/// Memory for the attention of one text.
#[derive(Debug, Default)]
struct Memory {
    plain: PlainHead,
    tiles: TileHead,
    scores: Vec<f32>,
}

thread_local! {
    /// Kept, so that nothing is allocated text by text.
    static MEMORY: RefCell<Memory> = RefCell::default();
}

/// The most rows of queries that are multiplied with keys and values together.
const QUERY_ROWS: usize = 8 * MAX_TILE_ROWS;

/// The attention of some heads in one text. `qkv` has a row for each token with its query, key and
/// value (and a panel's width behind the last row); `out` has a row for each token.
fn attend_text<H: Head>(
    all: Heads,
    reach: Reach,
    qkv: &[f32],
    tokens: usize,
    heads: Range<usize>,
    (memory, scores): (&mut H, &mut Vec<f32>),
    out: &mut [f32],
) {
    if tokens == 0 {
        return;
    }
    let level = Level::best();
    let (hidden, head) = (all.hidden(), all.width);
    #[allow(clippy::cast_precision_loss)]
    let scale = 1.0 / (head as f32).sqrt();
    scores.resize(QUERY_ROWS * tokens.next_multiple_of(H::KEYS), 0.0);
    for h in heads {
        let column = h * head;
        let (keys, values) = (&qkv[hidden + column..], &qkv[2 * hidden + column..]);
        memory.pack(keys, values, 3 * hidden, head, tokens);
        let (mut first, queries) = (0, if reach.only_first { 1 } else { tokens });
        while first < queries {
            let n = reach.rows().min(queries - first);
            // The keys that some of these queries attend to, and those beside them that are taken too.
            let (from, end) = (reach.of(first, tokens).start, reach.of(first + n - 1, tokens).end);
            let taken = from / H::KEYS * H::KEYS..end.next_multiple_of(H::KEYS);
            let (from, width) = (taken.start, taken.len());
            let queries = &qkv[first * 3 * hidden + column..];
            let scores = &mut scores[..n * width];
            let (start, activation) = (Start::Zero, Activation::None);
            let queries = Left { data: queries, stride: 3 * hidden, rows: n };
            let results = Results { start, activation, c: &mut *scores, stride: width };
            memory.scores(queries, taken.clone(), results);
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
            memory.sums(scores, taken, results);
            for (row, factor) in out.chunks_mut(hidden).zip(&factors[..n]) {
                row[..head].iter_mut().for_each(|x| *x *= factor);
            }
            first += n;
        }
    }
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

/// The attention of some heads in texts that lie one behind the other, by the arithmetic that goes with a
/// packing of weights.
pub(crate) fn attend(
    all: Heads,
    (reach, packing): (Reach, Packing),
    qkv: &[f32],
    texts: &[Range<usize>],
    heads: Range<usize>,
    out: &mut [f32],
) {
    let hidden = all.hidden();
    MEMORY.with_borrow_mut(|Memory { plain, tiles, scores }| {
        for text in texts {
            let qkv = &qkv[text.start * 3 * hidden..];
            let out = &mut out[text.start * hidden..text.end * hidden];
            let (tokens, heads) = (text.len(), heads.clone());
            // Asked again, for modules that never have tiles.
            if packing == Packing::Tiles && Level::best().has_tiles() {
                attend_text(all, reach, qkv, tokens, heads, (&mut *tiles, &mut *scores), out);
            } else {
                attend_text(all, reach, qkv, tokens, heads, (&mut *plain, &mut *scores), out);
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::tests::noise;

    /// Tiles of bf16 attend as f32 does, but for what rounding changes; also where heads and texts are no
    /// whole tiles, after larger ones, and where only neighbours are seen.
    #[test]
    fn tiles_are_near_to_f32() {
        let (mut plain, mut tiles, mut scores) = Default::default();
        for (count, width) in [(1, 64), (3, 8), (2, 32), (2, 20), (1, 48)] {
            let all = Heads { count, width };
            let (hidden, noise_of_distances) = (all.hidden(), Distances::noise(count, 150));
            for tokens in [150, 1, 15, 16, 17, 32, 33, 64, 97] {
                for (window, only_first, has_distances) in [
                    (None, false, false),
                    (None, true, false),
                    (Some(20), false, false),
                    (Some(20), true, false),
                    (None, false, true),
                ] {
                    let distances = has_distances.then_some(&noise_of_distances);
                    let reach = Reach { distances, window, only_first };
                    let qkv = noise(tokens * 3 * hidden + PANEL, 5);
                    let [mut near, mut exact] = [0.0, 0.0].map(|x| vec![x; tokens * hidden]);
                    let both = (&mut plain, &mut scores);
                    attend_text::<PlainHead>(all, reach, &qkv, tokens, 0..count, both, &mut exact);
                    let both = (&mut tiles, &mut scores);
                    attend_text::<TileHead>(all, reach, &qkv, tokens, 0..count, both, &mut near);
                    let off = exact.iter().zip(&near).map(|(a, b)| (a - b).abs());
                    // Means of values up to one: each is off by 2^-9, their weights by as much and by
                    // what their scores are off, which are far below one after scaling.
                    let most = off.fold(0.0, f32::max);
                    assert!(most < 0.01, "{count} x {width}, {tokens}, {window:?}: {most}");
                    let some = exact.iter().any(|x| x.abs() > 1e-3);
                    assert!(some && (most > 0.0 || tokens == 1), "{count} x {width}, {tokens}");
                }
            }
        }
    }
}
