//! The methods by name.

use weighbridge_codec::DType;
use weighbridge_codec::block::{BlockCodec, codec_named};
use weighbridge_codec::integer::Width;
use weighbridge_format::model::{Scaled, Scaling};
use weighbridge_format::{Error, Format, Formats, QuantizedContent};

/// A way to store values in fewer bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// One scale for a tensor: `int8`, `int4`.
    PerTensor(Width),
    /// Codes in blocks, by any codec: `q8`, `q4`, `k6`, `k4`, `k3`, `k2` are those with a name here.
    Blocks(&'static dyn BlockCodec),
    /// Rows of unit length, as i8bin has them: `i8`.
    UnitRows,
    /// Parts of rows as numbers of centroids: `pq`, and `opq` with a rotation before.
    Product {
        /// The rows are rotated first.
        rotate: bool,
    },
    /// As it is: `keep`.
    Keep,
}

impl Method {
    /// Every method that can be asked for, by name; `keep` is for overrides.
    pub const NAMES: [&'static str; 11] =
        ["int8", "int4", "q8", "q4", "k6", "k4", "k3", "k2", "i8", "pq", "opq"];

    /// What a file of it holds.
    pub fn content(self) -> QuantizedContent {
        match self {
            Method::UnitRows => QuantizedContent::UnitRows,
            Method::Product { .. } => QuantizedContent::Words,
            _ => QuantizedContent::Weights,
        }
    }

    /// The format that a file gets: the one of these that says that it is for that, and holds it.
    ///
    /// # Errors
    /// [`Error::Unsupported`] if there is none among these.
    pub fn format(self, formats: &Formats) -> Result<&'static Format, Error> {
        let fits = |format: &Format| format.info().quantized == Some(self.content());
        let found = formats.iter().find(|format| fits(format) && self.is_held_by(format));
        found.ok_or_else(|| {
            let message = format!("there is no format for {}", self.name());
            Error::unsupported(self.name(), message, "")
        })
    }

    /// Whether a format holds tensors of it as they are.
    pub(super) fn is_held_by(self, format: &Format) -> bool {
        let holds = &format.info().holds;
        match self {
            Method::Blocks(codec) => holds.blocks.contains(&codec),
            Method::PerTensor(width) => {
                let codes = match width {
                    Width::Int8 => DType::I8,
                    Width::Int4 => DType::I4,
                };
                (holds.scaled)(&Scaled { codes, scaling: Scaling::per_tensor(1.0, None) })
            }
            Method::UnitRows | Method::Product { .. } | Method::Keep => true,
        }
    }

    /// The method with this name.
    pub fn from_name(name: &str) -> Option<Method> {
        match name {
            "int8" => Some(Method::PerTensor(Width::Int8)),
            "int4" => Some(Method::PerTensor(Width::Int4)),
            "i8" => Some(Method::UnitRows),
            "pq" => Some(Method::Product { rotate: false }),
            "opq" => Some(Method::Product { rotate: true }),
            "keep" => Some(Method::Keep),
            other => codec_named(other).map(Method::Blocks),
        }
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Method::PerTensor(Width::Int8) => "int8",
            Method::PerTensor(Width::Int4) => "int4",
            Method::UnitRows => "i8",
            Method::Product { rotate: false } => "pq",
            Method::Product { rotate: true } => "opq",
            Method::Keep => "keep",
            Method::Blocks(codec) => codec.name(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_to_methods_and_back() {
        for name in Method::NAMES.into_iter().chain(["keep"]) {
            assert_eq!(Method::from_name(name).map(Method::name), Some(name));
        }
        assert_eq!(Method::from_name("q2"), None);
        for codec in weighbridge_codec::block::codecs() {
            assert!(Method::NAMES.contains(&codec.name()));
        }
    }
}
