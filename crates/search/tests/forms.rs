//! Rows of every form, with values of every kind: what is found is the ranking of the definition, to
//! the bit.

mod common;

use common::{Lent, METRICS, Random, best, found, query, rotation, same, search};
use weighbridge_codec::product::Codebook;
use weighbridge_search::{Ask, Metric, Query, RowSet};

/// Every query and metric against the definition; and that neither the batch, nor how rows are
/// lent, changes a bit.
fn check(what: &str, lent: &mut Lent, vectors: &[f32], ks: &[usize]) {
    let dim = lent.dim;
    let queries: Vec<Query> = vectors.chunks_exact(dim).map(query).collect();
    for metric in METRICS {
        for &k in ks {
            let expected: Vec<_> =
                queries.iter().map(|q| best(&lent.values, q, k, metric, |_| true)).collect();
            for copied in [false, true] {
                lent.copied = copied;
                let all = search(lent, &queries, &Ask::new(k, metric));
                for (q, (hits, expected)) in all.hits.iter().zip(&expected).enumerate() {
                    let form = lent.form;
                    assert!(
                        same(hits, expected),
                        "{what} {form:?} dim {dim} {metric:?} k {k} query {q}:\n{hits:?}\n{expected:?}"
                    );
                }
            }
            let alone = search(lent, &queries[..1], &Ask::new(k, metric));
            assert!(same(&alone.hits[0], &expected[0]), "{what} {:?} alone {metric:?}", lent.form);
        }
    }
}

/// A matrix in all forms that hold any values.
fn of_floats(values: &[f32], dim: usize) -> [Lent; 3] {
    [Lent::f32(values.to_vec(), dim), Lent::f16(values, dim), Lent::bf16(values, dim)]
}

fn codes(random: &mut Random, count: usize) -> Vec<u8> {
    (0..count)
        .map(|_| if random.next().is_multiple_of(9) { 0x80 } else { random.next() as u8 })
        .collect()
}

#[test]
fn every_dimension() {
    let random = &mut Random(1);
    for dim in (1..=70).chain([300, 384, 512, 1000, 1029]) {
        let count = if dim > 70 { 150 } else { 300 };
        let values = random.floats(count * dim);
        let vectors = random.floats(17 * dim);
        for lent in &mut of_floats(&values, dim) {
            check("random", lent, &vectors, &[1, 10]);
        }
        let bytes = codes(random, count * dim);
        let mut lent = Lent::codes(bytes.clone(), dim, |code| code / 127.0);
        check("divided", &mut lent, &vectors, &[1, 10]);
        let mut lent = Lent::codes(bytes, dim, |code| code * -0.003);
        check("scaled", &mut lent, &vectors, &[10]);
    }
}

#[test]
fn any_number_of_queries_and_rows() {
    let random = &mut Random(2);
    let dim = 24;
    for count in [1, 5, 11, 12, 13, 700] {
        let values = random.floats(count * dim);
        let bytes = codes(random, count * dim);
        for queries in [1, 2, 3, 8, 9, 16, 17, 64, 65, 200] {
            let vectors = random.floats(queries * dim);
            for lent in &mut of_floats(&values, dim) {
                check("random", lent, &vectors, &[3, count]);
            }
            let mut lent = Lent::codes(bytes.clone(), dim, |code| code / 127.0);
            check("codes", &mut lent, &vectors, &[3, count]);
        }
    }
}

/// More queries than go through the rows together, and hits for all rows.
#[test]
fn many_queries() {
    let random = &mut Random(3);
    let dim = 8;
    let values = random.floats(400 * dim);
    let vectors = random.floats(600 * dim);
    check("many", &mut Lent::f32(values, dim), &vectors, &[2, 400]);
    let bytes = codes(random, 400 * dim);
    check("many", &mut Lent::codes(bytes, dim, |code| code * 0.25), &vectors, &[2]);
}

/// Rows that differ in their last bits, and rows that are the same.
#[test]
fn rows_that_nearly_tie() {
    let random = &mut Random(4);
    for dim in [1, 3, 8, 33, 128] {
        let base = random.floats(dim);
        let mut values = Vec::new();
        for i in 0..600 {
            let mut row = base.clone();
            let at = random.next() as usize % dim;
            let bits = row[at].to_bits();
            row[at] = f32::from_bits(bits + (random.next() % 3) as u32);
            if i % 7 == 0 {
                row.iter_mut().for_each(|v| *v *= 2.0);
            }
            values.extend(row);
        }
        let mut vectors = base.clone();
        vectors.extend(base.iter().map(|v| -v));
        vectors.extend(base.iter().map(|v| v * 1.000_001));
        vectors.extend(random.floats(15 * dim));
        for lent in &mut of_floats(&values, dim) {
            check("near ties", lent, &vectors, &[1, 10, 600]);
        }
        // Around one code, so that many rows are the same.
        let bytes: Vec<u8> = (0..600 * dim).map(|i| 100 + (i % dim % 3) as u8).collect();
        let mut lent = Lent::codes(bytes, dim, |code| code * 0.1);
        check("the same", &mut lent, &vectors, &[1, 10, 600]);
    }
}

/// Clusters far from zero: distances are small differences of large numbers.
#[test]
fn clusters_far_from_zero() {
    let random = &mut Random(5);
    for (dim, far) in [(2, 1e3), (16, 1e4), (100, 1e6)] {
        let centers: Vec<f32> = random.floats(4 * dim).iter().map(|v| v * far).collect();
        let values: Vec<f32> =
            (0..500 * dim).map(|i| centers[i / dim % 4 * dim + i % dim] + random.float()).collect();
        let vectors: Vec<f32> =
            (0..20 * dim).map(|i| centers[i / dim % 4 * dim + i % dim] + random.float()).collect();
        for lent in &mut of_floats(&values, dim) {
            check("clusters", lent, &vectors, &[1, 10]);
        }
    }
}

/// From the smallest numbers to the largest, in one matrix.
#[test]
fn numbers_of_every_size() {
    let random = &mut Random(6);
    let sizes =
        [1e-45, 1e-42, 1e-39, 1e-30, 1e-22, 1e-15, 1e-5, 1.0, 1e5, 1e15, 1e19, 1e30, 1e38, 3.4e38];
    for dim in [1, 4, 9, 64] {
        let mut values = Vec::new();
        for i in 0..560 {
            let size = sizes[i % sizes.len()];
            values.extend(random.floats(dim).iter().map(|v| v * size));
        }
        // Values of different sizes in one row, and some that are zero.
        for _ in 0..100 {
            let mixed = |random: &mut Random| random.float() * sizes[random.next() as usize % 14];
            values.extend((0..dim).map(|_| mixed(random)));
        }
        values.extend(vec![0.0; 3 * dim]);
        let mut vectors = Vec::new();
        for size in sizes {
            vectors.extend(random.floats(dim).iter().map(|v| v * size));
            vectors.extend(random.floats(dim).iter().map(|v| v * size));
        }
        vectors.extend(vec![0.0; dim]);
        for lent in &mut of_floats(&values, dim) {
            check("sizes", lent, &vectors, &[1, 10, 700]);
        }
        for size in sizes {
            let values: Vec<f32> = random.floats(300 * dim).iter().map(|v| v * size).collect();
            check("one size", &mut Lent::f32(values, dim), &vectors, &[10]);
            let bytes = codes(random, 300 * dim);
            let mut lent = Lent::codes(bytes, dim, |code| code * (size / 128.0));
            check("codes", &mut lent, &vectors, &[1, 10]);
        }
    }
}

#[test]
fn rows_and_queries_that_are_not_finite() {
    let random = &mut Random(7);
    let special = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 0.0];
    for dim in [1, 5, 40] {
        let mut values = random.floats(400 * dim);
        for row in (0..400).step_by(3) {
            values[row * dim + row % dim] = special[row / 3 % 4];
        }
        values[7 * dim..8 * dim].fill(0.0);
        values[9 * dim..10 * dim].fill(f32::INFINITY);
        let mut vectors = random.floats(20 * dim);
        for (i, value) in special.into_iter().enumerate() {
            vectors[i * dim + i % dim] = value;
        }
        vectors[5 * dim..6 * dim].fill(0.0);
        for lent in &mut of_floats(&values, dim) {
            check("not finite", lent, &vectors, &[1, 10, 400]);
        }
    }
}

/// Tables that are not codes times a scale have to be decoded.
#[test]
fn codes_with_any_values() {
    let random = &mut Random(8);
    for dim in [3, 50] {
        let bytes = codes(random, 300 * dim);
        let vectors = random.floats(20 * dim);
        let tables: [&dyn Fn(f32) -> f32; 8] = [
            &|code| (code - 3.0) * 0.1,
            &|code| code * code,
            &|code| code * 1e-44,
            &|code| code * 2.9e36,
            &|_| 0.0,
            &|code| if code == 5.0 { f32::NAN } else { code },
            &|code| if code == -7.0 { f32::INFINITY } else { code },
            &|code| code * 1e-38,
        ];
        for table in tables {
            check("table", &mut Lent::codes(bytes.clone(), dim, table), &vectors, &[1, 10, 300]);
        }
    }
}

fn book(
    random: &mut Random,
    [dim, parts, centroids]: [usize; 3],
    projection: Option<Vec<f32>>,
) -> Codebook {
    let values = random.floats(dim * centroids);
    Codebook::new(dim, parts, centroids, values, projection).unwrap()
}

#[test]
fn product_quantized_rows() {
    let random = &mut Random(9);
    for sizes in [[1, 1, 2], [6, 3, 16], [24, 6, 256], [40, 40, 7], [60, 6, 100], [96, 4, 256]] {
        let [dim, parts, centroids] = sizes;
        let count = 700;
        // Codes without a centroid too.
        let codes: Vec<u8> = (0..count * parts)
            .map(|_| (random.next() as usize % (centroids + 1)).min(255) as u8)
            .collect();
        for queries in [1, 3, 70] {
            let vectors = random.floats(queries * dim);
            for projected in [false, true] {
                for with_norms in [false, true] {
                    let projection = projected.then(|| rotation(random, dim));
                    let book = book(random, sizes, projection);
                    let norms = with_norms.then(|| {
                        let mut norms = random.floats(count);
                        for (i, odd) in [0.0, f32::NAN, f32::INFINITY, 1e38, 1e-40, 1e-30]
                            .into_iter()
                            .enumerate()
                        {
                            norms[i * 11] = odd;
                        }
                        norms
                    });
                    let mut lent = Lent::product(codes.clone(), book, norms);
                    let what = format!("product {projected} {with_norms}");
                    check(&what, &mut lent, &vectors, &[1, 10]);
                }
            }
        }
    }
}

/// A projection that is no rotation, centroids that are not finite, tiny or huge.
#[test]
fn odd_codebooks() {
    let random = &mut Random(10);
    let (dim, parts, centroids, count) = (12, 4, 9, 300);
    let codes: Vec<u8> = (0..count * parts).map(|_| (random.next() % 9) as u8).collect();
    let vectors = random.floats(6 * dim);
    let any: Vec<f32> = random.floats(dim * dim);
    for size in [1.0, 1e-42, 1e-30, 1e-21, 1e20, 1e38] {
        for projection in [None, Some(any.clone()), Some(rotation(random, dim))] {
            let values: Vec<f32> =
                random.floats(dim * centroids).iter().map(|v| v * size).collect();
            let book =
                |values| Codebook::new(dim, parts, centroids, values, projection.clone()).unwrap();
            let norms = Some(random.floats(count).iter().map(|v| v / size.sqrt()).collect());
            for norms in [None, norms] {
                let mut lent = Lent::product(codes.clone(), book(values.clone()), norms);
                check("sizes", &mut lent, &vectors, &[1, 10, count]);
            }
            let mut odd = values.clone();
            odd[5] = f32::NAN;
            odd[17] = f32::INFINITY;
            check("odd", &mut Lent::product(codes.clone(), book(odd), None), &vectors, &[10]);
        }
    }
}

/// Filters, limits and exclusions in every form.
#[test]
fn only_some_rows() {
    let random = &mut Random(11);
    let (dim, count) = (20, 3000);
    let values = random.floats(count * dim);
    let bytes = codes(random, count * dim);
    let book = book(random, [dim, 5, 50], None);
    let pq: Vec<u8> = (0..count * 5).map(|_| (random.next() % 50) as u8).collect();
    let [f32, f16, bf16] = of_floats(&values, dim);
    let lents = [f32, f16, bf16, Lent::codes(bytes, dim, |c| c), Lent::product(pq, book, None)];
    let vectors = random.floats(30 * dim);
    let exclude: Vec<usize> = (0..300).map(|_| random.next() as usize % 3200).collect();
    let queries: Vec<Query> =
        vectors.chunks_exact(dim).map(|vector| Query { vector, exclude: &exclude }).collect();
    let sets = [
        RowSet::from_fn(count, |row| row % 2 == 0),
        RowSet::from_fn(count, |row| row % 50 == 3),
        RowSet::from_fn(count, |row| row > 2900),
        RowSet::from_fn(count, |row| row == 1234),
        RowSet::from_fn(1000, |_| true),
        RowSet::from_fn(5000, |_| true),
        RowSet::new(count),
        RowSet::new(0),
    ];
    for lent in &lents {
        for metric in METRICS {
            for among in sets.iter().map(Some).chain([None]) {
                for limit in [0, 1, 1300, 3000, usize::MAX] {
                    let mut ask = Ask::new(9, metric).with_limit(limit);
                    ask.among = among;
                    let wanted = |row| row < limit && among.is_none_or(|set| set.contains(row));
                    for queries in [&queries[..1], &queries[..20]] {
                        let all = search(lent, queries, &ask);
                        for (query, hits) in queries.iter().zip(&all.hits).step_by(7) {
                            let expected = best(&lent.values, query, 9, metric, wanted);
                            assert!(same(hits, &expected), "{:?} {metric:?} {limit}", lent.form);
                        }
                    }
                }
            }
        }
    }
}

/// Large enough for several blocks and threads.
#[test]
fn threads_change_no_bit() {
    let random = &mut Random(12);
    let (dim, count) = (50, 9001);
    let values = random.floats(count * dim);
    let bytes = codes(random, count * dim);
    let vectors = random.floats(70 * dim);
    let queries: Vec<Query> = vectors.chunks_exact(dim).map(query).collect();
    let pool = |n| rayon::ThreadPoolBuilder::new().num_threads(n).build().unwrap();
    let pools = [pool(1), pool(2), pool(5)];
    let [f32, f16, bf16] = of_floats(&values, dim);
    for lent in [f32, f16, bf16, Lent::codes(bytes, dim, |c| c / 127.0)] {
        for metric in METRICS {
            for k in [1, 10, 10_000] {
                let asked = &queries[..if k == 10_000 { 2 } else { 70 }];
                let ask = Ask::new(k, metric);
                let expected = pools[0].install(|| search(&lent, asked, &ask));
                let first = best(&lent.values, &asked[0], k, metric, |_| true);
                assert!(same(&expected.hits[0], &first), "{:?} {metric:?} {k}", lent.form);
                for pool in &pools {
                    for _ in 0..3 {
                        let found = pool.install(|| search(&lent, asked, &ask));
                        for (a, b) in found.hits.iter().zip(&expected.hits) {
                            assert!(same(a, b), "{:?} {metric:?} {k}", lent.form);
                        }
                    }
                }
            }
        }
    }
}

/// A row's cosine with itself is 1, its distance 0.
#[test]
fn a_row_finds_itself() {
    let random = &mut Random(13);
    let (dim, count) = (37, 500);
    let values = random.floats(count * dim);
    for lent in of_floats(&values, dim) {
        for row in [0, 17, 499] {
            let vector = lent.values[row * dim..][..dim].to_vec();
            for (metric, score) in [(Metric::Cosine, 1.0), (Metric::L2, 0.0)] {
                let hits = search(&lent, &[query(&vector)], &Ask::new(2, metric)).hits;
                assert_eq!((found(&hits[0])[0], hits[0][0].score), (row, score));
            }
        }
    }
}
