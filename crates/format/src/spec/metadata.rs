//! What the metadata of a container says of a model. It counts where it says something else than the
//! files: somebody set it.

use super::{Activation, Fact, Misstatement, ModelSpec, Module, Pooling, Prompt, SaidBy};
use crate::model::Container;
use serde_json::{Map, Value as Json};

pub(super) fn add(spec: &mut ModelSpec, container: &Container) {
    let mut entries = Entries { container, misstatements: &mut spec.misstatements };
    if let Some(name) = entries.text("model_name") {
        spec.name = Some(name.value);
    }
    if spec.architecture.is_none() {
        spec.architecture = entries.text("arch").or_else(|| entries.text("model_type"));
    }
    if let Some(pad) = entries.read("pad_token_id", "a whole number", |text| text.parse().ok()) {
        let Fact { value, said_by }: Fact<u64> = pad;
        let first = Fact { value: value.saturating_add(1), said_by };
        set(&mut spec.first_position, Some(first));
    }
    set(&mut spec.pools_prompt, entries.flag("include_prompt"));
    if spec.modules.is_empty() {
        let list = |text: &str| serde_json::from_str::<Vec<String>>(text).ok();
        let list = entries.read("modules", "a JSON list of names", list);
        // Their files were lost.
        let module = |kind| Module { kind, path: String::new() };
        spec.modules = list.into_iter().flat_map(|f| f.value).map(module).collect();
    }
    for (key, slot) in [
        ("embedding_dim", &mut spec.dimensions),
        ("vocab_size", &mut spec.vocabulary),
        ("num_layers", &mut spec.layers),
        ("num_attention_heads", &mut spec.heads),
        ("num_key_value_heads", &mut spec.key_value_heads),
        ("hidden_size", &mut spec.hidden),
        ("intermediate_size", &mut spec.intermediate),
        ("max_position_emb", &mut spec.positions),
        ("max_seq_length", &mut spec.max_tokens),
    ] {
        set_optional(slot, entries.read(key, "a whole number", |text| text.parse().ok()));
    }
    set(&mut spec.epsilon, entries.read("layer_norm_eps", "a number", |text| text.parse().ok()));
    let activation = |text: &str| Some(Activation::from_name(text));
    set(&mut spec.activation, entries.read("hidden_act", "a name", activation));
    let pooling = |text: &str| {
        Some(text.split('+').filter(|name| *name != "none").map(Pooling::from_name).collect())
    };
    set(&mut spec.pooling, entries.read("pooling", "names", pooling));
    set(&mut spec.normalize, entries.flag("normalize"));
    if spec.prompts.is_empty() {
        let prompts = entries.read("prompts", "a JSON object of texts", prompts);
        spec.prompts = prompts.map(|fact| fact.value).unwrap_or_default();
    }
    if spec.default_prompt.is_none() {
        spec.default_prompt = entries.text("default_prompt_name").map(|fact| fact.value);
    }
    if spec.matryoshka.is_empty() {
        let list = |text: &str| serde_json::from_str(text).ok();
        let list = entries.read("matryoshka_dimensions", "a JSON list of numbers", list);
        spec.matryoshka = list.map(|fact| fact.value).unwrap_or_default();
    }
    set(&mut spec.matryoshka_norm, entries.flag("matryoshka_norm"));
    let tokenizer = spec.tokenizer.get_or_insert_default();
    set_optional(&mut tokenizer.lower_case, entries.flag("do_lower_case"));
    set_optional(&mut tokenizer.strip_accents, entries.flag("strip_accents"));
    set_optional(&mut tokenizer.split_chinese, entries.flag("tokenize_chinese_chars"));
}

fn prompts(text: &str) -> Option<Vec<Prompt>> {
    let map: Map<String, Json> = serde_json::from_str(text).ok()?;
    let prompt =
        |(name, text): (String, Json)| Some(Prompt { name, text: text.as_str()?.to_owned() });
    Some(map.into_iter().filter_map(prompt).collect())
}

/// Reads entries, and notes those that make no sense.
struct Entries<'a> {
    container: &'a Container,
    misstatements: &'a mut Vec<Misstatement>,
}

impl Entries<'_> {
    fn read<T>(
        &mut self,
        key: &str,
        expected: &str,
        parse: impl Fn(&str) -> Option<T>,
    ) -> Option<Fact<T>> {
        let (_, value) = self.container.metadata.iter().find(|(k, _)| k == key)?;
        // Lists and bits say nothing here: their type is what was found.
        let text = value.to_plain_text();
        if let Some(value) = text.as_deref().and_then(parse) {
            return Some(Fact { value, said_by: SaidBy::Metadata(key.to_owned()) });
        }
        let (field, expected) = (format!("metadata {key}"), expected.to_owned());
        let found = text.map_or_else(|| value.type_name(), |text| format!("{text:?}"));
        self.misstatements.push(Misstatement { field, expected, found });
        None
    }

    fn text(&mut self, key: &str) -> Option<Fact<String>> {
        self.read(key, "a text", |text| Some(text.to_owned()))
    }

    fn flag(&mut self, key: &str) -> Option<Fact<bool>> {
        self.read(key, "true or false", |text| text.parse().ok())
    }
}

/// Sets what is said; where it only repeats what a file says it stays the file's.
fn set<T: PartialEq>(fact: &mut Fact<T>, said: Option<Fact<T>>) {
    if let Some(said) = said.filter(|said| fact.value != said.value || !fact.is_stated()) {
        *fact = said;
    }
}

fn set_optional<T: PartialEq>(slot: &mut Option<Fact<T>>, said: Option<Fact<T>>) {
    match slot {
        Some(fact) => set(fact, said),
        None => *slot = said,
    }
}
