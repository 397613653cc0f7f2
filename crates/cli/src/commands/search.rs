//! `weighbridge search`: the rows nearest to texts, words, vectors or other rows.

use super::Files;
use super::hits::{self, Printer};
use super::questions::{self, Said, ask};
use crate::ExitCode;
use crate::args::Search;
use crate::progress::{with_bar, with_scoring_bar};
use crate::render::safe;
use std::path::Path;
use std::sync::Arc;
use weighbridge::codec::parallel::with_threads;
use weighbridge::encoder::Settings;
use weighbridge::index::{Asked, HitTable, TextSettings};
use weighbridge::search::{Ask, Hit, Query, RowSet};
use weighbridge::words::Question;
use weighbridge::{Encoder, Error, Index, Options, Progress, Stage};

/// Hits unless a number is given.
const USUAL: usize = 10;

/// Hits that a model may order anew.
const RERANKED: usize = 50;

/// Values of queries that are answered together.
const TOGETHER_VALUES: usize = 1 << 20;

/// Takes an answer, and gives the text to print.
type Take<'a> = dyn FnMut(Asked, &[Hit]) -> Result<String, Error> + 'a;

pub(super) fn run(args: &Search, options: &Options, files: Files) -> Result<ExitCode, Error> {
    with_threads(args.rows.threads, || search(args, options, files))
}

fn search(args: &Search, options: &Options, files: Files) -> Result<ExitCode, Error> {
    let target = hits::target(&args.output)?;
    let index = Arc::new(files.searched(&args.index, options, &args.rows)?);
    let among = match args.filter.is_empty() {
        true => None,
        false => Some(index.matching(&args.filter)?),
    };
    let rescore = args.rescore.as_deref();
    let precise = rescore.map(|path| files.rows(path));
    let precise = precise.transpose()?;
    let k = args.k.unwrap_or_else(|| USUAL.min(index.len().max(1)));
    let settings = Settings { threads: args.rows.threads, ..Settings::default() };
    let reranker = args.rerank.as_deref();
    let reranker = reranker.map(|model| files.reranker(model, &Options::default(), &settings));
    let reranker = reranker.transpose()?;
    let wanted = if reranker.is_some() { k.max(RERANKED.min(index.len())) } else { k };
    let asker =
        Asker { index: &index, precise, among, ask: Ask::new(wanted, args.metric.metric()) };
    let printer = Printer { index: &index, fields: &args.rows.show, json: args.json };
    let mut table = HitTable::new(k);
    let mut done = ExitCode::SUCCESS;
    let mut take = |asked: Asked, hits: &[Hit]| -> Result<String, Error> {
        let ranked = match (&reranker, &asked) {
            (Some(reranker), Asked::Text(text)) => {
                Some(with_scoring_bar("hits", hits.len(), |tell| {
                    index.rerank_telling(reranker, text, hits, k, tell)
                })?)
            }
            _ => None,
        };
        let hits = ranked.as_deref().unwrap_or(hits);
        if target.is_some() {
            table.push(asked, hits);
            return Ok(String::new());
        }
        printer.answer(asked, hits)
    };
    if let Some(queries) = &args.queries {
        let queries = files.rows(queries)?;
        ask_rows(&asker, &queries, args, target.is_some(), &mut take)?;
    } else if !args.like.is_empty() {
        for name in &args.like {
            let rows = index.rows_named(name)?;
            hits::say_others(name, &rows);
            let question = Question {
                known: true,
                vector: asker.source().row(rows[0])?,
                exclude: vec![rows[0]],
            };
            let text = take(Asked::Text(name.clone()), &asker.answer(&[question])?[0])?;
            super::print(&text)?;
        }
    } else {
        let texts = TextQueries::open(args, &index, files)?;
        let what = if texts.encoder.is_some() { "one text per line" } else { "one word per line" };
        let together = questions::together(wanted);
        done = ask(args.texts.clone(), what, together, |texts_asked| {
            texts.answer(&asker, texts_asked, &mut take)
        })?;
        texts.say_cut(&args.texts);
    }
    hits::tell_not_finite(&index);
    match target {
        None => Ok(done),
        Some(target) => {
            hits::write(table, &index, &args.rows.show, target, args.json)?;
            Ok(done)
        }
    }
}

/// Asks with every row of a file.
fn ask_rows(
    asker: &Asker,
    queries: &Index,
    args: &Search,
    quiet: bool,
    take: &mut Take,
) -> Result<(), Error> {
    let together = (TOGETHER_VALUES / queries.dim()).clamp(1, questions::together(asker.ask.k));
    let label = safe(&args.queries.as_deref().unwrap_or(Path::new("")).display().to_string());
    let mut work = |progress: &mut Progress| {
        progress.begin(Stage::Answering, queries.len() as u64)?;
        let mut start = 0;
        while start < queries.len() {
            let rows = start..queries.len().min(start + together);
            let asked = rows.clone().map(|row| {
                Ok(Question { known: true, vector: queries.row(row)?, exclude: Vec::new() })
            });
            let asked = asked.collect::<Result<Vec<_>, Error>>()?;
            let mut text = String::new();
            for (row, hits) in rows.clone().zip(asker.answer(&asked)?) {
                text.push_str(&take(Asked::Row(row), &hits)?);
            }
            super::print(&text)?;
            progress.advance(rows.len() as u64)?;
            start = rows.end;
        }
        Ok(())
    };
    // Two things on one terminal would be in each other's way.
    if quiet { with_bar(&label, work) } else { work(&mut Progress::none()) }
}

/// What is asked, and of what.
struct Asker<'a> {
    index: &'a Index,
    /// Rows that decide about the order.
    precise: Option<Index>,
    among: Option<RowSet>,
    ask: Ask<'a>,
}

impl Asker<'_> {
    /// Where vectors of rows and words are taken from.
    fn source(&self) -> &Index {
        self.precise.as_ref().unwrap_or(self.index)
    }

    fn answer(&self, questions: &[Question]) -> Result<Vec<Vec<Hit>>, Error> {
        let queries: Vec<_> =
            questions.iter().map(|q| Query { vector: &q.vector, exclude: &q.exclude }).collect();
        let mut ask = Ask::new(self.ask.k, self.ask.metric);
        ask.among = self.among.as_ref();
        match &self.precise {
            None => self.index.search_batch(&queries, &ask),
            Some(precise) => self.index.search_rescored(precise, &queries, &ask),
        }
    }
}

/// Texts with a model, or words of the file.
struct TextQueries {
    encoder: Option<Encoder>,
}

impl TextQueries {
    fn open(args: &Search, index: &Index, files: Files) -> Result<TextQueries, Error> {
        let has_words = || index.words().is_some();
        let is_said = args.model.is_some() || index.made_with()?.is_some();
        if !is_said && has_words() {
            return Ok(TextQueries { encoder: None });
        }
        let mut texts = TextSettings::default();
        texts.model.clone_from(&args.model);
        texts.prompt.clone_from(&args.prompt);
        texts.precision = args.precision.map(Into::into);
        texts.threads = args.rows.threads;
        let open = |path: &Path, settings: &Settings| {
            super::say_built_in(path, args.json);
            files.encoder(path, &Options::default(), settings)
        };
        let encoder = index.encoder_with(&texts, open)?;
        if args.prompt.is_none() {
            super::prompts::say_prompt(&encoder);
        }
        Ok(TextQueries { encoder: Some(encoder) })
    }

    fn answer(
        &self,
        asker: &Asker,
        texts: &[String],
        take: &mut Take,
    ) -> Result<Vec<questions::Answer>, Error> {
        let Some(encoder) = &self.encoder else {
            let asked = texts.iter().map(|word| match asker.source().words() {
                Some(_) => asker.source().word_question(word),
                None => asker.index.word_question(word),
            });
            return answer_each(asker, texts, asked.collect(), take);
        };
        let vectors = encoder.embed_flat(texts)?;
        let question = |vector: &[f32]| {
            Ok(Question { known: true, vector: vector.to_vec(), exclude: Vec::new() })
        };
        let asked = vectors.chunks_exact(encoder.dimensions()).map(question).collect();
        answer_each(asker, texts, asked, take)
    }

    fn say_cut(&self, texts: &[String]) {
        if let Some(encoder) = &self.encoder {
            super::say_cut(encoder.count_cut(texts), encoder.max_tokens());
        }
    }
}

/// The answers to all that can be asked; what can't stays in its place.
fn answer_each(
    asker: &Asker,
    texts: &[String],
    questions: Vec<Result<Question, Error>>,
    take: &mut Take,
) -> Result<Vec<questions::Answer>, Error> {
    let mut asked = Vec::new();
    let slots: Vec<_> = questions.into_iter().map(|q| q.map(|q| asked.push(q))).collect();
    let mut found = asker.answer(&asked)?.into_iter();
    let each = texts.iter().zip(slots).map(|(text, slot)| match slot {
        Ok(()) => {
            let hits = found.next().unwrap_or_default();
            let text = take(Asked::Text(text.clone()), &hits)?;
            Ok(questions::Answer { text, said: Said::Nothing })
        }
        Err(error) => {
            Ok(questions::Answer { text: String::new(), said: Said::NotFound(Some(error)) })
        }
    });
    each.collect()
}
