//! Bytes to container.

use super::super::{Stop, hf};
use super::index::Entry;
use super::layout::{self, Header, Kind, Section, section_name};
use super::quant_info::{ACTIVATIONS, Record};
use super::rules::*;
use super::{carry, index, model_info, quant_info};
use crate::Input;
use crate::model::{
    Attachment, BlockCoded, Container, Dialect, Encoding, Note, NoteKind, Scaled, Scaling, Subject,
    Tensor, Value,
};
use crate::source::{Source, View};
use crate::wire::{APPENDED, Cursor, Findings, Regions, Span, What, numel};
use serde_json::json;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use weighbridge_codec::DType;

pub(super) fn read(input: &Input, findings: &mut Findings) -> Result<Container, Stop> {
    let source = &input.source;
    let header = Header::parse(source, findings)?;
    let sections = read_directory(source, &header)?;
    let span_of = |kind: u32| sections.iter().find(|s| s.kind == kind).map(|s| s.span.clone());
    let mut regions = Regions::default();
    check_end(source.len(), &header, &sections, &mut regions, findings);
    regions.add(0..header.size.into(), What::Structure("header"));
    regions.add(header.directory.clone(), What::Structure("section directory"));
    let carried = |s: &Section| is_carried(s, &sections);
    for s in sections.iter().filter(|s| s.kind != layout::TENSOR_DATA || carried(s)) {
        regions.add(s.span.clone(), What::Structure(section_name(s.kind)));
    }
    let mut container = Container {
        format: "mcf",
        layout: format!("version {}.{}", layout::MAJOR, header.minor),
        dialect: dialect(&sections, &header),
        size: source.len(),
        ..Container::default()
    };
    if u64::from(header.size) > layout::HEADER {
        let more = u64::from(header.size) - layout::HEADER;
        let text = format!("{more} more bytes of the header are left out");
        container.notes.push(Note::new(NoteKind::LeftOut, text));
    }
    if let Some(span) = span_of(layout::TENSOR_INDEX) {
        let entries = index::read(source, span, findings)?;
        let data = span_of(layout::TENSOR_DATA).unwrap_or(0..0);
        let records = match span_of(layout::QUANT_INFO) {
            Some(span) => {
                let kinds: Vec<_> = entries.iter().map(|e| (e.kind, e.name.as_str())).collect();
                quant_info::read(source, span, &kinds, findings)?
            }
            None => Default::default(),
        };
        if header.flags & layout::ALIGNED == 0
            && entries.iter().any(|e| matches!(e.kind, Kind::Blocks(_)))
        {
            findings.push(
                FLAG.at(32..40).field("header.flags").expected("bit 0 set").found(header.flags),
            );
        }
        let mut reader = Payloads {
            source,
            data,
            findings,
            regions: &mut regions,
            container: &mut container,
            blocks: HashMap::new(),
        };
        for (i, entry) in entries.iter().enumerate() {
            let record = u32::try_from(i).ok().and_then(|i| records.get(&i));
            reader.tensor(i, entry, record)?;
        }
    }
    if let Some((a, b)) = regions.finish(source.len(), layout::PAYLOAD_ALIGNMENT) {
        let name = |what: What| match what {
            What::Tensor(i) | What::Scales(i) => format!("{:?}", container.tensors[i].name),
            other => format!("{other:?}"),
        };
        let field = format!("{} and {}", name(a.what), name(b.what));
        let finding = PAYLOAD_OVERLAP.at(b.span.start..b.span.end.min(a.span.end)).field(field);
        findings.push(finding.expected("separate ranges, or the same one"));
    }
    container.regions = regions;
    if let Some(span) = span_of(layout::MODEL_INFO) {
        carry::from_model_info(model_info::read(source, span, findings)?, &mut container)?;
    }
    read_files(source, &sections, &mut container, findings)?;
    Ok(container)
}

/// Whether the file ends where its header says.
fn check_end(
    size: u64,
    header: &Header,
    sections: &[Section],
    regions: &mut Regions,
    findings: &mut Findings,
) {
    let end = header.file_size;
    let used = sections.iter().map(|s| s.span.end).max().unwrap_or(0).max(header.directory.end);
    if end >= size {
        // Cut short, which the header's reader has said, or as it should be.
    } else if used <= end {
        findings.push(FILE_SIZE.appended(end, size).field("header.file_size"));
        regions.add(end..size, APPENDED);
    } else {
        let finding = FILE_SIZE.at(24..32).field("header.file_size");
        findings.push(finding.expected(size).found(end));
    }
}

fn read_directory(source: &Source, header: &Header) -> Result<Vec<Section>, Stop> {
    let size = source.len();
    let mut c = Cursor::new(source, header.directory.clone(), CUT_SHORT);
    let mut list: Vec<Section> = Vec::new();
    let mut seen = HashSet::new();
    while c.remaining() > 0 {
        let at = c.position();
        let (kind, version) = (c.u32("section.type")?, c.u32("section.version")?);
        let (offset, length) = (c.u64("section.offset")?, c.u64("section.size")?);
        let field = format!("section {kind:#06x} ({})", section_name(kind));
        let end = offset.checked_add(length).filter(|end| *end <= size);
        let aligned = offset.is_multiple_of(layout::SECTION_ALIGNMENT);
        let Some(end) = end.filter(|_| aligned && offset >= header.size.into()) else {
            let finding = SECTION.at(at + 8..at + 24).field(field);
            let expected = format!("a multiple of 8, within {:#x}..{size:#x}", header.size);
            let found = format!("{length} bytes at {offset:#x}");
            return Err(Stop::from(
                finding.expected(expected).found(found).hint("the file may be cut short"),
            ));
        };
        if !seen.insert(kind) {
            return Err(Stop::from(SECTION_TWICE.at(at..at + 4).field(field)));
        }
        if version != 1 && (1..=layout::TENSOR_DATA).contains(&kind) {
            let finding = SECTION_VERSION.at(at + 4..at + 8).field(field);
            return Err(Stop::from(finding.expected(1).found(version)));
        }
        list.push(Section { kind, version, span: offset..end });
    }
    let mut spans: Vec<_> = list.iter().map(|s| (s.span.clone(), section_name(s.kind))).collect();
    spans.push((header.directory.clone(), "section directory"));
    spans.retain(|(span, _)| !span.is_empty());
    spans.sort_by_key(|(span, _)| span.start);
    if let Some(pair) = spans.windows(2).find(|w| w[0].0.end > w[1].0.start) {
        let finding = SECTION_OVERLAP.at(pair[1].0.start..pair[0].0.end);
        return Err(Stop::from(finding.field(format!("{} and {}", pair[0].1, pair[1].1))));
    }
    Ok(list)
}

/// Whether a section travels as it is: no one has defined it, it is a file, or it belongs to tensors
/// that no index tells of. No section is required, so that a file may have data without an index.
fn is_carried(section: &Section, sections: &[Section]) -> bool {
    match section.kind {
        layout::MODEL_INFO | layout::TENSOR_INDEX => false,
        layout::QUANT_INFO | layout::TENSOR_DATA => {
            !sections.iter().any(|s| s.kind == layout::TENSOR_INDEX)
        }
        _ => true,
    }
}

/// The order of the sections in the file, where their directory stands and how it is sorted, versions
/// that are not 1, and flags that are not known.
fn dialect(sections: &[Section], header: &Header) -> Dialect {
    let mut by_place: Vec<_> = sections.iter().collect();
    by_place.sort_by_key(|s| (s.span.start, s.span.end));
    let mut dialect = Dialect::new();
    dialect.insert("order".into(), by_place.iter().map(|s| s.kind).collect());
    if by_place.first().is_some_and(|first| header.directory.start < first.span.start) {
        dialect.insert(layout::DIRECTORY_FIRST.into(), true.into());
    }
    if !sections.is_sorted_by_key(|s| s.kind) {
        let listed = sections.iter().map(|s| s.kind).collect();
        dialect.insert(layout::DIRECTORY_ORDER.into(), listed);
    }
    if header.flags & !layout::ALIGNED != 0 {
        dialect.insert("flags".into(), header.flags.into());
    }
    let unusual = by_place.iter().filter(|s| s.version != 1);
    let versions: serde_json::Map<_, _> =
        unusual.map(|s| (s.kind.to_string(), s.version.into())).collect();
    if !versions.is_empty() {
        dialect.insert("versions".into(), versions.into());
    }
    dialect
}

/// Resources and sections that are carried as they are, and what the files say.
fn read_files(
    source: &Source,
    sections: &[Section],
    container: &mut Container,
    findings: &mut Findings,
) -> Result<(), Stop> {
    let mut names: HashSet<_> = container.attachments.iter().map(|a| a.name.clone()).collect();
    for s in sections.iter().filter(|s| is_carried(s, sections)) {
        let known = layout::RESOURCES.iter().find(|(kind, _)| *kind == s.kind);
        let name = known.map_or_else(|| carry::carried_section(s.kind), |(_, n)| (*n).to_owned());
        if !names.insert(name.clone()) {
            return Err(Stop::from(KEY_TWICE.at(s.span.clone()).field(format!("file {name:?}"))));
        }
        let data = source.view(s.span.clone()).ok_or_else(|| SECTION.at(s.span.clone()))?;
        container.attachments.push(Attachment { name, data, described: false });
    }
    let (description, problem) = hf::describe_files(&container.attachments)?;
    if let Some(problem) = problem {
        let finding = RESOURCE.at(0..0).field(problem);
        findings.push(finding.hint("what the files say about the model is not used"));
    }
    if carry::take_config_facts(&description, container) {
        container.dialect.insert("config_facts".into(), true.into());
    }
    // The settings in their usual order, so that other formats get them as from the files
    // themselves; what ModelInfo says of them counts.
    let (titles, mut own): (Vec<_>, Vec<_>) = std::mem::take(&mut container.metadata)
        .into_iter()
        .partition(|(key, _)| key == "model_name" || key == "base_model");
    container.metadata = titles;
    let mut told = Vec::new();
    for (key, text) in description.settings {
        let entry = match own.iter().position(|(k, _)| k == key) {
            Some(at) => own.remove(at),
            None => {
                told.push(key);
                (key.to_owned(), Value::Text(text))
            }
        };
        container.metadata.push(entry);
    }
    container.metadata.append(&mut own);
    if !told.is_empty() {
        container.dialect.insert("told".into(), told.into());
    }
    container.vocabulary = description.vocabulary;
    // A vocabulary alone says all that its file says.
    let only_words = container.vocabulary.is_some()
        && !names.contains("config.json")
        && !names.contains("tokenizer.json");
    for a in &mut container.attachments {
        let is_told = description.is_whole || (only_words && a.name == "vocab.txt");
        a.described |= is_told && !carry::is_section(&a.name);
    }
    Ok(())
}

struct Payloads<'a> {
    source: &'a Source,
    /// Where the TensorData section is.
    data: Span,
    findings: &'a mut Findings,
    regions: &'a mut Regions,
    container: &'a mut Container,
    /// Many tensors may share their scales, which are then in memory once.
    blocks: HashMap<(Span, &'static str), Arc<BlockCoded>>,
}

impl Payloads<'_> {
    fn tensor(&mut self, i: usize, entry: &Entry, record: Option<&Record>) -> Result<(), Stop> {
        let field =
            || format!("tensor {:?} ({}, {:?})", entry.name, entry.kind.name(), entry.shape);
        let end = entry.data.checked_add(entry.size);
        let end = end.filter(|end| entry.data >= self.data.start && *end <= self.data.end);
        let end = end.ok_or_else(|| {
            PAYLOAD
                .at(entry.span.start + 24..entry.span.end)
                .field(field())
                .expected(format!("within {:#x}..{:#x}", self.data.start, self.data.end))
                .found(format!("{} bytes at {:#x}", entry.size, entry.data))
                .hint("the file may be cut short")
        })?;
        let span = entry.data..end;
        if !entry.data.is_multiple_of(layout::PAYLOAD_ALIGNMENT) {
            let is_blocks = matches!(entry.kind, Kind::Blocks(_));
            let rule = if is_blocks { BLOCKS_MISALIGNED } else { MISALIGNED };
            let finding = rule.at(span.clone()).field(field());
            self.findings
                .push(finding.expected("a multiple of 64").found(format!("{:#x}", entry.data)));
        }
        let (encoding, front) = match entry.kind {
            Kind::Plain(dtype) => {
                self.check_size(
                    entry,
                    numel(&entry.shape).and_then(|n| dtype.byte_len(n)),
                    &field,
                )?;
                (Encoding::Plain(dtype), 0)
            }
            Kind::PerTensor(codes) => self.per_tensor(entry, codes, record, &field)?,
            Kind::Blocks(codec) => {
                if entry.shape.len() != 2 {
                    let finding = RANK.at(entry.span.start + 12..entry.span.start + 16);
                    let found = format!("{} dimensions", entry.shape.len());
                    return Err(finding
                        .field(field())
                        .expected("2 dimensions")
                        .found(found)
                        .into());
                }
                let layout = BlockCoded::layout_of(codec, &entry.shape);
                self.check_size(entry, layout.map(|l| l.size), &field)?;
                let front = layout.map_or(0, |l| l.codes.start);
                let place = entry.data..entry.data + front;
                let scales = self.view(place.clone())?;
                let fresh = || Arc::new(BlockCoded::new(codec, scales));
                let coded = self.blocks.entry((place, codec.name())).or_insert_with(fresh);
                (Encoding::Blocks(coded.clone()), front)
            }
        };
        let mut dialect = Dialect::new();
        match record {
            Some(record) => {
                let bits = json!([record.clips.0.to_bits(), record.clips.1.to_bits()]);
                dialect.insert("clips".into(), bits);
            }
            None if !matches!(entry.kind, Kind::Plain(_)) => {
                self.findings.push(NO_RECORD.at(entry.span.clone()).field(field()));
            }
            None => {}
        }
        self.regions.add(entry.data..entry.data + front, What::Scales(i));
        self.regions.add(entry.data + front..span.end, What::Tensor(i));
        let view = self.view(entry.data + front..span.end)?;
        let mut tensor = Tensor::unchecked(entry.name.clone(), encoding, entry.shape.clone(), view);
        tensor.dialect = dialect;
        self.container.tensors.push(tensor);
        Ok(())
    }

    /// Integers with one scale: the encoding, and how many bytes stand before the codes.
    fn per_tensor(
        &mut self,
        entry: &Entry,
        codes: DType,
        record: Option<&Record>,
        field: &dyn Fn() -> String,
    ) -> Result<(Encoding, u64), Stop> {
        let bytes = numel(&entry.shape).and_then(|n| codes.byte_len(n));
        if bytes == Some(entry.size) {
            let finding = NO_SCALE.at(entry.data..entry.data + entry.size).field(field());
            self.findings.push(
                finding
                    .expected(format!("{} bytes with a scale", entry.size.saturating_add(64)))
                    .found(format!("{} bytes", entry.size))
                    .hint("the codes can be looked at and carried, not turned into values"),
            );
            let subject = Subject::Tensor(entry.name.clone());
            let text = format!("{subject} has codes and no scale: its values are not known");
            let note = Note::new(NoteKind::Unusual, text).about(subject);
            self.container.notes.push(note);
            // The packer that writes such tensors stores four-bit codes with 8 added.
            let codes = if codes == DType::I4 { DType::U4 } else { codes };
            return Ok((
                Encoding::Scaled(Arc::new(Scaled { codes, scaling: Scaling::Unknown })),
                0,
            ));
        }
        let with = |front: u64| bytes.and_then(|b| b.checked_add(front));
        let asymmetric = match record {
            Some(record) => record.domain == ACTIVATIONS,
            None => with(2 * layout::PAYLOAD_ALIGNMENT) == Some(entry.size),
        };
        let front = layout::PAYLOAD_ALIGNMENT * if asymmetric { 2 } else { 1 };
        self.check_size(entry, with(front), field)?;
        let mut c = Cursor::new(self.source, entry.data..entry.data + entry.size, CUT_SHORT);
        let mut word = |rest: u64| -> Result<(f32, bool), Stop> {
            let bits = c.u32("scale")?;
            Ok((f32::from_bits(bits), c.take(rest, "padding")?.iter().all(|&b| b == 0)))
        };
        let (scale, mut clean) = word(60)?;
        let mut zero = None;
        if asymmetric {
            let (value, is_clean) = word(60)?;
            clean &= is_clean;
            zero = Some(value);
        }
        let place = entry.data..entry.data + front;
        if !clean {
            self.findings.push(PADDING.at(place.clone()).field(field()).expected("zeros"));
        }
        if !(scale.is_finite() && zero.is_none_or(f32::is_finite)) {
            let finding = SCALE.at(place).field(field()).expected("finite numbers");
            let zero = zero.map(|zero| format!(", {zero}")).unwrap_or_default();
            self.findings.push(finding.found(format!("{scale}{zero}")));
        }
        let scaling = Scaling::per_tensor(scale, zero);
        Ok((Encoding::Scaled(Arc::new(Scaled { codes, scaling })), front))
    }

    fn check_size(
        &self,
        entry: &Entry,
        expected: Option<u64>,
        field: &dyn Fn() -> String,
    ) -> Result<(), Stop> {
        if expected == Some(entry.size) {
            return Ok(());
        }
        let expected =
            expected.map_or("a size that is possible".to_owned(), |n| format!("{n} bytes"));
        Err(Stop::from(
            PAYLOAD_SIZE
                .at(entry.data..entry.data + entry.size)
                .field(field())
                .expected(expected)
                .found(format!("{} bytes", entry.size))
                .hint("the file may be cut short; compare its size with the source it was copied from"),
        ))
    }

    fn view(&self, span: Span) -> Result<View, Stop> {
        self.source.view(span.clone()).ok_or_else(|| CUT_SHORT.at(span).into())
    }
}
