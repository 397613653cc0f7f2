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
    /// What stands around two texts, if that is said.
    pair: Option<Pair>,
}

/// What stands around two texts.
#[derive(Debug)]
struct Pair {
    before: Vec<u32>,
    between: Vec<u32>,
    behind: Vec<u32>,
    /// Whether the second text, and what is behind it, is of the second kind.
    has_kinds: bool,
}

impl PostProcessor {
    /// BERT's: one token in front and one behind.
    pub(super) fn around(start: u32, end: u32) -> PostProcessor {
        let (before, ends) = (vec![start], vec![end]);
        let pair = Pair { before, between: ends.clone(), behind: ends, has_kinds: true };
        PostProcessor { start: vec![start], end: vec![end], pair: Some(pair) }
    }

    /// RoBERTa's: two texts have two tokens between them, and are of one kind.
    pub(super) fn around_roberta(start: u32, end: u32) -> PostProcessor {
        let pair = Pair {
            before: vec![start],
            between: vec![end, end],
            behind: vec![end],
            has_kinds: false,
        };
        PostProcessor { start: vec![start], end: vec![end], pair: Some(pair) }
    }

    /// Texts stay as they are.
    pub(super) fn nothing() -> PostProcessor {
        PostProcessor { start: Vec::new(), end: Vec::new(), pair: None }
    }

    /// The one that a template of a tokenizer.json describes.
    pub(super) fn from_template(template: &Template) -> Result<PostProcessor, Error> {
        let mut around = PostProcessor { start: Vec::new(), end: Vec::new(), pair: None };
        let mut seen_text = false;
        for piece in &template.single {
            match piece {
                TemplatePiece::Sequence { id, .. } if id == "A" && !seen_text => seen_text = true,
                TemplatePiece::Sequence { id, .. } => {
                    let what = format!("post_processor: the template has the text {id}");
                    return Err(malformed(&format!("{what} where none can be")));
                }
                TemplatePiece::SpecialToken { id, .. } => {
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
        around.pair = Pair::from_template(template);
        match seen_text {
            true => Ok(around),
            false => Err(malformed("post_processor: the template has no text")),
        }
    }

    fn len(&self) -> usize {
        self.start.len() + self.end.len()
    }

    pub(super) fn takes_pairs(&self) -> bool {
        self.pair.is_some()
    }

    /// How many tokens it puts around two texts; none where it can't.
    pub(super) fn around_pair(&self) -> Option<usize> {
        let pair = self.pair.as_ref()?;
        Some(pair.before.len() + pair.between.len() + pair.behind.len())
    }

    /// Appends the tokens of two texts with what stands around them: at most `max_tokens`. Returns how
    /// many there are before those of the second kind.
    pub(super) fn append_pair(
        &self,
        max_tokens: usize,
        ids: &mut Vec<u32>,
        mut first: Vec<u32>,
        mut second: Vec<u32>,
    ) -> usize {
        let Some(pair) = &self.pair else { return 0 };
        let around = self.around_pair().unwrap_or(0);
        let [a, b] = cut([first.len(), second.len()], max_tokens.saturating_sub(around));
        first.truncate(a);
        second.truncate(b);
        let start = ids.len();
        for part in [&pair.before, &first, &pair.between] {
            ids.extend_from_slice(part);
        }
        let kinds = if pair.has_kinds { ids.len() - start } else { usize::MAX };
        ids.extend_from_slice(&second);
        ids.extend_from_slice(&pair.behind);
        ids.truncate(start.saturating_add(max_tokens));
        kinds.min(ids.len() - start)
    }

    /// How many tokens it puts behind a text.
    pub(super) fn behind(&self) -> usize {
        self.end.len()
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

impl Pair {
    /// What a template says of two texts; nothing where it is not what models are made for.
    fn from_template(template: &Template) -> Option<Pair> {
        let mut parts = [Vec::new(), Vec::new(), Vec::new()];
        let (mut texts, mut kinds) = (0, [0, 0]);
        for piece in &template.pair {
            match piece {
                TemplatePiece::Sequence { id, type_id } => {
                    let is_next = matches!((texts, id.as_str()), (0, "A") | (1, "B"));
                    kinds[texts.min(1)] = *type_id;
                    texts += usize::from(is_next);
                    if !is_next {
                        return None;
                    }
                }
                TemplatePiece::SpecialToken { id, .. } => {
                    let ids = &template.special_tokens.get(id)?.ids;
                    let part = parts.get_mut(texts)?;
                    part.extend_from_slice(ids);
                    if part.len() > MOST_SPECIAL_TOKENS {
                        return None;
                    }
                }
            }
        }
        let [before, between, behind] = parts;
        let is_known = texts == 2 && matches!(kinds, [0, 0 | 1]);
        is_known.then_some(Pair { before, between, behind, has_kinds: kinds == [0, 1] })
    }
}

/// How many tokens of two texts are kept when there is room for so many: what is too much goes from the
/// longer one, until they are equally long.
fn cut([first, second]: [usize; 2], room: usize) -> [usize; 2] {
    if first.saturating_add(second) <= room {
        return [first, second];
    }
    let shorter = first.min(second);
    let (less, more) = match room.checked_sub(shorter).filter(|rest| *rest >= shorter) {
        Some(rest) => (shorter, rest),
        None => (room / 2, room / 2 + room % 2),
    };
    if first > second { [more, less] } else { [less, more] }
}
