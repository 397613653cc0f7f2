//! Word embeddings in a container: the matrix, the word of each row, the lengths that rows had.
//!
//! Readers of word embeddings name the matrix [`MATRIX`] and the lengths [`NORMS`]; words are the
//! container's vocabulary, and rows behind the words' rows belong to its subwords. What only one
//! format needs to write the same bytes again stands beside them in tensors named `<format>/…`;
//! the others leave that out unasked.

use super::{Container, Subwords, Tensor, Vocabulary};
use crate::Error;
use std::borrow::Cow;
use weighbridge_codec::DType;

/// The name of the matrix.
pub const MATRIX: &str = "embeddings";
/// The name of the lengths that the words' rows had before they were given unit length.
pub const NORMS: &str = "norms";
/// The table of a transformer's word embeddings.
pub const WORD_TABLE: &str = "embeddings.word_embeddings.weight";

/// What of a container is word embeddings.
#[derive(Clone, Debug)]
pub struct WordMatrix<'a> {
    /// The matrix.
    pub matrix: &'a Tensor,
    /// The lengths that the words' rows had, where they are known.
    pub norms: Option<&'a Tensor>,
    /// The words of the first rows, where they have any.
    pub words: Option<Cow<'a, Vocabulary>>,
    /// How unknown words are made of parts.
    pub subwords: Option<&'a Subwords>,
}

impl WordMatrix<'_> {
    /// Values in a row.
    pub fn dim(&self) -> u64 {
        self.matrix.shape.get(1).copied().unwrap_or(0)
    }

    /// All rows.
    pub fn rows(&self) -> u64 {
        self.matrix.shape.first().copied().unwrap_or(0)
    }

    /// Rows of words; the others belong to subwords.
    pub fn word_rows(&self) -> u64 {
        self.rows() - self.subwords.map_or(0, Subwords::rows).min(self.rows())
    }

    /// The matrix with the lengths that the rows had at first.
    ///
    /// # Errors
    /// If the lengths can't be read.
    pub fn original(&self) -> Result<Tensor, Error> {
        match self.norms {
            Some(norms) => self.matrix.scale_rows(norms),
            None => Ok(self.matrix.clone()),
        }
    }
}

impl Container {
    /// The word embeddings: the matrix with as many rows as there are words and subwords, or the
    /// only matrix if there are no words.
    ///
    /// # Errors
    /// [`Error::Refused`] if there is not one such matrix; what is wrong with records that tell the
    /// words.
    pub fn word_matrix(&self) -> Result<WordMatrix<'_>, Error> {
        let words = match &self.vocabulary {
            Some(vocabulary) => Some(Cow::Borrowed(vocabulary)),
            None => self.record_words()?.map(Cow::Owned),
        };
        let subwords = self.subwords.as_ref();
        let behind = subwords.map_or(0, Subwords::rows);
        let expected = words.as_ref().map(|w| (w.len() as u64).saturating_add(behind));
        let expected = expected.or(subwords.map(Subwords::rows));
        let matrices: Vec<_> = self.tensors.iter().filter(|t| is_matrix(t)).collect();
        let fitting = |t: &&&Tensor| expected.is_none_or(|rows| t.shape[0] == rows);
        let named = |name: &str| matrices.iter().filter(fitting).find(|t| t.name == name);
        let mut rest = matrices.iter().filter(fitting);
        let only = rest.next().filter(|_| rest.next().is_none());
        let found = named(MATRIX).or_else(|| named(WORD_TABLE)).or(only);
        let Some(matrix) = found.copied() else {
            let rows = expected.map_or("any".to_owned(), |rows| rows.to_string());
            let what = format!(
                "there is no one matrix of {rows} rows among the {} tensors",
                self.tensors.len()
            );
            return Err(Error::refused(what, "word embeddings have a row for each word"));
        };
        let count = matrix.shape[0] - behind.min(matrix.shape[0]);
        // A tensor of that name may be anything in a file that has no words.
        let is_norms = |t: &&Tensor| {
            let right = t.shape == [count] && t.encoding.is_real() && t.has_data();
            t.name == NORMS && right && expected.is_some()
        };
        let norms = self.tensors.iter().find(is_norms);
        Ok(WordMatrix { matrix, norms, words, subwords })
    }

    /// The words that the records of rows give, if each gives one.
    fn record_words(&self) -> Result<Option<Vocabulary>, Error> {
        #[derive(serde::Deserialize)]
        struct Record<'a> {
            #[serde(borrow)]
            word: Cow<'a, str>,
        }
        let word =
            |item: &str| serde_json::from_str::<Record>(item).ok().map(|r| r.word.into_owned());
        let Some(records) = &self.records else { return Ok(None) };
        // Where the first has none, no others are looked at.
        if records.record(0)?.as_deref().and_then(word).is_none() {
            return Ok(None);
        }
        let words: Option<Vec<String>> = records.items()?.into_iter().map(word).collect();
        Ok(words.map(|words| Vocabulary::from_tokens(words.iter().map(String::as_str))))
    }

    /// Forgets the records if all that they say is the words.
    pub(crate) fn drop_word_records(&mut self) -> Result<(), Error> {
        type Members<'a> = std::collections::HashMap<Cow<'a, str>, serde::de::IgnoredAny>;
        let alone = |item: &str| {
            let members = serde_json::from_str::<Members>(item);
            members.is_ok_and(|m| m.len() == 1 && m.contains_key("word"))
        };
        let Some(records) = &self.records else { return Ok(()) };
        // The first that says more ends it.
        for record in records.cursor()? {
            if !alone(&record?) {
                return Ok(());
            }
        }
        self.records = None;
        Ok(())
    }

    /// Whether only the format that the content came from needs a tensor.
    pub fn is_private(&self, tensor: &str) -> bool {
        let format = self.origin.as_ref().map_or(self.format, |o| &o.format);
        tensor.strip_prefix(format).is_some_and(|rest| !format.is_empty() && rest.starts_with('/'))
    }
}

fn is_matrix(tensor: &Tensor) -> bool {
    tensor.shape.len() == 2 && tensor.has_data() && tensor.encoding.stored() != DType::C64
}
