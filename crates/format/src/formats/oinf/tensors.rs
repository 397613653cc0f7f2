//! The table of tensors.

use super::layout::{self, HAS_DATA, HAS_QUANT, Header, dtype_of, read_string};
use super::quant;
use super::read::{blob, duplicate, table};
use super::rules::*;
use crate::model::{Arrangement, Data, Encoding, Scaled, Tensor};
use crate::source::Source;
use crate::wire::{Budget, Cursor, Findings, Regions, Span, Stop, What, numel, to_len};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use weighbridge_codec::DType;

pub(super) fn read(
    source: &Source,
    h: &Header,
    regions: &mut Regions,
    findings: &mut Findings,
) -> Result<Vec<Tensor>, Stop> {
    let smallest = if h.version == 1 { 36 } else { 52 };
    let mut c = table(source, h.tensors..h.data, h.n_tensors, smallest, "header.n_tensors")?;
    let (mut list, mut names) = (Vec::new(), HashSet::new());
    let mut scales = Scales::new(source);
    for i in 0..to_len(h.n_tensors.into()) {
        let start = c.position();
        let name = read_string(&mut c, "tensor name", findings)?;
        if !names.insert(name.clone()) {
            return Err(duplicate(start, c.position(), &name));
        }
        let entry = Entry::read(&mut c, format!("tensor {name:?}"), h, findings)?;
        let data = match entry.data(source, h, findings)? {
            Some(span) => {
                regions.add(span.clone(), What::Tensor(i));
                let view = source.view(span.clone()).ok_or_else(|| BLOB.at(span))?;
                Data::Stored(view, Arrangement::default())
            }
            None => Data::Declared,
        };
        let encoding = match entry.scales(source, h, findings)? {
            Some(span) => {
                let scaled = scales.read(&entry, span.clone(), findings)?;
                regions.add(span, What::Scales(i));
                Encoding::Scaled(scaled)
            }
            None => Encoding::Plain(entry.dtype),
        };
        list.push(Tensor::with_data(name, encoding, entry.shape, data));
    }
    regions.add(h.tensors..c.position(), What::Structure("tensor index"));
    Ok(list)
}

/// Scales that were read. Many tensors may share them, which are then in memory once.
struct Scales<'a> {
    source: &'a Source,
    budget: Budget,
    known: HashMap<(Span, DType, Vec<u64>), Arc<Scaled>>,
}

impl<'a> Scales<'a> {
    fn new(source: &'a Source) -> Scales<'a> {
        let budget = Budget::for_copies(source.len());
        Scales { source, budget, known: HashMap::new() }
    }

    fn read(
        &mut self,
        entry: &Entry,
        span: Span,
        findings: &mut Findings,
    ) -> Result<Arc<Scaled>, Stop> {
        let Entry { dtype, shape, field, .. } = entry;
        let key = (span.clone(), *dtype, shape.clone());
        if let Some(known) = self.known.get(&key) {
            return Ok(known.clone());
        }
        let what = "bytes of scales, in tensors that share them";
        self.budget.spend(span.end - span.start, what)?;
        let scaled = quant::read(self.source, span, *dtype, shape, field, findings)?;
        Ok(self.known.entry(key).or_insert(Arc::new(scaled)).clone())
    }
}

/// What stands behind a tensor's name.
struct Entry {
    /// What findings call it.
    field: String,
    dtype: DType,
    flags: u32,
    shape: Vec<u64>,
    /// Where size and offset stand.
    at: u64,
    size: u64,
    offset: u64,
    /// Size and offset of the scales; zeros in version 1.
    quant: (u64, u64),
}

impl Entry {
    fn read(
        c: &mut Cursor,
        field: String,
        h: &Header,
        findings: &mut Findings,
    ) -> Result<Entry, Stop> {
        let at = c.position();
        let (tag, rank, flags) = (c.u32(&field)?, c.u32(&field)?, c.u32(&field)?);
        let dtype = match tag {
            layout::BITSET => {
                findings.push(BITSET_TENSOR.at(at..at + 4).field(&field));
                DType::Bitset
            }
            tag => dtype_of(tag).ok_or_else(|| {
                TYPE.at(at..at + 4).field(&field).expected("1 to 13 or 16 to 25").found(tag)
            })?,
        };
        let known = if h.version == 1 { HAS_DATA } else { HAS_DATA | HAS_QUANT };
        if flags & !known != 0 {
            let finding = RESERVED.at(at + 8..at + 12).field(&field);
            findings.push(finding.expected(format!("flags within {known:#b}")).found(flags));
        }
        let shape = c.u64_list(rank, &field)?;
        let at = c.position();
        let (size, offset) = (c.u64(&field)?, c.u64(&field)?);
        let quant = if h.version == 1 { (0, 0) } else { (c.u64(&field)?, c.u64(&field)?) };
        Ok(Entry { field, dtype, flags, shape, at, size, offset, quant })
    }

    /// Where the data is; nowhere for a declaration.
    fn data(
        &self,
        source: &Source,
        h: &Header,
        findings: &mut Findings,
    ) -> Result<Option<Span>, Stop> {
        let Entry { field, at, size, offset, .. } = self;
        let bytes = numel(&self.shape).and_then(|n| self.dtype.byte_len(n));
        let is_declared = self.flags & HAS_DATA == 0;
        if bytes.is_none() || (!is_declared && bytes != Some(*size)) {
            let expected = bytes.map_or("a size that exists".to_owned(), |b| format!("{b} bytes"));
            let finding = TENSOR_SIZE.at(*at..at + 8).field(field).expected(expected);
            let finding = finding.found(format!("{size} bytes"));
            return Err(finding.hint("the file may be cut short or damaged").into());
        }
        if !is_declared {
            return blob(source, h, *at, *offset, *size, field).map(Some);
        }
        if *size != 0 || *offset != 0 {
            let finding = DECLARED.at(*at..at + 16).field(field).expected("0, 0");
            findings.push(finding.found(format!("{size}, {offset}")));
        }
        Ok(None)
    }

    /// Where the scales are, if there are any.
    fn scales(
        &self,
        source: &Source,
        h: &Header,
        findings: &mut Findings,
    ) -> Result<Option<Span>, Stop> {
        let (field, at, (size, offset)) = (&self.field, self.at + 16, self.quant);
        if self.flags & HAS_QUANT != 0 && h.version == 2 {
            return blob(source, h, at, offset, size, field).map(Some);
        }
        if size != 0 || offset != 0 {
            findings.push(
                DECLARED
                    .at(at..at + 16)
                    .field(field)
                    .message("a tensor without scales must have quantization size and offset 0")
                    .expected("0, 0")
                    .found(format!("{size}, {offset}")),
            );
        }
        Ok(None)
    }
}
