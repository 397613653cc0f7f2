//! `weighbridge tokenize`: the tokens that a model makes of a text.

use super::Files;
use crate::args::Tokenize;
use crate::render::{Table, safe};
use serde::Serialize;
use std::borrow::Cow;
use std::process::ExitCode;
use weighbridge::encoder::Tokenizer;
use weighbridge::spec::ModelSpec;
use weighbridge::wire::to_len;
use weighbridge::{Error, Options, models};

#[derive(Serialize)]
struct Tokens<'a> {
    ids: Vec<u32>,
    tokens: Vec<Cow<'a, str>>,
}

pub(super) fn run(args: &Tokenize, options: &Options, files: Files) -> Result<ExitCode, Error> {
    super::say_files([&args.text], |_| String::new());
    // The weights are not needed.
    let container = files.open(&models::find(&args.model)?, options)?;
    let tokenizer = Tokenizer::of(&container)?;
    let limit = || {
        let limit = ModelSpec::of(&container)?.max_tokens.filter(|limit| !limit.is_assumed());
        Ok::<_, Error>(limit.map_or(usize::MAX, |limit| to_len(limit.value)))
    };
    let limit = args.max_tokens.map_or_else(limit, Ok)?;
    let mut ids = Vec::new();
    tokenizer.encode_into(&args.text, limit.saturating_add(1), &mut ids);
    super::say_cut(u64::from(ids.len() > limit), limit);
    ids.clear();
    tokenizer.encode_into(&args.text, limit, &mut ids);
    let tokens: Vec<_> = ids.iter().map(|id| tokenizer.token(*id).unwrap_or_default()).collect();
    if args.json {
        return super::print(&super::json_line(&Tokens { ids, tokens }));
    }
    let mut table = Table::new(&[">id", "token"]);
    for (id, token) in ids.iter().zip(&tokens) {
        table.row(vec![id.to_string(), safe(token)]);
    }
    super::print(&table.rows())
}
