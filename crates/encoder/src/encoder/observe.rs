//! The inputs of a model's matrix products: calibrated quantization needs to know them.

use super::{Encoder, batches};
use weighbridge_codec::parallel::current_num_threads;
use weighbridge_format::{Advice, Error, Listing};

impl Encoder {
    /// The names of the weights of each matrix product, in the order in which they are computed.
    /// Weights of one product have the same input.
    pub fn products(&self) -> Vec<Vec<String>> {
        self.model.products()
    }

    /// Takes texts through the model and shows the input of each matrix product to the observer:
    /// the index of the product in [`Encoder::products`], and rows, one behind the other, of as
    /// many values as its weights have columns. The batches are the same for any number of threads.
    ///
    /// # Errors
    ///
    /// When an input has a value that is NaN or infinite. The observer has seen it by then.
    ///
    /// # Panics
    ///
    /// When the operating system can't start a thread.
    pub fn observe(
        &self,
        texts: &[impl AsRef<str> + Sync],
        observer: &mut (dyn FnMut(usize, &[f32]) + Send),
    ) -> Result<(), Error> {
        let mut non_finite = false;
        let run = || -> Result<(), Error> {
            let (ids, ranges) = self.tokenize(texts);
            let mut scratches = self.scratches(self.model.team_size(current_num_threads()));
            let mut inspect = |product: usize, rows: &[f32]| {
                non_finite |= rows.iter().any(|value| !value.is_finite());
                observer(product, rows);
            };
            for batch in batches(ids.len(), &ranges, 1) {
                let (first, last) = (ranges[batch.start].start, ranges[batch.end - 1].end);
                let ranges: Vec<_> =
                    ranges[batch].iter().map(|r| r.start - first..r.end - first).collect();
                self.model.run(&ids[first..last], &ranges, &mut scratches, Some(&mut inspect))?;
            }
            Ok(())
        };
        self.pool.install(run)?;
        if non_finite {
            let what = "the texts lead to values inside the model that are NaN or infinite";
            return Err(Error::refused(what, Advice::See(Listing::Findings)));
        }
        Ok(())
    }
}
