//! Bytes to container.

use super::super::Stop;
use super::layout::{Chunk, MAGIC as MAGIC_BYTES, is_draft};
use super::rules::*;
use super::vocabulary::Words;
use super::{metadata, storage, vocabulary};
use crate::model::{Container, Dialect, Encoding, Tensor, Value};
use crate::wire::{Cursor, Findings, Regions, Span, What};
use crate::{Input, Source};
use std::sync::Arc;

pub(super) fn read(input: &Input, findings: &mut Findings) -> Result<Container, Stop> {
    let source = &input.source;
    let size = source.len();
    let mut c = Cursor::new(source, 0..size, CUT_SHORT);
    let magic = c.take(4, "magic")?;
    if magic != MAGIC_BYTES {
        let finding = MAGIC.at(0..4).field("magic").expected("FiFu");
        return Err(finding.found(magic.escape_ascii()).into());
    }
    let version = c.u32("version")?;
    if version != 0 {
        return Err(VERSION.at(4..8).field("version").expected(0).found(version).into());
    }
    let count = c.u32("number of chunks")?;
    let list = c.take(u64::from(count) * 4, "chunk identifiers")?;
    let (words, _) = list.as_chunks::<4>();
    let numbers: Vec<u32> = words.iter().map(|w| u32::from_le_bytes(*w)).collect();
    let draft = is_draft(&numbers);
    let chunks = kinds(&numbers, draft)?;
    let mut parts = Parts { draft, ..Parts::new(input) };
    parts.regions.add(0..c.position(), HEADER);
    for (i, (&number, chunk)) in numbers.iter().zip(chunks).enumerate() {
        let at = c.position();
        let found = c.u32("chunk identifier")?;
        if found != number {
            let finding = LIST.at(at..at + 4).field(format!("identifier of chunk {i}"));
            return Err(finding
                .expected(format!("{number}, as the list says"))
                .found(found)
                .into());
        }
        parts.chunk_behind(at, chunk, &mut c, findings)?;
    }
    if parts.has_unlisted_norms(&c)? {
        let at = c.position();
        let chunk = Chunk::Norms;
        findings.push(
            UNLISTED
                .at(at..at + 4)
                .field(chunk.name())
                .expected(format!("{} in the list of chunks", chunk.number(draft)))
                .found("none")
                .hint("the crate finalfusion wrote such files before 0.11; converting lists it"),
        );
        c.u32("chunk identifier")?;
        parts.chunk_behind(at, chunk, &mut c, findings)?;
    }
    if c.position() != size {
        return Err(TRAILING.appended(c.position(), size).into());
    }
    parts.finish()
}

/// The chunks that a list of identifiers names, if they are in the right order.
fn kinds(numbers: &[u32], draft: bool) -> Result<Vec<Chunk>, Stop> {
    let mut chunks: Vec<Chunk> = Vec::new();
    for (i, &number) in numbers.iter().enumerate() {
        let at = 12 + 4 * i as u64;
        let place = || format!("identifier {i} of the list");
        let Some(chunk) = Chunk::from_number(number, draft) else {
            let known = if draft { "0, 1 or 3, as it is a draft" } else { "1 to 9" };
            let finding = UNKNOWN.at(at..at + 4).field(place()).expected(known);
            return Err(Stop::from(finding.found(number)));
        };
        if let Some(last) = chunks.last().filter(|last| last.place() >= chunk.place()) {
            let finding = ORDER.at(at..at + 4).field(place());
            return Err(Stop::from(
                finding.expected("metadata, vocabulary, storage, norms").found(format!(
                    "{} behind {}",
                    chunk.name(),
                    last.name()
                )),
            ));
        }
        chunks.push(chunk);
    }
    for (place, name) in [(1, "vocabulary"), (2, "storage")] {
        if !chunks.iter().any(|c| c.place() == place) {
            let finding = ORDER.at(8..12 + 4 * numbers.len() as u64).field("chunk identifiers");
            return Err(Stop::from(finding.expected(format!("a {name}")).found("none")));
        }
    }
    Ok(chunks)
}

/// What was read so far.
struct Parts<'a> {
    draft: bool,
    path: &'a str,
    source: &'a Source,
    toml: Option<String>,
    metadata: Vec<(String, Value)>,
    words: Option<Words>,
    tensors: Vec<Tensor>,
    names: Vec<&'static str>,
    regions: Regions,
}

impl<'a> Parts<'a> {
    fn new(input: &'a Input) -> Parts<'a> {
        Parts {
            draft: false,
            path: &input.path,
            source: &input.source,
            toml: None,
            metadata: Vec::new(),
            words: None,
            tensors: Vec::new(),
            names: Vec::new(),
            regions: Regions::default(),
        }
    }

    /// Whether norms follow that the list of chunks leaves out: their number, and a length that
    /// reaches the end of the file.
    fn has_unlisted_norms(&self, c: &Cursor) -> Result<bool, Stop> {
        let norms = Chunk::Norms;
        if self.draft || self.names.contains(&norms.name()) || c.remaining() < 12 {
            return Ok(false);
        }
        let mut c = c.clone();
        Ok(c.u32("chunk identifier")? == norms.number(self.draft)
            && c.u64("chunk length")? == c.remaining())
    }

    /// Reads the chunk whose identifier stands at `at` and was taken.
    fn chunk_behind(
        &mut self,
        at: u64,
        chunk: Chunk,
        c: &mut Cursor,
        findings: &mut Findings,
    ) -> Result<(), Stop> {
        let length = c.u64("chunk length")?;
        let start = c.position();
        c.skip(length, chunk.name())?;
        self.regions.add(at..start, What::Structure("chunk header"));
        let end = self.chunk(chunk, start..start + length, findings)?;
        c.skip(end - (start + length), chunk.name())
    }

    /// Reads a chunk and says where it ends.
    fn chunk(&mut self, chunk: Chunk, span: Span, findings: &mut Findings) -> Result<u64, Stop> {
        let (draft, source) = (self.draft, self.source);
        let left_out = vocabulary::left_out(chunk, source, &span)?;
        let longer = span.start..span.end.saturating_add(left_out).min(source.len());
        // What is missing within a chunk is the fault of a length, not of the file.
        let mut c = Cursor::new(source, longer, LENGTH)
            .with_hint("the chunk's length is too small, or a count or length in it too large");
        self.names.push(chunk.name());
        match chunk.place() {
            0 => {
                let text = c.text(span.end - span.start, "metadata", TEXT)?;
                self.regions.add(span.clone(), What::Structure("metadata"));
                match metadata::parse(&text) {
                    Ok(values) => self.metadata = values,
                    Err(why) => findings.push(TOML.at(span.clone()).field("metadata").found(why)),
                }
                self.toml = Some(text);
            }
            1 => {
                let regions = &mut self.regions;
                let words = vocabulary::read(chunk, draft, &mut c, source, regions, findings)?;
                self.words = Some(words);
            }
            place => {
                let index = self.tensors.len();
                let mut tensor =
                    storage::read(chunk, draft, &mut c, source, index, &mut self.regions)?;
                if let Encoding::Product(product) = &mut tensor.encoding
                    && let Some(product) = Arc::get_mut(product)
                {
                    product.checked = Some((self.path.to_owned(), CODE));
                }
                self.check_rows(place, &tensor, &span)?;
                self.tensors.push(tensor);
            }
        }
        let end = c.position();
        if end == span.end {
            return Ok(end);
        }
        let without_indices = end == span.end.saturating_add(left_out);
        let finding = if without_indices { INDEX_LENGTH } else { LENGTH }
            .at(span.start - 8..span.start)
            .field(format!("length of the {}", chunk.name()))
            .expected(format!("{} bytes", end - span.start))
            .found(format!("{} bytes", span.end - span.start));
        if !without_indices {
            return Err(finding.into());
        }
        findings.push(finding.hint("converting to finalfusion writes it right"));
        Ok(end)
    }

    /// A row for each word and subword, a norm for each word.
    fn check_rows(&self, place: usize, tensor: &Tensor, span: &Span) -> Result<(), Stop> {
        let Some(words) = &self.words else { return Ok(()) };
        let (rule, expected) = if place == 2 {
            (ROWS, words.rows())
        } else {
            (NORMS_COUNT, Some(words.vocabulary.as_ref().map_or(0, |v| v.len() as u64)))
        };
        if expected == Some(tensor.shape[0]) {
            return Ok(());
        }
        let expected = expected.map_or("fewer than 2^64 rows".to_owned(), |n| n.to_string());
        let finding = rule.at(span.start..span.end.min(span.start + 16)).field(tensor.name.clone());
        Err(finding.expected(expected).found(tensor.shape[0]).into())
    }

    fn finish(mut self) -> Result<Container, Stop> {
        let size = self.source.len();
        self.regions.finish(size, 1);
        let mut dialect = Dialect::new();
        let mut layout = self.names.join(", ");
        if self.draft {
            dialect.insert("draft".to_owned(), true.into());
            layout = format!("draft: {layout}");
        }
        if let Some(text) = self.toml {
            dialect.insert(metadata::DIALECT.to_owned(), text.into());
        }
        let (vocabulary, subwords) =
            self.words.map_or((None, None), |w| (w.vocabulary, w.subwords));
        Ok(Container {
            format: "finalfusion",
            layout,
            dialect,
            size,
            metadata: self.metadata,
            tensors: self.tensors,
            vocabulary,
            subwords,
            regions: self.regions,
            ..Container::default()
        })
    }
}
