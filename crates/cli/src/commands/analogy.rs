//! `weighbridge analogy`: A is to B as C is to what?

use super::Files;
use super::questions::{ask, tell_not_finite, together};
use super::similar::{Outcome, answer, in_json, in_text};
use crate::ExitCode;
use crate::args::Analogy;
use serde::Serialize;
use weighbridge::{Error, Options};

#[derive(Serialize)]
struct Line<'a> {
    analogy: Vec<&'a str>,
    #[serde(flatten)]
    outcome: Outcome<'a>,
}

pub(super) fn run(args: &Analogy, options: &Options, files: Files) -> Result<ExitCode, Error> {
    if !matches!(args.words.len(), 0 | 3) {
        return Err(Error::refused("an analogy has three words", "A is to B as C is to what?"));
    }
    let embeddings = files.words(&args.file, options)?;
    let given = match args.words.is_empty() {
        true => Vec::new(),
        // As a line would have them; a word with a tab in it is no word of any file.
        false => vec![args.words.join("\t")],
    };
    let together = together(args.k.min(embeddings.len()));
    let done =
        ask(given, "three words per line, separated by spaces or tabs", together, |lines| {
            let words: Vec<_> = lines.iter().map(|line| split(line)).collect();
            let questions = words.iter().map(|words| match words.as_slice() {
                [a, b, c] => embeddings.analogy_question([a, b, c]),
                other => Err(Error::refused(
                    format!("a line has {} words instead of three", other.len()),
                    "separate them by tabs if words have spaces in them",
                )),
            });
            let found = answer(&embeddings, questions.collect(), args.k)?;
            let each = words.into_iter().zip(found).map(|(words, (known, result))| {
                if args.json {
                    in_json(&embeddings, result, |outcome| {
                        super::json_line(&Line { analogy: words, outcome })
                    })
                } else {
                    let title = match words.as_slice() {
                        [a, b, c] => format!("{a} is to {b} as {c} is to"),
                        _ => String::new(),
                    };
                    in_text(&embeddings, result, &title, known)
                }
            });
            Ok(each.collect())
        })?;
    tell_not_finite(&embeddings);
    Ok(done)
}

/// The words of a line: between tabs where there are any, because words may have spaces.
fn split(line: &str) -> Vec<&str> {
    if line.contains('\t') { line.split('\t').collect() } else { line.split_whitespace().collect() }
}
