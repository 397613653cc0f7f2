//! What is put around the tokens of a text, and where a text that is too long is cut.

use super::json::malformed;
use weighbridge_format::Error;
use weighbridge_format::spec::tokenizer::{Template, TemplatePiece};

/// Special tokens that a template may ask for. A name in it can stand for many tokens and be repeated,
/// so that a small file could ask for more than there is memory.
const MOST_SPECIAL_TOKENS: usize = 1_000;

/// The tokens that every text begins and ends with: `[CLS]` and `[SEP]`.
#[derive(Debug)]
pub(super) struct PostProcessor {
    start: Vec<u32>,
    end: Vec<u32>,
}

impl PostProcessor {
    /// BERT's: one token in front and one behind.
    pub(super) fn around(start: u32, end: u32) -> PostProcessor {
        PostProcessor { start: vec![start], end: vec![end] }
    }

    /// The one that a template of a tokenizer.json describes.
    pub(super) fn from_template(template: &Template) -> Result<PostProcessor, Error> {
        let mut around = PostProcessor { start: Vec::new(), end: Vec::new() };
        let mut seen_text = false;
        for piece in &template.single {
            match piece {
                TemplatePiece::Sequence { id } if id == "A" && !seen_text => seen_text = true,
                TemplatePiece::Sequence { id } => {
                    let what = format!("post_processor: the template has the text {id}");
                    return Err(malformed(&format!("{what} where none can be")));
                }
                TemplatePiece::SpecialToken { id } => {
                    let token = template.special_tokens.get(id).ok_or_else(|| {
                        malformed(&format!("post_processor: there is no special token {id}"))
                    })?;
                    if around.len() + token.ids.len() > MOST_SPECIAL_TOKENS {
                        let most = format!("more than {MOST_SPECIAL_TOKENS} special tokens");
                        return Err(malformed(&format!("post_processor: the template has {most}")));
                    }
                    let side = if seen_text { &mut around.end } else { &mut around.start };
                    side.extend_from_slice(&token.ids);
                }
            }
        }
        match seen_text {
            true => Ok(around),
            false => Err(malformed("post_processor: the template has no text")),
        }
    }

    fn len(&self) -> usize {
        self.start.len() + self.end.len()
    }

    /// All the tokens that it puts around a text.
    pub(super) fn tokens(&self) -> impl Iterator<Item = u32> {
        self.start.iter().chain(&self.end).copied()
    }

    /// Appends the tokens of a text, which `text` appends up to a length of all, with what stands
    /// around them: at most `max_tokens`. What is too much is left out before the last tokens.
    pub(super) fn append(
        &self,
        max_tokens: usize,
        ids: &mut Vec<u32>,
        text: impl FnOnce(&mut Vec<u32>, usize),
    ) {
        let begin = ids.len();
        ids.extend_from_slice(&self.start);
        let room = max_tokens.saturating_sub(self.len());
        if room > 0 {
            let limit = ids.len().saturating_add(room);
            text(ids, limit);
            ids.truncate(limit);
        }
        ids.extend_from_slice(&self.end);
        // Where there is not even room for the special tokens.
        ids.truncate(begin.saturating_add(max_tokens));
    }
}
