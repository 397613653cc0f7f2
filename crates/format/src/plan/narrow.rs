//! What of a container a format can't take as it is: rows of subwords, lengths of rows, words as records.

use super::{Report, lose_precision};
use crate::model::{Container, NORMS, SPECIAL_TOKENS, Subject, Vocabulary, WordMatrix};
use crate::wire::to_len;
use crate::{Error, FormatInfo};
use std::borrow::Cow;

impl Container {
    /// What of a container that came from a word embedding format another format can take:
    /// without the rows of subwords it does not know, and for a format of one tensor the matrix
    /// alone. What is left out is listed.
    ///
    /// # Errors
    /// If rows that change can't be read.
    pub fn narrowed_to(
        &self,
        format: &FormatInfo,
        report: &mut Report,
    ) -> Result<Cow<'_, Container>, Error> {
        let holds = &format.holds;
        let own = self.origin.as_ref().map_or(self.format, |o| &o.format);
        let foreign = own != format.id && !holds.everything();
        let drops = foreign && self.tensors.iter().any(|t| self.is_private(&t.name));
        let cut = self.subwords.is_some() && !holds.subwords;
        let folds = holds.single && self.tensors.iter().any(|t| t.name == NORMS);
        if !(cut || drops || folds) {
            return Ok(Cow::Borrowed(self));
        }
        let Ok(WordMatrix { matrix, norms, words, subwords }) = self.word_matrix() else {
            return Ok(Cow::Borrowed(self));
        };
        let index = self.tensors.iter().position(|t| std::ptr::eq(t, matrix));
        let mut narrowed = self.clone();
        let mut changed = matrix.clone();
        if let Some(subwords) = subwords.filter(|_| cut) {
            report.lose(Subject::Subwords(subwords.rows()), "the format can't store subwords");
            narrowed.subwords = None;
            if let Some(words) = words {
                changed = changed.first_rows(words.len() as u64)?;
            }
        }
        let lengths = narrowed.tensors.iter().find(|t| t.name == NORMS).cloned();
        if let (Some(lengths), true) = (lengths.filter(|_| norms.is_some()), holds.single) {
            // Files that are expected to have unit vectors take them as they are, others the original ones.
            if format.has_option("normalize") {
                report.lose(Subject::RowLengths, "the format holds unit vectors");
            } else {
                lose_precision(&changed, report)?;
                changed = changed.scale_rows(&lengths)?;
            }
        }
        if let Some(slot) = index.and_then(|i| narrowed.tensors.get_mut(i)) {
            *slot = changed;
        }
        if holds.single {
            narrowed.tensors.retain(|t| t.name != NORMS || norms.is_none());
        }
        if foreign {
            report.ignored.extend(narrowed.drop_private());
        }
        Ok(Cow::Owned(narrowed))
    }

    /// Removes the tensors that only the format of the source needs, and names them.
    fn drop_private(&mut self) -> Vec<Subject> {
        let tensors = std::mem::take(&mut self.tensors);
        let (private, kept): (Vec<_>, _) =
            tensors.into_iter().partition(|t| self.is_private(&t.name));
        self.tensors = kept;
        private.into_iter().map(|t| Subject::Tensor(t.name)).collect()
    }

    /// Takes out a vocabulary with one word for each row where there are no records: formats of rows
    /// write the words as records.
    pub(crate) fn take_row_words(&mut self, report: &mut Report) -> Option<Vocabulary> {
        let rows = self.rows()?.count;
        if self.records.is_some() {
            return None;
        }
        let words = self.vocabulary.take_if(|v| v.len() as u64 == rows)?;
        words.lose_special(report);
        Some(words)
    }
}

impl Vocabulary {
    /// Lists special tokens as lost unless their usual texts give them away.
    pub(crate) fn lose_special(&self, report: &mut Report) {
        let known = |(name, id): &(String, u32)| {
            let text = SPECIAL_TOKENS.iter().find(|(n, _)| n == name).map(|(_, text)| *text);
            text.is_some() && self.token(to_len((*id).into())).as_deref() == text
        };
        if !self.special.iter().all(known) {
            report.lose(Subject::SpecialTokens, "only the words are kept");
        }
    }
}

/// What a writer of word embeddings can't keep of everything else that a container has.
pub(crate) fn lose_others(container: &Container, taken: &WordMatrix, report: &mut Report) {
    for tensor in &container.tensors {
        let used = std::ptr::eq(tensor, taken.matrix)
            || taken.norms.is_some_and(|norms| std::ptr::eq(tensor, norms));
        if container.is_private(&tensor.name) {
            report.ignored.push(Subject::Tensor(tensor.name.clone()));
        } else if !used {
            let subject = Subject::Tensor(tensor.name.clone());
            report.lose(subject, "the format holds one matrix with a word for each row");
        }
    }
}
