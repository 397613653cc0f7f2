//! The kinds of parts that a tokenizer can have. One more is a variant here and its line in
//! [`TokenizerFile`](super::TokenizerFile).

use super::{Misstatement, flag};
use serde::Deserialize;
use serde_json::Value as Json;
use std::collections::HashMap;

pub(super) const BERT_NORMALIZER: &str = "BertNormalizer";
pub(super) const BERT_PRE_TOKENIZER: &str = "BertPreTokenizer";
pub(super) const TEMPLATE: &str = "TemplateProcessing";
pub(super) const BERT_PROCESSING: &str = "BertProcessing";
pub(super) const ROBERTA_PROCESSING: &str = "RobertaProcessing";
pub(in super::super) const WORD_PIECE: &str = "WordPiece";
/// The name of a part that the file says is not there.
pub(super) const NONE: &str = "none";
/// The name of a part that does not say what it is.
pub(super) const UNNAMED: &str = "nameless";

/// What happens to the characters of a text first.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Normalizer {
    /// Nothing.
    None,
    /// BERT's: cleaning, lower case, accents, Chinese characters.
    Bert(BertNormalizer),
    /// One that is not known, by its name.
    Other(String),
}

/// The settings of BERT's normalizer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BertNormalizer {
    /// Control characters are taken out, all white space becomes spaces.
    pub clean_text: bool,
    /// Chinese characters are words of their own.
    pub handle_chinese_chars: bool,
    /// Accents are taken off. Unless it is set, they go exactly when upper case goes.
    pub strip_accents: Option<bool>,
    /// Upper case becomes lower case.
    pub lowercase: bool,
}

impl BertNormalizer {
    pub(super) fn parse(part: &Json) -> Result<BertNormalizer, Misstatement> {
        let flag = |name: &str| flag(&part[name], &format!("normalizer {name}"));
        Ok(BertNormalizer {
            clean_text: flag("clean_text")?,
            handle_chinese_chars: flag("handle_chinese_chars")?,
            strip_accents: match part["strip_accents"] {
                Json::Null => None,
                _ => Some(flag("strip_accents")?),
            },
            lowercase: flag("lowercase")?,
        })
    }
}

/// How a text is taken apart into words.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PreTokenizer {
    /// Not at all.
    None,
    /// As in BERT: at white space and punctuation.
    Bert,
    /// One that is not known, by its name.
    Other(String),
}

/// How words become tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TokenModel<V> {
    /// Each word becomes the longest pieces that it consists of.
    WordPiece(WordPiece<V>),
    /// One that is not known, by its name.
    Other(String),
}

/// The settings of WordPiece, with its vocabulary.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WordPiece<V> {
    /// The token of words that consist of no pieces.
    pub unk_token: String,
    /// How pieces begin that continue a word.
    pub continuing_subword_prefix: String,
    /// Longer words are unknown.
    pub max_input_chars_per_word: u64,
    /// The vocabulary.
    pub vocab: V,
}

/// What is put around the tokens of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PostProcessor {
    /// Nothing.
    None,
    /// A list says what stands where.
    Template(Template),
    /// As in BERT and RoBERTa: one token in front and one behind.
    Bert(BertProcessing),
    /// One that is not known, by its name.
    Other(String),
}

impl PostProcessor {
    /// The tokens that it puts around a text, each with its number; sorted.
    pub fn tokens(&self) -> Vec<(String, u32)> {
        match self {
            PostProcessor::Bert(bert) => vec![bert.cls.clone(), bert.sep.clone()],
            PostProcessor::Template(template) => {
                let one = |(name, token): (&String, &TemplateToken)| match token.ids[..] {
                    [id] => Some((name.clone(), id)),
                    _ => None,
                };
                let mut tokens: Vec<_> = template.special_tokens.iter().filter_map(one).collect();
                tokens.sort();
                tokens
            }
            PostProcessor::None | PostProcessor::Other(_) => Vec::new(),
        }
    }
}

/// A list of what stands where around a text.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[non_exhaustive]
pub struct Template {
    /// Around one text.
    pub single: Vec<TemplatePiece>,
    /// The special tokens by the names that the list has for them.
    pub special_tokens: HashMap<String, TemplateToken>,
}

/// A text or a special token, where it stands in a list.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub enum TemplatePiece {
    /// A text: `A`, and of two the second is `B`.
    Sequence {
        /// Which.
        id: String,
    },
    /// A special token.
    SpecialToken {
        /// Its name.
        id: String,
    },
}

/// What a special token of a template stands for.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct TemplateToken {
    /// The numbers of its tokens; nearly always it is one.
    pub ids: Vec<u32>,
}

/// The tokens around a text, each with its number.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct BertProcessing {
    /// What stands in front.
    pub cls: (String, u32),
    /// What stands behind.
    pub sep: (String, u32),
}

/// A token that is found in a text before it is taken apart. Its number is not read: the vocabulary
/// and the order in the list give it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct AddedToken {
    /// Its text.
    pub content: String,
    /// Found only between characters that are not part of a word.
    pub single_word: bool,
    /// White space before belongs to it.
    pub lstrip: bool,
    /// White space behind belongs to it.
    pub rstrip: bool,
    /// Looked for in the normalized text, in its normalized form.
    pub normalized: bool,
}

impl AddedToken {
    /// One that stands for itself wherever it stands.
    pub fn plain(content: &str) -> AddedToken {
        AddedToken {
            content: content.to_owned(),
            single_word: false,
            lstrip: false,
            rstrip: false,
            normalized: false,
        }
    }
}
