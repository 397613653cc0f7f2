//! The kinds of parts that a tokenizer can have. One more is a variant here and its line in
//! [`TokenizerFile`](super::TokenizerFile).

use super::{Misstatement, TOKENIZER, flag, kind, misstatement};
use serde::Deserialize;
use serde_json::Value as Json;
use std::collections::HashMap;

pub(super) const BERT_NORMALIZER: &str = "BertNormalizer";
pub(super) const BERT_PRE_TOKENIZER: &str = "BertPreTokenizer";
pub(super) const TEMPLATE: &str = "TemplateProcessing";
pub(super) const BERT_PROCESSING: &str = "BertProcessing";
pub(super) const ROBERTA_PROCESSING: &str = "RobertaProcessing";
pub(in super::super) const WORD_PIECE: &str = "WordPiece";
pub(super) const UNIGRAM: &str = "Unigram";
pub(super) const BPE: &str = "BPE";
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

/// One step of a normalizer or a pre-tokenizer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// Which of the two it belongs to: [`Step::NORMALIZER`] or [`Step::PRE_TOKENIZER`].
    pub place: &'static str,
    /// The name of its kind.
    pub kind: String,
    /// The regular expression that it goes by.
    pub expression: Option<String>,
}

impl Step {
    /// The place of what happens to the characters of a text.
    pub const NORMALIZER: &'static str = "normalizer";
    /// The place of what takes a text apart.
    pub const PRE_TOKENIZER: &'static str = "pre-tokenizer";
}

/// More steps than any tokenizer has.
const MOST_STEPS: usize = 64;

/// Adds the steps of a part; a sequence has a list of them under this name.
pub(super) fn add_steps(
    part: &Json,
    place: &'static str,
    list: &str,
    steps: &mut Vec<Step>,
) -> Result<(), Misstatement> {
    let Some(kind) = kind(part) else { return Ok(()) };
    if kind == "Sequence" {
        let parts = part[list].as_array().into_iter().flatten();
        return parts.into_iter().try_for_each(|part| add_steps(part, place, list, steps));
    }
    if steps.len() >= MOST_STEPS {
        let field = format!("{TOKENIZER} {place}");
        return Err(misstatement(field, "few steps", format!("more than {MOST_STEPS}")));
    }
    let expression = part["pattern"]["Regex"].as_str().map(str::to_owned);
    steps.push(Step { place, kind: kind.to_owned(), expression });
    Ok(())
}

/// The merges of BPE: pairs of tokens, as lists or with a space between them.
pub(super) fn merges(list: &Json) -> Result<Vec<(String, String)>, Misstatement> {
    let wrong = |found: &Json| {
        misstatement(format!("{TOKENIZER} model.merges"), "pairs of tokens", found.to_string())
    };
    let pair = |entry: &Json| match entry {
        Json::String(text) => {
            let (a, b) = text.split_once(' ').filter(|(_, b)| !b.contains(' '))?;
            Some((a.to_owned(), b.to_owned()))
        }
        Json::Array(pair) => match &pair[..] {
            [Json::String(a), Json::String(b)] => Some((a.clone(), b.clone())),
            _ => None,
        },
        _ => None,
    };
    let entries = list.as_array().ok_or_else(|| wrong(list))?;
    entries.iter().map(|entry| pair(entry).ok_or_else(|| wrong(entry))).collect()
}

/// How words become tokens.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum TokenModel<V> {
    /// Each word becomes the longest pieces that it consists of.
    WordPiece(WordPiece<V>),
    /// Each word becomes the likeliest pieces that it consists of.
    Unigram(Unigram<V>),
    /// The parts of a word are merged, two by two, as a list says.
    Bpe(Bpe<V>),
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

/// The settings of Unigram, with its vocabulary.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unigram<V> {
    /// The number of the token of what consists of no pieces.
    pub unk_id: u64,
    /// Whether that becomes bytes instead.
    pub byte_fallback: bool,
    /// The vocabulary.
    pub vocab: V,
}

/// The settings of byte-pair encoding, with its vocabulary.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bpe<V> {
    /// Whether merges are left out at random.
    pub has_dropout: bool,
    /// The token of what is not in the vocabulary.
    pub unk_token: Option<String>,
    /// How pieces begin that continue a word.
    pub continuing_subword_prefix: Option<String>,
    /// How pieces end that end a word.
    pub end_of_word_suffix: Option<String>,
    /// Whether unknown tokens beside each other are one.
    pub fuse_unk: bool,
    /// Whether what is unknown becomes bytes.
    pub byte_fallback: bool,
    /// Whether words that are in the vocabulary need no merges.
    pub ignore_merges: bool,
    /// What is merged, the first first.
    pub merges: Vec<(String, String)>,
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
    /// As in BERT: one token in front and one behind, and between two texts one.
    Bert(BertProcessing),
    /// As in RoBERTa: the same, but for two tokens between two texts.
    Roberta(BertProcessing),
    /// One that is not known, by its name.
    Other(String),
}

impl PostProcessor {
    /// The tokens that it puts around a text, each with its number; sorted.
    pub fn tokens(&self) -> Vec<(String, u32)> {
        match self {
            PostProcessor::Bert(bert) | PostProcessor::Roberta(bert) => {
                vec![bert.cls.clone(), bert.sep.clone()]
            }
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
    /// Around two texts.
    #[serde(default)]
    pub pair: Vec<TemplatePiece>,
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
        /// Of which kind its tokens are.
        #[serde(default)]
        type_id: u32,
    },
    /// A special token.
    SpecialToken {
        /// Its name.
        id: String,
        /// Of which kind it is.
        #[serde(default)]
        type_id: u32,
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
