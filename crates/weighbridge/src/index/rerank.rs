//! Rows that were found, in the order that a model gives them which reads question and text together.

use super::Index;
use crate::encoder::Reranker;
use std::ops::ControlFlow;
use weighbridge_format::Error;
use weighbridge_search::Hit;

/// The member of a record that is the text of a row, as embedding writes it.
const TEXT: &str = "text";

impl Index {
    /// The text of a row: what its record has as `text`, or its word.
    ///
    /// # Errors
    /// If its record can't be read, or it has neither.
    pub fn text_of(&self, row: usize) -> Result<String, Error> {
        if let Some(record) = self.record(row)? {
            let members: serde_json::Map<String, serde_json::Value> =
                serde_json::from_str(&record).unwrap_or_default();
            if let Some(text) = members.get(TEXT).and_then(serde_json::Value::as_str) {
                return Ok(text.to_owned());
            }
        }
        let word = self.word(row).map(std::borrow::Cow::into_owned);
        word.ok_or_else(|| {
            let hint =
                "rows have a record with a member \"text\" where texts were embedded with it";
            Error::refused(format!("nothing says what the text of row {row} is"), hint)
        })
    }

    /// The best of some hits, ordered and scored by how well their texts answer a question.
    ///
    /// # Errors
    /// Those of [`Index::text_of`] and [`Reranker::rank`].
    pub fn rerank(
        &self,
        reranker: &Reranker,
        question: &str,
        hits: &[Hit],
        k: usize,
    ) -> Result<Vec<Hit>, Error> {
        self.rerank_telling(reranker, question, hits, k, &mut |_| ControlFlow::Continue(()))
    }

    /// Like [`Index::rerank`]. `tell` hears now and then how many of the hits are done, and can end the work.
    ///
    /// # Errors
    /// Those of [`Index::rerank`], and [`Error::Cancelled`].
    pub fn rerank_telling(
        &self,
        reranker: &Reranker,
        question: &str,
        hits: &[Hit],
        k: usize,
        tell: &mut dyn FnMut(usize) -> ControlFlow<()>,
    ) -> Result<Vec<Hit>, Error> {
        let texts = hits.iter().map(|hit| self.text_of(hit.row)).collect::<Result<Vec<_>, _>>()?;
        let ranked = reranker.rank_telling(question, &texts, tell)?.into_iter().take(k);
        Ok(ranked.map(|r| Hit { row: hits[r.row].row, score: r.score }).collect())
    }
}
