//! What a model is: one typed description, whichever file said it.
//!
//! [`ModelSpec::of`] makes it of a container: from config.json and the files around it, from
//! metadata, from the names and shapes of tensors, and where none of these says something, from
//! what is usual. Every fact says which of these it was.

mod architecture;
mod check;
mod display;
mod facts;
mod families;
mod files;
mod metadata;
mod read;
mod rope;
mod settings;
pub mod tokenizer;
mod values;

pub use architecture::{
    Architecture, BERT, DISTILBERT, GTE, Gate, MODEL2VEC, MODERNBERT, MPNET, ModelTensors, NOMIC,
    Names, Product, ROBERTA, STATIC_EMBEDDING, TensorSizes, TensorSpec, architectures,
};
pub(crate) use check::check;
pub use check::model_rules;
pub use facts::{Fact, Misstatement, SaidBy};
pub use files::{Attached, ModelFiles};
pub(crate) use read::tokenizer_facts;
pub use settings::pooling_name;
pub use values::{Activation, Module, Pooling, Positions, Prompt, RopeScaling};

use crate::Error;
use crate::model::Container;
use crate::wire::{Rule, Stop};
use serde::{Serialize, Serializer};

/// The rule that what is said of a model and its content agree, for formats without their own.
pub(crate) const DISAGREES: Rule = check::DISAGREES;

/// What is known of a model. Its JSON is described in docs/json.md.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct ModelSpec {
    /// Its name: as metadata or its folder has it, else as config.json does.
    pub name: Option<String>,
    /// The name that config.json has: of this model, or of the one that it was trained from.
    pub base: Option<Fact<String>>,
    /// The architecture, as `model_type` in config.json names it: `bert`.
    pub architecture: Option<Fact<String>>,
    /// The class that config.json names: `BertModel`.
    pub class: Option<String>,
    /// The code of its own that config.json says the model comes with: `org/repo--modeling.NewModel`.
    pub remote_code: Option<String>,
    /// Layers.
    pub layers: Option<Fact<u64>>,
    /// Values of a token's vector between the layers.
    pub hidden: Option<Fact<u64>>,
    /// Heads of the attention.
    pub heads: Option<Fact<u64>>,
    /// Heads of keys and values, where they are fewer.
    pub key_value_heads: Option<Fact<u64>>,
    /// Values of a token's vector inside the feed-forward network.
    pub intermediate: Option<Fact<u64>>,
    /// Tokens that have a vector.
    pub vocabulary: Option<Fact<u64>>,
    /// Positions that have a vector.
    pub positions: Option<Fact<u64>>,
    /// The position of a text's first token; those before it belong to no text.
    pub first_position: Fact<u64>,
    /// Values of a text's vector.
    pub dimensions: Option<Fact<u64>>,
    /// The activation of the feed-forward network.
    pub activation: Fact<Activation>,
    /// What layer normalization adds to the variance.
    pub epsilon: Fact<f64>,
    /// How the model knows where in a text a token stands.
    pub position_scheme: Fact<Positions>,
    /// The base of the angles of rotary positions.
    pub rope_theta: Option<Fact<f64>>,
    /// That of layers that attend to neighbours alone, where it is another.
    pub local_rope_theta: Option<Fact<f64>>,
    /// How these angles are stretched.
    pub rope_scaling: Fact<RopeScaling>,
    /// By how much.
    pub rope_factor: Option<Fact<f64>>,
    /// Tokens that a layer attends to which knows neighbours alone, on both sides together.
    pub local_attention: Option<Fact<u64>>,
    /// The numbers of these layers.
    pub local_layers: Fact<Vec<u64>>,
    /// How the vectors of a text's tokens become one; several are put one behind the other.
    pub pooling: Fact<Vec<Pooling>>,
    /// Whether the tokens of a prompt are pooled too.
    pub pools_prompt: Fact<bool>,
    /// Whether vectors are scaled to length 1.
    pub normalize: Fact<bool>,
    /// What happens to the score of a pair of texts, by the name of PyTorch's class, where a model for such
    /// scores says it.
    pub score_activation: Option<Fact<String>>,
    /// The most tokens of a text, special tokens included.
    pub max_tokens: Option<Fact<u64>>,
    /// What stands in front of texts of some kind.
    pub prompts: Vec<Prompt>,
    /// The name of the prompt that is used unless another is asked for.
    pub default_prompt: Option<String>,
    /// Numbers of first values that make a vector by themselves.
    pub matryoshka: Vec<u64>,
    /// Whether a vector goes through a layer normalization before it is cut to fewer values.
    pub matryoshka_norm: Fact<bool>,
    /// What texts go through, as modules.json lists it.
    pub modules: Vec<Module>,
    /// How texts become tokens.
    pub tokenizer: Option<TokenizerFacts>,
    /// Settings that make sense, but change what is computed in ways that nothing here follows.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unusual: Vec<Misstatement>,
    /// Settings that say nothing that makes sense.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub misstatements: Vec<Misstatement>,
    /// Files that are not what they should be, so that they say nothing.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unreadable: Vec<Misstatement>,
}

/// What is usual, as nothing is known yet.
impl Default for ModelSpec {
    fn default() -> ModelSpec {
        ModelSpec {
            name: None,
            base: None,
            architecture: None,
            class: None,
            remote_code: None,
            layers: None,
            hidden: None,
            heads: None,
            key_value_heads: None,
            intermediate: None,
            vocabulary: None,
            positions: None,
            first_position: Fact::assumed(0),
            dimensions: None,
            activation: Fact::default(),
            epsilon: Fact::assumed(1e-12),
            position_scheme: Fact::default(),
            rope_theta: None,
            local_rope_theta: None,
            rope_scaling: Fact::default(),
            rope_factor: None,
            local_attention: None,
            local_layers: Fact::default(),
            pooling: Fact::assumed(vec![Pooling::Mean]),
            pools_prompt: Fact::assumed(true),
            normalize: Fact::assumed(true),
            score_activation: None,
            max_tokens: None,
            prompts: Vec::new(),
            default_prompt: None,
            matryoshka: Vec::new(),
            matryoshka_norm: Fact::default(),
            modules: Vec::new(),
            tokenizer: None,
            unusual: Vec::new(),
            misstatements: Vec::new(),
            unreadable: Vec::new(),
        }
    }
}

/// What is known of a model's tokenizer.
#[derive(Clone, Debug, Default, Serialize)]
#[non_exhaustive]
pub struct TokenizerFacts {
    /// Its kind, which is that of the model that words become tokens with: `WordPiece`.
    pub kind: Fact<String>,
    /// What happens to the characters of a text first: `BertNormalizer`; `none` where a file says
    /// that nothing does.
    pub normalizer: Option<Fact<String>>,
    /// How a text is taken apart into words: `BertPreTokenizer`, or `none`.
    pub pre_tokenizer: Option<Fact<String>>,
    /// What is put around the tokens of a text: `TemplateProcessing`, or `none`.
    pub post_processor: Option<Fact<String>>,
    /// Whether texts become lower case.
    pub lower_case: Option<Fact<bool>>,
    /// Whether accents are taken off.
    pub strip_accents: Option<Fact<bool>>,
    /// Whether Chinese characters are words of their own.
    pub split_chinese: Option<Fact<bool>>,
    /// How many tokens its vocabulary has.
    pub tokens: Option<u64>,
    /// Every step of its normalizer and its pre-tokenizer.
    #[serde(skip)]
    pub steps: Vec<tokenizer::Step>,
    /// The tokens that are put around a text, with the numbers that the post-processor has for them.
    #[serde(skip)]
    pub around: Vec<(String, u32)>,
    /// Special tokens by name.
    #[serde(serialize_with = "as_map")]
    pub special: Vec<(String, u32)>,
}

fn as_map<S: Serializer>(list: &[(String, u32)], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(list.iter().map(|(name, id)| (name, id)))
}

impl ModelSpec {
    /// The description of the model that a container holds. If it holds none, no architecture is
    /// named: no file says one, and none has such tensors.
    ///
    /// # Errors
    /// If the files in it can't be read. What can't be understood says nothing.
    pub fn of(container: &Container) -> Result<ModelSpec, Error> {
        read::describe(container)
    }

    /// The description in the files of a model.
    ///
    /// # Errors
    /// If they can't be read or are not what they should be.
    pub fn from_files(files: &dyn ModelFiles) -> Result<ModelSpec, Stop> {
        read::from_files(files)
    }

    /// The architecture with what is known of it here.
    pub fn known_architecture(&self) -> Option<&'static Architecture> {
        let id = self.architecture.as_ref()?;
        architectures().iter().copied().find(|a| a.model_types.contains(&id.value.as_str()))
    }
}
