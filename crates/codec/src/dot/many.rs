//! Rows with many vectors. The vectors are packed into panels of sixteen, and the values of a row are
//! multiplied with all sixteen at a time. Of the products only those are kept that reach a limit,
//! which is found out while they are in registers.

use crate::panel::{self, Lines, PANEL};
use crate::simd::{Level, Prefetcher, Rows, SixteenKernel, Vector};

/// Vectors that rows are multiplied with: of f32, or of pairs of integers of 16 bits.
#[derive(Debug)]
pub struct Panels<T> {
    lines: Lines<T>,
    /// Lines of a panel.
    depth: usize,
    panels: usize,
}

/// A row, and sixteen vectors of which one or more reached their limits.
#[derive(Clone, Copy, Debug)]
pub struct Reached {
    /// The row.
    pub row: usize,
    /// The first of the vectors.
    pub column: usize,
    /// The products of all sixteen with the row. Those of columns without a vector are zero.
    pub products: [f32; PANEL],
}

impl<T: Factor> Panels<T> {
    /// Vectors of `depth` values (or pairs), one behind the other.
    ///
    /// # Panics
    ///
    /// When `depth` is 0.
    pub fn new(vectors: &[T], depth: usize) -> Panels<T> {
        let panels = (vectors.len() / depth).div_ceil(PANEL);
        let mut lines = Lines::new(T::default(), panels * depth);
        let of_panels = lines.values_mut().chunks_exact_mut(depth * PANEL);
        for (vectors, panel) in vectors.chunks(depth * PANEL).zip(of_panels) {
            panel::pack(vectors, depth, panel);
        }
        Panels { lines, depth, panels }
    }

    /// Vectors that there is room for: sixteen for each panel.
    pub fn columns(&self) -> usize {
        self.panels * PANEL
    }

    /// Multiplies rows with all vectors, and tells of every row `r` and panel in which the product
    /// with some vector `q` reaches its limit: `product + slopes[q] * xs[r]` is not less than
    /// `limits[q]`. NaN is not. Meanwhile memory is prefetched that is needed afterwards.
    ///
    /// # Panics
    ///
    /// When there is not a slope and a limit for each column, or not a row for each of `xs`.
    pub fn reached(
        &self,
        level: Level,
        rows: &[T],
        xs: &[f32],
        (slopes, limits): (&[f32], &[f32]),
        mut ahead: Prefetcher,
        told: &mut Vec<Reached>,
    ) {
        assert_eq!(Some(rows.len()), xs.len().checked_mul(self.depth), "a row for each");
        assert_eq!((slopes.len(), limits.len()), (self.columns(), self.columns()));
        let panels = self.lines.values().as_chunks::<PANEL>().0.chunks_exact(self.depth);
        let lines = slopes.as_chunks::<PANEL>().0.iter().zip(limits.as_chunks::<PANEL>().0);
        // A share with each tile.
        let tiles = (xs.len() / T::tile_rows(level)).max(1);
        let share = ahead.bytes().div_ceil(tiles * self.panels.max(1)).next_multiple_of(128);
        for (p, (lines, (slopes, limits))) in panels.zip(lines).enumerate() {
            let (column, ahead) = (p * PANEL, ahead.take(share * tiles));
            let strip =
                Strip { rows, xs, first: 0, lines, slopes, limits, column, ahead, share, told };
            level.run_sixteen(Tiles::<T, 1>(T::tiles(level, strip)));
        }
    }
}

/// What products are made of.
pub trait Factor: Copy + Default {
    /// How many rows are multiplied together.
    fn tile_rows(level: Level) -> usize;
    /// Goes through as many whole tiles of rows as there are.
    #[doc(hidden)]
    fn tiles<'a>(level: Level, strip: Strip<'a, Self>) -> Strip<'a, Self>;
    /// The products of `N` rows with sixteen columns.
    fn products<V: Vector, const N: usize>(
        token: V::Token,
        rows: Rows<Self, N>,
        lines: &[[Self; PANEL]],
        ahead: &mut Prefetcher,
    ) -> [V; N];
}

impl Factor for f32 {
    /// Twelve rows with one register of columns, or six with two, fill half or more of the registers
    /// that there are, as many as loads can feed.
    fn tile_rows(level: Level) -> usize {
        if level.has_sixteen_lanes() { 12 } else { 6 }
    }

    fn tiles<'a>(level: Level, strip: Strip<'a, f32>) -> Strip<'a, f32> {
        match level.has_sixteen_lanes() {
            true => level.run_sixteen(Tiles::<f32, 12>(strip)),
            false => level.run_sixteen(Tiles::<f32, 6>(strip)),
        }
    }

    #[inline(always)]
    fn products<V: Vector, const N: usize>(
        token: V::Token,
        mut rows: Rows<f32, N>,
        lines: &[[f32; PANEL]],
        ahead: &mut Prefetcher,
    ) -> [V; N] {
        let mut sums = [V::splat(token, 0.0); N];
        let (fours, rest) = lines.as_chunks::<4>();
        for four in fours {
            let Some(rows) = rows.take::<4>() else { break };
            ahead.advance();
            for (i, line) in four.iter().enumerate() {
                let line = V::load(token, line);
                for (sum, row) in sums.iter_mut().zip(rows) {
                    *sum = V::splat(token, row[i]).mul_add(line, *sum);
                }
            }
        }
        for line in rest {
            let Some(rows) = rows.take::<1>() else { break };
            let line = V::load(token, line);
            for (sum, [value]) in sums.iter_mut().zip(rows) {
                *sum = V::splat(token, *value).mul_add(line, *sum);
            }
        }
        sums
    }
}

/// Pairs of integers, whose sums of products must fit 32 bits.
impl Factor for [i16; 2] {
    /// A product takes a register before it is added: five rows leave one more than six.
    fn tile_rows(level: Level) -> usize {
        if level.has_sixteen_lanes() { 12 } else { 5 }
    }

    fn tiles<'a>(level: Level, strip: Strip<'a, Self>) -> Strip<'a, Self> {
        match level.has_sixteen_lanes() {
            true => level.run_sixteen(Tiles::<[i16; 2], 12>(strip)),
            false => level.run_sixteen(Tiles::<[i16; 2], 5>(strip)),
        }
    }

    #[inline(always)]
    fn products<V: Vector, const N: usize>(
        token: V::Token,
        mut rows: Rows<[i16; 2], N>,
        lines: &[[[i16; 2]; PANEL]],
        ahead: &mut Prefetcher,
    ) -> [V; N] {
        let mut sums = [V::sums(token, 0); N];
        // With more than two steps a turn compilers mix them, and run out of registers.
        let (twos, rest) = lines.as_chunks::<2>();
        for two in twos {
            let Some(rows) = rows.take::<2>() else { break };
            ahead.advance();
            for (i, line) in two.iter().enumerate() {
                for (sum, row) in sums.iter_mut().zip(rows) {
                    *sum = V::add_pairs(*sum, row[i], line);
                }
            }
        }
        for line in rest {
            let Some(rows) = rows.take::<1>() else { break };
            for (sum, [pair]) in sums.iter_mut().zip(rows) {
                *sum = V::add_pairs(*sum, *pair, line);
            }
        }
        let mut products = [V::splat(token, 0.0); N];
        for (product, sums) in products.iter_mut().zip(sums) {
            *product = V::from_sums(sums);
        }
        products
    }
}

/// All rows from `first` on with one panel.
#[doc(hidden)]
#[derive(Debug)]
pub struct Strip<'a, T> {
    rows: &'a [T],
    xs: &'a [f32],
    first: usize,
    lines: &'a [[T; PANEL]],
    slopes: &'a [f32; PANEL],
    limits: &'a [f32; PANEL],
    column: usize,
    ahead: Prefetcher<'a>,
    /// Bytes to prefetch with each tile.
    share: usize,
    told: &'a mut Vec<Reached>,
}

/// As many whole tiles of `N` rows as there are; it returns what is left.
struct Tiles<'a, T, const N: usize>(Strip<'a, T>);

impl<'a, T: Factor, const N: usize> SixteenKernel for Tiles<'a, T, N> {
    type Output = Strip<'a, T>;

    #[inline(always)]
    fn run<V: Vector>(self, token: V::Token) -> Strip<'a, T> {
        let Tiles(mut strip) = self;
        let depth = strip.lines.len();
        while strip.first + N <= strip.xs.len() {
            let rows = Rows::<T, N>::new(&strip.rows[strip.first * depth..], depth, depth);
            let mut ahead = strip.ahead.take(strip.share);
            let products = T::products::<V, N>(token, rows, strip.lines, &mut ahead);
            let (slopes, limits) = (V::load(token, strip.slopes), V::load(token, strip.limits));
            for (row, products) in (strip.first..).zip(products) {
                let x = V::splat(token, strip.xs[row]);
                if slopes.mul_add(x, products).any_reaches(limits) {
                    let mut reached = Reached { row, column: strip.column, products: [0.0; PANEL] };
                    products.store(&mut reached.products);
                    strip.told.push(reached);
                }
            }
            strip.first += N;
        }
        strip
    }
}
