//! A model beside itself with other weights: calibrated quantization chooses them so.

use super::Encoder;
use crate::architectures::{Architecture, Batch, ChosenWeights, Rehearsed};
use crate::kernels::pairs::Kind;
use crate::layers::Packing;
use crate::settings::{Settings, Use};
use std::ops::Range;
use weighbridge_format::{Advice, Container, Error, Listing};

/// Tokens that a rehearsal takes at most: what it keeps of each takes some kilobytes.
const MOST_TOKENS: usize = 1 << 14;

impl Encoder {
    /// Loads a model to rehearse with: products are computed in integers of 16 bits, which is faster
    /// than f32 and nearly as exact. The vectors that it makes differ from those of f32 by about a
    /// millionth.
    ///
    /// # Errors
    ///
    /// Those of [`Encoder::new`].
    pub fn to_rehearse(container: &Container) -> Result<Encoder, Error> {
        let packing = Packing::Pairs(Kind::Integers);
        Encoder::load(container, &Settings::default(), packing, Use::Vectors)
    }

    /// Takes texts through the model twice, side by side: as it is, and as it becomes with the weights
    /// that `choose` gives, one product after the other in the order of [`Encoder::products`]. There
    /// the texts start with the embeddings of `start`, and whatever comes behind a product goes by the
    /// weights that it was given: so each can make up for what those before it changed.
    ///
    /// `choose` gives each product as many matrices as it has names, each with its bias. Where the
    /// texts have more than some thousand tokens, only some of them are taken. The results are the
    /// same for any number of threads, which are those of the caller's pool.
    ///
    /// # Errors
    ///
    /// When weights can't be used, when the inputs of a product are NaN or infinite, and those of
    /// `choose`.
    pub fn rehearse(
        &self,
        start: &Container,
        texts: &[impl AsRef<str> + Sync],
        choose: &mut dyn FnMut(Rehearsed<'_>) -> Result<ChosenWeights, Error>,
    ) -> Result<(), Error> {
        let inner = &self.inner;
        let lacking = || Error::refused("the model can't be run", "");
        let architecture = Architecture::of(&inner.spec).ok_or_else(lacking)?;
        let mut finite = |rehearsed: Rehearsed<'_>| {
            if rehearsed.inputs.iter().all(|value| value.is_finite()) {
                return choose(rehearsed);
            }
            let what = "the texts lead to values inside the model that are NaN or infinite";
            Err(Error::refused(what, Advice::See(Listing::Findings)))
        };
        let (ids, texts) = some_texts(inner.tokenize(texts, self.prompt.as_deref()));
        let batch = Batch { ids: &ids, texts: &texts, seconds: &[], only_first: false };
        inner.model.rehearse(batch, &architecture.tensors(start), &mut finite)
    }
}

/// Texts from all over the list, with no more tokens than are taken.
fn some_texts((ids, texts): (Vec<u32>, Vec<Range<usize>>)) -> (Vec<u32>, Vec<Range<usize>>) {
    if ids.len() <= MOST_TOKENS {
        return (ids, texts);
    }
    let (mut some, mut taken) = (Vec::new(), Vec::new());
    for text in texts {
        // As large a share of those before this one as of all.
        let due = (text.end as u64 * MOST_TOKENS as u64 / ids.len() as u64) as usize;
        if some.len() + text.len() <= due {
            taken.push(some.len()..some.len() + text.len());
            some.extend_from_slice(&ids[text]);
        }
    }
    (some, taken)
}
