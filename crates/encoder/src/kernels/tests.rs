//! Every kernel at every level against its definition.
//!
//! What rounds multiply-adds alike has the same bits; and what is rounded is as near to the exact
//! result as the arithmetic says.

mod rounded_to_bytes;

use super::matrix::{Left, Panels};
use super::walk::{Activation, Results, Start};
use super::*;
use std::ops::Range;
use weighbridge_codec::memory::Arena;
#[allow(unused_imports, reason = "without threads it has nothing that is used here")]
use weighbridge_codec::parallel::*;
use weighbridge_codec::simd::Level;

/// Half a unit in the last place of one: the relative error of one rounding.
const ROUNDING: f64 = 1.0 / (1 << 24) as f64;

/// Values that look random, from -1 to 1.
pub(crate) fn noise(count: usize, seed: u32) -> Vec<f32> {
    let mut state = seed.wrapping_mul(2_654_435_761).max(1);
    let next = || {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        (state >> 8) as f32 / 8_388_608.0 - 1.0
    };
    std::iter::repeat_with(next).take(count).collect()
}

/// Sizes around those of tiles and panels: rows, depth, columns.
const SIZES: [(usize, usize, usize); 9] = [
    (1, 1, 1),
    (2, 3, 17),
    (5, 32, 16),
    (6, 33, 15),
    (7, 7, 48),
    (13, 384, 40),
    (12, 64, 32),
    (25, 385, 33),
    (11, 800, 16),
];

/// Random operands of a product.
struct Case {
    rows: usize,
    depth: usize,
    columns: usize,
    a: Vec<f32>,
    b: Vec<f32>,
    bias: Vec<f32>,
    before: Vec<f32>,
}

impl Case {
    fn new((rows, depth, columns): (usize, usize, usize)) -> Case {
        let (a, b) = (noise(rows * depth, 1), noise(columns * depth, 2));
        let bias = noise(columns.next_multiple_of(PANEL), 3);
        Case { rows, depth, columns, a, b, bias, before: noise(rows * columns, 4) }
    }

    /// The results of a product that is given where to put them.
    fn results(&self, accumulate: bool, multiply: impl Fn(Results)) -> Vec<f32> {
        let mut c = self.before.clone();
        let start = match accumulate {
            true => Start::BiasAndResidual(&self.bias),
            false => Start::Bias(&self.bias),
        };
        let stride = self.columns;
        multiply(Results { start, activation: Activation::None, c: &mut c, stride });
        c
    }

    /// The panels of a matrix, with the rows that belong into each.
    fn rows_of_panel(&self, first: usize) -> &[f32] {
        &self.b[first * self.depth..self.columns.min(first + PANEL) * self.depth]
    }

    fn all(&self) -> (Range<usize>, Range<usize>) {
        (0..self.rows, 0..self.columns.div_ceil(PANEL))
    }

    /// Row, column, row of `a` and column of `b` for each result.
    fn each(&self) -> impl Iterator<Item = (usize, usize, &[f32], &[f32])> {
        let all = (0..self.rows).flat_map(|r| (0..self.columns).map(move |j| (r, j)));
        all.map(|(r, j)| {
            (r, j, &self.a[r * self.depth..][..self.depth], &self.b[j * self.depth..][..self.depth])
        })
    }

    /// Asserts that results are as near to the exact ones as the bound of a row and a column says,
    /// beside the rounding of so many sums.
    fn assert_near(&self, c: &[f32], sums: usize, bound: impl Fn(&[f32], &[f32]) -> f64) {
        for (r, j, a, b) in self.each() {
            let start = [self.bias[j], self.before[r * self.columns + j]].map(f64::from);
            let products = a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b));
            let exact = products.clone().chain(start).sum::<f64>();
            let size = products.chain(start).map(f64::abs).sum::<f64>();
            let bound = bound(a, b) + sums as f64 * ROUNDING * size;
            let error = (f64::from(c[r * self.columns + j]) - exact).abs();
            assert!(error <= bound, "{r} {j} of {:?}: {error} {bound}", self.all());
        }
    }

    fn packed(&self) -> matrix::Packed {
        let mut packed = matrix::Packed::new(self.columns, self.depth, &Arena::default());
        packed.panels_mut().for_each(|(first, panel)| {
            matrix::pack(self.rows_of_panel(first), self.depth, panel);
        });
        packed
    }

    fn left(&self) -> Left<'_> {
        Left { data: &self.a, stride: self.depth, rows: self.rows }
    }
}

/// The result of a product as it is defined: in order, rounded once or twice a step.
fn in_order(level: Level, start: f32, products: impl Iterator<Item = (f32, f32)>) -> f32 {
    match level.definition() {
        Level::PLAIN => products.fold(start, |sum, (a, b)| a * b + sum),
        _ => products.fold(start, |sum, (a, b)| a.mul_add(b, sum)),
    }
}

#[test]
fn products_have_the_bits_of_their_definition() {
    for case in SIZES.map(Case::new) {
        let packed = case.packed();
        for level in Level::available() {
            for accumulate in [false, true] {
                let c = case.results(accumulate, |results| {
                    matrix::multiply(level, case.left(), packed.panels(), results);
                });
                for (r, j, a, b) in case.each() {
                    let at = r * case.columns + j;
                    let before = if accumulate { case.before[at] } else { 0.0 };
                    let pairs = a.iter().copied().zip(b.iter().copied());
                    let expected = in_order(level, case.bias[j] + before, pairs);
                    assert_eq!(c[at], expected, "{level} {r} {j} of {:?}", case.all());
                }
            }
        }
    }
}

#[test]
fn products_do_not_depend_on_their_neighbours() {
    let case = Case::new((29, 391, 50));
    let packed = case.packed();
    for level in Level::available() {
        let together = case.results(false, |results| {
            matrix::multiply(level, case.left(), packed.panels(), results);
        });
        for (r, together) in together.chunks_exact(case.columns).enumerate() {
            let mut alone = vec![0.0; case.columns];
            let left = Left { data: &case.a[r * case.depth..], stride: case.depth, rows: 1 };
            let (start, activation) = (Start::Bias(&case.bias), Activation::None);
            let results = Results { start, activation, c: &mut alone, stride: case.columns };
            matrix::multiply(level, left, packed.panels(), results);
            assert_eq!(alone, together, "{level}");
        }
    }
}

#[test]
fn rows_may_lie_apart() {
    // As in attention: values of one head among those of others, panels of more tokens.
    let (rows, depth, head, stride) = (9, 21, 40, 30 * PANEL);
    let (a, b) = (noise(rows * 40, 7), noise(2 * stride + depth * PANEL, 8));
    let values = Panels { data: &b, depth, columns: head, panel_stride: stride };
    for level in Level::available() {
        let mut c = vec![0.0; rows * 50];
        let left = Left { data: &a, stride: 40, rows };
        let (start, activation) = (Start::Zero, Activation::None);
        matrix::multiply(level, left, values, Results { start, activation, c: &mut c, stride: 50 });
        for (i, found) in c.into_iter().enumerate() {
            let (r, j) = (i / 50, i % 50);
            let column = j / PANEL * stride + j % PANEL;
            let pairs = (0..depth).map(|k| (a[r * 40 + k], b[k * PANEL + column]));
            let expected = if j < head { in_order(level, 0.0, pairs) } else { 0.0 };
            assert_eq!(found, expected, "{level} {r} {j}");
        }
    }
}

#[test]
fn activations_follow_the_last_product() {
    for case in SIZES.map(Case::new) {
        let packed = case.packed();
        for level in Level::available() {
            let sums = case.results(true, |results| {
                matrix::multiply(level, case.left(), packed.panels(), results);
            });
            let found = case.results(true, |results| {
                let results = Results { activation: Activation::Relu, ..results };
                matrix::multiply(level, case.left(), packed.panels(), results);
            });
            let expected: Vec<f32> = sums.iter().map(|sum| sum.max(0.0)).collect();
            assert_eq!(found, expected, "{level}");
        }
    }
}

#[test]
fn sides_that_are_too_short_panic() {
    let case = Case::new((7, 33, 20));
    let packed = case.packed();
    let fails =
        |what: &dyn Fn()| std::panic::catch_unwind(std::panic::AssertUnwindSafe(what)).is_err();
    for level in Level::available() {
        let multiply = |a: usize, b: usize, c: usize| {
            let (left, panels) = (case.left(), packed.panels());
            let left = Left { data: &left.data[a..], ..left };
            let panels = Panels { data: &panels.data[b..], ..panels };
            let (mut out, start) = (vec![0.0; case.rows * case.columns - c], Start::Zero);
            let activation = Activation::None;
            let results = Results { start, activation, c: &mut out, stride: case.columns };
            matrix::multiply(level, left, panels, results);
        };
        multiply(0, 0, 0);
        assert!(fails(&|| multiply(1, 0, 0)), "{level}");
        assert!(fails(&|| multiply(0, 1, 0)), "{level}");
        assert!(fails(&|| multiply(0, 0, 1)), "{level}");
    }
}

/// The results of rows and weights rounded to pairs.
fn pair_products(level: Level, case: &Case, kind: pairs::Kind) -> Vec<f32> {
    let mut packed = pairs::Packed::new(case.columns, case.depth, kind, &Arena::default());
    packed.panels_mut().for_each(|(first, mut panel)| {
        panel.pack(level, case.rows_of_panel(first), case.depth, &mut Vec::new());
    });
    let mut rounded = pairs::PairRows::default();
    rounded.round_rows(level, &case.a, case.depth, kind);
    case.results(true, |results| {
        pairs::multiply(level, &rounded, &packed, case.all(), results);
    })
}

fn largest(values: &[f32]) -> f64 {
    f64::from(values.iter().fold(0.0f32, |m, v| m.max(v.abs())))
}

fn total(values: &[f32]) -> f64 {
    values.iter().map(|v| f64::from(v.abs())).sum()
}

/// The most that rounding rows and columns to multiples of these scales can change a product.
fn rounding_bound(a: &[f32], b: &[f32], [scale_a, scale_b]: [f64; 2]) -> f64 {
    let both = a.len() as f64 * scale_a * scale_b / 4.0;
    // Quotients are rounded too, before they are rounded to integers.
    1.001 * (total(a) * scale_b / 2.0 + total(b) * scale_a / 2.0 + both)
}

#[test]
fn pairs_have_the_bits_of_their_definition_and_are_near() {
    for case in SIZES.map(Case::new) {
        for level in Level::available() {
            for kind in [pairs::Kind::Integers, pairs::Kind::Bf16] {
                let c = pair_products(level, &case, kind);
                let expected = pair_products(level.definition(), &case, kind);
                assert_eq!(c, expected, "{level} {kind:?} {:?}", case.all());
                match kind {
                    // The sum is exact, then multiplied and added to the start.
                    pairs::Kind::Integers => case.assert_near(&c, 5, |a, b| {
                        let room = f64::from(i32::MAX) / 4095.0 * 0.999 - b.len() as f64 / 2.0;
                        let scale = (largest(b) / 32_760.0).max(total(b) / room);
                        rounding_bound(a, b, [largest(a) / 4095.0, scale])
                    }),
                    // Eight bits of precision: each side is off by 2^-8 of itself at most.
                    pairs::Kind::Bf16 => case.assert_near(&c, 2 * case.depth + 4, |a, b| {
                        let products = a.iter().zip(b).map(|(a, b)| f64::from((a * b).abs()));
                        products.sum::<f64>() * (2f64.powi(-7) + 2f64.powi(-16))
                    }),
                }
            }
        }
    }
}

/// The results of rows and weights rounded to bf16, in tiles.
fn tile_products(level: Level, case: &Case) -> Vec<f32> {
    let mut packed = tiles::Packed::new(case.columns, case.depth, &Arena::default());
    packed.panels_mut().for_each(|(first, mut panel)| {
        panel.pack(level, case.rows_of_panel(first), case.depth, &mut Vec::new());
    });
    let mut rounded = tiles::TileRows::default();
    // What was there before is of no matter, even NaN.
    let nan = vec![f32::NAN; 40 * 900];
    rounded.round_rows(level, Left { data: &nan, stride: 900, rows: 40 }, 900);
    rounded.round_rows(level, case.left(), case.depth);
    case.results(true, |results| tiles::multiply(level, &rounded, packed.panels(), results))
}

#[test]
fn tiles_have_the_bits_of_their_definition_and_are_near() {
    // More rows and panels than two tiles of each, too.
    let large = [(70, 96, 100), (33, 32, 48), (16, 65, 32)].map(Case::new);
    for case in SIZES.map(Case::new).into_iter().chain(large) {
        for level in Level::available() {
            let c = tile_products(level, &case);
            assert_eq!(c, tile_products(Level::PLAIN, &case), "{level} {:?}", case.all());
            case.assert_near(&c, 2 * case.depth + 4, |a, b| {
                let products = a.iter().zip(b).map(|(a, b)| f64::from((a * b).abs()));
                products.sum::<f64>() * (2f64.powi(-7) + 2f64.powi(-16))
            });
        }
    }
}

#[test]
fn activations_follow_tiles() {
    let case = Case::new((35, 40, 41));
    for level in Level::available() {
        let mut packed = tiles::Packed::new(case.columns, case.depth, &Arena::default());
        packed.panels_mut().for_each(|(first, mut panel)| {
            panel.pack(level, case.rows_of_panel(first), case.depth, &mut Vec::new());
        });
        let mut rounded = tiles::TileRows::default();
        rounded.round_rows(level, case.left(), case.depth);
        for activation in [Activation::Relu, Activation::Gelu] {
            let found = case.results(false, |results| {
                let results = Results { activation, ..results };
                tiles::multiply(level, &rounded, packed.panels(), results);
            });
            let mut expected = case.results(false, |results| {
                tiles::multiply(level, &rounded, packed.panels(), results);
            });
            expected.resize(expected.len().next_multiple_of(PANEL), 0.0);
            match activation {
                Activation::Relu => lanes::relu(level, &mut expected),
                _ => lanes::gelu(level, &mut expected),
            }
            assert_eq!(found, expected[..found.len()], "{level}");
        }
    }
}

/// Rows of a table are added one after the other, with the same bits at every level.
#[test]
fn rows_are_added_in_their_order() {
    let weights = [1.0, 0.5, -2.25, 0.0];
    for width in (0..40).chain([256, 1027]) {
        let rows: [Vec<f32>; lanes::ROWS] = std::array::from_fn(|i| noise(width, 7 + i as u32));
        let bytes =
            rows.each_ref().map(|row| row.iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<_>>());
        // Fewer sums than a row has values, as many, and more.
        for length in [width / 2, width, width + 3] {
            let before = noise(length, 3);
            let mut expected = before.clone();
            for (row, weight) in rows.iter().zip(weights) {
                expected.iter_mut().zip(row).for_each(|(sum, value)| *sum += weight * value);
            }
            for level in Level::available() {
                let mut sums = before.clone();
                lanes::add_rows(level, &mut sums, bytes.each_ref().map(Vec::as_slice), weights);
                assert_eq!(sums, expected, "{level:?}, {width} values, {length} sums");
            }
        }
    }
}
