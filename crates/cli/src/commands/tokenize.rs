//! `weighbridge tokenize`: the tokens that a model makes of a text.

use super::Files;
use super::questions::{Answer, Said, ask, together};
use crate::ExitCode;
use crate::args::Tokenize;
use crate::render::{BOLD, Table, safe, styled};
use serde::Serialize;
use std::borrow::Cow;
use weighbridge::encoder::{PromptChoice, Purpose, Tokenizer};
use weighbridge::spec::ModelSpec;
use weighbridge::wire::to_len;
use weighbridge::{Error, Options, models};

#[derive(Serialize)]
struct Tokens<'a> {
    ids: Vec<u32>,
    tokens: Vec<Cow<'a, str>>,
}

pub(super) fn run(args: &Tokenize, options: &Options, files: Files) -> Result<ExitCode, Error> {
    super::say_files(&args.text, |name| format!("< {name} reads its lines"));
    // The weights are not needed.
    let container = files.open(&models::find(&args.model)?, options)?;
    let (tokenizer, spec) = (Tokenizer::of(&container)?, ModelSpec::of(&container)?);
    let said = spec.max_tokens.as_ref().filter(|limit| !limit.is_assumed());
    let said = said.map_or(usize::MAX, |limit| to_len(limit.value));
    let limit = args.max_tokens.unwrap_or(said);
    let prompt = PromptChoice::new(args.prompt.as_deref(), Purpose::Document).of(&spec);
    let prompt = prompt.map_or_else(String::new, |prompt| prompt.text);
    let given: Vec<_> = args.text.iter().cloned().collect();
    let is_given = !given.is_empty();
    let mut cut = 0;
    let done = ask(given, "one text a line", together(1), |texts| {
        let answer = |text: &String| {
            let (mut ids, seen) = (Vec::new(), format!("{prompt}{text}"));
            cut += u64::from(tokenizer.is_cut(&seen, limit));
            tokenizer.encode_into(&seen, limit, &mut ids);
            let title = Some(text.as_str()).filter(|_| !is_given);
            Answer { text: shown(&tokenizer, ids, title, args.json), said: Said::Nothing }
        };
        Ok(texts.iter().map(answer).collect())
    })?;
    super::say_cut(cut, limit);
    Ok(done)
}

/// The tokens of a text, below it if there are several.
fn shown(tokenizer: &Tokenizer, ids: Vec<u32>, title: Option<&str>, json: bool) -> String {
    let tokens: Vec<_> = ids.iter().map(|id| tokenizer.token(*id).unwrap_or_default()).collect();
    if json {
        return super::json_line(&Tokens { ids, tokens });
    }
    let mut table = Table::new(&[">id", "token"]);
    for (id, token) in ids.iter().zip(&tokens) {
        table.row(vec![id.to_string(), safe(token)]);
    }
    let title = title.map(|title| styled(BOLD, safe(title)) + "\n").unwrap_or_default();
    title + &table.rows()
}
