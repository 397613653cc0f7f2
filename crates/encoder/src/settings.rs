//! What a user can set, and what the model's files say where nothing was set.

use crate::architectures::Sizes;
use crate::support::Lack;
use std::fmt;
pub use weighbridge_format::spec::Pooling;
use weighbridge_format::spec::{Fact, ModelSpec, SaidBy, pooling_name};
use weighbridge_format::wire::to_len;
use weighbridge_format::{Advice, Error};

/// The precision of the matrix products, which is most of the work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Precision {
    /// Weights and activations as f32.
    #[default]
    F32,
    /// Weights and activations rounded to bf16, sums in f32; on processors without such products,
    /// as [`Precision::F32`]. It is faster than that where the processor multiplies tiles (AMX); without
    /// them some processors have such products that are slower.
    Bf16,
    /// The fastest, with weights and activations rounded: to bytes in blocks or to integers of 16 bits,
    /// with exact sums; where the processor multiplies tiles of bf16, as [`Precision::Bf16`].
    Q8,
}

impl Precision {
    /// Its name: `f32`, `bf16` or `q8`.
    pub fn name(self) -> &'static str {
        match self {
            Precision::F32 => "f32",
            Precision::Bf16 => "bf16",
            Precision::Q8 => "q8",
        }
    }

    /// The one with this name.
    pub fn from_name(name: &str) -> Option<Precision> {
        [Precision::F32, Precision::Bf16, Precision::Q8].into_iter().find(|p| p.name() == name)
    }
}

/// The poolings of a model, if there are such here; their vectors stand one behind the other.
pub(crate) fn supported_pooling(modes: &[Pooling]) -> Result<&[Pooling], Lack> {
    let is_known = |mode: &Pooling| !matches!(mode, Pooling::Other(_));
    if !modes.is_empty() && modes.len() <= MOST_POOLINGS && modes.iter().all(is_known) {
        return Ok(modes);
    }
    let name = pooling_name(modes);
    Err(Lack {
        name: format!("pooling {name}"),
        message: format!("the pooling \"{name}\" is not supported"),
        advice: Advice::from("mean, cls, max, lasttoken, weightedmean and mean_sqrt_len are")
            .and(Advice::set("pooling", "chooses another than the model's")),
    })
}

/// There are no more different ones.
const MOST_POOLINGS: usize = 6;

/// What to do otherwise than the model's own settings say; `None` leaves a setting to the model.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// The precision of the matrix products.
    pub precision: Precision,
    /// How the vectors of a text's tokens become one vector.
    pub pooling: Option<Pooling>,
    /// Whether vectors are scaled to length 1.
    pub normalize: Option<bool>,
    /// The most tokens of a text, `[CLS]` and `[SEP]` included.
    pub max_tokens: Option<usize>,
    /// How many of a vector's first values are kept; all without it.
    pub dimensions: Option<usize>,
    /// How many threads to use; all cores, or those of the rayon pool that it is called
    /// in, without it.
    pub threads: Option<usize>,
}

impl Settings {
    /// The poolings in use.
    pub(crate) fn poolings<'a>(&'a self, spec: &'a ModelSpec) -> &'a [Pooling] {
        self.pooling.as_ref().map_or(&spec.pooling.value[..], std::slice::from_ref)
    }
}

/// A setting in use that neither the user nor the model said.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Assumption {
    /// How the vectors of a text's tokens become one.
    Pooling(Fact<Vec<Pooling>>),
    /// Whether vectors are scaled to length 1.
    Normalize(Fact<bool>),
    /// The first values of a vector are one by themselves.
    Dimensions {
        /// So many values were asked for.
        kept: usize,
        /// So many there are.
        of: usize,
    },
}

/// `mean pooling`, `normalized`, and the family that it is known of; `128 of 384 values are enough`.
impl fmt::Display for Assumption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let said_by = match self {
            Assumption::Pooling(fact) => {
                write!(f, "{} pooling", pooling_name(&fact.value))?;
                &fact.said_by
            }
            Assumption::Normalize(fact) => {
                f.write_str(if fact.value { "normalized" } else { "not normalized" })?;
                &fact.said_by
            }
            Assumption::Dimensions { kept, of } => {
                return write!(f, "{kept} of {of} values are enough");
            }
        };
        match said_by {
            SaidBy::Family(family) => write!(f, " (known of {family})"),
            _ => Ok(()),
        }
    }
}

/// What a model is loaded for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Use {
    /// A vector of each text.
    Vectors,
    /// Scores of pairs of texts.
    Scores,
}

/// The settings in use: the user's, or else the model's.
#[derive(Clone, Debug)]
pub(crate) struct ResolvedSettings {
    pub assumed: Vec<Assumption>,
    pub pooling: Vec<Pooling>,
    pub normalize: bool,
    /// Whether vectors go through a layer normalization before they are cut to fewer values.
    pub centres: bool,
    pub max_tokens: usize,
    pub dimensions: usize,
}

impl ResolvedSettings {
    /// Vectors of a text have so many values unless fewer are asked for.
    pub(crate) fn new(
        settings: &Settings,
        spec: &ModelSpec,
        sizes: Sizes,
        width: usize,
        what_for: Use,
    ) -> Result<ResolvedSettings, Error> {
        let positions = sizes.positions;
        let modes = settings.poolings(spec);
        // A model whose first token is classified need not say how others would be pooled.
        let pooling = match what_for {
            Use::Scores => Vec::new(),
            Use::Vectors => supported_pooling(modes).map_err(Lack::into_error)?.to_vec(),
        };
        let normalize = settings.normalize.unwrap_or(spec.normalize.value);
        let model_limit = spec.max_tokens.as_ref().map(|limit| to_len(limit.value));
        let max_tokens =
            settings.max_tokens.or(model_limit.filter(|n| *n <= positions)).unwrap_or(positions);
        if max_tokens > positions {
            return Err(Error::refused(
                format!("{max_tokens} tokens are more than the {positions} positions of the model"),
                "the model has learned no more",
            ));
        }
        let is_static = spec.known_architecture().is_some_and(|known| known.is_static());
        if max_tokens == 0 || (max_tokens < 3 && !is_static) {
            let what = match is_static {
                true => "a limit of 0 tokens leaves no room for text".to_owned(),
                false => format!(
                    "a limit of {max_tokens} tokens leaves no room for text between [CLS] and [SEP]"
                ),
            };
            let least = if is_static { "at least 1" } else { "at least 3" };
            return Err(Error::refused(what, least));
        }
        let dimensions = settings.dimensions.unwrap_or(width);
        if dimensions == 0 || dimensions > width {
            let what =
                format!("{dimensions} dimensions were asked for, but the vectors have {width}");
            return Err(Error::refused(what, format!("from 1 to {width}")));
        }
        let mut assumed = match what_for {
            Use::Scores => Vec::new(),
            Use::Vectors => assumed(settings, spec, &pooling),
        };
        let is_cut = dimensions < width;
        if is_cut && !spec.matryoshka.contains(&(dimensions as u64)) {
            assumed.push(Assumption::Dimensions { kept: dimensions, of: width });
        }
        // Vectors that were made to be cut have a length of their own afterwards.
        let centres = is_cut && spec.matryoshka_norm.value;
        let normalize = normalize || (centres && settings.normalize.is_none());
        Ok(ResolvedSettings { assumed, pooling, normalize, centres, max_tokens, dimensions })
    }
}

/// What nobody said, of what makes one vector of a text.
fn assumed(settings: &Settings, spec: &ModelSpec, pooling: &[Pooling]) -> Vec<Assumption> {
    let mut list = Vec::new();
    if settings.pooling.is_none() && spec.pooling.is_unsaid() {
        let said_by = spec.pooling.said_by.clone();
        list.push(Assumption::Pooling(Fact { value: pooling.to_vec(), said_by }));
    }
    if settings.normalize.is_none() && spec.normalize.is_unsaid() {
        list.push(Assumption::Normalize(spec.normalize.clone()));
    }
    list
}
