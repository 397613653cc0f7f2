//! How well analogies come out: the question file of word2vec.

use super::Embeddings;
use serde::Serialize;
use weighbridge_format::wire::without_mark;
use weighbridge_format::{Error, Progress, Stage};

/// Right answers among the questions that could be asked.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Score {
    /// Right answers.
    pub correct: u64,
    /// Questions that were asked.
    pub asked: u64,
    /// Questions with words that have no vector, or one that holds NaN or an infinity.
    pub skipped: u64,
    /// Share of right answers; `None` when nothing was asked.
    pub accuracy: Option<f64>,
}

/// How many analogies came out right. Its JSON is described in docs/json.md.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Evaluation {
    /// By section, in the order of the file.
    pub sections: Vec<Section>,
    /// Of all sections together.
    pub total: Score,
}

/// The questions of one kind.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Section {
    /// Its name; empty for questions before the first.
    pub section: String,
    /// What came of them.
    #[serde(flatten)]
    pub score: Score,
}

/// Questions that are answered together.
const TOGETHER: usize = 256;

/// Asks every question of a text: `: name` begins a section, other lines have four words, and the
/// fourth is the right answer. `name` is what an error calls the text.
///
/// # Errors
/// [`Error::Unrecognised`] for a line that is not a question, [`Error::Refused`] if there are no
/// words, [`Error::Cancelled`].
pub fn evaluate(
    embeddings: &Embeddings,
    questions: &[u8],
    name: &str,
    progress: &mut Progress,
) -> Result<Evaluation, Error> {
    embeddings.has_words()?;
    let questions = without_mark(questions);
    let text = std::str::from_utf8(questions).map_err(|e| {
        let line = questions[..e.valid_up_to()].iter().filter(|b| **b == b'\n');
        bad_line(name, line.count(), "is not UTF-8")
    })?;
    let asked = text.lines().filter(|l| !l.trim().is_empty() && !l.starts_with(':')).count();
    if asked == 0 {
        return Err(Error::unrecognised(name, "there are no questions in it", LINES));
    }
    progress.begin(Stage::Answering, asked as u64)?;
    let mut evaluation = Evaluation::default();
    let mut waiting: Vec<(usize, [&str; 4])> = Vec::new();
    for (i, line) in text.lines().enumerate() {
        if let Some(name) = line.strip_prefix(':') {
            let section = Section { section: name.trim().to_owned(), score: Score::default() };
            evaluation.sections.push(section);
            continue;
        }
        let words: Vec<&str> = line.split_whitespace().collect();
        if words.is_empty() {
            continue;
        }
        let Ok(question) = <[&str; 4]>::try_from(words) else {
            return Err(bad_line(name, i, "does not have four words"));
        };
        if evaluation.sections.is_empty() {
            evaluation.sections.push(Section::default());
        }
        waiting.push((evaluation.sections.len() - 1, question));
        if waiting.len() == TOGETHER {
            answer(embeddings, &waiting, &mut evaluation.sections)?;
            progress.advance(waiting.len() as u64)?;
            waiting.clear();
        }
    }
    answer(embeddings, &waiting, &mut evaluation.sections)?;
    progress.advance(waiting.len() as u64)?;
    for Section { score, .. } in &mut evaluation.sections {
        score.finish();
        evaluation.total.correct += score.correct;
        evaluation.total.asked += score.asked;
        evaluation.total.skipped += score.skipped;
    }
    evaluation.total.finish();
    Ok(evaluation)
}

fn answer(
    embeddings: &Embeddings,
    questions: &[(usize, [&str; 4])],
    sections: &mut [Section],
) -> Result<(), Error> {
    let (mut asked, mut rights) = (Vec::new(), Vec::new());
    for (section, [a, b, c, right]) in questions {
        // An answer that can't be found can't be right either.
        let right = embeddings.usable(right).is_ok().then(|| embeddings.find(right)).flatten();
        match (right, embeddings.analogy_question([a, b, c])) {
            (Some(right), Ok(question)) => {
                rights.push((*section, right));
                asked.push(question);
            }
            _ => sections[*section].score.skipped += 1,
        }
    }
    for ((section, right), hits) in rights.into_iter().zip(embeddings.answer(&asked, 1)?) {
        let score = &mut sections[section].score;
        score.asked += 1;
        score.correct += u64::from(hits.first().is_some_and(|hit| hit.row == right));
    }
    Ok(())
}

impl Score {
    #[allow(clippy::cast_precision_loss)]
    fn finish(&mut self) {
        self.accuracy = (self.asked > 0).then(|| self.correct as f64 / self.asked as f64);
    }
}

/// What questions look like.
const LINES: &str = "lines are `: section`, or four words of which the last is the answer";

fn bad_line(name: &str, index: usize, what: &str) -> Error {
    Error::unrecognised(name, format!("line {} {what}", index + 1), LINES)
}
