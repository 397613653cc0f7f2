//! tokenizer.json: the parts that a text goes through to become tokens.
//!
//! A [`TokenizerFile`] is read once; its parts become types when they are asked for. So whoever only
//! describes a model is not stopped by a part that makes no sense, and does not pay for the
//! vocabulary, which is most of the file.

mod parts;
mod vocabulary;

pub(super) use parts::WORD_PIECE;
pub use parts::{
    AddedToken, BertNormalizer, BertProcessing, Bpe, Normalizer, PostProcessor, PreTokenizer, Step,
    Template, TemplatePiece, TemplateToken, TokenModel, Unigram, WordPiece,
};
pub use vocabulary::{NumberedTokens, SkippedVocabulary, TokenList};

use super::Misstatement;
use serde::{Deserialize, Deserializer};
use serde_json::Value as Json;
use serde_json::value::RawValue;
use std::collections::{HashMap, HashSet};
use vocabulary::AnyTokens;

/// The name of the file that describes a tokenizer.
pub const TOKENIZER: &str = "tokenizer.json";

/// A tokenizer.json, with a vocabulary that was read or was skipped.
#[derive(Debug)]
pub struct TokenizerFile<V> {
    outline: Outline<V>,
}

/// What stands in the file. Nothing but the vocabulary has a fixed type here, because a tokenizer of
/// another kind is no malformed one.
#[derive(Debug, Deserialize)]
struct Outline<V> {
    #[serde(default)]
    version: Json,
    #[serde(default, deserialize_with = "small")]
    added_tokens: Json,
    #[serde(default, deserialize_with = "small")]
    normalizer: Json,
    #[serde(default, deserialize_with = "small")]
    pre_tokenizer: Json,
    #[serde(default, deserialize_with = "small")]
    post_processor: Json,
    model: Option<ModelOutline<V>>,
}

/// More bytes than any part but the model has: the largest are tables of characters.
const MOST_BYTES: usize = 4 << 20;

/// A part of the file. Nothing is made of one that is far too large.
fn small<'de, D: Deserializer<'de>>(from: D) -> Result<Json, D::Error> {
    let text = <&RawValue>::deserialize(from)?.get();
    if text.len() > MOST_BYTES {
        let what = format!("a part of {} bytes, and none has more than {MOST_BYTES}", text.len());
        return Err(serde::de::Error::custom(what));
    }
    serde_json::from_str(text).map_err(serde::de::Error::custom)
}

/// The settings of every kind of model that is known, side by side.
#[derive(Debug, Deserialize)]
struct ModelOutline<V> {
    #[serde(default, rename = "type")]
    kind: Json,
    #[serde(default)]
    unk_token: Json,
    #[serde(default)]
    continuing_subword_prefix: Json,
    #[serde(default)]
    max_input_chars_per_word: Json,
    #[serde(default)]
    unk_id: Json,
    #[serde(default)]
    byte_fallback: Json,
    #[serde(default)]
    dropout: Json,
    #[serde(default)]
    end_of_word_suffix: Json,
    #[serde(default)]
    fuse_unk: Json,
    #[serde(default)]
    ignore_merges: Json,
    #[serde(default)]
    merges: Json,
    vocab: Option<V>,
}

impl TokenizerFile<SkippedVocabulary> {
    /// Reads all but the vocabulary, whose tokens are only counted.
    ///
    /// # Errors
    /// If it is not JSON, or not the description of a tokenizer.
    pub fn parse(json: &[u8]) -> Result<Self, Misstatement> {
        parse(json)
    }
}

impl TokenizerFile<NumberedTokens> {
    /// Reads it with its vocabulary, in one pass.
    ///
    /// # Errors
    /// If it is not JSON, or not the description of a tokenizer.
    pub fn parse_with_tokens(json: &[u8]) -> Result<Self, Misstatement> {
        parse(json)
    }
}

/// The tokens of Unigram, each with its score, in the order of their numbers.
pub type ScoredTokens = Vec<(String, f64)>;

impl TokenizerFile<ScoredTokens> {
    /// Reads it with the vocabulary of Unigram.
    ///
    /// # Errors
    /// If it is not JSON, or not the description of a tokenizer of this kind.
    pub fn parse_with_scores(json: &[u8]) -> Result<Self, Misstatement> {
        parse(json)
    }
}

impl TokenizerFile<HashMap<String, u32>> {
    /// Reads it with a vocabulary that tells each token's number.
    ///
    /// # Errors
    /// If it is not JSON, or not the description of a tokenizer of this kind.
    pub fn parse_with_numbers(json: &[u8]) -> Result<Self, Misstatement> {
        parse(json)
    }
}

/// All tokens that a tokenizer.json lists, by their numbers, whatever kind of tokenizer it describes:
/// those of the vocabulary, and the added ones that are not among them.
///
/// # Errors
/// If it is not the description of a tokenizer, or its numbers are not those from 0 on.
pub fn all_tokens(json: &[u8]) -> Result<TokenList, Misstatement> {
    let file: TokenizerFile<AnyTokens> = parse(json)?;
    let added = file.added_tokens()?;
    let AnyTokens(mut tokens) = file.into_vocabulary().unwrap_or_default();
    let known: HashSet<String> = tokens.tokens().map(str::to_owned).collect();
    for token in added.iter().filter(|token| !known.contains(&token.content)) {
        tokens.append(&token.content)?;
    }
    tokens.in_order()
}

fn parse<'a, V: Deserialize<'a>>(json: &'a [u8]) -> Result<TokenizerFile<V>, Misstatement> {
    let unreadable = |why: String| unreadable(TOKENIZER, "the description of a tokenizer", why);
    // All at once, which is faster than string by string.
    let text = std::str::from_utf8(json).map_err(|e| unreadable(e.to_string()))?;
    let outline = serde_json::from_str(text).map_err(|e| unreadable(e.to_string()))?;
    Ok(TokenizerFile { outline })
}

impl<V> TokenizerFile<V> {
    /// The version of the file's form, if it says one.
    ///
    /// # Errors
    /// If it is not a text.
    pub fn version(&self) -> Result<Option<&str>, Misstatement> {
        match &self.outline.version {
            Json::Null => Ok(None),
            version => text(version, "version").map(Some),
        }
    }

    /// What happens to the characters of a text first.
    ///
    /// # Errors
    /// If it is of a known kind, and its settings make no sense.
    pub fn normalizer(&self) -> Result<Normalizer, Misstatement> {
        let part = &self.outline.normalizer;
        Ok(match kind(part) {
            None => Normalizer::None,
            Some(parts::BERT_NORMALIZER) => Normalizer::Bert(BertNormalizer::parse(part)?),
            Some(kind) => Normalizer::Other(kind.to_owned()),
        })
    }

    /// The name of the normalizer's kind; `none` if there is none.
    pub fn normalizer_kind(&self) -> &str {
        kind(&self.outline.normalizer).unwrap_or(parts::NONE)
    }

    /// Every step of the normalizer and of the pre-tokenizer, in their order: what a sequence lists, or
    /// what stands there alone.
    ///
    /// # Errors
    /// If there are more than any tokenizer has.
    pub fn steps(&self) -> Result<Vec<Step>, Misstatement> {
        let mut steps = Vec::new();
        for (part, place, list) in [
            (&self.outline.normalizer, Step::NORMALIZER, "normalizers"),
            (&self.outline.pre_tokenizer, Step::PRE_TOKENIZER, "pretokenizers"),
        ] {
            parts::add_steps(part, place, list, &mut steps)?;
        }
        Ok(steps)
    }

    /// The normalizer as it stands in the file, null where there is none.
    pub fn normalizer_json(&self) -> &Json {
        &self.outline.normalizer
    }

    /// The pre-tokenizer as it stands in the file, null where there is none.
    pub fn pre_tokenizer_json(&self) -> &Json {
        &self.outline.pre_tokenizer
    }

    /// How a text is taken apart into words.
    pub fn pre_tokenizer(&self) -> PreTokenizer {
        match kind(&self.outline.pre_tokenizer) {
            None => PreTokenizer::None,
            Some(parts::BERT_PRE_TOKENIZER) => PreTokenizer::Bert,
            Some(kind) => PreTokenizer::Other(kind.to_owned()),
        }
    }

    /// The name of the pre-tokenizer's kind; `none` if there is none.
    pub fn pre_tokenizer_kind(&self) -> &str {
        kind(&self.outline.pre_tokenizer).unwrap_or(parts::NONE)
    }

    /// What is put around the tokens of a text.
    ///
    /// # Errors
    /// If it is of a known kind, and its settings make no sense.
    pub fn post_processor(&self) -> Result<PostProcessor, Misstatement> {
        let part = &self.outline.post_processor;
        let place = format!("{TOKENIZER} post_processor");
        Ok(match kind(part) {
            None => PostProcessor::None,
            Some(name @ parts::TEMPLATE) => PostProcessor::Template(read_part(part, &place, name)?),
            Some(name @ parts::BERT_PROCESSING) => {
                PostProcessor::Bert(read_part(part, &place, name)?)
            }
            Some(name @ parts::ROBERTA_PROCESSING) => {
                PostProcessor::Roberta(read_part(part, &place, name)?)
            }
            Some(kind) => PostProcessor::Other(kind.to_owned()),
        })
    }

    /// The name of the post-processor's kind; `none` if there is none.
    pub fn post_processor_kind(&self) -> &str {
        kind(&self.outline.post_processor).unwrap_or(parts::NONE)
    }

    /// The tokens that are found in a text before it is taken apart, in the order of the file.
    ///
    /// # Errors
    /// If they are not what added tokens should be.
    pub fn added_tokens(&self) -> Result<Vec<AddedToken>, Misstatement> {
        let place = format!("{TOKENIZER} added_tokens");
        let list = match &self.outline.added_tokens {
            Json::Null => return Ok(Vec::new()),
            list => list,
        };
        // Where a token stands gives it its number; what the file says is a number at least.
        let is_number =
            |id: &Json| id.is_null() || id.as_u64().is_some_and(|id| u32::try_from(id).is_ok());
        let ids = list.as_array().into_iter().flatten().map(|token| &token["id"]);
        match ids.into_iter().find(|id| !is_number(id)) {
            Some(id) => Err(misstatement(place, "tokens with numbers", format!("id {id}"))),
            None => read_part(list, &place, "a list of tokens"),
        }
    }

    /// The name of the kind of model that words become tokens with: `WordPiece`.
    pub fn model_kind(&self) -> Option<&str> {
        let model = self.outline.model.as_ref()?;
        match &model.kind {
            // Old files don't name it; this setting is WordPiece's alone.
            Json::Null if !model.max_input_chars_per_word.is_null() => Some(parts::WORD_PIECE),
            kind => kind.as_str(),
        }
    }

    /// The vocabulary as it was read, if there is one.
    pub fn vocabulary(&self) -> Option<&V> {
        self.outline.model.as_ref()?.vocab.as_ref()
    }

    /// The same, without the rest.
    pub fn into_vocabulary(self) -> Option<V> {
        self.outline.model?.vocab
    }

    /// The model that words become tokens with.
    ///
    /// # Errors
    /// If it is of a known kind, and its settings make no sense; or if there is none.
    pub fn into_model(self) -> Result<TokenModel<V>, Misstatement> {
        let kind = self.model_kind().unwrap_or(parts::UNNAMED).to_owned();
        if kind == parts::UNIGRAM {
            return self.into_unigram().map(TokenModel::Unigram);
        }
        let model = self.outline.model.ok_or_else(|| missing("model", "a model"))?;
        match kind.as_str() {
            parts::WORD_PIECE => Ok(TokenModel::WordPiece(WordPiece {
                unk_token: text(&model.unk_token, "model.unk_token")?.to_owned(),
                continuing_subword_prefix: text(
                    &model.continuing_subword_prefix,
                    "model.continuing_subword_prefix",
                )?
                .to_owned(),
                max_input_chars_per_word: number(
                    &model.max_input_chars_per_word,
                    "model.max_input_chars_per_word",
                )?,
                vocab: model.vocab.ok_or_else(|| missing("model.vocab", "a vocabulary"))?,
            })),
            parts::BPE => Ok(TokenModel::Bpe(Bpe {
                has_dropout: !model.dropout.is_null() && model.dropout.as_f64() != Some(0.0),
                unk_token: optional_text(&model.unk_token, "model.unk_token")?,
                continuing_subword_prefix: optional_text(
                    &model.continuing_subword_prefix,
                    "model.continuing_subword_prefix",
                )?,
                end_of_word_suffix: optional_text(
                    &model.end_of_word_suffix,
                    "model.end_of_word_suffix",
                )?,
                fuse_unk: is_set(&model.fuse_unk, "model.fuse_unk")?,
                byte_fallback: is_set(&model.byte_fallback, "model.byte_fallback")?,
                ignore_merges: is_set(&model.ignore_merges, "model.ignore_merges")?,
                merges: parts::merges(&model.merges)?,
                vocab: model.vocab.ok_or_else(|| missing("model.vocab", "a vocabulary"))?,
            })),
            _ => Ok(TokenModel::Other(kind)),
        }
    }

    /// The model as that of a Unigram tokenizer.
    ///
    /// # Errors
    /// If its settings make no sense, or if there is none.
    pub fn into_unigram(self) -> Result<Unigram<V>, Misstatement> {
        let model = self.outline.model.ok_or_else(|| missing("model", "a model"))?;
        Ok(Unigram {
            unk_id: number(&model.unk_id, "model.unk_id")?,
            byte_fallback: is_set(&model.byte_fallback, "model.byte_fallback")?,
            vocab: model.vocab.ok_or_else(|| missing("model.vocab", "a vocabulary"))?,
        })
    }
}

/// The kind of a part, if the part is there.
fn kind(part: &Json) -> Option<&str> {
    match part {
        Json::Null => None,
        part => Some(part["type"].as_str().unwrap_or(parts::UNNAMED)),
    }
}

fn read_part<'a, T: Deserialize<'a>>(
    part: &'a Json,
    place: &str,
    expected: &str,
) -> Result<T, Misstatement> {
    T::deserialize(part).map_err(|e| unreadable(place, expected, e.to_string()))
}

fn text<'a>(value: &'a Json, name: &str) -> Result<&'a str, Misstatement> {
    value.as_str().ok_or_else(|| wrong(value, name, "a text"))
}

fn number(value: &Json, name: &str) -> Result<u64, Misstatement> {
    value.as_u64().ok_or_else(|| wrong(value, name, "a whole number"))
}

fn flag(value: &Json, name: &str) -> Result<bool, Misstatement> {
    value.as_bool().ok_or_else(|| wrong(value, name, "true or false"))
}

/// A flag that is off where it is not there.
fn is_set(value: &Json, name: &str) -> Result<bool, Misstatement> {
    if value.is_null() { Ok(false) } else { flag(value, name) }
}

/// A text that may be missing; an empty one is as good as none.
fn optional_text(value: &Json, name: &str) -> Result<Option<String>, Misstatement> {
    match value {
        Json::Null => Ok(None),
        value => Ok(Some(text(value, name)?.to_owned()).filter(|text| !text.is_empty())),
    }
}

fn wrong(value: &Json, name: &str, expected: &str) -> Misstatement {
    match value {
        Json::Null => missing(name, expected),
        value => misstatement(format!("{TOKENIZER} {name}"), expected, value.to_string()),
    }
}

fn missing(name: &str, expected: &str) -> Misstatement {
    misstatement(format!("{TOKENIZER} {name}"), expected, "missing".to_owned())
}

fn unreadable(place: &str, expected: &str, why: String) -> Misstatement {
    misstatement(place.to_owned(), expected, format!("unreadable: {why}"))
}

fn misstatement(field: String, expected: &str, found: String) -> Misstatement {
    Misstatement { field, expected: expected.to_owned(), found }
}
