//! What the tensors of a model are called.

use crate::model::Container;

/// The names of a model's tensors, without the `.weight` and `.bias` behind them.
#[derive(Debug)]
#[non_exhaustive]
pub struct Names {
    /// The table of the tokens' vectors, which every model has; with its `.weight`.
    pub words: &'static str,
    /// The normalization of what is looked up.
    pub embedding_norm: &'static str,
    /// The normalization behind the last layer.
    pub final_norm: Option<&'static str>,
    /// Whether normalizations have a bias.
    pub norm_bias: bool,
    /// How the name of some tensor begins that tells these from the names of relatives.
    pub sign: &'static str,
    /// How the names of layers' tensors begin, before the layer's number; those below stand behind it and
    /// a dot.
    pub start: &'static str,
    /// Queries, keys and values of the attention, in this order.
    pub attention: Product,
    /// What the attention's results go through.
    pub attention_output: Product,
    /// The normalization of the attention.
    pub attention_norm: &'static str,
    /// The first product of the feed-forward network, which widens; where there is a gate, its two halves.
    pub up: Product,
    /// The second.
    pub down: Product,
    /// The normalization of the feed-forward network.
    pub norm: &'static str,
}

/// The matrices of a product. They have one input, and their results stand side by side.
#[derive(Clone, Copy, Debug)]
pub struct Product {
    /// Their names. One matrix may be all that others have several for.
    pub weights: &'static [&'static str],
    /// Whether they need a bias. One that is there counts in any case.
    pub bias: bool,
}

/// Which of two halves goes through the activation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gate {
    /// The first.
    First,
    /// The second.
    Second,
}

impl Product {
    pub(super) const fn biased(weights: &'static [&'static str]) -> Product {
        Product { weights, bias: true }
    }

    pub(super) const fn unbiased(weights: &'static [&'static str]) -> Product {
        Product { weights, bias: false }
    }
}

impl Names {
    /// The full name of one of a layer's tensors.
    pub fn of(&self, layer: impl std::fmt::Display, name: &str) -> String {
        format!("{}{layer}.{name}", self.start)
    }

    /// Whether a container has what tells these names from others.
    pub(super) fn sign_in(&self, container: &Container, prefix: &str) -> bool {
        let is_sign =
            |name: &str| name.strip_prefix(prefix).is_some_and(|rest| rest.starts_with(self.sign));
        container.tensors.iter().any(|t| is_sign(&t.name))
    }
}
