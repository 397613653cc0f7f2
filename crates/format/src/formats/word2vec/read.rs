//! Bytes to container.

use super::super::Stop;
use super::super::wordlist::{Decode, LOSSY_HINT, put_word, repeated, without_repeats};
use super::layout::Header;
use super::rules::*;
use crate::model::{Container, Data, Dialect, Encoding, MATRIX, RowSource, Tensor};
use crate::wire::{Finding, Findings, Regions, What, to_len};
use crate::{Advice, Input, Listing, Options, Source};
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
    let bytes = source.bytes();
    let header = Header::parse(bytes).ok_or_else(|| {
        let start = &bytes[..bytes.len().min(24)];
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
    let rows = walk(bytes, header, Decode::new(options))?;
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
    let between = if rows.breaks { "with" } else { "without" };
    Ok(Container {
        format: "word2vec",
        layout: format!("{between} line breaks"),
        dialect,
        size: source.len(),
        tensors: vec![Tensor::with_data(MATRIX, Encoding::Plain(DType::F32), shape, data)],
        notes: words.note().into_iter().collect(),
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
}

/// Walks from word to word. Memory grows with the words that are there, whatever the header says.
fn walk(bytes: &[u8], header: Header, decode: Decode) -> Result<Walked, Box<Finding>> {
    let mut walked = Walked { starts: Vec::new(), words: Vec::new(), breaks: false };
    let values = header.dim.checked_mul(4).and_then(|n| usize::try_from(n).ok());
    let mut at = header.length;
    for row in 0..header.rows {
        let start = at + leading_breaks(&bytes[at..]);
        walked.breaks |= row > 0 && start > at;
        let end = bytes[start..].iter().position(|b| *b == b' ').map(|n| start + n);
        let next = end.and_then(|end| (end + 1).checked_add(values?)).filter(|n| *n <= bytes.len());
        let (Some(end), Some(next)) = (end, next) else {
            return Err(short(bytes.len(), at, row, header));
        };
        let word = decode.word(&bytes[start..end]).map_err(|bad| {
            let place = (start + bad.at) as u64;
            let finding = TEXT.at(place..place + 1).field(format!("word of row {row}"));
            Box::new(
                finding
                    .expected("UTF-8 text")
                    .found(bytes[start..end].escape_ascii())
                    .hint(LOSSY_HINT),
            )
        })?;
        put_word(&mut walked.words, &word);
        walked.starts.push(end as u64 + 1);
        at = next;
    }
    walked.breaks |= header.rows == 1 && bytes[at..] == *b"\n";
    let rest = &bytes[at + leading_breaks(&bytes[at..])..];
    if !rest.is_empty() {
        let start = (bytes.len() - rest.len()) as u64;
        let finding = TRAILING.at(start..bytes.len() as u64);
        return Err(Box::new(
            finding
                .expected(format!("{} rows", header.rows))
                .found(format!("{} more bytes", rest.len())),
        ));
    }
    if walked.breaks && rest.is_empty() && at == bytes.len() {
        return Err(short(bytes.len(), at, header.rows, header));
    }
    Ok(walked)
}

/// Writers put a line break behind a row, so that the next word seems to begin with it.
fn leading_breaks(bytes: &[u8]) -> usize {
    usize::from(bytes.starts_with(b"\n"))
}

fn short(size: usize, at: usize, row: u64, header: Header) -> Box<Finding> {
    let finding = CUT_SHORT.at(at as u64..size as u64).field(format!("row {row}"));
    Box::new(
        finding
            .expected(format!("{} rows of {} values", header.rows, header.dim))
            .found(format!("the end in row {row}"))
            .hint("the file may be cut short; compare its size with the source it was copied from"),
    )
}

/// StoredRows between words.
#[derive(Debug)]
struct StoredRows {
    source: Source,
    starts: Vec<u64>,
}

impl RowSource for StoredRows {
    fn read(&self, row: u64, out: &mut [u8]) {
        let start = self.starts.get(to_len(row)).map_or(usize::MAX, |start| to_len(*start));
        let end = start.saturating_add(out.len());
        match self.source.bytes().get(start..end) {
            Some(values) => out.copy_from_slice(values),
            None => out.fill(0),
        }
    }
}
