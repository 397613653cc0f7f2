//! Tokenizers of other kinds than BERT's, run by the crate `tokenizers`.
//!
//! It is given parts that were checked before, never a file: what stands in a file of strangers may ask
//! for more memory than there is, or lead it beyond its tables.

use super::json::{malformed, unsupported};
use super::precompiled;
use crate::support::{misstated, unknown_steps};
use serde_json::Value as Json;
use std::collections::HashMap;
use tokenizers::models::bpe::{BPE, Vocab};
use tokenizers::models::unigram::Unigram;
use tokenizers::models::wordpiece::WordPiece;
use tokenizers::{AddedToken, Model, ModelWrapper, NormalizerWrapper, PreTokenizerWrapper};
use weighbridge_format::Error;
use weighbridge_format::spec::tokenizer::{
    AddedToken as Added, Bpe, ScoredTokens, Step, TokenModel, TokenizerFile, Unigram as Scored,
};

/// Tokens that may be found in texts before they are taken apart.
const MOST_ADDED: usize = 4_096;
/// The time for a text grows with the length of the longest token.
const LONGEST_TOKEN: usize = 1_024;
/// Characters that a normalizer may make of one.
const MOST_GROWTH: u64 = 1_024;
/// The longest word that WordPiece may want to look up.
const LONGEST_WORD: u64 = 1_000;

/// A tokenizer without what stands around a text.
#[derive(Debug)]
pub(super) struct Library {
    inner: tokenizers::Tokenizer,
    /// One more than the largest number of a token.
    len: usize,
}

impl Library {
    /// The tokenizer that a tokenizer.json of some kind describes.
    pub(super) fn read(json: &[u8], kind: &str) -> Result<Library, Error> {
        match kind {
            "Unigram" => {
                let file = TokenizerFile::parse_with_scores(json).map_err(misstated)?;
                Library::assemble(file, |file| unigram(file.into_unigram().map_err(misstated)?))
            }
            _ => {
                let file = TokenizerFile::parse_with_numbers(json).map_err(misstated)?;
                Library::assemble(file, |file| numbered(file.into_model().map_err(misstated)?))
            }
        }
    }

    fn assemble<V>(
        file: TokenizerFile<V>,
        model: impl FnOnce(TokenizerFile<V>) -> Result<(ModelWrapper, usize), Error>,
    ) -> Result<Library, Error> {
        check_steps(&file)?;
        let normalizer = part::<NormalizerWrapper>(file.normalizer_json(), "normalizer")?;
        let splitter = part::<PreTokenizerWrapper>(file.pre_tokenizer_json(), "pre_tokenizer")?;
        let added = file.added_tokens().map_err(misstated)?;
        if added.len() > MOST_ADDED {
            return Err(malformed(&format!("has more than {MOST_ADDED} added tokens")));
        }
        let (model, mut len) = model(file)?;
        // Tokens are numbered on from what the model has.
        len = len.max(model.get_vocab_size());
        let mut inner = tokenizers::Tokenizer::new(model);
        let refused = |e: tokenizers::Error| malformed(&format!("can't be used: {e}"));
        inner.with_normalizer(normalizer).map_err(refused)?;
        inner.with_pre_tokenizer(splitter);
        inner.add_tokens(added.into_iter().map(added_token)).map_err(refused)?;
        for id in inner.get_added_tokens_decoder().keys() {
            len = len.max(*id as usize + 1);
        }
        Ok(Library { inner, len })
    }

    pub(super) fn append(&self, text: &str, ids: &mut Vec<u32>) {
        // Nothing that was let through fails: there is a token for what is unknown, or it is left out.
        if let Ok(made) = self.inner.encode_fast(text, false) {
            ids.extend_from_slice(made.get_ids());
        }
    }

    pub(super) fn token(&self, id: u32) -> Option<String> {
        self.inner.id_to_token(id)
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// The token of what is unknown, in models that name it by its text.
    pub(super) fn unknown(&self) -> Option<u32> {
        let name = match self.inner.get_model() {
            ModelWrapper::BPE(model) => model.unk_token.as_deref(),
            ModelWrapper::WordPiece(model) => Some(model.unk_token.as_str()),
            _ => None,
        };
        self.inner.token_to_id(name?)
    }

    /// How many characters each token has.
    pub(super) fn token_lengths(&self) -> Vec<usize> {
        self.inner.get_vocab(true).keys().map(|token| token.chars().count()).collect()
    }
}

fn added_token(token: Added) -> AddedToken {
    AddedToken::from(token.content, false)
        .single_word(token.single_word)
        .lstrip(token.lstrip)
        .rstrip(token.rstrip)
        .normalized(token.normalized)
}

/// A part of the tokenizer, as the crate understands what stands in the file.
fn part<T: serde::de::DeserializeOwned>(json: &Json, name: &str) -> Result<Option<T>, Error> {
    if json.is_null() {
        return Ok(None);
    }
    // By way of text: some of its parts want to borrow from it.
    let text = json.to_string();
    let read = serde_json::from_str(&text);
    read.map(Some).map_err(|e| malformed(&format!("has a {name} that can't be used: {e}")))
}

fn check_steps<V>(file: &TokenizerFile<V>) -> Result<(), Error> {
    let steps = file.steps().map_err(misstated)?;
    if let Some(lack) = unknown_steps(&steps).into_iter().next() {
        return Err(lack.into_error());
    }
    let parts = [file.normalizer_json(), file.pre_tokenizer_json()];
    parts.into_iter().try_for_each(check_tables)?;
    match parts.into_iter().map(growth).fold(1, u64::saturating_mul) {
        0..=MOST_GROWTH => Ok(()),
        _ => Err(malformed("has a normalizer that makes texts far longer")),
    }
}

/// Looks at where tables of characters lead.
fn check_tables(part: &Json) -> Result<(), Error> {
    match part {
        Json::Array(parts) => parts.iter().try_for_each(check_tables),
        Json::Object(members) => {
            if let Some(map) = members.get("precompiled_charsmap").and_then(Json::as_str) {
                precompiled::check(map)?;
            }
            members.values().try_for_each(check_tables)
        }
        _ => Ok(()),
    }
}

/// The most characters that the steps of a part can make of one.
///
/// From the last step to the first: of a character that a step does not replace become as many as the steps
/// behind it make of it, and of those that are replaced together as many as these make of what takes their place.
fn growth(part: &Json) -> u64 {
    let mut steps = Vec::new();
    list_steps(part, &mut steps);
    let (mut of, mut of_others, mut most) = (HashMap::new(), 1u64, 1);
    for step in steps.into_iter().rev() {
        let each = |c: char| of.get(&c).copied().unwrap_or(of_others);
        let made = |name: &str| {
            let text = step[name].as_str().unwrap_or_default();
            text.chars().fold(0u64, |sum, c| sum.saturating_add(each(c)))
        };
        match (step["type"].as_str(), step["pattern"]["String"].as_str()) {
            (Some("Replace"), Some(pattern)) if !pattern.is_empty() => {
                let share = made("content").div_ceil(pattern.chars().count() as u64);
                for c in pattern.chars() {
                    let before = of.get(&c).copied().unwrap_or(of_others);
                    of.insert(c, before.max(share));
                }
            }
            // An expression may be found anywhere.
            (Some("Replace"), _) => {
                let added = made("content");
                of.values_mut().for_each(|n: &mut u64| *n = n.saturating_add(added));
                of_others = of_others.saturating_add(added);
            }
            // Once for each text, or for each of its words.
            (Some("Prepend"), _) => most = most.max(made("prepend")),
            // Any character may become any other.
            _ => {
                most = most.max(made("replacement")).max(made("str_rep"));
                of_others = of.drain().map(|(_, n)| n).fold(of_others, u64::max);
            }
        }
    }
    of.into_values().fold(of_others.max(most), u64::max)
}

/// The steps of a part, without the lists that they stand in.
fn list_steps<'a>(part: &'a Json, steps: &mut Vec<&'a Json>) {
    let lists = ["normalizers", "pretokenizers"].map(|list| part[list].as_array());
    match (part["type"].as_str(), lists.into_iter().flatten().next()) {
        (Some("Sequence"), Some(list)) => list.iter().for_each(|part| list_steps(part, steps)),
        _ => steps.push(part),
    }
}

fn check_length<'a>(mut tokens: impl Iterator<Item = &'a String>) -> Result<(), Error> {
    match tokens.any(|token| token.len() > LONGEST_TOKEN) {
        false => Ok(()),
        true => Err(malformed(&format!("has a token of more than {LONGEST_TOKEN} bytes"))),
    }
}

fn unigram(model: Scored<ScoredTokens>) -> Result<(ModelWrapper, usize), Error> {
    check_length(model.vocab.iter().map(|(token, _)| token))?;
    let len = model.vocab.len();
    // A number beyond what the machine can count is beyond the vocabulary, too, and refused as such.
    let unknown = usize::try_from(model.unk_id).unwrap_or(usize::MAX);
    let made = Unigram::from(model.vocab, Some(unknown), model.byte_fallback);
    let made = made.map_err(|e| malformed(&format!("has a model that can't be used: {e}")))?;
    Ok((ModelWrapper::Unigram(made), len))
}

/// Both halves of a merge together, the second without the prefix of what continues a word, are a token;
/// the crate takes for granted that they are as long as one.
fn check_merges(model: &Bpe<HashMap<String, u32>>) -> Result<(), Error> {
    let longest = model.vocab.keys().map(String::len).max().unwrap_or(0);
    let prefix = model.continuing_subword_prefix.as_ref().map_or(0, String::len);
    let fits =
        |(a, b): &&(String, String)| b.get(prefix..).is_some_and(|b| a.len() + b.len() <= longest);
    match model.merges.iter().find(|merge| !fits(merge)) {
        Some((a, b)) => Err(malformed(&format!("has merges to nowhere: {a:?} and {b:?}"))),
        None => Ok(()),
    }
}

/// Models whose vocabulary tells each token's number.
fn numbered(model: TokenModel<HashMap<String, u32>>) -> Result<(ModelWrapper, usize), Error> {
    let largest =
        |vocab: &HashMap<String, u32>| vocab.values().max().map_or(0, |n| *n as usize + 1);
    match model {
        TokenModel::Bpe(model) => {
            if model.has_dropout {
                let what = "merges that are left out at random";
                return Err(unsupported(what, "merges that are all made"));
            }
            check_length(model.vocab.keys())?;
            check_merges(&model)?;
            let len = largest(&model.vocab);
            let mut builder = BPE::builder()
                .vocab_and_merges(model.vocab.into_iter().collect::<Vocab>(), model.merges)
                .fuse_unk(model.fuse_unk)
                .byte_fallback(model.byte_fallback)
                .ignore_merges(model.ignore_merges);
            if let Some(token) = model.unk_token {
                builder = builder.unk_token(token);
            }
            if let Some(prefix) = model.continuing_subword_prefix {
                builder = builder.continuing_subword_prefix(prefix);
            }
            if let Some(suffix) = model.end_of_word_suffix {
                builder = builder.end_of_word_suffix(suffix);
            }
            let made = builder.build();
            let made = made.map_err(|e| malformed(&format!("has merges to nowhere: {e}")))?;
            Ok((ModelWrapper::BPE(made), len))
        }
        TokenModel::WordPiece(model) => {
            if model.max_input_chars_per_word > LONGEST_WORD {
                return Err(malformed(&format!(
                    "has words of more than {LONGEST_WORD} characters"
                )));
            }
            if !model.vocab.contains_key(&model.unk_token) {
                let what = format!("has no {} token in its vocabulary", model.unk_token);
                return Err(malformed(&what));
            }
            let len = largest(&model.vocab);
            let most = usize::try_from(model.max_input_chars_per_word).unwrap_or(usize::MAX);
            let made = WordPiece::builder()
                .vocab(model.vocab.into_iter().collect::<Vocab>())
                .unk_token(model.unk_token)
                .continuing_subword_prefix(model.continuing_subword_prefix)
                .max_input_chars_per_word(most)
                .build();
            let made = made.map_err(|e| malformed(&format!("has a model that fails: {e}")))?;
            Ok((ModelWrapper::WordPiece(made), len))
        }
        _ => Err(unsupported("another model", "WordPiece, Unigram or BPE")),
    }
}

/// Whether a tokenizer of this kind is run by the crate, with these steps.
pub(super) fn is_for(kind: &str, steps: &[Step]) -> bool {
    let is_bert =
        |step: &Step| ["BertNormalizer", "BertPreTokenizer"].contains(&step.kind.as_str());
    matches!(kind, "Unigram" | "BPE") || (kind == "WordPiece" && !steps.iter().all(is_bert))
}
