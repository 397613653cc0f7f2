//! Tokenization: texts to token numbers, exactly as the tokenizers of the models do it.
//!
//! A text goes through a pipeline. Tokens such as `[MASK]` are found in it first (`added`). What is
//! between them is cleaned and brought to one case (`normalize`) and taken apart into words (`words`);
//! both happen in one pass over the characters. The model makes tokens of each word (`model`: for
//! WordPiece, the longest `pieces` of the vocabulary that it consists of), and special tokens are put
//! around them (`post`). What each part is to do, a tokenizer.json says (`json`), or it is BERT's.
//!
//! That is for WordPiece as BERT has it. Tokenizers of other kinds (Unigram, BPE) are run by the crate
//! `tokenizers` (`library`), but for what is put around a text.

#![forbid(unsafe_code)]

use crate::support::misstated;
use std::borrow::Cow;
use std::fmt;
use std::ops::ControlFlow;
use weighbridge_format::model::SPECIAL_TOKENS;
use weighbridge_format::spec::tokenizer::{AddedToken, TOKENIZER, TokenList};
use weighbridge_format::spec::{MODEL2VEC, ModelSpec};
use weighbridge_format::{Container, Error, Vocabulary};

mod added;
mod json;
#[cfg(feature = "tokenizers")]
mod library;
mod model;
mod normalize;
mod pieces;
mod post;
#[cfg(feature = "tokenizers")]
mod precompiled;
mod unicode;
mod words;

pub use normalize::Casing;

use added::{Added, Segment};
use model::{Model, WordPiece};
use normalize::Normalizer;
use pieces::Pieces;
use post::PostProcessor;
use words::{WordSplitter, Words};

/// The prefix of tokens that continue a word, unless a tokenizer.json says otherwise.
const CONTINUATION_PREFIX: &str = "##";
/// Longer words are unknown, unless a tokenizer.json says otherwise.
const MAX_WORD_CHARACTERS: usize = 100;

/// The tokens that a vocabulary needs, by name and by text: for words that are unknown, and around a text.
const NEEDED_TOKENS: [(&str, &str); 3] = [("unk", "[UNK]"), ("cls", "[CLS]"), ("sep", "[SEP]")];

/// The keys of the metadata and of tokenizer_config.json that say how a vocabulary is used.
const FLAGS: [&str; 3] = ["do_lower_case", "strip_accents", "tokenize_chinese_chars"];

/// The tokenizer of a model: texts to token numbers.
pub struct Tokenizer {
    kind: Kind,
    post_processor: PostProcessor,
    /// How many characters of a text are looked at for each token that it may have; all without it.
    /// Model2Vec cuts texts so before it makes tokens of them.
    characters_per_token: Option<usize>,
    /// A token that is left out wherever it stands.
    dropped: Option<u32>,
}

/// What is done with texts apart from making tokens of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Use {
    /// Special tokens are put around them.
    Framed,
    /// They stay as they are.
    Bare,
    /// Nothing is put around them, long ones are cut before they become tokens, and unknown tokens
    /// are left out: Model2Vec's way.
    Cut,
}

impl Use {
    fn of(spec: &ModelSpec) -> Use {
        match spec.known_architecture() {
            Some(known) if std::ptr::eq(known, &MODEL2VEC) => Use::Cut,
            Some(known) if known.is_static() => Use::Bare,
            _ => Use::Framed,
        }
    }
}

/// Who makes tokens of a text.
enum Kind {
    Own(Box<Own>),
    #[cfg(feature = "tokenizers")]
    Library(Box<library::Library>),
}

/// The tokenizer of BERT.
struct Own {
    added: Added,
    splitter: WordSplitter,
    model: Model,
}

/// What a tokenizer is made of, as a tokenizer.json or a vocabulary defines it.
struct Parts {
    added: Vec<AddedToken>,
    casing: Casing,
    model: Model,
    post_processor: PostProcessor,
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
        Tokenizer::of_model(container, &ModelSpec::of(container)?)
    }

    /// The same, of a model that is described already.
    pub(crate) fn of_model(container: &Container, spec: &ModelSpec) -> Result<Tokenizer, Error> {
        let how = Use::of(spec);
        if let Some(file) = container.attachments.iter().find(|a| a.name == TOKENIZER) {
            return Tokenizer::read(&file.data.load()?, how);
        }
        let vocabulary = container.vocabulary.as_ref().ok_or_else(|| {
            let hint = "a model with tokenizer.json or vocab.txt has one";
            Error::refused("there is no vocabulary, so texts can't become tokens", hint)
        })?;
        let is_flag = |field: &str| FLAGS.iter().any(|flag| field.ends_with(flag));
        if let Some(wrong) = spec.misstatements.iter().find(|w| is_flag(&w.field)) {
            return Err(misstated(wrong.clone()));
        }
        let said = spec.tokenizer.clone().unwrap_or_default();
        let lower_case = match said.lower_case {
            Some(lower_case) => lower_case.value,
            None => !knows_upper_case(vocabulary),
        };
        let casing = Casing {
            lower_case,
            strip_accents: said.strip_accents.map_or(lower_case, |on| on.value),
            split_chinese: said.split_chinese.is_none_or(|on| on.value),
            clean: true,
        };
        Tokenizer::of_words(vocabulary, casing, how)
    }

    /// The tokenizer that a tokenizer.json describes. The lengths that it asks for (truncation,
    /// padding) are left to whoever encodes.
    ///
    /// # Errors
    ///
    /// When the JSON can't be read, describes a kind of tokenizer that there is not here, or has token
    /// numbers that do not fit each other.
    pub fn from_json(json: &[u8]) -> Result<Tokenizer, Error> {
        Tokenizer::read(json, Use::Framed)
    }

    fn read(json: &[u8], how: Use) -> Result<Tokenizer, Error> {
        let is_framed = how == Use::Framed;
        #[cfg(feature = "tokenizers")]
        if let Some((library, post_processor)) = json::read_for_library(json, is_framed)? {
            return Tokenizer::checked(Kind::Library(Box::new(library)), post_processor, how);
        }
        Tokenizer::new(json::read(json, is_framed)?, how)
    }

    /// The first of the tokens that a vocabulary needs to be used by itself, and lacks.
    pub fn missing_token(vocabulary: &Vocabulary) -> Option<&'static str> {
        let is_missing = |(name, text): &(&str, &str)| {
            let named = vocabulary.special(name).filter(|id| (*id as usize) < vocabulary.len());
            named.is_none() && vocabulary.find(text).is_none()
        };
        NEEDED_TOKENS.iter().find(|token| is_missing(token)).map(|(_, text)| *text)
    }

    /// The usual tokenizer of BERT with this vocabulary.
    ///
    /// # Errors
    ///
    /// When the vocabulary lacks `[UNK]`, `[CLS]` or `[SEP]`, or is too large.
    pub fn from_vocabulary(vocabulary: &Vocabulary, casing: Casing) -> Result<Tokenizer, Error> {
        Tokenizer::of_words(vocabulary, casing, Use::Framed)
    }

    fn of_words(vocabulary: &Vocabulary, casing: Casing, how: Use) -> Result<Tokenizer, Error> {
        let mut tokens = TokenList::default();
        for token in vocabulary.tokens() {
            tokens.push(&token).map_err(misstated)?;
        }
        let pieces = Pieces::new(tokens, CONTINUATION_PREFIX)?;
        let find = |name: &str, text: &str| {
            let named = vocabulary.special(name).filter(|id| (*id as usize) < pieces.len());
            named.or_else(|| pieces.find(text))
        };
        let need = |(name, text): (&str, &str)| {
            let hint = "only vocabularies as in BERT, with special tokens, are supported";
            let what = || format!("the vocabulary has no {text} token");
            find(name, text).ok_or_else(|| Error::refused(what(), hint))
        };
        let [unknown, first, last] = NEEDED_TOKENS;
        let unknown = need(unknown)?;
        let post_processor = match how {
            Use::Framed => PostProcessor::around(need(first)?, need(last)?),
            Use::Bare | Use::Cut => PostProcessor::nothing(),
        };
        let special = SPECIAL_TOKENS.iter().filter_map(|(name, text)| {
            Some(AddedToken::plain(pieces.token(find(name, text)? as usize)?))
        });
        let added = special.collect();
        let max_word_characters = MAX_WORD_CHARACTERS;
        let model = Model::WordPiece(WordPiece { pieces, unknown, max_word_characters });
        Tokenizer::new(Parts { added, casing, model, post_processor }, how)
    }

    fn new(parts: Parts, how: Use) -> Result<Tokenizer, Error> {
        let Parts { added, casing, model, post_processor } = parts;
        let added = Added::new(added, &model, casing)?;
        let splitter = WordSplitter::new(casing);
        let own = Kind::Own(Box::new(Own { added, splitter, model }));
        Tokenizer::checked(own, post_processor, how)
    }

    fn checked(kind: Kind, post_processor: PostProcessor, how: Use) -> Result<Tokenizer, Error> {
        let (mut characters_per_token, mut dropped) = (None, None);
        if how == Use::Cut {
            (characters_per_token, dropped) = (Some(kind.median_characters()), kind.unknown());
        }
        let tokenizer = Tokenizer { kind, post_processor, characters_per_token, dropped };
        let missing = tokenizer.post_processor.tokens().find(|id| tokenizer.token(*id).is_none());
        let Some(id) = missing else { return Ok(tokenizer) };
        let what = format!("texts would begin or end with token {id}, which does not exist");
        Err(Error::refused(what, "the post_processor of tokenizer.json says so"))
    }

    /// Appends a text's token numbers, `[CLS]` and `[SEP]` included, at most `max_tokens`. What is
    /// too much is left out before the `[SEP]`.
    pub fn encode_into(&self, text: &str, max_tokens: usize, ids: &mut Vec<u32>) {
        let text = self.head(text, max_tokens);
        self.post_processor.append(max_tokens, ids, |ids, limit| {
            let Some(dropped) = self.dropped else { return self.kind.append(text, limit, ids) };
            // How many are left out shows when all are there; the text was cut before.
            let start = ids.len();
            self.kind.append(text, usize::MAX, ids);
            drop_from(ids, start, dropped);
        });
    }

    /// Whether a text has more tokens than so many, or more characters than are looked at for them.
    pub fn is_cut(&self, text: &str, max_tokens: usize) -> bool {
        if self.head(text, max_tokens).len() < text.len() {
            return true;
        }
        let mut ids = Vec::new();
        self.encode_into(text, max_tokens.saturating_add(1), &mut ids);
        ids.len() > max_tokens
    }

    /// As much of a text as is looked at for so many tokens.
    fn head<'a>(&self, text: &'a str, max_tokens: usize) -> &'a str {
        let Some(each) = self.characters_per_token else { return text };
        let most = max_tokens.saturating_mul(each);
        // A character has one byte at least.
        if text.len() <= most {
            return text;
        }
        let end = text.char_indices().nth(most).map_or(text.len(), |(at, _)| at);
        &text[..end]
    }

    /// Appends the token numbers of two texts that belong together, at most `max_tokens`. Of the longer one
    /// what is too much is left out first. Returns how many tokens there are before those of the
    /// second kind.
    pub fn encode_pair_into(
        &self,
        first: &str,
        second: &str,
        max_tokens: usize,
        ids: &mut Vec<u32>,
    ) -> usize {
        let tokens = |text: &str| {
            let mut ids = Vec::new();
            self.kind.append(text, usize::MAX, &mut ids);
            ids
        };
        self.post_processor.append_pair(max_tokens, ids, tokens(first), tokens(second))
    }

    /// Tokens with what is put around those of a text.
    pub fn framed(&self, tokens: &[u32]) -> Vec<u32> {
        let mut ids = Vec::new();
        let append = |ids: &mut Vec<u32>, _: usize| ids.extend_from_slice(tokens);
        self.post_processor.append(usize::MAX, &mut ids, append);
        ids
    }

    /// The words of a text, cleaned and in one case, as they are before they become tokens; none where
    /// the tokenizer is not of BERT's kind.
    pub fn split_words(&self, text: &str) -> Option<Vec<String>> {
        match &self.kind {
            Kind::Own(own) => Some(own.split_words(text)),
            #[cfg(feature = "tokenizers")]
            Kind::Library(_) => None,
        }
    }

    /// Whether it is known how two texts go together.
    pub fn takes_pairs(&self) -> bool {
        self.post_processor.takes_pairs()
    }

    /// How many tokens are put around two texts that belong together, where that is known.
    pub(crate) fn tokens_around_pair(&self) -> Option<usize> {
        self.post_processor.around_pair()
    }

    /// How many tokens are put behind every text.
    pub(crate) fn tokens_behind(&self) -> usize {
        self.post_processor.behind()
    }

    /// The text of the token with this number.
    pub fn token(&self, id: u32) -> Option<Cow<'_, str>> {
        match &self.kind {
            Kind::Own(own) => own.token(id).map(Cow::Borrowed),
            #[cfg(feature = "tokenizers")]
            Kind::Library(library) => library.token(id).map(Cow::Owned),
        }
    }

    /// How many tokens there are, with those that were added to the vocabulary.
    pub fn len(&self) -> usize {
        self.kind.len()
    }

    /// Whether there are no tokens.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What happens to the characters of a text before it is split into words, as far as BERT's
    /// tokenizer has settings for it.
    pub fn casing(&self) -> Casing {
        match &self.kind {
            Kind::Own(own) => own.splitter.casing,
            #[cfg(feature = "tokenizers")]
            Kind::Library(_) => Casing::UNCHANGED,
        }
    }
}

impl Kind {
    /// Appends the tokens of a text. They may be more than `limit`.
    fn append(&self, text: &str, limit: usize, ids: &mut Vec<u32>) {
        match self {
            Kind::Own(own) => own.encode(text, limit, ids),
            #[cfg(feature = "tokenizers")]
            Kind::Library(library) => library.append(text, ids),
        }
    }

    fn len(&self) -> usize {
        match self {
            Kind::Own(own) => own.model.len() + own.added.extra().len(),
            #[cfg(feature = "tokenizers")]
            Kind::Library(library) => library.len(),
        }
    }

    /// The token of what is unknown, where the model names one.
    fn unknown(&self) -> Option<u32> {
        match self {
            Kind::Own(own) => Some(own.model.unknown()),
            #[cfg(feature = "tokenizers")]
            Kind::Library(library) => library.unknown(),
        }
    }

    /// The median of the lengths of all tokens, in characters and rounded down.
    fn median_characters(&self) -> usize {
        let mut lengths: Vec<usize> = match self {
            Kind::Own(own) => {
                let ids = 0..u32::try_from(self.len()).unwrap_or(u32::MAX);
                ids.filter_map(|id| own.token(id)).map(|token| token.chars().count()).collect()
            }
            #[cfg(feature = "tokenizers")]
            Kind::Library(library) => library.token_lengths(),
        };
        lengths.sort_unstable();
        let middle = lengths.len() / 2;
        match (lengths.get(middle.wrapping_sub(1)), lengths.get(middle)) {
            (Some(below), Some(above)) if lengths.len().is_multiple_of(2) => (below + above) / 2,
            (_, Some(one)) => *one,
            _ => 0,
        }
    }
}

/// Leaves a token out of those from `start` on.
fn drop_from(ids: &mut Vec<u32>, start: usize, dropped: u32) {
    let mut kept = start;
    for place in start..ids.len() {
        ids[kept] = ids[place];
        kept += usize::from(ids[place] != dropped);
    }
    ids.truncate(kept);
}

impl Own {
    fn encode(&self, text: &str, limit: usize, ids: &mut Vec<u32>) {
        let mut words = Words::new(&self.splitter, &self.model, ids, limit);
        // It breaks off when there are enough tokens.
        let _ = self.added.in_text.split(text, |segment| match segment {
            Segment::Token(id) => words.push_token(id),
            Segment::Text(range) => self.encode_between(&text[range], &mut words),
        });
    }

    fn split_words(&self, text: &str) -> Vec<String> {
        let (mut words, mut word) = (Vec::new(), String::new());
        let mut normal = String::new();
        Normalizer::new(self.splitter.casing).normalize(text, &mut |c| normal.push(c));
        for c in normal.chars() {
            let kinds = unicode::kinds(c);
            let ends = kinds & (unicode::SPACE | unicode::PUNCTUATION) != 0;
            if ends && !word.is_empty() {
                words.push(std::mem::take(&mut word));
            }
            if kinds & unicode::PUNCTUATION != 0 {
                words.push(c.to_string());
            } else if !ends {
                word.push(c);
            }
        }
        words.extend(Some(word).filter(|word| !word.is_empty()));
        words
    }

    /// Encodes text between the added tokens that are found before normalization.
    fn encode_between(&self, text: &str, words: &mut Words<'_>) -> ControlFlow<()> {
        let patterns = &self.added.in_normalized;
        if patterns.is_empty() {
            return words.push_text(text);
        }
        let mut normal = String::with_capacity(text.len());
        Normalizer::new(self.splitter.casing).normalize(text, &mut |c| normal.push(c));
        patterns.split(&normal, |segment| match segment {
            Segment::Token(id) => words.push_token(id),
            Segment::Text(range) => words.push_normalized(&normal[range]),
        })
    }

    fn token(&self, id: u32) -> Option<&str> {
        let id = id as usize;
        let extra = || self.added.extra().get(id - self.model.len()).map(String::as_str);
        self.model.token(id).or_else(extra)
    }
}

impl fmt::Debug for Tokenizer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Tokenizer");
        shown.field("tokens", &self.len()).field("casing", &self.casing());
        match &self.kind {
            Kind::Own(own) => {
                shown.field("added", &own.added).field("unknown", &own.model.unknown());
            }
            #[cfg(feature = "tokenizers")]
            Kind::Library(library) => {
                shown.field("library", library);
            }
        }
        shown.field("post_processor", &self.post_processor).finish_non_exhaustive()
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
