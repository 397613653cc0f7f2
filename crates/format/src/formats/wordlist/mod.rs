//! What the formats of words and their rows share: word2vec, text, GloVe, floret and fastText.

mod decode;
mod digits;
mod lines;
mod number;
mod prepare;

pub(super) use decode::{Decode, Words, put_word, without_repeats};
pub(super) use digits::TextRows;
pub(super) use lines::{BadLine, Lines, Why, numbers_at_end};
pub(super) use number::Number;
pub(super) use prepare::{NO_WORDS, Prepared, prepare};

use crate::Error;
use crate::model::{MATRIX, Note, NoteKind, Tensor};
use crate::wire::{Finding, Findings, MARK, Rule, Span, to_len};
use crate::{Advice, OptionSpec};
use weighbridge_codec::convert::Change;
use weighbridge_codec::parallel::*;

pub(super) const ESCAPE: OptionSpec = OptionSpec {
    name: "escape",
    value: "",
    choices: &[],
    help: "word2vec, text, glove: write words with spaces or line breaks as \\s, \\n and so on, and read them back",
    reading: true,
};

pub(super) const LOSSY: OptionSpec = OptionSpec {
    name: "lossy",
    value: "",
    choices: &[],
    help: "word2vec, text, glove, fasttext: put U+FFFD where a word is not UTF-8",
    reading: true,
};

/// How text stores values.
pub(super) const DECIMAL: &str = "decimal numbers";

/// What helps where a word is not UTF-8.
pub(super) const LOSSY_HINT: Advice = Advice::Set {
    option: LOSSY.name,
    value: std::borrow::Cow::Borrowed(""),
    effect: std::borrow::Cow::Borrowed("puts a mark in its place"),
};

/// What there is to know of a text that begins with a byte order mark, or whose last line does not
/// end.
pub(super) fn text_notes(head: &[u8], lines: &Lines) -> Vec<Note> {
    let mut notes = Vec::new();
    if head.starts_with(MARK) {
        let text = "the text begins with a byte order mark, which is left out";
        notes.push(Note::new(NoteKind::LeftOut, text));
    }
    if !lines.finished {
        let text = "the last line has no line break: the file may be cut short";
        notes.push(Note::new(NoteKind::Unusual, text));
    }
    notes
}

/// What there is to know of words that are not UTF-8 and were read nevertheless.
pub(super) fn lossy_note(words: u64, of: u64) -> Option<Note> {
    let text = match words {
        0 => return None,
        1 => "1 word is not UTF-8: U+FFFD stands for what can't be read".to_owned(),
        n => format!("{n} words are not UTF-8: U+FFFD stands for what can't be read"),
    };
    Some(Note::new(NoteKind::Unusual, text).counting(words, of))
}

/// What there is to know of numbers with more digits than f32 holds.
pub(super) fn rounding_note(rounded: Change, of: u64) -> Option<Note> {
    let Change { changed, largest } = rounded;
    let text = format!(
        "{changed} of {of} numbers have more digits than f32 holds: they are rounded, by {largest:.3e} at most"
    );
    (changed > 0).then(|| Note::new(NoteKind::Unusual, text).counting(changed, of))
}

/// The finding about words that stand twice; the first of each is kept.
pub(super) fn repeated(rule: Rule, words: &Words, span: Span) -> Option<Finding> {
    let (row, dropped) = words.repeats?;
    let finding = rule.at(span).field(format!("row {row}"));
    Some(finding.expected("every word once").found(match dropped {
        1 => "1 row with a word that was there before, left out".to_owned(),
        n => format!("{n} rows with words that were there before, left out"),
    }))
}

/// Reports the first NaN or infinity of the matrix. `place` says where a row stands in the file.
pub(super) fn check_finite(
    tensors: &[Tensor],
    rule: Rule,
    findings: &mut Findings,
    place: impl Fn(u64) -> Span,
) -> Result<(), Error> {
    if !findings.wants(rule) {
        return Ok(());
    }
    let Some(matrix) = tensors.iter().find(|t| t.name == MATRIX) else { return Ok(()) };
    let [rows, cols] = *matrix.shape.as_slice() else { return Ok(()) };
    // Rows that are looked at together.
    let together = ((1u64 << 16) / cols.max(1)).max(1);
    let first_bad = |start: u64| {
        let n = together.min(rows - start);
        let (mut values, mut raw) = (vec![0.0; to_len(n * cols)], Vec::new());
        if let Err(error) = matrix.rows_f32(start, &mut values, &mut raw) {
            return Some(Err(error));
        }
        let at = values.iter().position(|v| !v.is_finite())?;
        Some(Ok((start * cols + at as u64, values[at])))
    };
    let blocks = rows.div_ceil(together);
    let found = (0..blocks).into_par_iter().map(|i| i * together).find_map_first(first_bad);
    if let Some((index, value)) = found.transpose()? {
        let finding = rule.at(place(index / cols)).field(format!("tensor {MATRIX:?}"));
        let found = format!("{value} at row {}, column {}", index / cols, index % cols);
        findings.push(finding.expected("finite numbers").found(found));
    }
    Ok(())
}
