//! Container to planned bytes, in both layouts.

use super::super::clock::is_iso8601;
use super::super::{FormatInfo, created_at};
use super::layout::{self, Descriptor, Header};
use super::metadata::REQUIRED;
use crate::model::{
    Container, Encoding, MATRIX, Note, NoteKind, SPECIAL_TOKENS, Subject, Tensor, WORD_TABLE,
};
use crate::plan::{FilePlan, Piece, Placement, Plan, Report, SharedData, fit};
use crate::wire::{align_up, fnv1a32, put_u16, put_u32};
use crate::{Advice, Error, Options};
use std::collections::HashSet;
use weighbridge_codec::DType;

/// Longest text that a 16-bit length can announce.
const LONGEST: usize = u16::MAX as usize;

pub(super) fn plan(
    container: &Container,
    options: &Options,
    info: &FormatInfo,
) -> Result<Plan, Error> {
    let mut report = Report::default();
    let container = &adapt(container, options, &mut report)?;
    if options.get("layout") == Some("stream") {
        return plan_stream(container, info, report);
    }
    let rows = container.tensor(WORD_TABLE).and_then(|t| t.shape.first().copied());
    let tokens = container.vocabulary.as_ref().map(|v| v.len() as u64);
    if let (Some(rows), Some(tokens)) = (rows, tokens)
        && rows != tokens
    {
        let what = format!("the vocabulary has {tokens} tokens, the word embeddings {rows} rows");
        report.warnings.push(Note::new(NoteKind::Disagrees, what));
    }
    let placements = fit(container, &info.holds, &mut report)?;
    let dialect = container.dialect_of("embd");
    let flags = dialect.and_then(|d| d.get("flags")?.as_u64()).and_then(|f| u32::try_from(f).ok());
    let mut flags = flags.unwrap_or(0b111) & 0b110;
    let special_last = dialect.is_some_and(|d| d.contains_key("special_last"));

    let metadata = metadata_section(container, &mut report);
    let metadata_size = size32(metadata.len(), "metadata")?;
    let vocab_offset = layout::HEADER + u64::from(metadata_size);
    let vocab = vocabulary_section(container, vocab_offset, special_last, &mut report)?;
    if vocab.is_some() {
        flags |= layout::VOCABULARY;
    }
    let vocab_size = size32(vocab.as_ref().map_or(0, Vec::len), "vocabulary")?;
    let index_offset = vocab_offset + u64::from(vocab_size);

    let alignment = if flags & layout::ALIGNED != 0 { layout::ALIGNMENT } else { 1 };
    let (index, names, data) = layout_tensors(container, &placements, alignment)?;
    let names_end = index_offset + (index.len() + names.len()) as u64;
    let too_large = || Error::refused("the file would be too large for EMBD", "");
    let data_offset = align_up(names_end, alignment).ok_or_else(too_large)?;
    let footer = data_offset.checked_add(data.size).ok_or_else(too_large)?;
    let offset32 = |v: u64| u32::try_from(v).map_err(|_| too_large());

    let header = Header {
        major: 1,
        minor: 0,
        flags,
        metadata_offset: offset32(layout::HEADER)?,
        metadata_size,
        vocab_offset: if vocab.is_some() { offset32(vocab_offset)? } else { 0 },
        vocab_size,
        index_offset: offset32(index_offset)?,
        index_count: offset32(placements.len() as u64)?,
        data_offset: offset32(data_offset)?,
        data_size: data.size,
        total_size: footer + layout::FOOTER,
        checksum: 0,
        reserved: 0,
    };
    let mut file = FilePlan::default();
    let mut front = header.to_bytes();
    front.extend(metadata);
    front.extend(vocab.unwrap_or_default());
    front.extend(index);
    front.extend(names);
    file.push(Piece::Bytes(front));
    file.pad_to(data_offset);
    data.pieces.into_iter().for_each(|p| file.push(p));
    if flags & layout::CHECKSUMS != 0 {
        file.push(Piece::Crc32 { start: data_offset, end: footer });
        file.push(Piece::Crc32 { start: 0, end: footer });
    } else {
        file.push(Piece::Zeros(8));
    }
    let mut end = layout::MAGIC_END.to_vec();
    put_u32(&mut end, 0);
    file.push(Piece::Bytes(end));
    Ok(Plan::single(file, report))
}

/// The container as EMBD wants it: names without the `bert.` prefix, no position ids, names that fit,
/// and the required metadata as far as it can be known.
fn adapt(
    container: &Container,
    options: &Options,
    report: &mut Report,
) -> Result<Container, Error> {
    let mut c = container.clone();
    // A file that was EMBD before is not corrected.
    let foreign = c.dialect_of("embd").is_none();
    let prefixed = foreign && c.tensors.iter().any(|t| t.name.starts_with("bert.embeddings."));
    if prefixed {
        let names: HashSet<_> = c.tensors.iter().map(|t| t.name.as_str()).collect();
        let twice = |n: &&str| n.strip_prefix("bert.").is_some_and(|rest| names.contains(rest));
        if let Some(name) = names.iter().copied().find(twice) {
            let what =
                format!("there is a tensor {name:?} and one of the same name without \"bert.\"");
            return Err(Error::refused(
                what,
                Advice::set("rename", "gives one of them another name"),
            ));
        }
    }
    // Word embeddings are the table of a model that has nothing else.
    if foreign && c.vocabulary.is_some() && c.tensor(WORD_TABLE).is_none() {
        let words = c.word_matrix().ok().filter(|w| w.matrix.name == MATRIX);
        let index = words.and_then(|w| c.tensors.iter().position(|t| std::ptr::eq(t, w.matrix)));
        if let Some(table) = index.and_then(|i| c.tensors.get_mut(i)) {
            WORD_TABLE.clone_into(&mut table.name);
        }
    }
    let mut positions = None;
    for (i, tensor) in c.tensors.iter().enumerate().filter(|_| foreign) {
        // Always 0, 1, 2, …: no weights.
        if tensor.name.strip_prefix("bert.").filter(|_| prefixed).unwrap_or(&tensor.name)
            == "embeddings.position_ids"
            && counts_up(tensor)?
        {
            positions = Some(i);
        }
    }
    if let Some(i) = positions {
        c.tensors.remove(i);
        report.ignored.push(Subject::Tensor("embeddings.position_ids".to_owned()));
    }
    c.tensors.retain_mut(|t| {
        if prefixed && let Some(rest) = t.name.strip_prefix("bert.") {
            t.name = rest.to_owned();
        }
        if t.name.len() > LONGEST {
            let name: String = t.name.chars().take(64).collect();
            report.lose(Subject::Tensor(name + "…"), "its name is longer than 65535 bytes");
            return false;
        }
        true
    });
    let created_at = created_at(options)?;
    if let Some(time) = created_at.as_ref().filter(|_| options.get("created-at").is_some()) {
        c.set_text("created_at", time);
    }
    if let Some(text) = c.text("created_at").filter(|text| !is_iso8601(text)) {
        let text = format!("created_at {text:?} is not an ISO 8601 date");
        let note = Note::new(NoteKind::Strict, text).about(Subject::Metadata("created_at".into()));
        let advice = Advice::set_to("created-at", "2025-01-16T12:00:00Z", "gives one");
        report.warnings.push(note.advice(advice));
    }
    // What such a file does not say is not added either.
    let layout = c.origin.as_ref().map_or(c.layout.as_str(), |origin| origin.layout.as_str());
    let is_completed = foreign || layout != "indexed" || options.get("layout").is_some();
    for key in REQUIRED.into_iter().filter(|_| options.get("layout") != Some("stream")) {
        if c.metadata.iter().any(|(k, _)| k == key) {
            continue;
        }
        let time = created_at.clone().filter(|_| key == "created_at");
        let known = c.shown(key).map(|value| value.to_string()).or(time);
        match known.filter(|_| is_completed) {
            Some(value) => c.set_text(key, value),
            None => {
                let text = format!("required metadata {key:?} is missing");
                let note = Note::new(NoteKind::Missing, text).about(Subject::Metadata(key.into()));
                let advice = Advice::set_to("set", format!("{key}=VALUE"), "gives it");
                report.warnings.push(note.advice(advice));
            }
        }
    }
    Ok(c)
}

/// 0, 1, 2, …
fn counts_up(tensor: &Tensor) -> Result<bool, Error> {
    let mut next = 0.0;
    let mut good = tensor.encoding.stored().is_integer();
    tensor.for_each_block(|values| {
        for &v in values {
            good &= v == next;
            next += 1.0;
        }
    })?;
    Ok(good)
}

fn size32(n: usize, what: &str) -> Result<u32, Error> {
    u32::try_from(n).map_err(|_| Error::refused(format!("the {what} is larger than 4 GiB"), ""))
}

fn metadata_section(container: &Container, report: &mut Report) -> Vec<u8> {
    let mut entries = Vec::new();
    let mut count = 0;
    for (key, value) in &container.metadata {
        let Some(text) = value.to_plain_text() else { continue };
        let (Ok(key_length), Ok(text_length)) =
            (u16::try_from(key.len()), u16::try_from(text.len()))
        else {
            report.lose(Subject::Metadata(key.clone()), "it is longer than 65535 bytes");
            continue;
        };
        put_u16(&mut entries, key_length);
        put_u16(&mut entries, text_length);
        entries.extend_from_slice(key.as_bytes());
        entries.extend_from_slice(text.as_bytes());
        count += 1;
    }
    let mut out = Vec::new();
    put_u32(&mut out, count);
    put_u32(&mut out, u32::try_from(entries.len()).unwrap_or(u32::MAX));
    out.extend(entries);
    out
}

fn vocabulary_section(
    container: &Container,
    offset: u64,
    special_last: bool,
    report: &mut Report,
) -> Result<Option<Vec<u8>>, Error> {
    let Some(vocabulary) = &container.vocabulary else { return Ok(None) };
    let mut entries = Vec::new();
    for (id, token) in vocabulary.tokens().enumerate() {
        // Dropping one token would renumber all that follow, so its text goes and its place stays.
        let length = u16::try_from(token.len()).unwrap_or_else(|_| {
            report.lose(Subject::Token(id as u64), "it is longer than 65535 bytes");
            0
        });
        put_u16(&mut entries, length);
        entries.extend_from_slice(&token.as_bytes()[..length.into()]);
    }
    for (name, id) in &vocabulary.special {
        if !SPECIAL_TOKENS.iter().any(|(known, _)| known == name) {
            let subject = Subject::SpecialToken(name.clone(), *id);
            report.lose(subject, "the format has a place for five only");
        }
    }
    let mut special = Vec::new();
    for (name, _) in SPECIAL_TOKENS {
        put_u32(&mut special, vocabulary.special(name).unwrap_or(layout::NO_TOKEN));
    }
    let entries_size = size32(entries.len(), "vocabulary")?;
    let special_at = offset + 12 + if special_last { u64::from(entries_size) } else { 0 };
    let mut out = Vec::new();
    put_u32(&mut out, size32(vocabulary.len(), "vocabulary")?);
    put_u32(&mut out, entries_size);
    put_u32(
        &mut out,
        u32::try_from(special_at).map_err(|_| Error::refused("the metadata is too large", ""))?,
    );
    if special_last {
        out.extend(entries);
        out.extend(special);
    } else {
        out.extend(special);
        out.extend(entries);
    }
    Ok(Some(out))
}

/// Descriptors, names, and the data section. Tensors that are the same bytes are stored once.
fn layout_tensors(
    container: &Container,
    placements: &[Placement],
    alignment: u64,
) -> Result<(Vec<u8>, Vec<u8>, FilePlan), Error> {
    let (mut index, mut names, mut data) = (Vec::new(), Vec::new(), FilePlan::default());
    let mut shared = SharedData::default();
    for p in placements {
        let tensor = &container.tensors[p.tensor];
        let offset = shared.offset(tensor, &p.encoding).unwrap_or_else(|| {
            let start = align_up(data.size, alignment).unwrap_or(data.size);
            data.pad_to(start);
            data.push(Piece::tensor(tensor, &p.encoding, p.bytes));
            shared.place(tensor, &p.encoding, start);
            start
        });
        let mut shape = [0u32; 4];
        for (slot, &d) in shape.iter_mut().zip(&tensor.shape) {
            *slot = u32::try_from(d).map_err(|_| {
                Error::refused(format!("a dimension of {:?} is beyond 32 bits", tensor.name), "")
            })?;
        }
        let dtype = layout::DTYPES.iter().position(|d| Encoding::Plain(*d) == p.encoding);
        let descriptor = Descriptor {
            name_hash: fnv1a32(tensor.name.as_bytes()),
            dtype: dtype.and_then(|d| u8::try_from(d).ok()).unwrap_or(0),
            ndim: u8::try_from(tensor.shape.len()).unwrap_or(0),
            name_length: u16::try_from(tensor.name.len()).unwrap_or(0),
            shape,
            data_offset: offset,
        };
        descriptor.write(&mut index);
        names.extend_from_slice(tensor.name.as_bytes());
    }
    Ok((index, names, data))
}

/// The stream layout: f32 only, no metadata.
fn plan_stream(
    container: &Container,
    info: &FormatInfo,
    mut report: Report,
) -> Result<Plan, Error> {
    let mut holds = info.holds;
    holds.dtypes = &[DType::F32];
    holds.metadata = crate::plan::Keeps::Nothing;
    let placements = fit(container, &holds, &mut report)?;
    if let Some(vocabulary) = &container.vocabulary {
        // Readers of this layout find special tokens by their texts.
        let mut by_text = vocabulary.clone();
        by_text.find_special();
        for (name, id) in vocabulary.special.iter().filter(|s| !by_text.special.contains(s)) {
            let subject = Subject::SpecialToken(name.clone(), *id);
            report.lose(subject, "the layout has no place for it");
        }
    }
    let mut file = FilePlan::default();
    let mut head = layout::MAGIC.to_vec();
    put_u32(&mut head, 1);
    put_u32(&mut head, size32(placements.len(), "tensor list")?);
    file.push(Piece::Bytes(head));
    for p in &placements {
        let tensor = &container.tensors[p.tensor];
        let mut entry = Vec::new();
        put_u32(&mut entry, size32(tensor.name.len(), "tensor name")?);
        entry.extend_from_slice(tensor.name.as_bytes());
        put_u32(&mut entry, size32(tensor.shape.len(), "shape")?);
        for &d in &tensor.shape {
            put_u32(
                &mut entry,
                u32::try_from(d)
                    .map_err(|_| Error::refused("a dimension is beyond 32 bits", ""))?,
            );
        }
        file.push(Piece::Bytes(entry));
        file.push(Piece::tensor(tensor, &p.encoding, p.bytes));
    }
    let mut tail = Vec::new();
    let tokens = container.vocabulary.as_ref();
    put_u32(&mut tail, size32(tokens.map_or(0, crate::Vocabulary::len), "vocabulary")?);
    for token in tokens.iter().flat_map(|v| v.tokens()) {
        put_u32(&mut tail, size32(token.len(), "token")?);
        tail.extend_from_slice(token.as_bytes());
    }
    file.push(Piece::Bytes(tail));
    Ok(Plan::single(file, report))
}
