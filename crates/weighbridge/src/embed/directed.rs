//! Texts whose vectors have a direction. A static model gives a vector of zeros to a text of which it
//! knows no token, and a file of unit vectors has no place for that.

use super::texts::TextRow;
use super::{WINDOW, WINDOW_BYTES};
use std::collections::VecDeque;
use weighbridge_encoder::Encoder;
use weighbridge_format::Error;
use weighbridge_format::spec::Architecture;

/// What is wrong with a text without one.
const ZEROS: &str = "its vector is all zeros: the model knows nothing of it";

/// A line with its number: a row, or why it is none.
pub(super) type NumberedLine = (u64, Result<TextRow, String>);

/// Looks at texts before they are handed out, many at a time, which is what encoders are fast at.
pub(super) struct Directed {
    encoder: Encoder,
    /// Rows that may be handed out.
    ready: VecDeque<TextRow>,
    /// What ended the reading behind them.
    failed: Option<Error>,
}

/// Whether a model gives vectors of zeros to some texts. Those with layers make something of every text,
/// and looking at theirs would cost as much as embedding them.
pub(super) fn may_give_zeros(encoder: &Encoder) -> bool {
    encoder.spec().known_architecture().is_some_and(Architecture::is_static)
}

/// Whether a vector has no direction.
pub(super) fn is_zero(vector: &[f32]) -> bool {
    vector.iter().all(|value| *value == 0.0)
}

impl Directed {
    pub(super) fn new(encoder: Encoder) -> Directed {
        Directed { encoder, ready: VecDeque::new(), failed: None }
    }

    /// A row that was looked at, or what ended the reading; none where more lines have to be read.
    pub(super) fn next(&mut self) -> Result<Option<TextRow>, Error> {
        match (self.ready.pop_front(), &mut self.failed) {
            (Some(row), _) => Ok(Some(row)),
            (None, failed) => failed.take().map_or(Ok(None), Err),
        }
    }

    pub(super) fn is_next_there(&self) -> bool {
        !self.ready.is_empty()
    }

    /// Reads lines and looks at their texts. Returns those that were left out; nothing at the end of the
    /// input.
    pub(super) fn look(
        &mut self,
        mut next: impl FnMut() -> Result<Option<NumberedLine>, Error>,
    ) -> Result<Option<Vec<(u64, String)>>, Error> {
        let (mut lines, mut bytes) = (Vec::new(), 0);
        while lines.len() < WINDOW && bytes < WINDOW_BYTES {
            match next() {
                Ok(None) => break,
                Ok(Some(line)) => {
                    bytes += line.1.as_ref().map_or(0, |row| row.text.len() + row.record.len());
                    lines.push(line);
                }
                Err(error) => {
                    // What was read before it is not lost.
                    self.failed = Some(error);
                    break;
                }
            }
        }
        if lines.is_empty() && self.failed.is_none() {
            return Ok(None);
        }
        let texts: Vec<_> =
            lines.iter().filter_map(|(_, row)| row.as_ref().ok()).map(|row| &row.text).collect();
        let vectors = self.encoder.embed_flat(&texts)?;
        let mut vectors = vectors.chunks_exact(self.encoder.dimensions());
        let mut left_out = Vec::new();
        for (line, row) in lines {
            match row {
                Ok(row) if !vectors.next().is_some_and(is_zero) => self.ready.push_back(row),
                Ok(_) => left_out.push((line, ZEROS.to_owned())),
                Err(why) => left_out.push((line, why)),
            }
        }
        Ok(Some(left_out))
    }
}
