//! Container to planned bytes.

use super::super::FormatInfo;
use super::super::wordlist::{Decode, Prepared, prepare};
use super::read::BREAKS;
use crate::model::{Container, Produce, Tensor};
use crate::plan::{FilePlan, Piece, Plan};
use crate::wire::to_len;
use crate::{Error, Options, Vocabulary};
use std::sync::Arc;

pub(super) fn plan(
    container: &Container,
    options: &Options,
    info: &FormatInfo,
) -> Result<Plan, Error> {
    let prepared = prepare(container, info)?;
    let decode = Decode::new(options);
    prepared.check_words(decode, info.id)?;
    let dialect = container.dialect_of("word2vec");
    let breaks = dialect.and_then(|d| d.get(BREAKS)?.as_bool()).unwrap_or(true);
    let (rows, dim) = (prepared.rows(), prepared.dim());
    let Prepared { matrix, words, report } = prepared;
    let written = |w: &str| decode.written(w).map_or(0, |w| w.len() as u64);
    let texts: u64 = words.tokens().map(|w| written(&w)).sum();
    let row = dim.checked_mul(4).and_then(|n| n.checked_add(1 + u64::from(breaks)));
    let bytes = row.and_then(|row| row.checked_mul(rows)?.checked_add(texts));
    let bytes = bytes.ok_or_else(|| Error::refused("the matrix is too large", ""))?;
    let mut file = FilePlan::default();
    file.push(Piece::Bytes(format!("{rows} {dim}\n").into_bytes()));
    let from = Arc::new(WordRows { matrix, words, decode, breaks });
    file.push(Piece::Stream { bytes, from });
    Ok(Plan::single(file, report))
}

/// Words, each in front of its row.
#[derive(Debug)]
struct WordRows {
    matrix: Tensor,
    words: Vocabulary,
    decode: Decode,
    breaks: bool,
}

/// Values that are collected before they are written.
const VALUES: u64 = 1 << 16;

impl Produce for WordRows {
    fn produce(&self, out: &mut dyn FnMut(&[u8]) -> Result<(), Error>) -> Result<(), Error> {
        let [rows, dim] = *self.matrix.shape.as_slice() else { return Ok(()) };
        let together = (VALUES / dim.max(1)).max(1);
        let (mut values, mut raw, mut block) = (Vec::new(), Vec::new(), Vec::new());
        let mut words = self.words.tokens();
        for start in (0..rows).step_by(to_len(together)) {
            let n = together.min(rows - start);
            values.resize(to_len(n * dim), 0.0f32);
            self.matrix.rows_f32(start, &mut values, &mut raw)?;
            block.clear();
            for (row, word) in values.chunks_exact(to_len(dim)).zip(&mut words) {
                let written = self.decode.written(&word).unwrap_or_default();
                block.extend_from_slice(written.as_bytes());
                block.push(b' ');
                block.extend(row.iter().flat_map(|v| v.to_le_bytes()));
                block.extend(self.breaks.then_some(b'\n'));
            }
            out(&block)?;
        }
        Ok(())
    }
}
