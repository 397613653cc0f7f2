//! What is known of an architecture: how to recognise it, and which tensors it needs.

mod bert;
mod relatives;
mod tables;

pub use bert::BERT;
pub use relatives::{DISTILBERT, MPNET, ROBERTA};
pub use tables::{MODEL2VEC, STATIC_EMBEDDING};

use super::Positions;
use crate::model::{Container, Tensor};
use std::collections::HashMap;

/// Every architecture whose tensors are known. One more is a file and a line here. Where nothing but the
/// names of tensors tells which it is, the first that has such names.
pub fn architectures() -> &'static [&'static Architecture] {
    static ALL: [&Architecture; 6] =
        [&MPNET, &BERT, &ROBERTA, &DISTILBERT, &MODEL2VEC, &STATIC_EMBEDDING];
    &ALL
}

/// Those whose models can be told by their tensors: a table by itself may be anything.
pub(super) fn with_layers() -> impl Iterator<Item = &'static Architecture> {
    architectures().iter().copied().filter(|known| !known.is_static())
}

/// More layers than any model has: their tensors are not listed.
const MOST_LAYERS: u64 = 1000;

/// An architecture, and the names of its tensors.
#[derive(Debug)]
#[non_exhaustive]
pub struct Architecture {
    /// Its name for people: `BERT`.
    pub name: &'static str,
    /// What `model_type` in config.json says of models of this kind.
    pub model_types: &'static [&'static str],
    /// How the class in config.json begins, in files that are too old for a `model_type`.
    pub class_prefix: &'static str,
    /// What may stand in front of the names of its tensors.
    pub prefixes: &'static [&'static str],
    /// The table of the tokens' vectors, which every such model has.
    pub word_embeddings: &'static str,
    /// What the tensors of its layers are called.
    pub layer: LayerNames,
    /// A table of what distances between tokens add to the attention, shared by all layers.
    pub distances: Option<&'static str>,
    /// How its models know where in a text a token stands.
    pub positions: Positions,
    /// Whether the first token of a text has the position behind the number of the padding token,
    /// instead of the first.
    pub pads_positions: bool,
    /// Sizes from the shapes of tensors.
    sizes: fn(&ModelTensors) -> TensorSizes,
    /// The tensors of a model of these sizes.
    tensors: fn(&Architecture, &TensorSizes) -> Vec<TensorSpec>,
    /// The number of attention heads that models with so many values have.
    usual_heads: fn(u64) -> Option<u64>,
    /// Other names of a tensor.
    old_name: fn(&str) -> Option<String>,
}

/// The names of a layer's tensors, without the `.weight` and `.bias` behind them. All but the first stand
/// behind the layer's number and a dot.
#[derive(Debug)]
#[non_exhaustive]
pub struct LayerNames {
    /// How they begin, before the layer's number.
    pub start: &'static str,
    /// Queries, keys and values of the attention.
    pub attention: [&'static str; 3],
    /// What the attention's results go through.
    pub attention_output: &'static str,
    /// The normalization behind it.
    pub attention_norm: &'static str,
    /// The first product of the feed-forward network, which widens.
    pub up: &'static str,
    /// The second.
    pub down: &'static str,
    /// The normalization behind it.
    pub norm: &'static str,
}

impl LayerNames {
    /// The full name of one of a layer's tensors.
    pub fn of(&self, layer: impl std::fmt::Display, name: &str) -> String {
        format!("{}{layer}.{name}", self.start)
    }
}

/// A tensor that a model has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorSpec {
    /// Its name, without a prefix.
    pub name: String,
    /// Its shape.
    pub shape: Vec<u64>,
    /// Whether the model can't be used without it.
    pub required: bool,
}

/// The sizes of a model as its tensors show them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TensorSizes {
    /// Tokens that have a vector.
    pub vocabulary: Option<u64>,
    /// Rows of the table of these vectors, where tokens may share one.
    pub rows: Option<u64>,
    /// Values of a token's vector.
    pub hidden: Option<u64>,
    /// Positions that have a vector.
    pub positions: Option<u64>,
    /// Kinds of texts that have a vector.
    pub token_types: Option<u64>,
    /// Ranges of distances that have a number for each head.
    pub distances: Option<u64>,
    /// Heads of the attention, where a table has a column for each.
    pub heads: Option<u64>,
    /// Layers, counted by the largest number.
    pub layers: Option<u64>,
    /// Values inside the feed-forward network.
    pub intermediate: Option<u64>,
}

impl TensorSizes {
    /// The sizes that a container's tensors show, of whichever architecture they are.
    pub fn of(container: &Container) -> TensorSizes {
        let shown = with_layers().find(|a| a.prefix_in(container).is_some());
        shown.map(|a| a.sizes(container)).unwrap_or_default()
    }
}

impl Architecture {
    /// The prefix of the names of a container's tensors, if it has this architecture's.
    pub fn prefix_in(&self, container: &Container) -> Option<&'static str> {
        let has = |p: &&str| container.tensor(&format!("{p}{}", self.word_embeddings)).is_some();
        self.prefixes.iter().copied().find(has)
    }

    /// Whether its models are a table of the tokens' vectors and nothing else.
    pub fn is_static(&self) -> bool {
        self.layer.start.is_empty()
    }

    /// Whether a container has a table of tokens and a layer as this architecture names them. A table by
    /// itself may be anything: only files say that it is a model.
    pub fn is_in(&self, container: &Container) -> bool {
        if self.is_static() {
            return false;
        }
        self.prefix_in(container).is_some_and(|prefix| {
            // What it has and none of its relatives is the surest sign; BERT has no such thing.
            let sign = match self.distances {
                Some(table) => format!("{prefix}{table}"),
                None => format!("{prefix}{}", self.layer.start),
            };
            container.tensors.iter().any(|t| t.name.starts_with(&sign))
        })
    }

    /// The sizes that a container's tensors show.
    pub fn sizes(&'static self, container: &Container) -> TensorSizes {
        (self.sizes)(&ModelTensors::new(self, container))
    }

    /// The tensors of a model of these sizes; those of sizes that are not known are left out.
    pub fn tensors(&self, sizes: &TensorSizes) -> Vec<TensorSpec> {
        (self.tensors)(self, sizes)
    }

    /// The tensors of the model in a container, each with the one that is there.
    pub fn tensors_in<'a>(
        &'static self,
        container: &'a Container,
    ) -> impl Iterator<Item = (TensorSpec, Option<&'a Tensor>)> {
        let named = ModelTensors::new(self, container);
        let mut sizes = (self.sizes)(&named);
        sizes.layers = sizes.layers.map(|n| n.min(MOST_LAYERS));
        self.tensors(&sizes).into_iter().map(move |tensor| {
            let found = named.find(&tensor.name).filter(|t| t.has_data());
            (tensor, found)
        })
    }

    /// The number of attention heads that models with so many values usually have.
    pub fn usual_heads(&self, hidden: u64) -> Option<u64> {
        (self.usual_heads)(hidden)
    }

    /// Another name under which old files have a tensor.
    pub fn old_name(&self, name: &str) -> Option<String> {
        (self.old_name)(name)
    }
}

/// The tensors of a container by the names that an architecture gives them, without a prefix.
#[derive(Debug)]
pub struct ModelTensors<'a> {
    architecture: &'static Architecture,
    prefix: &'static str,
    tensors: HashMap<&'a str, &'a Tensor>,
}

impl<'a> ModelTensors<'a> {
    /// Those of a container, if its model is of this architecture.
    pub fn new(architecture: &'static Architecture, container: &'a Container) -> ModelTensors<'a> {
        let prefix = architecture.prefix_in(container).unwrap_or("");
        let named = |t: &'a Tensor| Some((t.name.strip_prefix(prefix)?, t));
        let tensors = container.tensors.iter().filter_map(named).collect();
        ModelTensors { architecture, prefix, tensors }
    }

    /// The architecture that gives the names.
    pub fn architecture(&self) -> &'static Architecture {
        self.architecture
    }

    /// What stands in front of the names in the container.
    pub fn prefix(&self) -> &'static str {
        self.prefix
    }

    /// A tensor by its name, or by the name that old files have for it.
    pub fn find(&self, name: &str) -> Option<&'a Tensor> {
        let old = || self.tensors.get(self.architecture.old_name(name)?.as_str());
        self.tensors.get(name).or_else(old).copied()
    }

    fn dimension(&self, name: &str, axis: usize) -> Option<u64> {
        self.find(name)?.shape.get(axis).copied()
    }

    /// The layers, counted by the largest number.
    fn layers(&self) -> Option<u64> {
        let number = |name: &str| {
            name.strip_prefix(self.architecture.layer.start)?.split('.').next()?.parse::<u64>().ok()
        };
        // A layer with a number beyond that of all tensors makes no layers before it.
        let possible = |n: &u64| *n < self.tensors.len() as u64;
        self.tensors.keys().filter_map(|name| number(name)).filter(possible).max()?.checked_add(1)
    }
}
