//! The inputs of a model's matrix products: calibrated quantization needs to know them.

use super::{Encoder, batches};
use weighbridge_format::Error;

impl Encoder {
    /// The names of the weights of each matrix product, in the order in which they are computed.
    /// Weights of one product have the same input.
    pub fn products(&self) -> Vec<Vec<String>> {
        self.model.products()
    }

    /// Takes texts through the model and shows the input of each matrix product to the observer: the
    /// index of the product in [`Encoder::products`], and rows, one behind the other, of as many values
    /// as its weights have columns. The batches are the same for any number of threads.
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
        let mut odd = false;
        let mut run = || {
            let (ids, places) = self.tokens(texts);
            let mut scratches = self.scratches(self.model.team_size(rayon::current_num_threads()));
            let mut see = |product: usize, rows: &[f32]| {
                odd |= rows.iter().any(|value| !value.is_finite());
                observer(product, rows);
            };
            for batch in batches(ids.len(), &places, 1) {
                let (first, last) = (places[batch.start].start, places[batch.end - 1].end);
                let places: Vec<_> =
                    places[batch].iter().map(|p| p.start - first..p.end - first).collect();
                self.model.run(&ids[first..last], &places, &mut scratches, Some(&mut see));
            }
        };
        match &self.pool {
            Some(pool) => pool.install(run),
            None => run(),
        }
        if odd {
            let what = "the texts lead to values inside the model that are no numbers";
            return Err(Error::refused(what, "`verify` finds weights that are no numbers"));
        }
        Ok(())
    }
}
