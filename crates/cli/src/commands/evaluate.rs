//! `weighbridge evaluate`: how many analogies come out right.

use crate::args::Evaluate;
use crate::progress::with_count;
use crate::render::{Table, grouped, safe};
use std::process::ExitCode;
use weighbridge::words::{Evaluation, Score, evaluate};
use weighbridge::{Embeddings, Error, Options};

pub(super) fn run(args: &Evaluate, options: &Options) -> Result<ExitCode, Error> {
    let embeddings = Embeddings::open_with(&args.file, options)?;
    // Only for the bar: a file that can't be read is reported below.
    let text = std::fs::read(&args.questions).unwrap_or_default();
    let total = text.split(|b| *b == b'\n').filter(|l| !l.is_empty() && l[0] != b':').count();
    drop(text);
    let label = safe(&args.questions.display().to_string());
    let result = with_count(total as u64, &label, |progress| {
        evaluate(&embeddings, &args.questions, progress)
    })?;
    if args.json { super::print_json(&result) } else { super::print(&text_of(&result)) }
}

fn text_of(result: &Evaluation) -> String {
    let mut table = Table::new(&["section", ">correct", ">asked", ">skipped", ">accuracy"]);
    let mut row = |name: &str, score: &Score| {
        let accuracy = score.accuracy.map_or("-".to_owned(), |a| format!("{:.2} %", 100.0 * a));
        let count = |n: u64| grouped(n);
        table.row(vec![
            safe(name),
            count(score.correct),
            count(score.asked),
            count(score.skipped),
            accuracy,
        ]);
    };
    result.sections.iter().for_each(|s| row(&s.section, &s.score));
    row("total", &result.total);
    table.render()
}
