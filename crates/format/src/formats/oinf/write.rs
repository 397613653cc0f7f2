//! Container to planned bytes, as the reference writer lays them out.

use super::super::FormatInfo;
use super::layout::{self, HAS_DATA, HAS_QUANT, Header, align, is_plain, put_string, tag_of};
use super::{carry, quant, values};
use crate::model::{Container, Encoding, Tensor, Value};
use crate::plan::{FilePlan, Piece, Placement, Plan, Report, SharedData, fit};
use crate::wire::{put_u32, put_u64};
use crate::{Advice, Error, Options};

pub(super) fn plan(
    container: &Container,
    options: &Options,
    info: &FormatInfo,
) -> Result<Plan, Error> {
    let mut report = Report::default();
    let mut holds = info.holds;
    if options.get("oinf-version") == Some("1") {
        holds.scaled = |_| false;
        holds.declared = |e| matches!(e, Encoding::Plain(d) if layout::DTYPES_WRITTEN.contains(d));
    }
    let mut placements = fit(container, &holds, &mut report)?;
    let mut sizevars = container.sizevars.clone();
    let mut metadata = carry::to_entries(container)?;
    let dialect = container.dialect_of("oinf");
    if !dialect.is_some_and(|d| d.contains_key("unsorted")) {
        sizevars.sort();
        metadata.sort_by(|a, b| a.0.cmp(&b.0));
        placements.sort_by(|a, b| {
            container.tensors[a.tensor].name.cmp(&container.tensors[b.tensor].name)
        });
    }
    check_names(container, &sizevars, &metadata, &placements)?;
    let scaled = placements.iter().any(|p| matches!(p.encoding, Encoding::Scaled(_)));
    let version = match options.get("oinf-version") {
        Some("1") => 1,
        Some(_) => 2,
        None if scaled => 2,
        None => dialect
            .and_then(|d| d.get("version")?.as_u64())
            .map_or(1, |v| if v == 2 { 2 } else { 1 }),
    };
    let content = Content { container, version, sizevars, metadata, placements };
    content
        .build()
        .map(|file| Plan::single(file, report))
        .ok_or_else(|| Error::refused("the file would be too large", ""))
}

/// What is written, in its order.
struct Content<'a> {
    container: &'a Container,
    version: u32,
    sizevars: Vec<(String, u64)>,
    metadata: Vec<(String, Value)>,
    placements: Vec<Placement>,
}

/// Where the tables and the data begin.
struct Places {
    metadata: u64,
    tensors: u64,
    data: u64,
}

impl Content<'_> {
    fn tensor(&self, placement: &Placement) -> &Tensor {
        &self.container.tensors[placement.tensor]
    }

    /// Table sizes are known before the offsets in them: strings and fixed fields. `None` when
    /// offsets overflow.
    fn places(&self) -> Option<Places> {
        let string = |s: &str| (4 + s.len() as u64).next_multiple_of(8);
        let fixed = if self.version == 1 { 28 } else { 44 };
        let sizevars: u64 = self.sizevars.iter().map(|(k, _)| string(k) + 8).sum();
        let metadata: u64 = self.metadata.iter().map(|(k, _)| string(k) + 24).sum();
        let tensor = |p: &Placement| {
            string(&self.tensor(p).name) + fixed + 8 * self.tensor(p).shape.len() as u64
        };
        let tensors: u64 = self.placements.iter().map(tensor).sum();
        let metadata_at = align(layout::HEADER.checked_add(sizevars)?)?;
        let tensors_at = align(metadata_at.checked_add(metadata)?)?;
        let data = align(tensors_at.checked_add(tensors)?)?;
        Some(Places { metadata: metadata_at, tensors: tensors_at, data })
    }

    /// The file; `None` when offsets overflow.
    fn build(&self) -> Option<FilePlan> {
        let places = self.places()?;
        let mut sizevar_table = Vec::new();
        for (name, value) in &self.sizevars {
            put_string(&mut sizevar_table, name);
            put_u64(&mut sizevar_table, *value);
        }
        let mut blobs = Blobs { start: places.data, file: FilePlan::default() };
        let metadata_table = self.metadata_table(&mut blobs)?;
        let tensor_table = self.tensor_table(&mut blobs)?;
        let header = Header {
            version: self.version,
            flags: 0,
            n_sizevars: u32::try_from(self.sizevars.len()).ok()?,
            n_metadata: u32::try_from(self.metadata.len()).ok()?,
            n_tensors: u32::try_from(self.placements.len()).ok()?,
            reserved: 0,
            sizevars: layout::HEADER,
            metadata: places.metadata,
            tensors: places.tensors,
            data: places.data,
            file_size: places.data.checked_add(blobs.file.size)?,
        };
        let mut file = FilePlan::default();
        for (offset, bytes) in [
            (0, header.to_bytes()),
            (layout::HEADER, sizevar_table),
            (places.metadata, metadata_table),
            (places.tensors, tensor_table),
        ] {
            file.pad_to(offset);
            file.push(Piece::Bytes(bytes));
        }
        file.pad_to(places.data);
        blobs.file.pieces.into_iter().for_each(|p| file.push(p));
        Some(file)
    }

    fn metadata_table(&self, blobs: &mut Blobs) -> Option<Vec<u8>> {
        let mut table = Vec::new();
        for (key, value) in &self.metadata {
            let (tag, payload) = values::to_bytes(value);
            put_string(&mut table, key);
            put_u32(&mut table, tag);
            put_u32(&mut table, 0);
            put_u64(&mut table, payload.len() as u64);
            put_u64(&mut table, blobs.add(Piece::Bytes(payload))?);
        }
        Some(table)
    }

    fn tensor_table(&self, blobs: &mut Blobs) -> Option<Vec<u8>> {
        let mut table = Vec::new();
        let mut shared = SharedData::default();
        for p in &self.placements {
            let t = self.tensor(p);
            let has_data = t.has_data();
            let quant = match &p.encoding {
                Encoding::Scaled(scaled) => Some(quant::to_bytes(scaled)),
                _ => None,
            };
            put_string(&mut table, &t.name);
            put_u32(&mut table, tag_of(p.encoding.stored()).unwrap_or(5));
            put_u32(&mut table, u32::try_from(t.shape.len()).ok()?);
            let quant_flag = if quant.is_some() { HAS_QUANT } else { 0 };
            put_u32(&mut table, if has_data { HAS_DATA } else { 0 } | quant_flag);
            t.shape.iter().for_each(|&d| put_u64(&mut table, d));
            let offset = match shared.offset(t, &p.encoding) {
                Some(offset) => offset,
                None if !has_data => 0,
                None => {
                    let offset = blobs.add(Piece::tensor(t, &p.encoding, p.bytes))?;
                    shared.place(t, &p.encoding, offset);
                    offset
                }
            };
            put_u64(&mut table, p.bytes);
            put_u64(&mut table, offset);
            if self.version == 2 {
                put_u64(&mut table, quant.as_ref().map_or(0, |q| q.len() as u64));
                let offset = quant.map_or(Some(0), |q| blobs.add(Piece::Bytes(q)))?;
                put_u64(&mut table, offset);
            }
        }
        Some(table)
    }
}

/// The data section.
struct Blobs {
    /// Where it begins in the file.
    start: u64,
    file: FilePlan,
}

impl Blobs {
    /// Adds a blob and says where it is; `None` when the offset overflows.
    fn add(&mut self, piece: Piece) -> Option<u64> {
        let at = self.start.checked_add(self.file.size)?;
        self.file.push(piece);
        let end = align(self.file.size)?;
        self.file.pad_to(end);
        Some(at)
    }
}

fn check_names(
    container: &Container,
    sizevars: &[(String, u64)],
    metadata: &[(String, Value)],
    placements: &[Placement],
) -> Result<(), Error> {
    let tensors = placements.iter().map(|p| &container.tensors[p.tensor].name);
    let names =
        sizevars.iter().map(|(n, _)| n).chain(metadata.iter().map(|(k, _)| k)).chain(tensors);
    let bad: Vec<_> = names.filter(|n| !is_plain(n)).map(|n| format!("{n:?}")).collect();
    if bad.is_empty() {
        return Ok(());
    }
    let some = bad.iter().take(5).cloned().collect::<Vec<_>>().join(", ");
    Err(Error::refused(
        format!("OINF does not allow the characters of these names ({}): {some}", bad.len()),
        Advice::from("names are made of A-Z a-z 0-9 . _ -")
            .and(Advice::set("rename", "gives another name")),
    ))
}
