//! The methods by name.

use weighbridge_codec::block;
use weighbridge_codec::integer::Width;

/// A way to store values in fewer bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// One scale for a tensor: `int8`, `int4`.
    Whole(Width),
    /// A scale for every block: `q8`, `q4`, `k6`, `k4`, `k3`, `k2`.
    Blocks(block::Method),
    /// Rows of unit length, as i8bin has them: `i8`.
    Rows,
    /// As it is: `keep`.
    Keep,
}

impl Method {
    /// Every method that can be asked for, by name; `keep` is for overrides.
    pub const NAMES: [&'static str; 9] = ["int8", "int4", "q8", "q4", "k6", "k4", "k3", "k2", "i8"];

    /// The formats that quantized files have.
    pub const FORMATS: [&'static str; 2] = ["mcf", "i8bin"];

    /// The format that a file gets.
    pub fn format(self) -> &'static str {
        let [weights, rows] = Method::FORMATS;
        if self == Method::Rows { rows } else { weights }
    }

    pub fn from_name(name: &str) -> Option<Method> {
        match name {
            "int8" => Some(Method::Whole(Width::Int8)),
            "int4" => Some(Method::Whole(Width::Int4)),
            "i8" => Some(Method::Rows),
            "keep" => Some(Method::Keep),
            other => block::Method::from_name(other).map(Method::Blocks),
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Method::Whole(Width::Int8) => "int8",
            Method::Whole(Width::Int4) => "int4",
            Method::Rows => "i8",
            Method::Keep => "keep",
            Method::Blocks(method) => method.name(),
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
    }
}
