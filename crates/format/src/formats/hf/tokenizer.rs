//! The vocabulary of a model, and whether that is all there is to say of its tokenizer.

use super::super::Stop;
use super::VOCABULARY;
use crate::model::Vocabulary;
use crate::spec::tokenizer::{TOKENIZER, TokenizerFile};
use crate::spec::{Fact, Misstatement, ModelFiles, TokenizerFacts};
use crate::wire::{Findings, without_mark};

pub(super) const LIST: &str = "vocab.txt";

/// What is known of the tokenizer.
#[derive(Debug, Default)]
pub(super) struct Tokenizer {
    pub vocabulary: Option<Vocabulary>,
    /// Vocabulary and settings say all there is to say: plain BERT WordPiece.
    pub is_plain: bool,
}

/// Of a model whose files say this of its tokenizer.
pub(super) fn read(
    files: &dyn ModelFiles,
    said: &TokenizerFacts,
    findings: &mut Findings,
) -> Result<Tokenizer, Stop> {
    let has_list = files.has(LIST);
    if !files.has(TOKENIZER) {
        let vocabulary = if has_list { Some(from_lines(files)?) } else { None };
        return Ok(Tokenizer { vocabulary, is_plain: has_list });
    }
    if said.normalizer.is_none() {
        // Nothing could be made of it. JSON of another shape is a tokenizer that is not known.
        return files.json(TOKENIZER).map(|_| Tokenizer::default());
    }
    if said.kind.value != "WordPiece" {
        return Ok(Tokenizer::default());
    }
    let vocabulary = match has_list {
        true => from_lines(files)?,
        false => from_json(files)?,
    };
    if let Some(listed) = said.tokens.filter(|&n| n != vocabulary.len() as u64) {
        let finding = VOCABULARY.at(0..0).in_file(LIST).field(LIST);
        let expected = format!("{listed} tokens, as in tokenizer.json");
        findings.push(finding.expected(expected).found(vocabulary.len()));
    }
    let is =
        |part: &Option<Fact<String>>, kind: &str| part.as_ref().is_some_and(|p| p.value == kind);
    let is_plain =
        is(&said.normalizer, "BertNormalizer") && is(&said.pre_tokenizer, "BertPreTokenizer");
    Ok(Tokenizer { vocabulary: Some(vocabulary), is_plain })
}

/// vocab.txt: a token a line, the line's number is the token's.
fn from_lines(files: &dyn ModelFiles) -> Result<Vocabulary, Stop> {
    let bytes = files.bytes(LIST)?;
    let bytes: &[u8] = &bytes;
    let text = without_mark(bytes);
    let mark = bytes.len() - text.len();
    let text = std::str::from_utf8(text).map_err(|e| {
        let at = (mark + e.valid_up_to()) as u64;
        VOCABULARY.at(at..at + 1).in_file(LIST).field(LIST).expected("UTF-8 text")
    })?;
    let text = text.strip_suffix('\n').unwrap_or(text);
    Ok(vocabulary(text.split('\n').map(|line| line.strip_suffix('\r').unwrap_or(line))))
}

/// tokenizer.json's vocabulary: a number for every token, without gaps.
fn from_json(files: &dyn ModelFiles) -> Result<Vocabulary, Stop> {
    let finding = || VOCABULARY.at(0..0).in_file(TOKENIZER).field("tokenizer.json model.vocab");
    let wrong = |wrong: Misstatement| finding().expected(wrong.expected).found(wrong.found);
    let file = TokenizerFile::parse_with_tokens(&files.bytes(TOKENIZER)?).map_err(wrong)?;
    let tokens = file.into_vocabulary().unwrap_or_default().in_order().map_err(wrong)?;
    if tokens.is_empty() {
        return Err(finding().expected("a number for every token").found("no vocabulary").into());
    }
    Ok(vocabulary(tokens.iter()))
}

fn vocabulary<'a>(tokens: impl Iterator<Item = &'a str>) -> Vocabulary {
    let mut vocabulary = Vocabulary::from_tokens(tokens);
    vocabulary.find_special();
    vocabulary
}
