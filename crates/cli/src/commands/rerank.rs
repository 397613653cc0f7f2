//! `weighbridge rerank`: texts in the order of how well they answer a question.

use super::text_input::{read_all, read_input};
use super::{Files, json_line};
use crate::ExitCode;
use crate::args::Rerank;
use crate::progress::with_scoring_bar;
use crate::render::{BOLD, Table, safe, styled};
use serde::Serialize;
use std::path::Path;
use weighbridge::embed::lines_of;
use weighbridge::encoder::{Reranker, Settings};
use weighbridge::{Error, Options, models};

/// What is printed with `--json`.
#[derive(Serialize)]
struct Answer<'a> {
    query: &'a str,
    hits: Vec<Hit<'a>>,
}

#[derive(Serialize)]
struct Hit<'a> {
    row: usize,
    score: f32,
    text: &'a str,
}

impl Files {
    /// The model that scores pairs of texts in a file or a directory.
    pub(super) fn reranker(
        self,
        model: &str,
        options: &Options,
        settings: &Settings,
    ) -> Result<Reranker, Error> {
        let path = models::find(model)?;
        Reranker::new(&self.open(Path::new(&path), options)?, settings)
    }
}

pub(super) fn run(args: &Rerank, options: &Options, files: Files) -> Result<ExitCode, Error> {
    let files = files.accepting(&args.damage);
    let texts = texts(args)?;
    let reranker = files.reranker(&args.model.model, options, &args.model.settings(None))?;
    let mut ranked = with_scoring_bar("texts", texts.len(), |tell| {
        reranker.rank_telling(&args.query, &texts, tell)
    })?;
    ranked.truncate(args.k.unwrap_or(usize::MAX));
    let hits = ranked.iter().map(|r| Hit { row: r.row, score: r.score, text: &texts[r.row] });
    let hits: Vec<_> = hits.collect();
    if args.json {
        super::print(&json_line(&Answer { query: &args.query, hits }))?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut table = Table::new(&[">score", "?>row", "text"]);
    for hit in hits {
        table.row(vec![super::hits::score(hit.score), hit.row.to_string(), safe(hit.text)]);
    }
    super::print(&(styled(BOLD, safe(&args.query)) + "\n" + &table.rows()))?;
    Ok(ExitCode::SUCCESS)
}

/// The texts of the command line, of a file, or of standard input: a text on each line.
fn texts(args: &Rerank) -> Result<Vec<String>, Error> {
    if !args.texts.is_empty() {
        return Ok(args.texts.clone());
    }
    let (bytes, name) = match &args.input {
        Some(path) => (read_input(path)?, path.display().to_string()),
        None => (read_all(std::io::stdin().lock(), "standard input")?, "standard input".to_owned()),
    };
    lines_of(&name, &bytes[..])
}
