//! The ModelInfo section: fixed numbers, two names, and a list of keys with values.

use super::layout::SECTION_ALIGNMENT;
use super::rules::{KEY_TWICE, MODEL_INFO, RESERVED, SECTION_VERSION};
use crate::Error;
use crate::plan::{FilePlan, Piece};
use crate::source::{Bytes, Source, View};
use crate::wire::to_len;
use crate::wire::{Cursor, Findings, Span, Stop, put_u32, put_u64};
use std::collections::HashSet;

/// The part of fixed size.
const FIXED: u64 = 88;
const ENTRY: u64 = 24;

/// Places in [`ModelInfo::numbers`].
pub(super) const ARCH: usize = 0;
pub(super) const HEAD_COUNT_KV: usize = 6;
pub(super) const CONTEXT_LENGTH: usize = 7;
pub(super) const ROPE_TYPE: usize = 9;

#[derive(Debug, Default)]
pub(super) struct ModelInfo {
    /// arch, a pad, then the counts, then rope_type.
    pub numbers: [u32; 10],
    pub rope_freq_base: f32,
    pub rope_scale: f32,
    pub model_name: Option<String>,
    pub base_model: Option<String>,
    pub entries: Vec<(String, Entry)>,
}

#[derive(Clone, Debug)]
pub(super) enum Entry {
    U32(u32),
    F32(f32),
    /// A text or other bytes.
    Bytes(View),
}

pub(super) fn read(
    source: &Source,
    span: Span,
    findings: &mut Findings,
) -> Result<ModelInfo, Stop> {
    let mut c = Cursor::new(source, span.clone(), MODEL_INFO);
    let (version, flags) = (c.u32("ModelInfo.version")?, c.u32("ModelInfo.flags")?);
    if version != 1 {
        let finding = SECTION_VERSION.at(span.start..span.start + 4).field("ModelInfo.version");
        return Err(Stop::from(finding.expected(1).found(version)));
    }
    let mut info = ModelInfo::default();
    for number in &mut info.numbers {
        *number = c.u32("ModelInfo")?;
    }
    info.rope_freq_base = f32::from_bits(c.u32("ModelInfo.rope_freq_base")?);
    info.rope_scale = f32::from_bits(c.u32("ModelInfo.rope_scale")?);
    let names = [c.u64("ModelInfo.model_name_off")?, c.u64("ModelInfo.base_model_off")?];
    let (count, pad) = (c.u32("ModelInfo.kv_count")?, c.u32("ModelInfo")?);
    let table = c.u64("ModelInfo.kv_off")?;
    for (at, value) in [(4, flags), (12, info.numbers[1]), (76, pad)] {
        let at = span.start + at;
        if value != 0 {
            findings.push(RESERVED.at(at..at + 4).field("ModelInfo").expected(0).found(value));
        }
    }
    // Overlapping strings could make a small file large.
    let mut strings =
        Strings { source, span: span.clone(), left: span.end - span.start, section: None };
    info.model_name = strings.name(names[0], "ModelInfo.model_name")?;
    info.base_model = strings.name(names[1], "ModelInfo.base_model")?;
    let room = span.end - span.start;
    let size = u64::from(count) * ENTRY;
    if count > 0 && (table < FIXED || table.checked_add(size).is_none_or(|end| end > room)) {
        let finding = MODEL_INFO.at(span.start + 72..span.start + 88).field("ModelInfo.kv_off");
        let expected = format!("{size} bytes within 88..{room}");
        return Err(Stop::from(finding.expected(expected).found(table)));
    }
    let mut keys = HashSet::new();
    let mut c = Cursor::new(source, span.start.saturating_add(table)..span.end, MODEL_INFO);
    for _ in 0..count {
        let at = c.position();
        let (key, kind) = (c.u64("kv.key_off")?, c.u32("kv.type")?);
        let (pad, value) = (c.u32("kv")?, c.u64("kv.value_off")?);
        let (key, entry) = strings.entry(at, key, kind, value)?;
        if pad != 0 {
            findings.push(RESERVED.at(at + 12..at + 16).field(&key).expected(0).found(pad));
        }
        if !keys.insert(key.clone()) {
            return Err(Stop::from(KEY_TWICE.at(at..at + ENTRY).field(format!("{key:?}"))));
        }
        info.entries.push((key, entry));
    }
    Ok(info)
}

/// Reads strings of a section, as many bytes as it has and no more.
struct Strings<'a> {
    source: &'a Source,
    span: Span,
    left: u64,
    /// The section, once it was read.
    section: Option<Bytes>,
}

impl Strings<'_> {
    /// The place of `n` bytes at an offset in the section.
    fn place(&mut self, offset: u64, n: u64, field: &str) -> Result<Span, Stop> {
        let start = self.span.start.checked_add(offset).filter(|s| *s <= self.span.end);
        let end = start.and_then(|s| s.checked_add(n)).filter(|e| *e <= self.span.end);
        match (start, end, self.left.checked_sub(n)) {
            (Some(start), Some(end), Some(left)) if offset >= FIXED => {
                self.left = left;
                Ok(start..end)
            }
            _ => Err(Stop::from(
                MODEL_INFO
                    .at(self.span.clone())
                    .field(field)
                    .expected(format!("within 88..{}", self.span.end - self.span.start))
                    .found(format!("{n} bytes at {offset}")),
            )),
        }
    }

    /// Some bytes of the section, which is read at once unless it is large.
    fn read(&mut self, span: Span) -> Result<Bytes, Error> {
        const LARGE: u64 = 1 << 20;
        if self.section.is_none() && self.span.end - self.span.start <= LARGE {
            self.section = Some(self.source.bytes(self.span.clone())?);
        }
        let place = |at: u64| to_len(at - self.span.start);
        let part = self.section.as_ref().and_then(|s| s.part(place(span.start)..place(span.end)));
        part.map_or_else(|| self.source.bytes(span), Ok)
    }

    fn word(&mut self, offset: u64, field: &str) -> Result<u32, Stop> {
        let span = self.place(offset, 4, field)?;
        let mut word = [0; 4];
        word.copy_from_slice(&self.read(span)?);
        Ok(u32::from_le_bytes(word))
    }

    fn bytes(&mut self, offset: u64, field: &str) -> Result<View, Stop> {
        let n = self.word(offset, field)?;
        let span = self.place(offset.saturating_add(4), n.into(), field)?;
        let outside = || MODEL_INFO.at(span.clone()).field(field).into();
        self.source.view(span.clone()).ok_or_else(outside)
    }

    fn text(&mut self, offset: u64, field: &str) -> Result<String, Stop> {
        let span = self.bytes(offset, field)?.span();
        let bytes = self.read(span)?;
        let text = String::from_utf8(bytes.to_vec());
        let finding = MODEL_INFO.at(bytes.span()).field(field);
        text.map_err(|_| finding.expected("UTF-8 text").into())
    }

    fn name(&mut self, offset: u64, field: &str) -> Result<Option<String>, Stop> {
        if offset == 0 { Ok(None) } else { self.text(offset, field).map(Some) }
    }

    fn entry(&mut self, at: u64, key: u64, kind: u32, value: u64) -> Result<(String, Entry), Stop> {
        let key = self.text(key, "kv.key")?;
        let entry = match kind {
            1 => Entry::U32(self.word(value, &key)?),
            2 => Entry::F32(f32::from_bits(self.word(value, &key)?)),
            3 => Entry::Bytes(self.bytes(value, &key)?),
            _ => {
                let finding = MODEL_INFO.at(at + 8..at + 12).field(format!("type of {key:?}"));
                return Err(Stop::from(finding.expected("1, 2 or 3").found(kind)));
            }
        };
        Ok((key, entry))
    }
}

impl ModelInfo {
    /// Whether it says nothing.
    pub(super) fn is_blank(&self) -> bool {
        self.entries.is_empty()
            && self.model_name.is_none()
            && self.base_model.is_none()
            && self.numbers == [0; 10]
            && [self.rope_freq_base, self.rope_scale].iter().all(|v| v.to_bits() == 0)
    }
}

/// The section as the reference writer lays it out: names, then each key with its value, then the
/// table. Entries are sorted by key. Files stay where they are until they are written.
pub(super) fn to_pieces(info: &ModelInfo) -> FilePlan {
    let mut heap = Heap(FilePlan::default());
    let name =
        |heap: &mut Heap, name: &Option<String>| name.as_ref().map_or(0, |text| heap.text(text));
    let names = [name(&mut heap, &info.model_name), name(&mut heap, &info.base_model)];
    let mut entries: Vec<_> = info.entries.iter().collect();
    entries.sort_by(|a, b| a.0.cmp(&b.0));
    let mut table = Vec::new();
    for (key, entry) in &entries {
        put_u64(&mut table, heap.text(key));
        let (kind, value) = match entry {
            Entry::U32(v) => (1, heap.put(v.to_le_bytes().to_vec(), None)),
            Entry::F32(v) => (2, heap.put(v.to_le_bytes().to_vec(), None)),
            Entry::Bytes(view) => (3, heap.put(length(to_len(view.len())), Some(view))),
        };
        put_u32(&mut table, kind);
        put_u32(&mut table, 0);
        put_u64(&mut table, value);
    }
    let table_at = if entries.is_empty() { 0 } else { heap.position() };
    let mut out = Vec::new();
    put_u32(&mut out, 1);
    put_u32(&mut out, 0);
    info.numbers.iter().for_each(|n| put_u32(&mut out, *n));
    put_u32(&mut out, info.rope_freq_base.to_bits());
    put_u32(&mut out, info.rope_scale.to_bits());
    names.iter().for_each(|at| put_u64(&mut out, *at));
    put_u32(&mut out, u32::try_from(entries.len()).unwrap_or(u32::MAX));
    put_u32(&mut out, 0);
    put_u64(&mut out, table_at);
    let mut section = FilePlan::default();
    section.push(Piece::Bytes(out));
    heap.0.pieces.into_iter().for_each(|p| section.push(p));
    section.push(Piece::Bytes(table));
    section
}

/// The length in front of a string; longer ones were refused.
fn length(n: usize) -> Vec<u8> {
    u32::try_from(n).unwrap_or(u32::MAX).to_le_bytes().to_vec()
}

/// What stands behind the fixed part; every value begins at a multiple of eight.
struct Heap(FilePlan);

impl Heap {
    fn position(&self) -> u64 {
        FIXED + self.0.size
    }

    fn text(&mut self, text: &str) -> u64 {
        let mut bytes = length(text.len());
        bytes.extend_from_slice(text.as_bytes());
        self.put(bytes, None)
    }

    /// Appends bytes, a view if there is one, and zeros; gives the place of the first.
    fn put(&mut self, bytes: Vec<u8>, view: Option<&View>) -> u64 {
        let at = self.position();
        self.0.push(Piece::Bytes(bytes));
        view.into_iter().for_each(|v| self.0.push(Piece::View(v.clone())));
        self.0.pad_to(self.0.size.next_multiple_of(SECTION_ALIGNMENT));
        at
    }
}
