//! Texts to vectors.

use crate::container::Container;
use crate::error::Failure;
use serde::Deserialize;
use wasm_bindgen::prelude::*;
use weighbridge::encoder::{Precision, PromptChoice, Purpose, Settings};
use weighbridge::{Advice, Error};

/// A model that is ready.
#[wasm_bindgen]
#[derive(Debug)]
pub struct TextModel(weighbridge::Encoder);

/// What stands in front of each text: a given text, or what the model has for a purpose.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Prompting {
    prompt: Option<String>,
    purpose: Option<String>,
}

#[wasm_bindgen]
impl TextModel {
    /// The model in a file.
    #[wasm_bindgen(constructor)]
    pub fn new(container: &Container, compute: &str) -> Result<TextModel, JsValue> {
        let load = || -> Result<_, Failure> {
            let settings = Settings { precision: precision(compute)?, ..Settings::default() };
            Ok(weighbridge::Encoder::new(&container.0, &settings)?)
        };
        Ok(TextModel(load()?))
    }

    /// How many values a vector has.
    #[wasm_bindgen(getter)]
    pub fn dimensions(&self) -> usize {
        self.0.dimensions()
    }

    /// The most tokens of a text that count.
    #[wasm_bindgen(getter, js_name = maxTokens)]
    pub fn max_tokens(&self) -> usize {
        self.0.max_tokens()
    }

    /// The vectors of texts, one behind the other.
    pub fn embed(&self, texts: Vec<String>, prompting: &str) -> Result<Vec<f32>, JsValue> {
        let embed = || -> Result<_, Failure> {
            let Prompting { prompt, purpose } = serde_json::from_str(prompting)?;
            let choice = match (prompt, purpose.as_deref()) {
                (Some(text), _) => PromptChoice::Given(text),
                (None, Some("query")) => PromptChoice::For(Purpose::Query),
                (None, Some("document")) => PromptChoice::For(Purpose::Document),
                (None, _) => {
                    let usual = self.0.spec().default_prompt.clone();
                    PromptChoice::Given(usual.unwrap_or_default())
                }
            };
            Ok(self.0.with_prompt(&choice).embed_flat(&texts)?)
        };
        Ok(embed()?)
    }

    /// The numbers of a text's tokens.
    pub fn tokenize(&self, text: &str) -> Vec<u32> {
        let mut ids = Vec::new();
        self.0.tokenizer().encode_into(text, self.0.max_tokens(), &mut ids);
        ids
    }
}

fn precision(name: &str) -> Result<Precision, Error> {
    let unknown = || {
        let what = format!("there is no precision {name:?}");
        Error::refused(what, Advice::one_of("compute", ["f32", "q8"]))
    };
    Precision::from_name(name).ok_or_else(unknown)
}
