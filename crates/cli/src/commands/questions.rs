//! Questions from the command line or from standard input, answered in the order they come.

use std::io::{self, BufRead, IsTerminal, Write};
use std::path::Path;
use std::process::ExitCode;
use std::sync::mpsc::{Receiver, sync_channel};
use weighbridge::Error;

/// Questions that are answered together: the rows of a file are then gone through once for all.
const TOGETHER: usize = 256;

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
/// asks line by line is answered line by line.
pub(super) fn ask(
    given: Vec<String>,
    what: &str,
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
            anstream::eprintln!("{what}; Ctrl-D ends");
        }
        let lines = read_lines();
        while let Some(batch) = waiting(&lines)? {
            if !take(&batch)? {
                break;
            }
        }
    } else {
        for batch in given.chunks(TOGETHER) {
            if !take(batch)? {
                break;
            }
        }
    }
    Ok(if all_found { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

/// Prints answers; `false` when nobody reads them any more.
fn show(answers: &[Answer]) -> Result<bool, Error> {
    let mut out = io::stdout().lock();
    let mut print = || -> io::Result<()> {
        for answer in answers {
            // Both may be the same terminal: then they are in order.
            match &answer.said {
                Said::Nothing => {}
                Said::Note(note) => {
                    out.flush()?;
                    anstream::eprintln!("{note}");
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
            let line = match input.read_until(b'\n', &mut line) {
                Ok(0) => break,
                Ok(_) => text_of(line, number),
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
    String::from_utf8(line).map_err(|_| Error::Unrecognised {
        file: "standard input".to_owned(),
        what: format!("line {number} is not UTF-8"),
        hint: String::new(),
    })
}

/// The next line and those behind it that are there already; `None` at the end.
fn waiting(lines: &Receiver<Result<String, Error>>) -> Result<Option<Vec<String>>, Error> {
    let Ok(first) = lines.recv() else { return Ok(None) };
    let mut batch = vec![first?];
    while batch.len() < TOGETHER
        && let Ok(line) = lines.try_recv()
    {
        batch.push(line?);
    }
    Ok(Some(batch))
}
