//! The vocabulary and the few settings that describe a BERT tokenizer.

use super::super::Stop;
use super::VOCABULARY;
use crate::model::Vocabulary;
use crate::spec::ModelFiles;
use crate::wire::Findings;
use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::Value as Json;
use serde_json::value::RawValue;

/// What is known of the tokenizer.
#[derive(Debug, Default)]
pub(super) struct Tokenizer {
    pub vocabulary: Option<Vocabulary>,
    pub lower_case: Option<bool>,
    pub strip_accents: Option<bool>,
    pub split_chinese: Option<bool>,
    /// Vocabulary and settings say all there is to say: plain BERT WordPiece.
    pub is_plain: bool,
}

/// What is looked at of a tokenizer.json. Its vocabulary, which is most of it, stays text.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Settings {
    normalizer: Json,
    pre_tokenizer: Json,
    model: Model,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Model {
    #[serde(rename = "type")]
    kind: Json,
    vocab: Option<Box<RawValue>>,
}

/// The number of a map's entries.
struct Count(usize);

impl<'de> Deserialize<'de> for Count {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct Counter;
        impl<'de> Visitor<'de> for Counter {
            type Value = Count;
            fn expecting(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
                f.write_str("a map")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Count, A::Error> {
                let mut count = 0;
                while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {
                    count += 1;
                }
                Ok(Count(count))
            }
        }
        d.deserialize_map(Counter)
    }
}

pub(super) fn read(files: &dyn ModelFiles, findings: &mut Findings) -> Result<Tokenizer, Stop> {
    let json = match files.has("tokenizer.json") {
        false => None,
        true => match serde_json::from_slice::<Settings>(&files.bytes("tokenizer.json")?) {
            Ok(settings) => Some(settings),
            // JSON of another shape is a tokenizer that is not known.
            Err(_) => files.json("tokenizer.json").map(|_| Some(Settings::default()))?,
        },
    };
    let has_json = json.is_some();
    let Settings { normalizer, pre_tokenizer, model } = json.unwrap_or_default();
    let config = files.json("tokenizer_config.json")?;
    // The tokenizer's own normalizer first. sentence_bert_config.json has a do_lower_case too, which
    // means something else.
    let lower_case = normalizer["lowercase"].as_bool().or(config["do_lower_case"].as_bool());
    let strip = normalizer["strip_accents"].as_bool().or(config["strip_accents"].as_bool());
    let chinese = normalizer["handle_chinese_chars"].as_bool();
    let is_wordpiece = model.kind == "WordPiece";
    let listed = model.vocab.as_ref().map_or("null", |v| v.get());
    let vocabulary = if files.has("vocab.txt") && (!has_json || is_wordpiece) {
        Some(from_lines(files)?)
    } else if is_wordpiece {
        Some(from_json(&serde_json::from_str(listed).unwrap_or_default())?)
    } else {
        None
    };
    let mut vocabulary = vocabulary;
    if let Some(v) = &mut vocabulary {
        v.find_special();
        let listed = serde_json::from_str(listed).ok().map(|Count(n)| n);
        if let Some(listed) = listed.filter(|&n| n != v.len()) {
            let finding = VOCABULARY.at(0..0).field("vocab.txt");
            findings.push(
                finding.expected(format!("{listed} tokens, as in tokenizer.json")).found(v.len()),
            );
        }
    }
    let is_plain = vocabulary.is_some()
        && (!has_json
            || (is_wordpiece
                && normalizer["type"] == "BertNormalizer"
                && pre_tokenizer["type"] == "BertPreTokenizer"));
    Ok(Tokenizer {
        vocabulary,
        lower_case,
        // Unless it is set, accents are stripped exactly when letters are lower-cased.
        strip_accents: strip.or(lower_case),
        split_chinese: chinese.or(config["tokenize_chinese_chars"].as_bool()),
        is_plain,
    })
}

/// vocab.txt: a token a line, the line's number is the token's.
fn from_lines(files: &dyn ModelFiles) -> Result<Vocabulary, Stop> {
    let bytes = files.bytes("vocab.txt")?;
    let text = std::str::from_utf8(&bytes).map_err(|e| {
        let at = e.valid_up_to() as u64;
        VOCABULARY.at(at..at + 1).field("vocab.txt").expected("UTF-8 text")
    })?;
    let text = text.strip_suffix('\n').unwrap_or(text);
    Ok(Vocabulary::from_tokens(
        text.split('\n').map(|line| line.strip_suffix('\r').unwrap_or(line)),
    ))
}

/// tokenizer.json's vocabulary: a number for every token, without gaps.
fn from_json(vocab: &Json) -> Result<Vocabulary, Stop> {
    let bad = |found: String| {
        let finding = VOCABULARY.at(0..0).field("tokenizer.json model.vocab");
        finding.expected("every number from 0 on once").found(found)
    };
    let map = vocab.as_object().ok_or_else(|| bad("no vocabulary".into()))?;
    let mut tokens = vec![None; map.len()];
    for (token, id) in map {
        let slot = id.as_u64().and_then(|id| tokens.get_mut(usize::try_from(id).ok()?));
        match slot {
            Some(slot) if slot.is_none() => *slot = Some(token.as_str()),
            _ => return Err(bad(format!("{token:?}: {id}")).into()),
        }
    }
    Ok(Vocabulary::from_tokens(tokens.into_iter().flatten()))
}
