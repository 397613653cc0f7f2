//! Container to planned bytes.

use super::super::FormatInfo;
use super::index::{self, Entry};
use super::layout::{self, Header, section_name};
use super::payload::{Payload, SameContent, facts, raw_codes};
use super::quant_info::{self, Record};
use super::{carry, model_info};
use crate::model::{Container, Encoding, Subject, Tensor};
use crate::plan::{FilePlan, Piece, Plan, Report, SharedData, fit};
use crate::source::View;
use crate::wire::{align_up, put_u32, put_u64};
use crate::{Advice, Error, Options};
use std::collections::HashMap;
use weighbridge_codec::DType;

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
    // Codes without a scale are bytes whose meaning the file doesn't say.
    let is_unscaled =
        |t: &Tensor| facts(container, t).is_some_and(|facts| facts.contains_key("unscaled"));
    let raw = full.tensors.iter().map(|t| if is_unscaled(t) { raw_codes(t) } else { Ok(None) });
    let raw = raw.collect::<Result<Vec<_>, Error>>()?;
    for (tensor, raw) in rest.tensors.iter_mut().zip(&raw) {
        if let Some((_, bytes)) = raw {
            let (encoding, shape) = (Encoding::Plain(DType::U8), vec![bytes.len()]);
            let dialect = std::mem::take(&mut tensor.dialect);
            *tensor = Tensor::unchecked(tensor.name.clone(), encoding, shape, bytes.clone());
            tensor.dialect = dialect;
        }
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
            let unscaled = raw[p.tensor].as_ref().map(|(codes, _)| *codes);
            Payload::new(container, tensor, shape, p, unscaled, &mut derived)
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
        };
        let too_large = || Error::refused("the file would be too large", "");
        let mut at = layout::HEADER;
        let kinds = assembly.section_kinds(!records.is_empty(), options);
        // Where the payloads begin must be known before the index is made, wherever it stands.
        let index_size = index::size(&payloads.iter().map(|p| p.entry(0)).collect::<Vec<_>>());
        for kind in kinds {
            at = align_up(at, layout::SECTION_ALIGNMENT).ok_or_else(too_large)?;
            let size = match kind {
                layout::MODEL_INFO => assembly.model_info.size,
                layout::QUANT_INFO => assembly.quant_info.len() as u64,
                layout::TENSOR_INDEX => index_size,
                layout::TENSOR_DATA => assembly.place(at, options)?.ok_or_else(too_large)?,
                other => assembly.files.get(&other).map_or(0, |v| v.len()),
            };
            assembly.order.push((kind, size));
            at = at.checked_add(size).ok_or_else(too_large)?;
        }
        Ok(assembly)
    }

    /// The sections in the order of the file: as they were, else as the reference writer has them.
    fn section_kinds(&self, quantized: bool, options: &Options) -> Vec<u32> {
        let mut kinds: Vec<u32> = self.files.keys().copied().collect();
        let known = self.container.dialect_of("mcf").and_then(|d| d.get("order")?.as_array());
        // A file that had none, and has nothing to say in it, goes on without it.
        let had_info = known.is_none_or(|k| k.iter().any(|k| *k == layout::MODEL_INFO));
        if had_info || self.has_info {
            kinds.push(layout::MODEL_INFO);
        }
        kinds.sort_unstable();
        if !self.payloads.is_empty() {
            kinds.extend([layout::TENSOR_DATA, layout::TENSOR_INDEX]);
        }
        if quantized {
            kinds.push(layout::QUANT_INFO);
        }
        if let Some(known) = known.filter(|_| !options.flag(REFERENCE)) {
            let numbers = known.iter().map(|k| k.as_u64().and_then(|k| u32::try_from(k).ok()));
            let place: HashMap<_, _> = numbers.zip(0..).collect();
            kinds.sort_by_key(|kind| place.get(&Some(*kind)).copied().unwrap_or(usize::MAX));
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
        let mut at = layout::HEADER;
        let mut directory = Vec::new();
        for (kind, size) in &self.order {
            at = at.next_multiple_of(layout::SECTION_ALIGNMENT);
            directory.push((*kind, at, *size));
            at += size;
        }
        let start = at.next_multiple_of(layout::SECTION_ALIGNMENT);
        let end = start + directory.len() as u64 * layout::SECTION;
        let header = Header {
            minor: layout::MINOR,
            size: u32::try_from(layout::HEADER).unwrap_or(0),
            directory: start..end,
            flags: self.flags(),
        };
        file.push(Piece::Bytes(header.to_bytes(end)));
        for (kind, offset, size) in &directory {
            file.pad_to(*offset);
            match *kind {
                layout::MODEL_INFO => {
                    self.model_info.pieces.iter().for_each(|p| file.push(p.clone()));
                }
                layout::QUANT_INFO => file.push(Piece::Bytes(self.quant_info.clone())),
                layout::TENSOR_INDEX => file.push(Piece::Bytes(index::to_bytes(&self.entries))),
                layout::TENSOR_DATA => self.write_payloads(&mut file),
                other => {
                    if let Some(view) = self.files.get(&other) {
                        file.push(Piece::View((*view).clone()));
                    }
                }
            }
            if file.size != offset + size {
                let what = format!("{} does not have the planned size", section_name(*kind));
                return Err(Error::refused(what, "this is a bug in weighbridge"));
            }
        }
        file.pad_to(start);
        directory.sort_unstable();
        let mut table = Vec::new();
        for (kind, offset, size) in directory {
            put_u32(&mut table, kind);
            put_u32(&mut table, self.version(kind));
            put_u64(&mut table, offset);
            put_u64(&mut table, size);
        }
        file.push(Piece::Bytes(table));
        Ok(file)
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

    fn flags(&self) -> u64 {
        let known = self.container.dialect_of("mcf").and_then(|d| d.get("flags")?.as_u64());
        known.unwrap_or(0) | layout::ALIGNED
    }

    fn version(&self, kind: u32) -> u32 {
        let dialect = self.container.dialect_of("mcf");
        let version = dialect.and_then(|d| d.get("versions")?.get(kind.to_string())?.as_u64());
        version.and_then(|v| u32::try_from(v).ok()).unwrap_or(1)
    }
}
