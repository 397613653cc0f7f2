//! The kinds of activations, positions, poolings, modules.

use serde::{Deserialize, Serialize, Serializer};

/// Enumerations whose members have the names that configurations give them, and one member for
/// names that are not known.
macro_rules! named {
    ($(#[$doc:meta])* $type:ident { $($(#[$member_doc:meta])* $member:ident $name:literal $(| $alias:literal)*,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq)]
        #[non_exhaustive]
        pub enum $type {
            $($(#[$member_doc])* $member,)*
            /// One that is not known, by its name.
            Other(String),
        }

        impl $type {
            /// The one with this name.
            pub fn from_name(name: &str) -> $type {
                match name {
                    $($name $(| $alias)* => $type::$member,)*
                    other => $type::Other(other.to_owned()),
                }
            }

            /// Its name.
            pub fn name(&self) -> &str {
                match self {
                    $($type::$member => $name,)*
                    $type::Other(name) => name,
                }
            }
        }

        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.name())
            }
        }
    };
}

named! {
    /// The activation of a feed-forward network.
    Activation {
        /// GELU with the error function; `geglu` where it is that of a gate.
        Gelu "gelu" | "geglu",
        /// GELU with the hyperbolic tangent, by its first name.
        GeluNew "gelu_new",
        /// The same, by the name of its faster implementation.
        GeluFast "gelu_fast",
        /// The same, by the name of PyTorch's.
        GeluPytorchTanh "gelu_pytorch_tanh",
        /// Negative values become zero.
        Relu "relu",
        /// `x` times its sigmoid; `swiglu` where it is that of a gate.
        Silu "silu" | "swish" | "swiglu",
    }
}

impl Default for Activation {
    /// BERT's.
    fn default() -> Activation {
        Activation::Gelu
    }
}

named! {
    /// How a model knows where in a text a token stands.
    Positions {
        /// A learned vector for each position is added to the token's.
        Absolute "absolute",
        /// Queries and keys are turned by an angle that grows with the position.
        Rotary "rotary" | "rope",
        /// A learned number for each range of distances is added to the attention.
        RelativeBuckets "relative_buckets",
        /// It does not: the order of the tokens makes no difference.
        Nowhere "none",
    }
}

impl Default for Positions {
    /// BERT's.
    fn default() -> Positions {
        Positions::Absolute
    }
}

named! {
    /// How the angles of rotary positions are stretched, for texts that are longer than those of the
    /// training.
    RopeScaling {
        /// Not at all.
        Default "default",
        /// Positions are divided by a factor.
        Linear "linear",
        /// The base is multiplied by a factor, and all angles are divided by one value's share of it.
        Ntk "ntk",
    }
}

impl Default for RopeScaling {
    /// Angles are as they are trained in most models.
    fn default() -> RopeScaling {
        RopeScaling::Default
    }
}

named! {
    /// How the vectors of a text's tokens become one vector.
    Pooling {
        /// The mean of the vectors.
        Mean "mean",
        /// The vector of the first token, `[CLS]`.
        Cls "cls",
        /// The largest value of each column.
        Max "max",
        /// The sum, divided by the square root of the number of tokens.
        MeanSqrtLen "mean_sqrt_len" | "mean_sqrt_len_tokens",
        /// The mean, with weights that grow with the position.
        WeightedMean "weightedmean",
        /// The vector of the last token.
        LastToken "lasttoken",
    }
}

/// A module that texts go through, as sentence-transformers lists them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Module {
    /// Its class without the package: `Pooling`.
    pub kind: String,
    /// The folder of its files.
    pub path: String,
}

/// What stands in front of texts of some kind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Prompt {
    /// The name that it is asked for by: `query`.
    pub name: String,
    /// What stands in front.
    pub text: String,
}
