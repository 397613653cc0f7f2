//! Rows of codes, numbers from -128 to 127, with a vector of integers. Sums of integers are exact, so
//! what is lost is what the vector lost when it was rounded, and the last rounding of the sums.

use super::{AHEAD, LINE, ROWS};
use crate::simd::{Eight, EightKernel, Level, Rows, prefetch_line};

/// Codes that are multiplied at a time.
pub const CODES_TOGETHER: usize = 16;

/// How many codes of rows are taken together from each quarter of all.
const CACHED_CODES: usize = 1 << 14;

/// The product of each row of `dim` codes with `factors`, and each row's product with itself.
///
/// The factors are padded with zeros to a multiple of [`CODES_TOGETHER`]. As eight sums of 32 bits
/// are added up, none of them may overflow: that is so for factors within `2^27 / dim`. Each sum is
/// then rounded to f32, and their sum too.
///
/// # Panics
///
/// When `dim` is 0, `codes` are not whole rows, there are not as many factors, or `products` or
/// `squares` do not have a place for each row exactly.
pub fn code_dots(
    level: Level,
    codes: &[u8],
    dim: usize,
    factors: &[i16],
    products: &mut [f32],
    squares: Option<&mut [f32]>,
) {
    assert!(codes.len().is_multiple_of(dim), "whole rows");
    let count = codes.len() / dim;
    assert_eq!(factors.len(), dim.next_multiple_of(CODES_TOGETHER), "a factor for each code");
    assert_eq!(products.len(), count, "a product for each row");
    let factors = factors.as_chunks().0;
    match squares {
        Some(squares) => {
            assert_eq!(squares.len(), count, "a square for each row");
            run::<true>(level, codes, dim, factors, products, squares);
        }
        None => run::<false>(level, codes, dim, factors, products, &mut []),
    }
}

/// Appends nothing and overwrites everything: the codes as pairs of 16 bits, row by row, with a zero
/// behind rows of an odd number.
///
/// # Panics
///
/// When `dim` is 0.
pub fn widen_codes(level: Level, codes: &[u8], dim: usize, pairs: &mut Vec<[i16; 2]>) {
    pairs.resize(codes.len() / dim * dim.div_ceil(2), [0; 2]);
    level.run_eight(Widen { codes, dim, pairs });
}

struct Widen<'a> {
    codes: &'a [u8],
    dim: usize,
    pairs: &'a mut [[i16; 2]],
}

impl EightKernel for Widen<'_> {
    type Output = ();

    /// Compilers know how to do this with any processor; here they may use what it has.
    #[inline(always)]
    fn run<V: Eight>(self, _: V::Token) {
        let Widen { codes, dim, pairs } = self;
        let width = dim.next_multiple_of(2);
        let pairs = pairs.as_flattened_mut();
        for (row, wide) in codes.chunks_exact(dim).zip(pairs.chunks_exact_mut(width)) {
            for (code, wide) in row.iter().zip(wide.iter_mut()) {
                *wide = i16::from(code.cast_signed());
            }
            wide[dim..].fill(0);
        }
    }
}

fn run<const SQUARES: bool>(
    level: Level,
    codes: &[u8],
    dim: usize,
    factors: &[[i16; CODES_TOGETHER]],
    products: &mut [f32],
    squares: &mut [f32],
) {
    let count = products.len();
    let quarter = count / ROWS;
    let together = (CACHED_CODES / dim).max(1);
    for first in (0..quarter).step_by(together) {
        let (end, spacing) = (quarter.min(first + together), quarter);
        let (products, squares) = (&mut *products, &mut *squares);
        level.run_eight(Strip::<ROWS, SQUARES> {
            codes,
            dim,
            factors,
            rows: first..end,
            spacing,
            products,
            squares,
        });
    }
    let rows = ROWS * quarter..count;
    level.run_eight(Strip::<1, SQUARES> {
        codes,
        dim,
        factors,
        rows,
        spacing: 0,
        products,
        squares,
    });
}

/// The rows of a range, and those `spacing` rows behind them, `ROWS` times.
struct Strip<'a, const ROWS: usize, const SQUARES: bool> {
    codes: &'a [u8],
    dim: usize,
    factors: &'a [[i16; CODES_TOGETHER]],
    rows: std::ops::Range<usize>,
    spacing: usize,
    products: &'a mut [f32],
    squares: &'a mut [f32],
}

impl<const ROWS: usize, const SQUARES: bool> EightKernel for Strip<'_, ROWS, SQUARES> {
    type Output = ();

    #[inline(always)]
    fn run<V: Eight>(self, token: V::Token) {
        let Strip { codes, dim, factors, rows, spacing, products, squares } = self;
        for row in rows {
            let zero = V::sums(token, 0);
            let (mut sums, mut own) = ([zero; ROWS], [zero; ROWS]);
            let mut places = Rows::<u8, ROWS>::new(&codes[row * dim..], spacing * dim, dim);
            let mut factors = factors.iter();
            while let Some(lines) = places.take::<LINE>() {
                for line in lines {
                    prefetch_line(line, AHEAD);
                }
                for step in 0..LINE / CODES_TOGETHER {
                    let Some(factors) = factors.next() else { break };
                    for r in 0..ROWS {
                        let codes = &lines[r].as_chunks().0[step];
                        sums[r] = V::add_codes(sums[r], codes, factors);
                        if SQUARES {
                            own[r] = V::add_code_squares(own[r], codes);
                        }
                    }
                }
            }
            while let Some(codes) = places.take::<CODES_TOGETHER>() {
                let Some(factors) = factors.next() else { break };
                for r in 0..ROWS {
                    sums[r] = V::add_codes(sums[r], codes[r], factors);
                    if SQUARES {
                        own[r] = V::add_code_squares(own[r], codes[r]);
                    }
                }
            }
            if let Some(factors) = factors.next() {
                let rest = dim % CODES_TOGETHER;
                for r in 0..ROWS {
                    let mut last = [0; CODES_TOGETHER];
                    let codes = &codes[(row + r * spacing) * dim..][..dim];
                    last[..rest].copy_from_slice(&codes[dim - rest..]);
                    sums[r] = V::add_codes(sums[r], &last, factors);
                    if SQUARES {
                        own[r] = V::add_code_squares(own[r], &last);
                    }
                }
            }
            let added = V::sum_each(floats::<V, ROWS>(token, &sums));
            for (r, product) in added.into_iter().enumerate() {
                products[row + r * spacing] = product;
            }
            if SQUARES {
                let added = V::sum_each(floats::<V, ROWS>(token, &own));
                for (r, square) in added.into_iter().enumerate() {
                    squares[row + r * spacing] = square;
                }
            }
        }
    }
}

/// Sums as floats, without a closure: see [`crate::simd`].
#[inline(always)]
fn floats<V: Eight, const N: usize>(token: V::Token, sums: &[V::Sums; N]) -> [V; N] {
    let mut floats = [V::splat(token, 0.0); N];
    for (floats, sums) in floats.iter_mut().zip(sums) {
        *floats = V::from_sums(*sums);
    }
    floats
}
