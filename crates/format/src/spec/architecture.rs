//! What is known of an architecture: how to recognise it, and which tensors it needs.

mod bert;
mod names;
mod relatives;
mod rotary;
mod tables;

pub use bert::BERT;
pub use names::{Gate, Names, Product};
pub use relatives::{DISTILBERT, MPNET, ROBERTA};
pub use rotary::{GTE, MODERNBERT, NOMIC};
pub use tables::{MODEL2VEC, STATIC_EMBEDDING};

use super::Positions;
use crate::model::{Container, Tensor};
use std::collections::HashMap;

/// Every architecture whose tensors are known. One more is a file and a line here. Where nothing but the
/// names of tensors tells which it is, the first that has such names.
pub fn architectures() -> &'static [&'static Architecture] {
    static ALL: [&Architecture; 9] = [
        &MPNET,
        &GTE,
        &NOMIC,
        &MODERNBERT,
        &BERT,
        &ROBERTA,
        &DISTILBERT,
        &MODEL2VEC,
        &STATIC_EMBEDDING,
    ];
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
    /// What its tensors are called: the usual names first, then those that other libraries write.
    pub names: &'static [Names],
    /// A table of what distances between tokens add to the attention, shared by all layers.
    pub distances: Option<&'static str>,
    /// How its models know where in a text a token stands.
    pub positions: Positions,
    /// Whether the first token of a text has the position behind the number of the padding token,
    /// instead of the first.
    pub pads_positions: bool,
    /// Whether normalizations stand before what they belong to, instead of behind it.
    pub norms_first: bool,
    /// Which half of what widens in the feed-forward network goes through the activation, and is
    /// multiplied with the other.
    pub gate: Option<Gate>,
    /// Settings of config.json that change what is computed, each with the only value that is known here.
    pub fixed: &'static [(&'static str, &'static str)],
    /// Sizes from the shapes of tensors.
    sizes: fn(&ModelTensors) -> TensorSizes,
    /// The tensors of a model of these sizes, by these names.
    tensors: fn(&Architecture, &Names, &TensorSizes) -> Vec<TensorSpec>,
    /// The number of attention heads that models with so many values have.
    usual_heads: fn(u64) -> Option<u64>,
    /// Other names of a tensor.
    old_name: fn(&str) -> Option<String>,
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
        let whole = with_layers().find(|a| a.is_in(container));
        let shown = whole.or_else(|| with_layers().find(|a| a.prefix_in(container).is_some()));
        shown.map(|a| a.sizes(container)).unwrap_or_default()
    }
}

impl Architecture {
    /// The prefix of the names of a container's tensors, if it has this architecture's.
    pub fn prefix_in(&self, container: &Container) -> Option<&'static str> {
        self.names_in(container).map(|(_, prefix)| prefix)
    }

    /// The names that a container's tensors have, and what stands in front of them. Those of which there is
    /// a layer too count before others.
    pub fn names_in(&self, container: &Container) -> Option<(&'static Names, &'static str)> {
        let has_words = |names: &Names, prefix: &&str| {
            container.tensor(&format!("{prefix}{}", names.words)).is_some()
        };
        let prefix = |names| Some((names, *self.prefixes.iter().find(|p| has_words(names, p))?));
        let found = || self.names.iter().filter_map(prefix);
        found().find(|(names, prefix)| names.sign_in(container, prefix)).or_else(|| found().next())
    }

    /// Whether its models are a table of the tokens' vectors and nothing else.
    pub fn is_static(&self) -> bool {
        self.names.iter().all(|names| names.start.is_empty())
    }

    /// Whether a container has a table of tokens and a layer as this architecture names them. A table by
    /// itself may be anything: only files say that it is a model.
    pub fn is_in(&self, container: &Container) -> bool {
        let found = self.names_in(container);
        !self.is_static() && found.is_some_and(|(names, prefix)| names.sign_in(container, prefix))
    }

    /// The sizes that a container's tensors show.
    pub fn sizes(&'static self, container: &Container) -> TensorSizes {
        (self.sizes)(&ModelTensors::new(self, container))
    }

    /// The tensors of the model in a container, each with the one that is there. Those of sizes that are not
    /// known are left out.
    pub fn tensors_in<'a>(
        &'static self,
        container: &'a Container,
    ) -> impl Iterator<Item = (TensorSpec, Option<&'a Tensor>)> {
        let named = ModelTensors::new(self, container);
        let mut sizes = (self.sizes)(&named);
        sizes.layers = sizes.layers.map(|n| n.min(MOST_LAYERS));
        (self.tensors)(self, named.names, &sizes).into_iter().map(move |tensor| {
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
    names: &'static Names,
    prefix: &'static str,
    tensors: HashMap<&'a str, &'a Tensor>,
}

impl<'a> ModelTensors<'a> {
    /// Those of a container, if its model is of this architecture.
    pub fn new(architecture: &'static Architecture, container: &'a Container) -> ModelTensors<'a> {
        let usual = || (architecture.names.first().unwrap_or(&bert::NAMES), "");
        let (names, prefix) = architecture.names_in(container).unwrap_or_else(usual);
        let named = |t: &'a Tensor| Some((t.name.strip_prefix(prefix)?, t));
        let tensors = container.tensors.iter().filter_map(named).collect();
        ModelTensors { architecture, names, prefix, tensors }
    }

    /// The architecture that gives the names.
    pub fn architecture(&self) -> &'static Architecture {
        self.architecture
    }

    /// The names that it has for them.
    pub fn names(&self) -> &'static Names {
        self.names
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
            name.strip_prefix(self.names.start)?.split('.').next()?.parse::<u64>().ok()
        };
        // A layer with a number beyond that of all tensors makes no layers before it.
        let possible = |n: &u64| *n < self.tensors.len() as u64;
        self.tensors.keys().filter_map(|name| number(name)).filter(possible).max()?.checked_add(1)
    }
}
