//! What vectors were made with. A file remembers it, so that it can be asked with a text.

use super::output_type::StoredAs;
use serde::{Deserialize, Serialize};
use weighbridge_encoder::{Encoder, ModelId, Pooling, Precision, Prompt, Settings};
use weighbridge_format::model::EMBEDDING;
use weighbridge_format::{Advice, Container, Error};

/// A model, and how it was used. Its JSON is described in docs/json.md.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct MadeWith {
    /// The model.
    pub model: ModelId,
    /// The precision that it computed with: `f32`, `bf16` or `q8`.
    pub precision: String,
    /// What stood in front of every text.
    #[serde(default)]
    pub prompt: Option<Prompt>,
    /// How the vectors of a text's tokens became one, where that was not left to the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pooling: Option<String>,
    /// Whether vectors were brought to unit length, where that was not left to the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub normalize: Option<bool>,
    /// The most tokens of a text.
    pub max_tokens: usize,
    /// Values of a vector.
    pub dimensions: usize,
    /// What the values are stored as, where rows are not what the model computed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<StoredAs>,
}

impl MadeWith {
    /// What an encoder makes vectors with, that was opened with these settings.
    pub fn new(model: ModelId, encoder: &Encoder, settings: &Settings) -> MadeWith {
        MadeWith {
            model,
            precision: settings.precision.name().to_owned(),
            prompt: encoder.prompt().cloned(),
            pooling: settings.pooling.as_ref().map(|pooling| pooling.name().to_owned()),
            normalize: settings.normalize,
            max_tokens: encoder.max_tokens(),
            dimensions: encoder.dimensions(),
            output: None,
        }
    }

    /// Why rows that were made with this are not those that the other would make; none if they are. It
    /// does not matter where the model lies and what it is called.
    pub fn difference(&self, other: &MadeWith) -> Option<String> {
        // What processors of different kinds may change in f32, and no other tokenizer does not.
        const SAME: f64 = 0.99999;
        let text = |prompt: &Option<Prompt>| prompt.as_ref().map(|prompt| prompt.text.clone());
        let said = |value: &Option<String>| value.clone().unwrap_or("the model's own".to_owned());
        let two = |what: &str, a: &str, b: &str| Some(format!("{what} {a}, and not {b}"));
        let (mine, theirs) = (self, other);
        if mine.dimensions != theirs.dimensions {
            let (a, b) = (mine.dimensions.to_string(), theirs.dimensions.to_string());
            return two("vectors of so many values:", &a, &b);
        }
        if !mine.model.has_weights_of(&theirs.model) {
            let name = |id: &ModelId| {
                let hash = format!("{:.12}", id.weights);
                id.name.as_ref().map_or(hash.clone(), |name| format!("{name} ({hash})"))
            };
            return two("the model", &name(&mine.model), &name(&theirs.model));
        }
        if mine.precision != theirs.precision {
            return two("the precision", &mine.precision, &theirs.precision);
        }
        if text(&mine.prompt).unwrap_or_default() != text(&theirs.prompt).unwrap_or_default() {
            let quoted = |prompt| format!("{:?}", text(prompt).unwrap_or_default());
            return two("the prompt", &quoted(&mine.prompt), &quoted(&theirs.prompt));
        }
        if mine.pooling != theirs.pooling {
            return two("the pooling", &said(&mine.pooling), &said(&theirs.pooling));
        }
        if mine.normalize != theirs.normalize {
            let lengths = |made: &MadeWith| match made.normalize {
                None => "the model's own",
                Some(true) => "brought to 1",
                Some(false) => "left as they are",
            };
            return two("the lengths", lengths(mine), lengths(theirs));
        }
        if mine.max_tokens != theirs.max_tokens {
            let (a, b) = (mine.max_tokens.to_string(), theirs.max_tokens.to_string());
            return two("at most so many tokens:", &a, &b);
        }
        let cosine = mine.model.cosine(&theirs.model);
        let is_rounded = mine.precision != Precision::F32.name();
        cosine.is_none_or(|cosine| cosine < SAME).then(|| {
            let other = "a model that makes other vectors of the same texts".to_owned();
            // There are several ways to round, and which is the best depends on the processor.
            let why = format!(", as {} does on processors of another kind", mine.precision);
            if is_rounded { other + &why } else { other }
        })
    }

    /// What a container says of its rows.
    ///
    /// # Errors
    /// [`Error::Refused`] if it says something that makes no sense.
    pub fn of(container: &Container) -> Result<Option<MadeWith>, Error> {
        let Some(text) = container.text(EMBEDDING) else { return Ok(None) };
        // Others may have an entry of that name for something else.
        if !text.trim_ascii_start().starts_with('{') {
            return Ok(None);
        }
        let parsed: Result<MadeWith, _> = serde_json::from_str(text);
        let sound = |made: &MadeWith| {
            made.dimensions > 0 && made.model.probes.iter().all(|p| p.len() == made.dimensions)
        };
        match parsed {
            Ok(made) if sound(&made) => Ok(Some(made)),
            Ok(made) => Err(senseless(&format!(
                "vectors of {} values, with probes of others",
                made.dimensions
            ))),
            Err(error) => Err(senseless(&error.to_string())),
        }
    }

    /// Says so in a container.
    pub fn store(&self, container: &mut Container) {
        container.set_text(EMBEDDING, serde_json::to_string(self).unwrap_or_default());
    }

    /// Settings that give vectors of the same kind.
    pub fn settings(&self) -> Settings {
        Settings {
            precision: Precision::from_name(&self.precision).unwrap_or_default(),
            pooling: self.pooling.as_deref().map(Pooling::from_name),
            normalize: self.normalize,
            dimensions: Some(self.dimensions),
            ..Settings::default()
        }
    }

    /// Checks that an encoder's vectors can be compared with these: it is the same model, or one with
    /// rounded weights.
    ///
    /// # Errors
    /// [`Error::Refused`] that names both.
    pub fn check(&self, encoder: &Encoder, path: Option<String>) -> Result<(), Error> {
        let (name, probes) = (encoder.spec().name.clone(), encoder.probes()?);
        self.model.check_comparable(&ModelId::from_probes(name, path, probes))
    }
}

fn senseless(why: &str) -> Error {
    let what = format!("what the file says of the model of its rows makes no sense: {why}");
    Error::refused(what, Advice::set("model", "names the model"))
}
