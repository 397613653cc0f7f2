//! Rows as lines of decimal numbers.

use super::decode::Decode;
use crate::model::{Produce, Tensor, blocks_in_order};
use crate::plan::{Piece, Text};
use crate::wire::to_len;
use crate::{Error, Vocabulary};
use std::io::Write;
use std::sync::Arc;

/// The fewest digits that give the same f32 back. Very small and very large numbers have an exponent.
pub(crate) fn put_number(out: &mut Vec<u8>, value: f32) {
    let size = value.abs();
    // Here the fast way gives the same, but for a point behind whole numbers, and for numbers in the
    // middle of two of as many digits: those go up, not to the even one.
    if (1e-5..1e7).contains(&size) {
        let mut buffer = zmij::Buffer::new();
        let text = buffer.format_finite(value);
        let behind_point = text.len() - text.find('.').map_or(text.len(), |at| at + 1);
        if bits_behind_point(value) != behind_point + 1 {
            out.extend_from_slice(text.strip_suffix(".0").unwrap_or(text).as_bytes());
            return;
        }
    }
    let plain = value == 0.0 || (1e-5..1e16).contains(&size);
    // Writing to memory does not fail.
    let _ = match value {
        v if v.is_nan() => write!(out, "nan"),
        v if plain || v.is_infinite() => write!(out, "{v}"),
        v => write!(out, "{v:e}"),
    };
}

/// How many binary digits a number has behind its point, which is how many decimal digits all of it
/// takes there: the last of them is a 5.
fn bits_behind_point(value: f32) -> usize {
    let (bits, fraction) = (value.to_bits(), f32::MANTISSA_DIGITS - 1);
    let exponent = (bits >> fraction & 0xFF).max(1);
    let mantissa = bits & ((1 << fraction) - 1) | 1 << fraction;
    (127 + fraction).saturating_sub(exponent + mantissa.trailing_zeros()) as usize
}

/// Lines of a word (without words, of the row's number) and the row's values.
#[derive(Debug)]
pub(crate) struct TextRows {
    pub matrix: Tensor,
    pub words: Option<(Vocabulary, Decode)>,
}

/// Values that one thread takes at a time.
const VALUES: u64 = 1 << 14;

/// What a thread works with, kept for the next block.
#[derive(Default)]
struct Block {
    values: Vec<f32>,
    raw: Vec<u8>,
    text: Vec<u8>,
}

impl TextRows {
    /// All lines.
    pub(crate) fn piece(self) -> Piece {
        // A digit behind a space for each value, and the end of the line.
        let values = self.matrix.count();
        let least = values.saturating_mul(2).saturating_add(self.blocks().0);
        Piece::Text(Text::new(Arc::new(self), least))
    }

    /// How many rows there are, and how many go together.
    fn blocks(&self) -> (u64, u64) {
        let [rows, cols] = *self.matrix.shape.as_slice() else { return (0, 1) };
        (rows, (VALUES / cols.max(1)).max(1))
    }

    /// Makes the lines of the block that begins with this row.
    fn fill(&self, block: &mut Block, start: u64) -> Result<(), Error> {
        let (rows, together) = self.blocks();
        let dim = to_len(self.matrix.shape[1]);
        let Block { values, raw, text: out } = block;
        values.resize(to_len(together.min(rows - start)) * dim, 0.0);
        self.matrix.rows_f32(start, values, raw)?;
        out.clear();
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
                put_number(out, *value);
            }
            out.push(b'\n');
        }
        Ok(())
    }
}

impl Produce for TextRows {
    fn produce(&self, out: &mut dyn FnMut(&[u8]) -> Result<(), Error>) -> Result<(), Error> {
        let (rows, together) = self.blocks();
        let fill = |i: u64, block: &mut Block| self.fill(block, i * together);
        let values = self.matrix.shape.last().map_or(0, |cols| together.saturating_mul(*cols));
        let (blocks, bytes) = (rows.div_ceil(together), values.saturating_mul(12));
        blocks_in_order(blocks, bytes, fill, |block| out(&block.text))
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

    /// Two ways to write them are one.
    #[test]
    fn digits_are_those_of_the_standard_library() {
        let mut bits = 7u32;
        for i in 0..400_000u32 {
            bits = bits.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            // Any number, a whole one, one of usual size, and one of few binary digits.
            let whole = (bits >> (i % 32)) as f32;
            let power = i32::from(i as u8 % 16);
            let others = [whole / 10f32.powi(power), whole / 2f32.powi(power)];
            for value in [f32::from_bits(bits), whole, others[0], others[1]] {
                let mut text = Vec::new();
                put_number(&mut text, value);
                let plain = value == 0.0 || (1e-5..1e16).contains(&value.abs());
                let expected = match value {
                    v if v.is_nan() => "nan".to_owned(),
                    v if plain || v.is_infinite() => format!("{v}"),
                    v => format!("{v:e}"),
                };
                assert_eq!(String::from_utf8(text).unwrap(), expected);
            }
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
