//! What stands in front of texts: many models were trained with one text before questions and another
//! before what answers them, and give worse vectors without.

use super::Encoder;
use std::borrow::Cow;
use std::sync::Arc;
use weighbridge_format::spec::{ModelSpec, Prompt};

/// What vectors are for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Texts that are stored, and found later.
    Document,
    /// Texts that are asked with.
    Query,
}

impl Purpose {
    /// The names that prompts for it have, the usual one first: those of sentence-transformers.
    fn names(self) -> &'static [&'static str] {
        match self {
            Purpose::Document => &["document", "passage", "corpus"],
            Purpose::Query => &["query"],
        }
    }
}

/// Which prompt is wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PromptChoice {
    /// The model's own for a purpose, else its default, if it has any.
    For(Purpose),
    /// The model's own of this name, or else this text; nothing if it is empty.
    Given(String),
}

impl PromptChoice {
    /// What was asked for, or else the model's own for this purpose.
    pub fn new(given: Option<&str>, purpose: Purpose) -> PromptChoice {
        given.map_or(PromptChoice::For(purpose), |text| PromptChoice::Given(text.to_owned()))
    }

    /// The prompt of a model; one without text is none.
    pub fn of(&self, spec: &ModelSpec) -> Option<Prompt> {
        let named = |name: &str| spec.prompts.iter().find(|prompt| prompt.name == name);
        let found = match self {
            PromptChoice::For(purpose) => {
                let default = spec.default_prompt.as_deref();
                purpose.names().iter().copied().chain(default).find_map(named).cloned()
            }
            PromptChoice::Given(text) => {
                let as_text = || Prompt { name: String::new(), text: text.clone() };
                Some(named(text).cloned().unwrap_or_else(as_text))
            }
        };
        found.filter(|prompt| !prompt.text.is_empty())
    }
}

impl Encoder {
    /// The same model, with what stands in front of texts of this purpose.
    pub fn for_purpose(&self, purpose: Purpose) -> Encoder {
        self.with_prompt(&PromptChoice::For(purpose))
    }

    /// The same model, with another prompt in front of every text.
    pub fn with_prompt(&self, choice: &PromptChoice) -> Encoder {
        let prompt = choice.of(self.spec()).map(Arc::new);
        let skipped = match &prompt {
            Some(prompt) if !self.spec().pools_prompt.value => self.tokens_before(&prompt.text),
            _ => 0,
        };
        Encoder { prompt, skipped, inner: self.inner.clone() }
    }

    /// How many tokens stand before a text behind this prompt: its own, and the special ones in front.
    fn tokens_before(&self, prompt: &str) -> usize {
        let mut ids = Vec::new();
        self.tokenizer().encode_into(prompt, self.max_tokens(), &mut ids);
        ids.len() - self.tokenizer().tokens_behind().min(ids.len())
    }

    /// The same model, for texts as they are.
    pub fn without_prompt(&self) -> Encoder {
        Encoder { prompt: None, skipped: 0, inner: self.inner.clone() }
    }

    /// What is put in front of every text. One that was given as a text has no name.
    pub fn prompt(&self) -> Option<&Prompt> {
        self.prompt.as_deref()
    }
}

/// A text with what stands in front of it.
pub(super) fn prompted<'a>(prompt: Option<&Prompt>, text: &'a str) -> Cow<'a, str> {
    match prompt {
        None => Cow::Borrowed(text),
        Some(prompt) => Cow::Owned([&prompt.text, text].concat()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(prompts: &[(&str, &str)], default: Option<&str>) -> ModelSpec {
        let mut spec = ModelSpec::default();
        let prompt = |(name, text): &(&str, &str)| Prompt {
            name: (*name).to_owned(),
            text: (*text).to_owned(),
        };
        spec.prompts = prompts.iter().map(prompt).collect();
        spec.default_prompt = default.map(str::to_owned);
        spec
    }

    #[test]
    fn prompts_are_chosen_as_sentence_transformers_does() {
        let of = |choice: &PromptChoice, spec: &ModelSpec| choice.of(spec).map(|p| p.text);
        let (document, query) =
            (PromptChoice::For(Purpose::Document), PromptChoice::For(Purpose::Query));
        let given = |text: &str| PromptChoice::new(Some(text), Purpose::Query);
        let e5 = spec(&[("query", "query: "), ("passage", "passage: ")], None);
        assert_eq!(of(&query, &e5).as_deref(), Some("query: "));
        assert_eq!(of(&document, &e5).as_deref(), Some("passage: "));
        assert_eq!(of(&given("passage"), &e5).as_deref(), Some("passage: "));
        assert_eq!(of(&given("Find: "), &e5).as_deref(), Some("Find: "));
        assert_eq!(of(&given(""), &e5), None);
        // Documents of models that only ask with one stand alone, unless there is a default.
        let bge = spec(&[("query", "Represent: "), ("document", ""), ("sts", "s")], Some("sts"));
        assert_eq!(of(&document, &bge), None);
        assert_eq!(of(&query, &bge).as_deref(), Some("Represent: "));
        let only = spec(&[("sts", "s: ")], Some("sts"));
        assert_eq!(of(&document, &only).as_deref(), Some("s: "));
        assert_eq!(of(&document, &spec(&[], Some("gone"))), None);
        assert_eq!(of(&query, &spec(&[], None)), None);
    }
}
