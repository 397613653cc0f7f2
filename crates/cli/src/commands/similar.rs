//! `weighbridge similar`: the words nearest to a word. `weighbridge analogy` shares its answers.

use super::Files;
use super::hits::Printer;
use super::questions::{Answer, Said, ask, tell_not_finite, together};
use crate::ExitCode;
use crate::args::Similar;
use crate::render::{BOLD, DIM, Table, safe, styled};
use serde::Serialize;
use weighbridge::index::NamedHit;
use weighbridge::search::{Ask, Hit, Metric, Query};
use weighbridge::words::{Neighbour, Question};
use weighbridge::{Embeddings, Error, ErrorKind, Index, Options};

#[derive(Serialize)]
struct Line<'a> {
    word: &'a str,
    known: bool,
    #[serde(flatten)]
    outcome: Outcome<'a>,
}

/// What was found, or why nothing was.
#[derive(Serialize)]
pub(super) struct Outcome<'a> {
    hits: Option<Vec<Neighbour<'a>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

pub(super) fn run(args: &Similar, options: &Options, files: Files) -> Result<ExitCode, Error> {
    let container = files.open(&args.file, options)?;
    if container.vocabulary.is_none() && container.subwords.is_none() {
        let index = Index::of(&container, None)?;
        if index.words().is_none() {
            return rows(args, &index);
        }
    }
    let embeddings = Embeddings::new(&container)?;
    let together = together(args.k.min(embeddings.len()));
    let done = ask(args.words.clone(), "one word per line", together, |words| {
        let questions = words.iter().map(|word| embeddings.question(word)).collect();
        let found = answer(&embeddings, questions, args.k)?;
        let each = words.iter().zip(found).map(|(word, (known, result))| {
            // A word of the file may have a vector that can't be asked with.
            let known = known || embeddings.find(word).is_some();
            if args.json {
                in_json(&embeddings, result, |outcome| {
                    super::json_line(&Line { word, known, outcome })
                })
            } else {
                in_text(&embeddings, result, word, known)
            }
        });
        Ok(each.collect())
    })?;
    tell_not_finite(&embeddings);
    Ok(done)
}

#[derive(Serialize)]
struct RowLine<'a> {
    word: &'a str,
    known: bool,
    hits: Option<Vec<NamedHit<'a>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

/// Rows without words go by their numbers, and by what their records say.
fn rows(args: &Similar, index: &Index) -> Result<ExitCode, Error> {
    let k = args.k.min(index.len().saturating_sub(1)).max(1);
    let printer = Printer { index, fields: &[], json: false };
    let answer = |name: &String| {
        let found = index.rows_named(name).and_then(|rows| {
            super::hits::say_others(name, &rows);
            let (vector, exclude) = (index.row(rows[0])?, [rows[0]]);
            let query = Query { vector: &vector, exclude: &exclude };
            let hits = index.search_batch(&[query], &Ask::new(k, Metric::Cosine))?.swap_remove(0);
            let mut named = index.name(&hits, &[])?;
            // What words are called elsewhere.
            named.iter_mut().for_each(|hit| hit.word = Some(hit.row.to_string().into()));
            Ok(named)
        });
        match (found, args.json) {
            (Ok(hits), true) => {
                let line = RowLine { word: name, known: true, hits: Some(hits), error: None };
                Ok(Answer { text: super::json_line(&line), said: Said::Nothing })
            }
            (Ok(hits), false) => {
                let text = styled(BOLD, safe(name)) + "\n" + &printer.table(&hits);
                Ok(Answer { text, said: Said::Nothing })
            }
            (Err(error), true) if error.kind() == ErrorKind::NotFound => {
                let error = Some(crate::hints::sentence(&error));
                let line = RowLine { word: name, known: false, hits: None, error };
                Ok(Answer { text: super::json_line(&line), said: Said::NotFound(None) })
            }
            (Err(error), false) if error.kind() == ErrorKind::NotFound => {
                Ok(Answer { text: String::new(), said: Said::NotFound(Some(error)) })
            }
            (Err(error), _) => Err(error),
        }
    };
    let what = "one row per line, by its number or as field=value";
    let done = ask(args.words.clone(), what, 1, |names| names.iter().map(answer).collect())?;
    super::hits::tell_not_finite(index);
    Ok(done)
}

/// Whether all words of a question are those of the file, and its answer.
type Found = (bool, Result<Vec<Hit>, Error>);

/// Answers all questions that could be asked at once.
pub(super) fn answer(
    embeddings: &Embeddings,
    questions: Vec<Result<Question, Error>>,
    k: usize,
) -> Result<Vec<Found>, Error> {
    let mut asked = Vec::new();
    // What can't be asked stays in its place.
    let mut slots = Vec::new();
    for question in questions {
        slots.push(question.map(|q| asked.push(q)));
    }
    let known: Vec<_> = asked.iter().map(|q| q.known).collect();
    let mut found = known.into_iter().zip(embeddings.answer(&asked, k)?);
    let fill = |slot: Result<(), Error>| match slot {
        Ok(()) => found.next().map_or((false, Ok(Vec::new())), |(known, hits)| (known, Ok(hits))),
        Err(error) => (false, Err(error)),
    };
    Ok(slots.into_iter().map(fill).collect())
}

pub(super) fn in_json<'a>(
    embeddings: &'a Embeddings,
    result: Result<Vec<Hit>, Error>,
    line: impl FnOnce(Outcome<'a>) -> String,
) -> Answer {
    match result {
        Ok(hits) => {
            let hits = Some(embeddings.neighbours(&hits));
            Answer { text: line(Outcome { hits, error: None }), said: Said::Nothing }
        }
        Err(error) => {
            let text = line(Outcome { hits: None, error: Some(crate::hints::sentence(&error)) });
            Answer { text, said: Said::NotFound(None) }
        }
    }
}

/// The question, and the words that were found below it.
pub(super) fn in_text(
    embeddings: &Embeddings,
    result: Result<Vec<Hit>, Error>,
    title: &str,
    known: bool,
) -> Answer {
    let hits = match result {
        Ok(hits) => hits,
        Err(error) => {
            return Answer { text: String::new(), said: Said::NotFound(Some(error)) };
        }
    };
    let mut text = styled(BOLD, safe(title));
    if !known {
        text.push_str(&styled(DIM, " (made of subwords)"));
    }
    text.push('\n');
    let mut table = Table::new(&["word", ">score"]);
    for near in embeddings.neighbours(&hits) {
        table.row(vec![safe(&near.word), format!("{:.4}", near.score)]);
    }
    text.push_str(&table.rows());
    Answer { text, said: Said::Nothing }
}
