//! Keeping some words of a file.

use super::explicit::keep_words;
use crate::convert::{Conversion, check_options, target_format};
use std::path::Path;
use weighbridge_format::wire::to_len;
use weighbridge_format::{Container, Error, Input, Options, Vocabulary, open};

/// Which words to keep and where to write them.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    /// Id of the target format; else the output's extension decides.
    pub to: Option<String>,
    /// Go on when some of the words are not in the file.
    pub ignore_unknown: bool,
    pub options: Options,
    pub allow_loss: bool,
    pub force: bool,
}

/// Plans a file of these words only, in the order of the input, with the subword rows that they
/// need. Also gives the words that are not there.
pub fn select(
    input: &Path,
    words: &[String],
    output: &Path,
    selection: &Selection,
) -> Result<(Conversion, Vec<String>), Error> {
    let format = target_format(output, selection.to.as_deref())?;
    let container = open(&Input::open(input)?, &selection.options)?;
    check_options(&selection.options, container.format, format)?;
    let (kept, unknown) = keep(&container, words)?;
    if let Some(first) = unknown.first().filter(|_| !selection.ignore_unknown) {
        let what = format!("{} of {} words are not in the file", unknown.len(), words.len());
        let hint = format!("the first is {first:?}; --ignore-unknown goes on without them");
        return Err(Error::refused(what, hint));
    }
    let mut plan = format.plan(&kept, &selection.options)?;
    let left_out = container.tensors.iter().filter(|t| kept.tensor(&t.name).is_none());
    plan.report.ignored.extend(left_out.map(|t| format!("tensor {:?}", t.name)));
    let (allow_loss, force) = (selection.allow_loss, selection.force);
    let output = output.components().collect();
    Ok((Conversion { container: kept, format, plan, output, allow_loss, force }, unknown))
}

fn keep(container: &Container, words: &[String]) -> Result<(Container, Vec<String>), Error> {
    let found = container.word_matrix()?;
    let Some(vocabulary) = &found.words else {
        return Err(Error::refused("the rows have no words to choose from", ""));
    };
    let (mut rows, mut unknown) = (Vec::new(), Vec::new());
    for word in words {
        match vocabulary.find(word) {
            Some(row) => rows.push(row as u64),
            None => unknown.push(word.clone()),
        }
    }
    rows.sort_unstable();
    rows.dedup();
    if rows.is_empty() {
        return Err(Error::refused("none of the words is in the file", "one word a line"));
    }
    Ok((keep_words(container, &found, rows)?, unknown))
}

/// The words of a file, one a line; spaces within a word are part of it.
pub fn read_words(path: &Path) -> Result<Vec<String>, Error> {
    let bytes = std::fs::read(path).map_err(|e| Error::io(path, e))?;
    parse_words(&bytes, &path.display().to_string())
}

/// The words of a text, one a line; `name` is what an error calls it.
pub fn parse_words(bytes: &[u8], name: &str) -> Result<Vec<String>, Error> {
    let bytes = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes);
    let mut words = Vec::new();
    for (i, line) in bytes.split(|b| *b == b'\n').enumerate() {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let word = std::str::from_utf8(line).map_err(|_| Error::Unrecognised {
            file: name.to_owned(),
            what: format!("line {} is not UTF-8", i + 1),
            hint: "a text with one word a line is needed".to_owned(),
        })?;
        if !word.is_empty() {
            words.push(word.to_owned());
        }
    }
    Ok(words)
}

/// Gives the rows of a container words, one for each.
pub(crate) fn give_words(container: &mut Container, path: &Path) -> Result<(), Error> {
    let words = read_words(path)?;
    let rows = container.rows().map(|r| to_len(r.count));
    if rows.is_some_and(|rows| rows != words.len()) {
        let what = format!("{} has {} words", path.display(), words.len());
        let hint = format!("there are {} rows", rows.unwrap_or(0));
        return Err(Error::refused(what, hint));
    }
    container.vocabulary = Some(Vocabulary::from_tokens(words.iter().map(String::as_str)));
    Ok(())
}
