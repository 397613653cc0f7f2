use super::*;
use crate::simd::Prefetcher;

/// Numbers that look random, the same in each run.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        self.0 >> 33
    }

    fn floats(&mut self, count: usize) -> Vec<f32> {
        (0..count).map(|_| self.next() as f32 / (1u64 << 30) as f32 - 1.0).collect()
    }

    /// Any bits: NaN, infinities, subnormal numbers.
    fn hostile(&mut self, count: usize) -> Vec<f32> {
        (0..count).map(|_| f32::from_bits((self.next() << 8 ^ self.next()) as u32)).collect()
    }
}

fn same(a: &[f32], b: &[f32]) -> bool {
    let same = |(a, b): (&f32, &f32)| a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan();
    a.len() == b.len() && a.iter().zip(b).all(same)
}

/// Vectors of eight are the same from AVX2 on.
fn levels() -> impl Iterator<Item = Level> {
    Level::available().into_iter().filter(|level| !level.has_sixteen_lanes())
}

/// One product.
fn dot_at(level: Level, a: &[f32], b: &[f32]) -> f32 {
    let mut product = [0.0];
    dots::<F32>(level, a, b, a.len(), &mut product);
    product[0]
}

/// The sentence in the description, value by value.
fn definition(a: &[f32], b: &[f32]) -> f32 {
    let mut s = [0.0f32; 8];
    for i in 0..a.len().next_multiple_of(8) {
        let value = |v: &[f32]| v.get(i).copied().unwrap_or(0.0);
        s[i % 8] = value(a).mul_add(value(b), s[i % 8]);
    }
    ((s[0] + s[4]) + (s[2] + s[6])) + ((s[1] + s[5]) + (s[3] + s[7]))
}

#[test]
fn every_length_gives_the_bits_of_the_definition() {
    let random = &mut Random(1);
    for dim in 1..=300 {
        for offset in [0, 1, 3] {
            let a = random.floats(dim + offset);
            let b = random.floats(dim + offset);
            let (a, b) = (&a[offset..], &b[offset..]);
            let expected = definition(a, b);
            for level in levels() {
                assert!(same(&[dot_at(level, a, b)], &[expected]), "{level} {dim}");
            }
        }
    }
}

#[test]
fn a_product_has_the_same_bits_among_others() {
    let random = &mut Random(2);
    for dim in (1..=70).chain([300, 384, 1500, 5000]) {
        for (count, asked) in [(0, 1), (1, 1), (4, 1), (7, 2), (9, 3), (13, 4), (6, 8), (3, 0)] {
            for hostile in [false, true] {
                let mut values = |n| if hostile { random.hostile(n) } else { random.floats(n) };
                let (rows, queries) = (values(count * dim), values(asked * dim));
                let mut expected = Vec::new();
                for query in queries.chunks_exact(dim) {
                    expected.extend(rows.chunks_exact(dim).map(|row| definition(row, query)));
                }
                let expected_squares: Vec<f32> =
                    rows.chunks_exact(dim).map(|row| definition(row, row)).collect();
                for level in levels() {
                    let what = format!("{level} {dim} {count} {asked}");
                    let mut products = vec![7.0; count * asked];
                    dots::<F32>(level, &rows, &queries, dim, &mut products);
                    assert!(same(&products, &expected), "{what}");
                    let (mut products, mut squares) = (vec![7.0; count * asked], vec![7.0; count]);
                    dots_and_squares::<F32>(
                        level,
                        &rows,
                        &queries,
                        dim,
                        &mut products,
                        &mut squares,
                    );
                    assert!(same(&products, &expected), "{what}");
                    assert!(same(&squares, &expected_squares), "{what}");
                }
            }
        }
    }
}

#[test]
fn products_are_within_their_bound() {
    let random = &mut Random(3);
    for dim in 1..=1000 {
        let (a, b) = (random.floats(dim), random.floats(dim));
        let products = a.iter().zip(&b).map(|(&a, &b)| f64::from(a) * f64::from(b));
        let (exact, size) = products.fold((0.0, 0.0), |(sum, size), p| (sum + p, size + p.abs()));
        let bound = (dim / 8 + 4) as f64 * 2f64.powi(-24) * size;
        assert!((f64::from(dot_at(Level::best(), &a, &b)) - exact).abs() <= bound, "{dim}");
    }
}

/// The vector versions read through pointers: lengths that disagree must not come that far.
#[test]
fn lengths_that_disagree_panic() {
    let fails =
        |what: &dyn Fn()| std::panic::catch_unwind(std::panic::AssertUnwindSafe(what)).is_err();
    let (v, level) = ([1.0; 64], Level::best());
    assert!(fails(&|| dots::<F32>(level, &v[..17], &v[..8], 8, &mut [0.0; 2])));
    assert!(fails(&|| dots::<F32>(level, &v[..16], &v[..9], 8, &mut [0.0; 2])));
    assert!(fails(&|| dots::<F32>(level, &v[..16], &v[..8], 8, &mut [0.0; 3])));
    assert!(fails(&|| dots::<F32>(level, &v[..16], &v[..8], 8, &mut [0.0; 1])));
    assert!(fails(&|| {
        dots_and_squares::<F32>(level, &v[..16], &v[..8], 8, &mut [0.0; 2], &mut [0.0]);
    }));
    assert!(fails(&|| dots::<F32>(level, &[], &[], 0, &mut [])));
    let (codes, factors) = ([1u8; 64], [1i16; 32]);
    let products = |n| vec![0.0; n];
    assert!(fails(&|| code_dots(level, &codes[..33], 16, &factors[..16], &mut products(2), None)));
    assert!(fails(&|| code_dots(level, &codes[..32], 16, &factors[..15], &mut products(2), None)));
    assert!(fails(&|| code_dots(level, &codes[..32], 16, &factors[..16], &mut products(3), None)));
    let squares = Some(&mut [0.0; 1][..]);
    let call = std::cell::Cell::new(squares);
    assert!(fails(&|| {
        code_dots(level, &codes[..32], 16, &factors[..16], &mut products(2), call.take());
    }));
}

/// Halves are multiplied as the f32 that they are.
#[test]
fn halves_have_the_products_of_their_values() {
    let random = &mut Random(4);
    for dim in (1..=70).chain([300]) {
        let (count, asked) = (9, 3);
        let halves: Vec<[u8; 2]> =
            (0..count * dim).map(|_| (random.next() as u16).to_le_bytes()).collect();
        let queries = random.floats(asked * dim);
        let f16 = |h: &[u8; 2]| half::f16::from_le_bytes(*h).to_f32();
        let bf16 = |h: &[u8; 2]| half::bf16::from_le_bytes(*h).to_f32();
        for level in levels() {
            let all = |values: Vec<f32>| {
                let (mut products, mut squares) = (vec![7.0; count * asked], vec![7.0; count]);
                let (p, s) = (&mut products[..], &mut squares[..]);
                dots_and_squares::<F32>(level, &values, &queries, dim, p, s);
                (products, squares)
            };
            let (mut products, mut squares) = (vec![7.0; count * asked], vec![7.0; count]);
            let (p, s) = (&mut products[..], &mut squares[..]);
            dots_and_squares::<F16>(level, &halves, &queries, dim, p, s);
            let expected = all(halves.iter().map(f16).collect());
            assert!(same(&products, &expected.0) && same(&squares, &expected.1), "{level} {dim}");
            let (p, s) = (&mut products[..], &mut squares[..]);
            dots_and_squares::<Bf16>(level, &halves, &queries, dim, p, s);
            let expected = all(halves.iter().map(bf16).collect());
            assert!(same(&products, &expected.0) && same(&squares, &expected.1), "{level} {dim}");
        }
    }
}

/// Codes of all sizes, -128 too, with the largest factors that the sums have room for.
#[test]
fn products_of_codes_are_exact() {
    let random = &mut Random(5);
    for dim in (1..=70usize).chain([300, 384, 512, 1000, 4096]) {
        for count in [0, 1, 4, 7, 13] {
            let largest = (((1 << 24) - 1) / dim).min(32767) as i16;
            let codes: Vec<u8> = (0..count * dim)
                .map(|_| if random.next().is_multiple_of(3) { 0x80 } else { random.next() as u8 })
                .collect();
            let mut factors = vec![0i16; dim.next_multiple_of(CODES_TOGETHER)];
            for factor in &mut factors[..dim] {
                let any = random.next() as i16 % largest.max(1);
                *factor = if random.next().is_multiple_of(3) { -largest } else { any };
            }
            let pair = |(c, f): (&u8, &i16)| i64::from(c.cast_signed()) * i64::from(*f);
            for level in Level::available() {
                let (mut products, mut squares) = (vec![7.0; count], vec![7.0; count]);
                code_dots(level, &codes, dim, &factors, &mut products, Some(&mut squares));
                let mut alone = vec![7.0; count];
                code_dots(level, &codes, dim, &factors, &mut alone, None);
                assert!(same(&products, &alone), "{level} {dim}");
                for (r, row) in codes.chunks_exact(dim).enumerate() {
                    let exact: i64 = row.iter().zip(&factors).map(pair).sum();
                    let size: i64 = row.iter().zip(&factors).map(|both| pair(both).abs()).sum();
                    let off = (f64::from(products[r]) - exact as f64).abs();
                    assert!(off <= size as f64 * 2f64.powi(-21), "{level} {dim} {off} {exact}");
                    let own = |c: &u8| i64::from(c.cast_signed()).pow(2);
                    let square = row.iter().map(own).sum::<i64>() as f64;
                    let off = (f64::from(squares[r]) - square).abs();
                    assert!(off <= square * 2f64.powi(-21), "{level} {dim} {off} {square}");
                }
                let mut wide = Vec::new();
                widen_codes(level, &codes, dim, &mut wide);
                assert_eq!(wide.len(), count * dim.div_ceil(2));
                for (row, pairs) in codes.chunks_exact(dim).zip(wide.chunks_exact(dim.div_ceil(2)))
                {
                    let back = pairs.as_flattened();
                    assert!(row.iter().zip(back).all(|(c, w)| i16::from(c.cast_signed()) == *w));
                    assert!(back[dim..].iter().all(|w| *w == 0));
                }
            }
        }
    }
}

/// What reaches its limit is told with its product, and nothing else.
#[test]
fn many_products_are_told_where_they_reach_a_limit() {
    let random = &mut Random(6);
    for dim in [1, 2, 3, 7, 8, 16, 33, 100] {
        for (count, asked) in [(1, 1), (5, 3), (6, 16), (13, 17), (40, 40)] {
            let (rows, queries) = (random.floats(count * dim), random.floats(asked * dim));
            let mut xs = random.floats(count);
            xs[count / 2] = f32::NAN;
            let panels = Panels::new(&queries, dim);
            let mut slopes = random.floats(asked);
            slopes.resize(panels.columns(), 0.0);
            let mut limits = random.floats(asked);
            limits.resize(panels.columns(), f32::INFINITY);
            for level in Level::available() {
                let mut told = Vec::new();
                let ahead = Prefetcher::behind(&rows);
                panels.reached(level, &rows, &xs, (&slopes, &limits), ahead, &mut told);
                let mut seen = std::collections::HashSet::new();
                for reached in &told {
                    assert!(seen.insert((reached.row, reached.column)), "each once");
                }
                for (r, row) in rows.chunks_exact(dim).enumerate() {
                    for (q, query) in queries.chunks_exact(dim).enumerate() {
                        let exact: f64 =
                            row.iter().zip(query).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum();
                        let at = exact + f64::from(slopes[q]) * f64::from(xs[r]);
                        let far = at - f64::from(limits[q]);
                        let column = q / 16 * 16;
                        let found = told.iter().find(|t| (t.row, t.column) == (r, column));
                        // So near to the limit either is right.
                        assert!(far.is_nan() || far < 1e-4 || found.is_some(), "{level} {far}");
                        if let Some(found) = found {
                            let product = f64::from(found.products[q % 16]);
                            assert!((product - exact).abs() < 1e-4, "{level} {product} {exact}");
                        }
                    }
                    let whole = told.iter().filter(|t| t.row == r).count();
                    assert!(!xs[r].is_nan() || whole == panels.columns() / 16, "NaN reaches all");
                }
                // None can.
                let (slopes, limits) = (vec![0.0; slopes.len()], vec![f32::MAX; slopes.len()]);
                let (mut told, xs) = (Vec::new(), vec![1.0; count]);
                let ahead = Prefetcher::behind(&rows);
                panels.reached(level, &rows, &xs, (&slopes, &limits), ahead, &mut told);
                assert!(told.is_empty());
            }
        }
    }
}

#[test]
fn the_next_that_reaches_a_limit_is_found() {
    let random = &mut Random(7);
    for count in (0..40).chain([100]) {
        let mut products = random.floats(count);
        let xs = random.floats(count);
        if count > 9 {
            products[9] = f32::NAN;
        }
        for level in Level::available() {
            for limit in [-3.0, 0.4, 0.9, 3.0] {
                // Nothing is added, so that it is the same however it is rounded.
                #[allow(clippy::neg_cmp_op_on_partial_ord, reason = "NaN reaches every limit")]
                let reaches = |r: &usize| !(products[*r] + 0.0 * xs[*r] < limit);
                let expected: Vec<usize> = (0..count).filter(reaches).collect();
                let mut found = Vec::new();
                let mut from = 0;
                while let Some(r) = next_to_reach(level, &products, &xs, (0.0, limit), from) {
                    found.push(r);
                    from = r + 1;
                }
                assert_eq!(found, expected, "{level} {limit}");
            }
        }
    }
}

#[test]
fn lookups_are_summed() {
    let random = &mut Random(8);
    for parts in [1, 2, 3, 5, 30] {
        let tables: Vec<Table> =
            (0..parts).map(|_| random.floats(256).try_into().unwrap()).collect();
        for count in [0, 1, 3, 4, 9] {
            let codes: Vec<u8> = (0..count * parts).map(|_| random.next() as u8).collect();
            let mut sums = vec![7.0; count];
            lookup_sums(&codes, &tables, &mut sums);
            for (codes, sum) in codes.chunks_exact(parts).zip(&sums) {
                let each = codes.iter().zip(&tables).map(|(c, t)| f64::from(t[usize::from(*c)]));
                assert!((each.sum::<f64>() - f64::from(*sum)).abs() < 1e-4);
            }
        }
    }
}
