//! Bytes to container.

use super::super::Stop;
use super::super::wordlist::{Decode, LOSSY_HINT, lossy_note, put_word, repeated, without_repeats};
use super::layout::Header;
use super::rules::*;
use crate::model::{Container, Data, Dialect, Encoding, MATRIX, RowSource, Tensor};
use crate::wire::{Cursor, Findings, Regions, What, to_len};
use crate::{Advice, Error, Input, Listing, Options, Source};
use std::sync::Arc;
use weighbridge_codec::DType;

/// Whether a line break stands behind each row, as the original program writes it.
pub(super) const BREAKS: &str = "line_breaks";

pub(super) fn read(
    input: &Input,
    options: &Options,
    findings: &mut Findings,
) -> Result<Container, Stop> {
    let source = &input.source;
    let head = source.head()?;
    let header = Header::parse(head).ok_or_else(|| {
        let start = &head[..head.len().min(24)];
        let finding = HEADER.at(0..start.len() as u64).field("first line");
        finding
            .expected("two whole numbers")
            .found(start.escape_ascii())
            .hint(Advice::from("this is not a word2vec file").and(Advice::See(Listing::Formats)))
    })?;
    let front = header.length as u64;
    if header.rows == 0 || header.dim == 0 {
        let finding = EMPTY.at(0..front).field("first line");
        return Err(finding.found(format!("{} x {}", header.rows, header.dim)).into());
    }
    let rows = walk(source, header, Decode::new(options))?;
    let count = rows.starts.len();
    let words = without_repeats(rows.words, count)
        .ok_or_else(|| TEXT.at(front..source.len()).field("words"))?;
    findings_of(&words, front..source.len(), findings);
    let starts = match &words.kept {
        Some(kept) => kept.iter().map(|row| rows.starts[to_len(*row)]).collect(),
        None => rows.starts,
    };
    let shape = vec![starts.len() as u64, header.dim];
    let data = Data::Rows(Arc::new(StoredRows { source: source.clone(), starts }));
    let mut regions = Regions::default();
    regions.add(0..front, What::Structure("header"));
    regions.add(front..source.len(), What::Structure("words and rows"));
    let mut dialect = Dialect::new();
    if !rows.breaks {
        dialect.insert(BREAKS.to_owned(), false.into());
    }
    let mut notes: Vec<_> = words.note().into_iter().collect();
    notes.extend(lossy_note(rows.replaced, header.rows));
    let between = if rows.breaks { "with" } else { "without" };
    Ok(Container {
        format: "word2vec",
        layout: format!("{between} line breaks"),
        dialect,
        size: source.len(),
        tensors: vec![Tensor::with_data(MATRIX, Encoding::Plain(DType::F32), shape, data)],
        notes,
        vocabulary: Some(words.vocabulary),
        regions,
        ..Container::default()
    })
}

fn findings_of(
    words: &super::super::wordlist::Words,
    span: std::ops::Range<u64>,
    findings: &mut Findings,
) {
    if let Some(finding) = repeated(REPEATED, words, span) {
        findings.push(finding);
    }
}

/// What a walk through the file finds: where each row's values begin, and the words.
struct Walked {
    starts: Vec<u64>,
    words: Vec<u8>,
    breaks: bool,
    /// Words that are not UTF-8.
    replaced: u64,
}

/// Walks from word to word. Memory grows with the words that are there, whatever the header says.
fn walk(source: &Source, header: Header, decode: Decode) -> Result<Walked, Stop> {
    let mut walked = Walked { starts: Vec::new(), words: Vec::new(), breaks: false, replaced: 0 };
    let (size, values) = (source.len(), header.dim.saturating_mul(4));
    let mut c = Cursor::new(source, header.length as u64..size, CUT_SHORT);
    for row in 0..header.rows {
        let at = c.position();
        walked.breaks |= skip_break(&mut c)? && row > 0;
        let start = c.position();
        let ended = |stop: Stop| match stop {
            Stop::Broken(_) => short(size, at, row, header),
            failed => failed,
        };
        let raw = c.take_until(b' ', "word").map_err(ended)?;
        let word = decode.word(raw).map_err(|bad| {
            let place = start + bad.at as u64;
            let finding = TEXT.at(place..place + 1).field(format!("word of row {row}"));
            finding.expected("UTF-8 text").found(raw.escape_ascii()).hint(LOSSY_HINT)
        });
        walked.replaced += u64::from(std::str::from_utf8(raw).is_err());
        if size - start - raw.len() as u64 <= values {
            return Err(short(size, at, row, header));
        }
        put_word(&mut walked.words, &word?);
        walked.starts.push(c.position());
        c.skip(values, "row").map_err(ended)?;
    }
    let at = c.position();
    let ends_with_break = skip_break(&mut c)?;
    walked.breaks |= header.rows == 1 && ends_with_break && c.remaining() == 0;
    if c.remaining() > 0 {
        let hint = format!("the first line says {} rows; or cut it off", header.rows);
        return Err(TRAILING.appended(c.position(), size).hint(hint).into());
    }
    if walked.breaks && at == size {
        return Err(short(size, at, header.rows, header));
    }
    Ok(walked)
}

/// Writers put a line break behind a row, so that the next word seems to begin with it.
fn skip_break(c: &mut Cursor) -> Result<bool, Stop> {
    let there = c.peek()? == Some(b'\n');
    c.skip(u64::from(there), "line break")?;
    Ok(there)
}

fn short(size: u64, at: u64, row: u64, header: Header) -> Stop {
    let finding = CUT_SHORT.at(at..size).field(format!("row {row}"));
    finding
        .expected(format!("{} rows of {} values", header.rows, header.dim))
        .found(format!("the end in row {row}"))
        .hint("the file may be cut short; compare its size with the source it was copied from")
        .into()
}

/// Rows between words.
#[derive(Debug)]
struct StoredRows {
    source: Source,
    starts: Vec<u64>,
}

impl RowSource for StoredRows {
    fn read(&self, row: u64, out: &mut [u8]) -> Result<(), Error> {
        let start = self.starts.get(to_len(row)).copied().unwrap_or(u64::MAX);
        let mut buffer = Vec::new();
        let end = start.saturating_add(out.len() as u64);
        out.copy_from_slice(self.source.read(start..end, &mut buffer)?);
        Ok(())
    }
}
