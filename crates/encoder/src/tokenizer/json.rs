//! A tokenizer of the parts that a tokenizer.json describes.

use super::model::{Model, WordPiece};
use super::pieces::Pieces;
use super::post::PostProcessor;
use super::{Casing, Parts};
use crate::support::misstated;
use weighbridge_format::Error;
use weighbridge_format::spec::tokenizer::{
    self as spec, NumberedTokens, PreTokenizer, TOKENIZER, TokenModel, TokenizerFile,
};

/// The longest word that a model may want to look up.
const LONGEST_WORD: u64 = 10_000;

/// The parts of the tokenizer that a file describes, with or without what it puts around texts.
pub(super) fn read(json: &[u8], is_framed: bool) -> Result<Parts, Error> {
    let file = TokenizerFile::parse_with_tokens(json).map_err(misstated)?;
    // What the model is says most about a tokenizer that is not known, so it is looked at first.
    let other_model = |kind: &str| {
        let known = match cfg!(feature = "tokenizers") {
            true => "WordPiece, Unigram and BPE are supported",
            false => "only WordPiece is supported here",
        };
        let what = format!("{TOKENIZER} has a {kind} tokenizer; {known}");
        Error::unsupported(TOKENIZER, what, "")
    };
    if let Some(kind) = file.model_kind().filter(|kind| *kind != "WordPiece") {
        return Err(other_model(kind));
    }
    check_version(&file)?;
    let casing = casing(&file)?;
    if file.pre_tokenizer() != PreTokenizer::Bert {
        let what = format!("the pre-tokenizer {}", file.pre_tokenizer_kind());
        return Err(unsupported(&what, "BertPreTokenizer"));
    }
    let post_processor = post_processor(&file, is_framed)?;
    let added = file.added_tokens().map_err(misstated)?;
    let model = match file.into_model().map_err(misstated)? {
        TokenModel::WordPiece(settings) => Model::WordPiece(word_piece(settings)?),
        TokenModel::Other(kind) => return Err(other_model(&kind)),
        _ => return Err(other_model("newer")),
    };
    Ok(Parts { added, casing, model, post_processor })
}

fn check_version<V>(file: &TokenizerFile<V>) -> Result<(), Error> {
    match file.version().map_err(misstated)?.filter(|version| *version != "1.0") {
        Some(version) => Err(unsupported(&format!("version {version:?}"), "version 1.0")),
        None => Ok(()),
    }
}

/// A tokenizer that the crate `tokenizers` runs, with what is put around texts, if the file describes
/// one.
#[cfg(feature = "tokenizers")]
pub(super) fn read_for_library(
    json: &[u8],
    is_framed: bool,
) -> Result<Option<(super::library::Library, PostProcessor)>, Error> {
    let file = TokenizerFile::parse(json).map_err(misstated)?;
    let steps = file.steps().map_err(misstated)?;
    let Some(kind) = file.model_kind().filter(|kind| super::library::is_for(kind, &steps)) else {
        return Ok(None);
    };
    check_version(&file)?;
    let post_processor = post_processor(&file, is_framed)?;
    Ok(Some((super::library::Library::read(json, kind)?, post_processor)))
}

fn casing(file: &TokenizerFile<NumberedTokens>) -> Result<Casing, Error> {
    match file.normalizer().map_err(misstated)? {
        spec::Normalizer::None => Ok(Casing::UNCHANGED),
        spec::Normalizer::Bert(bert) => Ok(Casing {
            lower_case: bert.lowercase,
            strip_accents: bert.strip_accents.unwrap_or(bert.lowercase),
            split_chinese: bert.handle_chinese_chars,
            clean: bert.clean_text,
        }),
        _ => {
            let what = format!("the normalizer {}", file.normalizer_kind());
            Err(unsupported(&what, "BertNormalizer"))
        }
    }
}

fn post_processor<V>(file: &TokenizerFile<V>, is_framed: bool) -> Result<PostProcessor, Error> {
    if !is_framed {
        return Ok(PostProcessor::nothing());
    }
    match file.post_processor().map_err(misstated)? {
        spec::PostProcessor::Template(template) => PostProcessor::from_template(&template),
        spec::PostProcessor::Bert(tokens) => Ok(PostProcessor::around(tokens.cls.1, tokens.sep.1)),
        spec::PostProcessor::Roberta(tokens) => {
            Ok(PostProcessor::around_roberta(tokens.cls.1, tokens.sep.1))
        }
        spec::PostProcessor::None => {
            Err(malformed("has no post_processor, so texts would get no [CLS] and no [SEP]"))
        }
        _ => {
            let what = format!("the post-processor {}", file.post_processor_kind());
            Err(unsupported(&what, "TemplateProcessing or BertProcessing"))
        }
    }
}

fn word_piece(settings: spec::WordPiece<NumberedTokens>) -> Result<WordPiece, Error> {
    let longest = settings.max_input_chars_per_word;
    let Some(max_word_characters) =
        usize::try_from(longest).ok().filter(|_| longest <= LONGEST_WORD)
    else {
        // The time for a word grows with its length times that of the longest token.
        let what = format!("{TOKENIZER}: words of {longest} characters");
        return Err(Error::refused(what, format!("at most {LONGEST_WORD}; BERT has 100")));
    };
    let tokens = settings.vocab.in_order().map_err(misstated)?;
    let pieces = Pieces::new(tokens, &settings.continuing_subword_prefix)?;
    if let Some(token) = pieces.repeated.and_then(|id| pieces.token(id)) {
        return Err(malformed(&format!("has the token {token:?} in its vocabulary twice")));
    }
    let unknown = pieces.find(&settings.unk_token).ok_or_else(|| {
        malformed(&format!("has no {} token in its vocabulary", settings.unk_token))
    })?;
    Ok(WordPiece { pieces, unknown, max_word_characters })
}

/// Something that the file says and can't be.
pub(super) fn malformed(what: &str) -> Error {
    Error::refused(format!("{TOKENIZER} {what}"), "")
}

pub(super) fn unsupported(what: &str, supported: &str) -> Error {
    let what = format!("{TOKENIZER} has {what}; only {supported} as in BERT is supported");
    Error::unsupported(TOKENIZER, what, "")
}
