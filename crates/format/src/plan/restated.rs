//! What a container says twice: leaving out one of the two loses nothing.

use crate::Error;
use crate::model::{Attachment, Container, Value};
use crate::spec::TensorSizes;

impl Container {
    /// Whether a metadata entry says what the table of words or tokens shows as well, or when the
    /// file was written. Formats that demand such entries add them themselves, and whatever takes the
    /// table shows its size. What other tensors show may be lost with them.
    pub fn restates(&self, key: &str, value: &Value) -> bool {
        let of_table = ["embedding_dim", "hidden_size", "vocab_size"].contains(&key);
        let shown = if of_table { self.shown(key) } else { None };
        key == "created_at" || shown.is_some_and(|n| value.to_plain_text() == Some(n.to_string()))
    }

    /// What the tensors and the vocabulary show that a count among the metadata should be.
    pub(crate) fn shown(&self, key: &str) -> Option<u64> {
        let sizes = TensorSizes::of(self);
        match key {
            "embedding_dim" | "hidden_size" => sizes.hidden,
            "vocab_size" => {
                sizes.vocabulary.or_else(|| self.vocabulary.as_ref().map(|v| v.len() as u64))
            }
            "num_layers" => sizes.layers,
            "intermediate_size" => sizes.intermediate,
            "max_position_emb" => sizes.positions,
            _ => None,
        }
    }

    /// Whether a file lists the words of the vocabulary, a line each, and says nothing else.
    pub(crate) fn lists_words(&self, file: &Attachment) -> Result<bool, Error> {
        let Some(vocabulary) = self.vocabulary.as_ref() else { return Ok(false) };
        if file.name != "vocab.txt" {
            return Ok(false);
        }
        let text = file.data.load()?;
        let mut rest: &[u8] = &text;
        for token in vocabulary.tokens() {
            let Some(behind) = rest.strip_prefix(token.as_bytes()) else { return Ok(false) };
            let Some(behind) = behind.strip_prefix(b"\n") else { return Ok(false) };
            rest = behind;
        }
        Ok(rest.is_empty())
    }
}
