//! Texts that become the words of a file.

use super::TextRow;
use std::collections::HashMap;
use std::sync::Arc;
use weighbridge_format::{Advice, Error, Vocabulary};

/// Words in the order of their rows, each once. Repeated ones are found while reading, not after
/// hours of work; all of them are held in memory at the end anyway.
#[derive(Debug, Default)]
pub(super) struct Words {
    list: Vec<Arc<str>>,
    rows: HashMap<Arc<str>, usize>,
}

impl Words {
    pub(super) fn add(&mut self, rows: &[TextRow]) -> Result<(), Error> {
        for row in rows {
            let word: Arc<str> = row.text.as_str().into();
            let number = self.list.len() + 1;
            if let Some(first) = self.rows.insert(word.clone(), number) {
                let what = format!("text {number}, {:?}, is the same as text {first}", row.text);
                let advice =
                    Advice::from("this format holds each text only once: remove repeated texts")
                        .and(Advice::set("to", "chooses another format"));
                return Err(Error::refused(what, advice));
            }
            self.list.push(word);
        }
        Ok(())
    }

    pub(super) fn into_vocabulary(self) -> Vocabulary {
        Vocabulary::from_tokens(self.list.iter().map(|word| &**word))
    }
}
