//! Bytes to container: where the shape comes from, and whether it fits.

use super::super::Stop;
use super::Kind;
use super::meta::{About, DIM_HINT, Meta, Told};
use super::quantize::normalize;
use super::rules::*;
use crate::model::{Container, EMBEDDING, Encoding, Subject, Tensor, Value};
use crate::wire::{Findings, Regions, What, numel, to_len};
use crate::{Advice, Error, Input, Options};
use weighbridge_codec::DType;
use weighbridge_codec::parallel::*;

/// Values in a row when nothing says how many: those of CLIP ViT-B/32.
const USUAL_DIM: u64 = 512;

pub(super) fn read(
    kind: Kind,
    input: &Input,
    options: &Options,
    findings: &mut Findings,
) -> Result<Container, Stop> {
    let size = input.source.len();
    let asked = options.count("dim")?;
    let about = About::find(input)?;
    let meta = match &about {
        Some(about) => Some(Meta::parse(about, kind, findings.is_thorough(), findings)?),
        None => None,
    };
    let meta = about.zip(meta);
    let said = meta.as_ref().and_then(|(_, meta)| meta.shape);
    // What is said of rows that were cut otherwise is true of none of these.
    let overridden = matches!((asked, said), (Some(dim), Some([_, other])) if dim != other);
    let shape = match (asked, &meta) {
        (Some(dim), Some((about, Meta { shape: Some([_, other]), .. }))) if overridden => {
            let finding = about.broken(OVERRIDDEN, 0..0).field(about.member("shape"));
            let finding = finding.expected(format!("{dim}, as the option dim says")).found(other);
            findings.push(finding.hint(format!(
                "the option is taken, and the records of {} are not used",
                about.name
            )));
            shape_of_size(kind, size, dim)?
        }
        (_, Some((about, Meta { shape: Some(shape), .. }))) => {
            check_shape(kind, size, *shape, about)?
        }
        (Some(dim), _) => shape_of_size(kind, size, dim)?,
        (None, _) => {
            findings.push(
                DIMENSION
                    .at(0..size)
                    .expected("a meta.json beside the file, or the option dim")
                    .found(format!("neither; {USUAL_DIM} is assumed")),
            );
            shape_of_size(kind, size, USUAL_DIM)?
        }
    };
    let [rows, dim] = shape;
    let mut ignored = Vec::new();
    let (mut layout, mut records, mut metadata) = ("no meta.json".to_owned(), None, Vec::new());
    if let Some((about, _)) = meta.as_ref().filter(|_| overridden) {
        // Said in the report of a conversion.
        ignored.push(Subject::File(format!("records of {} (dim was given)", about.name)));
    } else if let Some((about, meta)) = meta {
        layout = meta.layout;
        metadata.extend(meta.embedding.map(|text| (EMBEDDING.to_owned(), Value::Text(text))));
        records = match meta.records {
            Told::Records(records) => Some(records),
            Told::Outline(outline) => about.records(outline, rows, input),
        };
        if let Some(records) = records.as_ref().filter(|records| records.outline().is_none()) {
            let count = records.count()?;
            if count != rows {
                findings.push(about.miscounted(rows, count));
            }
        }
    }
    let view = input.source.view(0..size).ok_or_else(|| SHAPE.at(0..size))?;
    let mut tensor = Tensor::unchecked("embeddings", kind.encoding(), shape.to_vec(), view);
    if options.flag("renormalize") {
        tensor = renormalized(&tensor, dim)?;
    }
    let mut regions = Regions::default();
    regions.add(0..size, What::Tensor(0));
    Ok(Container {
        format: kind.info().id,
        layout,
        size,
        tensors: vec![tensor],
        metadata,
        records,
        ignored,
        regions,
        ..Container::default()
    })
}

/// The stated shape, if the file has its size.
fn check_shape(kind: Kind, size: u64, shape: [u64; 2], about: &About) -> Result<[u64; 2], Stop> {
    let [rows, dim] = shape;
    let impossible = |expected: &str| {
        let finding = about.broken(SHAPE, 0..0).field(about.member("shape"));
        Stop::from(finding.expected(expected).found(format!("[{rows}, {dim}]")))
    };
    if dim == 0 {
        return Err(impossible("at least one value in a row"));
    }
    let bytes = numel(&shape).and_then(|n| kind.stored().byte_len(n));
    let bytes = bytes.ok_or_else(|| impossible("fewer than 2^64 bytes"))?;
    if bytes == size {
        return Ok(shape);
    }
    let message = format!(
        "Embedding file size mismatch: expected {bytes} bytes ({rows} cards × {dim} dims), got {size} bytes."
    );
    let as_other = |dtype: DType| numel(&shape).and_then(|n| dtype.byte_len(n)) == Some(size);
    let reads = |kind: Kind| Advice::set_to("from", kind.info().id, "reads them");
    let hint: Advice = if as_other(DType::F16) {
        "that is the size of float16 values, the retired export; re-export embeddings using export_for_browser.py".into()
    } else if as_other(DType::F32) {
        Advice::from("that is the size of float32 values").and(reads(Kind::F32))
    } else if as_other(DType::I8) {
        Advice::from("that is the size of int8 values").and(reads(Kind::I8))
    } else if size > bytes {
        let more = match size - bytes {
            1 => "1 byte is".to_owned(),
            more => format!("{more} bytes are"),
        };
        Advice::from(format!(
            "{more} appended after the last row, or {} belongs to other rows",
            about.name
        ))
        .and("re-export embeddings using export_for_browser.py")
    } else {
        "re-export embeddings using export_for_browser.py".into()
    };
    Err(mismatch(size, message, format!("{bytes} bytes"), hint))
}

/// As many rows as the file has room for.
fn shape_of_size(kind: Kind, size: u64, dim: u64) -> Result<[u64; 2], Stop> {
    let width = kind.stored().byte_len(dim).filter(|&w| w > 0);
    if let Some(width) = width.filter(|w| size.is_multiple_of(*w)) {
        return Ok([size / width, dim]);
    }
    let message = format!(
        "Embedding file size mismatch: {size} bytes are not a whole number of rows of {dim} values."
    );
    let width = width.map_or_else(|| "too many".to_owned(), |w| w.to_string());
    Err(mismatch(size, message, format!("a multiple of {width} bytes"), DIM_HINT))
}

fn mismatch(size: u64, message: String, expected: String, hint: Advice) -> Stop {
    let finding = SIZE.at(0..size).message(message).expected(expected);
    finding.found(format!("{size} bytes")).hint(hint).into()
}

/// The values with every row divided by its norm. They are no codes any more.
fn renormalized(tensor: &Tensor, dim: u64) -> Result<Tensor, Error> {
    let bytes = to_len(DType::F32.byte_len(tensor.count()).unwrap_or(0));
    let mut out = vec![0; bytes];
    let fill = |(row, out): (usize, &mut [u8])| {
        let mut values = tensor.values_f32(row as u64 * dim, to_len(dim))?;
        normalize(&mut values);
        for (slot, value) in out.chunks_exact_mut(4).zip(values) {
            slot.copy_from_slice(&value.to_le_bytes());
        }
        Ok(())
    };
    out.par_chunks_mut(to_len(dim).saturating_mul(4)).enumerate().try_for_each(fill)?;
    let encoding = Encoding::Plain(DType::F32);
    let view = crate::source::View::owned(out);
    Ok(Tensor::unchecked(tensor.name.clone(), encoding, tensor.shape.clone(), view))
}
