//! WordPiece tokenization: texts to token numbers, exactly as the tokenizers of the BERT models do
//! it. The text is cleaned and brought to one case, split into words at white space, punctuation
//! and Chinese characters, and each word becomes the longest pieces of the vocabulary that it
//! consists of.

#![forbid(unsafe_code)]

use std::borrow::Cow;
use std::fmt;
use std::ops::ControlFlow;
use weighbridge_format::model::{SPECIAL_TOKENS, Value};
use weighbridge_format::{Container, Error, Vocabulary};

mod added;
mod json;
mod normalize;
mod pieces;
mod unicode;
mod words;

pub use normalize::Casing;

use added::{Added, AddedToken, Segment};
use normalize::Normalizer;
use pieces::Pieces;
use words::{ByteClass, Words};

/// The prefix of tokens that continue a word, unless a tokenizer.json says otherwise.
const CONTINUATION_PREFIX: &str = "##";
/// Longer words are unknown, unless a tokenizer.json says otherwise.
const MAX_WORD_CHARACTERS: usize = 100;

/// The WordPiece tokenizer of a model: texts to token numbers.
pub struct Tokenizer {
    pieces: Pieces,
    added: Added,
    casing: Casing,
    /// The class of each byte.
    byte_classes: Box<[ByteClass; 256]>,
    unknown: u32,
    max_word_characters: usize,
    /// The tokens that every text begins and ends with: `[CLS]` and `[SEP]`.
    start_tokens: Vec<u32>,
    end_tokens: Vec<u32>,
}

/// What a tokenizer is made of, as a tokenizer.json or a vocabulary defines it.
struct Definition {
    pieces: Pieces,
    added: Vec<AddedToken>,
    casing: Casing,
    unknown: u32,
    max_word_characters: usize,
    start_tokens: Vec<u32>,
    end_tokens: Vec<u32>,
}

impl Tokenizer {
    /// The tokenizer of a model: what its tokenizer.json says if it has one, else what its vocabulary
    /// and metadata say.
    ///
    /// # Errors
    ///
    /// When there is neither a tokenizer.json nor a vocabulary, or what there is can't be used, see
    /// [`Tokenizer::from_json`] and [`Tokenizer::from_vocabulary`].
    pub fn of(container: &Container) -> Result<Tokenizer, Error> {
        if let Some(file) = container.attachments.iter().find(|a| a.name == json::FILE) {
            return Tokenizer::from_json(&file.data.load()?);
        }
        let vocabulary = container.vocabulary.as_ref().ok_or_else(|| {
            let hint = "a model with tokenizer.json or vocab.txt has one";
            Error::refused("there is no vocabulary, so texts can't become tokens", hint)
        })?;
        let lower_case = match setting(container, "do_lower_case")? {
            Some(lower_case) => lower_case,
            None => !knows_upper_case(vocabulary),
        };
        let casing = Casing {
            lower_case,
            strip_accents: setting(container, "strip_accents")?.unwrap_or(lower_case),
            split_chinese: setting(container, "tokenize_chinese_chars")?.unwrap_or(true),
            clean: true,
        };
        Tokenizer::from_vocabulary(vocabulary, casing)
    }

    /// The tokenizer that a tokenizer.json describes. The lengths that it asks for (truncation,
    /// padding) are left to whoever encodes.
    ///
    /// # Errors
    ///
    /// When the JSON can't be read, describes another kind of tokenizer than BERT's, or has token
    /// numbers that do not fit each other.
    pub fn from_json(json: &[u8]) -> Result<Tokenizer, Error> {
        Tokenizer::new(json::read(json)?)
    }

    /// The usual tokenizer of BERT with this vocabulary.
    ///
    /// # Errors
    ///
    /// When the vocabulary lacks `[UNK]`, `[CLS]` or `[SEP]`, or is too large.
    pub fn from_vocabulary(vocabulary: &Vocabulary, casing: Casing) -> Result<Tokenizer, Error> {
        let mut tokens = Tokens::default();
        for token in vocabulary.tokens() {
            tokens.push(&token)?;
        }
        let pieces = tokens.into_pieces(CONTINUATION_PREFIX)?;
        let find = |name: &str, text: &str| {
            let named = vocabulary.special(name).filter(|id| (*id as usize) < pieces.len());
            named.or_else(|| pieces.find(text))
        };
        let need = |name: &str, text: &str| {
            let hint = "only vocabularies as in BERT, with special tokens, are supported";
            let what = || format!("the vocabulary has no {text} token");
            find(name, text).ok_or_else(|| Error::refused(what(), hint))
        };
        let unknown = need("unk", "[UNK]")?;
        let (start_tokens, end_tokens) = (vec![need("cls", "[CLS]")?], vec![need("sep", "[SEP]")?]);
        let special = SPECIAL_TOKENS.iter().filter_map(|(name, text)| {
            Some(AddedToken::plain(pieces.token(find(name, text)? as usize)?))
        });
        Tokenizer::new(Definition {
            added: special.collect(),
            pieces,
            casing,
            unknown,
            max_word_characters: MAX_WORD_CHARACTERS,
            start_tokens,
            end_tokens,
        })
    }

    fn new(definition: Definition) -> Result<Tokenizer, Error> {
        let Definition {
            pieces,
            added,
            casing,
            unknown,
            max_word_characters,
            start_tokens,
            end_tokens,
        } = definition;
        let added = Added::new(added, &pieces, casing)?;
        let byte_classes = words::byte_classes(casing);
        let tokenizer = Tokenizer {
            pieces,
            added,
            casing,
            byte_classes,
            unknown,
            max_word_characters,
            start_tokens,
            end_tokens,
        };
        for &id in tokenizer.start_tokens.iter().chain(&tokenizer.end_tokens) {
            if tokenizer.token(id).is_none() {
                let what =
                    format!("texts would begin or end with token {id}, which does not exist");
                return Err(Error::refused(what, "the post_processor of tokenizer.json says so"));
            }
        }
        Ok(tokenizer)
    }

    /// Appends a text's token numbers, `[CLS]` and `[SEP]` included, at most `max_tokens`. What is
    /// too much is left out before the `[SEP]`.
    pub fn encode_into(&self, text: &str, max_tokens: usize, ids: &mut Vec<u32>) {
        let start = ids.len();
        ids.extend_from_slice(&self.start_tokens);
        let room = max_tokens.saturating_sub(self.start_tokens.len() + self.end_tokens.len());
        let limit = ids.len().saturating_add(room);
        if room > 0 {
            let mut words = Words::new(self, ids, limit);
            // It breaks off when there are enough tokens.
            let _ = self.added.in_text.split(text, |segment| match segment {
                Segment::Token(id) => words.push_token(id),
                Segment::Text(range) => self.encode_between(&text[range], &mut words),
            });
            ids.truncate(limit);
        }
        ids.extend_from_slice(&self.end_tokens);
        // Where there is not even room for the special tokens.
        ids.truncate(start.saturating_add(max_tokens));
    }

    /// Encodes text between the added tokens that are found before normalization.
    fn encode_between(&self, text: &str, words: &mut Words<'_>) -> ControlFlow<()> {
        let patterns = &self.added.in_normalized;
        if patterns.is_empty() {
            return words.push_text(text);
        }
        let mut normal = String::with_capacity(text.len());
        Normalizer::new(self.casing).normalize(text, &mut |c| normal.push(c));
        patterns.split(&normal, |segment| match segment {
            Segment::Token(id) => words.push_token(id),
            Segment::Text(range) => words.push_normalized(&normal[range]),
        })
    }

    /// The text of the token with this number.
    pub fn token(&self, id: u32) -> Option<Cow<'_, str>> {
        let id = id as usize;
        let extra = || self.added.extra().get(id - self.pieces.len()).map(String::as_str);
        self.pieces.token(id).or_else(extra).map(Cow::Borrowed)
    }

    /// How many tokens there are, with those that were added to the vocabulary.
    pub fn len(&self) -> usize {
        self.pieces.len() + self.added.extra().len()
    }

    /// Whether there are no tokens.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What happens to the characters of a text before it is split into words.
    pub fn casing(&self) -> Casing {
        self.casing
    }
}

impl fmt::Debug for Tokenizer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tokens = self.len();
        let special = (&self.start_tokens, self.unknown, &self.end_tokens);
        f.debug_struct("Tokenizer")
            .field("tokens", &tokens)
            .field("casing", &self.casing)
            .field("added", &self.added)
            .field("special", &special)
            .finish_non_exhaustive()
    }
}

/// Tokens one behind the other, in the order of the file.
#[derive(Default)]
struct Tokens {
    text: String,
    ends: Vec<u32>,
}

impl Tokens {
    fn push(&mut self, token: &str) -> Result<(), Error> {
        self.text.push_str(token);
        let end = u32::try_from(self.text.len());
        self.ends.push(end.map_err(|_| Error::refused("the vocabulary has more than 4 GB", ""))?);
        Ok(())
    }

    fn into_pieces(self, prefix: &str) -> Result<Pieces, Error> {
        Pieces::new(self.text, self.ends, prefix)
    }
}

/// A setting in the metadata.
fn setting(container: &Container, key: &str) -> Result<Option<bool>, Error> {
    match container.metadata.iter().find(|(k, _)| k == key).map(|(_, value)| value) {
        None => Ok(None),
        Some(Value::Bool(on)) => Ok(Some(*on)),
        Some(value) => match value.as_text() {
            Some("true") => Ok(Some(true)),
            Some("false") => Ok(Some(false)),
            _ => Err(Error::refused(format!("metadata {key} is neither true nor false"), "")),
        },
    }
}

/// Whether some token would be another one in lower case. Tokens in brackets are names.
fn knows_upper_case(vocabulary: &Vocabulary) -> bool {
    let changes = |c: char| !c.to_lowercase().eq([c]);
    vocabulary.tokens().filter(|token| !(token.starts_with('[') && token.ends_with(']'))).any(
        |token| match token.is_ascii() {
            true => token.bytes().any(|b| b.is_ascii_uppercase()),
            false => token.chars().any(changes),
        },
    )
}
