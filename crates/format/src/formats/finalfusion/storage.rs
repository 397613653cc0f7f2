//! Matrices, plain and quantized, and norms.

use super::super::Stop;
use super::layout::{self, Chunk, TYPES, padding};
use super::rules::*;
use crate::model::{Encoding, MATRIX, NORMS, Product, Tensor};
use crate::source::{Source, View};
use crate::wire::{Cursor, Regions, Span, What, put_u32, put_u64};
use std::sync::Arc;
use weighbridge_codec::DType;

/// Reads a matrix or norms; `c` covers the chunk's data.
pub(super) fn read(
    chunk: Chunk,
    draft: bool,
    c: &mut Cursor,
    source: &Source,
    index: usize,
    regions: &mut Regions,
) -> Result<Tensor, Stop> {
    let mut reader = Reader { draft, c, source, index, regions };
    match chunk {
        Chunk::Norms => reader.norms(),
        Chunk::Quantized => reader.quantized(),
        Chunk::DraftMatrix if reader.is_quantized()? => reader.quantized(),
        _ => reader.plain(),
    }
}

struct Reader<'a, 'b> {
    draft: bool,
    c: &'a mut Cursor<'b>,
    source: &'a Source,
    /// The tensor's number.
    index: usize,
    regions: &'a mut Regions,
}

impl Reader<'_, '_> {
    fn plain(&mut self) -> Result<Tensor, Stop> {
        let start = self.c.position();
        let rows = self.c.u64("rows")?;
        let cols = self.c.u32("columns")?;
        let dtype = self.dtype("data type")?;
        let shape = vec![rows, u64::from(cols)];
        let fields = start..self.c.position();
        self.regions.add(fields.clone(), What::Structure("matrix parameters"));
        if cols == 0 {
            // Nothing would bound the number of rows.
            let finding = SIZES.at(fields).field("columns").expected("1 or more");
            return Err(finding.found(cols).into());
        }
        let encoding = Encoding::Plain(dtype);
        let bytes = encoding.byte_len(&shape);
        self.pad(dtype.bits() / 8, bytes)?;
        let view = self.data(bytes, &fields, "matrix", What::Tensor(self.index))?;
        Ok(Tensor::unchecked(MATRIX, encoding, shape, view))
    }

    fn norms(&mut self) -> Result<Tensor, Stop> {
        let start = self.c.position();
        let count = self.c.u64("number of norms")?;
        let dtype = self.dtype("data type of norms")?;
        let fields = start..self.c.position();
        if dtype != DType::F32 {
            let finding = TYPE.at(fields.end - 4..fields.end).field("data type of norms");
            return Err(finding.expected("10 (f32)").found(dtype).into());
        }
        self.regions.add(fields.clone(), What::Structure("norm parameters"));
        let bytes = DType::F32.byte_len(count);
        self.pad(4, bytes)?;
        let view = self.data(bytes, &fields, "norms", What::Tensor(self.index))?;
        Ok(Tensor::unchecked(NORMS, Encoding::Plain(DType::F32), vec![count], view))
    }

    fn quantized(&mut self) -> Result<Tensor, Stop> {
        let start = self.c.position();
        let sizes = Sizes::read(self.c)?;
        let fields = start..self.c.position();
        self.regions.add(fields.clone(), What::Structure("quantizer parameters"));
        let wrong = |expected: &str, found: String| {
            let finding = SIZES.at(fields.clone()).expected(expected);
            Stop::from(finding.found(found))
        };
        if sizes.projection > 1 || sizes.norms > 1 {
            let found = format!("{} and {}", sizes.projection, sizes.norms);
            return Err(wrong("flags of 0 or 1 for projection and norms", found));
        }
        if sizes.types != [layout::U8, layout::F32] {
            let finding = TYPE.at(fields.end - 8..fields.end).field("types of the quantizer");
            let name = |n: u32| type_name(n).map_or_else(|| n.to_string(), str::to_owned);
            let found = format!("{} and {}", name(sizes.types[0]), name(sizes.types[1]));
            return Err(finding.expected("u8 and f32").found(found).into());
        }
        let (parts, dim) = (u64::from(sizes.parts), u64::from(sizes.dim));
        if parts == 0 || dim == 0 || !dim.is_multiple_of(parts) {
            let found = format!("{dim} values in {parts} parts");
            return Err(wrong("a number of parts that divides the length of vectors", found));
        }
        let centroids = u64::from(sizes.centroids);
        if !(1..=256).contains(&centroids) {
            return Err(wrong("1 to 256 centroids", centroids.to_string()));
        }
        self.pad(4, sizes.data_len())?;
        let scales = What::Scales(self.index);
        let square = DType::F32.byte_len(dim * dim);
        let projection = (sizes.projection == 1)
            .then(|| self.data(square, &fields, "projection", scales))
            .transpose()?;
        let values =
            self.data(DType::F32.byte_len(dim * centroids), &fields, "centroids", scales)?;
        let norms = DType::F32.byte_len(sizes.rows);
        let norms = (sizes.norms == 1)
            .then(|| self.data(norms, &fields, "quantizer norms", scales))
            .transpose()?;
        let codes = sizes.rows.checked_mul(parts);
        let view = self.data(codes, &fields, "codes", What::Tensor(self.index))?;
        let product = Product::new([dim, parts, centroids], values, projection, norms);
        let product = product.ok_or_else(|| wrong("sizes that fit", String::new()))?;
        let encoding = Encoding::Product(Arc::new(product));
        Ok(Tensor::unchecked(MATRIX, encoding, vec![sizes.rows, dim], view))
    }

    /// In the draft both kinds of matrices have one number: only one of the two readings accounts
    /// for the whole chunk.
    fn is_quantized(&self) -> Result<bool, Stop> {
        let mut c = self.c.clone();
        let Some(sizes) = Stop::unless_broken(Sizes::read(&mut c))? else { return Ok(false) };
        let right = sizes.types == [layout::U8, layout::F32] && sizes.parts > 0;
        let rest = c.remaining();
        Ok(right && sizes.data_len().is_some_and(|n| n <= rest && rest - n < 8))
    }

    /// The zeros in front of data of so many bytes.
    fn pad(&mut self, size: u64, bytes: Option<u64>) -> Result<(), Stop> {
        let start = self.c.position();
        // The draft says only that data is aligned; how, its length tells.
        let rest = self.c.remaining();
        let derived = bytes.and_then(|b| rest.checked_sub(b)).filter(|p| *p < 8);
        let n = match derived {
            Some(derived) if self.draft => derived,
            _ => padding(start, size, self.draft),
        };
        self.c.skip(n, "padding")?;
        self.regions.add(start..start + n, What::Padding);
        Ok(())
    }

    fn data(
        &mut self,
        bytes: Option<u64>,
        fields: &Span,
        field: &str,
        what: What,
    ) -> Result<View, Stop> {
        let Some(bytes) = bytes.filter(|b| *b <= self.c.remaining()) else {
            let expected =
                bytes.map_or("fewer than 2^64 bytes".to_owned(), |b| format!("{b} bytes"));
            let finding = LENGTH.at(fields.clone()).field(field).expected(expected);
            return Err(finding.found(format!("{} bytes in the chunk", self.c.remaining())).into());
        };
        let start = self.c.position();
        self.c.skip(bytes, field)?;
        self.regions.add(start..start + bytes, what);
        self.source
            .view(start..start + bytes)
            .ok_or_else(|| LENGTH.at(fields.clone()).field(field).into())
    }

    fn dtype(&mut self, field: &str) -> Result<DType, Stop> {
        let at = self.c.position();
        let number = self.c.u32(field)?;
        let known = usize::try_from(number).ok().and_then(|n| TYPES.get(n));
        match known {
            Some((_, Some(dtype))) => Ok(*dtype),
            Some((name, None)) => {
                let finding = TYPE.at(at..at + 4).field(field).expected("a type of up to 64 bits");
                Err(Stop::from(finding.found(*name).hint("values of 128 bits are not supported")))
            }
            None => {
                let finding = TYPE.at(at..at + 4).field(field).expected("0 to 11; 10 is f32");
                Err(Stop::from(finding.found(number)))
            }
        }
    }
}

fn type_name(number: u32) -> Option<&'static str> {
    usize::try_from(number).ok().and_then(|n| TYPES.get(n)).map(|(name, _)| *name)
}

/// The parameters of a quantized matrix.
struct Sizes {
    projection: u32,
    norms: u32,
    parts: u32,
    dim: u32,
    centroids: u32,
    rows: u64,
    types: [u32; 2],
}

impl Sizes {
    fn read(c: &mut Cursor) -> Result<Sizes, Stop> {
        Ok(Sizes {
            projection: c.u32("projection flag")?,
            norms: c.u32("norms flag")?,
            parts: c.u32("length of quantized vectors")?,
            dim: c.u32("length of vectors")?,
            centroids: c.u32("number of centroids")?,
            rows: c.u64("rows")?,
            types: [c.u32("type of codes")?, c.u32("type of values")?],
        })
    }

    /// Bytes behind the padding.
    fn data_len(&self) -> Option<u64> {
        let dim = u64::from(self.dim);
        let square = if self.projection == 1 { dim.checked_mul(dim)? } else { 0 };
        let norms = if self.norms == 1 { self.rows } else { 0 };
        let floats = square.checked_add(dim.checked_mul(self.centroids.into())?)?;
        let codes = self.rows.checked_mul(self.parts.into())?;
        floats.checked_add(norms)?.checked_mul(4)?.checked_add(codes)
    }
}

/// The parameters of a plain matrix, as they stand in front of the padding.
pub(super) fn matrix_fields(rows: u64, cols: u32) -> Vec<u8> {
    let mut out = Vec::new();
    put_u64(&mut out, rows);
    put_u32(&mut out, cols);
    put_u32(&mut out, layout::F32);
    out
}

/// Those of a quantized one.
pub(super) fn quantized_fields(rows: u64, product: &Product) -> Vec<u8> {
    let mut out = Vec::new();
    let small = |n: u64| u32::try_from(n).unwrap_or(u32::MAX);
    for n in [
        u32::from(product.projection.is_some()),
        u32::from(product.norms.is_some()),
        small(product.parts),
        small(product.dim),
        small(product.centroids),
    ] {
        put_u32(&mut out, n);
    }
    put_u64(&mut out, rows);
    put_u32(&mut out, layout::U8);
    put_u32(&mut out, layout::F32);
    out
}

/// Those of norms.
pub(super) fn norm_fields(count: u64) -> Vec<u8> {
    let mut out = Vec::new();
    put_u64(&mut out, count);
    put_u32(&mut out, layout::F32);
    out
}
