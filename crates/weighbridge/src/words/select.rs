//! Keeping some words of a container.

use super::explicit::keep_words;
use weighbridge_format::model::Subject;
use weighbridge_format::wire::{to_len, without_mark};
use weighbridge_format::{Container, Error, Vocabulary};

/// Some words of a container.
#[derive(Debug)]
#[non_exhaustive]
pub struct Selected {
    /// These words only, in the order of the source, with the subword rows that they need.
    pub container: Container,
    /// Words that were wanted and are not there.
    pub unknown: Vec<String>,
}

/// Keeps some words of a container.
///
/// # Errors
/// [`Error::Refused`] if rows have no words, or none of the wanted ones is there.
pub fn select(container: &Container, words: &[String]) -> Result<Selected, Error> {
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
    let mut kept = keep_words(container, &found, rows)?;
    let left_out = container.tensors.iter().filter(|t| kept.tensor(&t.name).is_none());
    let left_out: Vec<_> = left_out.map(|t| Subject::Tensor(t.name.clone())).collect();
    kept.ignored.extend(left_out);
    Ok(Selected { container: kept, unknown })
}

/// The words of a text, one a line; spaces within a word are part of it. `name` is what an error
/// calls the text.
///
/// # Errors
/// [`Error::Unrecognised`] for a line that is not UTF-8.
pub fn parse_words(bytes: &[u8], name: &str) -> Result<Vec<String>, Error> {
    let bytes = without_mark(bytes);
    let mut words = Vec::new();
    for (i, line) in bytes.split(|b| *b == b'\n').enumerate() {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let word = std::str::from_utf8(line).map_err(|_| {
            let message = format!("line {} is not UTF-8", i + 1);
            Error::unrecognised(name, message, "a text with one word a line is needed")
        })?;
        if !word.is_empty() {
            words.push(word.to_owned());
        }
    }
    Ok(words)
}

/// Gives the rows of a container words, one for each.
pub(crate) fn give_words(container: &mut Container, words: &[String]) -> Result<(), Error> {
    let rows = container.rows().map(|r| to_len(r.count));
    if let Some(rows) = rows.filter(|rows| *rows != words.len()) {
        let what = format!("there are {} words for {rows} rows", words.len());
        return Err(Error::refused(what, "every row has one word"));
    }
    container.vocabulary = Some(Vocabulary::from_tokens(words.iter().map(String::as_str)));
    Ok(())
}
