//! The vocabulary of a model, and whether that is all there is to say of its tokenizer.

use super::super::Stop;
use super::VOCABULARY;
use crate::model::Vocabulary;
use crate::spec::ModelFiles;
use crate::spec::tokenizer::{
    Normalizer, NumberedTokens, PreTokenizer, TOKENIZER, TokenizerFile, UnreadVocabulary,
};
use crate::wire::Findings;

const LIST: &str = "vocab.txt";

/// What is known of the tokenizer.
#[derive(Debug, Default)]
pub(super) struct Tokenizer {
    pub vocabulary: Option<Vocabulary>,
    /// Vocabulary and settings say all there is to say: plain BERT WordPiece.
    pub is_plain: bool,
}

pub(super) fn read(files: &dyn ModelFiles, findings: &mut Findings) -> Result<Tokenizer, Stop> {
    let has_list = files.has(LIST);
    if !files.has(TOKENIZER) {
        let vocabulary = if has_list { Some(from_lines(files)?) } else { None };
        return Ok(Tokenizer { vocabulary, is_plain: has_list });
    }
    let bytes = files.bytes(TOKENIZER)?;
    let Ok(file) = TokenizerFile::parse(&bytes) else {
        // JSON of another shape is a tokenizer that is not known.
        return files.json(TOKENIZER).map(|_| Tokenizer::default());
    };
    if file.model_kind() != Some("WordPiece") {
        return Ok(Tokenizer::default());
    }
    let vocabulary = match has_list {
        true => from_lines(files)?,
        false => from_json(file.vocabulary())?,
    };
    let listed = file.vocabulary().and_then(UnreadVocabulary::count);
    if let Some(listed) = listed.filter(|&n| n != vocabulary.len()) {
        let finding = VOCABULARY.at(0..0).field(LIST);
        let expected = format!("{listed} tokens, as in tokenizer.json");
        findings.push(finding.expected(expected).found(vocabulary.len()));
    }
    let is_plain = matches!(file.normalizer(), Ok(Normalizer::Bert(_)))
        && file.pre_tokenizer() == PreTokenizer::Bert;
    Ok(Tokenizer { vocabulary: Some(vocabulary), is_plain })
}

/// vocab.txt: a token a line, the line's number is the token's.
fn from_lines(files: &dyn ModelFiles) -> Result<Vocabulary, Stop> {
    let bytes = files.bytes(LIST)?;
    let text = std::str::from_utf8(&bytes).map_err(|e| {
        let at = e.valid_up_to() as u64;
        VOCABULARY.at(at..at + 1).field(LIST).expected("UTF-8 text")
    })?;
    let text = text.strip_suffix('\n').unwrap_or(text);
    Ok(vocabulary(text.split('\n').map(|line| line.strip_suffix('\r').unwrap_or(line))))
}

/// tokenizer.json's vocabulary: a number for every token, without gaps.
fn from_json(listed: Option<&UnreadVocabulary>) -> Result<Vocabulary, Stop> {
    let finding = VOCABULARY.at(0..0).field("tokenizer.json model.vocab");
    // A list of tokens is none: there each has a score.
    let Some(listed) = listed.filter(|listed| listed.count().is_some()) else {
        return Err(finding.expected("a number for every token").found("no vocabulary").into());
    };
    match listed.read().and_then(NumberedTokens::in_order) {
        Ok(tokens) => Ok(vocabulary(tokens.iter())),
        Err(wrong) => Err(finding.expected(wrong.expected).found(wrong.found).into()),
    }
}

fn vocabulary<'a>(tokens: impl Iterator<Item = &'a str>) -> Vocabulary {
    let mut vocabulary = Vocabulary::from_tokens(tokens);
    vocabulary.find_special();
    vocabulary
}
