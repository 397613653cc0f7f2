//! The same is found at every level of the machine.

use super::*;
use crate::{Matrix, Metric};

struct Stored8(Vec<u8>, Box<[f32; 256]>, usize);

impl Rows for Stored8 {
    fn count(&self) -> usize {
        self.0.len() / self.2
    }

    fn dim(&self) -> usize {
        self.2
    }

    fn block<'a>(
        &'a self,
        start: usize,
        n: usize,
        buffer: &'a mut Vec<f32>,
    ) -> Result<&'a [f32], Unreadable> {
        let codes = &self.0[start * self.2..][..n * self.2];
        buffer.clear();
        buffer.extend(codes.iter().map(|code| self.1[usize::from(*code)]));
        Ok(buffer)
    }

    fn stored(&self) -> Stored<'_> {
        Stored::Codes { values: &self.1 }
    }

    fn bytes<'a>(
        &'a self,
        start: usize,
        n: usize,
        _: &'a mut Vec<u8>,
    ) -> Result<&'a [u8], Unreadable> {
        Ok(&self.0[start * self.2..][..n * self.2])
    }
}

#[test]
fn every_level_finds_the_same() {
    let mut state = 1u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 33) as u32
    };
    for dim in [1, 7, 50, 100] {
        let codes: Vec<u8> = (0..2000 * dim).map(|_| next() as u8).collect();
        let values = std::array::from_fn(|code| f32::from((code as u8).cast_signed()) / 127.0);
        let coded = Stored8(codes, Box::new(values), dim);
        let mut floats = Vec::new();
        coded.block(0, 2000, &mut floats).unwrap();
        let matrix = Matrix::new(&floats, dim).unwrap();
        let vectors: Vec<f32> =
            (0..40 * dim).map(|_| next() as f32 / (1u64 << 30) as f32 - 1.0).collect();
        let queries: Vec<Query> =
            vectors.chunks(dim).map(|vector| Query { vector, exclude: &[] }).collect();
        for metric in [Metric::Dot, Metric::Cosine, Metric::L2] {
            let ask = Ask::new(7, metric);
            let expected = search_at(Level::PLAIN, &matrix, &queries, &ask).unwrap();
            for level in Level::available() {
                let found = search_at(level, &matrix, &queries, &ask).unwrap();
                assert_eq!(found, expected, "{level} {dim} {metric:?}");
                let found = search_at(level, &coded, &queries, &ask).unwrap();
                assert_eq!(found, expected, "{level} {dim} {metric:?}");
            }
        }
    }
}
