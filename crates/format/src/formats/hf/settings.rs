//! The settings of a sentence embedder, out of the several files that hold them.

use super::super::Stop;
use super::files::Files;
use super::tokenizer::Tokenizer;
use serde_json::Value as Json;

/// Metadata keys and values, in the order in which they are written.
pub(super) struct Settings {
    /// A plain BERT, of which these settings say all.
    pub is_bert: bool,
    pub list: Vec<(&'static str, String)>,
}

impl Settings {
    pub(super) fn read(
        files: &Files,
        config: &Json,
        tokenizer: &Tokenizer,
    ) -> Result<Settings, Stop> {
        let text = |json: &Json| match json {
            Json::String(s) => Some(s.clone()),
            Json::Number(n) => Some(n.to_string()),
            Json::Bool(b) => Some(b.to_string()),
            _ => None,
        };
        let pooling = files.json("1_Pooling/config.json")?;
        let limits = files.json("sentence_bert_config.json")?;
        let modules = files.json("modules.json")?;
        let mut list = vec![("model_version", "1.0.0".to_owned())];
        let mut add = |key: &'static str, value: Option<String>| {
            if let Some(value) = value {
                list.push((key, value));
            }
        };
        let hidden = text(&config["hidden_size"]);
        add("embedding_dim", text(&pooling["word_embedding_dimension"]).or_else(|| hidden.clone()));
        add("vocab_size", text(&config["vocab_size"]));
        add("num_layers", text(&config["num_hidden_layers"]));
        add("num_attention_heads", text(&config["num_attention_heads"]));
        add("hidden_size", hidden);
        add("intermediate_size", text(&config["intermediate_size"]));
        add("max_position_emb", text(&config["max_position_embeddings"]));
        add("pooling", pooling_mode(&pooling));
        add("normalize", normalizes(&modules).map(|b| b.to_string()));
        add("max_seq_length", text(&limits["max_seq_length"]));
        add("do_lower_case", tokenizer.lower_case.map(|b| b.to_string()));
        add("strip_accents", tokenizer.strip_accents.map(|b| b.to_string()));
        add("tokenize_chinese_chars", tokenizer.split_chinese.map(|b| b.to_string()));
        add("layer_norm_eps", text(&config["layer_norm_eps"]));
        add("hidden_act", text(&config["hidden_act"]));
        let is_absolute =
            config["position_embedding_type"].as_str().is_none_or(|t| t == "absolute");
        let is_bert = config["model_type"] == "bert" && is_absolute && has_usual_modules(&modules);
        Ok(Settings { is_bert, list })
    }
}

/// The new key `pooling_mode`, or the older flags of which one is true.
fn pooling_mode(pooling: &Json) -> Option<String> {
    if let Some(mode) = pooling["pooling_mode"].as_str() {
        return Some(mode.to_owned());
    }
    let known = [
        ("pooling_mode_mean_tokens", "mean"),
        ("pooling_mode_cls_token", "cls"),
        ("pooling_mode_max_tokens", "max"),
        ("pooling_mode_mean_sqrt_len_tokens", "mean_sqrt_len"),
    ];
    // Flags of other modes keep their names, so that nobody takes them for one of these.
    let flags = pooling.as_object().into_iter().flatten();
    let on: Vec<_> = flags
        .filter(|(flag, value)| flag.starts_with("pooling_mode_") && **value == true)
        .map(|(flag, _)| known.iter().find(|(k, _)| k == flag).map_or(flag.as_str(), |(_, m)| *m))
        .collect();
    match pooling.is_null() {
        true => None,
        false if on.is_empty() => Some("none".to_owned()),
        false => Some(on.join("+")),
    }
}

/// Whether the modules are those that settings can tell of.
fn has_usual_modules(modules: &Json) -> bool {
    let usual = ["Transformer", "Pooling", "Normalize"];
    let is_usual = |m: &Json| {
        m["type"].as_str().is_some_and(|t| usual.contains(&t.rsplit('.').next().unwrap_or(t)))
    };
    modules.as_array().is_none_or(|list| list.iter().all(is_usual))
}

/// Whether a module normalizes the vectors; nothing when there is no list of modules.
fn normalizes(modules: &Json) -> Option<bool> {
    let kind = |m: &Json| m["type"].as_str().is_some_and(|t| t.ends_with("Normalize"));
    modules.as_array().map(|list| list.iter().any(kind))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn pooling_in_both_spellings() {
        assert_eq!(pooling_mode(&json!({"pooling_mode": "cls"})).unwrap(), "cls");
        let old = json!({"pooling_mode_cls_token": false, "pooling_mode_mean_tokens": true});
        assert_eq!(pooling_mode(&old).unwrap(), "mean");
        assert_eq!(pooling_mode(&Json::Null), None);
    }

    #[test]
    fn normalization_comes_from_the_modules() {
        let module = |t: &str| json!({"type": format!("sentence_transformers.models.{t}")});
        assert_eq!(normalizes(&json!([module("Pooling"), module("Normalize")])), Some(true));
        assert_eq!(normalizes(&json!([module("Pooling")])), Some(false));
        assert_eq!(normalizes(&Json::Null), None);
    }
}
