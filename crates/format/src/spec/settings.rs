//! A description as metadata: what formats without files of their own say of a model.

use super::{Fact, ModelSpec, Pooling, Positions};
use serde_json::{Number, Value as Json};

/// Modules that the metadata can say: one encoder, a pooling, a normalization.
const USUAL_MODULES: [&str; 3] = ["Transformer", "Pooling", "Normalize"];

/// The architecture of models of which nothing says it, and all that the metadata can say.
const PLAIN: &str = "bert";
const SAYABLE: [&str; 2] = [PLAIN, "distilbert"];

impl ModelSpec {
    /// The settings that files or metadata say, as metadata keys and texts in their usual order.
    pub fn settings(&self) -> Vec<(&'static str, String)> {
        let mut list = vec![("model_version", "1.0.0".to_owned())];
        let known = self.known_architecture();
        let mut add = |key: &'static str, value: Option<String>| {
            list.extend(value.map(|value| (key, value)));
        };
        let stated = |fact: &Option<Fact<u64>>| {
            fact.as_ref().filter(|f| f.is_stated()).map(|f| f.value.to_string())
        };
        let flag = |fact: &Option<Fact<bool>>| {
            fact.as_ref().filter(|f| f.is_stated()).map(|f| f.value.to_string())
        };
        // What nobody says is a BERT.
        let kind = self.architecture.as_ref().filter(|a| a.is_stated() && a.value != PLAIN);
        add("model_type", kind.filter(|_| known.is_some()).map(|a| a.value.clone()));
        add("embedding_dim", stated(&self.dimensions).or_else(|| stated(&self.hidden)));
        add("vocab_size", stated(&self.vocabulary));
        add("num_layers", stated(&self.layers));
        add("num_attention_heads", stated(&self.heads));
        add("hidden_size", stated(&self.hidden));
        add("intermediate_size", stated(&self.intermediate));
        add("max_position_emb", stated(&self.positions));
        let pads = known.is_some_and(|known| known.pads_positions);
        let pad = said(&self.first_position).filter(|_| pads).and_then(|n| n.checked_sub(1));
        add("pad_token_id", pad.map(|n| n.to_string()));
        add("pooling", said(&self.pooling).map(|modes| pooling_name(modes)));
        add("include_prompt", said(&self.pools_prompt).filter(|on| !**on).map(bool::to_string));
        add("normalize", said(&self.normalize).map(bool::to_string));
        if !self.has_usual_modules() {
            let kinds = self.modules.iter().map(|module| module.kind.as_str());
            add("modules", Some(Json::from(kinds.collect::<Vec<_>>()).to_string()));
        }
        add("max_seq_length", stated(&self.max_tokens));
        if let Some(tokenizer) = &self.tokenizer {
            add("do_lower_case", flag(&tokenizer.lower_case));
            add("strip_accents", flag(&tokenizer.strip_accents));
            add("tokenize_chinese_chars", flag(&tokenizer.split_chinese));
        }
        let number = |v: &f64| Number::from_f64(*v).map(|n| n.to_string());
        add("layer_norm_eps", said(&self.epsilon).and_then(number));
        add("hidden_act", said(&self.activation).map(|a| a.name().to_owned()));
        if self.prompts.iter().any(|p| !p.text.is_empty()) {
            let prompts = self.prompts.iter().map(|p| (p.name.clone(), p.text.clone().into()));
            add("prompts", Some(Json::Object(prompts.collect()).to_string()));
        }
        add("default_prompt_name", self.default_prompt.clone());
        if !self.matryoshka.is_empty() {
            add("matryoshka_dimensions", Some(Json::from(self.matryoshka.clone()).to_string()));
        }
        add("matryoshka_norm", said(&self.matryoshka_norm).map(bool::to_string));
        list
    }

    /// Whether the metadata can say all that the files say of the model: one without modules of its own, of
    /// an architecture that [`ModelSpec::settings`] has words for.
    pub fn is_sayable(&self) -> bool {
        let is_known = self.architecture.as_ref().is_some_and(|a| SAYABLE.contains(&&*a.value));
        is_known && self.position_scheme.value == Positions::Absolute && self.has_usual_modules()
    }

    fn has_usual_modules(&self) -> bool {
        self.modules.iter().all(|m| USUAL_MODULES.contains(&m.kind.as_str()))
    }
}

/// What a file or the metadata said.
fn said<T>(fact: &Fact<T>) -> Option<&T> {
    fact.is_stated().then_some(&fact.value)
}

/// The name of one or several poolings.
pub fn pooling_name(modes: &[Pooling]) -> String {
    match modes {
        [] => "none".to_owned(),
        modes => modes.iter().map(Pooling::name).collect::<Vec<_>>().join("+"),
    }
}
