//! Where each record of a text begins.

use super::RECORDS;
use super::scan::{Members, is_key, skip_space, skip_value};
use crate::wire::to_len;
use std::ops::Range;

/// The place of every record, found in one pass over the text. Of every few records the first has
/// its place kept: files may have more records than there is memory for so many numbers.
#[derive(Debug)]
pub(super) struct RecordIndex {
    starts: Vec<usize>,
    count: u64,
    /// What separates records: line breaks, or what stands between elements of an array.
    lines: bool,
    /// The inside of the array that they are elements of; of lines, all of them.
    pub inside: Range<usize>,
}

/// Records of which the first has its place kept.
const EACH: u64 = 16;

impl RecordIndex {
    fn new(lines: bool, at: usize) -> RecordIndex {
        RecordIndex { starts: Vec::new(), count: 0, lines, inside: at..at }
    }

    fn add(&mut self, at: usize) {
        if self.count.is_multiple_of(EACH) {
            self.starts.push(at);
        }
        self.count += 1;
    }

    /// How many there are.
    pub(super) fn count(&self) -> u64 {
        self.count
    }

    /// Of a document: an array, or an object with one named `records`. None where the text is no such
    /// document, as far as that is seen without looking into its parts.
    pub(super) fn of_document(text: &[u8]) -> Option<RecordIndex> {
        let start = skip_space(text, 0);
        let (index, end) = match text.get(start)? {
            b'[' => {
                let index = RecordIndex::of_array(text, start)?;
                let end = index.inside.end + 1;
                (index, end)
            }
            _ => {
                let mut members = Members::of(text, start)?;
                let mut found = None;
                while let Some((key, at)) = members.head() {
                    if !is_key(text.get(key)?, RECORDS) {
                        members.behind(skip_value(text, at)?);
                        continue;
                    }
                    let index = RecordIndex::of_array(text, at)?;
                    members.behind(index.inside.end + 1);
                    if found.replace(index).is_some() {
                        return None;
                    }
                }
                (found.unwrap_or(RecordIndex::new(false, 0)), members.end?)
            }
        };
        (skip_space(text, end) == text.len()).then_some(index)
    }

    /// Of the array of objects at a place.
    fn of_array(text: &[u8], at: usize) -> Option<RecordIndex> {
        if text.get(at) != Some(&b'[') {
            return None;
        }
        let mut index = RecordIndex::new(false, at + 1);
        let mut at = skip_space(text, at + 1);
        if text.get(at) == Some(&b']') {
            index.inside.end = at;
            return Some(index);
        }
        loop {
            if text.get(at) != Some(&b'{') {
                return None;
            }
            index.add(at);
            at = skip_space(text, skip_value(text, at)?);
            match text.get(at)? {
                b',' => at = skip_space(text, at + 1),
                b']' => {
                    index.inside.end = at;
                    return Some(index);
                }
                _ => return None,
            }
        }
    }

    /// Of lines, each with a line break behind it.
    pub(super) fn of_lines(text: &[u8]) -> RecordIndex {
        let mut index = RecordIndex::new(true, 0);
        for line in text.split_inclusive(|b| *b == b'\n') {
            index.add(index.inside.end);
            index.inside.end += line.len();
        }
        index
    }

    /// The places of some records, one by one; those that there are not are left out.
    pub(super) fn places<'a>(
        &self,
        text: &'a [u8],
        rows: Range<u64>,
    ) -> impl Iterator<Item = Range<usize>> + use<'a> {
        let rows = rows.start..rows.end.min(self.count);
        let lines = self.lines;
        let mut at = self.starts.get(to_len(rows.start / EACH)).copied().unwrap_or(text.len());
        let mut step = move || {
            let (end, next) = place(text, at, lines)?;
            let place = at..end;
            at = next;
            Some(place)
        };
        let before = rows.start % EACH;
        let wanted = rows.end.saturating_sub(rows.start);
        if wanted > 0 {
            (0..before).for_each(|_| _ = step());
        }
        (0..wanted).map_while(move |_| step())
    }
}

/// The end of the record at a place, and where the next begins.
fn place(text: &[u8], at: usize, lines: bool) -> Option<(usize, usize)> {
    if lines {
        let rest = text.get(at..)?;
        let length = rest.iter().position(|b| *b == b'\n').unwrap_or(rest.len());
        return Some((at + length, at + length + 1));
    }
    let end = skip_value(text, at)?;
    Some((end, skip_space(text, skip_space(text, end) + 1)))
}
