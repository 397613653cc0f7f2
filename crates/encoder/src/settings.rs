//! What a user can set, and what the model's files say where nothing was set.

use weighbridge_format::{Advice, Container, Error};

/// The precision of the matrix products, which is most of the work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Precision {
    /// Weights and activations as f32.
    #[default]
    F32,
    /// Weights and activations rounded to bf16, sums in f32; on processors without such products,
    /// as [`Precision::F32`].
    Bf16,
    /// Weights and activations rounded to integers, sums exact.
    Q8,
}

/// How the vectors of a text's tokens become one vector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Pooling {
    /// The mean of the vectors.
    Mean,
    /// The vector of the first token, `[CLS]`.
    Cls,
    /// The largest value of each column.
    Max,
    /// The sum, divided by the square root of the number of tokens.
    MeanSqrtLen,
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
}

impl Pooling {
    /// Its name, as sentence-transformers has it.
    pub fn name(self) -> &'static str {
        match self {
            Pooling::Mean => "mean",
            Pooling::Cls => "cls",
            Pooling::Max => "max",
            Pooling::MeanSqrtLen => "mean_sqrt_len",
        }
    }

    /// The pooling with the name that sentence-transformers uses, such as `mean`.
    ///
    /// # Errors
    ///
    /// When there is no pooling with that name.
    pub fn parse(name: &str) -> Result<Pooling, Error> {
        match name {
            "mean" => Ok(Pooling::Mean),
            "cls" => Ok(Pooling::Cls),
            "max" => Ok(Pooling::Max),
            "mean_sqrt_len" | "mean_sqrt_len_tokens" => Ok(Pooling::MeanSqrtLen),
            _ => Err(Error::unsupported(
                format!("pooling {name}"),
                format!("the pooling \"{name}\" is not known"),
                Advice::from("mean, cls and max are")
                    .and(Advice::set("pooling", "chooses another than the model's")),
            )),
        }
    }
}

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

/// How many tokens of a text a model takes, `[CLS]` and `[SEP]` included, where its files say it.
pub fn token_limit(container: &Container) -> Option<usize> {
    container.text("max_seq_length").and_then(|text| text.parse().ok())
}

/// The settings in use: the user's, or else the model's.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ResolvedSettings {
    pub pooling: Pooling,
    pub normalize: bool,
    pub max_tokens: usize,
    pub dimensions: usize,
}

impl ResolvedSettings {
    pub(crate) fn new(
        settings: &Settings,
        container: &Container,
        hidden: usize,
        positions: usize,
    ) -> Result<ResolvedSettings, Error> {
        let pooling = match (settings.pooling, container.text("pooling")) {
            (Some(pooling), _) => pooling,
            (None, Some(name)) => Pooling::parse(name)?,
            (None, None) => Pooling::Mean,
        };
        let normalize = match (settings.normalize, container.text("normalize")) {
            (Some(normalize), _) => normalize,
            (None, None | Some("true")) => true,
            (None, Some("false")) => false,
            (None, Some(text)) => {
                let what = format!("metadata normalize is \"{text}\"");
                return Err(Error::refused(what, "true or false was expected"));
            }
        };
        let model_limit = token_limit(container);
        if let (None, Some(text)) = (model_limit, container.text("max_seq_length")) {
            let what = format!("metadata max_seq_length is \"{text}\"");
            return Err(Error::refused(what, "a number of tokens was expected"));
        }
        let max_tokens =
            settings.max_tokens.or(model_limit.filter(|n| *n <= positions)).unwrap_or(positions);
        if max_tokens > positions {
            return Err(Error::refused(
                format!("{max_tokens} tokens are more than the {positions} positions of the model"),
                "the model has learned no more",
            ));
        }
        if max_tokens < 3 {
            let what =
                format!("{max_tokens} tokens leave no room for text between [CLS] and [SEP]");
            return Err(Error::refused(what, "at least 3"));
        }
        let dimensions = settings.dimensions.unwrap_or(hidden);
        if dimensions == 0 || dimensions > hidden {
            let what = format!("{dimensions} dimensions of vectors that have {hidden}");
            return Err(Error::refused(what, format!("from 1 to {hidden}")));
        }
        Ok(ResolvedSettings { pooling, normalize, max_tokens, dimensions })
    }
}
