//! Fitting a container into a format: what stays, what is stored differently, what is lost.

use super::{Changed, Loss, Report};
use crate::model::{
    Arrangement, BLOCK, Container, Data, Encoding, NoteKind, Once, Scaled, Subject, Tensor, Value,
};
use crate::wire::to_len;
use crate::{Advice, Error};
use std::borrow::Cow;
use weighbridge_codec::DType;
use weighbridge_codec::block::BlockCodec;
use weighbridge_codec::convert::{self, Change};

/// How much of something a format can keep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keeps {
    /// All of it, with its types.
    Typed,
    /// As text only.
    Text,
    /// None of it.
    Nothing,
}

/// What a format can hold. The conversion matrix, the help and the table of formats derive from it.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Holds {
    /// Plain element types.
    pub dtypes: &'static [DType],
    /// Integers with a scale: which.
    pub scaled: fn(&Scaled) -> bool,
    /// Codes in blocks: by which codecs.
    pub blocks: &'static [&'static dyn BlockCodec],
    /// Product-quantized matrices.
    pub product: bool,
    /// Fewest and most dimensions.
    pub rank: (usize, usize),
    /// Dimensions of zero.
    pub empty: bool,
    /// Exactly one tensor.
    pub single: bool,
    /// How much of the metadata.
    pub metadata: Keeps,
    /// Entries of the metadata that have a place of their own where others have none.
    pub entries: fn(&str, &Value) -> bool,
    /// Size variables.
    pub sizevars: bool,
    /// Tokens or words.
    pub vocabulary: bool,
    /// How unknown words are made of parts, with the parts' rows.
    pub subwords: bool,
    /// Files within the file.
    pub attachments: bool,
    /// Tensors that are declared without data: of which encodings.
    pub declared: fn(&Encoding) -> bool,
    /// A record for each row.
    pub records: bool,
}

impl Holds {
    /// Whatever a container has.
    pub fn everything(&self) -> bool {
        self.subwords && self.records && self.attachments && self.sizevars
    }

    /// Words with a vector each, and little else.
    pub fn words_only(&self) -> bool {
        self.vocabulary && (self.single || self.rank.1 <= 2)
    }

    /// Tensors in this encoding as they are.
    pub fn accepts(&self, encoding: &Encoding) -> bool {
        match encoding {
            Encoding::Plain(dtype) => self.dtypes.contains(dtype),
            Encoding::Scaled(scaled) => (self.scaled)(scaled),
            Encoding::Blocks(blocks) => self.blocks.contains(&blocks.codec),
            Encoding::Product(_) => self.product,
        }
    }

    /// A format that has no place for anything: the others say what they have more.
    pub const NOTHING: Holds = Holds {
        dtypes: &[],
        scaled: |_| false,
        blocks: &[],
        product: false,
        rank: (0, usize::MAX),
        empty: true,
        single: false,
        metadata: Keeps::Nothing,
        entries: |_, _| false,
        sizevars: false,
        vocabulary: false,
        subwords: false,
        attachments: false,
        declared: |_| false,
        records: false,
    };
}

/// How one tensor of a container is stored in the target.
#[derive(Clone, Debug)]
pub struct Placement {
    /// Its number in the container.
    pub tensor: usize,
    /// How it is stored.
    pub encoding: Encoding,
    /// The size of its data then.
    pub bytes: u64,
}

/// Lists what a format can't hold of everything but the tensors, and places the tensors.
///
/// # Errors
/// [`Error::Refused`] if the format holds one tensor and there are others, or it can't hold the type
/// that was asked for.
pub fn fit(
    container: &Container,
    holds: &Holds,
    report: &mut Report,
) -> Result<Vec<Placement>, Error> {
    report.ignored.extend(container.ignored.iter().cloned());
    for note in &container.notes {
        match (note.kind, &note.subject) {
            (NoteKind::Lost, Some(subject)) => report.lose(subject.clone(), note.text.clone()),
            _ => report.warnings.push(note.clone()),
        }
    }
    for (key, value) in &container.metadata {
        match holds.metadata {
            _ if (holds.entries)(key, value) => {}
            Keeps::Nothing if container.restates(key, value) => {
                report.ignored.push(Subject::Metadata(key.clone()));
            }
            Keeps::Typed => {}
            Keeps::Text if value.as_text().is_some() => {}
            Keeps::Text if value.to_plain_text().is_some() => {
                let subject = Subject::Metadata(key.clone());
                report.losses.push(Loss::as_text(subject, &value.type_name()));
            }
            _ => report.lose(Subject::Metadata(key.clone()), "the format has no place for it"),
        }
    }
    if !holds.sizevars {
        for (name, value) in &container.sizevars {
            report.lose(Subject::SizeVariable(name.clone(), *value), "the format has none");
        }
    }
    if let Some(v) = container.vocabulary.as_ref().filter(|_| !holds.vocabulary) {
        report.lose(Subject::Vocabulary(v.len() as u64), "the format has none");
    }
    for a in container.attachments.iter().filter(|_| !holds.attachments) {
        // What the metadata or the vocabulary says as well is lost only where these are lost too.
        let listed = holds.vocabulary && container.lists_words(a)?;
        if listed || (a.described && holds.metadata != Keeps::Nothing) {
            report.ignored.push(Subject::File(a.name.clone()));
        } else {
            report.lose(Subject::Attachment(a.name.clone()), "the format has none");
        }
    }
    if let Some(r) = container.records.as_ref().filter(|_| !holds.records) {
        report.lose(Subject::Records(r.count()?), "the format has none");
    }
    if holds.single && container.tensors.is_empty() {
        return Err(Error::refused("the format holds exactly one tensor, and this has none", ""));
    }
    if holds.single && container.tensors.len() != 1 {
        return Err(Error::refused(
            format!("the format holds exactly one tensor, this has {}", container.tensors.len()),
            Advice::set("select", "chooses one"),
        ));
    }
    place(container, holds, report)
}

/// Chooses the encoding of every tensor.
///
/// # Errors
/// [`Error::Refused`] if the format can't hold the type that was asked for.
pub fn place(
    container: &Container,
    holds: &Holds,
    report: &mut Report,
) -> Result<Vec<Placement>, Error> {
    let asked = container.dtype;
    if let Some(dtype) = asked.filter(|d| !holds.dtypes.contains(d)) {
        let advice = Advice::LeaveOut { option: "dtype" };
        return Err(Error::refused(format!("the format can't hold {dtype}"), advice));
    }
    let mut placements = Vec::with_capacity(container.tensors.len());
    let mut once = Once::new([container]);
    for (index, tensor) in container.tensors.iter().enumerate() {
        if let Some(why) = misfit(tensor, holds) {
            report.lose(Subject::Tensor(tensor.name.clone()), why);
            continue;
        }
        let choice = if tensor.has_data() {
            // What was decided for a tensor, or remembered of it, is its own.
            match tensor.target.is_none() && tensor.origin.is_none() {
                true => once.of([tensor], || choose(tensor, holds, asked))?,
                false => choose(tensor, holds, asked)?,
            }
        } else {
            // A declaration has no values to convert: its type is held or it is not.
            let own = tensor.origin.clone().unwrap_or_else(|| tensor.encoding.clone());
            let held = (holds.declared)(&own);
            held.then_some((own, Change::default()))
        };
        let Some((encoding, change)) = choice else {
            let why = format!("the format has no type for {}", tensor.encoding.name());
            report.lose(Subject::Tensor(tensor.name.clone()), why);
            continue;
        };
        lose_change(tensor, &encoding, change, report);
        if encoding.has_values() && !tensor.encoding.has_values() {
            report.losses.push(Loss::codes_as_numbers(&tensor.name));
        }
        let from = stored_otherwise(tensor);
        if encoding == tensor.encoding && from.is_none() {
            report.kept += 1;
        } else if tensor.has_data() {
            let from = from.unwrap_or_else(|| tensor.encoding.name());
            report.changed.push(Changed::new(&tensor.name, from, encoding.name()));
        }
        let bytes = if tensor.has_data() { encoding.byte_len(&tensor.shape) } else { Some(0) };
        let bytes =
            bytes.ok_or_else(|| Error::refused(format!("{:?} is too large", tensor.name), ""))?;
        placements.push(Placement { tensor: index, encoding, bytes });
    }
    Ok(placements)
}

/// How a tensor lies in its file, if not as its type says: its bytes change then, wherever it goes.
fn stored_otherwise(tensor: &Tensor) -> Option<Cow<'static, str>> {
    let order = match &tensor.data {
        Data::Rows(rows) => return rows.computed_from().map(Cow::Borrowed),
        Data::Stored(_, Arrangement { big_endian: true, column_major: false }) => "big-endian",
        Data::Stored(_, Arrangement { big_endian: false, column_major: true }) => {
            "column by column"
        }
        Data::Stored(_, Arrangement { big_endian: true, column_major: true }) => {
            "big-endian, column by column"
        }
        _ => return None,
    };
    Some(format!("{}, {order}", tensor.encoding.name()).into())
}

/// Lists what a tensor loses when it becomes f32 because its values are computed with.
///
/// # Errors
/// If the values can't be read.
pub fn lose_precision(tensor: &Tensor, report: &mut Report) -> Result<(), Error> {
    if let Encoding::Plain(dtype) = tensor.encoding
        && dtype != DType::F32
        && !dtype.wider().contains(&DType::F32)
    {
        let change = measure(tensor, DType::F32)?;
        lose_change(tensor, &Encoding::Plain(DType::F32), change, report);
    }
    Ok(())
}

fn lose_change(tensor: &Tensor, encoding: &Encoding, change: Change, report: &mut Report) {
    if change.changed == 0 {
        return;
    }
    let (from, to) = (tensor.encoding.name(), encoding.name());
    let Change { changed, largest } = change;
    report.losses.push(Loss::rounded(&tensor.name, from, to, changed, tensor.count(), largest));
}

fn misfit(tensor: &Tensor, holds: &Holds) -> Option<String> {
    let rank = tensor.shape.len();
    let (low, high) = holds.rank;
    let own = tensor.origin.as_ref().unwrap_or(&tensor.encoding);
    if !tensor.has_data() && !(holds.declared)(own) {
        Some("it is declared without data, and the format can't say that".to_owned())
    } else if rank < low || rank > high {
        Some(format!("it has {rank} dimensions, the format takes {low} to {high}"))
    } else if !holds.empty && tensor.shape.contains(&0) {
        Some("it is empty, and the format takes no dimensions of zero".to_owned())
    } else {
        None
    }
}

/// The encoding a tensor gets, and what that changes; `None` when nothing can hold it.
fn choose(
    tensor: &Tensor,
    holds: &Holds,
    asked: Option<DType>,
) -> Result<Option<(Encoding, Change)>, Error> {
    let plain = |dtype: DType| Encoding::Plain(dtype);
    let unchanged = |encoding: &Encoding| Ok(Some((encoding.clone(), Change::default())));
    let own = &tensor.encoding;
    if let Some(target) = tensor.target.as_ref().filter(|t| holds.accepts(&t.encoding)) {
        return unchanged(&target.encoding);
    }
    if let Some(dtype) = asked.filter(|_| own.is_real()) {
        return Ok(Some((plain(dtype), measure(tensor, dtype)?)));
    }
    if let Some(origin) = tensor.origin.as_ref().filter(|o| holds.accepts(o))
        && fits_origin(tensor, origin)?
    {
        return unchanged(origin);
    }
    if holds.accepts(own) {
        return unchanged(own);
    }
    let first_held = |list: &[DType]| list.iter().copied().find(|d| holds.dtypes.contains(d));
    if !own.has_values() {
        let held = first_held(&[&[own.stored()], own.stored().wider()].concat());
        return Ok(held.map(|d| (plain(d), Change::default())));
    }
    let Encoding::Plain(stored) = *own else {
        // Dequantizing gives f32 by definition.
        let held = first_held(&[DType::F32, DType::F64]);
        return Ok(held.map(|d| (plain(d), Change::default())));
    };
    if let Some(wider) = first_held(stored.wider()) {
        return unchanged(&plain(wider));
    }
    if stored == DType::C64 {
        return Ok(None);
    }
    // Nothing holds every value of the type; perhaps something holds the values that are there.
    let narrower = [DType::I32, DType::U32, DType::F32, DType::F16];
    let tries = narrower
        .into_iter()
        .filter(|d| holds.dtypes.contains(d) && (d.is_float() || stored.is_integer()))
        .map(|d| Ok((plain(d), measure(tensor, d)?)))
        .collect::<Result<Vec<_>, Error>>()?;
    let exact = tries.iter().find(|(_, c)| c.changed == 0).cloned();
    Ok(exact.or_else(|| tries.into_iter().find(|(e, _)| e.is_real())))
}

/// Whether a tensor's values still are those of the encoding that it had. Values that were changed
/// on the way, so that they no longer fit, stay as they are.
fn fits_origin(tensor: &Tensor, origin: &Encoding) -> Result<bool, Error> {
    Ok(match (origin, &tensor.encoding) {
        (Encoding::Plain(dtype), _) => measure(tensor, *dtype)?.changed == 0,
        // Codes in a wider type.
        (Encoding::Scaled(codes), Encoding::Scaled(_)) => {
            measure_codes(tensor, codes.codes)?.changed == 0
        }
        // Values are looked at one by one when they are written.
        _ => true,
    })
}

/// What storing a tensor's codes in a type of another width would change.
fn measure_codes(tensor: &Tensor, to: DType) -> Result<Change, Error> {
    let codes = Tensor { encoding: Encoding::Plain(tensor.encoding.stored()), ..tensor.clone() };
    measure(&codes, to)
}

/// What storing a tensor as `to` would change.
///
/// # Errors
/// If the values can't be read.
pub fn measure(tensor: &Tensor, to: DType) -> Result<Change, Error> {
    let mut change = Change::default();
    let (mut raw, mut floats, mut decoded) = (Vec::new(), Vec::new(), Vec::new());
    for start in (0..tensor.count()).step_by(BLOCK) {
        let n = to_len(tensor.count() - start).min(BLOCK);
        change.add(match &tensor.encoding {
            Encoding::Plain(dtype) => {
                convert::measure(*dtype, to, tensor.canonical(start, n, &mut raw)?, n)
            }
            _ => {
                floats.resize(n, 0f32);
                tensor.decode(start, &mut floats, &mut raw)?;
                decoded.clear();
                decoded.extend(floats.iter().flat_map(|v| v.to_le_bytes()));
                convert::measure(DType::F32, to, &decoded, n)
            }
        });
    }
    Ok(change)
}
