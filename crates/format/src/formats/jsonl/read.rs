//! Bytes to container: the vectors of all lines as one matrix, and what else each line says as the
//! record of its row.

use super::super::wordlist::{Lines, rounding_note, text_notes};
use super::super::{Stop, Sureness, head};
use super::lines::{Bad, Parsed};
use super::rules::{bad_line, nothing};
use super::{FormatInfo, INFO};
use crate::model::{Container, Encoding, MATRIX, Records, Tensor};
use crate::source::{Bytes, View};
use crate::wire::{Findings, Regions, What, without_mark};
use crate::{Input, Options};
use weighbridge_codec::DType;
use weighbridge_codec::parallel::*;

/// Bytes of a line. Whoever has longer ones has another file.
pub(super) const LONGEST: usize = 64 << 20;
/// Bytes that one thread takes at a time.
const CHUNK: usize = 1 << 20;
/// Chunks that are in memory as text at a time.
const AT_ONCE: usize = 64;

/// Any lines may be JSON: the name tells, and the first line must begin as an object does.
pub(super) fn probe(input: &Input, info: &FormatInfo) -> Sureness {
    let begins = || without_mark(head(input)).trim_ascii_start().starts_with(b"{");
    match info.fits_name(input) {
        true if begins() => Sureness::Content,
        true => Sureness::Name,
        false => Sureness::No,
    }
}

pub(super) fn is_blank(line: &[u8]) -> bool {
    line.iter().all(|b| matches!(b, b' ' | b'\t' | b'\r'))
}

pub(super) fn read(input: &Input, _: &Options, _: &mut Findings) -> Result<Container, Stop> {
    let size = input.source.len();
    let text = input.source.in_place(0..size)?;
    let head = input.source.head()?;
    let mark = head.len() - without_mark(head).len();
    let body = text.get(mark..).unwrap_or_default();
    let chunks = chunks(body);
    let dim = first_length(body, mark)?;
    let mut all = Parsed::default();
    let mut start = mark as u64;
    for some in chunks.chunks(AT_ONCE) {
        // Those that are sound, up to the first that is not.
        let parts: Vec<_> = some.par_iter().map(|chunk| parse(chunk, dim)).collect();
        for (part, chunk) in parts.into_iter().zip(some) {
            let mut part = part.map_err(|(bad, line, at)| {
                bad_line(bad, all.lines + line, start + at as u64, dim)
            })?;
            all.matrix.append(&mut part.matrix);
            all.records.append(&mut part.records);
            all.rows += part.rows;
            all.lines += part.lines;
            all.rounded.add(part.rounded);
            start += chunk.len() as u64;
        }
    }
    // Where all records are empty, nothing is said of any row.
    let says_nothing = all.records.len() as u64 == all.rows * 3;
    let records = Some(all.records).filter(|_| !says_nothing);
    let records = records.map(|lines| Records::from_checked_lines(Bytes::owned(lines)));
    let shape = vec![all.rows, dim as u64];
    let encoding = Encoding::Plain(DType::F32);
    let matrix = Tensor::unchecked(MATRIX, encoding, shape, View::owned(all.matrix));
    let mut notes = text_notes(head, &Lines::of_text(&text, head));
    notes.extend(rounding_note(all.rounded, all.rows.saturating_mul(dim as u64)));
    let mut regions = Regions::default();
    regions.add(0..mark as u64, What::Structure("byte order mark"));
    regions.add(mark as u64..size, What::Structure("lines"));
    Ok(Container {
        format: INFO.id,
        layout: if records.is_some() { "with records" } else { "vectors alone" }.to_owned(),
        size,
        tensors: vec![matrix],
        records,
        notes,
        regions,
        ..Container::default()
    })
}

/// Whole lines, each with its line break.
fn chunks(text: &[u8]) -> Vec<&[u8]> {
    let mut list = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let end = rest.iter().skip(CHUNK).position(|b| *b == b'\n');
        let (chunk, behind) = rest.split_at(end.map_or(rest.len(), |end| end + CHUNK + 1));
        list.push(chunk);
        rest = behind;
    }
    list
}

/// How many values the first vector has, of a text that begins here in its file.
fn first_length(text: &[u8], mark: usize) -> Result<usize, Stop> {
    let mut at = mark as u64;
    for (number, line) in (1..).zip(text.split(|b| *b == b'\n')) {
        if !is_blank(line) {
            let bad = |bad| bad_line(bad, number, at, 0);
            let parsed = match line.len() > LONGEST {
                true => Err(Bad::Long(line.len())),
                false => {
                    // What is parsed is a copy: the file may change.
                    let copy = line.to_vec();
                    Parsed::default().add(&copy, None)
                }
            };
            return match parsed.map_err(bad)? {
                0 => Err(nothing(at..at + line.len() as u64, "a vector without values").into()),
                length => Ok(length),
            };
        }
        at += line.len() as u64 + 1;
    }
    Err(nothing(0..at, "no line with anything in it").into())
}

/// The lines of a chunk; what is wrong with the first that is not as it should be, its number in the
/// chunk and where it begins there.
fn parse(chunk: &[u8], dim: usize) -> Result<Parsed, (Bad, u64, usize)> {
    let mut parsed = Parsed::default();
    let mut at = 0;
    // A chunk ends with the line that fills it, so that no more than its last line is too long.
    let copy = chunk.get(..chunk.len().min(CHUNK + LONGEST)).unwrap_or_default().to_vec();
    for line in copy.split_inclusive(|b| *b == b'\n') {
        parsed.lines += 1;
        let rest = chunk.get(at..).unwrap_or_default();
        let whole = if at + line.len() == copy.len() { rest } else { line };
        let length = whole.strip_suffix(b"\n").unwrap_or(whole).len();
        if length > LONGEST {
            return Err((Bad::Long(length), parsed.lines, at));
        }
        let content = line.strip_suffix(b"\n").unwrap_or(line);
        if !is_blank(content) {
            parsed.add(content, Some(dim)).map_err(|bad| (bad, parsed.lines, at))?;
        }
        at += line.len();
    }
    Ok(parsed)
}
