//! Rows as lines of decimal numbers.

use super::decode::Decode;
use crate::model::{Produce, Tensor};
use crate::wire::to_len;
use crate::{Error, Vocabulary};
use std::io::Write;
use weighbridge_codec::parallel::*;

/// The fewest digits that give the same f32 back. Very small and very large numbers have an exponent.
pub(crate) fn put_number(out: &mut Vec<u8>, value: f32) {
    let size = value.abs();
    let plain = value == 0.0 || (1e-5..1e16).contains(&size);
    // Writing to memory does not fail.
    let _ = match value {
        v if v.is_nan() => write!(out, "nan"),
        v if plain || v.is_infinite() => write!(out, "{v}"),
        v => write!(out, "{v:e}"),
    };
}

/// Lines of a word (without words, of the row's number) and the row's values.
#[derive(Debug)]
pub(crate) struct TextRows {
    pub matrix: Tensor,
    pub words: Option<(Vocabulary, Decode)>,
}

/// Values that one thread takes at a time, and how many threads may be at work before the lines are
/// written: together they bound the memory.
const VALUES: u64 = 1 << 14;
const AT_ONCE: u64 = 64;

impl TextRows {
    /// The bytes of all lines together. It takes as long as writing them.
    pub(crate) fn bytes(&self) -> Result<u64, Error> {
        let (rows, together) = self.blocks();
        let blocks = (0..rows.div_ceil(together)).into_par_iter();
        blocks.map(|i| Ok(self.block(i * together)?.len() as u64)).sum()
    }

    /// How many rows there are, and how many go together.
    fn blocks(&self) -> (u64, u64) {
        let [rows, cols] = *self.matrix.shape.as_slice() else { return (0, 1) };
        (rows, (VALUES / cols.max(1)).max(1))
    }

    fn block(&self, start: u64) -> Result<Vec<u8>, Error> {
        let (rows, together) = self.blocks();
        let dim = to_len(self.matrix.shape[1]);
        let n = together.min(rows - start);
        let (mut values, mut raw) = (vec![0.0; to_len(n) * dim], Vec::new());
        self.matrix.rows_f32(start, &mut values, &mut raw)?;
        let mut out = Vec::with_capacity(values.len() * 12);
        for (row, values) in (start..).zip(values.chunks_exact(dim.max(1))) {
            match &self.words {
                Some((vocabulary, decode)) => {
                    let word = vocabulary.token(to_len(row)).unwrap_or_default();
                    let written = decode.written(&word);
                    out.extend_from_slice(written.unwrap_or_default().as_bytes());
                }
                None => {
                    let _ = write!(out, "{row}");
                }
            }
            for value in values {
                out.push(b' ');
                put_number(&mut out, *value);
            }
            out.push(b'\n');
        }
        Ok(out)
    }
}

impl Produce for TextRows {
    fn produce(&self, out: &mut dyn FnMut(&[u8]) -> Result<(), Error>) -> Result<(), Error> {
        let (rows, together) = self.blocks();
        let step = together * AT_ONCE;
        for start in (0..rows).step_by(to_len(step)) {
            let blocks = (rows - start).min(step).div_ceil(together);
            let blocks = (0..blocks).into_par_iter();
            let made: Result<Vec<Vec<u8>>, Error> =
                blocks.map(|i| self.block(start + i * together)).collect();
            made?.iter().try_for_each(|block| out(block))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_give_the_same_number_back() {
        let mut bits = 1u32;
        for _ in 0..200_000 {
            bits = bits.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let value = f32::from_bits(bits);
            let mut text = Vec::new();
            put_number(&mut text, value);
            let text = String::from_utf8(text).unwrap();
            let back: f32 = text.parse().unwrap();
            assert!(back.to_bits() == bits || value.is_nan() && back.is_nan(), "{text}");
            assert!(text.len() <= 22, "{text}");
        }
    }

    #[test]
    fn numbers_look_as_usual() {
        for (value, text) in [
            (0.1, "0.1"),
            (-0.0, "-0"),
            (1.0, "1"),
            (1e-7, "1e-7"),
            (f32::MAX, "3.4028235e38"),
            (f32::INFINITY, "inf"),
            (f32::NAN, "nan"),
        ] {
            let mut out = Vec::new();
            put_number(&mut out, value);
            assert_eq!(String::from_utf8(out).unwrap(), text);
        }
    }
}
