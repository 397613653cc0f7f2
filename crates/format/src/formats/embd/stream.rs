//! The stream layout: tensors and tokens one after the other, each behind its length.

use super::layout;
use super::rules::{OVERLAP, STREAM};
use super::sections::bad_token;
use crate::model::{Container, Encoding, Tensor, Vocabulary};
use crate::source::Source;
use crate::wire::{Cursor, Regions, Stop, What, entries, numel};
use std::collections::HashSet;
use weighbridge_codec::DType;

/// Most dimensions that a reader of this layout is asked to believe.
const MOST_DIMENSIONS: u32 = 8;

pub(super) fn read(source: &Source) -> Result<Container, Stop> {
    let size = source.len();
    let mut regions = Regions::default();
    let mut c = Cursor::new(source, 0..size, STREAM);
    c.take(layout::MAGIC.len() as u64, "magic")?;
    c.u32("version")?;
    let count = c.u32("num_tensors")?;
    let mut tensors = Vec::new();
    let mut names = HashSet::new();
    for _ in 0..count {
        let start = c.position();
        let name_length = c.u32("tensor name length")?;
        let name = c.text(name_length.into(), "tensor name", STREAM)?;
        let field = format!("tensor {name:?}");
        if !names.insert(name.clone()) {
            let finding = STREAM.at(start..c.position()).field(field);
            return Err(Stop::from(finding.message("the tensor name appears twice")));
        }
        let rank = c.u32(&field)?;
        if rank > MOST_DIMENSIONS {
            let at = c.position();
            let finding = STREAM.at(at - 4..at).field(field);
            return Err(Stop::from(finding.expected("at most 8 dimensions").found(rank)));
        }
        let shape =
            (0..rank).map(|_| c.u32(&field).map(u64::from)).collect::<Result<Vec<_>, _>>()?;
        let bytes = numel(&shape).and_then(|n| DType::F32.byte_len(n)).unwrap_or(u64::MAX);
        regions.add(start..c.position(), What::Structure("tensor entry"));
        let at = c.position();
        c.skip(bytes, &field)?;
        regions.add(at..c.position(), What::Tensor(tensors.len()));
        let view = source.view(at..c.position()).ok_or_else(|| Box::new(STREAM.at(at..size)))?;
        tensors.push(Tensor::unchecked(name, Encoding::Plain(DType::F32), shape, view));
    }
    let at = c.position();
    let tokens = c.u32("vocab_size")?;
    let start = c.position();
    let rest = entries::<4>(source, start..size, tokens.into(), 0)?;
    let (mut vocabulary, used) =
        Vocabulary::with_u32_lengths(&rest, crate::wire::to_len(tokens.into()))
            .map_err(|bad| bad_token(bad, start, STREAM))?;
    let end = start + used as u64;
    if end != size {
        return Err(Stop::from(STREAM.appended(end, size)));
    }
    vocabulary.find_special();
    regions.add(0..12, What::Structure("header"));
    regions.add(at..start, What::Structure("vocabulary header"));
    regions.add(start..end, What::Vocabulary);
    if let Some((_, b)) = regions.finish(size, 1) {
        return Err(Stop::from(OVERLAP.at(b.span)));
    }
    Ok(Container {
        format: "embd",
        layout: "stream".to_owned(),
        size,
        tensors,
        vocabulary: (tokens > 0).then_some(vocabulary),
        regions,
        ..Container::default()
    })
}
