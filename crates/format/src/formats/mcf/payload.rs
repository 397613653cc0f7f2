//! A tensor as it is written: its type, what stands before the codes, its bounds.

use super::index::Entry;
use super::layout::{self, Kind};
use super::quant_info::{self, ACTIVATIONS, Record, WEIGHTS};
use crate::Error;
use crate::model::{Container, Dialect, Encoding, Scaling, Tensor};
use crate::plan::Placement;
use crate::source::View;
use crate::wire::Span;
use crate::wire::{put_u32, to_len};
use std::collections::HashMap;
use std::collections::hash_map::Entry as MapEntry;
use weighbridge_codec::DType;

/// Facts about a tensor that was read from an MCF file.
pub(super) fn facts<'a>(container: &Container, tensor: &'a Tensor) -> Option<&'a Dialect> {
    container.dialect_of("mcf").map(|_| &tensor.dialect)
}

/// Where a payload's scales and codes are, and its shape.
pub(super) type Place = ((usize, Span), (usize, Span), Vec<u64>);

/// A tensor as it is written.
pub(super) struct Payload<'a> {
    pub tensor: &'a Tensor,
    pub encoding: &'a Encoding,
    pub kind: Kind,
    pub shape: Vec<u64>,
    /// What stands before the codes.
    pub front: Option<View>,
    /// Bytes of the data behind it.
    pub bytes: u64,
    pub record: Option<Record>,
}

impl<'a> Payload<'a> {
    pub(super) fn new(
        container: &Container,
        tensor: &'a Tensor,
        shape: Vec<u64>,
        placement: &'a Placement,
        derived: &mut HashMap<Place, (f32, f32)>,
    ) -> Result<Self, Error> {
        let encoding = &placement.encoding;
        let (kind, front, domain) = match encoding {
            // Product codes are never placed here.
            Encoding::Plain(_) | Encoding::Product(_) => {
                (Kind::Plain(encoding.stored()), None, WEIGHTS)
            }
            Encoding::Blocks(b) => (Kind::Blocks(b.codec), Some(b.front.clone()), WEIGHTS),
            // Codes of four bits are read as what is stored, because their sign is not known either.
            Encoding::Scaled(scaled) if scaled.scaling == Scaling::Unknown => {
                let codes = if scaled.codes == DType::U4 { DType::I4 } else { scaled.codes };
                (Kind::PerTensor(codes), None, WEIGHTS)
            }
            Encoding::Scaled(scaled) => {
                // Only codes with a zero point may be the most negative one.
                let (scale, mut zero) = scaled.scaling.as_per_tensor().unwrap_or((1.0, None));
                let first = |block: &[u8]| quant_info::first_most_negative(scaled.codes, block);
                if zero.is_none()
                    && tensor.encoding == *encoding
                    && let Some(view) = tensor.view()
                    && view.find(first)?.is_some()
                {
                    zero = Some(0.0);
                }
                let domain = if zero.is_some() { ACTIVATIONS } else { WEIGHTS };
                (Kind::PerTensor(scaled.codes), Some(whole_front(scale, zero)), domain)
            }
        };
        let decided = tensor.target.as_ref().map(|t| t.bounds);
        let known = decided.or_else(|| facts(container, tensor)?.get("clips").and_then(clips_of));
        let needs_record =
            !matches!(kind, Kind::Plain(_)) && (encoding.has_values() || known.is_some());
        let clips = match (known, encoding.blocks(), tensor.view()) {
            (Some(known), ..) => known,
            // Many names for the same payload are no more work than one.
            (None, Some(blocks), Some(codes)) if needs_record => {
                match derived.entry((blocks.front.place(), codes.place(), shape.clone())) {
                    MapEntry::Occupied(known) => *known.get(),
                    MapEntry::Vacant(place) => *place.insert(derived_clips(tensor, encoding)?),
                }
            }
            _ if needs_record => derived_clips(tensor, encoding)?,
            _ => (0.0, 0.0),
        };
        let record = needs_record.then_some(Record { tensor: 0, domain, clips });
        Ok(Payload { tensor, encoding, kind, shape, front, bytes: placement.bytes, record })
    }

    pub(super) fn front_len(&self) -> u64 {
        self.front.as_ref().map_or(0, View::len)
    }
}

fn clips_of(fact: &serde_json::Value) -> Option<(f32, f32)> {
    let bits = |i: usize| Some(f32::from_bits(u32::try_from(fact.get(i)?.as_u64()?).ok()?));
    Some((bits(0)?, bits(1)?))
}

fn whole_front(scale: f32, zero: Option<f32>) -> View {
    let mut out = Vec::new();
    for value in [Some(scale), zero].into_iter().flatten() {
        put_u32(&mut out, value.to_bits());
        out.resize(to_len((out.len() as u64).next_multiple_of(layout::PAYLOAD_ALIGNMENT)), 0);
    }
    View::owned(out)
}

/// Bounds that the scales could have been derived from: the largest value both ways, or what the
/// outermost codes stand for.
fn derived_clips(tensor: &Tensor, encoding: &Encoding) -> Result<(f32, f32), Error> {
    if let Encoding::Scaled(scaled) = encoding {
        let (scale, zero) = scaled.scaling.as_per_tensor().unwrap_or((1.0, None));
        let largest = if scaled.codes == DType::I4 { 7.0 } else { 127.0 };
        let lowest = if zero.is_some() { -largest - 1.0 } else { -largest };
        let value = |code: f32| scale * (code - zero.unwrap_or(0.0));
        let (a, b) = (value(lowest), value(largest));
        // Not `min` and `max`: which of two zeros they give depends on the processor.
        return Ok((if b < a { b } else { a }, if b > a { b } else { a }));
    }
    let mut most = 0f64;
    tensor.for_each_block(|values| {
        let numbers = values.iter().map(|v| v.abs()).filter(|v| v.is_finite());
        most = numbers.fold(most, f64::max);
    })?;
    #[allow(clippy::cast_possible_truncation)]
    let most = most as f32;
    Ok((-most, most))
}

impl Payload<'_> {
    pub(super) fn entry(&self, data: u64) -> Entry {
        let size = self.front_len() + self.bytes;
        let (name, shape) = (self.tensor.name.clone(), self.shape.clone());
        Entry { name, kind: self.kind, shape, data, size, span: 0..0 }
    }
}

/// Finds payloads that would be the same bytes.
pub(super) struct SameContent<'a> {
    dedup: bool,
    known: HashMap<Content, Vec<(&'a Payload<'a>, u64)>>,
}

/// Checksum and length.
pub(super) type Content = (u32, u64);

impl<'a> SameContent<'a> {
    pub(super) fn new(dedup: bool) -> Self {
        SameContent { dedup, known: HashMap::new() }
    }

    /// What to look for; nothing unless it was asked for.
    pub(super) fn content(&self, p: &Payload) -> Result<Option<Content>, Error> {
        let view = p.tensor.view().filter(|v| self.dedup && !v.is_empty());
        let Some(view) = view else { return Ok(None) };
        let mut sum = crc32fast::Hasher::new();
        view.for_each_block(1 << 20, |block| {
            sum.update(block);
            Ok::<_, Error>(())
        })?;
        Ok(Some((sum.finalize(), view.len())))
    }

    pub(super) fn find(&self, p: &Payload, content: Option<Content>) -> Result<Option<u64>, Error> {
        for (other, at) in content.and_then(|c| self.known.get(&c)).into_iter().flatten() {
            let alike = p.encoding == other.encoding
                && p.tensor.encoding == other.tensor.encoding
                && p.kind == other.kind
                && p.shape == other.shape;
            if let Some((a, b)) = p.tensor.view().zip(other.tensor.view()).filter(|_| alike)
                && a.same_bytes(b)?
            {
                return Ok(Some(*at));
            }
        }
        Ok(None)
    }

    pub(super) fn add(&mut self, p: &'a Payload<'a>, content: Option<Content>, at: u64) {
        if let Some(content) = content {
            self.known.entry(content).or_default().push((p, at));
        }
    }
}
