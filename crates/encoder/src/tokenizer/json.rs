//! tokenizer.json, as far as it describes a tokenizer of BERT's kind.

use super::added::AddedToken;
use super::{Casing, Definition, Tokens};
use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value as Json;
use std::fmt;
use weighbridge_format::Error;

/// The longest word that a model may want to look up.
const LONGEST_WORD: usize = 10_000;

pub(super) const FILE: &str = "tokenizer.json";

#[derive(Deserialize)]
struct File {
    version: Option<String>,
    #[serde(default)]
    added_tokens: Vec<ListedToken>,
    #[serde(default)]
    normalizer: Json,
    #[serde(default)]
    pre_tokenizer: Json,
    #[serde(default)]
    post_processor: Json,
    model: Model,
}

/// An added token. Its number is not read: the vocabulary and the order in the list give it.
#[derive(Deserialize)]
struct ListedToken {
    content: String,
    single_word: bool,
    lstrip: bool,
    rstrip: bool,
    normalized: bool,
}

#[derive(Deserialize)]
struct Model {
    #[serde(rename = "type")]
    kind: Option<String>,
    unk_token: Option<String>,
    continuing_subword_prefix: Option<String>,
    max_input_chars_per_word: Option<usize>,
    vocab: Option<Vocab>,
}

/// Tokens with their numbers, as they stand in the file. `None` where the vocabulary is not a map,
/// as in other kinds of models.
struct Vocab(Option<(Tokens, Vec<u32>)>);

#[derive(Deserialize)]
struct BertNormalizer {
    clean_text: bool,
    handle_chinese_chars: bool,
    strip_accents: Option<bool>,
    lowercase: bool,
}

/// BertProcessing and RobertaProcessing: a token and its number each.
#[derive(Deserialize)]
struct BertProcessing {
    cls: (String, u32),
    sep: (String, u32),
}

#[derive(Deserialize)]
struct Template {
    single: Vec<TemplatePart>,
    special_tokens: serde_json::Map<String, Json>,
}

#[derive(Deserialize)]
enum TemplatePart {
    Sequence { id: String },
    SpecialToken { id: String },
}

#[derive(Deserialize)]
struct TemplateToken {
    ids: Vec<u32>,
}

pub(super) fn read(json: &[u8]) -> Result<Definition, Error> {
    // All at once, which is faster than string by string.
    let text = std::str::from_utf8(json).map_err(|e| unreadable(&e))?;
    let file: File = serde_json::from_str(text).map_err(|e| unreadable(&e))?;
    let model = file.model;
    match model.kind.as_deref() {
        // Old files don't name it; the settings that only WordPiece has are asked for below.
        None | Some("WordPiece") => {}
        Some(kind) => return Err(unsupported(&format!("a {kind} tokenizer"), "WordPiece")),
    }
    if let Some(version) = file.version.filter(|version| version != "1.0") {
        return Err(unsupported(&format!("version {version:?}"), "version 1.0"));
    }
    let casing = casing(file.normalizer)?;
    match kind_of(&file.pre_tokenizer) {
        Some("BertPreTokenizer") => {}
        kind => {
            let what = format!("the pre-tokenizer {}", kind.unwrap_or("null"));
            return Err(unsupported(&what, "BertPreTokenizer"));
        }
    }
    let (start_tokens, end_tokens) = start_and_end_tokens(file.post_processor)?;
    let prefix = need(model.continuing_subword_prefix, "model.continuing_subword_prefix")?;
    let unk_token = need(model.unk_token, "model.unk_token")?;
    let max_word_characters =
        need(model.max_input_chars_per_word, "model.max_input_chars_per_word")?;
    if max_word_characters > LONGEST_WORD {
        // The time for a word grows with its length times that of the longest token.
        let what = format!("{FILE}: words of {max_word_characters} characters");
        return Err(Error::refused(what, format!("at most {LONGEST_WORD}; BERT has 100")));
    }
    let (tokens, ids) = need(model.vocab.and_then(|vocab| vocab.0), "model.vocab")?;
    let pieces = sort_by_id(tokens, &ids)?.into_pieces(&prefix)?;
    if let Some(token) = pieces.repeated.and_then(|id| pieces.token(id)) {
        let what = format!("{FILE}: the token {token:?} is in the vocabulary twice");
        return Err(Error::refused(what, ""));
    }
    let unknown = pieces.find(&unk_token).ok_or_else(|| {
        Error::refused(format!("the vocabulary of {FILE} has no {unk_token} token"), "")
    })?;
    let added = file.added_tokens.into_iter().map(|token| {
        let ListedToken { content, single_word, lstrip, rstrip, normalized } = token;
        AddedToken { content, single_word, lstrip, rstrip, normalized }
    });
    Ok(Definition {
        added: added.collect(),
        pieces,
        casing,
        unknown,
        max_word_characters,
        start_tokens,
        end_tokens,
    })
}

fn casing(normalizer: Json) -> Result<Casing, Error> {
    if normalizer.is_null() {
        return Ok(Casing {
            lower_case: false,
            strip_accents: false,
            split_chinese: false,
            clean: false,
        });
    }
    match kind_of(&normalizer) {
        Some("BertNormalizer") => {}
        kind => {
            let what = format!("the normalizer {}", kind.unwrap_or("of no kind"));
            return Err(unsupported(&what, "BertNormalizer"));
        }
    }
    let bert: BertNormalizer = from_part(normalizer, "normalizer")?;
    Ok(Casing {
        lower_case: bert.lowercase,
        // Unless it is set, accents go exactly when upper case goes.
        strip_accents: bert.strip_accents.unwrap_or(bert.lowercase),
        split_chinese: bert.handle_chinese_chars,
        clean: bert.clean_text,
    })
}

/// The tokens that texts begin and end with.
fn start_and_end_tokens(processor: Json) -> Result<(Vec<u32>, Vec<u32>), Error> {
    match kind_of(&processor) {
        // They differ only in what they do with offsets in the text.
        Some("BertProcessing" | "RobertaProcessing") => {
            let tokens: BertProcessing = from_part(processor, "post_processor")?;
            Ok((vec![tokens.cls.1], vec![tokens.sep.1]))
        }
        Some("TemplateProcessing") => template_tokens(from_part(processor, "post_processor")?),
        Some(kind) => Err(unsupported(
            &format!("the post-processor {kind}"),
            "TemplateProcessing or BertProcessing",
        )),
        None => Err(Error::refused(
            format!("{FILE} has no post_processor, so texts would get no [CLS] and no [SEP]"),
            "",
        )),
    }
}

fn template_tokens(template: Template) -> Result<(Vec<u32>, Vec<u32>), Error> {
    let malformed = |what: String| Error::refused(format!("{FILE}: post_processor: {what}"), "");
    let (mut start_tokens, mut end_tokens) = (Vec::new(), Vec::new());
    let mut seen_text = false;
    for part in template.single {
        match part {
            TemplatePart::Sequence { id } if id == "A" && !seen_text => seen_text = true,
            TemplatePart::Sequence { id } => {
                return Err(malformed(format!("the template has the text {id} where none can be")));
            }
            TemplatePart::SpecialToken { id } => {
                let token = template.special_tokens.get(&id);
                let token = token.ok_or_else(|| malformed(format!("no special token {id}")))?;
                let token: TemplateToken = from_part(token.clone(), "post_processor")?;
                if seen_text { &mut end_tokens } else { &mut start_tokens }.extend(token.ids);
            }
        }
    }
    if !seen_text {
        return Err(malformed("the template has no text".into()));
    }
    Ok((start_tokens, end_tokens))
}

/// Tokens in the order of their numbers, which must be those from 0 on. Nothing is allocated from
/// a number in the file.
fn sort_by_id(tokens: Tokens, ids: &[u32]) -> Result<Tokens, Error> {
    let mut places = vec![None; ids.len()];
    let mut sorted = true;
    for (place, &id) in ids.iter().enumerate() {
        sorted &= place == id as usize;
        match places.get_mut(id as usize) {
            Some(slot) if slot.is_none() => *slot = Some(place),
            _ => {
                let what = format!("{FILE}: token number {id} is too large or is given twice");
                return Err(Error::refused(what, "every number from 0 on must be there once"));
            }
        }
    }
    if sorted {
        return Ok(tokens);
    }
    let mut ordered = Tokens::default();
    for place in places.into_iter().flatten() {
        let start = if place == 0 { 0 } else { tokens.ends[place - 1] };
        ordered.push(&tokens.text[start as usize..tokens.ends[place] as usize])?;
    }
    Ok(ordered)
}

fn kind_of(part: &Json) -> Option<&str> {
    part.get("type").and_then(Json::as_str)
}

fn from_part<T: for<'de> Deserialize<'de>>(part: Json, name: &str) -> Result<T, Error> {
    serde_json::from_value(part)
        .map_err(|e| Error::refused(format!("{FILE} can't be read: {name}: {e}"), ""))
}

fn need<T>(value: Option<T>, name: &str) -> Result<T, Error> {
    value.ok_or_else(|| Error::refused(format!("{FILE} has no {name}"), ""))
}

fn unsupported(what: &str, supported: &str) -> Error {
    let what = format!("{FILE} has {what}; only {supported} as in BERT is supported");
    Error::unsupported(FILE, what, "")
}

fn unreadable(error: &dyn fmt::Display) -> Error {
    Error::refused(format!("{FILE} can't be read: {error}"), "")
}

impl<'de> Deserialize<'de> for Vocab {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Vocab, D::Error> {
        struct Entries;
        impl<'de> Visitor<'de> for Entries {
            type Value = Vocab;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a vocabulary")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Vocab, A::Error> {
                let (mut tokens, mut ids) = (Tokens::default(), Vec::new());
                while map.next_key_seed(Append(&mut tokens))?.is_some() {
                    ids.push(map.next_value()?);
                }
                Ok(Vocab(Some((tokens, ids))))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Vocab, A::Error> {
                while seq.next_element::<IgnoredAny>()?.is_some() {}
                Ok(Vocab(None))
            }
        }
        deserializer.deserialize_any(Entries)
    }
}

/// Appends a string to the tokens, without allocating it on its own.
struct Append<'a>(&'a mut Tokens);

impl<'de> DeserializeSeed<'de> for Append<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for Append<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a token")
    }

    fn visit_str<E: serde::de::Error>(self, token: &str) -> Result<(), E> {
        self.0.push(token).map_err(E::custom)
    }
}
