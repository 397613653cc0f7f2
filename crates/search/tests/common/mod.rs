//! What the tests of searching share: numbers, the definition of a score, matrices of every form.
#![allow(dead_code, unreachable_pub, reason = "each test takes what it needs")]

use weighbridge_codec::product::Codebook;
use weighbridge_search::{
    Ask, Exact, Found, Hit, Metric, Neighbours, Query, Rows, Stored, Unreadable,
};

pub const METRICS: [Metric; 3] = [Metric::Dot, Metric::Cosine, Metric::L2];

/// Numbers that look random, the same in each run.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        self.0 >> 33
    }

    pub fn float(&mut self) -> f32 {
        self.next() as f32 / (1u64 << 30) as f32 - 1.0
    }

    pub fn floats(&mut self, count: usize) -> Vec<f32> {
        (0..count).map(|_| self.float()).collect()
    }
}

pub fn query(vector: &[f32]) -> Query<'_> {
    Query { vector, exclude: &[] }
}

pub fn found(hits: &[Hit]) -> Vec<usize> {
    hits.iter().map(|hit| hit.row).collect()
}

pub fn search(rows: &dyn Rows, queries: &[Query], ask: &Ask) -> Found {
    Exact::new(rows).search(queries, ask).unwrap()
}

/// A sum of f64 as the definition has it: eight sums, then one.
fn sum(terms: impl Iterator<Item = f64>) -> f64 {
    let mut s = [0.0f64; 8];
    terms.enumerate().for_each(|(i, term)| s[i % 8] += term);
    ((s[0] + s[4]) + (s[2] + s[6])) + ((s[1] + s[5]) + (s[3] + s[7]))
}

fn products(a: &[f32], b: &[f32]) -> f64 {
    sum(a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)))
}

/// The definition.
pub fn exact(row: &[f32], query: &[f32], metric: Metric) -> f64 {
    match metric {
        Metric::Dot => products(row, query),
        Metric::Cosine => {
            let squares = products(row, row) * products(query, query);
            match squares {
                0.0 => 0.0,
                squares if squares.is_finite() => products(row, query) / squares.sqrt(),
                _ => f64::NAN,
            }
        }
        Metric::L2 => {
            let differences = row.iter().zip(query).map(|(a, b)| f64::from(*a) - f64::from(*b));
            0.0 - sum(differences.map(|d| d * d)).sqrt()
        }
        other => panic!("{other:?} is not checked here"),
    }
}

/// The best rows of all that are wanted, by looking at every one.
pub fn best(
    rows: &[f32],
    query: &Query,
    k: usize,
    metric: Metric,
    wanted: impl Fn(usize) -> bool,
) -> Vec<Hit> {
    let dim = query.vector.len();
    let all = rows.chunks_exact(dim).enumerate();
    let all = all.filter(|(row, _)| wanted(*row) && !query.exclude.contains(row));
    let mut all: Vec<(f64, usize)> =
        all.map(|(row, values)| (exact(values, query.vector, metric), row)).collect();
    all.retain(|(score, _)| !score.is_nan());
    all.sort_by(|a, b| b.0.partial_cmp(&a.0).unwrap().then(a.1.cmp(&b.1)));
    all.truncate(k);
    all.into_iter().map(|(score, row)| Hit { row, score: score as f32 }).collect()
}

/// Hits with the same rows and bits.
pub fn same(a: &[Hit], b: &[Hit]) -> bool {
    let each = |(a, b): (&Hit, &Hit)| a.row == b.row && a.score.to_bits() == b.score.to_bits();
    a.len() == b.len() && a.iter().zip(b).all(each)
}

/// How a matrix is stored.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Form {
    F32,
    F16,
    Bf16,
    Codes,
    Product,
}

/// A matrix in any form, and what its rows are.
pub struct Lent {
    pub form: Form,
    pub bytes: Vec<u8>,
    pub values: Vec<f32>,
    pub dim: usize,
    pub table: Box<[f32; 256]>,
    pub book: Option<Codebook>,
    pub norms: Option<Vec<u8>>,
    /// Bytes are copied, values are too.
    pub copied: bool,
}

impl Lent {
    fn new(form: Form, bytes: Vec<u8>, dim: usize) -> Lent {
        let (table, values) = (Box::new([0.0; 256]), Vec::new());
        Lent { form, bytes, values, dim, table, book: None, norms: None, copied: false }
    }

    pub fn f32(values: Vec<f32>, dim: usize) -> Lent {
        Lent { values, ..Lent::new(Form::F32, Vec::new(), dim) }
    }

    pub fn f16(values: &[f32], dim: usize) -> Lent {
        let halves: Vec<_> = values.iter().map(|v| half::f16::from_f32(*v)).collect();
        let bytes = halves.iter().flat_map(|h| h.to_le_bytes()).collect();
        Lent {
            values: halves.iter().map(|h| h.to_f32()).collect(),
            ..Lent::new(Form::F16, bytes, dim)
        }
    }

    pub fn bf16(values: &[f32], dim: usize) -> Lent {
        let halves: Vec<_> = values.iter().map(|v| half::bf16::from_f32(*v)).collect();
        let bytes = halves.iter().flat_map(|h| h.to_le_bytes()).collect();
        Lent {
            values: halves.iter().map(|h| h.to_f32()).collect(),
            ..Lent::new(Form::Bf16, bytes, dim)
        }
    }

    pub fn codes(codes: Vec<u8>, dim: usize, value: impl Fn(f32) -> f32) -> Lent {
        let table: [f32; 256] =
            std::array::from_fn(|code| value(f32::from((code as u8).cast_signed())));
        let values = codes.iter().map(|code| table[usize::from(*code)]).collect();
        Lent { values, table: Box::new(table), ..Lent::new(Form::Codes, codes, dim) }
    }

    pub fn product(codes: Vec<u8>, book: Codebook, norms: Option<Vec<f32>>) -> Lent {
        let dim = book.dim();
        let mut values = vec![0.0; codes.len() / book.parts() * dim];
        book.decode(&codes, &mut values);
        if let Some(norms) = &norms {
            for (row, norm) in values.chunks_exact_mut(dim).zip(norms) {
                row.iter_mut().for_each(|value| *value *= norm);
            }
        }
        let norms = norms.map(|norms| norms.iter().flat_map(|n| n.to_le_bytes()).collect());
        Lent { values, book: Some(book), norms, ..Lent::new(Form::Product, codes, dim) }
    }
}

impl Rows for Lent {
    fn count(&self) -> usize {
        self.values.len() / self.dim
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
        let values = &self.values[start * self.dim..][..n * self.dim];
        if !self.copied {
            return Ok(values);
        }
        buffer.clear();
        buffer.extend_from_slice(values);
        Ok(buffer)
    }

    fn stored(&self) -> Stored<'_> {
        match self.form {
            Form::F32 => Stored::Values,
            Form::F16 => Stored::F16,
            Form::Bf16 => Stored::Bf16,
            Form::Codes => Stored::Codes { values: &self.table },
            Form::Product => {
                let book = self.book.as_ref().unwrap();
                Stored::Product { book, norms: self.norms.as_deref() }
            }
        }
    }

    fn bytes<'a>(
        &'a self,
        start: usize,
        n: usize,
        buffer: &'a mut Vec<u8>,
    ) -> Result<&'a [u8], Unreadable> {
        let width = self.bytes.len() / self.count().max(1);
        let bytes = &self.bytes[start * width..][..n * width];
        if !self.copied {
            return Ok(bytes);
        }
        buffer.clear();
        buffer.extend_from_slice(bytes);
        Ok(buffer)
    }
}

/// An orthogonal matrix, by Gram-Schmidt in f64.
pub fn rotation(random: &mut Random, dim: usize) -> Vec<f32> {
    let mut rows: Vec<Vec<f64>> = Vec::new();
    for _ in 0..dim {
        let mut row: Vec<f64> = (0..dim).map(|_| f64::from(random.float())).collect();
        for _ in 0..2 {
            for other in &rows {
                let dot: f64 = row.iter().zip(other).map(|(a, b)| a * b).sum();
                row.iter_mut().zip(other).for_each(|(a, b)| *a -= dot * b);
            }
        }
        let length = row.iter().map(|v| v * v).sum::<f64>().sqrt();
        row.iter_mut().for_each(|v| *v /= length);
        rows.push(row);
    }
    rows.into_iter().flatten().map(|v| v as f32).collect()
}
