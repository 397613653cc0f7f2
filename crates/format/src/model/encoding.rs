//! How a tensor's values are stored.

use super::{BlockCoded, Product, Scaled, Scaling, Tensor};
use crate::Error;
use crate::wire::numel;
use std::borrow::Cow;
use std::sync::Arc;
use weighbridge_codec::{DType, convert};

/// A tensor's encoding: knows its size, and how to come to f32 values and back.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Encoding {
    /// The values themselves.
    Plain(DType),
    /// Whole numbers with a scale.
    Scaled(Arc<Scaled>),
    /// Rows of codes in blocks, by a block codec.
    Blocks(Arc<BlockCoded>),
    /// Rows of codes that stand for parts of vectors.
    Product(Arc<Product>),
}

impl Encoding {
    /// The type of the stored elements. Blocks of codes count as bytes.
    pub fn stored(&self) -> DType {
        match self {
            Encoding::Plain(dtype) => *dtype,
            Encoding::Scaled(scaled) => scaled.codes,
            Encoding::Blocks(_) | Encoding::Product(_) => DType::U8,
        }
    }

    /// The values are computed from something else that is stored.
    pub fn is_quantized(&self) -> bool {
        !matches!(self, Encoding::Plain(_))
    }

    /// Rows of codes that are decoded together: single elements have no bytes of their own.
    pub fn is_coded(&self) -> bool {
        matches!(self, Encoding::Blocks(_) | Encoding::Product(_))
    }

    /// The codec and what it needs besides the codes, of codes in blocks.
    pub fn blocks(&self) -> Option<&BlockCoded> {
        match self {
            Encoding::Blocks(blocks) => Some(blocks),
            _ => None,
        }
    }

    /// Bytes that rows of codes need besides the codes: scales before them, centroids.
    pub fn side_len(&self) -> u64 {
        match self {
            Encoding::Plain(_) | Encoding::Scaled(_) => 0,
            Encoding::Blocks(blocks) => blocks.front.len(),
            Encoding::Product(product) => product.side_len(),
        }
    }

    /// Bytes of a tensor's data, without its scales; `None` when the shape is impossible.
    pub fn byte_len(&self, shape: &[u64]) -> Option<u64> {
        match self {
            Encoding::Blocks(blocks) => blocks.layout(shape).map(|layout| layout.codes_size()),
            Encoding::Product(product) => product.codes_len(shape),
            _ => self.stored().byte_len(numel(shape)?),
        }
    }

    /// The values can be told. Those of codes without a scale can't.
    pub fn has_values(&self) -> bool {
        !matches!(self, Encoding::Scaled(scaled) if scaled.scaling == Scaling::Unknown)
    }

    /// The type that all values fit into, or the codes where the values are not known: what a reader
    /// sees.
    pub fn value_type(&self) -> DType {
        match self {
            Encoding::Plain(dtype) => *dtype,
            Encoding::Scaled(scaled) if !self.has_values() => scaled.codes,
            _ => DType::F32,
        }
    }

    /// The values are real numbers rather than whole ones.
    pub fn is_real(&self) -> bool {
        self.value_type().is_float()
    }

    /// Whether there is a scale for every channel of a tensor of this shape.
    pub fn fits(&self, shape: &[u64]) -> bool {
        let scaled = match self {
            Encoding::Plain(_) => return true,
            Encoding::Scaled(scaled) => scaled,
            Encoding::Blocks(blocks) => return blocks.layout(shape).is_some(),
            Encoding::Product(product) => return product.fits(shape),
        };
        let Scaling::Affine { axis, scales, zero_points } = &scaled.scaling else { return true };
        let channels = axis.map_or(Some(1), |axis| shape.get(axis).copied());
        scaled.codes.is_integer()
            && channels == Some(scales.len() as u64)
            && zero_points.as_ref().is_none_or(|z| z.len() == scales.len())
    }

    /// The codes of a tensor in this encoding come back from their values, so that storing the values
    /// loses nothing.
    ///
    /// # Errors
    /// If the codes can't be read.
    pub(super) fn is_recoverable(&self, tensor: &Tensor) -> Result<bool, Error> {
        match (self, tensor.view()) {
            (Encoding::Plain(_), _) => Ok(true),
            (Encoding::Scaled(scaled), _) => Ok(scaled.is_recoverable()),
            (Encoding::Blocks(blocks), Some(codes)) => blocks.is_recoverable(&tensor.shape, codes),
            // The same row may have been made of other codes. A declaration has none.
            (Encoding::Blocks(_), None) => Ok(!tensor.has_data()),
            (Encoding::Product(_), _) => Ok(false),
        }
    }

    /// Its name in reports: `f32`, `i8:scaled`, `i8:unscaled`, `q8`.
    pub fn name(&self) -> Cow<'static, str> {
        match self {
            Encoding::Plain(dtype) => dtype.name().into(),
            Encoding::Scaled(scaled) if !self.has_values() => {
                format!("{}:unscaled", scaled.codes).into()
            }
            Encoding::Scaled(scaled) => format!("{}:scaled", scaled.codes).into(),
            Encoding::Blocks(blocks) => blocks.codec.name().into(),
            Encoding::Product(product) => product.name().into(),
        }
    }

    /// Elements `start..start + out.len()` of a tensor as f32, from its canonical bytes, which
    /// begin at element `start`. Codes in blocks and of parts are decoded by the tensor.
    pub(super) fn decode(&self, bytes: &[u8], start: u64, shape: &[u64], out: &mut [f32]) {
        match self {
            Encoding::Plain(dtype) => convert::to_f32(*dtype, bytes, 0, out),
            Encoding::Scaled(scaled) => {
                scaled.decode(bytes, scaled.channels(start, shape), out);
            }
            Encoding::Blocks(_) | Encoding::Product(_) => out.fill(0.0),
        }
    }
}
