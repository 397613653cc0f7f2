//! Telling lines of numbers from other text.

use super::super::word2vec::{Header, is_text};
use super::super::wordlist::{Lines, numbers_at_end};
use super::super::{Sureness, head};
use super::{FormatInfo, Kind};
use crate::Input;

/// Bytes that are looked at.
const LOOK: usize = 1 << 16;
/// Lines that are looked at to find out how many numbers each has.
pub(super) const SAMPLE: usize = 1000;

pub(super) fn probe(kind: Kind, input: &Input, info: &FormatInfo) -> Sureness {
    if input.is_folder {
        return Sureness::No;
    }
    let bytes = head(input);
    let header = Header::parse_text(bytes).filter(|h| h.dim > 0);
    let counted = header.is_some_and(|header| is_text(bytes, header));
    let content = match kind {
        Kind::Counted => counted,
        Kind::Glove => !counted && header.is_none() && looks_like_rows(bytes, input.source.len()),
    };
    // Any text may be called .txt: that says nothing.
    let named = input.extension() != "txt" && info.fits_name(input);
    match (content, named) {
        (true, _) => Sureness::Content,
        (false, true) => Sureness::Name,
        (false, false) => Sureness::No,
    }
}

/// All lines have the same count of numbers at their ends, and some have a word in front. Prose and
/// tables of numbers alone have not.
fn looks_like_rows(bytes: &[u8], size: u64) -> bool {
    let head = &bytes[..bytes.len().min(LOOK)];
    let lines = Lines::of_text(head, head);
    let mut all: Vec<&[u8]> = lines.iter().take(SAMPLE).collect();
    // The last line may go on behind what is looked at.
    if (head.len() as u64) < size && all.len() > 1 {
        all.pop();
    }
    let Some(dim) = dimensions(all.iter().copied()).filter(|dim| *dim >= 2) else { return false };
    let wordy = |line: &&[u8]| {
        let first = line.split(|b| matches!(b, b' ' | b'\t')).next().unwrap_or_default();
        std::str::from_utf8(first).is_ok_and(|text| text.parse::<f32>().is_err())
    };
    all.iter().all(|line| numbers_at_end(line) >= dim) && all.iter().any(wordy)
}

/// How many numbers the lines have: what most of them have, because a word may end with a number
/// and a line may be damaged. Of two counts that are as frequent, the smaller.
pub(super) fn dimensions<'a>(lines: impl Iterator<Item = &'a [u8]>) -> Option<usize> {
    let mut counts = std::collections::BTreeMap::new();
    for line in lines.take(SAMPLE) {
        *counts.entry(numbers_at_end(line)).or_insert(0) += 1;
    }
    counts.remove(&0);
    counts.into_iter().rev().max_by_key(|(_, times)| *times).map(|(count, _)| count)
}
