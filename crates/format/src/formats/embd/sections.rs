//! Metadata and vocabulary of the indexed layout.

use super::super::Stop;
use super::layout::{self, Header};
use super::rules::*;
use crate::model::{BadEntry, SPECIAL_TOKENS, Value, Vocabulary};
use crate::source::Source;
use crate::wire::{Cursor, Finding, Findings, Regions, Rule, Span, What};
use std::collections::HashSet;

/// A file, and where its sections end: at the footer.
pub(super) struct Bounded<'a> {
    pub source: &'a Source,
    pub end: u64,
}

impl Bounded<'_> {
    /// A section as the header gives it, which must lie between header and footer.
    pub(super) fn section(&self, offset: u64, size: u64, name: &str) -> Result<Span, Stop> {
        let end = self.end;
        let span = offset..offset.saturating_add(size);
        if offset < layout::HEADER || span.end > end {
            return Err(Stop::from(
                SECTION
                    .at(span.clone())
                    .field(name)
                    .expected(format!("within {:#x}..{end:#x}", layout::HEADER))
                    .found(format!("{:#x}..{:#x}", span.start, span.end))
                    .hint("the file may be cut short"),
            ));
        }
        Ok(span)
    }
}

pub(super) fn read_metadata(
    bounded: &Bounded,
    h: &Header,
    regions: &mut Regions,
) -> Result<Vec<(String, Value)>, Stop> {
    if h.metadata_size == 0 {
        return Ok(Vec::new());
    }
    let span = bounded.section(h.metadata_offset.into(), h.metadata_size.into(), "metadata")?;
    regions.add(span.start..span.end.min(span.start + 8), What::Structure("metadata"));
    let mut c = Cursor::new(bounded.source, span.clone(), METADATA);
    let count = c.u32("metadata.entry_count")?;
    let total = c.u32("metadata.total_size")?;
    let mut entries = Vec::new();
    let mut keys = HashSet::new();
    for _ in 0..count {
        let start = c.position();
        let (key_length, value_length) = (c.u16("metadata entry")?, c.u16("metadata entry")?);
        let key = c.text(key_length.into(), "metadata key", METADATA)?;
        let value = c.text(value_length.into(), "metadata value", METADATA)?;
        if !keys.insert(key.clone()) {
            return Err(METADATA_KEY
                .at(start..c.position())
                .field(format!("metadata {key:?}"))
                .into());
        }
        regions.add(start..c.position(), What::Metadata(entries.len()));
        regions.add_entry(key.clone(), start..c.position());
        entries.push((key, Value::Text(value)));
    }
    let used = c.position() - span.start - 8;
    if used != u64::from(total) || c.remaining() != 0 {
        return Err(METADATA
            .at(span.start + 4..span.start + 8)
            .field("metadata.total_size")
            .message("the metadata entries do not fill their section")
            .expected(format!("{total} bytes of entries in a section of {}", h.metadata_size))
            .found(format!("{used} bytes"))
            .into());
    }
    Ok(entries)
}

/// The vocabulary, and whether the special tokens come behind it.
pub(super) fn read_vocabulary(
    bounded: &Bounded,
    h: &Header,
    regions: &mut Regions,
    findings: &mut Findings,
) -> Result<(Option<Vocabulary>, bool), Stop> {
    if h.flags & layout::VOCABULARY == 0 {
        if h.vocab_offset != 0 || h.vocab_size != 0 {
            let finding =
                VOCAB_WITHOUT_FLAG.at(20..28).field("header.vocab_offset, header.vocab_size");
            findings.push(
                finding.expected("0, 0").found(format!("{}, {}", h.vocab_offset, h.vocab_size)),
            );
        }
        return Ok((None, false));
    }
    if h.vocab_offset == 0 && h.vocab_size == 0 {
        let finding = FLAG_WITHOUT_VOCAB.at(8..12).field("header.flags");
        findings.push(finding.expected("bit 0 off").found(format!("{:#010x}", h.flags)));
        return Ok((None, false));
    }
    let source = bounded.source;
    let span = bounded.section(h.vocab_offset.into(), h.vocab_size.into(), "vocabulary")?;
    let mut c = Cursor::new(source, span.clone(), VOCAB);
    let count = c.u32("vocabulary.token_count")?;
    let total = u64::from(c.u32("vocabulary.total_size")?);
    let given = u64::from(c.u32("vocabulary.special_tokens")?);
    const SPECIAL: u64 = 20;
    // Absolute by the specification; relative to the section when only that lands inside.
    let fits = |at: u64| at >= span.start + 12 && at.saturating_add(SPECIAL) <= span.end;
    let special = if fits(given) {
        given
    } else if fits(span.start + given) {
        let finding = SPECIAL_RELATIVE.at(span.start + 8..span.start + 12);
        findings.push(
            finding.field("vocabulary.special_tokens").expected(span.start + given).found(given),
        );
        span.start + given
    } else {
        return Err(VOCAB
            .at(span.start + 8..span.start + 12)
            .field("vocabulary.special_tokens")
            .expected(format!("{:#x}..={:#x}", span.start + 12, span.end.saturating_sub(SPECIAL)))
            .found(format!("{given:#x}"))
            .into());
    };
    let first = special == span.start + 12;
    let start = if first { special + SPECIAL } else { span.start + 12 };
    let limit = if first { span.end } else { special };
    let entries = source.in_place(start..limit)?;
    let (mut vocabulary, used) =
        Vocabulary::with_u16_lengths(&entries, crate::wire::to_len(count.into()))
            .map_err(|bad| bad_token(bad, start, VOCAB))?;
    if used as u64 != total || start + total != limit {
        return Err(VOCAB
            .at(span.start + 4..span.start + 8)
            .field("vocabulary.total_size")
            .message("the tokens do not fill their section")
            .expected(format!("{total} bytes of tokens, {} in the section", limit - start))
            .found(format!("{used} bytes"))
            .into());
    }
    let mut c = Cursor::new(source, special..special + SPECIAL, VOCAB);
    for (i, (name, _)) in SPECIAL_TOKENS.iter().enumerate() {
        let id = c.u32("special token")?;
        if id < count {
            vocabulary.special.push(((*name).to_owned(), id));
        } else if id != layout::NO_TOKEN {
            let at = special + i as u64 * 4;
            let finding = SPECIAL_ID.at(at..at + 4).field(format!("special token {name}_id"));
            findings.push(finding.expected(format!("below {count}, or 0xffffffff")).found(id));
        }
    }
    regions.add(span.start..span.start + 12, What::Structure("vocabulary header"));
    regions.add(special..special + SPECIAL, What::Structure("special tokens"));
    regions.add(start..limit, What::Vocabulary);
    Ok((Some(vocabulary), !first))
}

/// The finding for a token that is cut short or no text.
pub(super) fn bad_token(bad: BadEntry, start: u64, rule: Rule) -> Box<Finding> {
    let (token, at, expected) = match bad {
        BadEntry::CutShort { token, at } => (token, at, "its length and text inside the section"),
        BadEntry::NotUtf8 { token, at } => (token, at, "UTF-8 text"),
    };
    let at = start + at as u64;
    Box::new(rule.at(at..at + 2).field(format!("token {token}")).expected(expected))
}
