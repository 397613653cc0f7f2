//! The files that are written: those of the container, its vocabulary, the headers of safetensors
//! files.

use super::super::super::hf;
use super::{is_place_of_tensors, section_of};
use crate::Error;
use crate::model::{Attachment, Container, Subject, Vocabulary};
use crate::plan::Report;
use crate::source::View;

const VOCABULARY: &str = "vocab.txt";

/// The attachments as they are written: with the vocabulary, and with the headers of the safetensors
/// files that the tensors came from.
pub(in super::super) fn complete(
    container: &Container,
    report: &mut Report,
) -> Result<Container, Error> {
    let mut full = container.clone();
    if !full.tensors.is_empty() {
        for a in full.attachments.extract_if(.., |a| is_place_of_tensors(&a.name)) {
            report.lose(Subject::Attachment(a.name), "the tensors take the place of that section");
        }
    }
    let from_folder = container.dialect_of("hf").is_some();
    let like_header = |a: &&Attachment| from_folder && a.name.ends_with(hf::HEADER);
    if let Some(file) = full.attachments.iter().find(like_header) {
        return Err(Error::refused(
            format!("the file {:?} is named as the headers of safetensors files are", file.name),
            "take it out of the folder, or give it another name",
        ));
    }
    for (name, text) in hf::headers(container) {
        let (name, data) = (hf::header_name(&name), View::owned(text.into_bytes()));
        full.attachments.push(Attachment { name, data, described: true });
    }
    if let Some(vocabulary) = full.vocabulary.take() {
        let (description, _) = hf::describe_files(&full.attachments)?;
        if description.vocabulary.is_none_or(|v| !v.same_as(&vocabulary)) {
            match vocabulary_file(&vocabulary, &full.attachments)? {
                Some(file) => full.attachments.push(file),
                None => report.lose(
                    Subject::Vocabulary(vocabulary.len() as u64),
                    "a vocab.txt can't say it: line breaks, other special tokens, or there is one",
                ),
            }
        }
    }
    let long = |a: &&Attachment| u32::try_from(a.data.len()).is_err();
    let entries = full.attachments.iter().filter(|a| section_of(&a.name).is_none());
    if let Some(file) = entries.clone().find(long) {
        return Err(Error::refused(
            format!("the file {:?} has more than 4 GiB, which MCF has no room for", file.name),
            "take it out of the folder",
        ));
    }
    let mut names: Vec<_> = full.attachments.iter().map(|a| a.name.as_str()).collect();
    names.sort_unstable();
    match names.windows(2).find(|w| w[0] == w[1]) {
        None => Ok(full),
        Some(twice) => Err(Error::refused(format!("two files are named {:?}", twice[0]), "")),
    }
}

/// A vocab.txt that gives this vocabulary again.
fn vocabulary_file(
    vocabulary: &Vocabulary,
    files: &[Attachment],
) -> Result<Option<Attachment>, Error> {
    let mut text = String::new();
    for token in vocabulary.tokens() {
        text.push_str(&token);
        text.push('\n');
    }
    let data = View::owned(text.into_bytes());
    let file = Attachment { name: VOCABULARY.to_owned(), data, described: true };
    let taken = files.iter().any(|a| a.name == VOCABULARY || a.name == "tokenizer.json");
    let (again, _) = hf::describe_files(std::slice::from_ref(&file))?;
    let gives_it = again.vocabulary.is_some_and(|v| v.same_as(vocabulary));
    Ok((!taken && gives_it).then_some(file))
}
