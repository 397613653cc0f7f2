//! Rows of int8 codes, as `.i8bin` has them: checked and searched where they are.

use wasm_bindgen::prelude::*;
use weighbridge_search::{Ask, Exact, Metric, Neighbours, Query, RowSet, Rows, Stored, Unreadable};

/// A code stands for a 127th of itself.
const DIVISOR: f32 = 127.0;

/// The rows of a file. Their bytes are put into this memory by JavaScript, as they arrive.
#[wasm_bindgen]
#[derive(Debug)]
pub struct Int8Rows {
    codes: Vec<u8>,
    dim: usize,
    values: [f32; 256],
}

#[wasm_bindgen]
impl Int8Rows {
    /// Room for so many rows of so many values, and nothing but zeros yet.
    #[wasm_bindgen(constructor)]
    pub fn new(count: usize, dim: usize) -> Result<Int8Rows, String> {
        let too_much = || format!("{count} rows of {dim} values don't fit into memory");
        let size = count.checked_mul(dim).ok_or_else(too_much)?;
        let mut codes = Vec::new();
        codes.try_reserve_exact(size).map_err(|_| too_much())?;
        codes.resize(size, 0);
        let value = |code: usize| f32::from((code as u8).cast_signed()) / DIVISOR;
        Ok(Int8Rows { codes, dim, values: std::array::from_fn(value) })
    }

    /// Where the codes are in memory.
    #[wasm_bindgen(getter)]
    pub fn address(&self) -> usize {
        self.codes.as_ptr() as usize
    }

    /// The index of the first code that is none: -128.
    #[wasm_bindgen(js_name = firstInvalid)]
    pub fn first_invalid(&self) -> Option<usize> {
        // Blocks are tested for having one, which vectorises; only a block that has one is searched.
        const BLOCK: usize = 4096;
        const INVALID: u8 = 0x80;
        let has_one = |codes: &[u8]| codes.iter().fold(false, |any, c| any | (*c == INVALID));
        let block = self.codes.chunks(BLOCK).position(has_one)?;
        let within = self.codes[block * BLOCK..].iter().position(|code| *code == INVALID)?;
        Some(block * BLOCK + within)
    }

    /// The length of each row's vector.
    pub fn norms(&self) -> Vec<f64> {
        let square = |code: &u8| {
            let code = i32::from(code.cast_signed());
            code * code
        };
        // Sums of some thousands of squares fit 32 bits.
        let sum = |row: &[u8]| -> f64 {
            row.chunks(4096).map(|part| f64::from(part.iter().map(square).sum::<i32>())).sum()
        };
        let norm = |row: &[u8]| sum(row).sqrt() / f64::from(DIVISOR);
        self.codes.chunks_exact(self.dim.max(1)).map(norm).collect()
    }

    /// The `k` nearest rows of each of some queries, which are one behind the other: row and score of
    /// one hit after the other. `among` are the rows that may be found, all without it.
    pub fn search(
        &self,
        queries: &[f32],
        k: usize,
        metric: &str,
        among: Option<Vec<u32>>,
    ) -> Result<Vec<f64>, String> {
        let mut ask = Ask::new(k, metric_named(metric)?);
        let among = among.map(|rows| {
            let mut set = RowSet::new(self.count());
            rows.iter().for_each(|row| set.insert(*row as usize));
            set
        });
        ask.among = among.as_ref();
        let queries: Vec<Query> =
            queries.chunks(self.dim.max(1)).map(|vector| Query { vector, exclude: &[] }).collect();
        let found = Exact::new(self).search(&queries, &ask).map_err(|error| error.to_string())?;
        let pairs = found.hits.iter().flatten();
        Ok(pairs.flat_map(|hit| [hit.row as f64, f64::from(hit.score)]).collect())
    }
}

impl Rows for Int8Rows {
    fn count(&self) -> usize {
        self.codes.len().checked_div(self.dim).unwrap_or(0)
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
        let codes = &self.codes[start * self.dim..][..n * self.dim];
        buffer.clear();
        buffer.extend(codes.iter().map(|code| self.values[usize::from(*code)]));
        Ok(buffer)
    }

    fn stored(&self) -> Stored<'_> {
        Stored::Codes { values: &self.values }
    }

    fn bytes<'a>(
        &'a self,
        start: usize,
        n: usize,
        _: &'a mut Vec<u8>,
    ) -> Result<&'a [u8], Unreadable> {
        Ok(&self.codes[start * self.dim..][..n * self.dim])
    }
}

fn metric_named(name: &str) -> Result<Metric, String> {
    match name {
        "cosine" => Ok(Metric::Cosine),
        "dot" => Ok(Metric::Dot),
        "l2" => Ok(Metric::L2),
        _ => Err(format!("there is no metric {name:?}: it is cosine, dot or l2")),
    }
}
