//! Container to planned bytes, as the reference writer lays them out.

use super::super::FormatInfo;
use super::layout::{self, HAS_DATA, HAS_QUANT, Header, align, is_plain, put_string, tag_of};
use super::{carry, quant, values};
use crate::model::{Container, Encoding};
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
    build(container, version, &sizevars, &metadata, &placements)
        .map(|file| Plan::single(file, report))
        .ok_or_else(|| Error::refused("the file would be too large", ""))
}

/// The tables and blobs; `None` when offsets overflow.
fn build(
    container: &Container,
    version: u32,
    sizevars: &[(String, u64)],
    metadata: &[(String, crate::model::Value)],
    placements: &[Placement],
) -> Option<FilePlan> {
    let mut sizevar_table = Vec::new();
    for (name, value) in sizevars {
        put_string(&mut sizevar_table, name);
        put_u64(&mut sizevar_table, *value);
    }
    let payloads: Vec<_> = metadata.iter().map(|(_, v)| values::to_bytes(v)).collect();
    let tensor = |p: &Placement| &container.tensors[p.tensor];
    let quants: Vec<_> = placements
        .iter()
        .map(|p| match &p.encoding {
            Encoding::Scaled(scaled) => Some(quant::to_bytes(scaled)),
            _ => None,
        })
        .collect();

    // Table sizes are known before the offsets in them: strings and fixed fields.
    let string = |s: &str| (4 + s.len() as u64).next_multiple_of(8);
    let metadata_size: u64 = metadata.iter().map(|(k, _)| string(k) + 24).sum();
    let fixed = if version == 1 { 28 } else { 44 };
    let tensors_size: u64 = placements
        .iter()
        .map(|p| string(&tensor(p).name) + fixed + 8 * tensor(p).shape.len() as u64)
        .sum();
    let sizevars_at = layout::HEADER;
    let metadata_at = align(sizevars_at + sizevar_table.len() as u64)?;
    let tensors_at = align(metadata_at.checked_add(metadata_size)?)?;
    let data_at = align(tensors_at.checked_add(tensors_size)?)?;

    let mut blobs = FilePlan::default();
    let mut blob = |piece: Piece| {
        let at = data_at.checked_add(blobs.size)?;
        blobs.push(piece);
        let end = align(blobs.size)?;
        blobs.pad_to(end);
        Some(at)
    };
    let mut metadata_table = Vec::new();
    for ((key, _), (tag, payload)) in metadata.iter().zip(payloads) {
        put_string(&mut metadata_table, key);
        put_u32(&mut metadata_table, tag);
        put_u32(&mut metadata_table, 0);
        put_u64(&mut metadata_table, payload.len() as u64);
        put_u64(&mut metadata_table, blob(Piece::Bytes(payload))?);
    }
    let mut tensor_table = Vec::new();
    let mut shared = SharedData::default();
    for (p, quant) in placements.iter().zip(quants) {
        let t = tensor(p);
        let has_data = t.has_data();
        put_string(&mut tensor_table, &t.name);
        put_u32(&mut tensor_table, tag_of(p.encoding.stored()).unwrap_or(5));
        put_u32(&mut tensor_table, u32::try_from(t.shape.len()).ok()?);
        let quant_flag = if quant.is_some() { HAS_QUANT } else { 0 };
        put_u32(&mut tensor_table, if has_data { HAS_DATA } else { 0 } | quant_flag);
        t.shape.iter().for_each(|&d| put_u64(&mut tensor_table, d));
        let offset = match shared.offset(t, &p.encoding) {
            Some(offset) => offset,
            None if !has_data => 0,
            None => {
                let offset = blob(Piece::tensor(t, &p.encoding, p.bytes))?;
                shared.place(t, &p.encoding, offset);
                offset
            }
        };
        put_u64(&mut tensor_table, p.bytes);
        put_u64(&mut tensor_table, offset);
        if version == 2 {
            put_u64(&mut tensor_table, quant.as_ref().map_or(0, |q| q.len() as u64));
            let offset = quant.map_or(Some(0), |q| blob(Piece::Bytes(q)))?;
            put_u64(&mut tensor_table, offset);
        }
    }
    let header = Header {
        version,
        flags: 0,
        n_sizevars: u32::try_from(sizevars.len()).ok()?,
        n_metadata: u32::try_from(metadata.len()).ok()?,
        n_tensors: u32::try_from(placements.len()).ok()?,
        reserved: 0,
        sizevars: sizevars_at,
        metadata: metadata_at,
        tensors: tensors_at,
        data: data_at,
        file_size: data_at.checked_add(blobs.size)?,
    };
    let mut file = FilePlan::default();
    for (offset, bytes) in [
        (0, header.to_bytes()),
        (sizevars_at, sizevar_table),
        (metadata_at, metadata_table),
        (tensors_at, tensor_table),
    ] {
        file.pad_to(offset);
        file.push(Piece::Bytes(bytes));
    }
    file.pad_to(data_at);
    blobs.pieces.into_iter().for_each(|p| file.push(p));
    Some(file)
}

fn check_names(
    container: &Container,
    sizevars: &[(String, u64)],
    metadata: &[(String, crate::model::Value)],
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
        format!("{} names have characters that OINF does not allow: {some}", bad.len()),
        Advice::from("names are made of A-Z a-z 0-9 . _ -")
            .and(Advice::set("rename", "gives another name")),
    ))
}
