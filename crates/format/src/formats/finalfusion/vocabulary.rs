//! The five kinds of vocabularies.

use super::super::Stop;
use super::layout::Chunk;
use super::rules::*;
use crate::model::{BadEntry, BadNgram, Ngrams, SubwordKind, Subwords};
use crate::source::Source;
use crate::wire::{Cursor, Finding, Findings, Regions, What, entries, put_u32, put_u64, to_len};
use crate::{Error, Vocabulary};
use std::sync::Arc;

/// Words and how unknown ones are made.
pub(super) struct Words {
    pub vocabulary: Option<Vocabulary>,
    pub subwords: Option<Subwords>,
}

impl Words {
    /// Rows that the matrix must have; `None` when there is no such number.
    pub(super) fn rows(&self) -> Option<u64> {
        let words = self.vocabulary.as_ref().map_or(0, |v| v.len() as u64);
        words.checked_add(self.subwords.as_ref().map_or(0, Subwords::rows))
    }
}

/// Reads a vocabulary; `c` covers the chunk's data.
pub(super) fn read(
    chunk: Chunk,
    draft: bool,
    c: &mut Cursor,
    source: &Source,
    regions: &mut Regions,
    findings: &mut Findings,
) -> Result<Words, Stop> {
    let start = c.position();
    if chunk == Chunk::Floret {
        let subwords = floret(c)?;
        regions.add(start..c.position(), What::Structure("floret vocabulary"));
        return Ok(Words { vocabulary: None, subwords: Some(subwords) });
    }
    // The draft has the number of words behind the parameters.
    let mut count = if draft && chunk == Chunk::Buckets { 0 } else { c.u64("number of words")? };
    let ngrams = if chunk == Chunk::Explicit { c.u64("number of n-grams")? } else { 0 };
    let mut kind = None;
    if chunk != Chunk::Simple {
        let (min_n, max_n) = (c.u32("min_n")?, c.u32("max_n")?);
        kind = Some((min_n, max_n, 0));
    }
    if let (Chunk::Buckets | Chunk::FastText, Some(kind)) = (chunk, &mut kind) {
        kind.2 = c.u32("buckets")?;
    }
    if draft && chunk == Chunk::Buckets {
        count = c.u64("number of words")?;
    }
    regions.add(start..c.position(), What::Structure("vocabulary parameters"));
    if count == 0 {
        return Err(EMPTY.at(start..c.position()).expected("at least one word").into());
    }
    let words_at = c.position();
    let rest = entries::<4>(source, words_at..words_at + c.remaining(), count, 0)?;
    let words = Vocabulary::with_u32_lengths(&rest, to_len(count));
    let (vocabulary, used) = words.map_err(|e| bad_word(&e, words_at))?;
    c.skip(used as u64, "words")?;
    regions.add(words_at..c.position(), What::Vocabulary);
    let Some((min_n, max_n, buckets)) = kind else {
        return Ok(Words { vocabulary: Some(vocabulary), subwords: None });
    };
    let kind = match chunk {
        Chunk::Buckets => SubwordKind::Buckets { exponent: buckets },
        Chunk::FastText => SubwordKind::FastText { buckets },
        _ => SubwordKind::Explicit(Arc::new(explicit(c, ngrams, source, regions, findings)?)),
    };
    let subwords = Subwords::new(min_n, max_n, kind);
    check_parameters(&subwords, start..words_at)?;
    Ok(Words { vocabulary: Some(vocabulary), subwords: Some(subwords) })
}

/// Bytes that the length of an explicit vocabulary lacks when the Python package wrote it: it does
/// not count the indices, and as both peers ignore the length, nobody noticed.
pub(super) fn left_out(
    chunk: Chunk,
    source: &Source,
    span: &std::ops::Range<u64>,
) -> Result<u64, Stop> {
    if chunk != Chunk::Explicit {
        return Ok(0);
    }
    let mut c = Cursor::new(source, span.clone(), LENGTH);
    match c.u64("number of words").and_then(|_| c.u64("number of n-grams")) {
        Ok(ngrams) => Ok(ngrams.saturating_mul(8)),
        Err(Stop::Broken(_)) => Ok(0),
        Err(failed) => Err(failed),
    }
}

fn check_parameters(subwords: &Subwords, span: std::ops::Range<u64>) -> Result<(), Stop> {
    match subwords.fault() {
        None if subwords.min_n > 0 => Ok(()),
        None => Err(Stop::from(SUBWORDS.at(span).found("n-grams of 0 characters"))),
        Some(why) => Err(Stop::from(SUBWORDS.at(span).found(why))),
    }
}

fn explicit(
    c: &mut Cursor,
    count: u64,
    source: &Source,
    regions: &mut Regions,
    findings: &mut Findings,
) -> Result<Ngrams, Stop> {
    let start = c.position();
    let rest = entries::<4>(source, start..start + c.remaining(), count, 8)?;
    let parsed = Ngrams::parse(&rest, to_len(count));
    let (ngrams, used) = parsed.map_err(|e| bad_ngram(&e, start))?;
    c.skip(used as u64, "n-grams")?;
    regions.add(start..c.position(), What::Structure("n-grams"));
    if let Some(again) = ngrams.duplicate() {
        let finding = INDICES.at(start..c.position()).field(format!("n-gram {again}"));
        return Err(finding
            .message("an n-gram stands twice")
            .expected("n-grams that differ")
            .into());
    }
    if !ngrams.is_dense() {
        let finding = INDICES.at(start..c.position()).field("n-gram indices");
        return Err(finding.expected("0, 1, 2, … without a gap").into());
    }
    if !ngrams.is_ordered() {
        findings.push(
            INDEX_ORDER
                .at(start..c.position())
                .field("n-gram indices")
                .expected("each row number first behind the one before it")
                .hint("one of the peers numbers the rows by their first appearance and would mix them up"),
        );
    }
    Ok(ngrams)
}

fn floret(c: &mut Cursor) -> Result<Subwords, Stop> {
    let start = c.position();
    let (min_n, max_n) = (c.u32("min_n")?, c.u32("max_n")?);
    let buckets = c.u64("buckets")?;
    let (hashes, seed) = (c.u32("hashes")?, c.u32("seed")?);
    let mut text = |field: &str| -> Result<String, Stop> {
        let length = c.u32(field)?;
        Ok(c.text(length.into(), field, TEXT)?.to_owned())
    };
    let (bow, eow) = (text("bow")?, text("eow")?);
    let kind = SubwordKind::Floret { buckets, hashes, seed, bow, eow };
    let subwords = Subwords::new(min_n, max_n, kind);
    check_parameters(&subwords, start..c.position())?;
    Ok(subwords)
}

fn bad_word(bad: &BadEntry, start: u64) -> Box<Finding> {
    match bad {
        BadEntry::CutShort { token, at } => cut_entry(start + *at as u64, format!("word {token}")),
        BadEntry::NotUtf8 { token, at } => bad_text(start + *at as u64, format!("word {token}")),
    }
}

fn bad_ngram(bad: &BadNgram, start: u64) -> Box<Finding> {
    match bad {
        BadNgram::CutShort { ngram, at } => {
            cut_entry(start + *at as u64, format!("n-gram {ngram}"))
        }
        BadNgram::NotUtf8 { ngram, at } => bad_text(start + *at as u64, format!("n-gram {ngram}")),
    }
}

fn cut_entry(at: u64, field: String) -> Box<Finding> {
    let finding = LENGTH.at(at..at + 4).field(field).expected("an entry within the chunk");
    Box::new(finding.hint("the count or a length is too large, or the file is damaged"))
}

fn bad_text(at: u64, field: String) -> Box<Finding> {
    Box::new(TEXT.at(at..at + 1).field(field).expected("UTF-8 text"))
}

/// The chunk of a vocabulary, without its identifier and length, and which it is.
pub(super) fn write(words: &Words, draft: bool) -> Result<(Chunk, Vec<u8>), Error> {
    let mut out = Vec::new();
    let count = words.vocabulary.as_ref().map_or(0, |v| v.len() as u64);
    let Some(subwords) = &words.subwords else {
        put_u64(&mut out, count);
        write_words(words.vocabulary.as_ref(), &mut out);
        return Ok((Chunk::Simple, out));
    };
    let range = [subwords.min_n, subwords.max_n];
    let chunk = match &subwords.kind {
        SubwordKind::Buckets { exponent } if draft => {
            range.iter().chain([exponent]).for_each(|n| put_u32(&mut out, *n));
            put_u64(&mut out, count);
            Chunk::Buckets
        }
        SubwordKind::Buckets { exponent: last } | SubwordKind::FastText { buckets: last } => {
            put_u64(&mut out, count);
            range.iter().chain([last]).for_each(|n| put_u32(&mut out, *n));
            let buckets = matches!(subwords.kind, SubwordKind::Buckets { .. });
            if buckets { Chunk::Buckets } else { Chunk::FastText }
        }
        SubwordKind::Explicit(ngrams) => {
            put_u64(&mut out, count);
            put_u64(&mut out, ngrams.len() as u64);
            range.iter().for_each(|n| put_u32(&mut out, *n));
            Chunk::Explicit
        }
        SubwordKind::Floret { buckets, hashes, seed, bow, eow } => {
            range.iter().for_each(|n| put_u32(&mut out, *n));
            put_u64(&mut out, *buckets);
            put_u32(&mut out, *hashes);
            put_u32(&mut out, *seed);
            for text in [bow, eow] {
                let length = u32::try_from(text.len());
                put_u32(&mut out, length.map_err(|_| Error::refused("a bracket is too long", ""))?);
                out.extend_from_slice(text.as_bytes());
            }
            Chunk::Floret
        }
    };
    if chunk != Chunk::Floret {
        write_words(words.vocabulary.as_ref(), &mut out);
    }
    if let SubwordKind::Explicit(ngrams) = &subwords.kind {
        out.extend_from_slice(ngrams.entries());
    }
    Ok((chunk, out))
}

fn write_words(vocabulary: Option<&Vocabulary>, out: &mut Vec<u8>) {
    let Some(vocabulary) = vocabulary else { return };
    if let Some(entries) = vocabulary.u32_entries() {
        out.extend_from_slice(entries);
        return;
    }
    for word in vocabulary.tokens() {
        put_u32(out, u32::try_from(word.len()).unwrap_or(u32::MAX));
        out.extend_from_slice(word.as_bytes());
    }
}
