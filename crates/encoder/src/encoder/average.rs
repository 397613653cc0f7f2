//! Texts through a static model. A token's vector is looked up faster than it would be put into a queue,
//! so that every thread makes tokens of some texts and adds their vectors up at once.

use super::{Encoder, TEXTS_PER_TASK, prompted};
use crate::architectures::Table;
use crate::layers::Scratch;
use crate::settings::Pooling;
use std::ops::ControlFlow;
use weighbridge_codec::parallel::*;
use weighbridge_format::Error;

/// Texts between two looks at whether the work is to go on.
const TEXTS_PER_LOOK: usize = 1 << 14;

impl Encoder {
    /// The table of a static model whose texts are the mean of their tokens and nothing more.
    pub(super) fn averaged_table(&self) -> Option<&Table> {
        let is_mean = self.inner.settings.pooling == [Pooling::Mean];
        self.inner.model.table().filter(|_| is_mean && !self.inner.head.has_dense())
    }

    /// The vectors of texts, one behind the other.
    pub(super) fn average<S: AsRef<str> + Sync>(
        &self,
        table: &Table,
        texts: &[S],
        tell: &mut dyn FnMut(usize) -> ControlFlow<()>,
    ) -> Result<Vec<f32>, Error> {
        let width = self.dimensions();
        let mut vectors = vec![0.0; texts.len() * width];
        let some = |(texts, vectors): (&[S], &mut [f32])| {
            let (mut ids, mut scratch) = (Vec::new(), self.inner.scratch());
            let each = texts.iter().zip(vectors.chunks_exact_mut(width));
            let done = each.map(|(text, vector)| {
                self.average_one(table, text.as_ref(), vector, &mut ids, &mut scratch)
            });
            let done = done.collect::<Result<(), Error>>();
            self.inner.put_back(scratch);
            done
        };
        let parts = texts.chunks(TEXTS_PER_LOOK).zip(vectors.chunks_mut(TEXTS_PER_LOOK * width));
        for (part, (texts, vectors)) in parts.enumerate() {
            if tell(part * TEXTS_PER_LOOK).is_break() {
                return Err(Error::Cancelled);
            }
            if texts.len() <= TEXTS_PER_TASK {
                some((texts, vectors))?;
                continue;
            }
            self.inner.pool.install(|| {
                let vectors = vectors.par_chunks_mut(TEXTS_PER_TASK * width);
                let tasks = texts.par_chunks(TEXTS_PER_TASK).zip(vectors);
                tasks.map(some).try_reduce(|| (), |(), ()| Ok(()))
            })?;
        }
        self.checked(vectors)
    }

    fn average_one(
        &self,
        table: &Table,
        text: &str,
        vector: &mut [f32],
        ids: &mut Vec<u32>,
        scratch: &mut Scratch,
    ) -> Result<(), Error> {
        ids.clear();
        let text = prompted(self.prompt.as_deref(), text);
        self.inner.tokenizer.encode_into(&text, self.max_tokens(), ids);
        table.mean(ids.get(self.skipped..).unwrap_or_default(), vector, scratch)?;
        if self.inner.settings.normalize {
            crate::head::normalize(vector);
        }
        Ok(())
    }
}
