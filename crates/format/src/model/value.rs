//! Typed metadata values.

use crate::source::Bytes;
use crate::wire::numel;
use serde::{Serialize, Serializer};
use weighbridge_codec::{DType, Scalar, element};

/// What the types of texts and of true or false are called.
const TEXT: &str = "str";
const BOOL: &str = "bool";

/// A value of the metadata. Numbers are equal by their bits, so that NaN is equal to itself.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A text.
    Text(String),
    /// True or false.
    Bool(bool),
    /// A number of an element type, as its stored bits.
    Number(DType, u64),
    /// `count` flags, eight to a byte, LSB first.
    Bits {
        /// How many.
        count: u32,
        /// The bytes that they stand in.
        bytes: Bytes,
    },
    /// A small array.
    Array(Array),
}

/// A small array in the metadata.
#[derive(Clone, Debug, PartialEq)]
pub struct Array {
    /// The type of its elements.
    pub dtype: DType,
    /// Its dimensions.
    pub shape: Vec<u64>,
    /// Its bytes, little-endian, in row-major order.
    pub data: Bytes,
}

impl Value {
    /// The text, if it is one.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    /// A number from its stored bytes (at most eight).
    pub fn number(dtype: DType, bytes: &[u8]) -> Value {
        let mut raw = [0; 8];
        raw[..bytes.len().min(8)].copy_from_slice(&bytes[..bytes.len().min(8)]);
        Value::Number(dtype, u64::from_le_bytes(raw))
    }

    /// What kind of value it is, as OINF calls it.
    pub fn type_name(&self) -> String {
        match self {
            Value::Text(_) => TEXT.to_owned(),
            Value::Bool(_) => BOOL.to_owned(),
            Value::Number(dtype, _) => dtype.name().to_owned(),
            Value::Bits { count, .. } => format!("bitset[{count}]"),
            Value::Array(a) => {
                let dims: Vec<_> = a.shape.iter().map(u64::to_string).collect();
                format!("{}[{}]", a.dtype, dims.join(", "))
            }
        }
    }

    /// As text, for formats that know nothing else; `None` when text would be unreadable.
    pub fn to_plain_text(&self) -> Option<String> {
        match self {
            Value::Text(text) => Some(text.clone()),
            Value::Bool(b) => Some(b.to_string()),
            Value::Number(dtype, bits) => {
                Some(element::read(*dtype, &bits.to_le_bytes(), 0).to_string())
            }
            Value::Bits { .. } | Value::Array(_) => None,
        }
    }

    /// A value of a type, by the name that [`Value::type_name`] gives it, from a text; `None` where
    /// the text can't be read as that. Whole numbers must fit, others may be rounded.
    pub fn parse(type_name: &str, text: &str) -> Option<Value> {
        match type_name {
            TEXT => Some(Value::Text(text.to_owned())),
            BOOL => text.parse().ok().map(Value::Bool),
            number => read_number(number_type(number)?, text),
        }
    }

    /// Whether texts can be read as a type of this name: lists, flags and complex numbers have no
    /// such form.
    pub fn is_parsed(type_name: &str) -> bool {
        [TEXT, BOOL].contains(&type_name) || number_type(type_name).is_some()
    }

    pub(crate) fn to_json(&self) -> serde_json::Value {
        const MOST: u64 = 64;
        match self {
            Value::Text(text) => text.as_str().into(),
            Value::Bool(b) => (*b).into(),
            Value::Number(dtype, bits) => {
                scalar_json(element::read(*dtype, &bits.to_le_bytes(), 0))
            }
            Value::Bits { count, bytes } => serde_json::json!({
                "bits": count,
                "bytes": bytes.iter().take(64).map(|b| format!("{b:02x}")).collect::<String>(),
            }),
            Value::Array(a) if numel(&a.shape).is_some_and(|n| n <= MOST) => {
                (0..a.count()).map(|i| scalar_json(a.scalar(i))).collect()
            }
            Value::Array(a) => serde_json::json!({"dtype": a.dtype.name(), "shape": a.shape}),
        }
    }
}

impl Array {
    /// How many elements.
    pub fn count(&self) -> usize {
        numel(&self.shape).map_or(0, crate::wire::to_len)
    }

    /// An element by its index, row by row.
    pub fn scalar(&self, index: usize) -> Scalar {
        element::read(self.dtype, &self.data, index)
    }
}

/// The type of single numbers with this name.
fn number_type(name: &str) -> Option<DType> {
    let others = [DType::C64, DType::Bool, DType::Bitset];
    DType::from_name(name).filter(|dtype| !others.contains(dtype))
}

/// A number of a type from a text. Whole numbers must fit; others may be rounded.
fn read_number(dtype: DType, text: &str) -> Option<Value> {
    let number = if dtype.is_integer() {
        text.parse().map(Scalar::Int).or_else(|_| text.parse().map(Scalar::UInt)).ok()?
    } else {
        let value: f64 = text.parse().ok()?;
        // Too large a number is not an infinity that was asked for.
        let says_so = text.to_ascii_lowercase().contains("inf");
        Scalar::Float(Some(value).filter(|v| !v.is_infinite() || says_so)?)
    };
    let mut bytes = [0; 8];
    element::write(dtype, &mut bytes, 0, number);
    let kept = element::read(dtype, &bytes, 0);
    let fits = match number {
        Scalar::Float(v) => v.is_finite() == kept.to_f64().is_finite(),
        _ => kept.same(number),
    };
    fits.then(|| Value::number(dtype, &bytes))
}

/// A JSON string; serde_json escapes exactly what Python does.
pub(crate) fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// As JSON for people and scripts. Long arrays are given by type and shape only.
impl Serialize for Value {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.to_json().serialize(serializer)
    }
}

/// A value as JSON, exactly. JSON has no NaN and no infinity: they become texts.
fn scalar_json(value: Scalar) -> serde_json::Value {
    match value {
        Scalar::Int(v) => v.into(),
        Scalar::UInt(v) => v.into(),
        Scalar::Float(v) if v.is_finite() => v.into(),
        other => other.to_string().into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_read_as_a_type() {
        for (name, text, expected) in [
            ("str", "1", Some("1")),
            ("bool", "true", Some("true")),
            ("bool", "yes", None),
            ("i64", "-300", Some("-300")),
            ("u64", "18446744073709551615", Some("18446744073709551615")),
            ("u8", "256", None),
            ("i32", "1.5", None),
            ("f32", "1.5", Some("1.5")),
            ("f32", "abc", None),
            ("f16", "1e9", None),
            ("f64", "3", Some("3")),
        ] {
            let value = Value::parse(name, text);
            let shown = value.as_ref().map(|v| v.to_plain_text().unwrap());
            assert_eq!(shown.as_deref(), expected, "{name} {text}");
            assert!(value.is_none_or(|v| v.type_name() == name));
            assert!(Value::is_parsed(name));
        }
        for name in ["c64", "bitset", "u8[3]", "text", ""] {
            assert!(!Value::is_parsed(name) && Value::parse(name, "3").is_none(), "{name}");
        }
    }
}
