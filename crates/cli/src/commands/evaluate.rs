//! `weighbridge evaluate`: how many analogies come out right.

use super::Files;
use super::questions::tell_not_finite;
use crate::ExitCode;
use crate::args::Evaluate;
use crate::progress::with_bar;
use crate::render::{Table, grouped, safe};
use weighbridge::words::{Evaluation, Score, evaluate};
use weighbridge::{Error, Options};

pub(super) fn run(args: &Evaluate, options: &Options, files: Files) -> Result<ExitCode, Error> {
    let embeddings = files.words(&args.file, options)?;
    let name = args.questions.display().to_string();
    let questions = super::text_input::read_input(&args.questions)?;
    let result =
        with_bar(&safe(&name), |progress| evaluate(&embeddings, &questions, &name, progress))?;
    embeddings.check_unchanged()?;
    tell_not_finite(&embeddings);
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
