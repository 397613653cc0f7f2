//! Container to planned bytes.

use super::super::FormatInfo;
use super::header;
use super::hub;
use super::hub::Stored;
use crate::model::{Container, Encoding, Note, NoteKind, Once, Subject};
use crate::plan::{FilePlan, Piece, Plan, Report, fit};
use crate::wire::put_u64;
use crate::{Advice, Error, Options};
use serde_json::{Value as Json, json};
use weighbridge_codec::DType;

pub(super) fn plan(
    container: &Container,
    options: &Options,
    info: &FormatInfo,
) -> Result<Plan, Error> {
    let mut report = Report::default();
    // The hub entry keeps what the ignored files would tell; only what is not attached is ignored.
    let keep_codes = options.flag("keep-codes");
    let mut codes = vec![false; container.tensors.len()];
    let mut once = Once::new([container]);
    for (tensor, codes) in container.tensors.iter().zip(&mut codes) {
        // Codes of a codec that the entry can't name would mean nothing to a reader.
        let can_keep = container.dtype.is_none()
            && tensor.encoding.is_quantized()
            && hub::can_name(&tensor.encoding);
        let mut recoverable = || once.of([tensor], || tensor.is_recoverable());
        *codes = can_keep && (keep_codes || !recoverable()?);
        // That there is no scale was said by the reader.
        if *codes && !keep_codes && tensor.encoding.has_values() {
            let subject = Subject::Tensor(tensor.name.clone());
            let text =
                format!("{subject} keeps its codes: they could not be recovered from the values");
            report.warnings.push(Note::new(NoteKind::Unusual, text).about(subject));
        }
    }
    let mut plain = container.clone();
    for (tensor, _) in plain.tensors.iter_mut().zip(&codes).filter(|(_, c)| **c) {
        // Codes in blocks and of parts stand in rows of bytes.
        let bytes = tensor.stored_len().unwrap_or(0);
        if let (true, [rows, cols]) = (tensor.encoding.is_coded(), tensor.shape.as_mut_slice()) {
            *cols = bytes / (*rows).max(1);
        }
        tensor.encoding = Encoding::Plain(tensor.encoding.stored());
    }
    let mut placements = fit(&plain, &info.holds, &mut report)?;
    placements.retain(|p| plain.tensors[p.tensor].has_data());
    // Wide types first, so that every tensor starts at a multiple of its element's size.
    placements.sort_by_key(|p| std::cmp::Reverse(p.encoding.stored().bits()));

    // An explicit type is what the file is meant to have from now on: no way back is recorded.
    let asked = container.dtype.is_some();
    let stored: Vec<_> = placements
        .iter()
        .map(|p| Stored {
            tensor: &container.tensors[p.tensor],
            encoding: p.encoding.clone(),
            codes: codes[p.tensor],
        })
        .filter(|s| !(asked && s.encoding != s.tensor.encoding && s.tensor.encoding.is_real()))
        .collect();
    let carried = hub::pack(container, &stored)?;

    let texts_in_header = hub::texts_fit(container);
    let mut texts = serde_json::Map::new();
    for (key, value) in &container.metadata {
        if let Some(text) = value.as_text().filter(|_| key != hub::KEY && texts_in_header) {
            texts.insert(key.clone(), text.into());
        }
    }
    let mut parts = Vec::new();
    if let Some((text, tensors)) = carried {
        texts.insert(hub::KEY.to_owned(), text.into());
        parts = tensors;
    }
    let mut all = Vec::new();
    for p in &placements {
        let tensor = &plain.tensors[p.tensor];
        all.push(Written {
            name: hub::stored_name(&tensor.name).to_owned(),
            dtype: p.encoding.stored(),
            shape: tensor.shape.clone(),
            data: Piece::tensor(tensor, &p.encoding, p.bytes),
        });
    }
    for (name, view) in parts {
        let shape = vec![view.len()];
        all.push(Written { name, dtype: DType::U8, shape, data: Piece::View(view) });
    }
    Ok(Plan::single(assemble(texts, all)?, report))
}

/// A tensor with its place in the header.
pub(in super::super) struct Written {
    pub name: String,
    pub dtype: DType,
    pub shape: Vec<u64>,
    pub data: Piece,
}

/// A file of these texts and tensors, in this order.
pub(in super::super) fn assemble(
    texts: serde_json::Map<String, Json>,
    tensors: Vec<Written>,
) -> Result<FilePlan, Error> {
    let mut entries = serde_json::Map::new();
    if !texts.is_empty() {
        entries.insert("__metadata__".to_owned(), texts.into());
    }
    let mut data = FilePlan::default();
    for Written { name, dtype, shape, data: piece } in tensors {
        let start = data.size;
        data.push(piece);
        let entry = json!({"dtype": header::name_of(dtype), "shape": shape, "data_offsets": [start, data.size]});
        if entries.insert(name.clone(), entry).is_some() {
            return Err(Error::refused(
                format!("two tensors are named {name:?}"),
                Advice::set("rename", "gives one of them another name"),
            ));
        }
    }
    let mut text = Json::Object(entries).to_string();
    while !text.len().is_multiple_of(8) {
        text.push(' ');
    }
    if text.len() as u64 > header::LONGEST {
        return Err(Error::refused(
            "the header would be longer than readers of safetensors accept",
            "",
        ));
    }
    Ok(with_header(&text, data.pieces))
}

/// A file of this header and the data behind it.
pub(in super::super) fn with_header(text: &str, data: Vec<Piece>) -> FilePlan {
    let mut file = FilePlan::default();
    let mut front = Vec::with_capacity(text.len() + 8);
    put_u64(&mut front, text.len() as u64);
    front.extend_from_slice(text.as_bytes());
    file.push(Piece::Bytes(front));
    data.into_iter().for_each(|p| file.push(p));
    file
}
