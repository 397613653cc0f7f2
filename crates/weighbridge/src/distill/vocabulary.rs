//! The tokenizer of a static model, made of that of the model that it is distilled from: without what is
//! put around texts and without tokens that stand for nothing, with words that were asked for.

use serde_json::{Map, Value as Json, json};
use std::collections::{HashMap, HashSet};
use weighbridge_encoder::{Encoder, Tokenizer};
use weighbridge_format::spec::tokenizer::TOKENIZER;
use weighbridge_format::{Advice, Container, Error};

/// What tokens that stand for nothing are called.
const PADDING: [&str; 2] = ["[PAD]", "<pad>"];

/// Words that may be added.
const MOST_WORDS: usize = 1 << 20;
/// Bytes of one.
const LONGEST_WORD: usize = 256;

/// The tokens of a static model.
#[derive(Debug)]
pub(super) struct Tokens {
    /// Its tokenizer.json.
    pub json: Json,
    /// What each token is to the model that it is distilled from, in the order of their numbers.
    pub ids: Vec<Vec<u32>>,
    /// How many of them were asked for and are new.
    pub added: usize,
}

impl Tokens {
    /// The tokens of a model, with further words.
    pub(super) fn of(
        container: &Container,
        encoder: &Encoder,
        words: &[String],
        most: Option<usize>,
    ) -> Result<Tokens, Error> {
        let tokenizer = encoder.tokenizer();
        let mut json = match container.attachments.iter().find(|a| a.name == TOKENIZER) {
            Some(file) => parse(&file.data.load()?)?,
            None => of_vocabulary(container, tokenizer)?,
        };
        let specials = added(&json);
        let unknown = unknown(&json);
        let is_kept = |token: &str| {
            let is_named = specials.iter().any(|s| s == token) || is_unused(token);
            !is_named || Some(token) == unknown.as_deref() || PADDING.contains(&token)
        };
        let mut listed = vocabulary(&json)?;
        listed.retain(|(token, _)| is_kept(token));
        listed.sort_by_key(|(_, id)| *id);
        if let Some(most) = most {
            shorten(&mut listed, most, &json)?;
        }
        let mut ids: Vec<_> = listed.iter().map(|(_, id)| tokenizer.framed(&[*id])).collect();
        let mut tokens: Vec<String> = listed.into_iter().map(|(token, _)| token).collect();
        // Tokens that only `added_tokens` lists come behind the vocabulary.
        let known: HashSet<&str> = tokens.iter().map(String::as_str).collect();
        let mut behind = Vec::new();
        for token in specials.iter().filter(|t| is_kept(t) && !known.contains(t.as_str())) {
            let mut id = Vec::new();
            tokenizer.encode_into(token, encoder.max_tokens(), &mut id);
            behind.push((added_token(token, true), id));
        }
        let first = tokens.len();
        let (mut seen, mut together) = (known_words(&tokens), Vec::new());
        if words.len() > MOST_WORDS {
            return Err(Error::limit("words of the vocabulary", MOST_WORDS as u64));
        }
        for word in words.iter().filter(|word| word.len() <= LONGEST_WORD) {
            let Some(parts) = tokenizer.split_words(word) else {
                let what = "words can be added to the tokenizers of BERT's kind alone";
                return Err(Error::refused(what, Advice::LeaveOut { option: "vocab" }));
            };
            let mut id = Vec::new();
            match &parts[..] {
                [] => {}
                [one] if is_kept(one) && seen.insert(one.clone()) => {
                    tokenizer.encode_into(one, encoder.max_tokens(), &mut id);
                    ids.push(id);
                    tokens.push(one.clone());
                }
                [_] => {}
                _ if seen.insert(word.clone()) => {
                    tokenizer.encode_into(word, encoder.max_tokens(), &mut id);
                    together.push((added_token(word, false), id));
                }
                _ => {}
            }
        }
        let added = tokens.len() - first + together.len();
        behind.extend(together);
        let entries = behind.iter().map(|(entry, _)| entry);
        set_vocabulary(&mut json, &tokens, unknown.as_deref(), entries);
        ids.extend(behind.into_iter().map(|(_, ids)| ids));
        Ok(Tokens { json, ids, added })
    }
}

fn known_words(tokens: &[String]) -> HashSet<String> {
    tokens.iter().cloned().collect()
}

fn parse(bytes: &[u8]) -> Result<Json, Error> {
    serde_json::from_slice(bytes)
        .map_err(|e| Error::refused(format!("{TOKENIZER} can't be read: {e}"), ""))
}

/// `[unused7]`, of which BERT has a thousand.
fn is_unused(token: &str) -> bool {
    let number = token.strip_prefix("[unused").and_then(|rest| rest.strip_suffix(']'));
    number.is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
}

/// Keeps the first tokens, which are the most frequent ones; of the others those that words can be
/// made of, whatever they are: characters, alone and within words.
fn shorten(listed: &mut Vec<(String, u32)>, most: usize, json: &Json) -> Result<(), Error> {
    let prefix = json["model"]["continuing_subword_prefix"].as_str().unwrap_or("##");
    if json["model"]["type"].as_str().is_some_and(|kind| kind != "WordPiece") {
        let what = "only tokenizers of BERT's kind can do with fewer tokens";
        return Err(Error::refused(what, ""));
    }
    let is_needed = |token: &str| {
        let own = token.strip_prefix(prefix).unwrap_or(token);
        PADDING.contains(&token) || token.starts_with('[') || (own.is_ascii() && own.len() == 1)
    };
    let needed = listed.iter().filter(|(token, _)| is_needed(token)).count();
    let mut room = most.saturating_sub(needed);
    listed.retain(|(token, _)| {
        let keep = is_needed(token) || room > 0;
        room -= usize::from(keep && !is_needed(token));
        keep
    });
    Ok(())
}

/// The tokens that are found before texts are taken apart, in their order.
fn added(json: &Json) -> Vec<String> {
    let list = json["added_tokens"].as_array().into_iter().flatten();
    list.filter_map(|token| Some(token["content"].as_str()?.to_owned())).collect()
}

/// The token of what is unknown: by its text, or by its number.
fn unknown(json: &Json) -> Option<String> {
    let model = &json["model"];
    if let Some(token) = model["unk_token"].as_str() {
        return Some(token.to_owned());
    }
    let place = usize::try_from(model["unk_id"].as_u64()?).ok()?;
    Some(model["vocab"].get(place)?.get(0)?.as_str()?.to_owned())
}

/// All tokens of the vocabulary with their numbers.
fn vocabulary(json: &Json) -> Result<Vec<(String, u32)>, Error> {
    let odd = || Error::refused(format!("{TOKENIZER} has a vocabulary of an unknown kind"), "");
    match &json["model"]["vocab"] {
        Json::Object(map) => map
            .iter()
            .map(|(token, id)| {
                let id = id.as_u64().and_then(|id| u32::try_from(id).ok());
                Ok((token.clone(), id.ok_or_else(odd)?))
            })
            .collect(),
        Json::Array(list) => list
            .iter()
            .zip(0..)
            .map(|(entry, id)| Ok((entry[0].as_str().ok_or_else(odd)?.to_owned(), id)))
            .collect(),
        _ => Err(odd()),
    }
}

fn added_token(content: &str, special: bool) -> Json {
    json!({
        "id": 0, "content": content, "single_word": false, "lstrip": false, "rstrip": false,
        "normalized": !special, "special": special,
    })
}

/// Gives a tokenizer.json these tokens, and takes out what only longer texts of models have.
fn set_vocabulary<'a>(
    json: &mut Json,
    tokens: &[String],
    unknown: Option<&str>,
    behind: impl Iterator<Item = &'a Json>,
) {
    let numbers: HashMap<&str, usize> =
        tokens.iter().enumerate().map(|(id, token)| (token.as_str(), id)).collect();
    for part in ["truncation", "padding", "post_processor"] {
        json[part] = Json::Null;
    }
    let mut list = Vec::new();
    for entry in json["added_tokens"].as_array().into_iter().flatten() {
        let id = entry["content"].as_str().and_then(|content| numbers.get(content));
        if let Some(id) = id {
            let mut entry = entry.clone();
            entry["id"] = (*id).into();
            list.push(entry);
        }
    }
    for (place, entry) in behind.enumerate() {
        let mut entry = entry.clone();
        entry["id"] = (tokens.len() + place).into();
        list.push(entry);
    }
    json["added_tokens"] = list.into();
    let model = &mut json["model"];
    match &mut model["vocab"] {
        vocabulary @ Json::Object(_) => {
            let pairs = tokens.iter().zip(0u64..).map(|(token, id)| (token.clone(), id.into()));
            *vocabulary = Json::Object(pairs.collect::<Map<_, _>>());
        }
        Json::Array(scored) => {
            scored.retain(|entry| entry[0].as_str().is_some_and(|t| numbers.contains_key(t)));
        }
        _ => {}
    }
    // The number of the unknown token is its place in the list.
    let place = unknown.and_then(|token| numbers.get(token)).filter(|_| model["unk_id"].is_u64());
    if let Some(place) = place {
        model["unk_id"] = (*place).into();
    }
}

/// The tokenizer.json of a model that has a vocabulary alone: BERT's.
fn of_vocabulary(container: &Container, tokenizer: &Tokenizer) -> Result<Json, Error> {
    let lacking = || Error::refused("the model has no vocabulary", "");
    let vocabulary = container.vocabulary.as_ref().ok_or_else(lacking)?;
    let casing = tokenizer.casing();
    let tokens = vocabulary.tokens().zip(0u64..);
    let special = vocabulary.special.iter().filter_map(|(_, id)| {
        let mut token = added_token(&vocabulary.token(*id as usize)?, true);
        token["id"] = (*id).into();
        Some(token)
    });
    Ok(json!({
        "version": "1.0", "truncation": null, "padding": null,
        "added_tokens": special.collect::<Vec<_>>(),
        "normalizer": {
            "type": "BertNormalizer", "clean_text": casing.clean,
            "handle_chinese_chars": casing.split_chinese, "strip_accents": casing.strip_accents,
            "lowercase": casing.lower_case,
        },
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": null,
        "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": true},
        "model": {
            "type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
            "max_input_chars_per_word": 100,
            "vocab": tokens.map(|(t, id)| (t.into_owned(), id.into())).collect::<Map<_, _>>(),
        },
    }))
}
