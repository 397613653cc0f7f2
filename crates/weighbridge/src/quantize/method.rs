//! The methods by name.

use std::path::Path;
use weighbridge_codec::DType;
use weighbridge_codec::block::{BlockCodec, codec_named};
use weighbridge_codec::integer::Width;
use weighbridge_format::model::{Scaled, Scaling};
use weighbridge_format::{Advice, Error, Format, Formats, QuantizedContent};

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

    /// The one that is taken where none is asked for: no difference is to be seen.
    pub const USUAL: &'static str = "q8";

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

    /// Refuses the name of an output that does not say the format that the method writes.
    ///
    /// # Errors
    /// [`Error::Refused`], with a better name.
    pub fn check_output(self, name: &str, formats: &Formats) -> Result<(), Error> {
        let info = self.format(formats)?.info();
        let named = formats.target(name, None).map(|format| format.info().id).ok();
        if named == Some(info.id) {
            return Ok(());
        }
        let what = format!(
            "{} writes {}, but the name {name:?} does not have its extension",
            self.name(),
            info.id
        );
        let better = Path::new(name).with_extension(info.extensions.first().unwrap_or(&""));
        let advice = Advice::from(format!("name the output {}", better.display()));
        let writes = |name: &&str| Method::named(name).and_then(|method| method.format(formats));
        let other = Method::NAMES.into_iter().find(|name| {
            named.is_some() && writes(name).is_ok_and(|format| Some(format.info().id) == named)
        });
        Err(Error::refused(
            what,
            match other {
                None => advice,
                Some(first) => {
                    let effect = format!("writes {}", named.unwrap_or_default());
                    advice.and(Advice::set_to("method", first, effect))
                }
            },
        ))
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

    /// The method with this name, which somebody asked for; `keep` is none for a whole file.
    ///
    /// # Errors
    /// [`Error::Refused`] if there is none; the advice names the nearest where the name is one of
    /// other programs.
    pub fn named(name: &str) -> Result<Method, Error> {
        let found = Method::from_name(name).filter(|method| *method != Method::Keep);
        found.ok_or_else(|| {
            let advice = match nearest(name) {
                Some(Nearest::Method(method)) => {
                    format!("{method} is the closest method here").into()
                }
                Some(Nearest::Type(dtype)) => {
                    let effect = "stores plain numbers; quantizing goes below that";
                    Advice::set_to("dtype", dtype, effect)
                }
                None => Advice::meant(name, Method::NAMES)
                    .and(format!("there are {}", Method::NAMES.join(" "))),
            };
            Error::refused(format!("there is no method {name:?}"), advice)
        })
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

/// What a name of other programs is nearest to.
#[derive(Debug, PartialEq, Eq)]
enum Nearest {
    Method(&'static str),
    /// It is no quantization but a type of plain numbers.
    Type(&'static str),
}

/// Names of llama.cpp (`Q4_K_M`, `IQ3_XS`), of PyTorch's tools (`fp16`, `nf4`, `W8A8`) and the like
/// have the number of bits in them.
fn nearest(name: &str) -> Option<Nearest> {
    let name = name.to_ascii_lowercase();
    if let Some(ours) = Method::NAMES.into_iter().find(|ours| *ours == name) {
        return Some(Nearest::Method(ours));
    }
    match name.as_str() {
        "f16" | "fp16" | "float16" | "half" => return Some(Nearest::Type("f16")),
        "bf16" | "bfloat16" => return Some(Nearest::Type("bf16")),
        "f32" | "fp32" | "float32" | "float" => return Some(Nearest::Type("f32")),
        // A scale for every 32 values and nothing else, as ours.
        "q4_0" | "q4_1" => return Some(Nearest::Method("q4")),
        "awq" | "gptq" => return Some(Nearest::Method("k4")),
        _ => {}
    }
    let digits = name.trim_start_matches(|c: char| !c.is_ascii_digit());
    let digits = &digits[..digits.bytes().take_while(u8::is_ascii_digit).count()];
    Some(Nearest::Method(match digits.parse().ok()? {
        1 | 2 => "k2",
        3 => "k3",
        4 => "k4",
        5..=7 => "k6",
        8 => "q8",
        _ => return None,
    }))
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
        assert_eq!(Method::named(Method::USUAL).unwrap().name(), Method::USUAL);
        for codec in weighbridge_codec::block::codecs() {
            assert!(Method::NAMES.contains(&codec.name()));
        }
    }
    #[test]
    fn names_of_other_programs_lead_to_the_nearest() {
        for (name, ours) in [
            ("Q4_K_M", "k4"),
            ("Q4_0", "q4"),
            ("Q8_0", "q8"),
            ("Q6_K", "k6"),
            ("Q5_K_S", "k6"),
            ("IQ3_XS", "k3"),
            ("Q2_K", "k2"),
            ("nf4", "k4"),
            ("W8A8", "q8"),
            ("INT8", "int8"),
        ] {
            assert_eq!(nearest(name), Some(Nearest::Method(ours)), "{name}");
            let error = Method::named(name).unwrap_err();
            assert!(error.advice().to_string().contains(ours), "{name}: {error}");
        }
        assert_eq!(nearest("fp16"), Some(Nearest::Type("f16")));
        assert_eq!(nearest("BF16"), Some(Nearest::Type("bf16")));
        for name in ["", "z", "q16", "q99999999999999999999", "ü"] {
            assert_eq!(nearest(name), None, "{name}");
        }
        assert!(Method::named("z").unwrap_err().to_string().contains("q8"));
    }
}
