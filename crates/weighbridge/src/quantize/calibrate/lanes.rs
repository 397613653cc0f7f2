//! The kernels of rounding: sixteen rows side by side, a lane for each.

use super::cholesky::{Factor, Lanes};
use std::ops::Range;
use weighbridge_codec::panel::PANEL;
use weighbridge_codec::simd::{Lines, Rows, Vector, dispatch};

/// Sixteen rows in the making, column by column.
#[derive(Debug)]
pub(super) struct Group {
    pub weights: Vec<Lanes>,
    /// What the errors so far are in each value of `e R`.
    pub residual: Vec<Lanes>,
    /// Weight less value.
    pub errors: Vec<Lanes>,
    pub codes: Vec<Lanes>,
    /// The step of each row in the block that is rounded.
    pub steps: Lanes,
}

impl Group {
    /// Rows of so many weights, all of them zero so far.
    pub(super) fn new(width: usize) -> Group {
        let zeros = || vec![[0.0; PANEL]; width];
        Group {
            weights: zeros(),
            residual: zeros(),
            errors: zeros(),
            codes: zeros(),
            steps: [0.0; PANEL],
        }
    }
}

/// Rows, up to sixteen of them, to lanes.
pub(super) fn to_lanes(rows: &[f32], width: usize, lanes: &mut [Lanes]) {
    for (i, row) in rows.chunks_exact(width).enumerate() {
        lanes.iter_mut().zip(row).for_each(|(lane, value)| lane[i] = *value);
    }
}

dispatch! {
    /// Gives some columns their values in order, each with the errors before it in mind, and tells the
    /// columns up to the end of their errors. With a largest code the values are rounded; without, they
    /// are what they should be.
    pub(super) fn advance(
        factor: &Factor,
        columns: Range<usize>,
        end: usize,
        largest: Option<i8>,
        group: &mut Group,
    ) = sixteen advance_with;

    /// Makes `e H` of the residual, which is `e R` but for the own errors of each column.
    pub(super) fn to_gradient(factor: &Factor, group: &mut Group) = sixteen to_gradient_with;

    /// What one more of the step would change: the products of a block's codes with the gradient, and
    /// with each other by `H`.
    pub(super) fn along(
        squares: &[f32],
        width: usize,
        columns: Range<usize>,
        group: &Group,
    ) -> (Lanes, Lanes) = sixteen along_with;

    /// Takes over changes of the steps, gives the codes of a block the values that suit the others
    /// best, and tells the columns behind it.
    pub(super) fn improve(
        squares: &[f32],
        width: usize,
        columns: Range<usize>,
        changes: &Lanes,
        largest: i8,
        group: &mut Group,
    ) = sixteen improve_with;

    /// Solves `z Rᵀ = residual` for some columns, with those behind them solved, and tells the columns
    /// before them.
    pub(super) fn solve(factor: &Factor, columns: Range<usize>, group: &mut Group) = sixteen solve_with;
}

#[inline(always)]
fn advance_with<V: Vector>(
    token: V::Token,
    factor: &Factor,
    columns: Range<usize>,
    end: usize,
    largest: Option<i8>,
    group: &mut Group,
) {
    let rounding = Nearest::<V>::new(token, &group.steps, largest.unwrap_or(0));
    let minus = V::splat(token, -1.0);
    for k in columns.clone() {
        let row = &factor.values[k * factor.stride..][..columns.end];
        let weight = V::load(token, &group.weights[k]);
        let missing = V::load(token, &group.residual[k]).mul(V::splat(token, factor.inverses[k]));
        let error = if largest.is_some() {
            let code = rounding.code(weight.add(missing).mul(rounding.inverse_steps));
            code.store(&mut group.codes[k]);
            code.mul(rounding.steps).mul_add(minus, weight)
        } else {
            missing.mul(minus)
        };
        error.store(&mut group.errors[k]);
        let rest = group.residual[k + 1..columns.end].iter_mut().zip(&row[k + 1..]);
        for (residual, factor) in rest {
            let sum = V::splat(token, *factor).mul_add(error, V::load(token, residual));
            sum.store(residual);
        }
    }
    let values = &factor.values[columns.start * factor.stride..];
    let errors = &group.errors[columns.clone()];
    tell::<V>(token, errors, values, factor.stride, columns.end..end, &mut group.residual);
}

/// Adds errors to the residual of columns, by the rows of a matrix from that of the first error on.
#[inline(always)]
fn tell<V: Vector>(
    token: V::Token,
    errors: &[Lanes],
    matrix: &[f32],
    stride: usize,
    columns: Range<usize>,
    residual: &mut [Lanes],
) {
    let mut at = columns.start;
    while at + TILE <= columns.end {
        let tile = &mut residual[at..at + TILE];
        add_tile::<V, TILE>(token, errors, &matrix[at..], stride, tile);
        at += TILE;
    }
    for at in at..columns.end {
        add_tile::<V, 1>(token, errors, &matrix[at..], stride, &mut residual[at..=at]);
    }
}

#[inline(always)]
fn to_gradient_with<V: Vector>(token: V::Token, factor: &Factor, group: &mut Group) {
    let width = factor.width;
    for k in 0..width {
        let own = V::splat(token, factor.values[k * (factor.stride + 1)]);
        let lanes = &mut group.residual[k];
        V::load(token, &group.errors[k]).mul_add(own, V::load(token, lanes)).store(lanes);
    }
    // Of values behind the diagonal only, so that each row can take the place of its column.
    for start in (0..width).step_by(TILE) {
        let (before, behind) = group.residual.split_at_mut(width.min(start + TILE));
        let values = &factor.values[start * factor.stride..];
        let end = before.len();
        for k in start..end {
            let row = &values[(k - start) * factor.stride..][..end];
            let mut sum = V::splat(token, 0.0);
            for (lanes, factor) in before[k..].iter().zip(&row[k..]) {
                sum = V::splat(token, *factor).mul_add(V::load(token, lanes), sum);
            }
            sum.store(&mut before[k]);
        }
        let own = &mut before[start..];
        match own.len() {
            TILE => row_products::<V, TILE>(token, behind, &values[end..], factor.stride, 1.0, own),
            _ => {
                for (i, lanes) in own.chunks_exact_mut(1).enumerate() {
                    let values = &values[i * factor.stride + end..];
                    row_products::<V, 1>(token, behind, values, factor.stride, 1.0, lanes);
                }
            }
        }
    }
}

#[inline(always)]
fn along_with<V: Vector>(
    token: V::Token,
    squares: &[f32],
    width: usize,
    columns: Range<usize>,
    group: &Group,
) -> (Lanes, Lanes) {
    let zero = V::splat(token, 0.0);
    let (mut along, mut half, mut diagonal) = (zero, zero, zero);
    for k in columns.clone() {
        let code = V::load(token, &group.codes[k]);
        along = code.mul_add(V::load(token, &group.residual[k]), along);
        let row = &squares[k * width..][..columns.end];
        diagonal = code.mul(V::splat(token, row[k])).mul_add(code, diagonal);
        let mut sum = zero;
        for (other, square) in group.codes[k + 1..columns.end].iter().zip(&row[k + 1..]) {
            sum = V::splat(token, *square).mul_add(V::load(token, other), sum);
        }
        half = code.mul_add(sum, half);
    }
    let (mut products, mut all) = ([0.0; PANEL], [0.0; PANEL]);
    along.store(&mut products);
    half.mul_add(V::splat(token, 2.0), diagonal).store(&mut all);
    (products, all)
}

#[inline(always)]
fn improve_with<V: Vector>(
    token: V::Token,
    squares: &[f32],
    width: usize,
    columns: Range<usize>,
    changes: &Lanes,
    largest: i8,
    group: &mut Group,
) {
    let rounding = Nearest::<V>::new(token, &group.steps, largest);
    let (changes, minus) = (V::load(token, changes), V::splat(token, -1.0));
    // Less by so much, of each column: at first because of the steps.
    for k in columns.clone() {
        changes.mul(V::load(token, &group.codes[k])).mul(minus).store(&mut group.errors[k]);
    }
    for k in columns.clone() {
        let change = V::load(token, &group.errors[k]);
        add_to_block::<V>(token, squares, width, k, columns.clone(), change, &mut group.residual);
    }
    for k in columns.clone() {
        let code = V::load(token, &group.codes[k]);
        let square = V::splat(token, 1.0 / squares[k * width + k]);
        let better = V::load(token, &group.residual[k]).mul(square);
        let new = rounding.code(better.mul(rounding.inverse_steps).add(code));
        let change = code.add(new.mul(minus)).mul(rounding.steps);
        new.store(&mut group.codes[k]);
        add_to_block::<V>(token, squares, width, k, columns.clone(), change, &mut group.residual);
        change.add(V::load(token, &group.errors[k])).store(&mut group.errors[k]);
    }
    let (start, end) = (columns.start, columns.end);
    let values = &squares[start * width..];
    tell::<V>(token, &group.errors[columns], values, width, end..width, &mut group.residual);
}

/// Adds the error of a column to the residual of all columns of its block, by the right half of `H`.
#[inline(always)]
fn add_to_block<V: Vector>(
    token: V::Token,
    squares: &[f32],
    width: usize,
    column: usize,
    columns: Range<usize>,
    error: V,
    residual: &mut [Lanes],
) {
    for other in columns {
        let (first, second) = if other < column { (other, column) } else { (column, other) };
        let square = V::splat(token, squares[first * width + second]);
        let lanes = &mut residual[other];
        square.mul_add(error, V::load(token, lanes)).store(lanes);
    }
}

/// Rounding to codes of some steps.
struct Nearest<V> {
    steps: V,
    inverse_steps: V,
    limits: (V, V),
    rounders: (V, V),
}

impl<V: Vector> Nearest<V> {
    #[inline(always)]
    fn new(token: V::Token, steps: &Lanes, largest: i8) -> Self {
        let inverse = |step: f32| if step > 0.0 { 1.0 / step } else { 0.0 };
        let limit = f32::from(largest);
        // Adding and subtracting it rounds to an integer.
        let rounder = 1.5 * (1 << 23) as f32;
        Nearest {
            steps: V::load(token, steps),
            inverse_steps: V::load(token, &steps.map(inverse)),
            limits: (V::splat(token, -limit), V::splat(token, limit)),
            rounders: (V::splat(token, rounder), V::splat(token, -rounder)),
        }
    }

    /// The code for so many steps.
    #[inline(always)]
    fn code(&self, steps: V) -> V {
        let steps = steps.max(self.limits.0);
        let steps = V::select_less(steps, self.limits.1, steps, self.limits.1);
        steps.add(self.rounders.0).add(self.rounders.1)
    }
}

/// Columns whose sums registers can hold.
const TILE: usize = 6;

/// Adds errors to the residual of some columns, by lines of the factor.
#[inline(always)]
fn add_tile<V: Vector, const N: usize>(
    token: V::Token,
    errors: &[Lanes],
    factor: &[f32],
    stride: usize,
    residual: &mut [Lanes],
) {
    let mut sums = [V::splat(token, 0.0); N];
    sums.iter_mut().zip(&*residual).for_each(|(sum, lanes)| *sum = V::load(token, lanes));
    let mut lines = Lines::<f32, N>::new(factor, stride, errors.len());
    for error in errors {
        let Some([line]) = lines.take::<1>() else { break };
        let error = V::load(token, error);
        for (sum, factor) in sums.iter_mut().zip(line) {
            *sum = V::splat(token, *factor).mul_add(error, *sum);
        }
    }
    sums.into_iter().zip(residual).for_each(|(sum, lanes)| sum.store(lanes));
}

#[inline(always)]
fn solve_with<V: Vector>(
    token: V::Token,
    factor: &Factor,
    columns: Range<usize>,
    group: &mut Group,
) {
    let Range { start, end } = columns;
    for k in (start..end).rev() {
        let row = &factor.values[k * factor.stride..][..end];
        let (head, solved) = group.residual.split_at_mut(k + 1);
        let mut sum = V::load(token, &head[k]);
        for (lanes, factor) in solved.iter().zip(&row[k + 1..]) {
            sum = V::splat(token, -factor).mul_add(V::load(token, lanes), sum);
        }
        sum.mul(V::splat(token, factor.inverses[k])).store(&mut head[k]);
    }
    let (before, solved) = group.residual.split_at_mut(start);
    let solved = &solved[..end - start];
    let mut at = 0;
    while at < start {
        let values = &factor.values[at * factor.stride + start..];
        if at + TILE <= start {
            let tile = &mut before[at..at + TILE];
            row_products::<V, TILE>(token, solved, values, factor.stride, -1.0, tile);
            at += TILE;
        } else {
            let tile = &mut before[at..=at];
            row_products::<V, 1>(token, solved, values, factor.stride, -1.0, tile);
            at += 1;
        }
    }
}

/// Adds to the residual of some columns what their rows of the factor make of other columns, with a sign.
#[inline(always)]
fn row_products<V: Vector, const N: usize>(
    token: V::Token,
    others: &[Lanes],
    factor: &[f32],
    stride: usize,
    sign: f32,
    residual: &mut [Lanes],
) {
    let mut sums = [V::splat(token, 0.0); N];
    let mut rows = Rows::<f32, N>::new(factor, stride, others.len());
    for lanes in others {
        let Some(values) = rows.take::<1>() else { break };
        let lanes = V::load(token, lanes);
        for (sum, [factor]) in sums.iter_mut().zip(values) {
            *sum = V::splat(token, *factor).mul_add(lanes, *sum);
        }
    }
    let sign = V::splat(token, sign);
    for (sum, lanes) in sums.into_iter().zip(residual) {
        sum.mul_add(sign, V::load(token, lanes)).store(lanes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weighbridge_codec::simd::Level;

    const WIDTH: usize = 70;

    fn noise(i: usize) -> f32 {
        ((i * 7919 + 13) % 1009) as f32 / 1009.0 - 0.5
    }

    /// A positive matrix and its factor.
    fn matrix() -> (Vec<f32>, Factor) {
        let row = |i: usize| (0..WIDTH).map(move |k| noise(i * WIDTH + k));
        let product = |i: usize, j: usize| row(i).zip(row(j)).map(|(a, b)| a * b).sum::<f32>();
        let all = (0..WIDTH * WIDTH).map(|at| {
            let (i, j) = (at / WIDTH, at % WIDTH);
            product(i, j) + if i == j { 2.0 } else { 0.0 }
        });
        let squares: Vec<f32> = all.collect();
        let factor = Factor::new(&squares, WIDTH).unwrap();
        (squares, factor)
    }

    fn blocks() -> impl DoubleEndedIterator<Item = Range<usize>> {
        (0..WIDTH).step_by(32).map(|start| start..WIDTH.min(start + 32))
    }

    /// A lane of `lanes H`.
    fn times(lanes: &[Lanes], squares: &[f32], column: usize, lane: usize) -> f64 {
        let values = lanes.iter().zip(squares.iter().skip(column).step_by(WIDTH));
        values.map(|(l, s)| f64::from(l[lane]) * f64::from(*s)).sum()
    }

    /// Weights that were rounded, with the residual as gradient.
    fn rounded(level: Level, factor: &Factor) -> Group {
        let mut group = Group::new(WIDTH);
        for (k, lanes) in group.weights.iter_mut().enumerate() {
            *lanes = std::array::from_fn(|lane| noise(k * 31 + lane * 517));
        }
        group.steps = std::array::from_fn(|lane| lane as f32 * 0.02);
        for columns in blocks() {
            advance(level, factor, columns, WIDTH, Some(7), &mut group);
        }
        to_gradient(level, factor, &mut group);
        group
    }

    #[test]
    fn the_gradient_is_that_of_the_errors() {
        let (squares, factor) = matrix();
        let group = rounded(Level::best(), &factor);
        for (k, residual) in group.residual.iter().enumerate() {
            for (lane, found) in residual.iter().enumerate() {
                let value = group.weights[k][lane] - group.codes[k][lane] * group.steps[lane];
                assert!((value - group.errors[k][lane]).abs() < 1e-5);
                let expected = times(&group.errors, &squares, k, lane);
                assert!((f64::from(*found) - expected).abs() < 1e-3, "{found} {expected}");
            }
        }
    }

    #[test]
    fn what_is_solved_gives_the_right_side() {
        let (squares, factor) = matrix();
        let mut group = Group::new(WIDTH);
        for (k, lanes) in group.residual.iter_mut().enumerate() {
            *lanes = std::array::from_fn(|lane| noise(k * 97 + lane * 41));
        }
        let right = group.residual.clone();
        let level = Level::best();
        blocks().rev().for_each(|columns| solve(level, &factor, columns, &mut group));
        // With nothing to round, what is missing is what the equations ask for.
        blocks().for_each(|columns| advance(level, &factor, columns, WIDTH, None, &mut group));
        for (k, right) in right.iter().enumerate() {
            for (lane, right) in right.iter().enumerate() {
                let found = -times(&group.errors, &squares, k, lane);
                assert!((found - f64::from(*right)).abs() < 1e-3, "{found} {right}");
            }
        }
    }

    /// Changes of codes make the error smaller, and the gradient stays that of the errors behind them.
    #[test]
    fn better_codes_are_better() {
        let (squares, factor) = matrix();
        let mut group = rounded(Level::best(), &factor);
        let error = |group: &Group, lane: usize| -> f64 {
            let errors: Vec<Lanes> = (0..WIDTH)
                .map(|k| {
                    let value = |lane: usize| group.codes[k][lane] * group.steps[lane];
                    std::array::from_fn(|lane| group.weights[k][lane] - value(lane))
                })
                .collect();
            let each = |k: usize| f64::from(errors[k][lane]) * times(&errors, &squares, k, lane);
            (0..WIDTH).map(each).sum()
        };
        let before: Vec<_> = (0..PANEL).map(|lane| error(&group, lane)).collect();
        for columns in blocks() {
            let level = Level::best();
            let (products, all) = along(level, &squares, WIDTH, columns.clone(), &group);
            let exact: f64 = columns
                .clone()
                .map(|k| f64::from(group.codes[k][5]) * f64::from(group.residual[k][5]))
                .sum();
            assert!((f64::from(products[5]) - exact).abs() < 1e-2);
            assert!(all[5] > 0.0 && all[0] == 0.0);
            improve(level, &squares, WIDTH, columns, &[0.0; PANEL], 7, &mut group);
        }
        let after: Vec<_> = (0..PANEL).map(|lane| error(&group, lane)).collect();
        assert!(before.iter().zip(&after).all(|(before, after)| *after <= before + 1e-4));
        assert!(after.iter().sum::<f64>() < before.iter().sum::<f64>());
    }

    #[test]
    fn every_level_has_the_bits_of_the_definition() {
        let (squares, factor) = matrix();
        let all = |level: Level| {
            let mut group = rounded(level, &factor);
            let columns = 32..64;
            let lanes = along(level, &squares, WIDTH, columns.clone(), &group);
            improve(level, &squares, WIDTH, columns.clone(), &[0.001; PANEL], 7, &mut group);
            solve(level, &factor, columns, &mut group);
            (lanes, group.residual, group.errors, group.codes)
        };
        for level in Level::available() {
            assert_eq!(all(level), all(level.definition()), "{level}");
        }
    }
}
