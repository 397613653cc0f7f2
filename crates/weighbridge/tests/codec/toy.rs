//! A codec and a format that the library knows nothing of.
//!
//! The codec is GGUF's Q8_0: blocks of 32 values are an f16 scale and 32 codes of eight bits behind
//! it. The format is a list of matrices:
//!
//! ```text
//! TOYBLOCK  count: u32
//! each: length of the name: u32, name, rows: u64, cols: u64, type: u32 (0 f32, 1 blocks), data
//! ```

use half::f16;
use std::sync::Arc;
use weighbridge::codec::DType;
use weighbridge::codec::block::{BlockCodec, Flaw, FlawKind, Front, FrontMut};
use weighbridge::codec::block::{Recipe, Region, ScaleTooLarge};
use weighbridge::formats::Stop;
use weighbridge::model::BlockCoded;
use weighbridge::plan::{FilePlan, Holds, Piece, Report, fit};
use weighbridge::wire::{Cursor, Rule, Severity};
use weighbridge::{
    Container, Encoding, Error, Findings, Format, FormatInfo, Input, Options, Plan,
    QuantizedContent, Tensor, View,
};

const BLOCK: usize = 32;
const BLOCK_BYTES: usize = 2 + BLOCK;

#[derive(Debug)]
pub(crate) struct Interleaved;

impl BlockCodec for Interleaved {
    fn name(&self) -> &'static str {
        "toy8"
    }

    fn codes(&self) -> Region {
        Region { values: BLOCK, bytes: BLOCK_BYTES }
    }

    fn decode(&self, _: Front<'_>, codes: &[u8], start: usize, out: &mut [f32]) {
        for (i, value) in (start..).zip(out) {
            let block = &codes[i / BLOCK * BLOCK_BYTES..][..BLOCK_BYTES];
            let code = block[2 + i % BLOCK].cast_signed();
            *value = f16::from_le_bytes([block[0], block[1]]).to_f32() * f32::from(code);
        }
    }

    fn encode(
        &self,
        recipe: &Recipe<'_>,
        values: &[f32],
        _: FrontMut<'_>,
        codes: &mut [u8],
    ) -> Result<(), ScaleTooLarge> {
        assert_eq!(codes.len(), self.codes().size(values.len()));
        let blocks = values.chunks(BLOCK).zip(codes.chunks_exact_mut(BLOCK_BYTES));
        for (index, (values, block)) in blocks.enumerate() {
            let clamped = |v: &f32| v.clamp(recipe.clip.0, recipe.clip.1);
            let scale = values.iter().map(clamped).fold(0f32, |most, v| most.max(v.abs())) / 127.0;
            let inverse = if scale == 0.0 { 0.0 } else { 1.0 / scale };
            let (stored, codes) = block.split_at_mut(2);
            stored.copy_from_slice(&f16::from_f32(scale).to_le_bytes());
            codes.fill(0);
            for (code, value) in codes.iter_mut().zip(values) {
                *code = ((clamped(value) * inverse).round() as i8).cast_unsigned();
            }
            if !f16::from_f32(scale).is_finite() {
                return Err(ScaleTooLarge { index, scale });
            }
        }
        Ok(())
    }

    fn make_codes(&self, recipe: &Recipe<'_>, values: &[f32], _: Front<'_>, codes: &mut [u8]) {
        // What could not be stored was refused when the values were looked at first.
        let _ = self.encode(recipe, values, Default::default(), codes);
    }

    fn check(&self, _: Front<'_>, codes: &[u8], _: usize, found: &mut dyn FnMut(Flaw)) {
        for (i, block) in codes.chunks_exact(BLOCK_BYTES).enumerate() {
            let scale = f16::from_le_bytes([block[0], block[1]]).to_f32();
            if !scale.is_finite() {
                let at = i * BLOCK_BYTES;
                found(Flaw { kind: FlawKind::Scale(scale), region: None, bytes: at..at + 2 });
            }
        }
    }
}

const MALFORMED: Rule =
    Rule { id: "TOY-01", severity: Severity::Error, title: "the file is not what it says" };
const SCALE: Rule =
    Rule { id: "TOY-02", severity: Severity::Error, title: "a scale is not a finite number" };

const INFO: FormatInfo = {
    let mut holds = Holds::NOTHING;
    holds.dtypes = &[DType::F32];
    holds.blocks = &[&Interleaved];
    holds.rank = (2, 2);
    let mut info = FormatInfo::new("toy", "toy blocks");
    info.extensions = &["toy"];
    info.magic = b"TOYBLOCK";
    info.holds = holds;
    info.rules = &[MALFORMED, SCALE];
    info.quantized = Some(QuantizedContent::Weights);
    info
};

/// The format, to be added with `Formats::with`.
pub(crate) static TOY: Format = {
    let mut format = Format::new(INFO);
    format.read = Some(read);
    format.check = check;
    format.lay_out = Some(lay_out);
    format
};

/// Codes of the codec, which has nothing before them.
pub(crate) fn blocks() -> Encoding {
    Encoding::Blocks(Arc::new(BlockCoded::new(&Interleaved, View::owned(Vec::new()))))
}

fn read(input: &Input, _: &Options, _: &mut Findings) -> Result<Container, Stop> {
    let mut cursor = Cursor::new(&input.source, 0..input.source.len(), MALFORMED);
    cursor.skip(8, "magic")?;
    let mut container = Container { format: INFO.id, ..Container::default() };
    container.size = input.source.len();
    for _ in 0..cursor.u32("count")? {
        let length = cursor.u32("length")?;
        let name = cursor.text(length.into(), "name", MALFORMED)?.to_owned();
        let shape = cursor.u64_list(2, "shape")?;
        let encoding = match cursor.u32("type")? {
            0 => Encoding::Plain(DType::F32),
            _ => blocks(),
        };
        let start = cursor.position();
        let bad = || MALFORMED.at(start..input.source.len()).field(format!("tensor {name:?}"));
        let end = encoding.byte_len(&shape).and_then(|n| start.checked_add(n)).ok_or_else(bad)?;
        let view = input.source.view(start..end).ok_or_else(bad)?;
        cursor.skip(end - start, "data")?;
        container.tensors.push(Tensor::stored(&name, encoding, shape, view)?);
    }
    Ok(container)
}

fn check(container: &Container, _: &Input, findings: &mut Findings) -> Result<(), Error> {
    for tensor in &container.tensors {
        let (Some(blocks), Some(codes)) = (tensor.encoding.blocks(), tensor.view()) else {
            continue;
        };
        let cols = usize::try_from(tensor.shape[1]).unwrap();
        blocks.for_each_row(codes, &tensor.shape, |row, front, bytes| {
            let start = codes.span().start + row * bytes.len() as u64;
            blocks.codec.check(front, bytes, cols, &mut |flaw| {
                let span = start + flaw.bytes.start as u64..start + flaw.bytes.end as u64;
                findings.push(SCALE.at(span).field(format!("tensor {:?}", tensor.name)));
            });
            true
        })?;
    }
    Ok(())
}

fn lay_out(container: &Container, _: &Options, info: &FormatInfo) -> Result<Plan, Error> {
    let mut report = Report::new();
    let placements = fit(container, &info.holds, &mut report)?;
    let mut file = FilePlan::default();
    let mut head = info.magic.to_vec();
    head.extend(u32::try_from(placements.len()).unwrap().to_le_bytes());
    for placement in placements {
        let tensor = &container.tensors[placement.tensor];
        head.extend(u32::try_from(tensor.name.len()).unwrap().to_le_bytes());
        head.extend(tensor.name.as_bytes());
        head.extend(tensor.shape.iter().flat_map(|n| n.to_le_bytes()));
        head.extend(u32::from(placement.encoding.is_quantized()).to_le_bytes());
        file.push(Piece::Bytes(std::mem::take(&mut head)));
        file.push(Piece::tensor(tensor, &placement.encoding, placement.bytes));
    }
    file.push(Piece::Bytes(head));
    Ok(Plan::single(file, report))
}
