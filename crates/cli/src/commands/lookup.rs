//! `weighbridge lookup`: the vectors of words.

use super::Files;
use super::questions::{Answer, Said, ask, together};
use crate::ExitCode;
use crate::args::Lookup;
use crate::render::{DIM, safe, styled};
use serde::Serialize;
use weighbridge::{Embeddings, Error, Options};

#[derive(Serialize)]
struct Line<'a> {
    word: &'a str,
    known: bool,
    vector: Option<&'a [f32]>,
}

pub(super) fn run(args: &Lookup, options: &Options, files: Files) -> Result<ExitCode, Error> {
    let embeddings = files.words(&args.file, options)?;
    ask(args.words.clone(), "one word a line", together(1), |words| {
        let answers = words.iter().map(|word| answer(&embeddings, word, args.json)).collect();
        embeddings.check_unchanged().and(answers)
    })
}

fn answer(embeddings: &Embeddings, word: &str, json: bool) -> Result<Answer, Error> {
    let found = embeddings.lookup(word)?;
    let known = found.as_ref().is_some_and(|f| f.known);
    let vector = found.as_ref().map(|f| &*f.vector);
    let text = match vector {
        _ if json => super::json_line(&Line { word, known, vector }),
        // The shortest numbers that are read as the same ones again.
        Some(values) => {
            let numbers = values.iter().map(|v| format!(" {v:?}"));
            format!("{}{}\n", safe(word), numbers.collect::<String>())
        }
        None => String::new(),
    };
    let fault = vector.and_then(|values| embeddings.fault(word, values));
    let said = match (vector, fault) {
        (None, _) if json => Said::NotFound(None),
        (None, _) => Said::NotFound(Some(embeddings.unknown(word))),
        (Some(_), Some(fault)) => Said::Note(styled(DIM, safe(&fault))),
        (Some(_), None) if known || json => Said::Nothing,
        (Some(_), None) => {
            let note = format!("{word:?} is not among the words: made of its subwords");
            Said::Note(styled(DIM, safe(&note)))
        }
    };
    Ok(Answer { text, said })
}
