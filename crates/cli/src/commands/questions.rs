//! Questions from the command line or from standard input, answered in the order they come.

use crate::ExitCode;
use crate::render::{DIM, marked, safe};
use std::io::{self, BufRead, IsTerminal, Read, Write};
use std::path::Path;
use std::sync::mpsc::{Receiver, sync_channel};
use weighbridge::wire::MARK;
use weighbridge::{Embeddings, Error};

/// Questions that are answered together: the rows of a file are then gone through once for all.
const TOGETHER: usize = 256;

/// A longer line is no question, and would have to be held in memory.
const LONGEST: u64 = 1 << 20;

/// How many are answered together when each has so many hits: all of them are in memory.
pub(super) fn together(hits: usize) -> usize {
    ((1 << 20) / hits.max(1)).clamp(1, TOGETHER)
}

/// The answer to one question.
pub(super) struct Answer {
    /// For standard output.
    pub text: String,
    /// For standard error, before the text.
    pub said: Said,
}

pub(super) enum Said {
    Nothing,
    Note(String),
    /// There is no answer, which shows in the exit code. In JSON, the object has said it.
    NotFound(Option<Error>),
}

/// Gives `answer` as many questions at once as are waiting, and prints what it returns. `given` are
/// those of the command line; if there are none, the lines of standard input are asked, and who
/// asks line by line is answered line by line. At most `together` are answered at once.
pub(super) fn ask(
    given: Vec<String>,
    what: &str,
    together: usize,
    mut answer: impl FnMut(&[String]) -> Result<Vec<Answer>, Error>,
) -> Result<ExitCode, Error> {
    let mut all_found = true;
    let mut take = |questions: &[String]| -> Result<bool, Error> {
        let answers = answer(questions)?;
        all_found &= answers.iter().all(|a| !matches!(a.said, Said::NotFound(_)));
        show(&answers)
    };
    if given.is_empty() {
        if io::stdin().is_terminal() {
            crate::render::say!("{what}; Ctrl-D ends");
        }
        let lines = read_lines();
        while let Some((batch, failed)) = waiting(&lines, together) {
            if !batch.is_empty() && !take(&batch)? {
                break;
            }
            if let Some(error) = failed {
                return Err(error);
            }
        }
    } else {
        for batch in given.chunks(together) {
            if !take(batch)? {
                break;
            }
        }
    }
    Ok(if all_found { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

/// Says, once, which rows can be no answer.
pub(super) fn tell_not_finite(embeddings: &Embeddings) {
    if let Some(note) = embeddings.not_finite_note().filter(|_| !crate::talk::is_quiet()) {
        crate::render::say!("{}", marked(DIM, safe(&note.to_string())));
    }
}

/// Prints answers; `false` when nobody reads them any more.
fn show(answers: &[Answer]) -> Result<bool, Error> {
    let mut out = io::stdout().lock();
    let mut print = || -> io::Result<()> {
        for answer in answers {
            // Both may be the same terminal: then they are in order.
            match &answer.said {
                Said::Nothing => {}
                Said::Note(_) if crate::talk::is_quiet() => {}
                Said::Note(note) => {
                    out.flush()?;
                    crate::render::say!("{note}");
                }
                Said::NotFound(error) => {
                    out.flush()?;
                    error.iter().for_each(crate::render::error);
                }
            }
            out.write_all(answer.text.as_bytes())?;
        }
        out.flush()
    };
    match print() {
        Ok(()) => Ok(true),
        Err(e) if e.kind() == io::ErrorKind::BrokenPipe => Ok(false),
        Err(e) => Err(Error::io(Path::new("standard output"), e)),
    }
}

/// Reads standard input ahead, so that it is known how much is waiting.
fn read_lines() -> Receiver<Result<String, Error>> {
    let (send, receive) = sync_channel(4 * TOGETHER);
    std::thread::spawn(move || {
        let mut input = io::stdin().lock();
        for number in 1u64.. {
            let mut line = Vec::new();
            let line = match input.by_ref().take(LONGEST + 1).read_until(b'\n', &mut line) {
                Ok(0) => break,
                Ok(n) if n as u64 > LONGEST => {
                    let what = format!("line {number} is longer than {LONGEST} bytes");
                    Err(Error::unrecognised("standard input", what, ""))
                }
                Ok(_) => {
                    // What some editors begin a text with.
                    if number == 1 && line.starts_with(MARK) {
                        line.drain(..MARK.len());
                    }
                    text_of(line, number)
                }
                Err(e) => Err(Error::io(Path::new("standard input"), e)),
            };
            let failed = line.is_err();
            // An empty line asks nothing.
            let blank = line.as_ref().is_ok_and(String::is_empty);
            if (!blank && send.send(line).is_err()) || failed {
                break;
            }
        }
    });
    receive
}

fn text_of(mut line: Vec<u8>, number: u64) -> Result<String, Error> {
    for end in [b'\n', b'\r'] {
        line.pop_if(|last| *last == end);
    }
    let bad = |_| Error::unrecognised("standard input", format!("line {number} is not UTF-8"), "");
    String::from_utf8(line).map_err(bad)
}

/// The next line and those behind it that are there already, up to one that can't be read; `None`
/// at the end.
fn waiting(
    lines: &Receiver<Result<String, Error>>,
    together: usize,
) -> Option<(Vec<String>, Option<Error>)> {
    let mut batch = Vec::new();
    let mut next = lines.recv().ok();
    next.as_ref()?;
    while let Some(line) = next {
        match line {
            Ok(line) => batch.push(line),
            Err(error) => return Some((batch, Some(error))),
        }
        next = if batch.len() < together { lines.try_recv().ok() } else { None };
    }
    Some((batch, None))
}
