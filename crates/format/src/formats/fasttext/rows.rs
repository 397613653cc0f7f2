//! The vectors of words out of the rows of their parts, and back.

use crate::model::{Produce, RowSource, Subwords, Tensor};
use crate::source::View;
use crate::wire::to_len;
use crate::{Error, Vocabulary};
use std::collections::HashMap;
use weighbridge_codec::convert::Change;
use weighbridge_codec::parallel::*;

/// How fastText stores the vectors of words.
pub(super) const PARTS: &str = "rows of words and n-grams";

/// The vectors of words, and behind them the rows of the buckets.
#[derive(Debug)]
pub(super) struct Means {
    /// The input matrix: a row for each word and bucket.
    pub rows: View,
    pub words: Vocabulary,
    /// Words that are not UTF-8, by their rows: fastText hashes the bytes that there are.
    pub raw_words: HashMap<u64, Vec<u8>>,
    pub subwords: Subwords,
}

impl RowSource for Means {
    fn read(&self, row: u64, out: &mut [u8]) -> Result<(), Error> {
        let mut raw = Vec::new();
        let own = part(&self.rows, row, out.len(), &mut raw)?;
        let Some(word) = self.words.token(to_len(row)) else {
            out.copy_from_slice(own);
            return Ok(());
        };
        let mut sum: Vec<f32> = floats(own).collect();
        let behind = self.words.len() as u64;
        let mut bucket = Vec::new();
        let word = self.raw_words.get(&row).map_or(word.as_bytes(), Vec::as_slice);
        mean(&self.subwords, word, &mut sum, |ngram, sum| {
            bucket.clear();
            bucket.extend(floats(part(&self.rows, behind + ngram, out.len(), &mut raw)?));
            add(sum, &bucket);
            Ok(())
        })?;
        out.chunks_exact_mut(4).zip(sum).for_each(|(o, v)| o.copy_from_slice(&v.to_le_bytes()));
        Ok(())
    }

    fn computed_from(&self) -> Option<&'static str> {
        Some(PARTS)
    }
}

/// A row of the matrix; the reader checked that all are there.
fn part<'a>(
    rows: &'a View,
    row: u64,
    width: usize,
    raw: &'a mut Vec<u8>,
) -> Result<&'a [u8], Error> {
    let start = row.saturating_mul(width as u64);
    rows.read(start..start.saturating_add(width as u64), raw)
}

fn floats(bytes: &[u8]) -> impl Iterator<Item = f32> {
    bytes.as_chunks::<4>().0.iter().map(|raw| f32::from_le_bytes(*raw))
}

fn add(sum: &mut [f32], row: &[f32]) {
    sum.iter_mut().zip(row).for_each(|(s, v)| *s += v);
}

/// Adds the n-grams' rows to a word's own and divides, in the order and with the roundings of
/// fastText, so that the vectors are its own to the bit.
fn mean(
    subwords: &Subwords,
    word: &[u8],
    sum: &mut [f32],
    mut add_bucket: impl FnMut(u64, &mut [f32]) -> Result<(), Error>,
) -> Result<(), Error> {
    let mut count = 1u32;
    // fastText begins with zero, which makes +0 of -0.
    sum.iter_mut().for_each(|s| *s += 0.0);
    let mut failed = Ok(());
    subwords.for_each_fasttext_row(word, &mut |ngram| {
        if failed.is_ok() {
            failed = add_bucket(ngram, sum);
        }
        count += 1;
    });
    failed?;
    #[allow(clippy::cast_possible_truncation)]
    let share = (1.0 / f64::from(count)) as f32;
    sum.iter_mut().for_each(|s| *s *= share);
    Ok(())
}

/// The words' own rows, found back from their vectors.
#[derive(Debug)]
pub(super) struct OwnRows {
    /// Vectors of words, then rows of buckets.
    pub matrix: Tensor,
    pub words: Vocabulary,
    pub subwords: Option<Subwords>,
    /// What the rows were when the vectors were made.
    pub old: Option<Tensor>,
}

impl OwnRows {
    fn read(&self, row: u64, buffers: &mut Buffers) -> Result<(), Error> {
        let dim = to_len(self.matrix.shape[1]);
        let Buffers { vector, own, bucket, raw } = buffers;
        [&mut *vector, &mut *own, &mut *bucket].into_iter().for_each(|b| b.resize(dim, 0.0));
        self.matrix.rows_f32(row, vector, raw)?;
        let (Some(subwords), Some(word)) = (&self.subwords, self.words.token(to_len(row))) else {
            own.copy_from_slice(vector);
            return Ok(());
        };
        let behind = self.words.len() as u64;
        if let Some(old) = &self.old {
            old.rows_f32(row, own, raw)?;
            let mut made = own.clone();
            mean(subwords, word.as_bytes(), &mut made, |ngram, sum| {
                self.matrix.rows_f32(behind + ngram, bucket, raw)?;
                add(sum, bucket);
                Ok(())
            })?;
            if made.iter().zip(&*vector).all(|(a, b)| a.to_bits() == b.to_bits()) {
                return Ok(());
            }
        }
        // Sums in f64 lose next to nothing of the difference of large and close numbers.
        let mut rest = vec![0f64; dim];
        let mut count = 1u32;
        let mut failed = Ok(());
        subwords.for_each_fasttext_row(word.as_bytes(), &mut |ngram| {
            if failed.is_ok() {
                failed = self.matrix.rows_f32(behind + ngram, bucket, raw);
            }
            rest.iter_mut().zip(&*bucket).for_each(|(r, v)| *r += f64::from(*v));
            count += 1;
        });
        failed?;
        for ((own, vector), rest) in own.iter_mut().zip(&*vector).zip(rest) {
            #[allow(clippy::cast_possible_truncation)]
            let value = (f64::from(*vector) * f64::from(count) - rest) as f32;
            *own = value;
        }
        Ok(())
    }
}

impl OwnRows {
    /// What changes in the vectors of words, as fastText makes them of the rows that are written.
    pub(super) fn change(&self) -> Result<Change, Error> {
        let Some(subwords) = &self.subwords else { return Ok(Change::default()) };
        let behind = self.words.len() as u64;
        let row = |buffers: &mut Buffers, row: u64| {
            let mut change = Change::default();
            let Some(word) = self.words.token(to_len(row)) else { return Ok(change) };
            self.read(row, buffers)?;
            let Buffers { vector, own, bucket, raw } = buffers;
            mean(subwords, word.as_bytes(), own, |ngram, sum| {
                self.matrix.rows_f32(behind + ngram, bucket, raw)?;
                add(sum, bucket);
                Ok(())
            })?;
            for (a, b) in vector.iter().zip(&*own).filter(|(a, b)| a.to_bits() != b.to_bits()) {
                if !(a.is_nan() && b.is_nan()) {
                    change.note(f64::from(*a), f64::from(*b));
                }
            }
            Ok(change)
        };
        let rows = (0..behind).into_par_iter().map_init(Buffers::default, row);
        let mut all = Change::default();
        rows.collect::<Result<Vec<Change>, Error>>()?.into_iter().for_each(|c| all.add(c));
        Ok(all)
    }
}

#[derive(Default)]
struct Buffers {
    vector: Vec<f32>,
    own: Vec<f32>,
    bucket: Vec<f32>,
    raw: Vec<u8>,
}

impl Produce for OwnRows {
    fn produce(&self, out: &mut dyn FnMut(&[u8]) -> Result<(), Error>) -> Result<(), Error> {
        let mut buffers = Buffers::default();
        let mut bytes = Vec::new();
        for row in 0..self.matrix.shape[0] {
            self.read(row, &mut buffers)?;
            bytes.extend(buffers.own.iter().flat_map(|v| v.to_le_bytes()));
            if bytes.len() > 1 << 18 {
                out(&bytes)?;
                bytes.clear();
            }
        }
        out(&bytes)
    }
}
