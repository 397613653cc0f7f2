use super::*;

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
    dots_at(level, a, b, a.len(), &mut product);
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
                    dots_at(level, &rows, &queries, dim, &mut products);
                    assert!(same(&products, &expected), "{what}");
                    let (mut products, mut squares) = (vec![7.0; count * asked], vec![7.0; count]);
                    dots_and_squares_at(level, &rows, &queries, dim, &mut products, &mut squares);
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
    let v = [1.0; 64];
    assert!(fails(&|| dots(&v[..17], &v[..8], 8, &mut [0.0; 2])));
    assert!(fails(&|| dots(&v[..16], &v[..9], 8, &mut [0.0; 2])));
    assert!(fails(&|| dots(&v[..16], &v[..8], 8, &mut [0.0; 3])));
    assert!(fails(&|| dots(&v[..16], &v[..8], 8, &mut [0.0; 1])));
    assert!(fails(&|| dots_and_squares(&v[..16], &v[..8], 8, &mut [0.0; 2], &mut [0.0])));
    assert!(fails(&|| dots(&[], &[], 0, &mut [])));
}
