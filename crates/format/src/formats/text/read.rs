//! Bytes to container.

use super::super::Stop;
use super::super::word2vec::Header;
use super::super::wordlist::{
    Decode, Lines, lossy_note, repeated, rounding_note, text_notes, without_repeats,
};
use super::probe::{SAMPLE, dimensions};
use super::rules::*;
use super::{GLOVE_INFO, Kind};
use crate::model::{Container, Encoding, MATRIX, Tensor};
use crate::source::View;
use crate::wire::{Finding, Findings, Regions, What, to_len, without_mark};
use crate::{Advice, Input, Options};
use weighbridge_codec::DType;

pub(super) fn read(
    kind: Kind,
    input: &Input,
    options: &Options,
    findings: &mut Findings,
) -> Result<Container, Stop> {
    let size = input.source.len();
    let text = input.source.in_place(0..size)?;
    let bytes: &[u8] = &text;
    let head = input.source.head()?;
    let (header, lines, dim) = begin(kind, bytes, head)?;
    let front = lines.start();
    let parsed =
        lines.parse(dim, Decode::new(options)).map_err(|bad| bad_line(&bad, dim, NUMBERS, TEXT))?;
    if let Some(header) = header.filter(|h| h.rows != parsed.rows) {
        return Err(miscounted(header, parsed.rows, front..size).into());
    }
    let words = without_repeats(parsed.words, to_len(parsed.rows))
        .ok_or_else(|| TEXT.at(front..size).field("words"))?;
    findings_about(&words, front..size, findings);
    let shape = vec![parsed.rows, dim as u64];
    let view = View::owned(parsed.matrix);
    let mut matrix = Tensor::unchecked(MATRIX, Encoding::Plain(DType::F32), shape, view);
    let mut notes: Vec<_> = words.note().into_iter().collect();
    if let Some(kept) = words.kept {
        matrix = matrix.pick_rows(kept)?;
    }
    let mut regions = Regions::default();
    let mark = (head.len() - without_mark(head).len()) as u64;
    regions.add(0..mark, What::Structure("byte order mark"));
    regions.add(mark..front, What::Structure("header"));
    regions.add(front..size, What::Tensor(0));
    notes.extend(text_notes(head, &lines));
    notes.extend(lossy_note(parsed.odd.replaced, parsed.rows));
    notes.extend(rounding_note(parsed.odd.rounded, parsed.rows.saturating_mul(dim as u64)));
    Ok(Container {
        format: kind.info().id,
        layout: if header.is_some() { "with a header" } else { "without a header" }.to_owned(),
        size,
        tensors: vec![matrix],
        vocabulary: Some(words.vocabulary),
        notes,
        regions,
        ..Container::default()
    })
}

fn findings_about(
    words: &super::super::wordlist::Words,
    span: std::ops::Range<u64>,
    findings: &mut Findings,
) {
    if let Some(finding) = repeated(REPEATED, words, span) {
        findings.push(finding);
    }
}

/// The header if there is one, the lines, and how many numbers each has.
fn begin<'a>(
    kind: Kind,
    bytes: &'a [u8],
    head: &[u8],
) -> Result<(Option<Header>, Lines<'a>, usize), Stop> {
    if kind == Kind::Glove {
        let lines = Lines::of_text(bytes, head);
        let mut sample: Vec<_> = lines.iter().take(SAMPLE + 1).map(<[u8]>::to_vec).collect();
        // A line that was cut says nothing about the others.
        if !lines.finished && (2..=SAMPLE).contains(&sample.len()) {
            sample.pop();
        }
        let dim = dimensions(sample.iter().map(Vec::as_slice));
        let nothing = || {
            let finding = EMPTY.at(0..bytes.len().min(64) as u64);
            finding.expected("lines that end with numbers").hint("this is not a GloVe file")
        };
        return Ok((None, lines, dim.ok_or_else(nothing)?));
    }
    let start = &head[..head.len().min(24)];
    let header =
        Header::parse_text(head).ok_or_else(|| {
            let finding = HEADER.at(0..start.len() as u64).field("first line");
            finding.expected("two whole numbers").found(start.escape_ascii()).hint(
                Advice::from("this is not a text of word vectors with a header")
                    .and(Advice::set_to("from", GLOVE_INFO.id, "reads it without one")),
            )
        })?;
    let lines = Lines::new(bytes, header.length, 2);
    let dim = usize::try_from(header.dim).unwrap_or(usize::MAX);
    if header.rows == 0 || header.dim == 0 {
        let finding = EMPTY.at(0..header.length as u64).field("first line");
        return Err(Stop::from(finding.found(format!("{} x {}", header.rows, header.dim))));
    }
    if lines.is_empty() {
        return Err(Stop::from(miscounted(header, 0, header.length as u64..bytes.len() as u64)));
    }
    Ok((Some(header), lines, dim))
}

fn miscounted(header: Header, found: u64, span: std::ops::Range<u64>) -> Finding {
    let rows = |n: u64| if n == 1 { "1 row".to_owned() } else { format!("{n} rows") };
    let short = found < header.rows;
    let finding = if short { CUT_SHORT } else { TRAILING }.at(span);
    let finding = finding.expected(rows(header.rows)).found(rows(found));
    let hint = "the file may be cut short; compare its size with the source it was copied from";
    finding.hint(if short { hint } else { "" })
}
