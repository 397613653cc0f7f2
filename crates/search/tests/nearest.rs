//! What is found, against looking at every row in f64; and that it does not depend on how.

mod common;

use common::{METRICS, Random, best, found, query, same};
use weighbridge_search::{
    Ask, Error, Exact, Hit, Matrix, Metric, Neighbours, Query, Rows, Unreadable, nearest, score,
};

/// Whether these are the best `k`, to the bit.
fn check(rows: &[f32], query: &Query, k: usize, metric: Metric, hits: &[Hit]) {
    let expected = best(rows, query, k, metric, |_| true);
    assert!(same(hits, &expected), "{metric:?} {hits:?} {expected:?}");
}

/// What the library says a score is, and what the tests do.
#[test]
fn the_definition_is_public() {
    let random = &mut Random(21);
    for dim in 0..40 {
        let (row, vector) = (random.floats(dim), random.floats(dim));
        for metric in METRICS {
            let (found, expected) =
                (score(&row, &vector, metric), common::exact(&row, &vector, metric));
            assert_eq!(found.to_bits(), expected.to_bits(), "{dim} {metric:?}");
        }
    }
    assert_eq!(score(&[3.0, 4.0], &[0.0, 0.0], Metric::L2), -5.0);
    assert!(score(&[f32::INFINITY, 0.0], &[0.0, 1.0], Metric::Cosine).is_nan());
}

#[test]
fn every_dimension_gives_the_best() {
    let random = &mut Random(1);
    for dim in (1..=70).chain([300, 384]) {
        let rows = random.floats(501 * dim);
        let matrix = Matrix::new(&rows, dim).unwrap();
        let vectors: Vec<_> = (0..4).map(|_| random.floats(dim)).collect();
        let exclude: Vec<usize> = (0..40).map(|_| random.next() as usize % 600).collect();
        let queries: Vec<Query> =
            vectors.iter().map(|vector| Query { vector, exclude: &exclude }).collect();
        for metric in METRICS {
            for k in [1, 10, 500, 501, 600] {
                let all = nearest(&matrix, &queries, k, metric).unwrap();
                for (query, hits) in queries.iter().zip(&all) {
                    check(&rows, query, k, metric, hits);
                }
            }
        }
    }
}

/// Large enough for several blocks and several threads, and more queries than a group has.
#[test]
fn batches_and_threads_change_no_bit() {
    let random = &mut Random(2);
    let dim = 50;
    let rows = random.floats(6001 * dim);
    let matrix = Matrix::new(&rows, dim).unwrap();
    let vectors: Vec<_> = (0..150).map(|_| random.floats(dim)).collect();
    let queries: Vec<_> = vectors.iter().map(|vector| query(vector)).collect();
    let pool = |n| rayon::ThreadPoolBuilder::new().num_threads(n).build().unwrap();
    let (one, two, five) = (pool(1), pool(2), pool(5));
    for metric in METRICS {
        for k in [3, 7000] {
            let asked = &queries[..if k == 3 { 150 } else { 5 }];
            let batch = one.install(|| nearest(&matrix, asked, k, metric)).unwrap();
            for pool in [&two, &five] {
                assert_eq!(pool.install(|| nearest(&matrix, asked, k, metric)).unwrap(), batch);
            }
            for (query, hits) in asked.iter().zip(&batch) {
                let alone = two.install(|| nearest(&matrix, &[*query], k, metric)).unwrap();
                assert_eq!(alone[0], *hits);
            }
            for part in asked.chunks(7).zip(batch.chunks(7)) {
                assert_eq!(nearest(&matrix, part.0, k, metric).unwrap(), part.1);
            }
            check(&rows, &queries[0], k, metric, &batch[0]);
        }
    }
}

#[test]
fn ties_go_to_the_lower_row() {
    let rows: Vec<f32> = (0..40_000).flat_map(|i| [f32::from(i % 3 == 1), 0.0]).collect();
    let matrix = Matrix::new(&rows, 2).unwrap();
    let hits = nearest(&matrix, &[query(&[1.0, 0.0])], 4, Metric::L2).unwrap();
    assert_eq!(found(&hits[0]), [1, 4, 7, 10]);
    for metric in [Metric::Dot, Metric::Cosine] {
        let hits = nearest(&matrix, &[query(&[1.0, 0.0])], 4, metric).unwrap();
        assert_eq!(found(&hits[0]), [1, 4, 7, 10]);
        // All scores are zero, of either sign.
        for vector in [[0.0, 1.0], [0.0, -1.0], [-0.0, -0.0]] {
            let hits = nearest(&matrix, &[query(&vector)], 3, metric).unwrap();
            assert_eq!(found(&hits[0]), [0, 1, 2], "{vector:?}");
        }
        let hits = nearest(&matrix, &[query(&[-1.0, 0.0])], 3, metric).unwrap();
        assert_eq!(found(&hits[0]), [0, 2, 3]);
    }
}

#[test]
fn any_k_and_any_count() {
    let rows = [3.0, 1.0, 2.0];
    let matrix = Matrix::new(&rows, 1).unwrap();
    let empty = Matrix::new(&[], 300).unwrap();
    for metric in METRICS {
        let ask = |k| nearest(&matrix, &[query(&[1.0]), query(&[-1.0])], k, metric).unwrap();
        assert_eq!(ask(0), [[], []]);
        assert_eq!(ask(usize::MAX)[0].len(), 3);
        assert_eq!(ask(usize::MAX), ask(3));
        assert_eq!(nearest(&matrix, &[], 3, metric).unwrap(), Vec::<Vec<Hit>>::new());
        assert_eq!(nearest(&empty, &[query(&[1.0; 300])], usize::MAX, metric).unwrap(), [[]]);
    }
    let hits = nearest(&matrix, &[query(&[2.0])], usize::MAX, Metric::Dot).unwrap();
    let expected = [(0, 6.0), (2, 4.0), (1, 2.0)].map(|(row, score)| Hit { row, score });
    assert_eq!(hits, [expected]);
}

#[test]
fn rows_can_be_excluded_and_bounded() {
    let rows: Vec<f32> = (0..1000u16).map(f32::from).collect();
    let matrix = Matrix::new(&rows, 1).unwrap();
    let ask = |limit, k, exclude: &[usize]| {
        let query = Query { vector: &[1.0], exclude };
        let ask = Ask::new(k, Metric::Dot).with_limit(limit);
        found(&Exact::new(matrix).search(&[query], &ask).unwrap().hits[0])
    };
    assert_eq!(ask(usize::MAX, 3, &[998, 5, 998, usize::MAX]), [999, 997, 996]);
    assert_eq!(ask(500, 3, &[498, 700]), [499, 497, 496]);
    assert_eq!(ask(2, usize::MAX, &[]), [1, 0]);
    assert_eq!(ask(2, usize::MAX, &[1, 0]), []);
    assert_eq!(ask(0, usize::MAX, &[]), []);
}

#[test]
fn nan_is_never_found() {
    let (nan, inf) = (f32::NAN, f32::INFINITY);
    let rows = [nan, 1.0, 1.0, 1.0, 0.0, nan, -2.0, 1.0, nan, nan, -inf, inf];
    let matrix = Matrix::new(&rows, 2).unwrap();
    for metric in [Metric::Dot, Metric::Cosine] {
        let hits = nearest(&matrix, &[query(&[1.0, 1.0])], usize::MAX, metric).unwrap();
        assert_eq!(found(&hits[0]), [1, 3]);
        let hits = nearest(&matrix, &[query(&[1.0, nan])], usize::MAX, metric).unwrap();
        assert_eq!(hits, [[]]);
    }
    // Infinite scores have their place.
    let matrix = Matrix::new(&rows[10..], 1).unwrap();
    let hits = nearest(&matrix, &[query(&[1.0])], 2, Metric::Dot).unwrap();
    assert_eq!(found(&hits[0]), [1, 0]);
}

#[test]
fn cosines_of_any_length_of_vector() {
    let directions = [[1.0, 2.0, 3.0], [3.0, 1.0, -2.0], [0.0, 0.0, 0.0]];
    let sizes = [1e-44, 1e-38, 1e-25, 1e-12, 1.0, 1e12, 1e25, 1e38];
    let mut rows = Vec::new();
    for size in sizes {
        rows.extend(directions.iter().flatten().map(|v| v * size));
    }
    let matrix = Matrix::new(&rows, 3).unwrap();
    for size in sizes {
        let vector = [3.0 * size, 2.0 * size, 1.0 * size];
        let query = query(&vector);
        let hits = nearest(&matrix, &[query], usize::MAX, Metric::Cosine).unwrap();
        check(&rows, &query, usize::MAX, Metric::Cosine, &hits[0]);
    }
    let hits = nearest(&matrix, &[query(&[0.0; 3])], usize::MAX, Metric::Cosine).unwrap();
    assert!(hits[0].len() == 24 && hits[0].iter().all(|hit| hit.score == 0.0));
}

/// Codes of one byte with a scale for each row.
struct Codes {
    codes: Vec<i8>,
    scales: Vec<f32>,
    dim: usize,
}

impl Rows for Codes {
    fn count(&self) -> usize {
        self.scales.len()
    }

    fn dim(&self) -> usize {
        self.dim
    }

    fn block<'a>(
        &'a self,
        start: usize,
        n: usize,
        buffer: &'a mut Vec<f32>,
    ) -> Result<&'a [f32], Unreadable> {
        buffer.clear();
        for row in start..start + n {
            let codes = &self.codes[row * self.dim..][..self.dim];
            buffer.extend(codes.iter().map(|&code| f32::from(code) * self.scales[row]));
        }
        Ok(buffer)
    }
}

#[test]
fn rows_can_be_decoded() {
    let random = &mut Random(3);
    let (count, dim) = (3000, 33);
    let codes = Codes {
        codes: (0..count * dim).map(|_| random.next() as i8).collect(),
        scales: random.floats(count),
        dim,
    };
    let mut rows = Vec::new();
    codes.block(0, count, &mut rows).unwrap();
    let vectors: Vec<_> = (0..5).map(|_| random.floats(dim)).collect();
    let queries: Vec<_> = vectors.iter().map(|vector| query(vector)).collect();
    for metric in METRICS {
        let expected = nearest(&Matrix::new(&rows, dim).unwrap(), &queries, 9, metric).unwrap();
        assert_eq!(nearest(&codes, &queries, 9, metric).unwrap(), expected);
        // The kind of matrix need not be known.
        let any: &dyn Rows = &codes;
        assert_eq!(nearest(any, &queries, 9, metric).unwrap(), expected);
        assert_eq!(nearest(&any, &queries, 9, metric).unwrap(), expected);
    }
    let nothing = Codes { codes: vec![], scales: vec![1.0; 3], dim: 0 };
    for metric in METRICS {
        let hits = nearest(&nothing, &[query(&[])], 2, metric).unwrap();
        assert_eq!(found(&hits[0]), [0, 1]);
    }
}

#[test]
fn shapes_that_do_not_fit_are_errors() {
    let error = Matrix::new(&[1.0; 5], 2).unwrap_err();
    assert!(matches!(error, Error::Shape { values: 5, dim: 2 }));
    assert!(Matrix::new(&[1.0; 5], 0).is_err() && Matrix::new(&[], 0).is_err());
    let matrix = Matrix::new(&[1.0; 6], 2).unwrap();
    for k in [0, 1] {
        let queries = [query(&[1.0, 2.0]), query(&[1.0])];
        let error = nearest(&matrix, &queries, k, Metric::Dot).unwrap_err();
        assert!(matches!(error, Error::Dimension { query: 1, expected: 2, found: 1 }));
        assert_eq!(error.to_string(), "query 1 has 1 values where rows have 2");
    }
}

/// Rows that no query can find are counted once, however many queries and threads there are. Values
/// whose squares overflow are none of them.
#[test]
fn rows_that_are_not_finite_are_counted() {
    let (count, dim) = (40_000, 4);
    let mut values = Random(9).floats(count * dim);
    for (row, value) in [(37, f32::NAN), (38, f32::INFINITY), (39_999, f32::NEG_INFINITY)] {
        values[row * dim + 2] = value;
    }
    values[5 * dim] = 3e38;
    let rows = Matrix::new(&values, dim).unwrap();
    let vectors = Random(10).floats(200 * dim);
    let queries: Vec<_> = vectors.chunks(dim).map(query).collect();
    let told = |queries: &[Query], limit| {
        let ask = Ask::new(3, Metric::Cosine).with_limit(limit);
        Exact::new(&rows).search(queries, &ask).unwrap().not_finite
    };
    for some in [1, 64, 65, 200] {
        let not_finite = told(&queries[..some], usize::MAX).unwrap();
        assert_eq!((not_finite.rows, not_finite.first), (3, 37), "{some}");
    }
    assert_eq!(told(&queries[..1], 38).unwrap().rows, 1);
    assert_eq!(told(&queries[..1], 37), None);
}
