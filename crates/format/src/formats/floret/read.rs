//! Bytes to container.

use super::super::Stop;
use super::super::text::bad_line;
use super::super::wordlist::{Decode, Lines, rounding_note, text_notes};
use super::layout::Header;
use super::rules::*;
use crate::model::{Container, Encoding, MATRIX, Tensor};
use crate::source::{Bytes, View};
use crate::wire::{Regions, What, to_len};
use crate::{Advice, Input, Listing, Options, Vocabulary};
use weighbridge_codec::DType;

pub(super) fn read(input: &Input) -> Result<Container, Stop> {
    let size = input.source.len();
    let text = input.source.in_place(0..size)?;
    let head = input.source.head()?;
    let header = Header::parse(head).ok_or_else(|| {
        let start = &head[..head.len().min(48)];
        let finding = HEADER.at(0..start.len() as u64).field("first line");
        finding
            .expected("buckets dim minn maxn hashes seed bow eow")
            .found(start.escape_ascii())
            .hint(Advice::from("this is not a floret file").and(Advice::See(Listing::Formats)))
    })?;
    let front = header.length as u64;
    let fault = if header.dim == 0 { Some("rows without values".into()) } else { None };
    if let Some(why) = fault.or_else(|| header.subwords.fault()) {
        return Err(PARAMETERS.at(0..front).field("first line").found(why).into());
    }
    let lines = Lines::new(&text, header.length, 2);
    let buckets = header.subwords.rows();
    let dim = usize::try_from(header.dim).unwrap_or(usize::MAX);
    let miscounted = |found: u64| {
        let rule = if found < buckets { CUT_SHORT } else { TRAILING };
        let finding = rule.at(front..size).expected(format!("{buckets} rows"));
        finding.found(format!("{found} rows"))
    };
    if lines.is_empty() {
        return Err(miscounted(0).into());
    }
    let parsed = lines
        .parse(dim, Decode::new(&Options::default()))
        .map_err(|bad| bad_line(&bad, dim, NUMBERS, INDEX))?;
    check_numbers(parsed.words, parsed.rows, &lines)?;
    if parsed.rows != buckets {
        return Err(miscounted(parsed.rows).into());
    }
    let mut regions = Regions::default();
    regions.add(0..front, What::Structure("header"));
    regions.add(front..size, What::Tensor(0));
    let mut notes = text_notes(head, &lines);
    notes.extend(rounding_note(parsed.odd.rounded, buckets.saturating_mul(header.dim)));
    let (shape, view) = (vec![buckets, header.dim], View::owned(parsed.matrix));
    Ok(Container {
        format: "floret",
        layout: "text".to_owned(),
        size,
        tensors: vec![Tensor::unchecked(MATRIX, Encoding::Plain(DType::F32), shape, view)],
        subwords: Some(header.subwords),
        notes,
        regions,
        ..Container::default()
    })
}

/// Rows stand in order.
fn check_numbers(entries: Vec<u8>, rows: u64, lines: &Lines) -> Result<(), Stop> {
    let Ok((numbers, _)) = Vocabulary::with_u32_lengths(&Bytes::owned(entries), to_len(rows))
    else {
        return Err(INDEX.at(lines.span(0)).into());
    };
    for (row, number) in (0..rows).zip(numbers.tokens()) {
        if number.parse() != Ok(row) {
            let finding = INDEX.at(lines.span(row)).field(format!("line {}", row + 2));
            return Err(finding.expected(row).found(format!("{number:?}")).into());
        }
    }
    Ok(())
}
