//! The inputs of a model's matrix products: calibrated quantization needs to know them.

use super::{Encoder, Inner};
use crate::schedule::{Texts, batches};
use std::sync::Arc;
use weighbridge_format::{Advice, Error, Listing};

impl Encoder {
    /// The names of the weights of each matrix product, in the order in which they are computed.
    /// Weights of one product have the same input.
    pub fn products(&self) -> Vec<Vec<String>> {
        self.inner.model.products()
    }

    /// Takes texts through the model and shows the input of each matrix product to the observer:
    /// the index of the product in [`Encoder::products`], and rows, one behind the other, of as
    /// many values as its weights have columns. The batches are the same for any number of threads.
    /// After each batch, `tell` hears how many more texts are done, and can stop the work.
    ///
    /// # Errors
    ///
    /// When an input has a value that is NaN or infinite; the observer has seen it by then. Errors of
    /// `tell`.
    pub fn observe(
        &self,
        texts: &[impl AsRef<str> + Sync],
        observer: &mut (dyn FnMut(usize, &[f32]) + Send),
        tell: &mut dyn FnMut(u64) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let mut non_finite = false;
        let inner = &self.inner;
        let (ids, ranges) = inner.tokenize(texts, self.prompt.as_deref());
        let mut inspect = |product: usize, rows: &[f32]| {
            non_finite |= rows.iter().any(|value| !value.is_finite());
            observer(product, rows);
        };
        for batch in batches(&ranges) {
            let (first, last) = (ranges[batch.start].start, ranges[batch.end - 1].end);
            let count = batch.len() as u64;
            let own = ranges[batch].iter().map(|r| r.start - first..r.end - first).collect();
            let mut taken = Taken::new(inner);
            let ids = ids[first..last].to_vec();
            let texts = Texts { ids, ranges: own, ..Texts::default() };
            let scratch = inner.run(texts, &mut taken.threads, Some(&mut inspect))?;
            inner.put_back(scratch);
            tell(count)?;
        }
        if non_finite {
            let what = "the texts lead to values inside the model that are NaN or infinite";
            return Err(Error::refused(what, Advice::See(Listing::Findings)));
        }
        Ok(())
    }
}

/// Threads that were free; given back in the end, whatever happens.
struct Taken<'a> {
    inner: &'a Arc<Inner>,
    threads: usize,
    /// While others use all threads there is this one, which nobody gave.
    own: usize,
}

impl Taken<'_> {
    fn new(inner: &Arc<Inner>) -> Taken<'_> {
        let free = inner.schedule.take_free();
        Taken { inner, threads: free.max(1), own: usize::from(free == 0) }
    }
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        let inner = self.inner;
        inner.schedule.give_back(self.threads - self.own, || inner.call_helper());
    }
}
