//! Container to planned bytes.

use super::super::FormatInfo;
use super::index::{self, Entry};
use super::layout::{self, Header, section_name};
use super::payload::{Payload, SameContent};
use super::quant_info::{self, Record};
use super::{carry, model_info};
use crate::model::{Container, Subject};
use crate::plan::{FilePlan, Piece, Plan, Report, SharedData, fit};
use crate::source::View;
use crate::wire::{align_up, put_u32, put_u64};
use crate::{Advice, Error, Options};
use std::collections::HashMap;

/// Set to write what the reference quantizer writes: its own order of sections, and tensors that
/// share their bytes each with bytes of its own.
const REFERENCE: &str = "reference-order";

pub(super) fn plan(
    container: &Container,
    options: &Options,
    info: &FormatInfo,
) -> Result<Plan, Error> {
    let mut report = Report::default();
    let full = carry::complete(container, &mut report)?;
    let mut rest = full.clone();
    for (key, _) in full.metadata.iter().filter(|(key, _)| carry::is_file(key)) {
        report.lose(Subject::Metadata(key.clone()), "keys that begin with file: are files");
    }
    rest.metadata.retain(|(key, value)| !carry::keeps(value) && !carry::is_file(key));
    if full.tensors.iter().any(|t| t.name.is_empty()) {
        return Err(Error::refused(
            "a tensor has an empty name, which MCF does not take",
            Advice::set_to("rename", "=NAME", "gives it one"),
        ));
    }
    let mut placements = fit(&rest, &info.holds, &mut report)?;
    placements.sort_by(|a, b| {
        rest.tensors[a.tensor].name.as_bytes().cmp(rest.tensors[b.tensor].name.as_bytes())
    });
    let mut derived = HashMap::new();
    let payloads = placements
        .iter()
        .map(|p| {
            let (tensor, shape) = (&rest.tensors[p.tensor], full.tensors[p.tensor].shape.clone());
            Payload::new(container, tensor, shape, p, &mut derived)
        })
        .collect::<Result<Vec<_>, Error>>()?;
    let file = Assembly::new(&full, &payloads, options)?.write()?;
    Ok(Plan::single(file, report))
}

/// The sections of a file with their places, before anything is written.
struct Assembly<'a> {
    container: &'a Container,
    payloads: &'a [Payload<'a>],
    /// Type and length of every section, in the order of the file.
    order: Vec<(u32, u64)>,
    /// Sections that are files, by type.
    files: HashMap<u32, &'a View>,
    model_info: FilePlan,
    quant_info: Vec<u8>,
    entries: Vec<Entry>,
    /// For each payload, whether it is the first to have its place.
    is_first: Vec<bool>,
    /// ModelInfo has something to say.
    has_info: bool,
    /// As the reference quantizer has it, whatever the order was.
    reference: bool,
}

impl<'a> Assembly<'a> {
    fn new(
        container: &'a Container,
        payloads: &'a [Payload<'a>],
        options: &Options,
    ) -> Result<Self, Error> {
        let mut records = Vec::new();
        for (i, p) in payloads.iter().enumerate() {
            if let Some(record) = p.record {
                let tensor = u32::try_from(i).unwrap_or(u32::MAX);
                records.push((p.kind, Record { tensor, ..record }));
            }
        }
        let info = carry::model_info(container)?;
        let mut assembly = Assembly {
            container,
            payloads,
            order: Vec::new(),
            files: container
                .attachments
                .iter()
                .filter_map(|a| Some((carry::section_of(&a.name)?, &a.data)))
                .collect(),
            model_info: model_info::to_pieces(&info),
            quant_info: quant_info::to_bytes(&records),
            entries: Vec::new(),
            is_first: Vec::new(),
            has_info: !info.is_blank(),
            reference: options.flag(REFERENCE),
        };
        let too_large = || Error::refused("the file would be too large", "");
        let kinds = assembly.section_kinds(!records.is_empty());
        let mut at = assembly.first_section(kinds.len());
        // Where the payloads begin must be known before the index is made, wherever it stands.
        let index_size = index::size(&payloads.iter().map(|p| p.entry(0)).collect::<Vec<_>>());
        for kind in kinds {
            at = align_up(at, layout::SECTION_ALIGNMENT).ok_or_else(too_large)?;
            let size = match (kind, assembly.files.get(&kind).copied()) {
                (_, Some(file)) => file.len(),
                (layout::MODEL_INFO, _) => assembly.model_info.size,
                (layout::QUANT_INFO, _) => assembly.quant_info.len() as u64,
                (layout::TENSOR_INDEX, _) => index_size,
                (layout::TENSOR_DATA, _) => assembly.place(at, options)?.ok_or_else(too_large)?,
                _ => 0,
            };
            assembly.order.push((kind, size));
            at = at.checked_add(size).ok_or_else(too_large)?;
        }
        Ok(assembly)
    }

    /// The sections in the order of the file: as they were, else as the reference writer has them.
    fn section_kinds(&self, quantized: bool) -> Vec<u32> {
        let mut kinds: Vec<u32> = self.files.keys().copied().collect();
        let known = self.fact("order").and_then(|order| order.as_array());
        // A file that had none, and has nothing to say in it, goes on without it.
        let had_info = known.is_none_or(|k| k.iter().any(|k| *k == layout::MODEL_INFO));
        // Without any section it would be no file.
        let is_empty = kinds.is_empty() && self.payloads.is_empty();
        if had_info || self.has_info || is_empty {
            kinds.push(layout::MODEL_INFO);
        }
        kinds.sort_unstable();
        if !self.payloads.is_empty() {
            kinds.extend([layout::TENSOR_DATA, layout::TENSOR_INDEX]);
        }
        if quantized {
            kinds.push(layout::QUANT_INFO);
        }
        if !self.reference {
            sort_as(&mut kinds, self.fact("order"), |kind| *kind);
        }
        kinds
    }

    /// Places the payloads from `start` on and returns the size of them all.
    fn place(&mut self, start: u64, options: &Options) -> Result<Option<u64>, Error> {
        let (mut shared, mut first) = (SharedData::default(), HashMap::new());
        let mut same = SameContent::new(options.flag("dedup"));
        let mut end = start;
        for p in self.payloads {
            let content = same.content(p)?;
            // The scales are part of a payload: the same codes with others are another.
            let same_scales = |at: &u64| first.get(at) == Some(&p.encoding);
            let known = shared.offset(p.tensor, p.encoding).filter(same_scales);
            let known = known.filter(|_| !options.flag(REFERENCE));
            let known = match known {
                Some(known) => Some(known),
                None => same.find(p, content)?,
            };
            self.is_first.push(known.is_none());
            let at = match known {
                Some(at) => at,
                None => {
                    let at = align_up(end, layout::PAYLOAD_ALIGNMENT);
                    let size = p.front_len().checked_add(p.bytes);
                    let place = at.zip(size).and_then(|(at, n)| Some((at, at.checked_add(n)?)));
                    let Some((at, behind)) = place else { return Ok(None) };
                    end = behind;
                    shared.place(p.tensor, p.encoding, at);
                    first.insert(at, p.encoding);
                    same.add(p, content, at);
                    at
                }
            };
            self.entries.push(p.entry(at));
        }
        Ok(Some(end - start))
    }

    fn write(&self) -> Result<FilePlan, Error> {
        let mut file = FilePlan::default();
        let mut at = self.first_section(self.order.len());
        let mut sections = Vec::new();
        for (kind, size) in &self.order {
            at = at.next_multiple_of(layout::SECTION_ALIGNMENT);
            sections.push((*kind, at, *size));
            at += size;
        }
        let table = self.directory(&sections);
        let start = match self.is_directory_first() {
            true => layout::HEADER,
            false => at.next_multiple_of(layout::SECTION_ALIGNMENT),
        };
        let end = start + table.len() as u64;
        let header = Header {
            minor: layout::MINOR,
            size: u32::try_from(layout::HEADER).unwrap_or(0),
            directory: start..end,
            file_size: end.max(at),
            flags: self.flags(),
        };
        file.push(Piece::Bytes(header.to_bytes()));
        if self.is_directory_first() {
            file.push(Piece::Bytes(table.clone()));
        }
        for (kind, offset, size) in &sections {
            file.pad_to(*offset);
            match (*kind, self.files.get(kind)) {
                (_, Some(view)) => file.push(Piece::View((*view).clone())),
                (layout::MODEL_INFO, _) => {
                    self.model_info.pieces.iter().for_each(|p| file.push(p.clone()));
                }
                (layout::QUANT_INFO, _) => file.push(Piece::Bytes(self.quant_info.clone())),
                (layout::TENSOR_INDEX, _) => {
                    file.push(Piece::Bytes(index::to_bytes(&self.entries)));
                }
                (layout::TENSOR_DATA, _) => self.write_payloads(&mut file),
                _ => {}
            }
            if file.size != offset + size {
                let what = format!("{} does not have the planned size", section_name(*kind));
                return Err(Error::refused(what, "this is a bug in weighbridge"));
            }
        }
        if !self.is_directory_first() {
            file.pad_to(start);
            file.push(Piece::Bytes(table));
        }
        Ok(file)
    }

    /// The directory of sections with their places, sorted by type unless it was not.
    fn directory(&self, sections: &[(u32, u64, u64)]) -> Vec<u8> {
        let mut entries = sections.to_vec();
        entries.sort_unstable();
        if !self.reference {
            sort_as(&mut entries, self.fact(layout::DIRECTORY_ORDER), |(kind, _, _)| *kind);
        }
        let mut table = Vec::new();
        for (kind, offset, size) in entries {
            put_u32(&mut table, kind);
            put_u32(&mut table, self.version(kind));
            put_u64(&mut table, offset);
            put_u64(&mut table, size);
        }
        table
    }

    /// Where the first of so many sections may begin.
    fn first_section(&self, sections: usize) -> u64 {
        let directory = sections as u64 * layout::SECTION;
        layout::HEADER + if self.is_directory_first() { directory } else { 0 }
    }

    fn is_directory_first(&self) -> bool {
        !self.reference && self.fact(layout::DIRECTORY_FIRST).is_some_and(|v| *v == true)
    }

    /// What is known of the file that the content was read from.
    fn fact(&self, name: &str) -> Option<&serde_json::Value> {
        self.container.dialect_of("mcf")?.get(name)
    }

    fn write_payloads(&self, file: &mut FilePlan) {
        let all = self.payloads.iter().zip(&self.entries).zip(&self.is_first);
        for ((p, entry), _) in all.filter(|(_, is_first)| **is_first) {
            file.pad_to(entry.data);
            if let Some(front) = &p.front {
                file.push(Piece::View(front.clone()));
            }
            file.push(Piece::tensor(p.tensor, p.encoding, p.bytes));
        }
    }

    /// Those that were there, and that payloads are aligned, as they are.
    fn flags(&self) -> u64 {
        let known = self.fact("flags").and_then(|flags| flags.as_u64()).filter(|_| !self.reference);
        known.unwrap_or(0) | layout::ALIGNED
    }

    fn version(&self, kind: u32) -> u32 {
        let version = self.fact("versions").and_then(|v| v.get(kind.to_string())?.as_u64());
        version.and_then(|v| u32::try_from(v).ok()).unwrap_or(1)
    }
}

/// Sorts by the place that each section type has in a list; those that are not in it stay behind.
fn sort_as<T>(items: &mut [T], list: Option<&serde_json::Value>, kind: impl Fn(&T) -> u32) {
    let Some(list) = list.and_then(|list| list.as_array()) else { return };
    let numbers = list.iter().map(|k| k.as_u64().and_then(|k| u32::try_from(k).ok()));
    let place: HashMap<_, _> = numbers.zip(0..).collect();
    items.sort_by_key(|item| place.get(&Some(kind(item))).copied().unwrap_or(usize::MAX));
}
