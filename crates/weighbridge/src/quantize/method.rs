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
    /// Parts of rows as numbers of centroids: `pq`, and `opq` with a rotation before.
    Product { rotate: bool },
    /// As it is: `keep`.
    Keep,
}

impl Method {
    /// Every method that can be asked for, by name; `keep` is for overrides.
    pub const NAMES: [&'static str; 11] =
        ["int8", "int4", "q8", "q4", "k6", "k4", "k3", "k2", "i8", "pq", "opq"];

    /// The formats that quantized files have.
    pub const FORMATS: [&'static str; 3] = ["mcf", "i8bin", "finalfusion"];

    /// The format that a file gets.
    pub fn format(self) -> &'static str {
        let [weights, rows, words] = Method::FORMATS;
        match self {
            Method::Rows => rows,
            Method::Product { .. } => words,
            _ => weights,
        }
    }

    pub fn from_name(name: &str) -> Option<Method> {
        match name {
            "int8" => Some(Method::Whole(Width::Int8)),
            "int4" => Some(Method::Whole(Width::Int4)),
            "i8" => Some(Method::Rows),
            "pq" => Some(Method::Product { rotate: false }),
            "opq" => Some(Method::Product { rotate: true }),
            "keep" => Some(Method::Keep),
            other => block::Method::from_name(other).map(Method::Blocks),
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Method::Whole(Width::Int8) => "int8",
            Method::Whole(Width::Int4) => "int4",
            Method::Rows => "i8",
            Method::Product { rotate: false } => "pq",
            Method::Product { rotate: true } => "opq",
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
