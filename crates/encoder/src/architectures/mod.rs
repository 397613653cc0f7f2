//! The architectures that texts can be taken through, and the one table of them.
//!
//! An architecture is a [`Model`] made of the parts in `layers`, and a line in [`ARCHITECTURES`].
//! What its tensors are called and which shapes they have is said by the description of a model in
//! `weighbridge_format::spec`.

mod bert;
mod config;
mod table;

pub(crate) use table::Table;

use crate::layers::{Packing, Scratch};
use crate::team::Member;
use crate::tensors::Tensors;
use std::fmt::Debug;
use std::ops::Range;
use weighbridge_format::spec::{self, ModelSpec};
use weighbridge_format::{Container, Error, Tensor};

/// Every architecture. One more is a file and a line here.
static ARCHITECTURES: [Architecture; 9] = [
    Architecture { described: &spec::BERT, load: bert::load },
    Architecture { described: &spec::ROBERTA, load: bert::load },
    Architecture { described: &spec::DISTILBERT, load: bert::load },
    Architecture { described: &spec::MPNET, load: bert::load },
    Architecture { described: &spec::NOMIC, load: bert::load },
    Architecture { described: &spec::MODERNBERT, load: bert::load },
    Architecture { described: &spec::GTE, load: bert::load },
    Architecture { described: &spec::MODEL2VEC, load: table::load },
    Architecture { described: &spec::STATIC_EMBEDDING, load: table::load },
];

/// An architecture whose models can be run.
#[derive(Debug)]
pub(crate) struct Architecture {
    /// What it is called, and what its tensors are.
    described: &'static spec::Architecture,
    load: Load,
}

/// Loads the weights of a model.
type Load = fn(&ModelSpec, &Tensors, Packing) -> Result<Box<dyn Model>, Error>;

impl Architecture {
    /// The architecture of a model that is described. Where nothing says which it is, the first is
    /// as good as any: the tensors that it lacks are named.
    pub(crate) fn of(model: &ModelSpec) -> Option<&'static Architecture> {
        let Some(fact) = &model.architecture else { return ARCHITECTURES.first() };
        ARCHITECTURES.iter().find(|a| a.described.model_types.contains(&fact.value.as_str()))
    }

    /// How its models know where in a text a token stands.
    pub(crate) fn positions(&self) -> &'static spec::Positions {
        &self.described.positions
    }

    /// Whether its models are a table of the tokens' vectors and nothing else.
    pub(crate) fn is_static(&self) -> bool {
        self.described.is_static()
    }

    /// What `model_type` in config.json says of models that can be run.
    pub(crate) fn model_types() -> impl Iterator<Item = &'static str> {
        ARCHITECTURES.iter().flat_map(|a| a.described.model_types).copied()
    }

    /// The tensors of a model, by the names that the architecture gives them.
    pub(crate) fn weights(&self, container: &Container) -> Vec<(String, Tensor)> {
        let named = self.described.tensors_in(container);
        named.filter_map(|(spec, found)| Some((spec.name, found?.clone()))).collect()
    }

    pub(crate) fn tensors<'a>(&self, container: &'a Container) -> Tensors<'a> {
        Tensors::new(self.described, container)
    }

    /// Loads the weights of a model.
    ///
    /// # Errors
    /// If some are missing, have other shapes, or are NaN or infinite.
    pub(crate) fn load(
        &self,
        model: &ModelSpec,
        container: &Container,
        packing: Packing,
    ) -> Result<Box<dyn Model>, Error> {
        (self.load)(model, &self.tensors(container), packing)
    }
}

/// A model that is ready to run: weights, and how tokens go through them.
pub(crate) trait Model: Debug + Send + Sync {
    fn sizes(&self) -> Sizes;

    /// How many threads can share the work of one batch.
    fn most_members(&self) -> usize;

    /// The names of the weights of each product, in the order in which products are computed.
    fn products(&self) -> Vec<Vec<String>>;

    /// Fills `hidden` of the scratch with the vectors that tokens have before the first layer.
    ///
    /// # Errors
    /// If the weights can't be read.
    fn embed(&self, batch: Batch, scratch: &mut Scratch) -> Result<(), Error>;

    /// Takes the vectors in `hidden` of the scratch through all layers. Every member of a team
    /// does, with a scratch of its own. Afterwards there is a row for each token, or for each text where
    /// only its first token is asked for.
    fn run(
        &self,
        batch: Batch,
        member: &mut Member,
        scratch: &mut Scratch,
        observer: Option<Observer>,
    );

    /// Takes texts through the model twice, side by side: as it is, and with the weights that
    /// `choose` gives each product when its turn comes. There the texts start with the embeddings
    /// of other tensors.
    ///
    /// # Errors
    /// If the weights can't be read or used; errors of `choose`.
    fn rehearse(&self, batch: Batch, start: &Tensors, choose: Choose) -> Result<(), Error>;

    /// The table of a model that is nothing else: its texts need no batches.
    fn table(&self) -> Option<&Table> {
        None
    }
}

/// Sizes of a model that matter to whoever runs it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sizes {
    /// Values of a token's vector.
    pub hidden: usize,
    /// The most tokens of a text.
    pub positions: usize,
    /// Tokens that have a vector.
    pub vocabulary: usize,
}

/// Texts that go through a model together.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Batch<'a> {
    /// The tokens of all texts, one text behind the other.
    pub ids: &'a [u32],
    /// Where each text is.
    pub texts: &'a [Range<usize>],
    /// For each text, how many tokens it has before those of the second kind, where some have such.
    pub seconds: &'a [usize],
    /// Only the vector of each text's first token is asked for, and every text has one. Then a model
    /// need not make the others, and leaves a row for each text.
    pub only_first: bool,
}

impl Batch<'_> {
    /// Of rows for all tokens, keeps those of each text's first.
    fn keep_first(&self, rows: &mut Vec<f32>, width: usize) {
        for (i, text) in self.texts.iter().enumerate() {
            rows.copy_within(text.start * width..(text.start + 1) * width, i * width);
        }
        rows.truncate(self.texts.len() * width);
    }
}

/// Is called with the index of a product, in the order of [`Model::products`], and the rows that are
/// about to be its input.
pub(crate) type Observer<'a> = &'a mut dyn FnMut(usize, &[f32]);

/// Chooses the weights of a product.
pub(crate) type Choose<'a> = &'a mut dyn FnMut(Rehearsed<'_>) -> Result<ChosenWeights, Error>;

/// The matrices of a product, each with its bias: as many as
/// [`Encoder::products`](crate::Encoder::products) names.
pub type ChosenWeights = Vec<(Tensor, Vec<f32>)>;

/// A product whose weights are to be chosen, and what it is for.
#[derive(Debug)]
#[non_exhaustive]
pub struct Rehearsed<'a> {
    /// Its index in [`Encoder::products`](crate::Encoder::products).
    pub product: usize,
    /// The rows of all tokens that will be its input, one behind the other.
    pub inputs: &'a [f32],
    /// What is wanted of it.
    pub aim: Aim<'a>,
}

/// What is wanted of a product that gets new weights.
#[derive(Clone, Copy, Debug)]
pub enum Aim<'a> {
    /// What the old weights make of their inputs: these rows are the inputs of the old.
    AsBefore(&'a [f32]),
    /// These rows, of all matrices side by side: with them, a sum that the product is a part of is
    /// what it was.
    Results(&'a [f32]),
}
